"""`OneWayClutch` of Modelica.Mechanics.Rotational.Components: a clutch with a freewheel."""

import jax.numpy as jnp

from frictax.annotations import ScalarLike
from frictax.parameters import Number
from frictax.parameters.arrays import larger

from .clutch import AbstractClutch
from .contact import f0

# Constants of the Modelica element: the smallest ratio of breakaway torque to sliding friction at
# rest, and the smallest breakaway torque relative to the sliding friction at rest for fn_max.
_LEAST_PEAK = 1 + 1e-4
_LEAST_BREAKAWAY = 1e-4


class OneWayClutch(AbstractClutch):
    """A clutch with a freewheel in parallel: b may turn faster than a, but not slower.

    The relative speed is w_rel = w_b - w_a, and the normal force is fn = fn_max*f_normalized(t).
    While w_rel > 0 the torque is tau = cgeo*mu_pos(w_rel)*fn, or 0 if fn <= 0. At w_rel = 0 the
    bodies are stuck for any torque that drives b backward.

    b begins to slide forward above tau0_max, the larger of max(peak, 1.0001)*cgeo*mu_pos(0)*fn and
    1e-4*cgeo*mu_pos(0)*fn_max. Therefore b slides at almost zero torque if fn = 0. A run that
    starts with w_rel < 0 locks at once.

    **Arguments:** those of `Clutch`, except `mu_neg` and `bristle`.

    **Raises:** `ValueError` for a value outside its domain.

    **Source:** Modelica Standard Library 4.1.0.

    A crank drives a wheel until t = 1 s. When the crank slows down, the wheel turns freely:

    >>> import frictax as fx, jax.numpy as jnp
    >>> hub = fx.Mechanism(
    ...     crank=fx.Inertia(J=1.0),
    ...     wheel=fx.Inertia(J=1.0),
    ...     hub=fx.OneWayClutch("crank", "wheel", f_normalized=0.0),
    ...     torque=fx.Torque("crank", fx.Step(height=-4.0, offset=2.0, startTime=1.0)),
    ... )
    >>> run = fx.simulate(hub, ts=jnp.array([0.0, 1.0, 2.0]))
    >>> [round(float(w), 4) for w in run["crank"].w], [round(float(w), 4) for w in run["wheel"].w]
    ([0.0, 1.0, -1.0], [0.0, 1.0, 1.0])
    """

    blocks_backward = True

    @property
    def mu_neg(self) -> None:
        """None, because the clutch never slides backward."""

    def scale(self, normal: ScalarLike) -> Number:
        return self.cgeo * larger(normal, 0.0)

    def holds(self, direction: int, scale: ScalarLike) -> Number:
        if direction < 0:
            return jnp.full_like(self.peak, jnp.inf)
        return larger(
            larger(self.peak, _LEAST_PEAK) * f0(self, 1, scale),
            _LEAST_BREAKAWAY * f0(self, 1, self.cgeo * self.fn_max),
        )
