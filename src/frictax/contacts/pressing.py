"""A normal force that depends on the motion."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from frictax.annotations import ScalarLike
from frictax.parameters import Integer, Number
from frictax.signals.signal import OnePiece, check_function, with_closed_over


class MotionDependent(OnePiece):
    """The normal force of a brake or a clutch as a function of time, position and velocity of the
    contact: f_normalized = f(t, s, v).

    s [m or rad] and v [m/s or rad/s] are those of the contact, relative to its support or between
    its two bodies. Examples are a guide under a moving load, a cam, and a self-tightening belt
    brake. The contact is free while fn <= 0. With ``either_side=True``, as in a guide that is
    pressed on one side or the other, the normal force is that of |f|, and the kink at 0 is an
    event.

    **Arguments:** `f`, a function written with jax.numpy, or an equinox module whose arrays are
    then parameters; smooth in s, v and t (the engine steps over a switch inside); `either_side`.

    **Raises:** `ValueError` for a value that is not a function of three numbers; in a `Mechanism`,
    for the drive of another part than a brake or a clutch.

    A carriage of 2 kg on a rail whose lubrication gets worse along the way: mu = 0.1 under a normal
    force of 20 N*(1 + s)

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
        """Return f(t, s, v), of either sign."""
        return jnp.asarray(self.f(t, s, v), dtype=t.dtype)

    def on_piece(self, t: Number, k: Integer) -> Number:
        raise ValueError(
            "A `MotionDependent` depends on the motion, so it is not a signal. Use it as the normal"
            " force of a brake or clutch."
        )
