"""The derivatives of a walk on samples: forward = reverse = central differences, at all samples, by
everything.
"""

import time

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import (
    assert_derivatives_agree,
    central_differences,
    flat,
    rebuilt,
    value_and_jacobian,
)
from sampled import TS, block, controlled, dragged, stopped

LAW = ("F_prop", "F_Coulomb", "F_Stribeck", "fexp")
FEW = TS[::5]  # 41 samples
HOW = fx.OnSamples()

# machine, number of events, parameters
CASES = {
    "dragged": (
        dragged,
        17,
        [
            "first.m",
            "joint.c",
            "joint.d",
            "guide1.peak",
            "guide2.f_pos.F_Coulomb",
            "guide2.peak",
            "second.s",
        ],
    ),
    "block": (
        block,
        8,
        ["mass.m", "mass.s", "mass.v", *[f"friction.f_pos.{p}" for p in LAW], "friction.peak"],
    ),
    "stopped": (stopped, 10, [*[f"mass.{p}" for p in ("m", "s", "v", "smin", "smax", *LAW)]]),
    "controlled": (
        controlled,
        11,
        [
            "drive.kp",
            "drive.k",
            "friction.f_neg.F_Coulomb",
            "friction.peak",
            "guide.f_nominal",
            "guide.slope",
        ],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_derivatives_at_all_samples_and_of_event_times_equal_central_differences(name: str) -> None:
    build, count, paths = CASES[name]
    machine = build()

    def outputs(vector: jax.Array, engine: fx.OnSamples = HOW) -> jax.Array:
        run = fx.simulate(rebuilt(machine, paths, vector), FEW, engine)
        return jnp.concatenate([jnp.ravel(run.ys), run.events.time[:count]])

    x = flat(machine, paths)
    forward = assert_derivatives_agree(outputs, x, step=1e-5, reverse=name == "block")
    if name != "block":
        return
    alone = fx.OnSamples(adjoint=diffrax.ForwardMode())
    value, jacobian = value_and_jacobian(lambda vector: outputs(vector, alone))(x)
    assert jnp.max(jnp.abs(value - outputs(x))) <= 1e-13
    assert np.max(np.abs(jacobian - forward)) <= 1e-12


@pytest.mark.slow
def test_derivatives_by_the_values_of_the_drive_equal_central_differences() -> None:
    machine = block()

    def states(values):
        return fx.simulate(fx.parameters.replace(machine, {"drive.f.values": values}), FEW, HOW).ys

    values = machine["drive"].f.values
    forward = np.asarray(jax.jit(jax.jacfwd(states))(values))
    # Samples that the block is stuck through have no influence: the scale is the largest of all.
    scale = np.max(np.abs(forward))
    differences = central_differences(jax.jit(states), values, 1e-5)
    assert np.max(np.abs(forward - differences)) <= 1e-6 * scale
    assert np.max(np.abs(forward - np.asarray(jax.jit(jax.jacrev(states))(values)))) <= 1e-9 * scale


class _Rotor(fx.AbstractHybridSystem):
    def flow(self, t, y, mode, args):
        return args["motor"][None] - jnp.sin(y)

    def guard(self, t, y, mode, args):
        return jnp.ones(1)

    def jump(self, t, y, mode, fired, args):
        return y, mode, jnp.array(0)


@pytest.mark.slow
def test_the_time_of_reverse_mode_is_proportional_to_the_length_of_a_table() -> None:
    seconds = []
    for n in (10_000, 40_000):
        t = jnp.linspace(0.0, 10.0, n)
        u = jnp.sin(t)

        def end(u: jax.Array, t: jax.Array = t) -> jax.Array:
            rotor = fx.Driven(_Rotor(), motor=fx.Sampled(t, u))
            begun = rotor.with_pieces(jnp.zeros(1), jnp.zeros(1, int), t[0])
            return fx.walk(rotor, *begun, t, options=HOW).ys[-1, 0]

        back, taken = jax.jit(jax.grad(end)), []
        for _ in range(6):  # the first compiles
            began = time.perf_counter()
            jax.block_until_ready(back(u))
            taken.append(time.perf_counter() - began)
        seconds.append(min(taken))
    # If each step wrote a whole table, the ratio would be about 14.
    assert seconds[1] < 8 * seconds[0]
    along = jnp.cos(3 * t)
    d_end = jax.jvp(end, (u,), (along,))[1]
    assert float(back(u) @ along) == pytest.approx(float(d_end), rel=1e-9)


@pytest.mark.slow
def test_the_derivative_by_a_switching_time_is_right_on_a_sample_and_between_two() -> None:
    ts = jnp.linspace(0.0, 1.0, 101)

    def end(startTime: jax.Array) -> jax.Array:
        friction = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0))
        drive = fx.Force("mass", fx.Step(height=5.0, startTime=startTime))
        return fx.simulate(
            fx.Mechanism(mass=fx.Mass(m=1.0), friction=friction, drive=drive), ts, HOW
        ).ys[-1]

    forward, reverse = jax.jit(jax.jacfwd(end)), jax.jit(jax.jacrev(end))
    for start in (0.5, 0.503):
        expected = np.array([-3.0 * (1 - start), -3.0])  # s = 3 (1 - start)^2/2, v = 3 (1 - start)
        assert np.allclose(forward(start), expected, atol=1e-12)
        assert np.allclose(reverse(start), expected, atol=1e-12)


