"""Machines of several degrees of freedom by mass matrix, force and Jacobian: an arm of two joints
with friction.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import assert_derivatives_agree, flat, rebuilt
from frictax.parameters import Positive, Real, Scalar, parameter
from machines import TIGHT

STUCK = int(fx.Mode.STUCK)


class Arm(fx.AbstractLinkage):
    """Two rods with a mass at the end of each, in a vertical plane; angles from straight down, the
    second against the first.
    """

    frictions: tuple[fx.SupportFriction, ...]
    m1: Scalar = parameter(Positive(), "kg", default=2.0)
    m2: Scalar = parameter(Positive(), "kg", default=1.0)
    l1: Scalar = parameter(Positive(), "m", default=0.5)
    l2: Scalar = parameter(Positive(), "m", default=0.4)
    phi1: Scalar = parameter(Real(), "rad", default=1.2)
    phi2: Scalar = parameter(Real(), "rad", default=0.5)
    g: float = 9.81

    def mass_matrix(self, q: Any) -> Any:
        c = self.m2 * self.l1 * self.l2 * jnp.cos(q[1])
        far, near = self.m2 * self.l2**2, (self.m1 + self.m2) * self.l1**2
        return jnp.array([[near + far + 2 * c, far + c], [far + c, far]])

    def potential(self, q: Any) -> Any:
        y1 = -self.l1 * jnp.cos(q[0])
        return self.g * (self.m1 * y1 + self.m2 * (y1 - self.l2 * jnp.cos(q[0] + q[1])))

    def force(self, t: Any, q: Any, u: Any, args: Any) -> Any:
        return -jax.grad(self.potential)(q) - self.velocity_terms(q, u)

    def states(self) -> tuple[str, ...]:
        return ("phi1", "phi2", "w1", "w2")

    def start(self, t: Any) -> tuple[Any, Any]:
        return self.begin(t, jnp.stack([self.phi1, self.phi2, 0.0, 0.0]))

    def energy(self, y: Any) -> Any:
        return 0.5 * y[2:] @ self.mass_matrix(y[:2]) @ y[2:] + self.potential(y[:2])


class Metered(Arm):
    """The same with a further state: the work of friction."""

    def states(self) -> tuple[str, ...]:
        return (*super().states(), "loss")

    @property
    def degrees_of_freedom(self) -> int:
        return 2

    def start(self, t: Any) -> tuple[Any, Any]:
        return self.begin(t, jnp.stack([self.phi1, self.phi2, 0.0, 0.0, 0.0]))

    def others(self, t: Any, y: Any, args: Any) -> Any:
        return jnp.zeros(1)

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return (
            super()
            .flow(t, y, mode, args)
            .at[4]
            .set(self.friction_forces(t, y, mode, args) @ y[2:4])
        )


def joint(F: float, peak: float = 1.2) -> fx.SupportFriction:
    return fx.SupportFriction(
        "joint",
        f_pos=fx.Stribeck(F_Coulomb=F, F_prop=0.02 * F, F_Stribeck=0.3 * F, fexp=2.0),
        peak=peak,
    )


def walked(machine: Any, start: tuple[Any, Any], ts: Any, options: Any = TIGHT) -> Any:
    y0, mode0 = start
    return fx.walk(machine, y0, mode0, ts, options=options)


def pendulum(F: float) -> Any:
    """The arm's first joint alone, as an axis: the second is held by any friction."""

    class Single(fx.AbstractAxis):
        friction: fx.SupportFriction
        arm: Arm

        def inertia(self, t: Any, y: Any, args: Any) -> Any:
            return self.arm.mass_matrix(jnp.stack([y[0], self.arm.phi2]))[0, 0]

        def load(self, t: Any, y: Any, args: Any) -> Any:
            return -jax.grad(lambda phi: self.arm.potential(jnp.stack([phi, self.arm.phi2])))(y[0])

        def states(self) -> tuple[str, ...]:
            return ("phi", "w")

    return Single(joint(F), Arm((joint(F), joint(1e6))))


@pytest.mark.slow
def test_an_arm_whose_elbow_is_locked_is_a_pendulum() -> None:
    single, ts = pendulum(2.0), jnp.linspace(0.0, 4.0, 41)
    arm = single.arm
    path, short = walked(arm, arm.start(0.0), ts), walked(single, single.begin(0.0, [1.2, 0.0]), ts)
    assert path.result == short.result == fx.Result.successful
    assert int(short.count) >= 4
    assert jnp.max(jnp.abs(path.ys[:, jnp.array([0, 2])] - short.ys)) < 1e-9
    assert jnp.max(jnp.abs(path.ys[:, 1] - 0.5)) < 1e-12


