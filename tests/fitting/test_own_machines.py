"""Machines of one's own under a record's inputs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.fitting.problem.setup import driven
from frictax.parameters import Positive, Scalar, parameter

T = np.linspace(0.0, 1.0, 101)
MOTOR = 3.0 * np.sin(2 * np.pi * T)


class Axis(fx.AbstractAxis):
    friction: fx.SupportFriction
    m: Scalar = parameter(Positive(), "kg")

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return self.m

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return args["motor"] - args.get("weight", 0.0)

    def states(self) -> tuple[str, ...]:
        return ("s", "v")

    def start(self, t: Any) -> Any:
        return self.begin(t, jnp.zeros(2))


AXIS = Axis(fx.SupportFriction("axis", f_pos=fx.Coulomb(F_Coulomb=1.0), peak=1.1), 1.0)


def test_inputs_of_a_record_take_the_place_of_the_signals_that_a_machine_has_of_its_own() -> None:
    under: Any = driven(fx.Driven(AXIS, motor=0.0, weight=0.5), T, {"motor": MOTOR}, False)
    assert under.names == ("motor", "weight")
    assert isinstance(under.system, Axis)
    np.testing.assert_array_equal(under.signals[0].values, MOTOR)
    assert float(under.signals[1].k) == 0.5


@pytest.mark.slow
def test_what_is_driven_by_itself_and_by_a_record_is_compared_as_what_a_record_drives() -> None:
    record = fx.Record(T, {"motor": MOTOR}, {"s": T}, sd={"s": 1e-3})
    plain = fx.weighted_residuals(AXIS, record)
    assert float(jnp.max(jnp.abs(plain))) > 50.0  # it moves
    same = jax.jit(lambda: fx.weighted_residuals(fx.Driven(AXIS, motor=0.0), record))()
    np.testing.assert_allclose(same, plain, atol=1e-9)
