"""The Maxwell-slip bristle: springs in parallel, each in series with a slider."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from frictax.annotations import ArrayLike, ScalarLike
from frictax.parameters import (
    Modes,
    Number,
    Positive,
    Real,
    Scalar,
    Vector,
    as_array,
    is_traced,
    parameter,
)
from frictax.parameters.arrays import smaller

from .bristle import AbstractBristle


class MaxwellSlip(AbstractBristle):
    """Elements in parallel, each a spring in series with a slider. Each element sticks until its
    force reaches a given fraction of the law. After that, the element slips until the motion
    reverses.

    While element i sticks, dF_i/dt = k_i*v. g(abs(v)) is the law without its viscous part. The
    element begins to slip when F_i reaches share_i*g(abs(v)) in the direction of motion, which is
    an event. The element sticks again when v changes its sign. While the element slips, F_i =
    share_i*g(abs(v)) for forward motion. If `C` is given, F_i approaches this force: dF_i/dt =
    C*(share_i - F_i/g(abs(v))). The friction is the sum of all F_i and the viscous part.

    The hysteresis of the contact follows Masing's rules: a small loop inside a large loop closes.
    After the small loop, the motion continues as if this loop had not occurred. Under an
    oscillating load below breakaway the contact does not creep. While all elements stick, only
    `F_prop` of the law damps the motion, and a mass m oscillates at sqrt(sum(k)/m) rad/s.

    **Arguments:**

    - `k` > 0 (n,) [N/m]: stiffness of each element; [N.m/rad] for a contact that turns.
    - `share` > 0 (n,): fraction of the law that each element carries; the values are normalised to
      the sum 1. Default: equal fractions. To fit the shares, name the parameter `ratio` (n-1,):
      share[1:]/share[0]. Any positive ratio is valid.
    - `C` > 0 [N/s]: rate at which the force of a slipping element approaches the law, as in the
      generalized Maxwell-slip model (GMS). By default the force follows without delay.
    - `z` (n,) [m]: deflection of each spring at the start; default 0.

    **Raises:** `ValueError` for a value outside its domain and for vectors of different lengths; in
    a contact, for a `z` beyond breakaway.

    **Source:** W. D. Iwan, Journal of Applied Mechanics 33(4), 1966; GMS: V. Lampaert, F.
    Al-Bender, J. Swevers, Physics and Control, St. Petersburg, 2003.

    A table is moved by 30 um. Each of three elements has the limit 0.4 N. The first element slips
    after 10 um, the second after 20 um:

    >>> import frictax as fx, jax.numpy as jnp
    >>> guide = fx.SupportFriction(
    ...     "table", f_pos=fx.Coulomb(F_Coulomb=1.2), bristle=fx.MaxwellSlip(k=[4e4, 2e4, 1e4])
    ... )
    >>> stage = fx.Mechanism(
    ...     table=fx.Mass(m=1.0), guide=guide, drive=fx.Position("table", lambda t: 3e-5 * t)
    ... )
    >>> run = fx.simulate(stage, jnp.array([0.0, 0.5, 1.0]))
    >>> [round(float(f), 6) for f in run["guide"].f]
    [0.0, 0.85, 1.1]
    """

    k: Vector = parameter(Positive(), "N/m", ndim=1)
    ratio: Vector | None = parameter(Positive(), "1", fit=False, ndim=1, default=None)
    C: Scalar | None = parameter(Positive(), "N/s", default=None)
    z: Vector | None = parameter(Real(), "m", fit=False, ndim=1, default=None)

    def __init__(
        self,
        k: ArrayLike,
        share: ArrayLike | None = None,
        C: ScalarLike | None = None,
        z: ArrayLike | None = None,
    ) -> None:
        self.k, self.C, self.z = as_array(k), as_array(C), as_array(z)
        self.ratio = None
        if share is None:
            return
        shares = as_array(share)
        known = isinstance(shares, Array) and shares.ndim == 1 and shares.shape[0] > 0
        if not known or not (is_traced(shares) or np.all(np.asarray(shares) > 0)):
            raise ValueError(
                f"`MaxwellSlip.share` must be a list of numbers > 0, got {share!r}. Leave it out"
                " for equal shares."
            )
        if shares.shape[0] > 1 or np.shape(self.k)[:1] != (1,):
            self.ratio = shares[1:] / shares[0]

    def check_rules(self) -> None:
        n = self.elements
        if n < 1:
            raise ValueError("`MaxwellSlip.k` must have a stiffness at least, got none.")
        for name, has in (
            ("share", None if self.ratio is None else self.ratio.shape[0] + 1),
            ("z", None if self.z is None else self.z.shape[0]),
        ):
            if has not in (None, n):
                raise ValueError(
                    f"`MaxwellSlip.{name}` must have an entry for each of the {n} of k, got {has}."
                )

    @property
    def elements(self) -> int:
        return self.k.shape[0]

    @property
    def share(self) -> Vector:
        """The fraction of the law that each element carries (n,), with sum 1."""
        if self.ratio is None:
            return jnp.full(self.k.shape, 1.0 / self.elements, self.k.dtype)
        first = jnp.ones(1, self.ratio.dtype)
        return jnp.concatenate([first, self.ratio]) / (1.0 + jnp.sum(self.ratio))

    @property
    def sigma_0(self) -> Scalar:
        """The stiffness of all elements together [N/m]."""
        return jnp.sum(self.k)

    def start(self) -> Vector:
        return jnp.zeros_like(self.k) if self.z is None else self.k * self.z

    def energy(self, force: Vector) -> Number:
        return jnp.sum(force**2 / (2 * self.k))

    def rate(self, v: Number, force: Vector, g: Number, least: Number) -> Vector:
        """Return the rate of each element's force (n,) [N/s]. An element at its limit slips."""
        s = jnp.where(v < 0, -1, 1)
        return self.rates(v, force, g, jnp.where(s * force < self.share * g, 0, s))

    def moved(self, x: Number, force: Vector, g: Number, least: Number) -> tuple[Vector, Vector]:
        """Return the force of each element after the faces moved by `x` [m] in one direction, and
        the mean of each force over this distance. The result is exact if `g` is constant and the
        elements have no delay `C`.
        """
        s = jnp.where(x < 0, -1.0, 1.0)
        most, way = self.share * g, self.k * jnp.abs(x)
        begin = smaller(s * force, most)
        end = smaller(begin + way, most)
        still = way == 0
        # `sticks` is the fraction of the distance over which an element sticks.
        sticks = jnp.where(still, 1.0, (end - begin) / jnp.where(still, 1.0, way))
        mean = end - 0.5 * sticks * (end - begin)
        return jnp.where(still, force, s * end), jnp.where(still, force, s * mean)

    # In the following methods, `modes` (n,) is 0 for each element that sticks, and the slip
    # direction 1 or -1 for each element that slips.

    def rates(self, v: Number, force: Vector, g: Number, modes: Modes) -> Vector:
        """Return the rates of the element states (n,) [N/s]; 0 during slip without `C`."""
        slips = 0.0 if self.C is None else self.C * (modes * self.share - force / g)
        return jnp.where(modes == 0, self.k * v, slips)

    def element_forces(self, force: Vector, g: Number, modes: Modes) -> Vector:
        """Return the force of each element (n,) [N]. `force`: the state of the elements (n,)."""
        return force if self.C is not None else jnp.where(modes == 0, force, modes * self.share * g)

    def forces_after_sticking(self, force: Vector, f0: Number, modes: Modes) -> Vector:
        """Return the element states (n,) [N] when all begin to stick. `f0`: law at rest [N]."""
        most = self.share * f0
        within = jnp.inf if self.C is None else modes * force
        return jnp.where(modes == 0, force, modes * smaller(within, most))
