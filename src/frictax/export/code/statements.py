"""Scalar statements, the intermediate form between a JAX program and a programming language.

A `Builder` folds constants and shares equal subexpressions while it appends statements.
`live_statements` removes statements that no output needs.
"""

import collections
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

REAL, WHOLE, TRUTH = "real", "whole", "truth"


@dataclass(frozen=True)
class Literal:
    """A number that is known when the code is written."""

    value: Any
    kind: str

    @property
    def key(self) -> tuple[Any, ...]:
        return repr(self.value), self.kind


@dataclass(frozen=True, eq=False)
class Array:
    """An array: an argument, a table with `values`, or a `local` array of a function."""

    name: str
    kind: str
    size: int
    values: tuple[Any, ...] | None = None
    local: bool = False


@dataclass(frozen=True)
class Entry:
    """An entry of an array that the function does not change."""

    array: Array
    index: int

    @property
    def kind(self) -> str:
        return self.array.kind

    @property
    def key(self) -> tuple[Any, ...]:
        return self.array.name, self.index


@dataclass(frozen=True, eq=False)
class Variable:
    """A number that the code computes, once or in each iteration of a loop."""

    name: str
    kind: str

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.name,)


Atom = Literal | Entry | Variable


@dataclass(eq=False)
class Statement:
    """A statement: atoms that it reads, variables and arrays that it writes, and inner blocks."""

    reads: list[Any] = field(default_factory=list)
    writes: list[Any] = field(default_factory=list)
    blocks: list[list["Statement"]] = field(default_factory=list)


class Let(Statement):
    """The statement variable = operation(arguments). Operation "load" reads an array's entry."""

    def __init__(self, variable: Variable, operation: str, arguments: Iterable[Any]) -> None:
        super().__init__(list(arguments), [variable])
        self.operation = operation


class Set(Statement):
    """The statement variable = value; `late`: whether it is done at the end of an iteration."""

    def __init__(self, variable: Variable, value: Atom, late: bool = False) -> None:
        super().__init__([value], [variable])
        self.late = late


class Store(Statement):
    """The statement array[index] = value."""

    def __init__(self, array: Array, index: Atom, value: Atom) -> None:
        super().__init__([index, value], [array])


class If(Statement):
    def __init__(self, condition: Atom, then: list[Statement], otherwise: list[Statement]) -> None:
        super().__init__([condition], [], [then, otherwise])


class Loop(Statement):
    """A loop that repeats its block until a `Break`, or `count` times."""

    def __init__(self, body: list[Statement], count: int | None = None) -> None:
        super().__init__([], [], [body])
        self.count = count


class Break(Statement):
    def __init__(self, condition: Atom) -> None:
        super().__init__([condition])


class Call(Statement):
    """A call of a function. `results` contains None for a result that nothing reads."""

    def __init__(self, function: "Function", arguments: list[Any], results: list[Any]) -> None:
        super().__init__(arguments, results)
        self.function = function


@dataclass(eq=False)
class Function:
    """A function of the code. `returned`: indices of the outputs that a call passes back. All other
    outputs are literals or arguments, which the caller knows.
    """

    name: str
    inputs: list[Any] = field(default_factory=list)
    body: list[Statement] = field(default_factory=list)
    outputs: list[Atom] = field(default_factory=list)
    returned: list[int] = field(default_factory=list)


_SYMMETRIC = {"add", "mul", "eq", "ne", "and", "or", "max", "min"}
_COMPARISONS = {"eq", "ne", "lt", "le", "and", "or", "not", "finite", "to_truth"}
_FOLDS: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, name) for name in "add sub mul neg eq ne lt le".split()},
    **{"and": operator.and_, "or": operator.or_, "not": operator.not_, "finite": math.isfinite},
    **{"max": max, "min": min, "abs": abs, "sqrt": math.sqrt, "div": operator.truediv},
    **{"idiv": lambda x, y: int(x / y), "to_real": float, "to_whole": int, "to_truth": bool},
}


