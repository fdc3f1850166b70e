"""The command line: what it prints, writes, refuses, and with which exit code it ends."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import frictax as fx
from commands import COLUMNS, LINE, frictax, plain


def test_fit_prints_the_estimates_of_the_shipped_drive_and_what_cannot_be_known(
    folder: Path,
) -> None:
    done = frictax(
        "fit",
        "sweep.csv",
        *COLUMNS,
        "--where",
        "drive=1",
        "--direction",
        "positive",
        "--exponent",
        "2",
        "--modelica",
    )
    assert done.exit_code == 0, done.output
    for words in (
        "F_Coulomb",
        "2.147",
        "mN.m",
        "0.041",
        "95 % interval",
        "sweep (drive = 1)",
        "peak is kept at",
        "BearingFriction(tau_pos=",
    ):
        assert words in done.stdout
    assert done.stderr == ""
    assert sorted(p.name for p in folder.iterdir()) == ["line.csv", "sweep.csv"]


def test_each_direction_can_have_its_own_law(folder: Path) -> None:
    done = frictax(
        "fit",
        "sweep.csv",
        *COLUMNS,
        "--where",
        "drive=1",
        "--exponent",
        "2",
        "--neg-exponent",
        "1",
        "--json",
        "-",
    )
    result = json.loads(done.stdout)
    assert [result["law"][way]["exponent"] for way in ("f_pos", "f_neg")] == [2.0, 1.0]
    assert {e["path"].split(".")[0] for e in result["estimates"]} == {"f_pos", "f_neg"}


def test_units_in_the_names_of_columns_are_used_and_doubts_are_printed(folder: Path) -> None:
    text = LINE.replace("omega", "omega [rpm]").replace("torque", "torque [Nmm/A]")
    (folder / "named.csv").write_text(text, encoding="utf-8")
    columns = ("--velocity", "omega [rpm]", "--force", "torque [Nmm/A]")
    done = frictax("fit", "named.csv", *columns, "--law", "coulomb", "--json", "-")
    assert json.loads(done.stdout)["sweep"]["velocity"][0] == pytest.approx(math.tau / 60)
    assert "frictax: Column 'torque [Nmm/A]' of named.csv has 'Nmm/A' in its name" in done.stderr
    assert "Give --force-unit if it is a unit." in done.stderr


def test_the_json_is_the_fit_in_si_units_and_nothing_else_is_printed(folder: Path) -> None:
    done = frictax(
        "fit", "line.csv", *COLUMNS, "--law", "coulomb", "--force-unit", "mN.m", "--json", "-"
    )
    result = json.loads(done.stdout)
    values = {e["name"]: e for e in result["estimates"]}
    assert values["F_prop"]["value"] == pytest.approx(0.499e-3, rel=1e-3)
    assert values["F_prop"]["unit"] == "N.m.s/rad"
    assert values["F_prop"]["lower"] < 0.5e-3 < values["F_prop"]["upper"]
    assert (result["format"], result["kind"], result["frictax"]) == (3, "fit", fx.__version__)
    assert done.exit_code == 0


def test_numbers_without_a_value_are_null_in_the_json(folder: Path) -> None:
    (folder / "falling.csv").write_text(
        "omega,torque\n1,5\n2,4.5\n3,4.1\n4,3.5\n", encoding="utf-8"
    )
    done = frictax("fit", "falling.csv", *COLUMNS, "--law", "coulomb", "--json", "-")
    at_bound = [e for e in json.loads(done.stdout)["estimates"] if e["name"] == "F_prop"]
    assert at_bound[0]["standard_error"] is None


def test_the_report_and_the_json_are_written_where_asked(folder: Path) -> None:
    done = frictax(
        "fit",
        "line.csv",
        *COLUMNS,
        "--law",
        "coulomb",
        "--report",
        "r.html",
        "--title",
        "<Line>",
        "--json",
        "r.json",
    )
    assert done.exit_code == 0, done.output
    assert done.stdout.rstrip().endswith("Written: r.html\nWritten: r.json")
    assert "<title>&lt;Line&gt;</title>" in (folder / "r.html").read_text(encoding="utf-8")
    assert json.loads((folder / "r.json").read_text(encoding="utf-8"))["kind"] == "fit"


def test_files_that_are_there_are_kept_unless_overwriting_is_asked_for(folder: Path) -> None:
    command = (
        "fit",
        "line.csv",
        *COLUMNS,
        "--law",
        "coulomb",
        "--json",
        "r.json",
        "--report",
        "r.html",
    )
    (folder / "r.json").write_text("mine", encoding="utf-8")
    refused = frictax(*command)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert (
        refused.stderr
        == "frictax: r.json exists. Give --overwrite to replace it, or name another file for"
        " --json.\n"
    )
    assert (folder / "r.json").read_text(encoding="utf-8") == "mine"
    assert not (folder / "r.html").exists()
    assert frictax(*command, "--overwrite").exit_code == 0
    assert frictax(*command, "-f").exit_code == 0


def test_overwriting_never_puts_a_report_in_the_place_of_something_else(folder: Path) -> None:
    (folder / "notes.html").write_text("<p>mine</p>", encoding="utf-8")
    done = frictax(
        "fit", "line.csv", *COLUMNS, "--law", "coulomb", "--report", "notes.html", "--overwrite"
    )
    assert done.exit_code == 1
    assert "is not a report of frictax" in done.stderr
    assert (folder / "notes.html").read_text(encoding="utf-8") == "<p>mine</p>"


def test_a_report_survives_a_run_that_fails(folder: Path) -> None:
    assert (
        frictax("fit", "line.csv", *COLUMNS, "--law", "coulomb", "--report", "r.html").exit_code
        == 0
    )
    before = (folder / "r.html").read_bytes()
    (folder / "line.csv").write_text(LINE + "6,nan,0.1,0\n", encoding="utf-8")
    assert (
        frictax(
            "fit", "line.csv", *COLUMNS, "--law", "coulomb", "--report", "r.html", "--overwrite"
        ).exit_code
        == 1
    )
    assert (folder / "r.html").read_bytes() == before


def test_options_of_the_data_reach_the_fit(folder: Path) -> None:
    text = LINE.replace(",", ";").replace(".", ",") + "0;-2,3;0,1;1\n0;-2,2;0,1;1\n"
    (folder / "german.csv").write_text(text.replace(";-", ";"), encoding="utf-8")
    done = frictax(
        "fit",
        "german.csv",
        *COLUMNS,
        "--law",
        "coulomb",
        "--delimiter",
        ";",
        "--decimal",
        ",",
        "--breakaway",
        "began",
        "--sigma",
        "std",
        "--sigma-known",
        "--velocity-unit",
        "mm/s",
        "--force-unit",
        "N",
        "--robust",
        "--level",
        "0.9",
        "--json",
        "-",
    )
    result = json.loads(done.stdout)
    assert {e["name"] for e in result["estimates"]} == {"f_pos.F_Coulomb", "f_pos.F_prop", "peak"}
    assert result["sweep"]["velocity"][0] == pytest.approx(1e-3)
    assert (
        result["sweep"]["breakaway_rows"],
        result["sweep"]["sigma_known"],
        result["level"],
        result["loss"],
    ) == (2, True, 0.9, "Huber")


def test_a_constant_force_is_fitted_when_asked_for(folder: Path) -> None:
    rows = "".join(
        f"{v},{(2 if v > 0 else -2) + 0.1 * v + 0.3 + 0.01 * math.sin(7 * v)}\n"
        for v in (-4, -3, -2, -1, 1, 2, 3, 4)
    )
    (folder / "weight.csv").write_text("omega,torque\n" + rows, encoding="utf-8")
    done = frictax("fit", "weight.csv", *COLUMNS, "--law", "coulomb", "--offset", "--json", "-")
    values = {e["name"]: e["value"] for e in json.loads(done.stdout)["estimates"]}
    assert values["offset"] == pytest.approx(0.3, abs=0.01)


def test_compare_prints_each_law_and_the_reason_for_the_choice(folder: Path) -> None:
    done = frictax("compare", "line.csv", *COLUMNS, "--json", "c.json")
    assert done.exit_code == 0, done.output
    assert "Coulomb is chosen" in plain(done.stdout)
    made = json.loads((folder / "c.json").read_text(encoding="utf-8"))["comparisons"]
    assert [c["chosen"] for c in made] == ["Coulomb"]
    assert made[0]["laws"][0]["left_out_rms"] > 0


def test_names_from_files_are_text_and_never_markup(folder: Path) -> None:
    (folder / "[red]x[1].csv").write_text(LINE.replace("omega", "[bold]w"), encoding="utf-8")
    done = frictax(
        "fit", "[red]x[1].csv", "--velocity", "[bold]w", "--force", "torque", "--law", "coulomb"
    )
    assert "Coulomb friction of [red]x[1]" in done.stdout


def test_help_names_every_choice_and_shows_examples() -> None:
    text = plain(frictax("fit", "--help").stdout)
    for words in (
        "stribeck",
        "positive",
        "--each-direction",
        "Examples",
        "frictax fit sweep.csv --velocity omega --force torque",
    ):
        assert words in text


def _process(
    *arguments: str, before: Sequence[str] = (), stdout: Any = subprocess.PIPE
) -> subprocess.Popen[str]:
    """The command as a process of its own, with the environment of a user who has set nothing."""
    # A shell that starts the tests in the background has them ignore the interrupt, and a process
    # inherits that.
    interruptible = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [
        *before,
        sys.executable,
        "-W",
        "error",
        "-c",
        f"{interruptible}; from frictax.cli import main; main()",
        *arguments,
    ]
    environment = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "COLUMNS")}
    environment["PYTHONPATH"] = str(Path(fx.__file__).parents[1])
    return subprocess.Popen(
        command, text=True, stdout=stdout, stderr=subprocess.PIPE, env=environment
    )


def test_a_process_of_its_own_fits_with_64_bits_and_writes_nothing_to_the_error_stream(
    folder: Path,
) -> None:
    with _process(
        "fit", "line.csv", *COLUMNS, "--law", "coulomb", "--report", "r.html", "--json", "-"
    ) as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["converged"]
    again = (
        "frictax fit line.csv --velocity omega --force torque --law coulomb --report r.html"
        " --json -"
    )
    assert again in (folder / "r.html").read_text(encoding="utf-8")


def test_a_process_of_its_own_ends_a_mistake_without_a_traceback(folder: Path) -> None:
    with _process("fit", "none.csv", *COLUMNS) as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, "")
    assert err == "frictax: There is no file none.csv. Did you mean 'line.csv'?\n"


def test_the_version_is_printed() -> None:
    with _process("--version") as process:
        out, _ = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, f"frictax {fx.__version__}\n")
    environment = {**os.environ, "PYTHONPATH": str(Path(fx.__file__).parents[1])}
    module = subprocess.run(
        [sys.executable, "-m", "frictax", "--version"],
        text=True,
        capture_output=True,
        timeout=120,
        env=environment,
    )
    assert (module.returncode, module.stdout) == (0, out)


@pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason="os.mkfifo is missing: named pipes are those of POSIX"
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_control_c_and_sigterm_end_a_running_process_with_130_and_one_word(
    folder: Path, number: signal.Signals
) -> None:
    # whoever reads it waits, so that the interrupt meets a run in the middle
    os.mkfifo(folder / "slow.csv")
    with (
        _process("fit", "slow.csv", *COLUMNS, "--json", "c.json") as process,
        open(folder / "slow.csv", "w", encoding="utf-8"),
    ):
        # from opening to reading: a signal that comes between the two would be seen only after the
        # read
        time.sleep(1.0)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (130, "", "frictax: Interrupted.\n")
    assert not (folder / "c.json").exists()


@pytest.mark.skipif(
    sys.platform != "linux", reason="uses a namespace of processes, which Linux alone has"
)
def test_sigterm_ends_process_1_of_a_container(folder: Path) -> None:
    apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to make a namespace of processes (unshare), as root has")
    os.mkfifo(folder / "slow.csv")
    with (
        _process("fit", "slow.csv", *COLUMNS, before=apart) as process,
        open(folder / "slow.csv", "w", encoding="utf-8"),
    ):
        time.sleep(1.0)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        os.kill(int(children), signal.SIGTERM)
        _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (130, "frictax: Interrupted.\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a device that is full")
@pytest.mark.slow_after(2)
@pytest.mark.parametrize("what", [("data", "list"), ("--help",), ("fit", "line.csv", *COLUMNS)])
def test_output_that_cannot_be_written_is_one_sentence(folder: Path, what: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full, _process(*what, stdout=full) as process:
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert re.fullmatch(r"frictax: .* cannot be (written|used): no space left on device\..*\n", err)


@pytest.mark.skipif(os.name != "posix", reason="only POSIX closes streams")
@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", "| head -n 1", "<&-", ">&-", "2>&-"])
def test_closed_streams_are_no_mistake(folder: Path, closed: str) -> None:
    line = f"{sys.executable} -m frictax fit line.csv {' '.join(COLUMNS)} --json c.json {closed}"
    environment = {**os.environ, "PYTHONPATH": str(Path(fx.__file__).parents[1])}
    made = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, timeout=120, env=environment
    )
    assert (made.returncode, made.stderr) == (0, "")
    assert json.loads((folder / "c.json").read_text())["converged"]


def test_control_characters_of_file_names_do_not_reach_the_terminal(folder: Path) -> None:
    (folder / "a\x1b[2J.csv").write_text("omega,torque\n1,2\n")
    with _process("fit", "a\x1b[2J.csv", *COLUMNS) as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (2, "")
    assert err.startswith(r"frictax: The argument 'a\x1b[2J.csv' has control characters")


def test_every_command_that_the_pages_show_exists(root: Path) -> None:
    pages = [root / "README.md", *root.glob("docs/**/*.md"), *root.glob("identification/**/*.md")]
    pages += [root / "CHANGELOG.md", *root.glob("src/frictax/**/*.py")]
    shown = {
        command
        for page in pages
        for command in re.findall(r"(?:`|\$ )frictax ([a-z][\w-]+)", page.read_text())
    }
    assert {"identify", "table", "fit", "compare", "data"} <= shown
    for command in sorted(shown):
        assert frictax(command, "--help").exit_code == 0, command


def test_report_makes_the_page_of_a_fit_that_was_saved(folder: Path) -> None:
    sweep = fx.Sweep.from_csv("line.csv", velocity="omega", force="torque")
    found = fx.fit(fx.Coulomb, sweep)
    found.save("line.fit")
    done = frictax("report", "line.fit")
    assert done.exit_code == 0, done.output
    assert str(found).splitlines()[1] in done.output
    assert done.output.endswith("Written: line.html\n")
    assert "F_Coulomb" in (folder / "line.html").read_text(encoding="utf-8")
    for arguments, says in (
        (("line.fit",), "line.html exists. Give --overwrite to replace it, or another file"),
        (("line.fit", "--out", "line.csv", "--overwrite"), "is not a report of frictax."),
        (("line.csv",), "line.csv is no fit file of frictax. Name one that `found.save` wrote."),
        (("none.fit",), "There is no file none.fit."),
    ):
        wrong = frictax("report", *arguments)
        assert wrong.exit_code == 1
        assert says in plain(wrong.output)
    assert (folder / "line.csv").read_text(encoding="utf-8") == LINE