def test_velocity_terms_are_those_of_the_text_book() -> None:
    arm, q, u = Arm((joint(1.0), joint(1.0))), jnp.array([0.3, 0.8]), jnp.array([1.5, -2.0])
    h = arm.m2 * arm.l1 * arm.l2 * jnp.sin(q[1])
    # Spong, Hutchinson, Vidyasagar, Robot Modeling and Control, the planar elbow manipulator.
    expected = jnp.stack([-2 * h * u[0] * u[1] - h * u[1] ** 2, h * u[0] ** 2])
    assert jnp.allclose(arm.velocity_terms(q, u), expected, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("F", [(1.5, 0.5), (3.0, 0.6), (1.0, 2.5)])
def test_what_friction_takes_the_arm_loses_and_it_comes_to_rest_where_friction_holds_it(
    F: tuple[float, float],
) -> None:
    arm = Metered((joint(F[0]), joint(F[1])))
    path = walked(arm, arm.start(0.0), jnp.linspace(0.0, 12.0, 25))
    assert path.result == fx.Result.successful
    lost = jax.vmap(arm.energy)(path.ys[:, :4]) - arm.energy(path.ys[0, :4]) + path.ys[:, 4]
    assert jnp.max(jnp.abs(lost)) < 1e-8
    assert np.all(np.asarray(path.modes[-1, :2]) == STUCK)
    pull = -jax.grad(arm.potential)(path.ys[-1, :2])
    assert jnp.all(jnp.abs(pull) <= 1.2 * 1.3 * jnp.asarray(F))


@pytest.mark.slow
def test_the_first_joint_that_breaks_away_is_that_of_the_statics_and_the_other_follows():
    # Held by 1.3*1.2 times F where gravity pulls with 14.5 and 3.9 N.m: the elbow alone lets go.
    arm = Arm((joint(50.0), joint(1.0)), phi1=jnp.pi / 2, phi2=0.0)
    path = walked(arm, arm.start(0.0), jnp.linspace(0.0, 0.2, 3))
    assert path.modes[-1].tolist() == [0, -1]
    # Alone it falls with (m2 g l2 - F)/(m2 l2^2) at first.
    t = 1e-3
    short = walked(arm, arm.start(0.0), jnp.array([0.0, t]))
    assert jnp.allclose(short.ys[-1, 3] / t, -(9.81 * 0.4 - 1.3) / 0.16, rtol=1e-2)


@pytest.mark.slow
def test_derivatives_by_masses_lengths_laws_and_start_equal_central_differences() -> None:
    arm = Arm((joint(1.0), joint(0.5)))
    paths = [
        "m1",
        "l2",
        "phi1",
        "phi2",
        *(f"frictions.{c}.f_pos.F_Coulomb" for c in (0, 1)),
        "frictions.0.peak",
        "frictions.1.f_pos.fexp",
    ]
    ts, x = jnp.array([0.0, 0.9, 1.7, 3.0]), flat(arm, paths)
    plain = walked(arm, arm.start(0.0), ts)
    events = jnp.flatnonzero((plain.fired >= 0) & jnp.isfinite(plain.times))
    assert events.size >= 5

    def outcome(x: Any) -> Any:
        machine = rebuilt(arm, paths, x)
        path = walked(machine, machine.start(0.0), ts)
        return jnp.concatenate([jnp.ravel(path.ys[1:]), path.times[events]])

    assert_derivatives_agree(outcome, x, step=1e-4, reverse=False)


@pytest.mark.slow
def test_on_samples_and_adaptive_agree() -> None:
    arm, ts = Arm((joint(1.0), joint(0.5))), jnp.linspace(0.0, 3.0, 6001)
    fine = walked(arm, arm.start(0.0), ts)
    coarse = walked(arm, arm.start(0.0), ts, fx.OnSamples())
    assert coarse.result == fx.Result.successful
    times = [
        np.asarray(path.times[(path.fired >= 0) & jnp.isfinite(path.times)])
        for path in (fine, coarse)
    ]
    assert len(times[0]) == len(times[1]) >= 5
    assert np.max(np.abs(times[0] - times[1])) < 1e-7
    assert jnp.max(jnp.abs(coarse.ys - fine.ys)) < 1e-7


@pytest.mark.slow
def test_contacts_that_hold_the_same_motion_share_it_and_what_slides_together_loses_together():
    class Sledges(fx.AbstractLinkage):
        frictions: tuple[fx.SupportFriction, ...]

        def mass_matrix(self, q: Any) -> Any:
            return jnp.array([[2.0]])

        def force(self, t: Any, q: Any, u: Any, args: Any) -> Any:
            return jnp.array([6.0 * jnp.sin(t)])

        def jacobian(self, q: Any) -> Any:
            return jnp.array([[1.0], [1.0]])

        def states(self) -> tuple[str, ...]:
            return ("s", "v")

    single = fx.Mechanism(
        mass=fx.Mass(m=2.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=3.0)),
        drive=fx.Force("mass", fx.Function(lambda t: 6.0 * jnp.sin(t))),
    )
    ts = jnp.linspace(0.0, 8.0, 33)
    frictions = tuple(
        fx.SupportFriction("sledge", f_pos=fx.Coulomb(F_Coulomb=F)) for F in (1.0, 2.0)
    )
    sledges = Sledges(frictions)
    path = walked(sledges, sledges.begin(0.0, [0.0, 0.0]), ts)
    run = fx.simulate(single, ts, TIGHT)
    assert jnp.max(jnp.abs(path.ys[:, 1] - run["mass"].v)) < 1e-9
    early = sledges.friction_forces(jnp.asarray(0.3), jnp.zeros(2), jnp.zeros(2, jnp.int32), None)
    assert jnp.allclose(early, 6.0 * jnp.sin(0.3) * jnp.array([1 / 3, 2 / 3]), rtol=1e-9)


def test_frictions_of_another_kind_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`Arm.frictions` must be a tuple of `SupportFriction`"):
        Arm((fx.Coulomb(F_Coulomb=1.0),))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"`Arm.frictions` must be a tuple of `SupportFriction`"):
        Arm(())
