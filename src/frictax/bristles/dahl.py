"""`Dahl`: Dahl's bristle, which is `LuGre` without damping and with an exponent."""

import jax.numpy as jnp
import numpy as np

from frictax.annotations import Checked
from frictax.parameters import Number, Positive, Real, Scalar, as_array, parameter
from frictax.parameters.arrays import larger

from .bristle import absolute_speed
from .lugre import SMALL_WAY, Rubbing


class Dahl(Rubbing):
    """Dahl's bristle: `LuGre` without damping.

    Under a constant law F_C, friction depends on the distance moved and not on the speed. With r =
    1 - f/F_C, forward motion by dx changes the friction by

        df/dx = sigma_0*sign(r)*abs(r)**exponent

    With the exponent 1, a motion by the distance x after a reversal at the force F_r gives f =
    F_C - (F_C - F_r)*exp(-sigma_0*x/F_C).

    **Arguments:**

    - `sigma_0` > 0: stiffness [N/m]; [N.m/rad] for a contact that turns.
    - `z`: deflection of the bristle at the start of a run [m].
    - `exponent` > 0, default 1. With an exponent below 1 the contact yields later and more
      suddenly, and slides fully after a finite distance, like brittle materials. With an exponent
      above 1 the contact creeps from the beginning. In the limit 0 the bristle is a spring in
      series with a slider, like a `MaxwellSlip` with one element.

    **Raises:** `ValueError` for a value outside its domain; in a contact, for a `z` beyond
    breakaway.

    **Source:** P. R. Dahl, A solid friction model, The Aerospace Corporation TOR-0158(3107-18)-1,
    1968.

    A body is moved by 10 um from rest. The example compares friction from the simulation and from
    the formula:

    >>> import frictax as fx, jax.numpy as jnp
    >>> stage = fx.Mechanism(
    ...     table=fx.Mass(m=1.0),
    ...     drive=fx.Position("table", lambda t: 1e-5 * t),
    ...     guide=fx.SupportFriction(
    ...         "table", f_pos=fx.Coulomb(F_Coulomb=1.0), bristle=fx.Dahl(sigma_0=1e5)
    ...     ),
    ... )
    >>> run = fx.simulate(stage, jnp.array([0.0, 1.0]))
    >>> round(float(run["guide"].f[-1]), 6), round(1 - float(jnp.exp(-1.0)), 6)
    (0.632121, 0.632121)
    """

    sigma_0: Scalar = parameter(Positive(), "N/m")
    z: Scalar = parameter(Real(), "m", fit=False, default=0.0)
    # A Python number is not converted to an array, so that compiled code for the exponent 1 does
    # not compute a power.
    exponent: Checked[float] | Scalar = parameter(
        Positive(),
        "1",
        fit=False,
        default=1.0,
        converter=lambda e: float(e) if isinstance(e, int | float | np.number) else as_array(e),
    )

    @property
    def _is_plain(self) -> bool:
        return isinstance(self.exponent, float) and self.exponent == 1.0

    def rate(self, v: Number, force: Number, g: Number, least: Number) -> Number:
        if self._is_plain:
            return super().rate(v, force, g, least)
        r = 1 - jnp.where(v < 0, -force, force) / g
        # The result contains sign(r)*abs(r)**exponent, whose slope at 0 may be infinite. Below
        # abs(r) = 1e-4 a linear function replaces this power.
        size = larger(jnp.abs(r), 1e-4)
        return self.sigma_0 * v * r * jnp.exp((self.exponent - 1) * jnp.log(size))

    def moved(self, x: Number, force: Number, g: Number, least: Number) -> tuple[Number, Number]:
        if self._is_plain:
            return super().moved(x, force, g, least)
        # With u = abs(r) and the sliding distance q, du/dq = -u**exponent. With p = 1 - exponent
        # and w = q*u0**-p, the solution is u = u0*(1 - p*w)**(1/p), and u = 0 for p*w >= 1.
        p = 1 - jnp.asarray(self.exponent, g.dtype)
        end = jnp.where(x < 0, -g, g)
        size = jnp.abs(end - force) / g
        bent = size > 0
        u0 = jnp.where(bent, size, 1.0)
        w = self.sigma_0 * absolute_speed(x) / g * jnp.exp(-p * jnp.log(u0))
        # log(1 - p*w)/p is -w for p = 0 and -inf for p*w >= 1. Near an exponent at which a formula
        # is singular, the code uses the limit of the formula.
        singular = 1e-6
        near, left = jnp.abs(p) < singular, p * w < 1
        log = jnp.log1p(-jnp.where(left, p * w, 0.0)) / jnp.where(near, 1.0, p)
        log = jnp.where(near, -w - 0.5 * p * w**2, jnp.where(left, log, -jnp.inf))
        # `area` is the integral of u/u0 over w. `rest` is 1 minus the mean of u/u0.
        power = (1 + p) * log
        near = jnp.abs(1 + p) < singular
        area = jnp.where(near, -log, -jnp.expm1(power) / jnp.where(near, 1.0, 1 + p))
        small = w * (1 + 5 * jnp.abs(p)) < SMALL_WAY
        series = 1.0
        for i in (5, 4, 3, 2):
            series = 1 - (1 - (i - 1) * p) * w / (i + 1) * series
        rest = jnp.where(small, 0.5 * w * series, 1 - area / jnp.where(small, 1.0, w))
        gone = -jnp.expm1(log)
        return force + gone * (end - force), force + rest * (end - force)
