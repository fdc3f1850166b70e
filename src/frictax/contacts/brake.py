"""Modelica.Mechanics.Translational.Components.Brake."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from frictax.contacts.contact import AbstractContact, check_laws
from frictax.laws import AbstractLaw, Characteristic, Table, as_law
from frictax.parameters import AtLeast, Scalar, check, parameter
from frictax.signals import Drive, as_signal, check_signal


class Brake(AbstractContact):
    """A brake between a body and its support, pressed on by a force over time.

    fn = fn_max*f_normalized(t); sliding: f = cgeo*mu_pos(v)*fn; stuck up to f0_max = peak*cgeo*mu_pos(0)*fn; free while fn <= 0.

    **Arguments:**

    - `body`: name of the body it acts on, with ``.flange_a`` if not its flange_b.
    - `mu_pos`: law or M x 2 table of the friction coefficient [1] over speed v >= 0 [m/s]; default [[0, 0.5]].
    - `peak` >= 1: breakaway over sliding friction at rest.
    - `cgeo` >= 0 [1]: geometry constant, 1 for one pair of faces, 2 for two.
    - `fn_max` >= 0 [N]: normal force at f_normalized = 1.
    - `f_normalized`: a signal, a function of time or a number; meant for 0 to 1, not limited.
    - `mu_neg`: the coefficient of motion backward; default `mu_pos`. `support`: as of `SupportFriction`.

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

    def __check_init__(self) -> None:
        check(self)

    def check_rules(self) -> None:
        """Raise `ValueError` for laws and signals that are none."""
        check_laws(self, "mu_pos")
        check_signal(self, "f_normalized")

    def law(self, direction: int) -> AbstractLaw:
        return self.mu_pos if direction > 0 or self.mu_neg is None else self.mu_neg

    def breakaway(self) -> Float[Array, ""]:
        return self.peak

    def normal(self, f_normalized: Float[Array, ""]) -> Float[Array, ""]:
        return self.fn_max * f_normalized

    def scale(self, normal: Any) -> Float[Array, ""]:
        return self.cgeo * normal
