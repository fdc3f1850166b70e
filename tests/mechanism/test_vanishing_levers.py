"""Contacts whose lever passes through zero, as at the dead centre of a crank: closed forms from
energy, and random machines against an integration of their own.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

import frictax as fx
from checks import value_and_jacobian
from machines import TIGHT

ENGINES = pytest.mark.parametrize(
    "engine", [TIGHT, fx.OnSamples(substeps=20)], ids=["adaptive", "on_samples"]
)


def rubbing(F: Any, peak: float = 1.0) -> fx.SupportFriction:
    return fx.SupportFriction("slider", f_pos=fx.Coulomb(F_Coulomb=F), peak=peak)


class Yoke(fx.AbstractLinkage):
    """A Scotch yoke of 1 kg.m2, whose slider moves with cos(phi)*w and rubs with F."""

    frictions: tuple[fx.SupportFriction, ...]

    def mass_matrix(self, q: Any) -> Any:
        return jnp.eye(1)

    def force(self, t: Any, q: Any, u: Any, args: Any) -> Any:
        return jnp.zeros(1) if args is None else args["motor"][None]

    def jacobian(self, q: Any) -> Any:
        return jnp.cos(q)[None]

    def states(self) -> tuple[str, ...]:
        return ("phi", "w")


class Rocker(Yoke):
    """The same with the lever sin(phi), which is exactly 0 at phi = 0, and a second slider."""

    def jacobian(self, q: Any) -> Any:
        return jnp.stack([jnp.sin(q), 0.5 * jnp.sin(2 * q)])


def way(phi: float) -> float:
    """What the yoke's slider covers until the crank is at `phi`, the integral of |cos|."""
    turns = math.floor(phi / math.pi + 0.5)
    return 2 * turns + math.sin(phi - turns * math.pi)


def by_energy(F: float, w0: float, phi: float) -> tuple[float, float, float, float]:
    """The time at which the yoke is at `phi`, its speed there, and the derivatives of `phi` by F
    and w0.
    """

    def speed(phi: float) -> float:
        return math.sqrt(w0**2 - 2 * F * way(phi))

    def over(f: Any) -> float:
        centres = [c for c in (math.pi / 2, 3 * math.pi / 2) if c < phi]
        return quad(f, 0.0, phi, points=centres, epsabs=1e-11)[0]

    return (
        over(lambda phi: 1 / speed(phi)),
        speed(phi),
        -speed(phi) * over(lambda phi: way(phi) / speed(phi) ** 3),
        speed(phi) * over(lambda phi: w0 / speed(phi) ** 3),
    )


# -- the dead centre lets the machine pass


def test_a_crank_passes_its_dead_centre_however_great_its_friction_is() -> None:
    @jax.jit
    def end(F: Any) -> Any:
        yoke = Yoke((rubbing(F),))
        y0, mode0 = yoke.begin(0.0, [0.0, 2.0])
        return fx.walk(yoke, y0, mode0, jnp.array([0.0, 3.0])).ys[-1]

    for F in (1e-9, 0.1, 0.5):
        phi, w = map(float, end(F))
        assert phi > math.pi / 2
        assert by_energy(F, 2.0, phi)[:2] == pytest.approx((3.0, w), abs=1e-6)


@pytest.mark.slow
@ENGINES
def test_a_crank_passes_its_dead_centres_with_the_speed_and_the_derivatives_that_energy_tells(
    engine: Any,
) -> None:
    """w**2 = w0**2 - 2 F S(phi), with S the way of the slider, and t is the integral of 1/w.
    Reverse mode is forward mode, also by the angle at the start.
    """

    def end(x: Any) -> Any:
        yoke = Yoke((rubbing(x[0]),))
        start = yoke.begin(0.0, x[1:])
        return fx.walk(yoke, *start, jnp.linspace(0.0, 3.0, 61), options=engine).ys[-1]

    outcome, x = value_and_jacobian(end), jnp.array([0.5, 0.1, 2.0])
    reverse = jax.jit(jax.jacrev(end))(x)
    np.testing.assert_allclose(reverse, outcome(x)[1], rtol=1e-9, atol=1e-10)
    accuracy = 1e-8 if engine is TIGHT else 2e-5
    for F, w0 in ((0.5, 2.0), (1e-9, 2.0), (0.3, 1.3)):
        (phi, w), slopes = outcome(jnp.array([F, 0.0, w0]))
        time, speed, by_friction, by_speed = by_energy(F, w0, float(phi))
        assert time == pytest.approx(3.0, abs=accuracy)
        assert float(w) == pytest.approx(speed, abs=accuracy)
        expected, margin = [by_friction, by_speed], 1e-6 + accuracy
        np.testing.assert_allclose(slopes[0, ::2], expected, rtol=0, atol=margin)


