"""`AbstractLaw`: the interface of every friction law."""

import abc
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from frictax.parameters import Integer, Number, Numbers, Values
from frictax.pytree import Pickled


class AbstractLaw(Pickled, eqx.Module):
    """Friction force [N] as a function of the sliding speed v >= 0 [m/s]. A law may also return a
    torque [N.m] as a function of rad/s, or a friction coefficient.

    Write a formula that is smooth for v >= 0 and also slightly below 0. Do not use `abs`, because
    its derivative at rest is wrong. The contact mirrors the law for backward motion.

    A law with a part that is quadratic in the speed:

    >>> import frictax as fx
    >>> class Drag(fx.AbstractLaw):
    ...     F: float
    ...     c: float
    ...
    ...     def __call__(self, v):
    ...         return self.F + self.c * v**2
    >>> law = Drag(F=2.0, c=0.5)
    >>> float(law.f0), law(4.0)
    (2.0, 10.0)
    """

    # parameter -> its meaning in a few words, which reports print
    meanings: ClassVar[Mapping[str, str]] = {}
    # The contact determines the force unit (N, N.m or 1), so errors of a law do not print units.
    unit_of_owner: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        computed = {k for k, x in vars(AbstractLaw).items() if isinstance(x, property)}
        mine = sorted(computed & set(vars(cls).get("__annotations__", {})))
        if mine:
            raise TypeError(
                f"law {cls.__name__}: no field can be called {mine[0]}, which every law computes"
                " from itself; give the field another name"
            )

    @abc.abstractmethod
    def __call__(self, v: Values | float) -> Values:
        """Return the sliding friction force at speed `v`, in the shape of `v`."""

    @property
    def f0(self) -> Number:
        """Sliding friction at v = 0+. A subclass may override `f0` with a cheaper formula."""
        return self(jnp.zeros(()))

    @property
    def formula(self) -> str:
        """The formula of the law as a text, which reports print."""
        return f"f(v) of the law {type(self).__name__}"

    @property
    def form(self) -> dict[str, Any]:
        """Arguments of `start_near` that select the form of the law, such as an exponent."""
        return {}

    @classmethod
    def start_near(cls, rows: Any, **form: Any) -> Any:
        """Return a law near the measured `rows`, from which a fit can start. For a law without this
        method, the user must give start values for the fit.

        Each parameter value must be inside its domain, because a fit that starts at a bound stays
        there. Set each parameter to at least 1 % of a typical value.

        **Arguments:** `rows`: a `SlidingRows`, with speeds `rows.v` (n,) > 0 [m/s], sliding
        friction `rows.f` (n,) [N], its mean `rows.mean_force`, and `rows.fit_terms(*columns)`;
        `form`: the arguments `exponent` and `nodes` of `starting_law`, or the property `form` of
        the user's law.
        """
        raise NotImplementedError

    @property
    def viscous_slope(self) -> Number | float:
        """The slope [N.s/m] of the viscous part of the law; default 0.

        The viscous part acts in parallel with a bristle and does not bend the bristle. In steady
        sliding, the total friction does not depend on `viscous_slope`.
        """
        return 0.0

    @property
    def stribeck_dip(self) -> tuple[Number, Number | float] | None:
        """For a law that may fall with speed: the smallest force [N] without the viscous part, and
        1/v_s [s/m]. The force decreases mainly below the speed v_s; 1/v_s is 0 if v_s is not
        defined. None if the law does not fall, or if its class does not define these two numbers.
        """
        return None

    @property
    def breaks(self) -> Float[Numbers, " n"]:
        """Increasing speeds > 0 [m/s or rad/s] (n,) at which the slope of the law jumps.

        The engine locates these speeds as events, so the law is smooth between two events.
        """
        return np.zeros(0)

    @property
    def is_smooth(self) -> bool:
        """True if the slope of the law is smooth down to v = 0, unlike the slope of v**1.5.

        With a smooth slope, derivatives of a simulation do not need additional time steps.
        """
        return False

    @property
    def is_nonnegative(self) -> bool:
        """True if the checks of the class ensure that the law is >= 0 at all speeds.

        If False, the contact replaces negative values by 0, because friction never drives a body.
        """
        return False

    def on_piece(self, v: Number, piece: Integer) -> Number:
        """Return the force at speed `v` by the formula of segment number `piece`. The segments lie
        between the `breaks`, and the formula is also valid slightly beyond the ends of its segment.
        """
        return self(v)

    def at_temperature(self, T: Number) -> "AbstractLaw":
        """Return the law at the temperature `T` [K] of its element, with the same number of breaks.
        A law that does not depend on temperature returns itself.
        """
        return self


# Type of a field that contains a law. Its converter `as_law` also accepts a table.
if TYPE_CHECKING:
    Characteristic = Any
else:
    Characteristic = AbstractLaw


def has_start(kind: type[AbstractLaw]) -> bool:
    """Return whether the law `kind` has `start_near`, which estimates start values from data."""
    return vars(AbstractLaw)["start_near"].__func__ is not kind.start_near.__func__


def entry(x: Any, k: Int[Array, "..."] | int) -> Array:
    """Return x[k] for an index k from 0 to n - 1. The compiled program is half as long as for an
    index that may be negative.
    """
    return jnp.asarray(x).at[k].get(mode="promise_in_bounds", wrap_negative_indices=False)
