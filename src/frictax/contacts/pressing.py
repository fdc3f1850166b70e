"""A normal force that depends on the motion."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from frictax.annotations import ScalarLike
from frictax.parameters import Integer, Number
from frictax.signals.signal import OnePiece, check_function, with_closed_over


class MotionDependent(OnePiece):
    """What presses a brake or a clutch on, over time, position and velocity of the contact:
    f_normalized = f(t, s, v).

    s [m or rad] and v [m/s or rad/s] are those of the contact, relative where it has a support or
    lies between two bodies. So a guide under a load that moves, a cam, or a belt brake that
    tightens itself. It is free while fn <= 0; with ``either_side=True``, as in a guide that is
    pressed on one side or the other, |f| presses it on, and the kink at 0 is an event like any
    other.

    **Arguments:** `f`, a function written with jax.numpy, or an equinox module whose arrays are
    then parameters; smooth in s and v, and in t (a switch inside is stepped over); `either_side`.

    **Raises:** `ValueError` for something that is no function of three numbers; in a `Mechanism`,
    where it stands for the drive of something else than a brake or a clutch.

    A carriage of 2 kg on a rail whose lubrication gets worse along the way, mu = 0.1 under 20 N*(1
    + s)

    >>> import frictax as fx, jax.numpy as jnp
    >>> rail = fx.Mechanism(
    ...     carriage=fx.Mass(m=2.0, v=1.0),
    ...     rail=fx.Brake(
    ...         "carriage",
    ...         mu_pos=[[0, 0.1]],
    ...         fn_max=20.0,
    ...         f_normalized=fx.MotionDependent(lambda t, s, v: 1 + s),
    ...     ),
    ... )
    >>> end = fx.simulate(rail, jnp.array([0.0, 3.0]))["carriage"].s[-1]
    >>> round(float(2.0 * (end + end**2 / 2)), 6)  # the work of friction, that of m*v^2/2
    1.0
    """

    f: Callable[[Array, Array, Array], ScalarLike] = eqx.field(converter=with_closed_over(3))
    either_side: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        check_function(self, "f(t, s, v)", 3)

    def in_motion(self, t: Number, s: Number, v: Number) -> Number:
        """f(t, s, v), of either sign."""
        return jnp.asarray(self.f(t, s, v), dtype=t.dtype)

    def on_piece(self, t: Number, k: Integer) -> Number:
        raise ValueError(
            "A `MotionDependent` has no value over time alone. It presses a brake or a clutch on."
        )