@pytest.mark.slow
@ENGINES
def test_a_rocker_at_its_dead_centre_stays_without_a_load_and_leaves_under_the_least(
    engine: Any,
) -> None:
    """From phi = 0, where both levers are 0: w**2 = 2 (L phi - F (1 - cos(phi)) - G sin(phi)**2/2)
    under a load L from 1 s on.
    """

    @jax.jit
    def run(load: Any) -> Any:
        rocker = Rocker((rubbing(3.0), rubbing(2.0)))
        machine = fx.Driven(rocker, motor=fx.Step(height=load, startTime=1.0))
        ts = jnp.linspace(0.0, 3.0, 61)
        return fx.walk(machine, *rocker.begin(0.0, [0.0, 0.0]), ts, options=engine)

    still = run(0.0)
    assert still.result == fx.Result.successful
    assert np.all(still.ys == 0.0)
    for load in (1.5, -1.5):
        path = run(load)
        assert path.result == fx.Result.successful
        assert np.all(path.ys[:21] == 0.0)
        # The friction grows with the lever until it holds: 3 sin(phi) + sin(2 phi) > 1.5.
        phi, w = map(float, path.ys[25] * np.sign(load))
        taken = 1.5 * phi - 3.0 * (1 - np.cos(phi)) - np.sin(phi) ** 2
        assert w**2 == pytest.approx(2 * taken, abs=1e-5)
        phi, w = map(float, path.ys[-1] * np.sign(load))
        # It has come to rest where all of the work is spent.
        assert abs(w) < 1e-12
        assert 1.5 * phi == pytest.approx(3.0 * (1 - np.cos(phi)) + np.sin(phi) ** 2, abs=1e-5)


@pytest.mark.slow
@ENGINES
def test_a_crank_that_starts_in_its_dead_centre_passes_on(engine: Any) -> None:
    @jax.jit
    def run(w: Any) -> Any:
        rocker = Rocker((rubbing(0.2), rubbing(0.4)))
        start = rocker.begin(0.0, jnp.stack([0.0, w]))
        return fx.walk(rocker, *start, jnp.linspace(0.0, 1.0, 41), options=engine)

    for w0 in (2.0, -2.0):
        path = run(w0)
        assert path.result == fx.Result.successful
        phi, w = map(float, np.sign(w0) * path.ys[20])  # before pi/2
        way = 0.2 * (1 - np.cos(phi)) + 0.4 * np.sin(phi) ** 2 / 2
        assert w**2 == pytest.approx(4.0 - 2 * way, abs=1e-6)


# -- two joints


class Press(fx.AbstractLinkage):
    """A double pendulum of 1 kg and 1 m each by absolute angles, whose tip rubs along x and y and
    whose first joint rubs, with the work of friction as a further state.
    """

    frictions: tuple[fx.SupportFriction, ...]

    def mass_matrix(self, q: Any) -> Any:
        c = jnp.cos(q[0] - q[1])
        return jnp.array([[2.0, c], [c, 1.0]])

    def potential(self, q: Any) -> Any:
        return -9.81 * (2 * jnp.cos(q[0]) + jnp.cos(q[1]))

    def force(self, t: Any, q: Any, u: Any, args: Any) -> Any:
        return -jax.grad(self.potential)(q) - self.velocity_terms(q, u)

    def jacobian(self, q: Any) -> Any:
        return jnp.stack([jnp.cos(q), jnp.sin(q), jnp.array([1.0, 0.0])])

    def states(self) -> tuple[str, ...]:
        return ("phi1", "phi2", "w1", "w2", "loss")

    @property
    def degrees_of_freedom(self) -> int:
        return 2

    def others(self, t: Any, y: Any, args: Any) -> Any:
        return jnp.zeros(1)

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        forces = self.friction_forces(t, y, mode, args)
        return super().flow(t, y, mode, args).at[4].set(forces @ (self.jacobian(y[:2]) @ y[2:4]))

    def energy(self, y: Any) -> Any:
        return 0.5 * y[2:4] @ self.mass_matrix(y[:2]) @ y[2:4] + self.potential(y[:2]) + y[4]


@pytest.mark.slow
def test_what_the_tip_of_two_joints_rubs_is_what_they_lose_through_all_vanishing_levers() -> None:
    press = Press((rubbing(0.3), rubbing(0.2), rubbing(0.5)))

    @jax.jit
    def run(start: Any) -> Any:
        begun = press.begin(0.0, start)
        return fx.walk(press, *begun, jnp.linspace(0.0, 6.0, 121), options=fx.Adaptive(rtol=1e-10))

    for start in ([2.0, -2.5, 0.0, 0.0, 0.0], [0.0, 0.0, 3.0, -4.0, 0.0]):
        path = run(jnp.array(start))
        assert path.result == fx.Result.successful
        energy = jax.vmap(press.energy)(path.ys)
        assert jnp.max(jnp.abs(energy - energy[0])) < 1e-6
        assert int(path.count) > 10


