"""Modelica.Mechanics.Translational.Components.SupportFriction."""

import equinox as eqx

from frictax.bristles import AbstractBristle
from frictax.laws import Characteristic, Table, as_law
from frictax.parameters import AtLeast, Scalar, parameter

from .rubbing import AbstractRubbing


class SupportFriction(AbstractRubbing):
    """Friction between a body and its support, such as a sledge on its guide.

    Sliding: f = f_pos(v) forward, f = -f_neg(-v) backward. Stuck: f is what holds the body, up to
    f0_max = peak*f_pos(0).

    **Arguments:**

    - `body`: name of the body it acts on, with ``.flange_a`` if not its flange_b.
    - `f_pos`: law or M x 2 table of force [N] over speed v >= 0 [m/s]; default [[0, 1]].
    - `peak` >= 1: breakaway over sliding friction at rest.
    - `f_neg`: the law of backward motion, also over speed >= 0; default `f_pos`.
    - `support`: name of the `Fixed` or of the body that `s` is measured from and that carries the
      reaction (Modelica's useSupport); default: the housing at 0.
    - `bristle`: the presliding model: `LuGre`, `Dahl`, `ElastoPlastic`, `MaxwellSlip`; default: the
      contact sticks. A contact with a bristle is not in `run.events`, its `peak` must be 1, and its
      breakaway force is the law at rest.

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
