"""A law of a user: `v0` has no effect without `F_log`."""

from typing import Any

import jax.numpy as jnp

import frictax as fx
from frictax.parameters import AtLeast, CheckedModule, Positive, Scalar, parameter


class Logarithmic(CheckedModule, fx.AbstractLaw):
    """Dry friction that grows with the logarithm of the speed, and a viscous part."""

    F_Coulomb: Scalar = parameter(AtLeast(0.0), "N")
    F_prop: Scalar = parameter(AtLeast(0.0), "N.s/m")
    F_log: Scalar = parameter(AtLeast(0.0), "N")
    v0: Scalar = parameter(Positive(), "m/s")

    def __call__(self, v: Any) -> Any:
        return self.F_Coulomb + self.F_prop * v + self.F_log * jnp.log1p(v / self.v0)

    @property
    def viscous_slope(self) -> Any:
        return self.F_prop
