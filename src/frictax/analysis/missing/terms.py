"""Terms that a model may lack, each with a coefficient of 0 in it: of a law, or a force."""

import types
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Float

from frictax.contacts import MassWithStopAndFriction
from frictax.laws import AbstractLaw
from frictax.mechanism.forces import AbstractSource
from frictax.mechanism.user_machines import AbstractAxis
from frictax.parameters import Number, Numbers, Values
from frictax.signals import Drive, as_signal

# Over the speed v >= 0, which is at most vmax; smooth a little below 0. By the functions of JAX or
# of numpy.
WIDTHS = 0.05, 0.2  # of the dips
OF_LAW: dict[str, Callable[[Any, Any, Any], Any]] = {
    "viscous": lambda xp, v, vmax: v,
    "drag": lambda xp, v, vmax: v * v,
    "Stribeck, narrow": lambda xp, v, vmax: xp.exp(-v / (WIDTHS[0] * vmax)),
    "Stribeck, wide": lambda xp, v, vmax: xp.exp(-v / (WIDTHS[1] * vmax)),
    "bend": lambda xp, v, vmax: xp.arctan(v / (0.3 * vmax)),
}
# The same both ways, but for this one: more one way, less the other.
OTHER_WAY = "other way"
LAW_TERMS = (*OF_LAW, OTHER_WAY)
# What a dip of any width between is made of.
DIP = ("Stribeck, narrow", "Stribeck, wide")

# Over the time since the middle of the record, the position from the middle of the travel, and
# the speed; friction opposes motion and is 0 at rest.
OF_FORCE: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "offset": lambda xp, t, s, v: xp.ones_like(v),
    "spring": lambda xp, t, s, v: -s,
    "cubic spring": lambda xp, t, s, v: -(s**3),
    "offset drifts": lambda xp, t, s, v: t,
    "friction drifts": lambda xp, t, s, v: -xp.sign(v) * t,
    "friction over position": lambda xp, t, s, v: -xp.sign(v) * s,
    "friction over distance": lambda xp, t, s, v: -xp.sign(v) * xp.abs(s),
}


def force_of(term: str, xp: Any, t: Any, s: Any, v: Any, vmax: Any) -> Any:
    """The force on a body by a term of `OF_FORCE` or, as friction of its own, of `LAW_TERMS`."""
    if term == OTHER_WAY:
        return -xp.abs(xp.sign(v))
    if term in OF_LAW:
        return -xp.sign(v) * OF_LAW[term](xp, xp.abs(v), vmax)
    return OF_FORCE[term](xp, t, s, v)


class WithTerms(AbstractLaw):
    """A law and the sum of `c` (k,) times `terms` of `OF_LAW`, of which "other way" is +1 in
    motion forward and -1 backward (`way`).
    """

    base: AbstractLaw
    c: Float[Numbers, " k"]
    vmax: Number
    terms: tuple[str, ...] = eqx.field(static=True)
    way: int = eqx.field(static=True)

    def _more(self, v: Values | float) -> Any:
        shapes = (
            self.way * jnp.ones_like(v) if term == OTHER_WAY else OF_LAW[term](jnp, v, self.vmax)
            for term in self.terms
        )
        return sum((c * shape for c, shape in zip(self.c, shapes, strict=True)), jnp.zeros(()))

    def __call__(self, v: Values | float) -> Values:
        return self.base(v) + self._more(jnp.asarray(v))

    @property
    def f0(self) -> Number:
        return self.base.f0 + self._more(jnp.zeros(()))

    @property
    def breaks(self) -> Float[Numbers, " n"]:
        return self.base.breaks

    @property
    def is_smooth(self) -> bool:
        return self.base.is_smooth

    def on_piece(self, v: Number, piece: Any) -> Number:
        return self.base.on_piece(v, piece) + self._more(v)


class Shapes(eqx.Module):
    """The sum of `c` times `terms` on one body, of `OF_FORCE` or, as friction of its own, of
    `OF_LAW`; and of `wave` (2,) times cosine and sine of its position over `period`.
    """

    c: Float[Numbers, " k"]
    wave: Float[Numbers, "2"]
    period: Number
    centre: Number
    middle: Number
    vmax: Number
    terms: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, t: Any, s: Any, v: Any) -> Any:
        turn = 2 * jnp.pi * (s - self.centre) / self.period
        at = jnp, t - self.middle, s - self.centre, jnp.asarray(v), self.vmax
        parts = (c * force_of(term, *at) for c, term in zip(self.c, self.terms, strict=True))
        wave = self.wave[0] * jnp.cos(turn) + self.wave[1] * jnp.sin(turn)
        return sum(parts, wave)


def _clock(t: Any) -> Any:
    return t


class _Push(AbstractSource):
    """`Shapes` as a force on a flange; its signal is the clock."""

    shapes: Shapes
    clock: Drive = eqx.field(converter=as_signal, default=_clock)

    def signal_name(self) -> str:
        return "clock"

    def driven(self, value: Any, s: Number, v: Number) -> Number:
        return self.shapes(jnp.asarray(value), s, v)


class _Slide(_Push):
    rotational: ClassVar[bool] = False


class _Turn(_Push):
    rotational: ClassVar[bool] = True


def push(body: str, rotational: bool, shapes: Shapes) -> AbstractSource:
    """A part of a mechanism that pushes `body` by `shapes`."""
    return (_Turn if rotational else _Slide)(body, shapes)


def pushed_axis(axis: AbstractAxis, shapes: Shapes) -> AbstractAxis:
    """An axis of one's own, its load with `shapes` added."""
    kind = type(axis)

    def load(self: Any, t: Any, y: Any, args: Any) -> Any:
        return kind.load(self, t, y, args) + self.more(t, y[0], y[1])

    return _with_more(axis, shapes, {"load": load})


class MoreFriction(eqx.Module):
    """The sum of `c` times `terms` of `LAW_TERMS`, to be added to a law."""

    c: Float[Numbers, " k"]
    vmax: Number
    terms: tuple[str, ...] = eqx.field(static=True)

    def on(self, base: AbstractLaw, way: int) -> WithTerms:
        """`base` in motion `way` with them."""
        return WithTerms(base, self.c, self.vmax, self.terms, way)


def rubbed_mass(mass: MassWithStopAndFriction, more: MoreFriction) -> MassWithStopAndFriction:
    """A mass between stops, its laws with `more` added."""
    kind = type(mass)

    def law(self: Any, direction: int) -> AbstractLaw:
        return self.more.on(kind.law(self, direction), direction)

    return _with_more(mass, more, {"law": law})


_MADE: dict[type, type] = {}


def _with_more(of: Any, more: Any, methods: dict[str, Any]) -> Any:
    """`of` as one of a class with other `methods`, and `more` as a field."""
    kind = type(of)
    if kind not in _MADE:
        fields = {**methods, "more": None, "__annotations__": {"more": Any}}
        _MADE[kind] = types.new_class(kind.__name__, (kind,), {}, lambda ns: ns.update(fields))
    new = object.__new__(_MADE[kind])
    for name, value in (*vars(of).items(), ("more", more)):
        object.__setattr__(new, name, value)
    return new
