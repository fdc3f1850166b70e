"""`TemperatureDependent`: a law with a factor that depends on temperature."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Float

from frictax.parameters import (
    Integer,
    Number,
    Numbers,
    Positive,
    Real,
    Scalar,
    Values,
    check,
    parameter,
)

from .as_law import as_law
from .law import AbstractLaw, Characteristic


class _Around(AbstractLaw):
    """A law that modifies another law, `law`, and has the same `breaks` and other properties."""

    law: eqx.AbstractVar[AbstractLaw]

    @property
    def breaks(self) -> Float[Numbers, " n"]:
        return self.law.breaks

    @property
    def is_smooth(self) -> bool:
        return self.law.is_smooth

    @property
    def is_nonnegative(self) -> bool:
        return self.law.is_nonnegative

    @property
    def viscous_slope(self) -> Number | float:
        return self.law.viscous_slope

    @property
    def stribeck_dip(self) -> tuple[Number, Number | float] | None:
        return self.law.stribeck_dip


class TemperatureDependent(_Around):
    """A law multiplied by exp(-beta*(T - T_ref)), where T [K] is the temperature of the contact.

    With beta > 0 friction falls as temperature rises, like the viscosity of oil and grease. With
    beta < 0 friction grows. T is the temperature of the `HeatCapacitor` that the friction element
    heats. If the element does not heat a `HeatCapacitor`, T is `T_ref`.

    **Arguments:** `law`: law or M x 2 table, at `T_ref`; `beta` [1/K]; `T_ref` > 0 [K].

    **Raises:** `ValueError` for a value outside its domain.

    **Source:** O. Reynolds, On the theory of lubrication, Phil. Trans. R. Soc. 177, 1886 (the
    viscosity of olive oil).

    >>> import frictax as fx
    >>> grease = fx.TemperatureDependent(fx.Coulomb(F_Coulomb=5.0, F_prop=1.0), beta=0.02)
    >>> [round(float(law(2.0)), 6) for law in (grease, grease.at_temperature(343.15))]
    [7.0, 2.575156]
    """

    law: Characteristic = eqx.field(converter=as_law)
    beta: Scalar = parameter(Real(), "1/K")
    T_ref: Scalar = parameter(Positive(), "K", fit=False, default=293.15)

    def __check_init__(self) -> None:
        check(self)
        if not isinstance(self.law, AbstractLaw):
            raise ValueError(
                f"`TemperatureDependent.law` must be a law or an M x 2 table, got {self.law!r}."
                " Write Coulomb(F_Coulomb=5.0)."
            )

    def __call__(self, v: Values | float) -> Values:
        return self.law(v)

    @property
    def f0(self) -> Number:
        return self.law.f0

    def on_piece(self, v: Number, piece: Integer) -> Number:
        return self.law.on_piece(v, piece)

    def at_temperature(self, T: Number | float) -> AbstractLaw:
        T = jnp.asarray(T, dtype=float)
        return _Multiplied(self.law.at_temperature(T), jnp.exp(-self.beta * (T - self.T_ref)))


class _Multiplied(_Around):
    """The law `law` multiplied by the number `factor`."""

    law: AbstractLaw
    factor: Number

    def __call__(self, v: Values | float) -> Values:
        return self.factor * self.law(v)

    @property
    def f0(self) -> Number:
        return self.factor * self.law.f0

    def on_piece(self, v: Number, piece: Integer) -> Number:
        return self.factor * self.law.on_piece(v, piece)

    @property
    def viscous_slope(self) -> Number | float:
        return self.factor * self.law.viscous_slope

    @property
    def stribeck_dip(self) -> tuple[Number, Number | float] | None:
        dip = self.law.stribeck_dip
        return None if dip is None else (self.factor * dip[0], dip[1])
