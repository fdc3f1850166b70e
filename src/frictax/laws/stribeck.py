"""`Stribeck`: friction that first falls and then rises with speed (Stribeck effect)."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from frictax.annotations import Checked
from frictax.parameters import (
    AtLeast,
    CheckedModule,
    Number,
    Scalar,
    Values,
    as_array,
    is_traced,
    parameter,
)

from .coulomb import Coulomb
from .law import AbstractLaw


class Stribeck(CheckedModule, AbstractLaw):
    """Dry friction with the Stribeck effect: at low speed, friction falls as speed rises.

    f(v) = F_Coulomb + F_prop*v + F_Stribeck*exp(-(fexp*v)**exponent)

    **Arguments:**

    - `F_prop` >= 0 [N.s/m], viscous part; `F_Coulomb` >= 0 [N], dry part; `F_Stribeck` >= 0 [N],
      the additional friction at rest, which falls with speed.
    - `fexp` >= 0 [s/m], the inverse of the Stribeck speed.
    - `exponent` > 0: 1 is the law of Modelica's `MassWithStopAndFriction`; 2 is the Gaussian usual
      in robotics, with fexp = 1/vs and F_Stribeck = Fs - Fc. An exponent given as a Python number
      is fixed. An exponent given as an array has derivatives, but a fit does not change it.

    **Raises:** `ValueError` for a value outside its domain.

    **Source:** B. Armstrong-Hélouvry, P. Dupont, C. Canudas de Wit, Automatica 30(7), 1994, section
    2; Modelica.Mechanics.Translational.Components.MassWithStopAndFriction.

    >>> import frictax as fx
    >>> law = fx.Stribeck(F_prop=1.0, F_Coulomb=5.0, F_Stribeck=10.0, fexp=2.0)
    >>> float(law.f0), round(float(law(0.5)), 6)
    (15.0, 9.178794)
    """

    F_prop: Scalar = parameter(AtLeast(0.0), "N.s/m")
    F_Coulomb: Scalar = parameter(AtLeast(0.0), "N")
    F_Stribeck: Scalar = parameter(AtLeast(0.0), "N")
    fexp: Scalar = parameter(AtLeast(0.0), "s/m")
    # A Python number is not converted to an array, so it stays a constant in compiled code. A
    # constant exponent of 1 or 2 does not need a logarithm.
    exponent: Checked[float] | Scalar = eqx.field(
        converter=lambda e: float(e) if isinstance(e, int | float | np.number) else as_array(e),
        default=1.0,
    )

    meanings: ClassVar = {
        **Coulomb.meanings,
        "F_Stribeck": "excess of the friction at rest, which decays with speed",
        "fexp": "inverse of the speed at which the excess decays",
    }

    def check_rules(self) -> None:
        e = self.exponent
        is_number = isinstance(e, float) or (isinstance(e, jax.Array) and e.ndim == 0)
        if not is_traced(e) and not (is_number and 0 < float(e) < np.inf):
            got = e if isinstance(e, float | str | None) else np.asarray(e)
            raise ValueError(
                f"`Stribeck.exponent` must be one number > 0, got {got!s}. Use 1 (Modelica) or 2"
                " (Gaussian)."
            )

    def __call__(self, v: Values | float) -> Values:
        linear = self.F_Coulomb + self.F_prop * v
        x, exponent = self.fexp * v, self.exponent
        if isinstance(exponent, float) and exponent == 1.0:
            power = x
        elif isinstance(exponent, float) and exponent == 2.0:
            power = x * x
        else:
            moving = x > 0
            # At x = 0 the derivative of x**exponent with respect to the exponent contains 0*log(0),
            # so log(1) replaces log(0). The slope of x**exponent at x = 0 is 1 for an exponent of
            # 1, otherwise 0.
            power = jnp.where(
                moving,
                jnp.exp(exponent * jnp.log(jnp.where(moving, x, 1.0))),
                jnp.where(exponent == 1, x, 0.0),
            )
        return linear + self.F_Stribeck * jnp.exp(-power)

    @property
    def viscous_slope(self) -> Number:
        return self.F_prop

    @property
    def stribeck_dip(self) -> tuple[Number, Number]:
        return self.F_Coulomb, self.fexp

    @property
    def is_nonnegative(self) -> bool:
        return True

    @property
    def is_smooth(self) -> bool:
        return isinstance(self.exponent, float) and self.exponent.is_integer()

    @property
    def f0(self) -> Number:
        # The event functions use f0 in every time step. The general formula contains an
        # exponential, which would be half of the cost of an event function.
        return self.F_Coulomb + self.F_Stribeck

    @property
    def formula(self) -> str:
        exponent = float(self.exponent)
        power = "fexp·v" if exponent == 1.0 else f"(fexp·v)^{exponent:g}"
        return f"f(v) = F_Coulomb + F_prop·v + F_Stribeck·exp(−{power})"

    @property
    def form(self) -> dict[str, Any]:
        return {"exponent": float(self.exponent)}

    @classmethod
    def start_near(cls, rows: Any, exponent: float = 1.0, **form: Any) -> "Stribeck":
        v, least = rows.v, 0.01 * rows.mean_force

        def fit_with(fexp: float) -> tuple[np.ndarray, float]:
            return rows.fit_terms(v, np.ones_like(v), np.exp(-((fexp * v) ** exponent)))

        grid = np.geomspace(0.5 / v.max(), 2.0 / v.min(), 60)
        fexp = min(grid, key=lambda fexp: fit_with(fexp)[1])
        slope, constant, dip = fit_with(fexp)[0]
        return cls(
            F_prop=max(slope, least / v.max()),
            F_Coulomb=max(constant, least),
            F_Stribeck=max(dip, least),
            fexp=fexp,
            exponent=exponent,
        )
