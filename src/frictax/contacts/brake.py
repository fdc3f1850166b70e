"""`Brake` of Modelica.Mechanics.Translational.Components and of Rotational.Components."""

import equinox as eqx

from frictax.bristles import AbstractBristle
from frictax.laws import Characteristic, Table, as_law
from frictax.parameters import AtLeast, Scalar, parameter
from frictax.signals import Drive, as_signal

from .contact import AbstractPressed
from .rubbing import AbstractRubbing


class Brake(AbstractRubbing, AbstractPressed):
    """A brake between a sliding or turning body and its support, with a normal force over time.

    The normal force is fn = fn_max*f_normalized(t). Sliding: f = cgeo*mu_pos(v)*fn. The body stays
    stuck up to the breakaway force f0_max = peak*cgeo*mu_pos(0)*fn. The body is free while fn <= 0.
    On a turning body, f is a torque [N.m], called `tau` in results, and v is an angular velocity
    [rad/s].

    **Arguments:**

    - `body`: name of the body that the brake acts on, with ``.flange_a`` if it does not act at
      flange_b.
    - `mu_pos`: law or M x 2 table of the friction coefficient [1] over speed v >= 0 [m/s or rad/s];
      default [[0, 0.5]]. Typical values are 0.1 to 0.3 for dry linings on metal and 0.05 to 0.15
      for wet linings.
    - `peak` >= 1: ratio of breakaway force to sliding friction at rest.
    - `cgeo` >= 0: geometry constant. For a sliding body `cgeo` is the number of pairs of faces [1].
      For a turning body `cgeo` is a length [m], see `clutch_geometry`.
    - `fn_max` >= 0 [N]: normal force at f_normalized = 1.
    - `f_normalized`: a signal, a function of time or a number, usually between 0 and 1 (values are
      not limited). For a normal force that depends on the motion, give a `MotionDependent`.
    - `mu_neg`: the law for backward motion; default `mu_pos`. `support`: see `SupportFriction`.
    - `bristle`: the presliding model, see `SupportFriction`. The bristle's `sigma_0` [1/m or 1/rad]
      and `sigma_1` [s/m or s/rad] are multiplied by cgeo*fn, like the law. When the normal force
      becomes 0, the bristle loses its deflection.

    **Raises:** `ValueError` for a value outside its domain.

    **Source:** Modelica Standard Library 4.1.0.

    >>> import frictax as fx
    >>> brake = fx.Brake("mass", fn_max=1.0, f_normalized=fx.Step(height=2.0, startTime=0.1))
    >>> float(brake.normal(brake.f_normalized(0.5)))
    2.0
    """

    body: str = eqx.field(static=True)
    mu_pos: Characteristic = eqx.field(converter=as_law, default_factory=lambda: Table([[0, 0.5]]))
    peak: Scalar = parameter(AtLeast(1.0), "1", default=1.0)
    cgeo: Scalar = parameter(AtLeast(0.0), "1", default=1.0)
    fn_max: Scalar = parameter(AtLeast(0.0), "N", default=1.0)
    f_normalized: Drive = eqx.field(converter=as_signal, default=1.0)
    mu_neg: Characteristic | None = eqx.field(converter=as_law, default=None)
    support: str | None = eqx.field(static=True, default=None)
    bristle: AbstractBristle | None = None

    def between(self) -> tuple[str, str | None]:
        return self.body, self.support
