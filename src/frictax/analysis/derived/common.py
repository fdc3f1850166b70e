"""Quantities by name or by arithmetic: the common quantities of a machine, and expressions as
text.
"""

import ast
import dataclasses
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from frictax.contacts import AbstractContact, MassWithStopAndFriction
from frictax.contacts.contact import AbstractPressed
from frictax.fitting.problem.steady import SteadyFriction, as_steady
from frictax.laws import AbstractLaw, Coulomb, Stribeck
from frictax.measurements import Sweep
from frictax.mechanism import Fixed, Force, Inertia, Mass, Mechanism, Torque
from frictax.mechanism.layout import is_rotational

# The name, a function from a machine to the value, and the SI unit.
Quantity = tuple[str, Callable[[Any], Any], str]


def common(model: Any, sweep: Sweep | None = None) -> Iterator[Quantity]:
    """Return the common quantities of a machine, or of the friction that a sweep measures.

    - breakaway: peak times sliding friction at rest; under a normal force, at `fn_max`;
    - Stribeck velocity: 1/fexp, the speed at which the dip has decreased to 1/e, for any exponent;
    - time constant: inertia over viscous friction, for a body that slides on a fixed support and on
      which no other part except drives acts. It is that of the decay without dry friction.
    """
    if sweep is not None:
        yield from _of_sweep(model, sweep)
    if not isinstance(model, Mechanism):
        return
    for name, part in model.named_parts():
        if not isinstance(part, AbstractContact) or part.depends_on_torque:
            continue
        turns, pressed = is_rotational(part), isinstance(part, AbstractPressed)
        if turns is None:
            turns = is_rotational(model[part.between()[0].partition(".")[0]])
        field = getattr(type(part), "forward", "f_pos")
        ways = [(1, " forward", field), (-1, " backward", field.replace("_pos", "_neg"))]
        if part.law(-1) is part.law(1) or part.blocks_backward:
            ways = [(1, "", field)]
        for way, where, of in ways:

            def breakaway(m: Any, n: str = name, w: int = way, pressed: bool = pressed) -> Any:
                return m[n].holds(w, m[n].scale(m[n].fn_max) if pressed else 1.0)

            title = f"{name}: breakaway{where}{' at fn_max' if pressed else ''}"
            yield title, breakaway, "N.m" if turns else "N"
            path = f"{name}.{of}"
            law = part.law(way)
            if isinstance(law, Stribeck):
                title = f"{path}: Stribeck velocity"
                yield (
                    title,
                    lambda m, n=name, w=way: 1.0 / m[n].law(w).fexp,
                    "rad/s" if turns else "m/s",
                )
            body = _carried_body(model, name, part)
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
                "rad/s" if turns else "m/s",
            )


def _carried_body(model: Mechanism, name: str, part: Any) -> str | None:
    """Return the body whose speed is that of the contact.

    Return None without such a body, if the support moves too, or if a normal force scales the
    friction.
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


_TWO: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


@dataclasses.dataclass(frozen=True)
class Expression:
    """Arithmetic as a function of all parameters by path; `paths`: the paths in it."""

    function: Callable[[Mapping[str, Any]], Any]
    paths: tuple[str, ...]

    def __call__(self, by: Mapping[str, Any]) -> Any:
        return self.function(by)


def expression(text: str) -> Expression:
    """Return `text` as a function of all parameters by path.

    It can contain numbers, paths, an entry of a table by its number
    (``friction.f_pos.f[2]``), ``+ - * / **`` and parentheses, and nothing else. No code of a
    file is run.

    >>> expression("2 * (rotor.J + load.J) / rotor.d**2")({"rotor.J": 3, "load.J": 1, "rotor.d": 2})
    2.0
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        raise _expression_error(text, "that is no arithmetic") from None
    paths: list[str] = []
    return Expression(_meaning(tree, text, paths), tuple(dict.fromkeys(paths)))


def _meaning(node: ast.AST, text: str, paths: list[str]) -> Callable[[Mapping[str, Any]], Any]:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        number = float(node.value)
        return lambda by: number
    if isinstance(node, ast.BinOp) and type(node.op) in _TWO:
        left, right, do = (
            _meaning(node.left, text, paths),
            _meaning(node.right, text, paths),
            _TWO[type(node.op)],
        )
        return lambda by: do(left(by), right(by))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        of, sign = (
            _meaning(node.operand, text, paths),
            -1.0 if isinstance(node.op, ast.USub) else 1.0,
        )
        return lambda by: sign * of(by)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        of, k = _meaning(node.value, text, paths), node.slice.value
        if isinstance(k, int):
            return lambda by: of(by)[k]
    path = _path(node)
    if path is None:
        raise _expression_error(text, f"{ast.unparse(node)!r} is none of these")
    paths.append(path)
    return lambda by: by[path]


def _path(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    before = _path(node.value) if isinstance(node, ast.Attribute) else None
    return f"{before}.{node.attr}" if before and isinstance(node, ast.Attribute) else None


def _expression_error(text: str, why: str) -> ValueError:
    return ValueError(
        f"A derived quantity must be numbers and paths of parameters joined by + - * / ** and"
        f" parentheses, got {text!r}: {why}. Write 'rotor.J / bearing.tau_pos.F_prop', say."
    )
