"""The LuGre bristle, and the base class that it shares with Dahl's bristle."""

import jax.numpy as jnp

from frictax.laws import AbstractLaw
from frictax.parameters import AtLeast, Number, Positive, Real, Scalar, Values, parameter

from .bristle import AbstractBristle, Fading, absolute_speed, fading_damping

# Sliding distance, divided by the deflection limit, below which a series is more accurate.
SMALL_WAY = 1e-2


class Rubbing(AbstractBristle):
    """A bristle that slips in proportion to z: dz/dt = v - sigma_0*abs(v)*z/g(abs(v))."""

    def rate(self, v: Number, force: Number, g: Number, least: Number) -> Number:
        return self.sigma_0 * (v - absolute_speed(v) * force / g)

    def moved(self, x: Number, force: Number, g: Number, least: Number) -> tuple[Number, Number]:
        end = jnp.where(x < 0, -g, g)
        q = self.sigma_0 * absolute_speed(x) / g
        small = q < SMALL_WAY
        safe = jnp.where(small, 1.0, q)
        # `rest` is 1 - (1 - exp(-q))/q. For small q, a series is more accurate.
        series = q * (1 / 2 - q * (1 / 6 - q * (1 / 24 - q * (1 / 120 - q / 720))))
        rest = jnp.where(small, series, 1 + jnp.expm1(-safe) / safe)
        gone = -jnp.expm1(-q)
        return force + gone * (end - force), force + rest * (end - force)


class LuGre(Rubbing):
    """The bristle of Lund and Grenoble. It bends like a spring and slips in proportion to its
    deflection z.

    dz/dt = v - sigma_0*abs(v)*z/g(abs(v)) and
    f = sigma_0*z + sigma_1(v)*dz/dt + viscous part, with
    sigma_1(v) = sigma_1*exp(-(v/v_d)**2)

    The contact's law is the sum of g and the viscous part, which is often called sigma_2*v.
    Therefore the parameter `F_prop` of `Coulomb` and `Stribeck` is sigma_2.

    If the law falls with speed, a constant sigma_1 makes friction *generate* energy when a bent
    bristle reaches a high speed. With the parameters of the first source, friction can generate
    energy above 0.014 m/s. With the default of `v_d`, friction never generates energy. Under an
    oscillating load below breakaway the contact creeps (with `ElastoPlastic` it does not).

    **Arguments:**

    - `sigma_0` > 0: stiffness of the bristle [N/m]; [N.m/rad] for a contact that turns.
    - `sigma_1` >= 0: damping of the bristle [N.s/m]. The value 2*zeta*sqrt(sigma_0*m) - F_prop
      gives a mass m the damping ratio zeta while it does not slide. Therefore a good sigma_1
      depends on the machine more than on the faces.
    - `v_d` > 0: speed [m/s] over which the damping decreases. Default: 1/fexp of a `Stribeck`, or a
      lower speed if friction can generate energy at v_d = 1/fexp; inf for a law that does not fall.
      `jnp.inf` means a constant sigma_1. If friction can generate energy with the given v_d, a
      warning prints the lowest speed at which this happens.
    - `z`: deflection of the bristle at the start of a run [m].

    **Raises:** `ValueError` for a value outside its domain; in a contact, for a `z` beyond
    breakaway.

    **Source:** C. Canudas de Wit, H. Olsson, K. J. Åström, P. Lischinsky, IEEE Trans. Automatic
    Control 40(3), 1995; v_d: H. Olsson, Control Systems with Friction, thesis, Lund, 1996; the
    default of v_d is derived here.

    A block is pulled with half of its breakaway force. It moves by 1e-5*ln(2) m and stays at rest:

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
        return fading_damping(self.sigma_1, self.v_d, speed, law)
