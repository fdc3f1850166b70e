"""Derivatives of a machine's equations do not depend on how the compiler rounds a number twice."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.mechanism.hybrid import MechanicalSystem
from frictax.parameters.arrays import larger, least, smaller

PLAIN = fx.Coulomb(F_Coulomb=2.0, F_prop=0.3)
TABLE = [[0.0, 2.0], [0.5, 1.5], [1.0, 1.7]]


def _brakes_and_freewheel() -> fx.Mechanism:
    load = fx.MotionDependent(lambda t, s, v: 1.0 + s)
    return fx.Mechanism(
        J1=fx.Inertia(J=1.0, w=1.0),
        J2=fx.Inertia(J=2.0, w=1.0),
        freewheel=fx.OneWayClutch("J1", "J2", mu_pos=TABLE, fn_max=2.0, f_normalized=fx.Sine()),
        brake=fx.Brake("J1", mu_pos=PLAIN, fn_max=1.0, f_normalized=load),
        bearing=fx.BearingFriction("J2", tau_pos=PLAIN),
    )


def _bristle(bristle: Any) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=1.0, v=0.1),
        friction=fx.SupportFriction("mass", f_pos=TABLE, f_neg=PLAIN, bristle=bristle),
        drive=fx.Force("mass", fx.Sine(amplitude=5.0, f=1.0)),
    )


def _gap_and_stop() -> fx.Mechanism:
    return fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.Mass(m=1.0, v=0.1),
        gap=fx.ElastoGap("wall", "mass", c=1e4, d=10.0, s_rel0=0.1, n=1.5),
        stop=fx.MassWithStopAndFriction(
            m=1.0, smin=-1.0, smax=1.0, F_prop=1.0, F_Coulomb=1.0, F_Stribeck=1.0, fexp=2.0
        ),
    )


MACHINES = {
    "a freewheel and brakes on one shaft": _brakes_and_freewheel(),
    "a gap and a stop": _gap_and_stop(),
    "LuGre": _bristle(fx.LuGre(sigma_0=1e4, sigma_1=10.0)),
    "Dahl": _bristle(fx.Dahl(sigma_0=1e4, exponent=2.0)),
    "ElastoPlastic": _bristle(fx.ElastoPlastic(sigma_0=1e4, sigma_1=10.0, z_ba=0.7)),
    "MaxwellSlip": _bristle(fx.MaxwellSlip(k=np.array([1e4, 5e3]))),
}


def _compared_results(jaxpr: Any, made: frozenset[Any] = frozenset()) -> list[str]:
    """Return the equations that ask whether a number equals the maximum or minimum made of it."""
    found = []
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name in ("max", "min", "reduce_max", "reduce_min"):
            made = made | {equation.outvars[0]}
        if name == "reshape" and equation.invars[0] in made:
            made = made | {equation.outvars[0]}
        if name == "eq" and any(v in made for v in equation.invars if not hasattr(v, "val")):
            found.append(str(equation))
        for inner in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")
        ):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                found += _compared_results(inner)
    return found


@pytest.mark.parametrize("name", MACHINES)
def test_no_derivative_of_a_machine_asks_which_of_two_numbers_equals_their_maximum(
    name: str,
) -> None:
    system, t = MechanicalSystem(MACHINES[name]), jnp.zeros(())
    y, mode = jax.eval_shape(system.start, t)
    moved, rest = eqx.partition(system, eqx.is_inexact_array)

    def push(moved: Any, t: Any, y: Any, mode: Any) -> Any:
        def equations(moved: Any, t: Any, y: Any) -> Any:
            system = eqx.combine(moved, rest)
            after = system.jump(t, y, mode, jnp.asarray(0), None)[0]
            step = system.safe_step(t, t + 1e-3, y, mode, None) if system.is_stiff(None) else y
            return system.flow(t, y, mode, None), system.guard(t, y, mode, None), after, step

        return jax.jvp(equations, (moved, t, y), (moved, t, y))

    assert not _compared_results(jax.make_jaxpr(push)(moved, t, y, mode).jaxpr)


def test_the_derivative_of_a_maximum_of_jax_is_found_to_ask_that() -> None:
    push = jax.make_jaxpr(lambda x: jax.jvp(lambda x: jnp.maximum(2.0 * x, 1.0), (x,), (x,)))(1.0)
    assert _compared_results(push.jaxpr)


def test_larger_smaller_and_least_are_those_of_numpy_and_nan_where_one_is() -> None:
    values = [-1.0, 0.0, 2.0, np.inf, np.nan]
    a, b = (jnp.asarray(x.ravel()) for x in np.meshgrid(values, values))
    np.testing.assert_array_equal(larger(a, b), np.maximum(a, b))
    np.testing.assert_array_equal(smaller(a, b), np.minimum(a, b))
    np.testing.assert_array_equal(least(jnp.stack([a, b], axis=1)), np.minimum(a, b))
