"""Machines of the user's own kind with one degree of freedom: closed forms of a pendulum,
derivatives, engines, and loads that press.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import assert_derivatives_agree, flat, rebuilt
from frictax.parameters import Positive, Real, Scalar, parameter
from machines import TIGHT

F, MGL, J = 0.02, 0.48, 0.0067
SIXTEEN = np.linspace(0.0, 6.0, 16)


class Pendulum(fx.AbstractAxis):
    friction: fx.SupportFriction
    J: Scalar = parameter(Positive(), "kg.m2", default=J)
    mgl: Scalar = parameter(Positive(), "N.m", default=MGL)
    phi: Scalar = parameter(Real(), "rad", default=0.0)
    w: Scalar = parameter(Real(), "rad/s", default=0.0)

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return self.J

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return -self.mgl * jnp.sin(y[0])

    def states(self) -> tuple[str, ...]:
        return ("phi", "w")

    def start(self, t: Any) -> tuple[Any, Any]:
        return self.begin(t, jnp.stack([self.phi, self.w]))


class Geared(fx.AbstractAxis):
    """The same with friction that grows by a share of the motor's and gravity's torque."""

    friction: fx.SupportFriction
    share: Scalar = parameter(Positive(), default=0.1)

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return J

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return args["motor"] - MGL * jnp.sin(y[0])

    def pressing(self, t: Any, y: Any, args: Any) -> Any:
        return self.share * self.load(t, y, args)

    def states(self) -> tuple[str, ...]:
        return ("phi", "w")


def pendulum(phi: float, f_pos: Any = None, peak: float = 1.0, w: float = 0.0) -> Pendulum:
    law = fx.Coulomb(F_Coulomb=F) if f_pos is None else f_pos
    return Pendulum(fx.SupportFriction("joint", f_pos=law, peak=peak), phi=phi, w=w)


@jax.jit
def swing(machine: Any, ts: Any) -> Any:
    y0, mode0 = machine.start(ts[0])
    return fx.walk(machine, y0, mode0, ts, options=TIGHT)


def events(path: Any) -> tuple[np.ndarray, np.ndarray]:
    """Times and new modes of the changes of the contact's mode."""
    n = int(path.count)
    changed = np.asarray(path.before[:n, 0] != path.after[:n, 0])
    return np.asarray(path.times[:n])[changed], np.asarray(path.after[:n, 0])[changed]


def turns(machine: Pendulum) -> np.ndarray:
    """The angles at the release and at each turn of the swing, the last at rest."""
    times, _ = events(swing(machine, SIXTEEN))
    # as many as before: compiled once
    ts = jnp.concatenate([jnp.asarray(times), 6.0 + jnp.arange(16 - times.size)])
    return np.asarray(swing(machine, ts).ys)[: times.size, 0]


# -- closed forms
# --------------------------------------------------------------------------------------------------


def test_each_half_swing_loses_the_energy_that_coulomb_friction_takes_over_its_way() -> None:
    phi = turns(pendulum(1.2, peak=1.3))
    assert len(phi) > 8
    # each turn on the other side; the last stop may lie on either
    assert np.all(phi[1:] * phi[:-1] < 0)
    lost = MGL * (np.cos(phi[1:]) - np.cos(phi[:-1]))
    np.testing.assert_allclose(lost, F * np.abs(np.diff(phi)), rtol=0, atol=1e-10)


def test_a_small_amplitude_falls_by_2f_over_mgl_a_half_swing_and_each_lasts_half_a_period() -> None:
    small = 1e-3  # of everything: gravity is then linear to 1e-6
    machine = pendulum(0.3 * small, fx.Coulomb(F_Coulomb=F * small))
    times, modes = events(swing(machine, SIXTEEN))
    assert modes.tolist() == [(-1) ** (k + 1) for k in range(len(modes) - 1)] + [0]
    np.testing.assert_allclose(np.diff(times), math.pi * math.sqrt(J / MGL), rtol=1e-6)
    delta = F / MGL  # it stops after the first turn inside the band
    assert len(times) - 1 == math.ceil((0.3 - delta) / (2 * delta))
    end = float(swing(machine, SIXTEEN).ys[-1, 0]) / small
    assert abs(end) == pytest.approx(abs(0.3 - 2 * delta * (len(times) - 1)), rel=1e-5)


