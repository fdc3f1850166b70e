"""Mistakes on the command line: one sentence each, an exit code, and nothing lost."""

from pathlib import Path

import pytest

from commands import COLUMNS, LINE, frictax, plain
from frictax.cli.working import as_option_names

# (arguments, exit code, words of the one sentence)
WRONG = [
    (["fit", "line.csv", "--modelica", "--json", "-"], 2, ["--modelica is not used: --json -"]),
    (["fit", "line.csv", "--citation", "me, 2026"], 2, ["--citation is for the report and the"]),
    (["identify", "p", "--check", "--out", "q"], 2, ["--out is not used: --check writes no files"]),
    (["identify", "p", "--check", "-f"], 2, ["--overwrite is not used: --check writes no files"]),
    (["fleet", "p", "q", "--jobs", "2", "--cluster", "a"], 2, ["--jobs is not used: the workers"]),
    (["design", "p", "--out", "a", "--report", "a"], 2, ["--out and --report both name a"]),
    (["fleet", "p", "a", "--out", "a", "-f"], 2, ["--out a is also read, or is the report."]),
    (["fit", "none.csv"], 1, ["There is no file none.csv", "Did you mean 'line.csv'"]),
    (["fit", "."], 1, ["is a folder, not a file", "line.csv"]),
    (["fit", "line.csv"], 1, ["no column 'velocity' for velocity", "It has: omega, torque"]),
    (["fit", "line.csv", "--velocity", "omgea", "--force", "torque"], 1, ["Did you mean 'omega'"]),
    (["fit", "line.csv", *COLUMNS, "--sigma", "stdd"], 1, ["no column 'stdd' for sigma"]),
    (["fit", "line.csv", *COLUMNS, "--breakaway", "std"], 1, ["'std' must hold 1 or 0"]),
    (
        ["fit", "line.csv", *COLUMNS, "--velocity-unit", "rpn"],
        1,
        ["--velocity-unit must be one of", "Did you mean 'rpm'"],
    ),
    (
        ["fit", "line.csv", *COLUMNS, "--velocity-unit", "m/s", "--force-unit", "N.m"],
        1,
        ["both be of a rotation", "Declare --force-unit 'N'"],
    ),
    (["fit", "line.csv", *COLUMNS, "--direction", "negative"], 1, ["no rows with v < 0"]),
    (["fit", "line.csv", *COLUMNS, "--where", "omega=9"], 1, ["no row where omega = 9"]),
    (
        ["fit", "line.csv", *COLUMNS, "--sign", "-1"],
        1,
        ["100 % of the rows have the other sign", "Give --sign 1"],
    ),
    (
        ["fit", "line.csv", *COLUMNS, "--law", "coulomb", "--offset"],
        1,
        ["--offset (the payload's weight) and Coulomb friction cannot be"],
    ),
    (
        ["fit", "line.csv", *COLUMNS, "--law", "table", "--where", "omega=1"],
        1,
        ["two or more speeds"],
    ),
    (["fit", "line.csv", *COLUMNS, "--delimiter", ";"], 1, ["--delimiter"]),
    (
        ["fit", "line.csv", *COLUMNS, "--report", "missing/r.html"],
        1,
        ["There is no folder missing for the report", "Make it first"],
    ),
    (
        ["fit", "line.csv", *COLUMNS, "--json", "missing/r.json"],
        1,
        ["There is no folder missing for the JSON"],
    ),
    (["fit", "line.csv", *COLUMNS, "--report", "."], 1, ["is a folder. Name a file in it"]),
    (["fit", "words.csv", *COLUMNS], 1, ["line 2: column 'omega' must hold a number, got 'fast'"]),
    (["fit", "empty.csv", *COLUMNS], 1, ["empty.csv is empty"]),
    (["fit", "binary.csv", *COLUMNS], 1, ["is not a text file"]),
    (["fit", "short.csv", *COLUMNS], 1, ["too few for 4 parameters"]),
    (["compare", "none.csv"], 1, ["There is no file none.csv"]),
    (["compare", "line.csv", *COLUMNS, "--each-direction"], 1, ["no rows with v < 0"]),
    (["fit"], 2, ["Missing argument 'SWEEP.csv'"]),
    (["fit", "line.csv", *COLUMNS, "--law", "stribek"], 2, ["Did you mean 'stribeck'?"]),
    (
        ["fit", "line.csv", *COLUMNS, "--law", "coulomb", "--exponent", "2"],
        2,
        ["--exponent belongs to the Stribeck law"],
    ),
    (
        ["fit", "line.csv", *COLUMNS, "--neg-law", "coulomb", "--neg-exponent", "2"],
        2,
        ["--neg-exponent belongs to the Stribeck law"],
    ),
    (["fit", "line.csv", *COLUMNS, "--exponent", "0"], 2, ["must be > 0, got 0"]),
    (["fit", "line.csv", *COLUMNS, "--exponent", "nan"], 2, ["must be > 0, got nan"]),
    (["fit", "line.csv", *COLUMNS, "--level", "95"], 2, ["must lie between 0 and 1, got 95"]),
    (
        ["fit", "line.csv", *COLUMNS, "--where", "drive"],
        2,
        ["--where must be COLUMN=VALUE, got 'drive'"],
    ),
    (
        ["fit", "line.csv", *COLUMNS, "--where", "std=1", "--where", "std=2"],
        2,
        ["names column 'std' twice"],
    ),
    (["fit", "line.csv", *COLUMNS, "--direction", "up"], 2, ["'up' is not one of"]),
    (
        ["fit", "line.csv", *COLUMNS, "--direction", "positive", "--each-direction"],
        2,
        ["needs both, got --direction positive"],
    ),
    (["fit", "line.csv", *COLUMNS, "--sigma-known"], 2, ["name its column with --sigma COLUMN"]),
    (["fit", "line.csv", *COLUMNS, "--sign", "2"], 2, ["--sign must be 1 or -1, got 2"]),
    (
        ["fit", "line.csv", *COLUMNS, "--decimal", "x"],
        2,
        ["--decimal must be a point or a comma, got 'x'"],
    ),
    (
        ["fit", "line.csv", *COLUMNS, "--decimal", ","],
        2,
        ["--delimiter and --decimal are both ','"],
    ),
    (["fit", "line.csv", *COLUMNS, "--title", "x"], 2, ["give --report FILE too"]),
    (
        ["fit", "line.csv", *COLUMNS, "--json", "line.csv", "--overwrite"],
        2,
        ["is the sweep itself, which is never overwritten"],
    ),
    (["fit", "line.csv", *COLUMNS, "--report", "./line.csv"], 2, ["is the sweep itself"]),
    (["fit", "line.csv", *COLUMNS, "--report", "x", "--json", "./x"], 2, ["both name"]),
    (["fit", "line.csv", *COLUMNS, "--speed", "x"], 2, ["No such option"]),
    (["fitt"], 2, ["No such command 'fitt'"]),
]


