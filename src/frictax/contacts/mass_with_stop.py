"""`MassWithStopAndFriction` of Modelica.Mechanics.Translational.Components."""

import equinox as eqx
import jax.numpy as jnp

from frictax.laws import AbstractLaw, Characteristic, Stribeck, as_law
from frictax.parameters import AtLeast, Number, Positive, Real, Scalar, is_traced, parameter

from .contact import AbstractContact, check_laws

_PEAK = 1.001  # ratio f0_max/f0, a constant of the Modelica element


class MassWithStopAndFriction(AbstractContact):
    """A sliding mass with Stribeck friction between two hard stops.

    m*dv/dt is the sum of the forces at the flanges minus the friction f. While the mass slides, f =
    F_Coulomb + F_prop*v + F_Stribeck*exp(-fexp*v), mirrored for v < 0. The mass stays stuck up to
    f0_max = 1.001*(F_Coulomb + F_Stribeck). When the mass hits a stop, its velocity jumps to 0.
    While the mass rests at a stop, `f` includes the reaction of the stop.

    **Arguments:**

    - `m` > 0 [kg]; `L` >= 0 [m], length: flange_a is at s - L/2, and flange_b is at s + L/2.
    - `smin`, `smax` [m]: positions of the stops, which the ends of the mass hit.
    - `F_prop` >= 0 [N.s/m], `F_Coulomb` >= 0 [N], `F_Stribeck` >= 0 [N], `fexp` >= 0 [s/m]: see
      `Stribeck`. If all friction is 0, the mass moves freely between the stops.
    - `s`, `v`: position of the centre [m] and velocity [m/s] at the start.
    - `f_neg`: a law for backward motion, over speed >= 0; default: the forward law. Modelica's
      element does not have this parameter.

    **Raises:** `ValueError` for a value outside its domain, a start position beyond a stop, or a
    start at a stop with a velocity into this stop.

    **Source:** Modelica Standard Library 4.1.0.

    >>> import frictax as fx
    >>> mass = fx.MassWithStopAndFriction(
    ...     m=1.0, smin=-25, smax=25, F_prop=1.0, F_Coulomb=5.0, F_Stribeck=10.0, fexp=2.0
    ... )
    >>> float(mass.law(1).f0)
    15.0
    """

    rotational = False
    m: Scalar = parameter(Positive(), "kg")
    smin: Scalar = parameter(Real(), "m", fit=False)
    smax: Scalar = parameter(Real(), "m", fit=False)
    F_prop: Scalar = parameter(AtLeast(0.0), "N.s/m")
    F_Coulomb: Scalar = parameter(AtLeast(0.0), "N")
    F_Stribeck: Scalar = parameter(AtLeast(0.0), "N")
    fexp: Scalar = parameter(AtLeast(0.0), "s/m")
    L: Scalar = parameter(AtLeast(0.0), "m", fit=False, default=0.0)
    s: Scalar = parameter(Real(), "m", fit=False, default=0.0)
    v: Scalar = parameter(Real(), "m/s", fit=False, default=0.0)
    f_neg: Characteristic | None = eqx.field(converter=as_law, default=None)

    def check_rules(self) -> None:
        if self.f_neg is not None:
            check_laws(self, "f_pos")
        low, high = self.stops()
        if any(is_traced(x) for x in (low, high, self.s, self.v)):
            return
        if low > high:
            raise ValueError(
                f"`MassWithStopAndFriction.smin` = {float(self.smin):g} m and `smax` ="
                f" {float(self.smax):g} m must be at least L = {float(self.L):g} m apart. Move a"
                " stop or shorten the mass."
            )
        for name, beyond, meets, sign, where in (
            ("smin + L/2", self.s < low, self.s == low, 1, low),
            ("smax - L/2", self.s > high, self.s == high, -1, high),
        ):
            if beyond:
                side = ">=" if sign > 0 else "<="
                raise ValueError(
                    f"`MassWithStopAndFriction.s` must be {side} {name} = {float(where):g} m, got"
                    f" {float(self.s):g} m. Start between the stops."
                )
            if meets and sign * self.v < 0:
                raise ValueError(
                    f"`MassWithStopAndFriction.v` = {float(self.v):g} m/s moves into the stop at"
                    f" {name} = {float(where):g} m. Start at rest there, or moving away from it."
                )

    def between(self) -> tuple[str, str | None]:
        raise NotImplementedError("It is its own body.")

    def inertia(self) -> Scalar:
        """Return the mass [kg]."""
        return self.m

    def at_start(self) -> tuple[Scalar, Scalar]:
        """Return position [m] and velocity [m/s] at the start of a run."""
        return self.s, self.v

    def law(self, direction: int) -> AbstractLaw:
        if direction > 0 or self.f_neg is None:
            return Stribeck(self.F_prop, self.F_Coulomb, self.F_Stribeck, self.fexp)
        return self.f_neg

    def breakaway(self) -> Number:
        return jnp.asarray(_PEAK, dtype=self.F_Coulomb.dtype)

    def stops(self) -> tuple[Number, Number]:
        return self.smin + self.L / 2, self.smax - self.L / 2
