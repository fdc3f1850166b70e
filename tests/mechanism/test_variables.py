"""What a part's variables look like is told without a trace, and rightly."""

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import frictax as fx
import machines
from frictax.mechanism import MechanicalSystem
from frictax.mechanism.variables import structure_of_variables, variables_at


def heated() -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=2.0, v=3.0),
        brake=fx.Brake("mass", fn_max=10.0),
        drive=fx.PositionController("mass", s_ref=0.5, kp=5.0, kv=20.0),
        drag=fx.QuadraticSpeedDependentForce("mass", f_nominal=-1.0, v_nominal=1.0),
        disc=fx.HeatCapacitor("brake", C=0.5),
        air=fx.ThermalConductor("disc", G=2.0),
    )


def given() -> fx.Mechanism:
    return fx.Mechanism(
        belt=fx.Mass(m=1.0),
        moves=fx.Position("belt", fx.Sine(amplitude=1.0, f=1.0)),
        rotor=fx.Inertia(J=1.0),
        fan=fx.QuadraticSpeedDependentTorque("rotor", tau_nominal=-1.0, w_nominal=1.0),
        turned=fx.Torque("rotor", 1.0),
    )


MACHINES = [
    of
    for of in (*vars(machines).values(), heated, given)
    if inspect.isfunction(of) and inspect.signature(of).return_annotation is fx.Mechanism
]


@pytest.mark.parametrize("of", MACHINES, ids=lambda of: of.__name__)
def test_the_structure_is_that_of_the_variables(of: Any) -> None:
    system = MechanicalSystem(of())
    y, mode = jax.eval_shape(system.start, jnp.array(0.0))
    for part in range(len(system.mechanism.parts)):
        traced = jax.eval_shape(
            lambda t, y, mode, part=part: variables_at(system.snapshot(t, y, mode), part),
            jnp.array(0.0),
            y,
            mode,
        )
        told = structure_of_variables(system.mechanism, system.layout, part)
        assert told == jax.tree.structure(traced)
