"""What is wrong with a problem file is said in one sentence: file, key, rule, value, remedy.

None runs code, none writes.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import pytest

from frictax.problems import ProblemError, check, identify, read
from wrong_problems import WRONG


@pytest.mark.parametrize("what", WRONG)
def test_says_what_is_wrong_in_one_sentence_and_writes_nothing(
    what: str, problem: Callable[..., Path]
) -> None:
    old, new, words = WRONG[what]
    folder = problem((old, new))
    before = sorted(folder.iterdir())
    with pytest.raises(ValueError) as error:
        identify(folder)
    said = str(error.value)
    assert "\n" not in said.strip()
    assert len(said) < 700
    assert all(word in said for word in words), said
    assert "Traceback" not in said
    assert sorted(folder.iterdir()) == before


def test_numbers_of_32_bits_are_not_a_fault_of_the_file(problem: Callable[..., Path]) -> None:
    folder = problem()
    with jax.enable_x64(False), pytest.raises(ValueError, match="^`fit` needs 64 bit") as error:
        identify(folder)
    assert not isinstance(error.value, ProblemError)


TOLD_BY_CHECK = (
    "an input that no part takes",
    "a structure that changes nothing",
    "nothing that can be fitted",
    "level beside structures",
    "loss beside structures",
    "a structure that changes nothing beside a prior",
    "a prior on what is not fitted",
    "a profile of what is not fitted",
    "a score that needs longer records",
    "starts for other records than there are",
    "errors by repeats of one record",
    "errors that cannot resample priors",
)


@pytest.mark.parametrize("what", TOLD_BY_CHECK)
def test_what_no_fit_could_be_made_of_is_told_before_any_is_begun(
    what: str, problem: Callable[..., Path]
) -> None:
    old, new, words = WRONG[what]
    asked = read(problem((old, new)))
    with pytest.raises(ProblemError) as error:
        check(asked)
    assert all(word in str(error.value) for word in words), error.value


def test_what_is_no_problem_file_is_told_with_the_command_that_writes_one(
    problem: Callable[..., Path],
) -> None:
    folder = problem()
    (folder / "my run.CSV").write_text("t [s],i [A]\n0,1\n")
    for named, error, words in (
        (folder / "my run.CSV", ProblemError, "my run.CSV is a record, not a problem file. Name a"),
        (folder / "my run.CSV", ProblemError, f"`frictax init '{folder / 'my run.CSV'}'` writes."),
        (folder / "nowhere", FileNotFoundError, "There is no file or folder named"),
        (folder.parent / "other", FileNotFoundError, "which `frictax init` writes for a record."),
    ):
        with pytest.raises(error, match=re.escape(words)):
            read(named)


def test_there_are_sixty_of_them() -> None:
    assert len(WRONG) >= 60


def test_the_problem_that_they_are_made_from_is_right(problem: Callable[..., Path]) -> None:
    assert read(problem()).fitted_records["run"].n == 401


def test_a_structure_has_the_priors_of_the_fit_whose_parameters_it_fits(
    problem: Callable[..., Path],
) -> None:
    paths = ("mass.m", "friction.f_pos.F_Coulomb")
    priors = ", ".join(
        f'{{ kind = "Normal", path = "{path}", mean = 2.0, sd = 0.1 }}' for path in paths
    )
    more = f"""priors = [{priors}]
    [structures.viscous]
    free = ["mass.m", "friction.f_pos"]
    [structures.fixed]
    free = ["mass.m"]
    [structures.table]
    free = ["mass.m", "friction.f_pos"]
    machine.friction = {{ kind = "SupportFriction", body = "mass", f_pos = [[0, 1], [1, 1]] }}
    [structures.tied]
    tied = {{ "friction.f_pos.F_Coulomb" = "mass.m" }}
    [structures.without]
    priors = []
    [uncertainty]"""
    asked = read(problem(("[uncertainty]", more)))
    found = {name: [p.path for p in s.priors] for name, s in asked.structures.items()}
    assert found == {
        "viscous": [*paths],
        "fixed": ["mass.m"],
        "table": ["mass.m"],
        "tied": ["mass.m"],
        "without": [],
    }


def test_a_sweep_without_units_takes_those_in_the_names_of_its_columns(tmp_path: Path) -> None:
    rows = "".join(f"{v},{0.02 * v}\n" for v in range(1, 20))
    (tmp_path / "sweep.csv").write_text(f"v [mm/s],F [kN]\n{rows}")
    text = 'title = "A"\n[sweep]\nfile = "sweep.csv"\nvelocity = "v [mm/s]"\nforce = "F [kN]"\n'
    (tmp_path / "problem.toml").write_text(text)
    sweep: Any = read(tmp_path).data
    assert (sweep.velocity[-1], sweep.force[-1]) == pytest.approx((0.019, 380.0))
