"""`Coulomb`: constant dry friction with a viscous part."""

from typing import Any, ClassVar

import numpy as np

from frictax.parameters import AtLeast, CheckedModule, Number, Scalar, Values, parameter

from .law import AbstractLaw


class Coulomb(CheckedModule, AbstractLaw):
    """A constant dry friction force, with an optional viscous part proportional to speed.

    f(v) = F_Coulomb + F_prop*v

    **Arguments:** `F_Coulomb` >= 0 [N]; `F_prop` >= 0 [N.s/m], default 0.

    **Raises:** `ValueError` for a negative value, which would generate energy.

    **Source:** C. A. de Coulomb, *Théorie des machines simples* (1785); viscous part: A. J. Morin,
    1833.

    >>> import frictax as fx
    >>> float(fx.Coulomb(F_Coulomb=5.0, F_prop=1.0)(2.0))
    7.0
    """

    F_Coulomb: Scalar = parameter(AtLeast(0.0), "N")
    F_prop: Scalar = parameter(AtLeast(0.0), "N.s/m", default=0.0)

    meanings: ClassVar = {
        "F_Coulomb": "dry friction at any speed",
        "F_prop": "viscous friction per unit of speed",
    }

    def __call__(self, v: Values | float) -> Values:
        return self.F_Coulomb + self.F_prop * v

    @property
    def viscous_slope(self) -> Number:
        return self.F_prop

    @property
    def is_nonnegative(self) -> bool:
        return True

    @property
    def is_smooth(self) -> bool:
        return True

    @property
    def formula(self) -> str:
        return "f(v) = F_Coulomb + F_prop·v"

    @classmethod
    def start_near(cls, rows: Any, **form: Any) -> "Coulomb":
        (constant, slope), _ = rows.fit_terms(np.ones_like(rows.v), rows.v)
        least = 0.01 * rows.mean_force
        return cls(F_Coulomb=max(constant, least), F_prop=max(slope, least / rows.v.max()))
