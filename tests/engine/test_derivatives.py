"""The derivatives of runs through breakaway, sticking, stops and switches: forward = reverse =
central differences.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import assert_derivatives_agree, flat, outcome, rebuilt, value_and_jacobian
from machines import (
    TIGHT,
    pulsed_brake,
    stick_slip,
    stop2,
    supported_mass,
    two_blocks,
)

STRIBECK = ("F_prop", "F_Coulomb", "F_Stribeck", "fexp")


def tabled() -> fx.Mechanism:
    """`supported_mass` with 8 of the 50 rows of its table."""
    parts = supported_mass(peak=1.05)
    law = parts["supportFriction"].f_pos.extended_rows()[np.array([0, 1, 3, 6, 11, 20, 35, 49])]
    friction = fx.SupportFriction("mass", f_pos=law, peak=1.05)
    return fx.Mechanism(mass=parts["mass"], supportFriction=friction, drive=parts["drive"])


# machine, end of the run, times of the events to 1e-4 s, parameters
CASES = {
    "block through stick and slip": (
        lambda: stick_slip(peak=1.05),
        2.3,
        (0.1314, 0.5354, 0.6314, 1.0354, 1.1314, 1.5354, 1.6314, 2.0354, 2.1314),
        [
            "mass.m",
            "mass.s",
            *[f"friction.f_pos.{p}" for p in STRIBECK],
            "friction.peak",
            "drive.f.amplitude",
            "drive.f.f",
            "drive.f.phase",
        ],
    ),
    "mass that meets its stop": (
        stop2,
        1.2,
        (0.0606, 0.2011, 0.3416, 0.4821, 0.6227, 0.7633, 0.9042, 1.0460),
        [
            *[f"stop2.{p}" for p in ("m", "s", "v", "smin", *STRIBECK)],
            "spring.c",
            "spring.s_rel0",
            "wall.s0",
        ],
    ),
    "support friction by table": (
        tabled,
        3.0,
        (0.4339, 2.4408),
        ["mass.m", "supportFriction.f_pos.f", "supportFriction.peak", "drive.f.amplitude"],
    ),
    "two blocks dragged": (
        two_blocks,
        3.0,
        (0.0967, 0.2788, 0.8918, 0.9009, 0.9152, 1.5017)
        + (1.5816, 1.5982, 2.2849, 2.3286, 2.3423, 2.9300),
        [
            "first.m",
            "second.m",
            "joint.c",
            "joint.d",
            *[f"guide1.f_pos.{p}" for p in STRIBECK],
            "guide1.peak",
            "guide2.f_pos.F_Coulomb",
            "guide2.f_neg.F_Coulomb",
            "guide2.peak",
            "drive.f.f",
        ],
    ),
    "brake pressed by ramps": (
        pulsed_brake,
        2.3,
        (0.2000, 0.4738, 0.6224, 0.7000, 1.1000, 1.1825, 1.5268, 1.6000, 2.0000, 2.0827),
        [
            "mass.m",
            "mass.s",
            "spring.c",
            "brake.mu_pos.f",
            "brake.peak",
            "brake.fn_max",
            "brake.cgeo",
            "brake.f_normalized.startTime",
            "pull.f.k",
        ],
    ),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("name", "reverse"),
    [(name, False) for name in CASES if "stop" not in name] + [("mass that meets its stop", True)],
)
def test_derivatives_of_states_and_event_times_equal_central_differences(
    name: str, reverse: bool
) -> None:
    build, end, happened, paths = CASES[name]
    machine, count, times = build(), len(happened), np.array(happened)
    # Also just after every kind of event that happens: breakaway, sticking, stop, switch.
    ts = jnp.array([0.0, *(times + 1e-3), end])

    def f(vector: jax.Array) -> jax.Array:
        found = outcome(rebuilt(machine, paths, vector), ts, TIGHT, count)
        # NaN where an event is not at its time
        return found.at[-count:].mul(jnp.where(jnp.abs(found[-count:] - times) < 2e-3, 1, jnp.nan))

    x = flat(machine, paths)
    # A parameter must not move an event past a sample: 1e-4 of it moves an event by less than the
    # 1e-3 s above.
    assert_derivatives_agree(f, x, step=1e-4, reverse=reverse)


@pytest.mark.slow
def test_derivatives_by_a_stopped_start_velocity_are_0_and_by_a_sample_time_the_velocity() -> None:
    def states(x: jax.Array) -> jax.Array:
        """Return the states at the times x[1:], from the start velocity x[0]."""
        return fx.simulate(fx.parameters.replace(stick_slip(), {"mass.v": x[0]}), x[1:], TIGHT).ys

    both, x = value_and_jacobian(states), jnp.append(0.0, jnp.linspace(0.0, 1.0, 6))
    ys, slope = both(x)
    assert jnp.all(slope[1:, :, 0] == 0.0)
    # Displacement until rest is quadratic in the start velocity.
    assert jnp.max(jnp.abs(both(x.at[0].set(1e-6))[0] - ys)[1:]) < 1e-11
    assert jnp.allclose(jnp.diag(slope[:, 0, 1:])[1:], ys[1:, 1], atol=1e-9)


@pytest.mark.slow
def test_a_second_derivative_is_refused_and_not_wrong() -> None:
    def f(F):
        return fx.simulate(stick_slip(F_Coulomb=F), jnp.array([0.0, 1.0]))["mass"].s[-1]

    with pytest.raises(RuntimeError, match="first derivatives"):
        jax.hessian(f)(1.0)


class _Falling(fx.AbstractHybridSystem):
    """A mass point that bounces, with a plain number as its parameter."""

    g: Any

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.stack([y[1], -self.g * jnp.ones_like(t)])

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return y[:1] + 1e-14

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        return jnp.stack([0.0 * y[0], -0.5 * y[1]]), mode + 1, jnp.array(0)


def _jvp(f: Any) -> Any:
    return lambda x: jax.jvp(f, (x,), (1.0,))[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "slope"),
    [
        (fx.OnSamples(), jax.grad),
        (fx.OnSamples(), _jvp),
        (fx.Adaptive(rtol=1e-10, atol=1e-12), jax.grad),
    ],
    ids=["on samples-backward", "on samples-forward", "adaptive-backward"],
)
def test_a_plain_number_differentiated_without_jit_has_the_derivative_that_it_has_with_it(
    engine: Any, slope: Any
) -> None:
    def height(g: Any) -> Any:
        return fx.walk(
            _Falling(g),
            jnp.array([1.0, 0.0]),
            jnp.array([0]),
            jnp.linspace(0.0, 0.8, 9),
            options=engine,
        ).ys[-1, 0]

    # From 1 m it falls for sqrt(2/g): its height at 0.8 s is 1.2*sqrt(2*g) - 0.32*g - 2.
    assert float(slope(height)(9.81)) == pytest.approx(1.2 / np.sqrt(2 * 9.81) - 0.32, rel=1e-7)
