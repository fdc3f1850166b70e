"""Quantities that engineers ask of a machine, where it has them."""

from collections.abc import Callable, Iterator
from typing import Any

from frictax.contacts import AbstractContact, MassWithStopAndFriction
from frictax.contacts.contact import AbstractPressed
from frictax.fitting.problem.steady import SteadyFriction, as_steady
from frictax.laws import AbstractLaw, Coulomb, Stribeck
from frictax.measurements import Sweep
from frictax.mechanism import Fixed, Force, Inertia, Mass, Mechanism, Torque
from frictax.mechanism.layout import is_rotational

# name, from a machine to the number, SI unit
Quantity = tuple[str, Callable[[Any], Any], str]


def common(model: Any, sweep: Sweep | None = None) -> Iterator[Quantity]:
    """Those that are well defined for a machine, or for the friction that a sweep measures.

    - breakaway: peak times sliding friction at rest, of what is pressed on at `fn_max`;
    - Stribeck velocity: 1/fexp, the speed at which the dip has fallen to 1/e, by any exponent;
    - time constant: inertia over viscous friction of a body that slides on what stands still and
      that no other part but drives acts on: how it would slow down were there no dry friction.
    """
    if sweep is not None:
        yield from _of_sweep(model, sweep)
    if not isinstance(model, Mechanism):
        return
    for name, part in model.named_parts():
        if not isinstance(part, AbstractContact) or part.depends_on_torque:
            continue
        turns = _turns(model, part)
        for way, where, of in _ways(part):
            pressed = isinstance(part, AbstractPressed)
            title = f"{name}: breakaway{where}{' at fn_max' if pressed else ''}"
            yield title, lambda m, n=name, w=way: _breakaway(m[n], w), "N.m" if turns else "N"
            path = f"{name}.{of}"
            law = part.law(way)
            if isinstance(law, Stribeck):
                title = f"{path}: Stribeck velocity"
                yield title, lambda m, n=name, w=way: 1.0 / m[n].law(w).fexp, _speed(turns)
            body = _carries(model, name, part)
            if body is not None and isinstance(law, Coulomb | Stribeck) and float(law.F_prop) > 0:
                title = f"{body}: time constant{where}"
                yield (
                    title,
                    lambda m, n=name, b=body, w=way: m[b].inertia() / m[n].law(w).F_prop,
                    "s",
                )


def _of_sweep(model: Any, sweep: Sweep) -> Iterator[Quantity]:
    steady, turns = as_steady(model), sweep.rotational
    ways: list[tuple[str, AbstractLaw]] = [("f_pos", steady.f_pos)]
    ways += [("f_neg", steady.f_neg)] if steady.f_neg is not None else []
    for branch, law in ways:
        title = branch if len(ways) > 1 else type(law).__name__
        if isinstance(model, SteadyFriction) and sweep.breakaway.any():
            yield (
                f"{title}: breakaway",
                lambda m, b=branch: m.peak * getattr(m, b).f0,
                "N.m" if turns else "N",
            )
        if isinstance(law, Stribeck):
            yield (
                f"{title}: Stribeck velocity",
                lambda m, b=branch: 1.0 / getattr(as_steady(m), b).fexp,
                _speed(turns),
            )


def _speed(turns: bool) -> str:
    return "rad/s" if turns else "m/s"


def _turns(model: Mechanism, part: Any) -> bool:
    turns = is_rotational(part)
    return bool(
        is_rotational(model[part.between()[0].partition(".")[0]]) if turns is None else turns
    )


def _ways(part: Any) -> Iterator[tuple[int, str, str]]:
    """Directions that have a law of their own, with a word and the field of the law."""
    forward = getattr(type(part), "forward", "f_pos")
    backward = forward.replace("_pos", "_neg")
    if part.law(-1) is part.law(1) or part.blocks_backward:
        yield 1, "", forward
    else:
        yield from ((1, " forward", forward), (-1, " backward", backward))


def _breakaway(part: Any, way: int) -> Any:
    pressed = issubclass(type(part), AbstractPressed)
    return part.holds(way, part.scale(part.fn_max) if pressed else 1.0)


def _carries(model: Mechanism, name: str, part: Any) -> str | None:
    """The body whose speed is that of the contact; None where there is no such body, or what bears
    the friction moves too, or a normal force scales it.
    """
    if isinstance(part, AbstractPressed) or isinstance(part, MassWithStopAndFriction):
        return None
    body, support = part.between()
    body = body.partition(".")[0]
    grounded = support is None or isinstance(model[support.partition(".")[0]], Fixed)
    held = any(
        isinstance(value, str) and value.partition(".")[0] == body
        for other, acting in model.named_parts()
        if other != name and not isinstance(acting, Force | Torque)
        for value in vars(acting).values()
    )
    return body if grounded and not held and isinstance(model[body], Mass | Inertia) else None
