"""`AbstractLaw`: the interface of every sliding characteristic."""

import abc
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from frictax.parameters import Integer, Number, Numbers, Values
from frictax.pytree import Pickled


class AbstractLaw(Pickled, eqx.Module):
    """Friction force [N] as a function of the speed v >= 0 [m/s] while sliding (or torque over
    rad/s, or a coefficient).

    Write the formula for v >= 0 such that it continues smoothly slightly below 0. Do not use `abs`,
    because its derivative at rest is wrong. The contact mirrors the law for backward motion.

    Friction with a part quadratic in the speed:

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
        """Sliding friction at v = 0+. A law may override it with a cheaper formula."""
        return self(jnp.zeros(()))

    @property
    def viscous_slope(self) -> Number | float:
        """The slope [N.s/m] of the viscous part, which acts beside a bristle and does not bend it.
        Default 0. It does not change steady sliding.
        """
        return 0.0

    @property
    def stribeck_dip(self) -> tuple[Number, Number | float] | None:
        """For a law that may fall with speed: its smallest force [N] without the viscous part, and
        the inverse [s/m] of the speed over which it falls, 0 if it does not have such a speed. None
        for a law that does not fall, or if this is not known.
        """
        return None

    @property
    def breaks(self) -> Float[Numbers, " n"]:
        """Speeds > 0 [m/s or rad/s] at which the law has a corner, increasing, (n,).

        The engine locates them as events, so that each segment is smooth.
        """
        return np.zeros(0)

    @property
    def is_smooth(self) -> bool:
        """True if the slope is smooth, too, down to v = 0, unlike that of v**1.5.

        Then the derivatives of a run do not need shorter steps than the motion.
        """
        return False

    @property
    def is_nonnegative(self) -> bool:
        """True if the law is >= 0 at all speeds by its own rules.

        A contact replaces negative values of other laws by 0, because friction never drives.
        """
        return False

    def on_piece(self, v: Number, piece: Integer) -> Number:
        """Return the law on the segment `piece` between two breaks, continued smoothly beyond them.
        A law without breaks has one segment.
        """
        return self(v)

    def at_temperature(self, T: Number) -> "AbstractLaw":
        """Return the law at the temperature `T` [K] of its element, with the same number of breaks,
        or itself if it does not depend on temperature.
        """
        return self


# Type of a field that contains a law. The converter of the field is `as_law`.
if TYPE_CHECKING:
    Characteristic = Any
else:
    Characteristic = AbstractLaw


def entry(x: Any, k: Int[Array, "..."] | int) -> Array:
    """Return x[k] for an index k that is in range. Python's rules for other indices would double
    the program.
    """
    return jnp.asarray(x).at[k].get(mode="promise_in_bounds", wrap_negative_indices=False)
