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

ENGINES = pytest.mark.parametrize("engine", [fx.OnSamples(), TIGHT], ids=["on_samples", "adaptive"])
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


def slopes(engine: Any, mode: Any) -> Any:
    """A function of machine and start: the derivatives of the state at 2 s by the start.

    One program serves all machines of a structure.
    """

    def end(y: Any, machine: Any) -> Any:
        y0, mode0 = machine.begin(0.0, y)
        return fx.walk(machine, y0, mode0, TS, options=engine).ys[-1]

    by_start = jax.jit(mode(end))
    return lambda machine, y0: np.asarray(by_start(jnp.array(y0), machine))


@pytest.mark.slow
@ENGINES
def test_an_axis_keeps_the_derivative_by_its_start_velocity_if_a_load_releases_it_and_only_then(
    engine: Any,
) -> None:
    """s = s0 + v0 t + (push - F) t**2/2"""
    found = slopes(engine, jax.jacrev)
    for push in (-2.0, 1.3):
        released = found(Cart(rubbing(1.0), push=push), [0.3, 0.0])
        np.testing.assert_allclose(released, [[1.0, 2.0], [0.0, 1.0]], atol=1e-12)
    for push in (-1.1, 0.0, 1.1):
        held = found(Cart(rubbing(1.0), push=push), [0.3, 0.0])
        np.testing.assert_allclose(held, [[1.0, 0.0], [0.0, 0.0]], atol=1e-12)


@pytest.mark.slow
@ENGINES
def test_the_same_holds_of_an_axis_with_a_load_that_presses_also_if_a_drive_moves_it_later(
    engine: Any,
) -> None:
    found = slopes(engine, jax.jacfwd)
    released, stays = [[1.0, 2.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]]
    for height, offset, push, exact in (
        (2.0, 0.0, 0.0, stays),  # The drive moves it from 1 s on.
        (1.0, 2.0, 0.0, released),
        (0.0, 0.0, -2.0, released),
        (0.0, 0.0, -1.1, stays),
    ):
        motor = fx.Step(height=height, offset=offset, startTime=1.0)
        machine = fx.Driven(Geared(rubbing(1.0), push=push), motor=motor)
        np.testing.assert_allclose(found(machine, [0.3, 0.0]), exact, atol=1e-12)


@pytest.mark.slow
@ENGINES
@pytest.mark.parametrize(
    ("kind", "mode", "frictions", "pushes"),
    [
        (Pair, jax.jacrev, (1.0, 1.0), ((-4.0, -0.5), (4.0, 5.0), (0.5, 0.5))),
        (Sledges, jax.jacfwd, (0.4, 0.3, 0.5), ((-4.0, -0.5), (1.0, 6.0), (0.2, 0.2))),
    ],
    ids=["reverse-Pair", "forward-Sledges"],
)
def test_two_joints_keep_the_derivatives_of_those_that_leave_and_lose_those_of_the_held(
    engine: Any, kind: Any, mode: Any, frictions: Any, pushes: Any
) -> None:
    """The second joint is held, both leave, both are held. What a held joint has of a velocity, its
    friction takes at once by an impulse.
    """
    found = slopes(engine, mode)
    # Of M = [[3, 1], [1, 2]] the impulse on the second joint leaves M12/M11 to the first.
    kept = np.array([[1.0, 1 / 3], [0.0, 0.0]]), np.eye(2), np.zeros((2, 2))
    for push, u in zip(pushes, kept, strict=True):
        machine = kind(tuple(map(rubbing, frictions)), jnp.array(push))
        exact = np.block([[np.eye(2), 2.0 * u], [np.zeros((2, 2)), u]])
        np.testing.assert_allclose(found(machine, [0.1, 0.2, 0.0, 0.0]), exact, atol=1e-11)


@pytest.mark.slow
def test_a_fit_of_a_machine_released_from_rest_says_how_well_it_knows_the_start_velocity() -> None:
    t = np.asarray(TS)
    record = fx.Record(t, {}, {"s": 0.3 - 0.5 * t**2}, name="released")
    found = fx.fit(Cart(rubbing(1.0), push=-2.0), record, free=["s", "v"])
    assert float(found.values["v"]) == pytest.approx(0.0, abs=1e-9)
    assert "no effect" not in str(found)