# -- random machines


class Levers(fx.AbstractLinkage):
    """A shaft with three sliders on levers amplitude*cos(phi + phase), gravity and a motor."""

    frictions: tuple[fx.SupportFriction, ...]
    amplitude: Any
    phase: Any
    gravity: Any
    motor: Any

    def mass_matrix(self, q: Any) -> Any:
        return jnp.array([[1.0 + 0.3 * jnp.cos(q[0])]])

    def force(self, t: Any, q: Any, u: Any, args: Any) -> Any:
        load = self.motor * jnp.sin(2.0 * t) - self.gravity * jnp.sin(q[0])
        return load[None] - self.velocity_terms(q, u)

    def jacobian(self, q: Any) -> Any:
        return (self.amplitude * jnp.cos(q[0] + self.phase))[:, None]

    def states(self) -> tuple[str, ...]:
        return ("phi", "w")


def integrated(draw: Any, ts: np.ndarray) -> np.ndarray:
    """The states by one friction sum(F*|lever|) on the shaft, from event to event."""
    F, amplitude, phase, gravity, motor, start = draw
    rubs = lambda phi: float(np.sum(F * np.abs(amplitude * np.cos(phi + phase))))  # noqa: E731
    load = lambda t, phi: motor * math.sin(2.0 * t) - gravity * math.sin(phi)  # noqa: E731

    def leaves(t: float, phi: float) -> float:
        return float(np.sign(load(t, phi))) if abs(load(t, phi)) > rubs(phi) else 0.0

    ys, t, y = np.empty((ts.size, 2)), 0.0, np.array(start)
    mode = float(np.sign(y[1])) or leaves(t, y[0])
    for _ in range(100):

        def rate(t: float, y: Any, m: float = mode) -> list[float]:
            if not m:
                return [0.0, 0.0]
            a = load(t, y[0]) - m * rubs(y[0]) + 0.15 * math.sin(y[0]) * y[1] ** 2
            return [y[1], a / (1.0 + 0.3 * math.cos(y[0]))]

        def margin(t: float, y: Any, m: float = mode) -> float:
            return m * y[1] + 1e-14 if m else rubs(y[0]) - abs(load(t, y[0]))

        margin.terminal, margin.direction = True, -1  # type: ignore[attr-defined]
        found = solve_ivp(
            rate,
            (t, ts[-1]),
            y,
            "DOP853",
            events=margin,
            rtol=1e-10,
            atol=1e-12,
            dense_output=True,
            max_step=0.02,
        )
        inside = (ts >= t) & (ts <= found.t[-1])
        ys[inside] = found.sol(ts[inside]).T
        if found.status != 1:
            return ys
        t, y = found.t[-1], found.y[:, -1]
        mode = leaves(t, y[0]) if mode else float(np.sign(load(t, y[0])))
        y[1] = 0.0
    raise AssertionError("more than 100 events")


def drawn(rng: np.random.Generator) -> Any:
    F = rng.uniform(0.05, 0.6, 3) * 10 ** rng.uniform(-2.0, 0.3)
    amplitude, phase = rng.uniform(0.3, 1.5, 3), rng.uniform(-3.0, 3.0, 3)
    if rng.random() < 0.3:
        phase[1] = phase[0]  # both vanish at once
    gravity, motor = rng.choice([0.0, 1.0, 3.0]) * rng.random(), rng.choice([0.0, 2.0])
    phi = math.pi / 2 - phase[0] if rng.random() < 0.3 else rng.uniform(-3.0, 3.0)
    return F, amplitude, phase, gravity, motor, (phi, rng.choice([0.0, 2.0 * rng.normal()]))


@functools.cache
def integrated_draws() -> tuple[np.ndarray, list[tuple[Any, np.ndarray]]]:
    ts, rng = np.linspace(0.0, 6.0, 601), np.random.default_rng(41)
    return ts, [(draw, integrated(draw, ts)) for draw in (drawn(rng) for _ in range(25))]


@pytest.mark.slow
@ENGINES
def test_random_levers_move_and_stop_as_one_friction_on_the_shaft_does(engine: Any) -> None:
    ts, draws = integrated_draws()

    @jax.jit
    def run(F: Any, amplitude: Any, phase: Any, gravity: Any, motor: Any, start: Any) -> Any:
        machine = Levers(tuple(map(rubbing, F)), amplitude, phase, gravity, motor)
        begun = machine.begin(0.0, jnp.stack(start))
        path = fx.walk(machine, *begun, jnp.asarray(ts), options=engine)
        return path.ys, path.result == fx.Result.successful

    for draw, expected in draws:
        ys, ended = run(*draw)
        assert ended
        np.testing.assert_allclose(ys, expected, rtol=0, atol=2e-5)
