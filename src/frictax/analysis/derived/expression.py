"""Arithmetic of parameters written as text: ``"rotor.J / bearing.tau_pos.F_prop"``."""

import ast
import dataclasses
import operator
from collections.abc import Callable, Mapping
from typing import Any

_TWO: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


@dataclasses.dataclass(frozen=True)
class Expression:
    """Arithmetic as a function of all parameters by path; `paths`: those that it names."""

    function: Callable[[Mapping[str, Any]], Any]
    paths: tuple[str, ...]

    def __call__(self, by: Mapping[str, Any]) -> Any:
        return self.function(by)


def expression(text: str) -> Expression:
    """What `text` says, as a function of all parameters by path.

    It may hold numbers, paths, an entry of a table by its number (``friction.f_pos.f[2]``), ``+ - *
    / **`` and parentheses, and nothing else: no code of a file is run.

    >>> expression("2 * (rotor.J + load.J) / rotor.d**2")({"rotor.J": 3, "load.J": 1, "rotor.d": 2})
    2.0
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        raise _wrong(text, "that is no arithmetic") from None
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
        raise _wrong(text, f"{ast.unparse(node)!r} is none of these")
    paths.append(path)
    return lambda by: by[path]


def _path(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    before = _path(node.value) if isinstance(node, ast.Attribute) else None
    return f"{before}.{node.attr}" if before and isinstance(node, ast.Attribute) else None


def _wrong(text: str, why: str) -> ValueError:
    return ValueError(
        f"A derived quantity must be numbers and paths of parameters joined by + - * / ** and"
        f" parentheses, got {text!r}: {why}. Write 'rotor.J / bearing.tau_pos.F_prop', say."
    )
