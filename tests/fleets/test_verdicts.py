"""End of line: wrong answers are as rare as said, and what cannot be told is not guessed."""

import numpy as np
import pytest

import frictax as fx
from fleet_tables import plausible, table

LIMITS = {"a": (0.0, 10.0)}


def _fleet(rng: np.random.Generator, truth: float, n: int, dof: int = 5):
    """Records of one true value, with errors that are known by few degrees of freedom."""
    error = np.sqrt(rng.chisquare(dof, n) / dof)
    return table({"a": truth + rng.standard_normal(n)}, {"a": error}, freedom=dof)


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_a_number_on_its_limit_passes_and_fails_as_rarely_as_said(level: float) -> None:
    n = 1500
    counts = fx.verdicts(_fleet(np.random.default_rng(0), 10.0, n), LIMITS, level=level).counts
    for word in ("pass", "fail"):
        assert plausible(counts[word], n, (1 - level) / 2)


def test_a_number_well_within_passes_and_one_well_beyond_fails() -> None:
    rng = np.random.default_rng(1)
    assert fx.verdicts(_fleet(rng, 5.0, 400, 50), LIMITS).counts["pass"] > 0.98 * 400
    assert fx.verdicts(_fleet(rng, 16.0, 400, 50), LIMITS).counts["fail"] > 0.98 * 400


def test_a_record_fails_by_one_number_and_passes_by_all() -> None:
    fleet = table(
        {"a": [5.0, 5.0, 5.0, 9.9, 5.0], "b": [1.0, 4.0, 2.0, 1.0, 1.0]},
        {"a": 0.1, "b": 0.1},
        machine=["m"] * 5,
        reason=["", "", "", "", "It stood still."],
    )
    found = fx.verdicts(fleet, {"a": (0, 10), "b": (None, 2.0)})
    assert found.table["verdict"].tolist() == [
        "pass",
        "fail",
        "cannot tell",
        "cannot tell",
        "cannot tell",
    ]
    assert found.table["why"].tolist() == [
        "",
        "b 4 N lies above 2 N",
        "b 2 N may lie above 2 N",
        "a 9.9 N may lie above 10 N",
        "It stood still.",
    ]
    assert found.counts == {"pass": 1, "fail": 1, "cannot tell": 3}
    assert found.numbers.loc["a", "pass"] == 3
    row = found.numbers.loc["a"]
    assert row["guard"] == pytest.approx(0.196, rel=1e-3)
    assert row["guard_share"] == pytest.approx(0.0392, rel=1e-3)
    assert row["capability"] == pytest.approx(25.0)
    assert "2 N or less" in str(found)
    assert found._repr_html_().startswith("<div")


def test_a_number_that_is_not_told_cannot_pass() -> None:
    fleet = table({"a": [5.0, 5.0], "b": [1.0, 1.0]}, {"a": [0.1, 0.1], "b": [0.1, np.nan]})
    found = fx.verdicts(fleet, {"a": (0, 10), "b": (0, 2)})
    assert found.table["verdict"].tolist() == ["pass", "cannot tell"]
    assert found.table["why"].tolist()[1] == "b has no estimate"


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({}, "`limits` is empty"),
        ({"a": 3.0}, "must be a pair"),
        ({"a": (3.0, 2.0)}, "lower limit below the upper"),
        ({"a": (None, None)}, "lower limit below the upper"),
    ],
)
def test_limits_that_hold_nothing_are_refused(limits: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        fx.verdicts(table({"a": [1.0]}, {"a": 0.1}), limits)


def test_an_unknown_number_is_refused() -> None:
    with pytest.raises(KeyError, match="no number 'c'"):
        fx.verdicts(table({"a": [1.0]}, {"a": 0.1}), {"c": (0, 1)})
