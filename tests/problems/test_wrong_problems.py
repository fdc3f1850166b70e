"""What is wrong with a problem file is said in one sentence: file, key, rule, value, remedy.

None runs code, none writes.
"""

import re
from collections.abc import Callable
from pathlib import Path

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