@pytest.mark.parametrize("side", [1, -1])
def test_at_rest_it_is_held_up_to_the_angle_at_which_gravity_is_f0_max(side: int) -> None:
    edge = math.asin(1.3 * F / MGL)
    ts = SIXTEEN
    held, let_go = (swing(pendulum(side * edge * x, peak=1.3), ts) for x in (1 - 1e-9, 1 + 1e-6))
    assert events(held)[0].size == 0
    assert float(held.ys[-1, 0]) == side * edge * (1 - 1e-9)
    assert events(let_go)[1][0] == -side
    assert abs(float(let_go.ys[-1, 0])) < edge


def test_the_dead_stop_lies_in_the_band_and_the_swing_to_the_other_side_is_its_mirror_image():
    ts, edge = SIXTEEN, math.asin(1.3 * F / MGL)
    for phi in (0.4, 0.77, 1.1):
        one, other = (swing(pendulum(sign * phi, peak=1.3), ts) for sign in (1, -1))
        assert abs(float(one.ys[-1, 0])) <= edge
        assert jnp.all(one.modes[-1] == 0)
        np.testing.assert_allclose(one.ys, -other.ys, rtol=0, atol=1e-12)


def test_a_start_with_a_speed_begins_in_its_direction_without_an_event() -> None:
    path = swing(pendulum(0.0, w=2.0), jnp.linspace(0.0, 0.1, 16))
    assert int(path.modes[0, 0]) == 1
    assert events(path)[0].size == 0


# -- what the engines and derivatives say
# ------------------------------------------------------------------------------


BENT = pendulum(0.9, fx.Table([[0, F], [1, 0.5 * F], [5, 2 * F]]), peak=1.2, w=-0.1)
PATHS = ["friction.f_pos.f", "J", "mgl", "phi"]


def outcome(vector: Any, ts: Any = (0.0, 1.0), engine: Any = TIGHT) -> Any:
    """Its end and the times of two events."""
    moved = rebuilt(BENT, PATHS, vector)
    y0, mode0 = moved.start(0.0)
    path = fx.walk(moved, y0, mode0, jnp.asarray(ts), options=engine)
    # a phase may also be cut inside a mode
    happened = jnp.argsort(jnp.where(path.fired >= 0, path.times, jnp.inf))[:2]
    return jnp.concatenate([path.ys[-1], path.times[happened]])


@pytest.mark.slow
def test_both_engines_find_the_same_states_and_event_times() -> None:
    x, every = flat(BENT, PATHS), jnp.linspace(0.0, 1.0, 201)
    on_samples = jax.jit(lambda x: outcome(x, every, fx.OnSamples(substeps=5)))
    np.testing.assert_allclose(on_samples(x), outcome(x), rtol=0, atol=2e-6)


@pytest.mark.slow
def test_derivatives_of_states_and_event_times_equal_central_differences() -> None:
    assert_derivatives_agree(outcome, flat(BENT, PATHS), step=1e-4, reverse=False)


