"""Machines linearised about stuck and sliding states, against matrices by hand and against runs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.mechanism import MechanicalSystem
from machines import TIGHT

C, D, J1, J2, J3 = 50.0, 0.4, 1.0, 2.0, 3.0
SLOPE = 0.2


def drive_train(w: float) -> fx.Mechanism:
    """Two inertias with a clutch between them, the second on a spring-damper to a third."""
    return fx.Mechanism(
        one=fx.Inertia(J=J1, w=w),
        two=fx.Inertia(J=J2),
        three=fx.Inertia(J=J3),
        clutch=fx.Clutch(
            "one",
            "two",
            mu_pos=fx.Coulomb(F_Coulomb=0.5, F_prop=SLOPE),
            fn_max=10.0,
            f_normalized=1.0,
        ),
        shaft=fx.RotationalSpringDamper("two", "three", c=C, d=D),
        torque=fx.Torque("one", 0.5),
    )


def by_hand(locked: bool) -> tuple[np.ndarray, np.ndarray]:
    """A and B by the torque: states phi1, phi2, phi3, w1, w2, w3."""
    spring = np.array([0.0, -C, C, 0.0, -D, D])  # the torque on body two
    if locked:
        together = spring / (J1 + J2)
        first, second, b = together, together, 1 / (J1 + J2)
    else:
        # one is the faster: tau = 10*(0.5 + 0.2*(w1 - w2)) slows it
        tau = 10 * SLOPE * np.array([0.0, 0.0, 0.0, 1.0, -1.0, 0.0])
        first, second, b = -tau / J1, (spring + tau) / J2, 1 / J1
    A = np.vstack([np.eye(6)[3:], first, second, -spring / J3])
    B = np.array([[0.0, 0.0, 0.0, b, b if locked else 0.0, 0.0]]).T
    return A, B


@pytest.mark.slow
@pytest.mark.parametrize("locked", [True, False])
def test_a_clutch_that_holds_couples_its_bodies_and_one_that_slides_damps_them(
    locked: bool,
) -> None:
    machine = drive_train(0.0 if locked else 4.0)
    run = fx.simulate(machine, jnp.array([0.0, 0.01]), TIGHT)
    assert bool(run["clutch"].locked[-1]) == locked
    found = fx.linearize(machine, run.ts[-1], run.ys[-1], run.modes[-1], inputs=["torque"])
    A, B = by_hand(locked)
    assert found.states == ("one.phi", "two.phi", "three.phi", "one.w", "two.w", "three.w")
    assert np.max(np.abs(np.asarray(found.A) - A)) < 1e-12
    assert np.max(np.abs(np.asarray(found.B) - B)) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("locked", [True, False])
def test_a_small_disturbance_of_a_run_moves_as_the_matrix_exponential_says(locked: bool) -> None:
    machine = drive_train(0.0 if locked else 4.0)
    ts = jnp.array([0.01, 0.11])
    here = fx.simulate(machine, jnp.array([0.0, 0.01]), TIGHT)
    found = fx.linearize(machine, 0.01, here.ys[-1], here.modes[-1])
    system = MechanicalSystem(machine)
    # one and two together, else the lock would be torn
    step = 1e-6 * jnp.array([1.0, 1.0, -2.0, 0.3, 0.3, 1.0])
    end = lambda y: fx.walk(system, y, here.modes[-1], ts, options=TIGHT).ys[-1]  # noqa: E731
    moved = (end(here.ys[-1] + step) - end(here.ys[-1] - step)) / 2e-6
    expected = jax.scipy.linalg.expm(found.A * 0.1) @ (step / 1e-6)
    assert jnp.max(jnp.abs(moved - expected)) < 1e-6


@pytest.mark.slow
def test_accounts_of_energy_are_no_states_and_a_brakes_drive_is_an_input() -> None:
    machine = fx.Mechanism(
        mass=fx.Mass(m=2.0, v=1.0),
        brake=fx.Brake(
            "mass", mu_pos=fx.Coulomb(F_Coulomb=0.3), fn_max=5.0, f_normalized=fx.Constant(1.0)
        ),
    )
    run = fx.simulate(machine, jnp.array([0.0, 0.1]), energy=True)
    found = fx.linearize(machine, 0.1, run.ys[-1], run.modes[-1], inputs="brake")
    assert np.allclose(found.A, [[0.0, 1.0], [0.0, 0.0]])
    assert np.allclose(found.B, [[0.0], [-5.0 * 0.3 / 2.0]])


def test_a_machine_of_ones_own_is_linearised_too() -> None:
    class Pendulum(fx.AbstractAxis):
        friction: fx.SupportFriction

        def inertia(self, t: Any, y: Any, args: Any) -> Any:
            return 0.5

        def load(self, t: Any, y: Any, args: Any) -> Any:
            return -3.0 * jnp.sin(y[0])

        def states(self) -> tuple[str, ...]:
            return ("phi", "w")

    machine = Pendulum(fx.SupportFriction("joint", f_pos=fx.Coulomb(F_Coulomb=0.1, F_prop=0.2)))
    forward = fx.linearize(machine, 0.0, [0.4, 1.0], [1])
    assert np.allclose(forward.A, [[0.0, 1.0], [-6.0 * np.cos(0.4), -0.4]])
    assert np.allclose(fx.linearize(machine, 0.0, [0.4, 0.0], [0]).A, [[0.0, 1.0], [0.0, 0.0]])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("y", "inputs", "sentence"),
    [
        (
            (6,),
            ["shaft"],
            (
                "the input 'shaft' must be a force, torque, brake or clutch with a drive, got a"
                " RotationalSpringDamper"
            ),
        ),
        ((6,), ["torqe"], "no part 'torqe'"),
        ((5,), [], "`y` must have 6 entries"),
        ((9, 6), [], r"`y` must have 6 entries, .*got an array of shape \(9, 6\)"),
    ],
)
def test_wrong_input_is_named(y: tuple[int, ...], inputs: list[str], sentence: str) -> None:
    machine = drive_train(0.0)
    _, mode = MechanicalSystem(machine).start(jnp.asarray(0.0))
    with pytest.raises((ValueError, KeyError), match=sentence):
        fx.linearize(machine, 0.0, jnp.zeros(y), mode, inputs=inputs)
    for wrong in (mode[:-1], jnp.append(mode, 0), mode[None]):
        with pytest.raises(ValueError, match=f"`mode` must have {mode.size} entries"):
            fx.linearize(machine, 0.0, jnp.zeros(6), wrong)


@pytest.mark.slow
def test_a_prescribed_motion_and_inputs_of_ones_own_machine_are_refused() -> None:
    belt = fx.Mechanism(
        belt=fx.Mass(m=1.0),
        mass=fx.Mass(m=1.0),
        move=fx.Position("belt", fx.Ramp(height=1.0, duration=2.0)),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0), support="belt"),
    )
    with pytest.raises(ValueError, match="the input 'move' must be a force"):
        fx.linearize(belt, 0.0, jnp.zeros(2), jnp.zeros(2, jnp.int32), inputs="move")
    ball = fx.Driven(_Free(), motor=fx.Constant(1.0))
    with pytest.raises(ValueError, match="`inputs` must name parts of a `Mechanism`"):
        fx.linearize(ball, 0.0, jnp.zeros(2), jnp.zeros(1, jnp.int32), inputs="motor")


class _Free(fx.AbstractAxis):
    friction: fx.SupportFriction = fx.SupportFriction("joint", f_pos=fx.Coulomb(F_Coulomb=0.1))

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return 1.0

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return args["motor"]

    def states(self) -> tuple[str, ...]:
        return ("phi", "w")
