"""Friction that falls with speed before it rises."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.laws.law import AbstractLaw
from frictax.parameters import AtLeast, Scalar, as_array, check, is_traced, parameter


class Stribeck(AbstractLaw):
    """Dry friction with the Stribeck effect: at low speed, friction falls as speed rises.

    f(v) = F_Coulomb + F_prop*v + F_Stribeck*exp(-(fexp*v)**exponent)

    **Arguments:**

    - `F_prop` >= 0 [N.s/m], viscous part; `F_Coulomb` >= 0 [N], dry part; `F_Stribeck` >= 0 [N], what is lost by moving.
    - `fexp` >= 0 [s/m], the inverse of the Stribeck speed.
    - `exponent` > 0: 1 is Modelica's `MassWithStopAndFriction`; 2 is the Gaussian usual in robotics, where
      fexp = 1/vs and F_Stribeck = Fs - Fc. A Python number fixes the form of the law; an array is a parameter
      that can be differentiated.

    **Raises:** `ValueError` for a value outside its domain.

    **Source:** B. Armstrong-Hélouvry, P. Dupont, C. Canudas de Wit, Automatica 30(7), 1994, section 2;
    Modelica.Mechanics.Translational.Components.MassWithStopAndFriction.

    >>> import frictax as fx
    >>> law = fx.Stribeck(F_prop=1.0, F_Coulomb=5.0, F_Stribeck=10.0, fexp=2.0)
    >>> float(law.f0), round(float(law(0.5)), 6)
    (15.0, 9.178794)
    """

    F_prop: Scalar = parameter(AtLeast(0.0), "N.s/m")
    F_Coulomb: Scalar = parameter(AtLeast(0.0), "N")
    F_Stribeck: Scalar = parameter(AtLeast(0.0), "N")
    fexp: Scalar = parameter(AtLeast(0.0), "s/m")
    # A Python number stays one: filter_jit then knows it, and exponents 1 and 2 cost no logarithm.
    exponent: Any = eqx.field(converter=lambda e: float(e) if isinstance(e, int | float | np.number) else as_array(e), default=1.0)

    def __check_init__(self) -> None:
        check(self)
        e = self.exponent
        if not is_traced(e) and not (np.ndim(e) == 0 and np.isfinite(e) and e > 0):
            raise ValueError(f"`Stribeck.exponent` must be > 0, got {e}. Use 1 (Modelica) or 2 (Gaussian).")

    def __call__(self, v: Float[Array, "..."] | float) -> Float[Array, "..."]:
        return self.F_Coulomb + self.F_prop * v + self.F_Stribeck * jnp.exp(-_power(self.fexp * v, self.exponent))


def _power(x: Float[Array, "..."], exponent: Any) -> Float[Array, "..."]:
    """x**exponent for x >= 0, with finite derivatives at 0 and a smooth continuation for exponents 1 and 2."""
    if isinstance(exponent, float) and exponent == 1.0:
        return x
    if isinstance(exponent, float) and exponent == 2.0:
        return x * x
    moving = x > 0
    # log is masked before it is taken: at x = 0 the derivative by the exponent is 0*log(0).
    return jnp.where(moving, jnp.exp(exponent * jnp.log(jnp.where(moving, x, 1.0))), 0.0)
