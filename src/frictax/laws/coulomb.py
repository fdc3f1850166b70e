"""Dry friction with a viscous part."""

from frictax.parameters import AtLeast, CheckedModule, Number, Scalar, Values, parameter

from .law import AbstractLaw


class Coulomb(CheckedModule, AbstractLaw):
    """A constant dry friction force, with an optional viscous part proportional to speed.

    f(v) = F_Coulomb + F_prop*v

    **Arguments:** `F_Coulomb` >= 0 [N]; `F_prop` >= 0 [N.s/m], default 0.

    **Raises:** `ValueError` for a negative value, because friction dissipates energy.

    **Source:** C. A. de Coulomb, *Théorie des machines simples* (1785); viscous part: A. J. Morin,
    1833.

    >>> import frictax as fx
    >>> float(fx.Coulomb(F_Coulomb=5.0, F_prop=1.0)(2.0))
    7.0
    """

    F_Coulomb: Scalar = parameter(AtLeast(0.0), "N")
    F_prop: Scalar = parameter(AtLeast(0.0), "N.s/m", default=0.0)

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
