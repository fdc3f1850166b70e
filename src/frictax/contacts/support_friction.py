"""`SupportFriction` of Modelica.Mechanics.Translational.Components: guide friction."""

import equinox as eqx

from frictax.bristles import AbstractBristle
from frictax.laws import Characteristic, Table, as_law
from frictax.parameters import AtLeast, Scalar, parameter

from .rubbing import AbstractRubbing


class SupportFriction(AbstractRubbing):
    """Friction between a body and its support, such as a sledge on its guide.

    Sliding forward: f = f_pos(v). Sliding backward: f = -f_neg(-v). Stuck: f is the force that
    holds the body at rest, up to f0_max = peak*f_pos(0).

    **Arguments:**

    - `body`: name of the body that the friction acts on. Friction acts at flange_b, or at flange_a
      if ``.flange_a`` is added to the name.
    - `f_pos`: law or M x 2 table of force [N] over speed v >= 0 [m/s]; default [[0, 1]].
    - `peak` >= 1: ratio of breakaway force to the sliding friction f_pos(0) at rest.
    - `f_neg`: the law of backward motion, also over speed >= 0; default `f_pos`.
    - `support`: name of the `Fixed` or body that carries the reaction force (Modelica's
      useSupport). `s` is measured relative to this support. Default: the housing at position 0.
    - `bristle`: the presliding model: `LuGre`, `Dahl`, `ElastoPlastic` or `MaxwellSlip`; default:
      no bristle, and the contact sticks rigidly. A contact with a bristle has no entries in
      `run.events`. With a bristle, `peak` must be 1, and the breakaway force is f_pos(0).

    **Raises:** `ValueError` for a value outside its domain, and for a bristle that does not fit the
    law.

    **Source:** Modelica Standard Library 4.1.0; M. Otter, H. Elmqvist, S. E. Mattsson, CACSD 1999.

    >>> import frictax as fx
    >>> friction = fx.SupportFriction("mass", f_pos=[[0, 15], [1, 6.4], [12, 17]], peak=1.1)
    >>> float(friction.f_pos.f0)
    15.0
    """

    rotational = False
    forward = "f_pos"
    body: str = eqx.field(static=True)
    f_pos: Characteristic = eqx.field(converter=as_law, default_factory=lambda: Table([[0, 1]]))
    peak: Scalar = parameter(AtLeast(1.0), "1", default=1.0)
    f_neg: Characteristic | None = eqx.field(converter=as_law, default=None)
    support: str | None = eqx.field(static=True, default=None)
    bristle: AbstractBristle | None = None

    def between(self) -> tuple[str, str | None]:
        return self.body, self.support
