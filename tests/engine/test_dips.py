"""A margin that falls and rises again between two steps of the solver is not missed."""

import math

import jax.numpy as jnp
import pytest

import frictax as fx

A = 3.0


def _slows_down_to(depth: float) -> fx.Mechanism:
    """Sliding with v = v0 - A/(2 pi)*(1 - cos(2 pi t)), whose least value, at 0.5 s, would be
    -depth.
    """
    return fx.Mechanism(
        mass=fx.Mass(m=1.0, v=A / math.pi - depth),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
        drive=fx.Force("mass", fx.Sine(amplitude=A, f=1.0, phase=jnp.pi, offset=1.0)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("rtol", [1e-7, 1e-5, 1e-10])
def test_a_block_that_would_turn_back_for_a_moment_sticks_for_that_moment(rtol: float) -> None:
    for depth in (1e-1, 1e-2, 1e-3, 1e-4):
        run = fx.simulate(
            _slows_down_to(depth), jnp.array([0.0, 0.9]), fx.Adaptive(rtol=rtol, atol=rtol)
        )
        assert int(run.events.count) == 2, depth
        sticks = math.acos(1 - 2 * math.pi * (A / math.pi - depth) / A) / (2 * math.pi)
        # The time of so flat a crossing is as uncertain as the root of the tolerance.
        assert abs(float(run.events.time[0]) - sticks) <= 20 * rtol / math.sqrt(depth)
        # The force passes through the Coulomb friction at 0.5 s and carries it on.
        assert abs(float(run.events.time[1]) - 0.5) <= 1e-9
        assert [int(m) for m in run.events.mode_after[:2]] == [0, 1]


def test_a_block_that_only_slows_down_slides_on() -> None:
    for end in (0.4, 0.5, 0.6, 2.0):
        engine = fx.Adaptive(rtol=1e-7, atol=1e-7)
        run = fx.simulate(_slows_down_to(-1e-3), jnp.array([0.0, end]), engine)
        assert int(run.events.count) == 0
        assert float(run["mass"].v[-1]) == pytest.approx(
            A / math.pi + 1e-3 - A / (2 * math.pi) * (1 - math.cos(2 * math.pi * end)), abs=1e-6
        )
