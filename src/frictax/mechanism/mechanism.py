"""Parts put together by name."""

import dataclasses
import difflib
from collections.abc import Iterator
from typing import Any

import equinox as eqx

from frictax.contacts import AbstractContact, MassWithStopAndFriction
from frictax.mechanism.bodies import Fixed, Mass
from frictax.mechanism.forces import AbstractCompliant, AbstractSource
from frictax.parameters import UnknownName
from frictax.signals import AbstractSignal

_BODIES = (Mass, MassWithStopAndFriction)
_PARTS = (*_BODIES, Fixed, AbstractCompliant, AbstractSource, AbstractContact)


class Mechanism(eqx.Module):
    """A machine: parts under the names that its user gives them.

    A body's name attaches a part to it; ``"mass.flange_a"`` and ``"mass.flange_b"`` name its ends. Parts are read back by
    ``machine["mass"]``, in `eqx.tree_at` as well.

    **Raises:** `ValueError` for a name that no part has, for something that is not a part, for two friction contacts on one body.

    >>> import frictax as fx
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=[[0, 15], [1, 6.4], [12, 17]], peak=1.1),
    ...     drive=fx.Force("mass", fx.Sine(amplitude=25.0, f=0.25)),
    ... )
    >>> block.names
    ('mass', 'friction', 'drive')
    """

    parts: tuple[Any, ...]
    # Static and in the order written: a dict would come back sorted by name after a flatten.
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, *unnamed: Any, **parts: Any) -> None:
        if unnamed:
            raise ValueError(f"`Mechanism`: every part needs a name, got {unnamed[0]!r} without one. Write `mass=Mass(m=1.0)`.")
        self.parts = tuple(parts.values())
        self.names = tuple(parts)

    def __check_init__(self) -> None:
        for name, part in zip(self.names, self.parts, strict=True):
            if not name.isidentifier():
                raise ValueError(f"`Mechanism`: a part's name must be a Python name, got {name!r}. Paths join names by dots: 'mass.m'.")
            if not isinstance(part, _PARTS):
                raise ValueError(
                    f"`Mechanism`: {name!r} must be a part such as `Mass`, `Spring`, `Force` or `SupportFriction`, got {part!r}. "
                    "Signals and laws go inside a part."
                )
        layout(self)

    def __getitem__(self, name: str) -> Any:
        if name not in self.names:
            near = difflib.get_close_matches(str(name), self.names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UnknownName(f"This mechanism has no part {name!r}.{hint} It has: {', '.join(self.names)}.")
        return self.parts[self.names.index(name)]

    def named_parts(self) -> Iterator[tuple[str, Any]]:
        """The parts with their names, in the order written."""
        return zip(self.names, self.parts, strict=True)


@dataclasses.dataclass(frozen=True)
class Flange:
    """An end of a body: the body's number, or None and the part's number of a `Fixed`; `side` is -1, 0 or +1 times L/2."""

    body: int | None
    part: int
    side: int


@dataclasses.dataclass(frozen=True)
class Contact:
    """Where a friction contact stands: its part, body and flange, its signal's and its law's places in `mode`."""

    part: int
    body: int
    flange: Flange
    support: Flange | None
    signal: int | None


@dataclasses.dataclass(frozen=True)
class Layout:
    """Who is joined to whom, by number: all that is static about a mechanism."""

    bodies: tuple[int, ...]
    contacts: tuple[Contact, ...]
    compliants: tuple[tuple[int, Flange, Flange], ...]
    forces: tuple[tuple[int, Flange, int | None], ...]
    signals: tuple[tuple[int, str], ...]


def layout(mechanism: Mechanism) -> Layout:
    """The `Layout` of a mechanism; raises `ValueError` where the names do not fit together."""
    bodies = tuple(i for i, p in enumerate(mechanism.parts) if isinstance(p, _BODIES))
    if not bodies:
        raise ValueError("`Mechanism` must have a body that moves. Add `mass=Mass(m=...)`.")
    signals: list[tuple[int, str]] = []

    def signal(part: int, field: str) -> int:
        signals.append((part, field))
        return len(signals) - 1

    compliants, forces, contacts = [], [], []
    for i, part in enumerate(mechanism.parts):
        if isinstance(part, AbstractCompliant):
            a, b = _flange(mechanism, i, part.a, 1), _flange(mechanism, i, part.b, -1)
            if a.body is not None and a.body == b.body:
                raise ValueError(
                    f"`Mechanism`: {mechanism.names[i]!r} must join two bodies, got {part.a!r} and {part.b!r}. "
                    "Hold one end with `wall=Fixed()`."
                )
            compliants.append((i, a, b))
        elif isinstance(part, AbstractSource):
            field = part.signal_name()
            forces.append((i, _flange(mechanism, i, part.body, 1), None if field is None else signal(i, field)))
        elif isinstance(part, MassWithStopAndFriction):
            own = Flange(bodies.index(i), i, 0)
            contacts.append(Contact(i, bodies.index(i), own, None, None))
        elif isinstance(part, AbstractContact):
            contacts.append(_contact(mechanism, i, part, bodies, signal))
    for body in range(len(bodies)):
        on = [mechanism.names[c.part] for c in contacts if c.body == body]
        if len(on) > 1:
            raise ValueError(
                f"`Mechanism`: body {mechanism.names[bodies[body]]!r} must have at most one friction contact, got {', '.join(on)}. "
                "Add their laws in one contact: this version does not share a holding force between several."
            )
    return Layout(bodies, tuple(contacts), tuple(compliants), tuple(forces), tuple(signals))


def _contact(mechanism: Mechanism, i: int, part: Any, bodies: tuple[int, ...], signal: Any) -> Contact:
    flange = _flange(mechanism, i, part.body, 1)
    if flange.body is None:
        raise ValueError(
            f"`Mechanism`: the friction {mechanism.names[i]!r} must act on a body that moves, got {part.body!r}, which is fixed. "
            "Name the mass instead."
        )
    support = None
    if part.support is not None:
        support = _flange(mechanism, i, part.support, 1)
        if support.body is not None:
            raise ValueError(
                f"`Mechanism`: the support of {mechanism.names[i]!r} must be a `Fixed`, got {part.support!r}, which moves. "
                "This version knows friction against the housing only."
            )
    has_signal = any(f.name == "f_normalized" for f in dataclasses.fields(part))
    return Contact(i, bodies.index(flange.part), flange, support, signal(i, "f_normalized") if has_signal else None)


def _flange(mechanism: Mechanism, part: int, name: Any, side: int) -> Flange:
    owner = mechanism.names[part]
    if not isinstance(name, str):
        raise ValueError(f"`Mechanism`: {owner!r} must name the body it is attached to as text, got {name!r}. Write 'mass'.")
    body, _, end = name.partition(".")
    attachable = [n for n, p in mechanism.named_parts() if isinstance(p, (*_BODIES, Fixed))]
    if body not in attachable:
        near = difflib.get_close_matches(body, attachable, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"`Mechanism`: {owner!r} is attached to {name!r}, which is no body.{hint} Bodies are: {', '.join(attachable)}.")
    if end not in ("", "flange_a", "flange_b", "flange"):
        raise ValueError(f"`Mechanism`: {owner!r} is attached to {name!r}; write {body!r}, '{body}.flange_a' or '{body}.flange_b'.")
    index = mechanism.names.index(body)
    if isinstance(mechanism.parts[index], Fixed):
        return Flange(None, index, 0)
    number = [i for i, p in enumerate(mechanism.parts) if isinstance(p, _BODIES)].index(index)
    return Flange(number, index, {"flange_a": -1, "flange_b": 1}.get(end, side))


def signal_of(mechanism: Mechanism, place: tuple[int, str]) -> AbstractSignal:
    """The signal in field `place[1]` of part `place[0]`."""
    return getattr(mechanism.parts[place[0]], place[1])