# -- loads that press
# --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_friction_in_a_gear_grows_with_the_load_on_either_side() -> None:
    friction = fx.SupportFriction("arm", f_pos=fx.Coulomb(F_Coulomb=F), peak=1.2)
    ts = jnp.linspace(0.0, 4.0, 81)

    @jax.jit
    def run(height: Any) -> Any:
        machine = fx.Driven(Geared(friction), motor=fx.Ramp(height=height, duration=4.0))
        return fx.walk(machine, *machine.begin(0.0, [0.0, 0.0]), ts, options=TIGHT)

    up, down = run(0.1), run(-0.1)
    # load = peak*(F + share*load) at breakaway
    breakaway = 1.2 * F / (1 - 1.2 * 0.1) / 0.025
    assert events(up)[0][0] == pytest.approx(breakaway, rel=1e-10)
    assert events(up)[1][0] == 1
    assert events(down)[1][0] == -1
    np.testing.assert_allclose(up.ys, -down.ys, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_the_energy_that_a_pressed_swing_loses_is_that_of_both_its_frictions() -> None:
    """mgl*(cos b - cos a) = F*|b - a| + share*mgl*(2 - cos a - cos b), from a turn at a to one at b
    beyond the bottom.
    """
    machine = fx.Driven(Geared(fx.SupportFriction("arm", f_pos=fx.Coulomb(F_Coulomb=F))), motor=0.0)
    run = jax.jit(lambda ts: fx.walk(machine, *machine.begin(0.0, [-1.0, 0.0]), ts, options=TIGHT))
    times, modes = events(run(jnp.array([0.0, 0.5, 0.6])))
    assert modes.tolist() == [1, -1]
    b = float(run(jnp.array([0.0, times[1], 0.6])).ys[1, 0])
    lost = F * (b + 1.0) + 0.1 * MGL * (2 - math.cos(1.0) - math.cos(b))
    assert MGL * (math.cos(b) - math.cos(1.0)) == pytest.approx(lost, rel=1e-9)


@pytest.mark.slow
def test_a_stuck_axis_breaks_away_where_the_sum_of_two_drives_is_greatest_for_a_moment() -> None:
    class Pulled(fx.AbstractAxis):
        friction: fx.SupportFriction

        def inertia(self, t: Any, y: Any, args: Any) -> Any:
            return 1.0

        def load(self, t: Any, y: Any, args: Any) -> Any:
            return args["wave"] + args["ramp"]

        def states(self) -> tuple[str, ...]:
            return ("s", "v")

    t = np.linspace(0.0, 4.0, 400_001)
    load = 1.6 * np.sin(0.2 * np.pi * t) - 0.32 * t  # a hump between two extrema of the sine
    friction = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=0.9999 * np.max(load)))
    machine = fx.Driven(
        Pulled(friction),
        wave=fx.Sine(amplitude=1.6, f=0.1),
        ramp=fx.Ramp(height=-1.6, duration=5.0),
    )
    path = jax.jit(
        lambda: fx.walk(machine, *machine.begin(0.0, [0.0, 0.0]), jnp.array([0.0, 4.0]))
    )()
    times, modes = events(path)
    assert modes[:2].tolist() == [1, 0]
    assert times[0] == pytest.approx(t[np.argmax(load > 0.9999 * np.max(load))], abs=2e-5)


def test_a_friction_that_is_none_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match=(
            r"`Pendulum.friction` must be a `SupportFriction`, got a Brake. Write"
            r" fx.SupportFriction"
        ),
    ):
        Pendulum(fx.Brake("joint", fn_max=1.0, f_normalized=1.0))  # type: ignore[arg-type]


def test_options_in_the_place_of_args_are_refused() -> None:
    machine = pendulum(1.0)
    with pytest.raises(
        ValueError,
        match=r"`walk` must be given its options by name, got `Adaptive` in the place of `args`",
    ):
        fx.walk(machine, *machine.start(0.0), jnp.array([0.0, 1.0]), TIGHT)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("engine", [fx.OnSamples(), fx.Adaptive()], ids=["on samples", "adaptive"])
def test_a_number_that_a_method_reads_from_elsewhere_is_read_anew_by_each_walk(engine: Any) -> None:
    planet = {"g": 9.81}

    class Stone(fx.AbstractHybridSystem):
        def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
            return jnp.stack([y[1], jnp.asarray(-planet["g"])])

        def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
            return jnp.ones(1)

        def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
            return y, mode, jnp.array(0)

    fallen = []
    for planet["g"] in (9.81, 1.62):
        fallen.append(
            float(
                fx.walk(
                    Stone(),
                    jnp.zeros(2),
                    jnp.zeros(1, jnp.int32),
                    jnp.array([0.0, 2.0]),
                    options=engine,
                ).ys[-1, 0]
            )
        )
    assert fallen == pytest.approx([-2 * 9.81, -2 * 1.62], rel=1e-9)
