"""What a user may get wrong about the part of a record that is kept; each is told in a sentence or
two with object, rule, value and remedy.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import frictax as fx
from wrong_records import NAN, Case, F, Q, T, assert_told

pytestmark = pytest.mark.usefixtures("as_a_user_runs_it")


def good(act: Callable[[fx.Record], object]) -> Case:
    return lambda _: act(
        fx.Record(T, {"drive": F}, {"mass.s": np.where(T < 0.55, 0.0, Q)}, name="run")
    )


# What is done, and the pieces of what must be said.
CASES: dict[str, tuple[Case, list[str]]] = {
    "start after end": (
        good(lambda r: r.trim(0.5, 0.2)),
        ["start must lie before end", "0.5 s and 0.2 s", "Swap"],
    ),
    "nothing left": (
        good(lambda r: r.trim(5.0, 9.0)),
        ["at least 4 samples", "0 between 5 s and 9 s", "'run' lasts from 0 s to 1 s"],
    ),
    "hardly anything left": (
        good(lambda r: r.trim(0.8)),
        ["at least 4 samples", "got 3", "'run' lasts"],
    ),
    "a trim as text": (
        good(lambda r: r.trim("start")),  # pyright: ignore
        ["`Record.trim` start", "'start'", "'run' lasts from 0 s"],
    ),
    "a trim NaN": (good(lambda r: r.trim(end=NAN)), ["`Record.trim` end", "nan", "'run' lasts"]),
    "a part that stands still": (
        good(lambda r: r.trim(0.0, 0.5)),
        ["output 'mass.s'", "from 0 s to 0.5 s", "must change", "leave it out"],
    ),
    "decimation by 0": (
        good(lambda r: r.decimate(0)),
        ["n must be a whole number >= 1", "0", "every fourth"],
    ),
    "decimation by a half": (
        good(lambda r: r.decimate(2.5)),  # pyright: ignore
        ["n must be a whole number", "2.5", "every fourth"],
    ),
    "decimation of too much": (
        good(lambda r: r.decimate(5)),
        ["at least 4 samples", "3 of 11 for n = 5", "Give n <= 3"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_told_with_object_rule_value_and_remedy(name: str, tmp_path: Path) -> None:
    assert_told(CASES[name], tmp_path)


def test_the_largest_decimation_that_a_message_names_is_possible() -> None:
    moving = fx.Record(T, {"drive": F}, {"mass.s": Q})
    assert moving.decimate(3).n == 4
