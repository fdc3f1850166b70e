"""`BearingFriction` of Modelica.Mechanics.Rotational.Components: friction of a turning body."""

import equinox as eqx

from frictax.bristles import AbstractBristle
from frictax.laws import Characteristic, Table, as_law
from frictax.parameters import AtLeast, Scalar, parameter

from .rubbing import AbstractRubbing


class BearingFriction(AbstractRubbing):
    """Friction between a turning body and its support, such as a shaft in its bearings.

    Sliding forward: tau = tau_pos(w). Sliding backward: tau = -tau_neg(-w). Stuck: tau is the
    torque that holds the body at rest, up to tau0_max = peak*tau_pos(0).

    **Arguments:**

    - `body`: name of the `Inertia` that the friction acts on.
    - `tau_pos`: law or M x 2 table of torque [N.m] over speed w >= 0 [rad/s]; default [[0, 1]].
    - `peak` >= 1: ratio of breakaway torque to the sliding friction tau_pos(0) at rest.
    - `tau_neg`: the law of backward motion, also over speed >= 0; default `tau_pos`.
    - `support`: name of the `Fixed` or body that carries the reaction torque. `phi` is measured
      relative to this support. Default: the housing at angle 0.
    - `bristle`: the presliding model: `LuGre`, `Dahl`, `ElastoPlastic` or `MaxwellSlip`; default:
      no bristle, and the contact sticks rigidly. A contact with a bristle has no entries in
      `run.events`. With a bristle, `peak` must be 1, and the breakaway torque is tau_pos(0).

    **Raises:** `ValueError` for a value outside its domain, and for a bristle that does not fit the
    law.

    **Source:** Modelica Standard Library 4.1.0.

    >>> import frictax as fx, jax.numpy as jnp
    >>> shaft = fx.Mechanism(
    ...     rotor=fx.Inertia(J=1.0, w=2.0),
    ...     bearing=fx.BearingFriction("rotor", tau_pos=fx.Coulomb(F_Coulomb=4.0)),
    ... )
    >>> run = fx.simulate(shaft, ts=jnp.array([0.0, 1.0]))
    >>> round(float(run["rotor"].phi[-1]), 9), bool(run["bearing"].locked[-1])
    (0.5, True)
    """

    rotational = True
    forward = "tau_pos"
    body: str = eqx.field(static=True)
    tau_pos: Characteristic = eqx.field(converter=as_law, default_factory=lambda: Table([[0, 1]]))
    peak: Scalar = parameter(AtLeast(1.0), "1", default=1.0)
    tau_neg: Characteristic | None = eqx.field(converter=as_law, default=None)
    support: str | None = eqx.field(static=True, default=None)
    bristle: AbstractBristle | None = None

    def between(self) -> tuple[str, str | None]:
        return self.body, self.support