def _held_and_rising(F: jax.Array) -> jax.Array:
    """A jump of a held drive breaks the block away while another drive rises."""
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=F)),
        held=fx.Force("mass", fx.Sampled([0.0, 0.5], [0.0, 5.0], hold=True)),
        ramp=fx.Force("mass", fx.Ramp(height=1.0, duration=1.0)),
    )
    return fx.simulate(machine, jnp.linspace(0.0, 1.0, 101), HOW).ys[-1]


@pytest.mark.slow
def test_a_breakaway_by_a_jump_of_a_held_drive_does_not_move_with_the_friction() -> None:
    # dv/dF = -0.5 and ds/dF = -0.5^2/2, for the 0.5 s since the jump.
    for slope in (jax.jacfwd(_held_and_rising), jax.jacrev(_held_and_rising)):
        assert np.allclose(jax.jit(slope)(2.0), [-0.125, -0.5], atol=1e-12)


@pytest.mark.slow
def test_a_derivative_by_the_times_of_a_held_drive_is_refused_and_those_by_all_else_are_not():
    last = lambda machine: fx.simulate(machine, FEW, HOW).ys[-1, 0]  # noqa: E731
    with pytest.raises(RuntimeError, match="hold=True.*Adaptive"):
        eqx.filter_grad(last)(block(hold=True))
    by_values = jax.grad(
        lambda v: last(fx.parameters.replace(block(hold=True), {"drive.f.values": v}))
    )(block()["drive"].f.values)
    assert jnp.all(jnp.isfinite(by_values))
    whole = eqx.filter_grad(last)(block())
    assert jnp.max(jnp.abs(whole["drive"].f.times)) > 0


@pytest.mark.slow
def test_the_derivative_by_the_sample_times_is_the_velocity() -> None:
    ys, slope = value_and_jacobian(lambda ts: fx.simulate(block(), ts, HOW).ys)(FEW)
    assert jnp.allclose(jnp.diag(slope[:, 0])[1:], ys[1:, 1], atol=1e-12)


def test_a_second_derivative_is_refused_and_not_wrong() -> None:
    with pytest.raises(RuntimeError, match="first derivatives"):
        jax.hessian(
            lambda m: fx.simulate(fx.parameters.replace(block(), {"mass.m": m}), FEW, HOW).ys[-1, 0]
        )(1.0)
