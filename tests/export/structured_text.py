"""Structured text in Python: functions as functions, the function block as a generator of values.

A division by zero or an overflow raises an error here, as it may stop a controller.
"""

import functools
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_COMMENT, _CALL = re.compile(r"\(\*.*?\*\)", re.DOTALL), re.compile(r"(\w+)\((.*)\);$", re.DOTALL)
_DECLARATION = re.compile(r"(\w+) : (?:ARRAY\[0\.\.(\d+)\] OF )?(\w+)(?: := (.*))?;$")
_ZERO = {"LREAL": "0.0", "REAL": "0.0", "DINT": "0", "BOOL": "False"}
_WORDS = {"AND": "and", "OR": "or", "TRUE": "True", "FALSE": "False", "=": "==", "<>": "!="}


class _Infix:
    """`a @f@ b` is f(a, b), with the precedence of a product."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __rmatmul__(self, a: Any) -> "_Infix":
        return _Infix(functools.partial(self.function, a))

    def __matmul__(self, b: Any) -> Any:
        return self.function(b)


_LIBRARY: dict[str, Any] = {
    # The quotient of whole numbers is rounded towards 0, as the standard says.
    "DIV": _Infix(lambda a, b: math.trunc(a / b)),
    "MOD": _Infix(lambda a, b: a - math.trunc(a / b) * b),
    "SEL": lambda condition, no, yes: yes if condition else no,
    "NOT": lambda x: not x,
    "MAX": max,
    "MIN": min,
    "ABS": abs,
    "TRUNC": math.trunc,
    "EXPT": math.pow,
    "LN": math.log,
    **{
        f"{name.upper()}": getattr(math, name)
        for name in "exp sqrt sin cos tan asin acos atan".split()
    },
    **{f"{a}_TO_{b}": to for a in _ZERO for b, to in (("LREAL", float), ("DINT", int))},
}


class Unit(NamedTuple):
    """A function or a function block: names by kind of variable, and its lines in Python."""

    name: str
    inputs: list[str]
    outputs: list[str]
    begin: list[str]
    lines: list[str]


def _expression(text: str) -> str:
    text = re.sub(
        r"NOT (\w+(?:\[\d+\])?|\()", lambda m: "NOT(" if m[1] == "(" else f"NOT({m[1]})", text
    )
    text = re.sub(r" / (\d+)(?![\d.])", r" @DIV@ \1", text.replace(" MOD ", " @MOD@ "))
    return re.sub(r"AND|OR|TRUE|FALSE|<>|(?<![<>=])=", lambda m: _WORDS[m[0]], text)


def _statement(text: str, units: dict[str, Unit]) -> tuple[str, int]:
    """Return a line of Python, and how it changes the depth of the lines after it."""
    if match := re.fullmatch(r"IF (.*) THEN EXIT; END_IF", text):
        return f"if {_expression(match[1])}: break", 0
    if match := re.fullmatch(r"IF (.*) THEN", text):
        return f"if {_expression(match[1])}:", 1
    if match := re.fullmatch(r"FOR (\w+) := 0 TO (\d+) DO", text):
        return f"for {match[1]} in range({int(match[2]) + 1}):", 1
    if text == "WHILE TRUE DO":
        return "while True:", 1
    if text == "ELSE":
        return "else:", 1
    if text.startswith("END_"):
        return "pass", -1
    if (match := _CALL.fullmatch(text)) and match[1] in units:
        pairs = re.findall(r"(\w+) (:=|=>) (.*?)(?=, \w+ :=|, \w+ =>|$)", match[2], re.DOTALL)
        given = ", ".join(f"{n}={_expression(x)}" for n, sign, x in pairs if sign == ":=")
        takes = {n: x for n, sign, x in pairs if sign == "=>"}
        taken = ", ".join(takes.get(name, "_") for name in units[match[1]].outputs)
        return f"({taken},) = {match[1]}({given})" if taken else f"{match[1]}({given})", 0
    to, _, value = text.removesuffix(";").partition(" := ")
    return f"{to} = {_expression(value)}", 0


def _unit(text: str, units: dict[str, Unit]) -> Unit:
    head, *rest = text.strip().splitlines()
    is_block = head.startswith("FUNCTION_BLOCK")
    name, kind = head.split()[1], ""
    named: dict[str, list[str]] = {"VAR_INPUT": [], "VAR_IN_OUT": [], "VAR_OUTPUT": [], "VAR": []}
    begin, lines, depth = list[str](), list[str](), 1
    joined = re.sub(r",\n\s+", ", ", "\n".join(rest)).splitlines()
    for line in (line.strip() for line in joined):
        if line in named:
            kind = line
        elif line == "END_VAR":
            kind = ""
        elif kind and (match := _DECLARATION.fullmatch(line)):
            named[kind].append(match[1])
            zero = match[4] or _ZERO[match[3]]
            if match[2] and not match[4]:
                zero = f"[{zero}] * {int(match[2]) + 1}"
            if kind in ("VAR", "VAR_OUTPUT"):
                begin.append(f"{match[1]} = {zero}")
        elif line:
            said, change = _statement(line, units)
            depth -= said in ("else:", "pass")
            lines.append("    " * depth + (said if said != "pass" else "    pass"))
            depth += change == 1
    inputs = named["VAR_INPUT"] + named["VAR_IN_OUT"]
    return Unit(name, inputs, named["VAR_OUTPUT"], begin, lines if not is_block else lines)


def translated(text: str) -> dict[str, Any]:
    """Return the functions of a text, and its function block as a function that returns a function
    of one cycle, from inputs by name to outputs by name.
    """
    text = _COMMENT.sub("", text)
    constants = re.findall(r"VAR_GLOBAL CONSTANT\n\s+(\w+) : .*? := (\[.*?\]);\nEND_VAR", text)
    scope: dict[str, Any] = {**_LIBRARY, **{name: eval(_expression(x)) for name, x in constants}}
    units: dict[str, Unit] = {}
    found = re.finditer(r"^FUNCTION(_BLOCK)? .*?^END_FUNCTION(_BLOCK)?$", text, re.M | re.DOTALL)
    for match in found:
        body = match[0].rsplit("\n", 1)[0]
        unit = _unit(body, units)
        units[unit.name] = unit
        results = f"({' '.join(f'{x},' for x in unit.outputs)})"
        if match[1]:
            inner = [
                f"def cycle({', '.join(unit.inputs)}):",
                f"    nonlocal {', '.join(_names(unit))}",
            ]
            inner += [*unit.lines, f"    return dict(zip({unit.outputs}, {results}))"]
            lines = [
                f"def {unit.name}():",
                *("    " + x for x in [*unit.begin, *inner, "return cycle"]),
            ]
        else:
            lines = [f"def {unit.name}({', '.join(unit.inputs)}):"]
            lines += [*("    " + x for x in unit.begin), *unit.lines, f"    return {results}"]
        exec("\n".join(lines), scope)
    return scope


def _names(unit: Unit) -> Iterator[str]:
    return (line.partition(" = ")[0] for line in unit.begin)
