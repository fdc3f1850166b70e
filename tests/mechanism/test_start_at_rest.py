"""Derivatives of machines of the user's own kind that start at rest, by closed forms: one that a
load releases keeps that by its start velocity, one that friction holds has none.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.parameters import Real, Scalar, parameter
from machines import TIGHT

ENGINES = pytest.mark.parametrize("engine", [TIGHT, fx.OnSamples()], ids=["adaptive", "on_samples"])
TS = jnp.linspace(0.0, 2.0, 11)


def rubbing(F: float, peak: float = 1.2) -> fx.SupportFriction:
    return fx.SupportFriction("joint", f_pos=fx.Coulomb(F_Coulomb=F), peak=peak)


class Cart(fx.AbstractAxis):
    """1 kg under the load `push` [N] and a motor."""

    friction: fx.SupportFriction
    push: Scalar = parameter(Real(), "N", default=0.0)
    s: Scalar = parameter(Real(), "m", default=0.0)
    v: Scalar = parameter(Real(), "m/s", default=0.0)

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return 1.0

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return self.push + (0.0 if args is None else args["motor"])

    def states(self) -> tuple[str, ...]:
        return ("s", "v")

    def start(self, t: Any) -> tuple[Any, Any]:
        return self.begin(t, jnp.stack([self.s, self.v]))


class Geared(Cart):
    """The same with friction by a load that is negative: its sign is found at the start."""

    def pressing(self, t: Any, y: Any, args: Any) -> Any:
        return 0.1 * self.load(t, y, args) - 0.001


class Pair(fx.AbstractLinkage):
    """Two joints, coupled by their masses, under constant loads."""

    frictions: tuple[fx.SupportFriction, ...]
    push: Any

    def mass_matrix(self, q: Any) -> Any:
        return jnp.array([[3.0, 1.0], [1.0, 2.0]])

    def force(self, t: Any, q: Any, u: Any, args: Any) -> Any:
        return self.push

    def states(self) -> tuple[str, ...]:
        return ("q1", "q2", "u1", "u2")


class Sledges(Pair):
    """The same with three contacts: the second joint twice, and the difference of both."""

    def jacobian(self, q: Any) -> Any:
        return jnp.array([[0.0, 1.0], [0.0, 1.0], [1.0, -1.0]])


def slopes(machine: Any, y0: Any, engine: Any) -> list[np.ndarray]:
    """The derivatives of the state at 2 s by that at the start."""

    def end(y: Any) -> Any:
        y0, mode0 = machine.begin(0.0, y)
        return fx.walk(machine, y0, mode0, TS, options=engine).ys[-1]

    return [np.asarray(jax.jit(mode(end))(jnp.array(y0))) for mode in (jax.jacfwd, jax.jacrev)]


@pytest.mark.slow_after(1)
@ENGINES
def test_an_axis_that_a_load_releases_keeps_the_derivative_by_its_start_velocity(
    engine: Any,
) -> None:
    """s = s0 + v0 t + (push - F) t**2/2"""
    for found in slopes(Cart(rubbing(1.0), push=-2.0), [0.3, 0.0], engine):
        np.testing.assert_allclose(found, [[1.0, 2.0], [0.0, 1.0]], atol=1e-12)


@pytest.mark.slow_after(1)
@ENGINES
def test_an_axis_that_friction_holds_at_the_start_has_no_derivative_by_its_start_velocity(
    engine: Any,
) -> None:
    for found in slopes(Cart(rubbing(1.0), push=-1.1), [0.3, 0.0], engine):
        np.testing.assert_allclose(found, [[1.0, 0.0], [0.0, 0.0]], atol=1e-12)


@pytest.mark.slow
@ENGINES
def test_the_same_holds_of_an_axis_held_until_a_drive_moves_it_and_of_one_with_a_load_that_presses(
    engine: Any,
) -> None:
    held = fx.Driven(Cart(rubbing(1.0)), motor=fx.Step(height=2.0, startTime=1.0))
    driven = fx.Driven(Cart(rubbing(1.0)), motor=fx.Step(height=1.0, offset=2.0, startTime=1.0))
    pressed, geared = Geared(rubbing(1.0), push=-2.0), Geared(rubbing(1.0), push=-1.1)
    released, stays = [[1.0, 2.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]]
    for machine, exact in ((held, stays), (driven, released), (pressed, released), (geared, stays)):
        for found in slopes(machine, [0.3, 0.0], engine):
            np.testing.assert_allclose(found, exact, atol=1e-12)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("engine", [TIGHT, fx.OnSamples()], ids=["adaptive", "on_samples"])
@pytest.mark.parametrize(
    ("kind", "frictions", "push", "free", "held"),
    [
        (Pair, (1.0, 1.0), (-4.0, -0.5), True, True),  # the second joint holds
        (Pair, (1.0, 1.0), (4.0, 5.0), True, False),
        (Pair, (1.0, 1.0), (0.5, 0.5), False, True),
        (Sledges, (0.4, 0.3, 0.5), (-4.0, -0.5), True, True),
        (Sledges, (0.4, 0.3, 0.5), (1.0, 6.0), True, False),
        (Sledges, (0.4, 0.3, 0.5), (0.2, 0.2), False, True),
    ],
)
def test_two_joints_keep_the_derivatives_of_those_that_leave_and_lose_those_of_the_held(
    engine: Any, kind: Any, frictions: Any, push: Any, free: bool, held: bool
) -> None:
    """What a held joint had of a velocity, its friction takes at once by an impulse."""
    machine = kind(tuple(map(rubbing, frictions)), jnp.array(push))
    by_first, by_second = np.zeros(2), np.zeros(2)
    if free and held:  # of M = [[3, 1], [1, 2]] the impulse on 2 leaves M12/M11 of it to 1
        by_first, by_second = np.array([1.0, 0.0]), np.array([1 / 3, 0.0])
    elif free:
        by_first, by_second = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    u = np.stack([by_first, by_second], axis=1)
    exact = np.block([[np.eye(2), 2.0 * u], [np.zeros((2, 2)), u]])
    for found in slopes(machine, [0.1, 0.2, 0.0, 0.0], engine):
        np.testing.assert_allclose(found, exact, atol=1e-11)


@pytest.mark.slow
def test_a_fit_of_a_machine_released_from_rest_says_how_well_it_knows_the_start_velocity() -> None:
    t = np.asarray(TS)
    record = fx.Record(t, {}, {"s": 0.3 - 0.5 * t**2}, name="released")
    found = fx.fit(Cart(rubbing(1.0), push=-2.0), record, free=["s", "v"])
    assert float(found.values["v"]) == pytest.approx(0.0, abs=1e-9)
    assert "no effect" not in str(found)