class Builder:
    """The statements of one function. `let` appends an operation and returns an atom."""

    def __init__(self) -> None:
        self.blocks: list[list[Statement]] = [[]]
        self._known: list[dict[Any, Any]] = [{}]
        self._count = 0
        self._made: dict[int, Let] = {}  # statement that defines each variable, by `id`

    def name(self, letter: str = "v") -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def append(self, statement: Statement) -> None:
        self.blocks[-1].append(statement)

    def open(self) -> None:
        """Begin a block inside the current block."""
        self.blocks.append([])
        self._known.append({})

    def close(self) -> list[Statement]:
        self._known.pop()
        return self.blocks.pop()

    def recall(self, key: Any) -> Any:
        """Return what `keep` stored under `key` in this block or a block around it, or None."""
        return next((known[key] for known in reversed(self._known) if key in known), None)

    def keep(self, key: Any, value: Any) -> Any:
        self._known[-1][key] = value
        return value

    def let(self, operation: str, *arguments: Any) -> Any:
        """Append an operation and return its result, or return an atom that equals the result."""
        if operation in ("gt", "ge"):
            operation, arguments = {"gt": "lt", "ge": "le"}[operation], arguments[::-1]
        if operation == "div" and arguments[0].kind == WHOLE:
            operation = "idiv"
        if operation == "eq" and arguments[0].kind == TRUTH:
            return self.let("not", self.let("ne", *arguments))
        if operation == "exp" and (power := self._power(arguments[0])) is not None:
            return self._new("power", power, REAL)
        kind = arguments[operation == "select"].kind
        if operation.startswith("to_"):
            kind = operation.removeprefix("to_")
        kind = TRUTH if operation in _COMPARISONS else kind
        simple = _simplify(operation, arguments, kind)
        return simple or self._new(operation, arguments, kind)

    def _power(self, exponent: Atom) -> Sequence[Atom] | None:
        """Return x and e if `exponent` is e*log(x), so that its exponential is x to the power e."""
        product = self._made.get(id(exponent))
        if product is None or product.operation != "mul":
            return None
        for e, x in (product.reads, product.reads[::-1]):
            logarithm = self._made.get(id(x))
            if logarithm is not None and logarithm.operation == "log":
                return logarithm.reads[0], e
        return None

    def load(self, array: Array, index: Atom) -> Atom:
        if isinstance(index, Literal) and not array.local:
            return Entry(array, int(index.value))
        return self._new("load", (array, index), array.kind)

    def copy(self, atom: Variable) -> Atom:
        """Return the current value of a variable that changes."""
        return self._new("copy", (atom,), atom.kind)

    def _new(self, operation: str, arguments: Sequence[Any], kind: str) -> Atom:
        lasts = operation != "copy" and not (operation == "load" and arguments[0].local)
        keys = [x.name if isinstance(x, Array) else x.key for x in arguments]
        key = (operation, *(sorted(keys, key=str) if operation in _SYMMETRIC else keys))
        if lasts and (found := self.recall(key)) is not None:
            return found
        variable = Variable(self.name(), kind)
        self._made[id(variable)] = Let(variable, operation, arguments)
        self.append(self._made[id(variable)])
        return self.keep(key, variable) if lasts else variable


def _simplify(operation: str, a: Sequence[Any], kind: str) -> Atom | None:
    """Return an atom that equals the result of an operation, or None."""
    values = [x.value if isinstance(x, Literal) else None for x in a]

    def beside(value: Any) -> Any:
        """Return one of two arguments if the other argument is the number `value`."""
        return a[1] if values[0] == value else a[0] if values[-1] == value else None

    if operation == "select":
        if values[0] is not None:
            return a[1] if values[0] else a[2]
        if a[1] == a[2]:
            return a[1]
        return a[0] if kind == TRUTH and values[1] is True and values[2] is False else None
    if None not in values and operation in _FOLDS and not any(v != v for v in values):
        try:
            value = _FOLDS[operation](*values)
        except (ValueError, OverflowError, ZeroDivisionError):
            return None
        return Literal(float(value) if kind == REAL else value, kind)
    if operation in ("and", "or"):
        ends = operation == "or"
        if beside(ends) is not None:
            return Literal(ends, TRUTH)
        return beside(not ends) or (a[0] if a[0] == a[1] else None)
    if operation in ("eq", "ne", "lt", "le") and a[0].kind == WHOLE and a[0] == a[1]:
        return Literal(operation in ("eq", "le"), TRUTH)
    if operation == "mul" and kind == WHOLE and beside(0) is not None:
        return Literal(0, WHOLE)
    if operation in ("add", "mul"):
        return beside(0 if operation == "add" else 1)
    if operation in ("sub", "div", "idiv"):
        return a[0] if values[1] == (0 if operation == "sub" else 1) else None
    return a[0] if operation.startswith("to_") and a[0].kind == kind else None


def statements_of(block: Sequence[Statement]) -> Iterator[Statement]:
    """Iterate over the statements of a block and of all blocks inside."""
    for statement in block:
        yield statement
        for inside in statement.blocks:
            yield from statements_of(inside)


def places(atoms: Iterable[Any]) -> set[int]:
    """Return the `id` of each variable and array in `atoms`."""
    return {id(x.array if isinstance(x, Entry) else x) for x in atoms if x is not None}


def live_statements(body: list[Statement], outputs: Sequence[Atom]) -> list[Statement]:
    """Return the statements that the outputs need. Unused loop variables are removed."""
    needs: dict[int, set[int]] = collections.defaultdict(set)

    def enter(block: list[Statement], above: set[int]) -> None:
        for statement in block:
            own = above | places(statement.reads)
            for place in places(statement.writes):
                needs[place] |= own
            for inside in statement.blocks:
                ends = [x for s in inside if isinstance(s, Break) for x in s.reads]
                enter(inside, own | places(ends))

    enter(body, set())
    needed, waiting = set[int](), places(outputs)
    while waiting:
        needed |= waiting
        waiting = set().union(*(needs[place] for place in waiting)) - needed

    def cut(block: list[Statement]) -> list[Statement]:
        left = []
        for statement in block:
            statement.blocks = [cut(inside) for inside in statement.blocks]
            works = any(not isinstance(s, Break) for inside in statement.blocks for s in inside)
            if works or isinstance(statement, Break) or places(statement.writes) & needed:
                left.append(statement)
            if isinstance(statement, Call):
                statement.writes = [v if id(v) in needed else None for v in statement.writes]
        return left

    return cut(body)
