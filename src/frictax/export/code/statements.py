"""Statements on single numbers, the intermediate form between a JAX program and exported code.

A `Builder` appends statements. It evaluates constant expressions, and computes equal expressions
only once. `Function.finish` removes statements that no output needs.
"""

import collections
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

REAL, WHOLE, TRUTH = "real", "whole", "truth"
RESULTS = {"o": REAL, "k": WHOLE}  # letter of a result array -> kind of the numbers in it


@dataclass(frozen=True)
class Literal:
    """A constant, known when the code is written; its `kind` is REAL, WHOLE or TRUTH."""

    value: Any
    kind: str


@dataclass(frozen=True)
class Array:
    """An array: an argument, a table with `values`, or a `local` array of a function."""

    name: str
    kind: str
    size: int
    values: tuple[Literal, ...] = ()
    local: bool = False


@dataclass(frozen=True)
class Entry:
    """A number in an array that the function only reads."""

    array: Array
    index: int

    @property
    def kind(self) -> str:
        return self.array.kind


@dataclass(frozen=True)
class Variable:
    """A number that the code computes, once or in each iteration of a loop."""

    name: str
    kind: str


Atom = Literal | Entry | Variable


@dataclass(eq=False)
class Statement:
    """A statement, the numbers (atoms) or arrays that it reads and writes, and its inner `blocks`.

    - "let": variable = operation(reads). `detail`: operation name; "load" reads from an array.
    - "set": variable = value. "late": variable = value at the end of a loop iteration.
    - "store": array[index] = value.
    - "if": runs the first of its two blocks if a condition is true, otherwise the second block.
    - "loop": repeats its block until a "break", or `detail` times.
    - "break": ends the loop if a condition is true.
    - "result": sets a result of the function; `detail`: function name, array ("o" or "k"), index.
    - "call": calls the function `detail`. `writes` contains None for an unused result.
    """

    name: str
    reads: Sequence[Any] = ()
    writes: Sequence[Any] = ()
    blocks: list[list["Statement"]] = field(default_factory=list)
    detail: Any = None


class Function:
    """A function of the exported code. A call returns its `results`, real numbers first. Other
    `outputs` are literals or arguments, so the caller already has their values.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs, self.outputs, self.results = list[Any](), list[Any](), list[Any]()
        self.body = list[Statement]()

    @property
    def places(self) -> list[tuple[Atom, str, int]]:
        """List each result with its array ("o" for reals, "k" for others) and its index there."""
        reals = sum(x.kind == REAL for x in self.results)
        numbered = enumerate(self.results)
        return [(x, "o", i) if i < reals else (x, "k", i - reals) for i, x in numbered]

    @property
    def sizes(self) -> dict[str, int]:
        """Size of each result array that is not empty, by letter ("o" or "k")."""
        return collections.Counter(letter for _, letter, _ in self.places)

    def statements(self, block: Any = None) -> Iterator[tuple[list[Statement], Statement]]:
        """Yield pairs (block, statement) for `block` (default: the body) and all inner blocks."""
        for statement in self.body if block is None else block:
            yield self.body if block is None else block, statement
            for inside in statement.blocks:
                yield from self.statements(inside)

    def finish(self, body: list[Statement], outputs: list[Any], is_root: bool) -> None:
        """Set the function's outputs and body. Remove statements of `body` that no output needs."""
        moving = (x for x in outputs if isinstance(x, Variable) and x not in self.inputs)
        results = outputs if is_root else dict.fromkeys(moving)
        self.outputs, self.results = outputs, sorted(results, key=lambda x: x.kind != REAL)
        needs = collections.defaultdict[Any, set[Any]](set)

        def enter(block: list[Statement], above: set[Any]) -> None:
            for statement in block:
                own = above.union(statement.reads)
                for place in statement.writes:
                    needs[place] |= own
                for inside in statement.blocks:
                    enter(inside, own.union(*(s.reads for s in inside if s.name == "break")))

        def is_live(s: Statement) -> bool:
            s.blocks = [list(filter(is_live, inside)) for inside in s.blocks]
            s.writes = [x if x in needed else None for x in s.writes]
            works = any(inner.name != "break" for inside in s.blocks for inner in inside)
            return works or s.name == "break" or any(s.writes)

        enter(body, set())
        needed, waiting = set[Any](), set[Any](outputs)
        while waiting:
            needed |= waiting
            waiting = set().union(*(needs[place] for place in waiting)) - needed
        ends = (Statement("result", [x], detail=(self.name, *at)) for x, *at in self.places)
        self.body = [*filter(is_live, body), *ends]


