"""`Clutch` of Modelica.Mechanics.Rotational.Components, and its geometry constant."""

from typing import TypeVar

import equinox as eqx
import numpy as np
from jax import Array

from frictax.bristles import AbstractBristle
from frictax.laws import Characteristic, Table, as_law
from frictax.parameters import AtLeast, Scalar, parameter
from frictax.signals import Drive, as_signal

from .contact import AbstractPressed
from .rubbing import AbstractRubbing


class AbstractClutch(AbstractPressed):
    """A contact with a normal force between two turning bodies, `a` and `b`."""

    rotational = True
    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    mu_pos: Characteristic = eqx.field(converter=as_law, default_factory=lambda: Table([[0, 0.5]]))
    peak: Scalar = parameter(AtLeast(1.0), "1", default=1.0)
    cgeo: Scalar = parameter(AtLeast(0.0), "m", default=1.0)
    fn_max: Scalar = parameter(AtLeast(0.0), "N", default=1.0)
    f_normalized: Drive = eqx.field(converter=as_signal, default=1.0)

    def between(self) -> tuple[str, str | None]:
        return self.b, self.a


class Clutch(AbstractRubbing, AbstractClutch):
    """Friction between two turning bodies, pressed together by a force over time.

    The relative speed is w_rel = w_b - w_a, and the normal force is fn = fn_max*f_normalized(t).
    Sliding: tau = cgeo*mu_pos(w_rel)*fn for w_rel > 0, and mirrored for w_rel < 0. The bodies stay
    stuck up to tau0_max = peak*cgeo*mu_pos(0)*fn. The bodies are free while fn <= 0. A positive tau
    acts on b backward and on a forward.

    **Arguments:**

    - `a`, `b`: names of the two bodies; one may be a `Fixed`.
    - `mu_pos`: law or M x 2 table of the friction coefficient [1] over speed w >= 0 [rad/s];
      default [[0, 0.5]]. Typical values are 0.1 to 0.3 for dry linings on metal and 0.05 to 0.15
      for wet linings.
    - `peak` >= 1: ratio of breakaway torque to sliding friction at rest.
    - `cgeo` >= 0 [m]: geometry constant, see `clutch_geometry`.
    - `fn_max` >= 0 [N]: normal force at f_normalized = 1.
    - `f_normalized`: a signal, a function of time or a number, usually between 0 and 1 (values are
      not limited).
    - `mu_neg`: the coefficient for w_rel < 0; default `mu_pos`.
    - `bristle`: the presliding model, see `BearingFriction`. The bristle's `sigma_0` [1/rad] and
      `sigma_1` [s/rad] are multiplied by cgeo*fn, like the law. When the normal force becomes 0,
      the bristle loses its deflection.

    **Raises:** `ValueError` for a value outside its domain.

    **Source:** Modelica Standard Library 4.1.0.

    One of two equal wheels turns. A clutch locks both wheels at the mean of their speeds:

    >>> import frictax as fx, jax.numpy as jnp
    >>> train = fx.Mechanism(
    ...     a=fx.Inertia(J=1.0, w=10.0),
    ...     b=fx.Inertia(J=1.0),
    ...     clutch=fx.Clutch("a", "b", mu_pos=[[0, 0.5]], fn_max=20.0),
    ... )
    >>> run = fx.simulate(train, ts=jnp.array([0.0, 1.0]))
    >>> (
    ...     round(float(run.events.time[0]), 9),
    ...     round(float(run["b"].w[-1]), 9),
    ...     bool(run["clutch"].locked[-1]),
    ... )
    (0.5, 5.0, True)
    """

    mu_neg: Characteristic | None = eqx.field(converter=as_law, default=None)
    bristle: AbstractBristle | None = None


Length = TypeVar("Length", float, np.ndarray, Array)


def clutch_geometry(N: int, r0: Length, ri: Length) -> Length:
    """Return the geometry constant cgeo = N*(r0 + ri)/2 [m] of a clutch or brake.

    The clutch has N friction faces between the radii ri and r0 [m]. A plate that is pressed on both
    sides has two faces. The formula is exact for uniform wear. For narrow rings, the formula for
    uniform pressure gives nearly the same value.

    **Source:** Modelica.Mechanics.Rotational.Components.Clutch.

    >>> clutch_geometry(N=2, r0=0.12, ri=0.08)
    0.2
    """
    return N * (r0 + ri) / 2
