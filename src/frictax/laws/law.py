"""What every sliding characteristic offers."""

import abc
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from frictax.parameters import Integer, Number, Numbers, Values
from frictax.pytree import Pickled


class AbstractLaw(Pickled, eqx.Module):
    """Friction force [N] over the speed v >= 0 [m/s] while sliding (or torque over rad/s, or a
    coefficient).

    Write the formula for v >= 0 and let it continue smoothly a little to the left of 0: no `abs`,
    whose derivative at rest would be wrong. The contact mirrors the law for motion backward.

    Friction that grows with the square of the speed:

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
        """The sliding friction force at speed `v`, of `v`'s shape."""

    @property
    def f0(self) -> Number:
        """Sliding friction at v = 0+; a law may say it in a cheaper way."""
        return self(jnp.zeros(()))

    @property
    def viscous_slope(self) -> Number | float:
        """The slope [N.s/m] that a bristle does not carry: the law is what bends it, and this times
        v beside it. 0 unless a law says so; its steady sliding is the same either way.
        """
        return 0.0

    @property
    def stribeck_dip(self) -> tuple[Number, Number | float] | None:
        """Of a law that may fall with speed: the least force [N] that it falls to, but for
        `viscous_slope`, and the inverse [s/m] of the speed over which it falls, 0 where it has
        none; None for a law that does not fall, or of which that is not known.
        """
        return None

    @property
    def breaks(self) -> Float[Numbers, " n"]:
        """Speeds > 0 [m/s or rad/s] at which the law has a corner, rising, (n,).

        The engine locates them, so that each piece is smooth.
        """
        return np.zeros(0)

    @property
    def is_smooth(self) -> bool:
        """Whether its slope is known to be smooth too, down to v = 0, unlike that of v**1.5.

        If so, the derivatives of a run need no shorter steps than the motion.
        """
        return False

    @property
    def is_nonnegative(self) -> bool:
        """Whether it is >= 0 at all speeds by its own rules.

        Of any other law a contact takes what is below 0 as 0, since friction never drives.
        """
        return False

    def on_piece(self, v: Number, piece: Integer) -> Number:
        """The piece between two breaks, continued smoothly beyond them; a law without breaks has
        one.
        """
        return self(v)

    def at_temperature(self, T: Number) -> "AbstractLaw":
        """The law at the temperature `T` [K] of its element, with the same number of breaks; itself
        where it does not depend on that.
        """
        return self


# What a field for a law holds; `as_law` makes it one.
if TYPE_CHECKING:
    Characteristic = Any
else:
    Characteristic = AbstractLaw


def entry(x: Any, k: Int[Array, "..."] | int) -> Array:
    """x[k] for k known to lie inside: for any others, Python's rules are half of what there is to
    compile.
    """
    return jnp.asarray(x).at[k].get(mode="promise_in_bounds", wrap_negative_indices=False)