@pytest.mark.parametrize(
    ("arguments", "code", "words"), [pytest.param(*case, id=" ".join(case[0])) for case in WRONG]
)
def test_a_mistake_ends_in_one_sentence_with_the_remedy(
    folder: Path, arguments: list[str], code: int, words: list[str]
) -> None:
    (folder / "words.csv").write_text(LINE.replace("\n1,", "\nfast,"), encoding="utf-8")
    (folder / "empty.csv").write_text("", encoding="utf-8")
    (folder / "binary.csv").write_bytes(b"\x00\x01\xff\xfe")
    (folder / "short.csv").write_text("omega,torque\n1,2\n2,2.5\n3,3\n", encoding="utf-8")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    done = frictax(*arguments)
    assert done.exit_code == code, done.output
    assert done.stdout == ""
    for word in words:
        assert word in plain(done.stderr)
    if code == 1:
        assert done.stderr.startswith("frictax: ")
        assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.output
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_a_fit_that_does_not_converge_ends_with_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import frictax.fitting as fitting

    fit = fitting.fit
    hasty = fitting.LevenbergMarquardt(max_steps=1, tolerance=1e-12)
    monkeypatch.setattr(fitting, "fit", lambda *args, **kwargs: fit(*args, **kwargs, method=hasty))
    done = frictax("fit", "sweep.csv", *COLUMNS, "--where", "drive=1", "--direction", "positive")
    assert done.exit_code == 1
    assert "did not converge" in done.stderr


def test_an_interrupt_ends_with_a_word_and_the_shells_code(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import frictax.fitting as fitting

    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "fit", interrupted)
    done = frictax("fit", "line.csv", *COLUMNS, "--report", "r.html")
    assert (done.exit_code, done.stderr, done.stdout) == (130, "frictax: Interrupted.\n", "")
    assert not (folder / "r.html").exists()


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ('Give delimiter=";".', 'Give --delimiter ";".'),
        ("give breakaway=<its name>.", "give --breakaway <its name>."),
        ("Give sign=-1.", "Give --sign -1."),
        ("`velocity_unit` must be", "--velocity-unit must be"),
        ("The design=2 stays.", "The design=2 stays."),
    ],
)
def test_sentences_of_the_library_name_the_options_of_the_command_line(
    sentence: str, expected: str
) -> None:
    assert as_option_names(sentence) == expected
