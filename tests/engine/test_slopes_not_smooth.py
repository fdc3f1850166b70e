"""Derivatives where a force bends sharply at the end of a mode, and where an event is
found late.
"""

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

import frictax as fx
from checks import central_differences


def law(v: Any, fexp: Any, p: Any) -> Any:
    return 1.0 + 0.2 * v + 0.5 * np.exp(-((fexp * v) ** p))


def sliding(peak: Any, fexp: Any, p: Any, force: Any, v: Any = 0.0) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=1.0, v=v),
        friction=fx.SupportFriction(
            "mass",
            f_pos=fx.Stribeck(F_prop=0.2, F_Coulomb=1.0, F_Stribeck=0.5, fexp=fexp, exponent=p),
            peak=peak,
        ),
        drive=fx.Force("mass", force),
    )


@pytest.mark.slow
def test_after_a_breakaway_derivatives_are_right_to_1e_6_for_exponents_between_1_and_2() -> None:
    def end(x: jax.Array) -> jax.Array:
        machine = sliding(x[0], x[1], x[2], fx.Ramp(height=4.0, duration=2.0))
        return fx.simulate(machine, jnp.array([0.0, 1.5]))["mass"].s[-1]

    def truth(x: Any) -> float:
        peak, fexp, p = map(float, x)
        rates = lambda t, y: [y[1], 2.0 * t - law(max(y[1], 0.0), fexp, p)]  # noqa: E731
        return solve_ivp(
            rates, [0.75 * peak, 1.5], [0.0, 0.0], method="DOP853", rtol=1e-13, atol=1e-15
        ).y[0, -1]

    slope = jax.jit(jax.jacfwd(end))
    for p in (1.05, 1.1, 1.5, 1.95):
        x = jnp.array([1.1, 4.0, p])
        assert np.max(np.abs(np.asarray(slope(x)) - central_differences(truth, x))) <= 1e-6
    assert float(slope(jnp.array([1.1, 4.0, 1.1]))[0]) == pytest.approx(-0.109121595, abs=2e-7)


def rest(x: jax.Array) -> jax.Array:
    """Where and when a first speed x[0] has become 0."""
    run = fx.simulate(sliding(1.1, x[1], x[2], 0.0, v=x[0]), jnp.array([0.0, 2.0]))
    return jnp.stack([run["mass"].s[-1], run.events.time[0]])


@pytest.mark.slow
def test_coming_to_rest_derivatives_are_those_of_the_closed_form_in_both_modes() -> None:
    """s = integral of m*v/f(v), t = integral of m/f(v) over the speeds from 0 to the first."""

    def truth(x: Any) -> np.ndarray:
        v, fexp, p = map(float, x)

        # A power of the speed whose integrand is smooth at rest
        def at(z, power):
            return 4 * z**3 * v * (v * z**4) ** power / law(v * z**4, fexp, p)

        return np.array(
            [quad(at, 0.0, 1.0, args=(power,), epsabs=1e-13, epsrel=1e-13)[0] for power in (1, 0)]
        )

    forward, reverse = jax.jit(jax.jacfwd(rest)), jax.jit(jax.jacrev(rest))
    for p in (1.1, 1.6):
        x = jnp.array([0.8, 4.0, p])
        assert np.max(np.abs(np.asarray(forward(x)) - central_differences(truth, x))) <= 1e-6
        assert np.max(np.abs(np.asarray(forward(x)) - np.asarray(reverse(x)))) <= 1e-12


@pytest.mark.slow
def test_after_a_contact_of_spheres_derivatives_are_those_of_the_time_of_hertz() -> None:
    """The time of contact goes with c^-0.4, so that s after it changes by v*0.4*T/c; s is right to
    2e-6.
    """
    c, m, v, end = 1e4, 0.5, 2.0, 0.1

    def s(c: jax.Array) -> jax.Array:
        gap = fx.ElastoGap("wall", "ball", c=c, d=0.0, n=1.5)
        machine = fx.Mechanism(wall=fx.Fixed(), ball=fx.Mass(m=m, s=0.01, v=-v), ground=gap)
        return fx.simulate(machine, jnp.array([0.0, end]))["ball"].s[-1]

    depth = (5 * m * v**2 / (4 * c)) ** 0.4
    share = lambda z: 2 * z / np.sqrt(1 - (1 - z * z) ** 2.5)  # noqa: E731
    time = 2 * depth / v * quad(share, 0.0, 1.0, epsabs=1e-13)[0]
    assert float(jax.jit(jax.jacfwd(s))(c)) == pytest.approx(0.4 * v * time / c, rel=5e-6)


class _Clock(fx.AbstractHybridSystem):
    """Nothing moves until t^4 reaches p, which one long step finds."""

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return 0.0 * y

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.where(mode == 0, args - t**4, 1.0)

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        return y, mode + 1, jnp.array(0)


@pytest.mark.slow
@pytest.mark.parametrize("jacobian", [jax.jacrev, jax.jacfwd])
def test_the_derivative_of_an_events_time_does_not_depend_on_how_near_it_was_found(
    jacobian: Callable,
) -> None:
    engine = fx.Adaptive(rtol=1e-12, atol=1e-13, dt0=7.0)
    start = jnp.zeros(1), jnp.array([0]), jnp.array([0.0, 20.0])
    time = lambda p: fx.walk(_Clock(), *start, args=p, options=engine).times[0]  # noqa: E731
    slope = jax.jit(jacobian(time))
    for p in (0.3, 1.0, 2.0):
        assert float(slope(p)) == pytest.approx(0.25 * p**-0.75, abs=1e-10)


class _Follower(fx.AbstractHybridSystem):
    """A stiff motion, which follows cos(t) with the rate k."""

    k: Any

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return self.k * (jnp.cos(t) - y)

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.ones(1)

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        return y, mode, jnp.array(0)

    def is_stiff(self, args: Any) -> bool:
        return True


def test_a_stiff_motion_of_your_own_has_derivatives() -> None:
    k, ts = 1e4, jnp.array([0.0, 1.0])

    def end(k: Any) -> Any:
        engine = fx.Adaptive(adjoint=diffrax.ForwardMode())
        return fx.walk(_Follower(k), jnp.zeros(1), [0], ts, options=engine).ys[-1, 0]

    closed = lambda k: (k**2 * jnp.cos(1.0) + k * jnp.sin(1.0)) / (k**2 + 1)  # noqa: E731
    assert float(jax.jit(jax.jacfwd(end))(k)) == pytest.approx(float(jax.grad(closed)(k)), rel=0.01)
