"""The bristle of LuGre, and what Dahl's has in common with it."""

import jax.numpy as jnp

from frictax.laws import AbstractLaw
from frictax.parameters import AtLeast, Number, Positive, Real, Scalar, Values, parameter

from .bristle import AbstractBristle, Fading, faded, size_of

_SMALL = 1e-2  # a relative way below which a series is better


class Rubbing(AbstractBristle):
    """A bristle that slips in proportion to how far it is bent.

    dz/dt = v - sigma_0*abs(v)*z/g(abs(v))
    """

    def rate(self, v: Number, force: Number, g: Number, least: Number) -> Number:
        return self.sigma_0 * (v - size_of(v) * force / g)

    def moved(self, x: Number, force: Number, g: Number, least: Number) -> tuple[Number, Number]:
        end = jnp.where(x < 0, -g, g)
        q = self.sigma_0 * size_of(x) / g
        small = q < _SMALL
        safe = jnp.where(small, 1.0, q)
        # (1 - exp(-q))/q, and 1 less it
        series = q * (1 / 2 - q * (1 / 6 - q * (1 / 24 - q * (1 / 120 - q / 720))))
        rest = jnp.where(small, series, 1 + jnp.expm1(-safe) / safe)
        gone = -jnp.expm1(-q)
        return force + gone * (end - force), force + rest * (end - force)


class LuGre(Rubbing):
    """The bristle of Lund and Grenoble: it bends like a spring and slips in proportion to how far
    it is bent.

    dz/dt = v - sigma_0*abs(v)*z/g(abs(v)), f = sigma_0*z + sigma_1(v)*dz/dt + viscous part

    with sigma_1(v) = sigma_1*exp(-(v/v_d)**2). g and the viscous part, which others call sigma_2*v,
    are the contact's law: `F_prop` of `Coulomb` and `Stribeck` is sigma_2.

    Where the law falls with speed, a constant sigma_1 makes friction *give* energy once a bristle
    that is still bent meets a high speed: with the parameters of the source, from 0.014 m/s on. The
    default of `v_d` forbids that. A load below breakaway that swings lets the contact creep on
    (`ElastoPlastic` does not).

    **Arguments:**

    - `sigma_0` > 0 [N/m], its stiffness; [N.m/rad] where the contact turns.
    - `sigma_1` >= 0 [N.s/m], its damping: 2*zeta*sqrt(sigma_0*m) - F_prop damps the mass m by the
      share zeta of critical damping while it does not slide. So it is a property of the machine
      rather than of the faces.
    - `v_d` > 0 [m/s], the speed over which the damping fades. Default: 1/fexp of a `Stribeck`, or
      less, where more would give energy; of a law that does not fall, none. `jnp.inf` for a
      constant sigma_1, with a warning where that gives energy, and from which speed on.
    - `z` [m], its deflection at the start.

    **Raises:** `ValueError` for a value outside its domain; in a contact, for a start beyond
    breakaway.

    **Source:** C. Canudas de Wit, H. Olsson, K. J. Åström, P. Lischinsky, IEEE Trans. Automatic
    Control 40(3), 1995; v_d: H. Olsson, Control Systems with Friction, thesis, Lund, 1996; the
    default of v_d is derived here.

    A block under half of its breakaway force bends the bristle and stays, 1e-5*ln(2) m on:

    >>> import frictax as fx, jax.numpy as jnp
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction(
    ...         "mass",
    ...         f_pos=fx.Coulomb(F_Coulomb=1.0),
    ...         bristle=fx.LuGre(sigma_0=1e5, sigma_1=600.0),
    ...     ),
    ...     drive=fx.Force("mass", fx.Ramp(height=0.5, duration=1.0)),
    ... )
    >>> run = fx.simulate(block, jnp.array([0.0, 1.0, 2.0]))
    >>> [round(1e6 * float(s), 2) for s in run["mass"].s]
    [0.0, 6.87, 6.94]
    >>> [round(float(f), 3) for f in run["friction"].f]
    [0.0, 0.5, 0.5]
    """

    sigma_0: Scalar = parameter(Positive(), "N/m")
    sigma_1: Scalar = parameter(AtLeast(0.0), "N.s/m", default=0.0)
    v_d: Scalar | None = parameter(Fading(), "m/s", fit=False, default=None)
    z: Scalar = parameter(Real(), "m", fit=False, default=0.0)

    def damping(self, speed: Values, law: AbstractLaw) -> Values:
        return faded(self.sigma_1, self.v_d, speed, law)
