"""Where a search for an event may end."""

import math

import jax.numpy as jnp
import pytest

from frictax.engine.events import Bracket

NEAR = 1e-7  # of the length


def is_fall(low: float, high: float, x: float, fx: float) -> bool:
    """With such values at 0 and 1, seen at x."""
    ends = (jnp.asarray(end) for end in (0.0, 1.0, low, high))
    return bool(Bracket.start(*ends).is_fall(x, fx, NEAR))


@pytest.mark.parametrize("off", [0.5, 1.5])
def test_a_point_within_reach_of_a_fall_through_zero_ends_the_search(off: float) -> None:
    for x in (0.3 - off * NEAR, 0.3 + off * NEAR):
        assert is_fall(0.3, -0.7, x, 0.3 - x) == (off < 1)


def test_neither_a_rise_nor_a_step_nor_a_cliff_does() -> None:
    assert not is_fall(1e-18, -1.0, 4e-8, 4e-8)  # a slip begins, and ends later
    assert not is_fall(math.inf, -1.0, 0.5, -0.5)
    assert not is_fall(1e9, -1.0, 0.5, -0.1)
    assert not is_fall(0.3, -0.7, 0.5, math.nan)
