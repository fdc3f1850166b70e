"""What every friction element offers to the mechanism."""

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
    """Dry friction between two bodies, or a body and the housing.

    With s [m] and v [m/s] of the first relative to the second, sliding in direction m (+1 or -1) is
    opposed by f = m * law(m*v) * scale, and a stuck contact holds up to peak * law(0) * scale.

    **Example:** `SupportFriction` is one.
    """

    rotational: ClassVar[bool]
    # whether it is a freewheel, which never slides backward
    blocks_backward: ClassVar[bool] = False
    # whether its friction is the greater of two straight lines in the torque that its first body
    # hands on, as in a `LossyGear`
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
        """The names of the body whose motion it is and of that which the motion is relative to;
        None: the housing.
        """

    @abc.abstractmethod
    def law(self, direction: int) -> AbstractLaw:
        """The sliding characteristic of motion forward (+1) or backward (-1)."""

    @abc.abstractmethod
    def breakaway(self) -> Number:
        """Breakaway over sliding friction at rest, f0_max/f0 >= 1."""

    def normal(self, f_normalized: Number) -> Number | None:
        """Normal force [N] when the contact's signal has the value `f_normalized`; None when it is
        always pressed on.
        """
        return None

    def scale(self, normal: Number | None) -> Number | float:
        """The factor on the law, of the normal force."""
        return 1.0

    def holds(self, direction: int, scale: ScalarLike) -> Number:
        """The force that breaks the contact away in `direction`, >= 0 [N]; inf where it
        never does.
        """
        return self.breakaway() * f0(self, direction, scale)

    def stops(self) -> tuple[Number, Number] | None:
        """The lowest and highest position [m] of the body's centre, where hard stops stand; None
        without stops.
        """
        return None


def check_laws(contact: AbstractContact, name: str) -> None:
    """Raise `ValueError` where something else stands in place of the law called `name`, or in that
    of backward motion.
    """
    for direction, which in ((1, name), (-1, name.replace("_pos", "_neg"))):
        # of the class: a method bound to a module is itself a new module
        law = type(contact).law(contact, direction)
        if not isinstance(law, AbstractLaw):
            raise ValueError(
                f"`{type(contact).__name__}.{which}` must be a law such as `Coulomb(F_Coulomb=5.0)`"
                f" or an M x 2 table, got {law!r}. Leave it out for the default."
            )


def law_value(
    contact: AbstractContact, direction: Integer, v: Number, piece: Integer | None
) -> Number:
    """The law of `direction` (1, -1, or 0 for neither) at speed v >= 0, on its piece `piece`."""
    forward, backward = contact.law(1), contact.law(-1)
    value = _evaluate(forward, v, piece)
    return (
        value
        if backward is forward
        else jnp.where(direction < 0, _evaluate(backward, v, piece), value)
    )


def _evaluate(law: AbstractLaw, v, piece) -> Any:
    value = law(v) if piece is None else law.on_piece(v, jnp.minimum(piece, law.breaks.shape[0]))
    return _never_driving(law, value)


def _never_driving(law: AbstractLaw, value: Number) -> Number:
    """The value of a law as friction: 0 where a law of the user's own is below 0."""
    return value if law.is_nonnegative else jnp.where(value < 0, 0.0, value)


class AbstractByLaws(AbstractContact):
    """A contact with the fields `peak` and two laws: ``f_pos`` and ``f_neg``, say, which is None
    where it is the same.
    """

    forward: ClassVar[str]  # the name of the first

    def check_rules(self) -> None:
        check_laws(self, self.forward)

    def law(self, direction: int) -> AbstractLaw:
        backward = getattr(self, self.forward.replace("_pos", "_neg"))
        return getattr(self, self.forward) if direction > 0 or backward is None else backward

    def breakaway(self: Any) -> Number:
        return self.peak


class AbstractPressed(AbstractByLaws):
    """A contact that a normal force over time presses on: fn = fn_max*f_normalized(t), free while
    fn <= 0.
    """

    # Fields of the classes made of this one: mu_pos, peak, cgeo, fn_max, f_normalized, mu_neg.

    forward = "mu_pos"

    def check_rules(self) -> None:
        super().check_rules()
        check_signal(self, "f_normalized")

    def normal(self: Any, f_normalized: Number) -> Number:
        return self.fn_max * f_normalized

    def scale(self: Any, normal: ScalarLike) -> Number:
        return self.cgeo * normal


def f0(contact: AbstractContact, direction: int, scale: ScalarLike) -> Number:
    """Sliding friction at rest in `direction`, >= 0 [N]."""
    law = contact.law(direction)
    return _never_driving(law, law.f0) * scale


def has_breaks(contact: AbstractContact) -> bool:
    """Whether one of the contact's laws has corners."""
    return any(contact.law(m).breaks.shape[0] > 0 for m in (1, -1))


def piece_at(contact: AbstractContact, direction: Integer, speed: Any) -> Integer:
    """The piece of the law of `direction` that begins at or below `speed`."""
    return jnp.sum(_edges(contact, direction)[1:-1] <= speed, dtype=jnp.int32)


def ends(contact: AbstractContact, direction: Integer, piece: Integer) -> tuple[Number, Number]:
    """The speeds at which a piece of the law of `direction` begins and ends, which may
    be infinite.
    """
    speeds = _edges(contact, direction)
    return entry(speeds, piece), entry(speeds, piece + 1)


def _edges(contact: AbstractContact, direction: Integer) -> Float[Array, " n"]:
    """-inf, the breaks of the law of `direction`, inf (more inf where the other law has more)."""
    laws = [contact.law(1), contact.law(-1)]
    most = max(law.breaks.shape[0] for law in laws)
    rows = [
        jnp.concatenate(
            [jnp.full(1, -jnp.inf), law.breaks, jnp.full(most - law.breaks.shape[0] + 1, jnp.inf)]
        )
        for law in laws
    ]
    return jnp.where(direction < 0, rows[1], rows[0])
