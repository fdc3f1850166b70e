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

    s [m or rad] and v [m/s or rad/s] are position and velocity of the body relative to its support,
    or of body b relative to body a. Examples are a guide under a moving load, a cam, and a
    self-tightening belt brake. The contact is free while fn <= 0.

    With ``either_side=True`` the normal force is fn_max*|f|, and the corner at f = 0 is an event.
    Use this option for a guide that can be pressed on either of two sides.

    **Arguments:**

    - `f`: a function written with jax.numpy, or an equinox module whose arrays are then parameters.
      `f` must be smooth in t, s and v, because the engine does not detect a switch inside `f`.
    - `either_side`: see above; default False.

    **Raises:** `ValueError` for an `f` that is not a function of three numbers. A `Mechanism`
    raises `ValueError` if a part that is not a brake or a clutch uses a `MotionDependent`.

    A carriage of 2 kg moves on a rail that presses it harder as its position s [m] increases. mu is
    0.1, and the normal force is 20*(1 + s) N:

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
        """Return f(t, s, v), which may be negative."""
        return jnp.asarray(self.f(t, s, v), dtype=t.dtype)

    def on_piece(self, t: Number, k: Integer) -> Number:
        raise ValueError(
            "A `MotionDependent` depends on the motion, so it is not a signal. Use it as the normal"
            " force of a brake or clutch."
        )
