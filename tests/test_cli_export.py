"""`frictax export`: what it writes, and what it says of wrong input."""

from pathlib import Path

import pytest

from commands import LINE, frictax, plain


@pytest.fixture(scope="module")
def law(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The saved fit of a sweep."""
    import frictax as fx

    folder = tmp_path_factory.mktemp("law")
    (folder / "sweep.csv").write_text(LINE)
    sweep = fx.Sweep.from_csv(folder / "sweep.csv", velocity="omega", force="torque")
    return Path(fx.fit(fx.Coulomb(F_Coulomb=1.0), sweep).save(folder / "result.fit"))


@pytest.mark.parametrize(("to", "suffix"), [("c", ".c"), ("st", ".st"), ("javascript", ".js")])
def test_a_law_is_written_beside_its_fit(law: Path, to: str, suffix: str) -> None:
    done = frictax("export", str(law), "--to", to)
    assert done.exit_code == 0, done.output
    target = law.with_name(f"friction{suffix}")
    assert f"Written: {target}" in done.output.replace("\n", "")
    assert "F_Coulomb" in target.read_text()
    again = frictax("export", str(law), "--to", to)
    assert again.exit_code == 1
    assert "Give --overwrite to replace it" in plain(again.output)
    assert frictax("export", str(law), "--to", to, "--overwrite").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        (["--to", "fmu"], "A friction law is exported to c, javascript or st, got --to fmu", 1),
        (["--input", "drive.f=held"], "--input and --output belong to a machine", 1),
        (["--input", "drive.f"], "must be NAME=held or NAME=linear, got 'drive.f'", 2),
        (["--input", "a=held", "--input", "a=linear"], "--input names 'a' twice", 2),
        (["--to", "rust"], "'rust' is not one of", 2),
    ],
)
def test_wrong_options_get_a_sentence(
    law: Path, arguments: list[str], says: str, code: int
) -> None:
    done = frictax("export", str(law), "--out", str(law.with_name("other")), *arguments)
    assert done.exit_code == code
    assert says in plain(done.output)
    assert not law.with_name("other").exists()


def test_a_problem_without_a_fit_names_the_command_that_makes_one(tmp_path: Path) -> None:
    (tmp_path / "problem.toml").write_text('title = "none"\n')
    done = frictax("export", str(tmp_path))
    assert done.exit_code == 1
    assert "has no result.fit" in plain(done.output)
    assert "frictax identify" in plain(done.output)
