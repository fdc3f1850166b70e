"""Where a motion turns back, and how friction rises from there."""

from typing import Any

import numpy as np
import pytest

import frictax as fx
from frictax.bristles import AbstractBristle
from frictax.measurements.reversals import rises


def test_rises_are_found_after_reversals_in_full_sliding_alone() -> None:
    """Strokes of 1 mm, of 2 N and 1e5 N/m, and a small one between them."""
    corners = np.array([0.0, 1e-3, 0.0, 1e-3, 9.9e-4, 1e-3, 0.0, 1e-3])
    s = np.concatenate([np.linspace(a, b, 500) for a, b in zip(corners, corners[1:], strict=False)])
    f, held = np.zeros(s.size), 0.0
    for i in range(1, s.size):
        held = np.clip(held + 1e5 * (s[i] - s[i - 1]), -2.0, 2.0)
        f[i] = held
    found = rises(s, f, (0.5, 0.9))
    assert len(found) == 4
    assert found[:, 0] == pytest.approx(2e-5, abs=3e-6)
    assert found[:, 1] == pytest.approx(3.6e-5, abs=3e-6)
    assert found[:, 2] == pytest.approx(2.0, abs=1e-6)


@pytest.mark.parametrize("kind", [fx.Dahl, fx.LuGre, fx.ElastoPlastic, fx.MaxwellSlip])
def test_a_start_is_near_the_bristle(kind: type) -> None:
    """Under strokes of 1 mm of a bristle of 1e5 N/m that yields as its kind does."""
    way = np.linspace(0.0, 1e-3, 4001)
    straight = kind in (fx.ElastoPlastic, fx.MaxwellSlip)
    rise = np.minimum(way / 2e-5, 2.0) if straight else -2 * np.expm1(-way / 2e-5)
    s = np.concatenate([way, way[::-1], way])
    f = np.concatenate([rise, 2.0 - 2 * np.minimum(rise, 2.0), 2 * rise - 2.0])
    if straight:  # twice the way between the limits
        slow = np.minimum(way / 1e-5 - 2.0, 2.0)
        f = np.concatenate([rise, -slow, slow])
    found: Any = fx.starting_bristle(kind, s, f)
    assert float(found.sigma_0) == pytest.approx(1e5, rel=0.03)


def test_without_a_reversal_a_start_is_that_of_ground_steel_or_of_gears() -> None:
    s = np.linspace(0.0, 1e-3, 101)
    f = np.minimum(3.0, 1e5 * s)
    assert float(fx.starting_bristle(fx.Dahl, s, f).sigma_0) == pytest.approx(3.0 / 5e-6)
    assert float(fx.starting_bristle(fx.Dahl, s, f, rotational=True).sigma_0) == pytest.approx(3e3)
    damped = fx.starting_bristle(fx.LuGre, s, f, m=2.0, viscous=5.0)
    assert float(damped.sigma_1) == pytest.approx(2 * np.sqrt(3.0 / 5e-6 * 2.0) - 5.0)
    one = fx.starting_bristle(fx.MaxwellSlip, s, f)
    assert one.k == pytest.approx([3.0 / 5e-6])
    with pytest.raises(ValueError, match="ElastoPlastic and MaxwellSlip, not for AbstractBristle"):
        fx.starting_bristle(AbstractBristle, s, f)


@pytest.mark.parametrize("elements", [2, 4, 10])
def test_elements_start_on_a_grid_whose_friction_is_near_where_it_is_read(elements: int) -> None:
    """Strokes of a spring and a slider: the elements bear together, after the way to 63 % of the
    swing, what one would, and slip one after the other.
    """
    way = np.linspace(0.0, 1e-3, 4001)
    down = np.maximum(2.0 - way * 1e5, -2.0)
    s, f = np.concatenate([way, way[::-1]]), np.concatenate([np.minimum(way * 1e5, 2.0), down])
    found = fx.starting_bristle(fx.MaxwellSlip, s, f, elements=elements)
    assert found.elements == elements
    assert np.sum(found.share) == pytest.approx(1.0)
    slips = 2.0 * np.asarray(found.share / found.k)
    assert slips[[0, -1]] == pytest.approx([1e-5, 4e-5], rel=0.02)
    assert np.ptp(np.diff(np.log(slips))) < 1e-9
    x63 = 2 * 2e-5 * (1 - np.exp(-1.0))
    after = np.sum(np.minimum(np.asarray(found.k) * x63 - 2.0 / elements, 2.0 / elements))
    assert (after + 2.0) / 4.0 == pytest.approx(1 - np.exp(-1.0), rel=0.06)


def test_elements_are_of_maxwell_slip_alone() -> None:
    s = np.linspace(0.0, 1e-3, 101)
    for kind, elements in ((fx.LuGre, 2), (fx.MaxwellSlip, 0)):
        with pytest.raises(ValueError, match=f"`elements` must be >= 1, .*, got {elements}"):
            fx.starting_bristle(kind, s, np.minimum(3.0, 1e5 * s), elements=elements)
