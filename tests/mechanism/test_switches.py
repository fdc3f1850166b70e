"""Drives that switch at one time: the load after all switches decides which contacts slide."""

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.engine.system import DEADLINE
from frictax.mechanism import MechanicalSystem
from frictax.signals import AbstractSignal

FRICTION = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=5.0), peak=1.2)
TS = np.linspace(0.0, 3.0, 31)
# A stuck contact holds 6 N. The first loads add up to 5.5 N, the others to 7 N and -7 N.
HELD, FORWARD, BACKWARD = (10.0, -4.5, 0.0), (10.0, -2.0, -1.0), (-10.0, 4.0, -1.0)
ORDERS = jnp.array(
    [order for h in (HELD, FORWARD, BACKWARD) for order in itertools.permutations(h)]
)
EXPECTED = np.repeat([0, 1, -1], 6)


class Cart(fx.AbstractAxis):
    """1 kg that the sum of three drives moves."""

    friction: fx.SupportFriction

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return 1.0

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return args["a"] + args["b"] + args["c"]

    def states(self) -> tuple[str, ...]:
        return ("s", "v")


def drives(heights: Any, times: Any = (1.0, 1.0)) -> list[AbstractSignal]:
    """Three drives that switch at 1 s. The second one has a segment of length 0 there."""
    wave = fx.Trapezoid(amplitude=heights[1], width=9.0, period=10.0, startTime=times[1])
    values = jnp.where(jnp.asarray(TS) > 0.99, heights[2], 0.0)
    held = fx.Sampled(TS, values, hold=True)
    return [fx.Step(height=heights[0], startTime=times[0]), wave, held]


def axis(*signals: Any) -> fx.Driven:
    return fx.Driven(Cart(FRICTION), **dict(zip("abc", signals, strict=True)))


def mechanism(*signals: Any) -> fx.Mechanism:
    forces = {f"drive{i}": fx.Force("mass", signal) for i, signal in enumerate(signals)}
    return fx.Mechanism(mass=fx.Mass(m=1.0), friction=FRICTION, **forces)


def of_axis(heights: Any, engine: Any, times: Any = (1.0, 1.0), v: Any = 0.0) -> Any:
    machine = axis(*drives(heights, times))
    begun = machine.begin(0.0, jnp.stack([0.0, jnp.asarray(v)]))
    return fx.walk(machine, *begun, TS, options=engine).ys[-1]


def of_mechanism(heights: Any, engine: Any, times: Any = (1.0, 1.0), v: Any = 0.0) -> Any:
    machine = mechanism(*drives(heights, times))
    machine = fx.parameters.replace(machine, {"mass.v": v})
    return fx.simulate(machine, TS, engine).ys[-1]


def mode_after_switch(system: Any, start: Any) -> Any:
    """The mode of the contact after the event at 1 s, in which all drives switch."""
    y, mode = start
    _, mode, status = system.jump(jnp.array(1.0), y, mode, jnp.array(DEADLINE), None)
    # No switch remains at 1 s.
    return mode[0], status, system.deadline(mode, None) > 1.05


def test_the_net_force_decides_in_any_order_of_the_drives() -> None:
    def of_axis(heights: Any) -> Any:
        machine = axis(*drives(heights))
        return mode_after_switch(machine, machine.begin(0.95, jnp.zeros(2)))

    def of_mechanism(heights: Any) -> Any:
        system = MechanicalSystem(mechanism(*drives(heights)))
        return mode_after_switch(system, system.start(jnp.array(0.95)))

    for after in (of_axis, of_mechanism):
        modes, status, done = jax.jit(jax.vmap(after))(ORDERS)
        assert modes.tolist() == EXPECTED.tolist()
        assert not np.any(status)
        assert np.all(done)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [fx.Adaptive(), fx.OnSamples()], ids=["adaptive", "on samples"])
@pytest.mark.parametrize("end", [of_axis, of_mechanism])
def test_runs_end_at_the_closed_form_in_any_order(end: Callable[..., Any], engine: Any) -> None:
    ends = jax.jit(jax.vmap(lambda heights: end(heights, engine)))(ORDERS)
    expected = 0.5 * 2.0 * 2.0**2 * EXPECTED  # 7 N against 5 N of friction for 2 s
    np.testing.assert_allclose(ends[:, 0], expected, rtol=0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("end", [of_axis, of_mechanism])
def test_each_of_two_equal_switching_times_has_its_own_derivative_while_it_slides(
    end: Callable[..., Any],
) -> None:
    heights = (3.0, -2.0, 1.0)
    for engine in (fx.Adaptive(), fx.OnSamples()):
        # A later switch by d takes height*d from the speed, and height*d*2 s from the position.
        expected = [[-6.0, 4.0], [-3.0, 2.0]]
        of = lambda times, e=engine: end(heights, e, times, 20.0)  # noqa: E731
        for mode in (jax.jacfwd, jax.jacrev) if end is of_mechanism else (jax.jacfwd,):
            found = jax.jit(mode(of))(jnp.ones(2))
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


@pytest.mark.slow
def test_a_breakaway_by_two_switches_depends_on_both_times() -> None:
    # 10 N - 3 N release the cart. Alone, the first drive releases it too, and the second does not.
    # So there is no derivative by one of the times, but there is one by both.
    for heights in ((10.0, -3.0, 0.0), (-3.0, 10.0, 0.0)):
        of = lambda times, h=heights: of_axis(h, fx.Adaptive(), times)  # noqa: E731
        found = jax.jit(jax.jacfwd(of))(jnp.ones(2))
        shares = np.abs(heights[:2]) / 13.0
        np.testing.assert_allclose(found, np.outer([-4.0, -2.0], shares), rtol=0, atol=1e-9)


def test_a_ramp_of_length_0_acts_half_of_its_length_later() -> None:
    def speed(duration: Any) -> Any:
        ramp = fx.Ramp(height=3.0, duration=duration, startTime=1.0)
        machine = axis(ramp, 0.0, 0.0)
        y, mode = machine.begin(0.0, jnp.array([0.0, 20.0]))
        t = machine.deadline(mode, None)
        y, mode, _ = machine.jump(t, y, mode, jnp.array(DEADLINE), None)
        return y[1] + machine.flow(t, y, mode, None)[1] * (3.0 - t)

    assert float(jax.jit(jax.grad(speed))(0.0)) == pytest.approx(-1.5)
