"""Where a motion turns back, and how friction rises from there."""

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


@pytest.mark.parametrize("kind", [fx.Dahl, fx.LuGre, fx.ElastoPlastic])
def test_a_start_is_near_the_bristle(kind: type) -> None:
    """Under strokes of 1 mm of a bristle of 1e5 N/m that yields as its kind does."""
    way = np.linspace(0.0, 1e-3, 4001)
    rise = np.minimum(way / 2e-5, 2.0) if kind is fx.ElastoPlastic else -2 * np.expm1(-way / 2e-5)
    s = np.concatenate([way, way[::-1], way])
    f = np.concatenate([rise, 2.0 - 2 * np.minimum(rise, 2.0), 2 * rise - 2.0])
    if kind is fx.ElastoPlastic:  # twice the way between the limits
        slow = np.minimum(way / 1e-5 - 2.0, 2.0)
        f = np.concatenate([rise, -slow, slow])
    found = fx.starting_bristle(kind, s, f)
    assert float(found.sigma_0) == pytest.approx(1e5, rel=0.03)


def test_without_a_reversal_a_start_is_that_of_ground_steel_or_of_gears() -> None:
    s = np.linspace(0.0, 1e-3, 101)
    f = np.minimum(3.0, 1e5 * s)
    assert float(fx.starting_bristle(fx.Dahl, s, f).sigma_0) == pytest.approx(3.0 / 5e-6)
    assert float(fx.starting_bristle(fx.Dahl, s, f, rotational=True).sigma_0) == pytest.approx(3e3)
    damped = fx.starting_bristle(fx.LuGre, s, f, m=2.0, viscous=5.0)
    assert float(damped.sigma_1) == pytest.approx(2 * np.sqrt(3.0 / 5e-6 * 2.0) - 5.0)
    with pytest.raises(ValueError, match="A start is known for Dahl, LuGre and ElastoPlastic"):
        fx.starting_bristle(AbstractBristle, s, f)
