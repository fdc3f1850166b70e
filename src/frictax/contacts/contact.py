"""`AbstractContact`: the interface of every friction element, and the values of its laws."""

import abc
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from frictax.annotations import ScalarLike
from frictax.laws import AbstractLaw
from frictax.laws.law import entry
from frictax.parameters import CheckedModule, Integer, Number
from frictax.signals import check_signal


class AbstractContact(CheckedModule):
    """Dry friction between two bodies, or between a body and the housing.

    s [m] and v [m/s] are position and velocity of the first body relative to the second. During
    sliding in direction m (+1 or -1), friction is f = m * law(m*v) * scale. A stuck contact breaks
    away above the force peak * law(0) * scale. `scale` is cgeo*fn, or 1 without a normal force.

    **Example:** `SupportFriction` is a subclass.
    """

    rotational: ClassVar[bool]
    # True for a freewheel, which never slides backward.
    blocks_backward: ClassVar[bool] = False
    # True if the friction is the larger of two linear functions of the torque that the first body
    # transmits, as in a `LossyGear`.
    depends_on_torque: ClassVar[bool] = False

    def __new__(cls, *args: Any, **fields: Any) -> "AbstractContact":
        if "bristle" in fields and "bristle" not in getattr(cls, "__dataclass_fields__", {}):
            raise ValueError(
                f"`{cls.__name__}` must do without a bristle, got {fields['bristle']!r}. Only"
                " `SupportFriction`, `BearingFriction`, `Brake` and `Clutch` have one."
            )
        return super().__new__(cls, *args, **fields)

    @abc.abstractmethod
    def between(self) -> tuple[str, str | None]:
        """Return the names of the first and the second body; None for the housing."""

    @abc.abstractmethod
    def law(self, direction: int) -> AbstractLaw:
        """Return the law of sliding friction for forward (+1) or backward (-1) motion."""

    @abc.abstractmethod
    def breakaway(self) -> Number:
        """Return the ratio of breakaway force to sliding friction at rest, f0_max/f0 >= 1."""

    def normal(self, f_normalized: Number) -> Number | None:
        """Return the normal force [N] for the value `f_normalized` of the contact's signal; None
        for a contact without normal force.
        """
        return None

    def scale(self, normal: Number | None) -> Number | float:
        """Return the factor by which the law is multiplied at the normal force `normal` [N]."""
        return 1.0

    def holds(self, direction: int, scale: ScalarLike) -> Number:
        """Return the breakaway force in `direction` [N]; inf if the contact cannot break away."""
        return self.breakaway() * f0(self, direction, scale)

    def stops(self) -> tuple[Number, Number] | None:
        """Return the lowest and highest position [m] of the centre; None without hard stops."""
        return None


def check_laws(contact: AbstractContact, name: str) -> None:
    """Raise `ValueError` if the field `name` (such as ``f_pos``), or the field for backward motion
    (``f_neg``), does not contain a law.
    """
    for direction, which in ((1, name), (-1, name.replace("_pos", "_neg"))):
        # The method is taken from the class, because `contact.law` makes equinox build a module.
        law = type(contact).law(contact, direction)
        if not isinstance(law, AbstractLaw):
            raise ValueError(
                f"`{type(contact).__name__}.{which}` must be a law such as `Coulomb(F_Coulomb=5.0)`"
                f" or an M x 2 table, got {law!r}. Leave it out for the default."
            )


def law_value(
    contact: AbstractContact, direction: Integer, v: Number, piece: Integer | None
) -> Number:
    """Return the value of the law of `direction` at speed v >= 0, on segment `piece`. The forward
    law is used for the directions 1 and 0, the backward law for -1.
    """
    forward, backward = contact.law(1), contact.law(-1)
    value = _evaluate(forward, v, piece)
    if backward is forward:
        return value
    return jnp.where(direction < 0, _evaluate(backward, v, piece), value)


def _evaluate(law: AbstractLaw, v, piece) -> Any:
    value = law(v) if piece is None else law.on_piece(v, jnp.minimum(piece, law.breaks.shape[0]))
    return _never_driving(law, value)


def _never_driving(law: AbstractLaw, value: Number) -> Number:
    """Return `value`, or 0 if a user's law gives a negative value."""
    return value if law.is_nonnegative else jnp.where(value < 0, 0.0, value)


class AbstractByLaws(AbstractContact):
    """A contact with `peak`, a law such as ``f_pos``, and optionally another backward law."""

    forward: ClassVar[str]  # name of the field with the law for forward motion

    def check_rules(self) -> None:
        check_laws(self, self.forward)

    def law(self, direction: int) -> AbstractLaw:
        backward = getattr(self, self.forward.replace("_pos", "_neg"))
        return getattr(self, self.forward) if direction > 0 or backward is None else backward

    def breakaway(self: Any) -> Number:
        return self.peak


class AbstractPressed(AbstractByLaws):
    """A contact with the normal force fn = fn_max*f_normalized(t), free while fn <= 0."""

    # The derived classes declare the fields mu_pos, peak, cgeo, fn_max, f_normalized, mu_neg.

    forward = "mu_pos"

    def check_rules(self) -> None:
        super().check_rules()
        check_signal(self, "f_normalized")

    def normal(self: Any, f_normalized: Number) -> Number:
        return self.fn_max * f_normalized

    def scale(self: Any, normal: ScalarLike) -> Number:
        return self.cgeo * normal


def f0(contact: AbstractContact, direction: int, scale: ScalarLike) -> Number:
    """Return the sliding friction at rest in `direction`, >= 0 [N]."""
    law = contact.law(direction)
    return _never_driving(law, law.f0) * scale


def has_breaks(contact: AbstractContact) -> bool:
    """Return whether the forward or the backward law has `breaks` (jumps of its slope)."""
    return any(contact.law(m).breaks.shape[0] > 0 for m in (1, -1))


def piece_at(contact: AbstractContact, direction: Integer, speed: Any) -> Integer:
    """Return the index of the segment with `speed` in the law for `direction`."""
    return jnp.sum(_edges(contact, direction)[1:-1] <= speed, dtype=jnp.int32)


def piece_limits(
    contact: AbstractContact, direction: Integer, piece: Integer
) -> tuple[Number, Number]:
    """Return the speeds at which segment `piece` of the law of `direction` begins and ends. The
    first segment begins at -inf, and the last segment ends at inf.
    """
    speeds = _edges(contact, direction)
    return entry(speeds, piece), entry(speeds, piece + 1)


def _edges(contact: AbstractContact, direction: Integer) -> Float[Array, " n"]:
    """Return the segment limits of the law of `direction`: -inf, its breaks, and inf. If the law
    for the opposite direction has more breaks, inf is repeated, so that the arrays of both laws
    have the same length.
    """
    laws = [contact.law(1), contact.law(-1)]
    most = max(law.breaks.shape[0] for law in laws)
    rows = [
        jnp.concatenate(
            [jnp.full(1, -jnp.inf), law.breaks, jnp.full(most - law.breaks.shape[0] + 1, jnp.inf)]
        )
        for law in laws
    ]
    return jnp.where(direction < 0, rows[1], rows[0])