_SYMMETRIC = {"add", "mul", "eq", "ne", "and", "or", "max", "min"}
_NEUTRAL = {"add": 0, "mul": 1, "and": True, "or": False, "sub": 0, "div": 1}
_ABSORBING = {"mul": 0, "and": False, "or": True}  # not for real numbers: 0 * NaN is not 0
_KINDS: dict[str, str] = dict.fromkeys("eq ne lt le and or not finite to_truth".split(), TRUTH)
_KINDS |= {"to_real": REAL, "to_whole": WHOLE}  # operation -> fixed kind of its result
_FOLDS: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, name) for name in "add sub mul neg eq ne lt le".split()},
    **{"and": operator.and_, "or": operator.or_, "not": operator.not_, "finite": math.isfinite},
    **{"max": max, "min": min, "abs": abs, "sqrt": math.sqrt, "div": operator.truediv},
    **dict.fromkeys(("to_real", "to_whole", "to_truth"), lambda x: x),
}
_TYPES: dict[str, Callable[..., Any]] = {REAL: float, WHOLE: int, TRUTH: bool}


class Builder:
    """The statements of one function; the method `let` appends an operation."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []  # the statements of the current block
        self.known = collections.ChainMap[Any, Any]()  # (operation, operands) -> its result
        self._made: dict[Atom, Statement] = {}  # variable -> the statement that defines it
        self._count = 0

    def name(self, letter: str = "v") -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def append(self, *fields: Any, **others: Any) -> Statement:
        self.statements.append(Statement(*fields, **others))
        return self.statements[-1]

    def block(self, write: Callable[..., Any], *arguments: Any) -> list[Statement]:
        """Call `write`, and return the statements that it appends as a new inner block."""
        outer, self.statements = self.statements, []
        self.known = self.known.new_child()
        write(*arguments)
        block, self.statements = self.statements, outer
        self.known = self.known.parents
        return block

    def let(self, operation: str, *arguments: Any) -> Any:
        """Append an operation and return its result, or return an atom that equals the result."""
        arguments = tuple(Literal(x, WHOLE) if isinstance(x, int) else x for x in arguments)
        if operation in ("gt", "ge"):
            operation, arguments = {"gt": "lt", "ge": "le"}[operation], arguments[::-1]
        if operation == "lt" and arguments[0].kind == TRUTH:
            return self.let("and", arguments[1], self.let("not", arguments[0]))
        if operation == "exp":  # The exponential of e*log(x) is x to the power e.
            product = self._arguments(arguments[0], "mul")
            for e, factor in zip(product, product[::-1], strict=True):
                for x in self._arguments(factor, "log"):
                    return self.new("power", (x, e), REAL)
        kind: Any = _KINDS.get(operation, arguments[operation == "select"].kind)
        return _simplify(operation, arguments, kind) or self.new(operation, arguments, kind)

    def _arguments(self, x: Atom, operation: str) -> Sequence[Any]:
        """Return the arguments of `operation` if it computed `x`, otherwise ()."""
        made = self._made.get(x)
        return made.reads if made is not None and made.detail == operation else ()

    def new(self, operation: str, arguments: Sequence[Any], kind: str) -> Atom:
        """Return the result of an operation; append the operation if it is not yet in the code."""
        lasts = operation != "copy" and not (operation == "load" and arguments[0].local)
        keys = sorted(map(repr, arguments)) if operation in _SYMMETRIC else map(repr, arguments)
        key = operation, *keys
        if lasts and key in self.known:
            return self.known[key]
        variable = Variable(self.name(), kind)
        self._made[variable] = self.append("let", arguments, [variable], detail=operation)
        if lasts:
            self.known[key] = variable
        return variable


def _simplify(operation: str, a: Sequence[Any], kind: str) -> Atom | None:
    """Return an atom that equals the result of an operation, or None if it has no simpler form."""
    values = [x.value if isinstance(x, Literal) else None for x in a]
    if operation == "select":
        if values[0] is not None or a[1] == a[2]:
            return a[2] if values[0] is False else a[1]
        return a[0] if kind == TRUTH and values[1:] == [True, False] else None
    if None not in values and operation in _FOLDS and not any(v != v for v in values):
        try:
            return Literal(_TYPES[kind](_FOLDS[operation](*values)), kind)
        except (ValueError, OverflowError, ZeroDivisionError):
            return None
    if kind != REAL and operation in _ABSORBING and _ABSORBING[operation] in values:
        return Literal(_ABSORBING[operation], kind)
    if operation in _NEUTRAL and values[1] == _NEUTRAL[operation]:
        return a[0]
    if operation in _SYMMETRIC & _NEUTRAL.keys() and values[0] == _NEUTRAL[operation]:
        return a[1]
    if operation in ("and", "or") and a[0] == a[1]:
        return a[0]
    if operation in ("eq", "ne", "lt", "le") and a[0].kind == WHOLE and a[0] == a[1]:
        return Literal(operation in ("eq", "le"), TRUTH)
    return a[0] if operation.startswith("to_") and a[0].kind == kind else None
