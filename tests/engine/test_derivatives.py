"""The derivatives of runs through breakaway, sticking, stops and switches: forward = reverse =
central differences.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import assert_derivatives_agree, flat, outcome, rebuilt
from machines import (
    TIGHT,
    pulsed_brake,
    stick_slip,
    stop2,
    supported_mass,
    two_blocks,
)

STRIBECK = ("F_prop", "F_Coulomb", "F_Stribeck", "fexp")

# machine, end of the run, parameters
CASES = {
    "block through stick and slip": (
        lambda: stick_slip(peak=1.05),
        2.3,
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
        [
            *[f"stop2.{p}" for p in ("m", "s", "v", "smin", *STRIBECK)],
            "spring.c",
            "spring.s_rel0",
            "wall.s0",
        ],
    ),
    "support friction by table": (
        lambda: supported_mass(peak=1.05),
        3.0,
        ["mass.m", "supportFriction.f_pos.f", "supportFriction.peak", "drive.f.amplitude"],
    ),
    "two blocks dragged": (
        two_blocks,
        3.0,
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
    [(name, name == "mass that meets its stop") for name in CASES]
    + [("block through stick and slip", True)],
)
def test_derivatives_of_states_and_event_times_equal_central_differences(
    name: str, reverse: bool
) -> None:
    build, end, paths = CASES[name]
    machine = build()
    plain = fx.simulate(machine, jnp.array([0.0, end]), TIGHT)
    count = int(plain.events.count)
    assert count >= 1
    # Also just after every kind of event that happens: breakaway, sticking, stop, switch.
    happened = np.asarray(plain.events.time[:count])
    just_after = happened[happened < end - 2e-3] + 1e-3
    ts = np.unique(np.concatenate([[0.0], just_after, [end]]))
    ts = jnp.asarray(ts[np.concatenate([[True], np.diff(ts) > 1e-9])])
    x = flat(machine, paths)
    f = lambda vector: outcome(rebuilt(machine, paths, vector), ts, TIGHT, count)  # noqa: E731
    # A parameter must not move an event past a sample: 1e-4 of it moves an event by less than the
    # 1e-3 s above.
    rounds = ("support friction by table", "brake pressed by ramps")
    assert_derivatives_agree(f, x, step=1e-4, reverse=reverse, optimised=name in rounds)


@pytest.mark.slow
def test_a_start_velocity_that_friction_stops_at_once_has_no_influence() -> None:
    start = lambda v: fx.parameters.replace(stick_slip(), {"mass.v": v})  # noqa: E731
    end = lambda v: fx.simulate(start(v), jnp.array([0.0, 0.5]), TIGHT).ys[-1]  # noqa: E731
    assert jnp.all(jax.jacfwd(end)(0.0) == 0.0)
    # Displacement until rest is quadratic in the start velocity.
    assert jnp.max(jnp.abs(end(1e-6) - end(0.0))) < 1e-11


@pytest.mark.slow
def test_the_derivative_by_the_sample_time_is_the_velocity() -> None:
    machine = stick_slip()
    positions = jax.jit(lambda ts: fx.simulate(machine, ts, TIGHT)["mass"].s)
    ts = jnp.linspace(0.0, 1.0, 6)
    slope = jax.jacfwd(positions)(ts)
    assert jnp.allclose(
        jnp.diag(slope)[1:], fx.simulate(machine, ts, TIGHT)["mass"].v[1:], atol=1e-9
    )


@pytest.mark.slow
def test_a_second_derivative_is_refused_and_not_wrong() -> None:
    def f(F):
        return fx.simulate(stick_slip(F_Coulomb=F), jnp.array([0.0, 1.0]))["mass"].s[-1]

    with pytest.raises(RuntimeError, match="first derivatives"):
        jax.hessian(f)(1.0)


@pytest.mark.slow
def test_two_machines_that_break_away_together_do_not_share_the_derivative_of_the_event():
    def late(F: jax.Array) -> jax.Array:
        def friction(body, force):
            return fx.SupportFriction(body, f_pos=fx.Coulomb(F_Coulomb=force), peak=1.1)

        machine = fx.Mechanism(
            a=fx.Mass(m=1.0),
            b=fx.Mass(m=1.0),
            on_a=friction("a", F[0]),
            on_b=friction("b", F[1]),
            pull_a=fx.Force("a", fx.Ramp(height=4.0, duration=4.0)),
            pull_b=fx.Force("b", fx.Ramp(height=4.0, duration=4.0)),
        )
        run = fx.simulate(machine, jnp.array([0.0, 2.0]), TIGHT)
        return jnp.concatenate([run.ys[-1], run.events.time[:2]])

    # Both break away at t = 1.1*F; s = integral of (t - F)/m from there on
    jacobian = jax.jit(jax.jacfwd(late))(jnp.array([1.0, 1.0]))
    # v(2) = (4 - 1.21 F^2)/2 - F (2 - 1.1 F), so dv/dF = -1.21 F - 2 + 2.2 F
    assert jnp.allclose(jacobian[2:4], jnp.diag(jnp.array([-1.01, -1.01])), atol=1e-8)
    assert jnp.allclose(jnp.sum(jacobian[4:6], axis=1), 1.1, atol=1e-8)


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

    difference = (height(9.81 + 1e-4) - height(9.81 - 1e-4)) / 2e-4
    assert float(slope(height)(9.81)) == pytest.approx(float(difference), rel=1e-7)
