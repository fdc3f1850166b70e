"""The source stays small: lines of each room, parameters of a function, functions with one caller.

The limits are the present counts. They may only fall: lower a limit when a count falls.
"""

import ast
import collections
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "frictax"
Function = (ast.FunctionDef, ast.AsyncFunctionDef)

# Most lines of the Python files of each room, rounded up to the next 10.
LINES = {
    "analysis": 12_650,
    "bristles": 620,
    "cli": 1_830,
    "contacts": 950,
    "cycles": 1_560,
    "data": 230,
    "engine": 5_210,
    "excitation": 2_690,
    "export": 5_240,
    "files": 760,
    "fitting": 10_360,
    "fleets": 4_420,
    "laws": 760,
    "measurements": 4_980,
    "mechanism": 6_480,
    "observers": 780,
    "parameters": 1_010,
    "problems": 4_860,
    "programs": 1_340,
    "report": 6_840,
    "signals": 690,
    "": 2_530,
}
MOST_PARAMETERS = 8
WIDE = 0  # functions with more parameters
CALLED_ONCE = 0.40  # share of the private functions of modules
CONSTANTS = 115  # numbers that are constants of modules


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}


def functions(trees: dict[Path, ast.Module]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for tree in trees.values():
        yield from (node for node in ast.walk(tree) if isinstance(node, Function))


def test_each_room_has_at_most_its_number_of_lines() -> None:
    lines = collections.Counter[str]()
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).parts
        lines[parts[0] if len(parts) > 1 else ""] += path.read_text(encoding="utf-8").count("\n")
    assert set(lines) == set(LINES)
    beyond = {room: n for room, n in lines.items() if n > LINES[room]}
    assert not beyond, f"rooms with more lines than their limit: {beyond}"


def test_hardly_a_function_has_more_than_eight_parameters(trees: dict[Path, ast.Module]) -> None:
    wide = []
    for node in functions(trees):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        count = sum(a.arg not in ("self", "cls") for a in arguments)
        if count > MOST_PARAMETERS and "overload" not in map(ast.unparse, node.decorator_list):
            wide.append(node.name)
    assert len(wide) <= WIDE, sorted(wide)


def test_private_functions_are_called_more_than_once_as_often_as_now(
    trees: dict[Path, ast.Module],
) -> None:
    private = once = 0
    for tree in trees.values():
        uses = collections.Counter[str]()
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                uses[node.id] += 1
            elif isinstance(node, ast.Attribute):
                uses[node.attr] += 1
        names = [n.name for n in tree.body if isinstance(n, Function) and n.name.startswith("_")]
        private += len(names)
        once += sum(uses[name] == 1 for name in names)
    assert once <= CALLED_ONCE * private


def test_modules_have_no_more_numbers_as_constants_than_now(trees: dict[Path, ast.Module]) -> None:
    count = 0
    for tree in trees.values():
        for node in tree.body:
            value = (
                getattr(node, "value", None) if isinstance(node, ast.Assign | ast.AnnAssign) else 0
            )
            number = value.value if isinstance(value, ast.Constant) else None
            count += isinstance(number, int | float) and not isinstance(number, bool)
    assert count <= CONSTANTS
