"""The elasto-plastic bristle of Dupont, Hayward, Armstrong and Altpeter."""

import jax
import jax.numpy as jnp

from frictax.laws import AbstractLaw
from frictax.parameters import AtLeast, Between, Number, Positive, Real, Scalar, Values, parameter
from frictax.parameters.arrays import larger, smaller

from .bristle import AbstractBristle, Fading, absolute_speed, fading_damping


class ElastoPlastic(AbstractBristle):
    """A bristle that bends like a spring, without slip, up to a given fraction of its limit.

    While the deflection is below this fraction, the contact does not creep, even under an
    oscillating load.

    dz/dt = v*(1 - alpha*sigma_0*z*sign(v)/g(abs(v))) and
    f = sigma_0*z + sigma_1(v)*dz/dt + viscous part

    The slip alpha depends on the deflection. z_ss = g/sigma_0 is the deflection limit at the
    present speed, and z_e = z_ba*min(g)/sigma_0 is the end of the spring range. alpha is 0 while
    abs(z) < z_e or while abs(z) decreases. alpha is 1 for abs(z) > z_ss. In between, alpha is (1 +
    sin(pi*(abs(z) - (z_ss + z_e)/2)/(z_ss - z_e)))/2.

    **Arguments:** `sigma_0`, `sigma_1`, `v_d`, `z`: see `LuGre`; `z_ba`, between 0 and 1: the end
    of the spring range as a fraction of the smallest deflection limit over all speeds.

    **Raises:** `ValueError` for a value outside its domain; in a contact, for a `z` beyond
    breakaway.

    **Source:** P. Dupont, V. Hayward, B. Armstrong, F. Altpeter, IEEE Trans. Automatic Control
    47(5), 2002, where z_ba is a length.

    A load between 0.2 and 0.8 times the breakaway force moves the block only at the beginning:

    >>> import frictax as fx, jax.numpy as jnp
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction(
    ...         "mass",
    ...         f_pos=fx.Coulomb(F_Coulomb=1.0),
    ...         bristle=fx.ElastoPlastic(sigma_0=1e5, sigma_1=600.0, z_ba=0.9),
    ...     ),
    ...     drive=fx.Force("mass", fx.Sine(amplitude=0.3, f=5.0, offset=0.5)),
    ... )
    >>> run = fx.simulate(block, jnp.array([0.0, 2.0, 4.0]))
    >>> [round(1e6 * float(s), 3) for s in run["mass"].s[1:]]
    [4.443, 4.443]
    """

    sigma_0: Scalar = parameter(Positive(), "N/m")
    sigma_1: Scalar = parameter(AtLeast(0.0), "N.s/m", default=0.0)
    z_ba: Scalar = parameter(Between(0.0, 1.0), "1", default=0.7)
    v_d: Scalar | None = parameter(Fading(), "m/s", fit=False, default=None)
    z: Scalar = parameter(Real(), "m", fit=False, default=0.0)

    def rate(self, v: Number, force: Number, g: Number, least: Number) -> Number:
        # r is the deflection in the direction of motion, divided by the deflection limit.
        r = jnp.where(v < 0, -force, force) / g
        return self.sigma_0 * v * (1 - self._slip(r, self._spring(g, least)) * r)

    def damping(self, speed: Values, law: AbstractLaw) -> Values:
        return fading_damping(self.sigma_1, self.v_d, speed, law)

    def moved(self, x: Number, force: Number, g: Number, least: Number) -> tuple[Number, Number]:
        # With r = s*force/g and q = sigma_0*abs(x)/g the equation is dr/dq = 1 - alpha(r)*r. Up to
        # r = b, r is linear in q. Beyond b the code integrates p with 1 - r = exp(-p), because
        # dp/dq = (1 - alpha*r)/(1 - r) is smooth and tends to 1.
        s, q = jnp.where(x < 0, -1.0, 1.0), self.sigma_0 * absolute_speed(x) / g
        r0 = s * force / g
        b = self._spring(g, least)
        straight = smaller(larger(b - r0, 0.0), q)
        r1 = r0 + straight
        # After a distance of 40 deflection limits, the force does not depend on its initial value.
        left = smaller(q - straight, 40.0)
        begun = smaller(r1, 1 - 1e-9)

        def rate_of_p(p: Number) -> Number:
            gap = jnp.exp(-p)
            return (1 - self._slip(1 - gap, b) * (1 - gap)) / gap

        def gone(steps: int) -> tuple[Number, Number]:
            step = left / steps

            def on(_, carry) -> tuple[Number, Number]:
                p, area = carry
                a = rate_of_p(p)
                b = rate_of_p(p + 0.5 * step * a)
                c = rate_of_p(p + 0.5 * step * b)
                d = rate_of_p(p + step * c)
                end = p + step * (a + 2 * b + 2 * c + d) / 6
                middle = p + step * (5 * a + 4 * (b + c) - d) / 24
                area = area + step * (jnp.exp(-p) + 4 * jnp.exp(-middle) + jnp.exp(-end)) / 6
                return end, area

            return jax.lax.fori_loop(0, steps, on, first) if steps else first

        first = (-jnp.log1p(-begun), jnp.zeros_like(left))
        # For left <= 0.5, four Runge-Kutta steps are accurate. For larger values, 24 steps are.
        which = jnp.where(q > straight, jnp.where(left > 0.5, 2, 1), 0)
        p, area = jax.lax.switch(which, [lambda n=n: gone(n) for n in (0, 4, 24)])
        slips = q > straight
        end = jnp.where(slips, 1 - jnp.exp(-p), r1)
        # `total` is the integral of r over the linear part, plus the integral over the part where r
        # = 1 - exp(-p).
        total = straight * (r0 + r1) / 2 + jnp.where(slips, q - straight - area, 0.0)
        # If the limit has decreased below the deflection, the bristle slips over the whole motion.
        over, beyond = r0 > 1, larger(r0 - 1, 0.0)
        end = jnp.where(over, 1 + beyond * jnp.exp(-q), end)
        total = jnp.where(over, q - beyond * jnp.expm1(-q), total)
        still = q == 0
        mean = jnp.where(still, r0, total / jnp.where(still, 1.0, q))
        return s * g * end, s * g * mean

    def _spring(self, g: Number, least: Number) -> Number:
        """Return the end of the spring range as a fraction of the limit `g` at this speed."""
        return smaller(self.z_ba * least / g, 0.999)

    def _slip(self, r: Number, b: Number) -> Number:
        """Return alpha at the relative deflection `r`: the deflection in the direction of motion,
        divided by its limit. `b` is the relative deflection at which the spring range ends.
        """
        return 0.5 * (1 - jnp.cos(jnp.pi * smaller(larger((r - b) / (1 - b), 0.0), 1.0)))
