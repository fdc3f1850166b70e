"""Base class of the printers of C, JavaScript and structured text: expressions and statements."""

import abc
import math
import re
from collections.abc import Sequence
from typing import Any, ClassVar

from .lowering import CannotBeWritten, Program
from .statements import (
    REAL,
    Array,
    Atom,
    Break,
    Call,
    Entry,
    Function,
    If,
    Let,
    Literal,
    Loop,
    Set,
    Statement,
    Store,
    Variable,
    statements_of,
)

# Precedence of operations. An operand of lower precedence is written in brackets.
ATOM, PREFIX, PRODUCT, SUM, ORDER, EQUALITY, AND, OR, CHOICE = range(9, 0, -1)
SIGNS = {
    "mul": ("*", PRODUCT), "div": ("/", PRODUCT), "idiv": ("/", PRODUCT), "add": ("+", SUM),
    "sub": ("-", SUM), "lt": ("<", ORDER), "le": ("<=", ORDER), "eq": ("==", EQUALITY),
    "ne": ("!=", EQUALITY), "and": ("&&", AND), "or": ("||", OR),
}  # fmt: skip

Text = tuple[str, int]  # an expression and its precedence


def call_formats(form: str, names: str, arguments: int = 1) -> dict[str, str]:
    """Return a call format for each name in `names`; `form` is the form of the function's name."""
    given = ", ".join(["{}"] * arguments)
    return {name: f"{form.format(name)}({given})" for name in names.split()}


class Language(abc.ABC):
    """A printer of the functions of a `Program`; a subclass defines the form of statements."""

    name: ClassVar[str]
    types: dict[str, str]
    signs: ClassVar[dict[str, str]] = {}  # operators that differ from those of C
    functions: dict[str, str]  # format of the call for each operation
    # The following fields are formats of statements.
    let: ClassVar[str]
    change: ClassVar[str]
    choose: ClassVar[tuple[str, str, str]]
    repeat: ClassVar[tuple[str, str]]
    count: ClassVar[tuple[str, str]]
    leave: ClassVar[str]
    indent = "  "
    longest = 110  # [characters] a longer expression is assigned to a named constant

    def print(self, program: Program) -> str:
        """Return the text of all functions. Of equal functions only the first is written."""
        self.depth = 0
        out = self.lines = [self.table(table) for table in program.tables]
        written, equal = dict[str, str](), dict[str, str]()
        for function in program.functions:
            self.lines = list[str]()
            self._function(function)
            text = "\n".join(self.lines)
            text = re.sub(r"\b[a-z_]+_\d+(?!\d)", lambda m: equal.get(m[0], m[0]), text)
            name = written.setdefault(text.replace(function.name, "@"), function.name)
            if name == function.name:
                out.append(text)
            else:
                equal[function.name] = name
        return "\n".join(out) + "\n"

    def write(self, text: str) -> None:
        self.lines.append(self.indent * self.depth + text)

    # The following methods write expressions.

    def atom(self, x: Any) -> Text:
        """Return the text of an atom or array, and its operator precedence."""
        if isinstance(x, Literal):
            text = self.literal(x.value, x.kind)
            return text, PREFIX if text.startswith("-") else ATOM
        if isinstance(x, Entry):
            return f"{x.array.name}[{x.index}]", ATOM
        return self.inlined.get(id(x)) or (x.name, ATOM)

    def text(self, x: Any) -> str:
        return self.atom(x)[0]

    def above(self, x: Any, least: int) -> str:
        """Return the text of an expression, in brackets unless its precedence is above `least`."""
        text, binding = self.atom(x)
        return text if binding > least else f"({text})"

    def expression(self, operation: str, arguments: Sequence[Any], kind: str) -> Text:
        if operation == "copy":
            return self.atom(arguments[0])
        if operation == "load":
            return f"{arguments[0].name}[{self.text(arguments[1])}]", ATOM
        if (special := self.special(operation, arguments, kind)) is not None:
            return special
        if operation in self.functions:
            return self.functions[operation].format(*map(self.text, arguments)), ATOM
        if operation == "neg":
            return f"-{self.above(arguments[0], PREFIX)}", PREFIX
        if operation not in SIGNS:
            raise CannotBeWritten(
                f"{self.name} has no function for `{operation}`. Write the machine without it."
            )
        sign, binding = SIGNS[operation]
        # Compilers warn if `and` inside `or`, or `<` inside `==`, is not in brackets.
        inside = {EQUALITY: ORDER, OR: AND}.get(binding, binding)
        is_chain = inside == binding and binding != ORDER
        left, right = self.above(arguments[0], inside - is_chain), self.above(arguments[1], inside)
        right = f"({right})" if right.startswith("-") else right
        return f"{left} {self.signs.get(operation, sign)} {right}", binding

    @abc.abstractmethod
    def literal(self, value: Any, kind: str) -> str: ...

    @abc.abstractmethod
    def special(self, operation: str, arguments: Sequence[Any], kind: str) -> Text | None:
        """Return the text of an operation without a sign or a call format; otherwise None."""

    # The following methods write statements.

    @abc.abstractmethod
    def table(self, table: Array) -> str: ...

    @abc.abstractmethod
    def call(self, call: Call, arguments: list[str]) -> None: ...

    @abc.abstractmethod
    def wrap(self, function: Function, body: list[str]) -> None:
        """Write a function around the lines of its body."""

    def results(self, function: Function) -> list[tuple[Atom, str, int]]:
        """Return each result, its array ("o" for reals, "k" for others) and its index in it."""
        count, out = {"o": 0, "k": 0}, []
        for i in function.returned:
            letter = "o" if function.outputs[i].kind == REAL else "k"
            out.append((function.outputs[i], letter, count[letter]))
            count[letter] += 1
        return out

    def result_arrays(self, function: Function) -> dict[str, tuple[str, int]]:
        """Return the kind and size of the result arrays "o" and "k", unless they are empty."""
        letters = [letter for _, letter, _ in self.results(function)]
        kinds = {"o": REAL, "k": "whole"}
        return {x: (kinds[x], letters.count(x)) for x in "ok" if x in letters}

    def _function(self, function: Function) -> None:
        # `uses` lists, for each variable, the block and the statement of each use of the variable.
        uses: dict[int, list[tuple[int, Any]]] = {}

        def read(block: list[Statement]) -> None:
            for statement in block:
                for x in statement.reads:
                    uses.setdefault(id(x), []).append((id(block), statement))
                for inside in statement.blocks:
                    read(inside)

        read(function.body)
        for x in function.outputs:
            uses.setdefault(id(x), []).append((id(function.body), None))
        changes = (s.writes[0] for s in statements_of(function.body) if isinstance(s, Set | Store))
        self.changing: list[Any] = list(dict.fromkeys(changes))
        self.constants: list[Variable] = []
        self.inlined: dict[int, Text] = {}
        moved = set(map(id, self.changing))  # changing variables and expressions of them

        def is_inlined(let: Let, block: list[Statement], text: str) -> bool:
            users, is_moved = (
                uses.get(id(let.writes[0]), []),
                any(id(x) in moved for x in let.reads),
            )
            if len(users) != 1 or users[0][0] != id(block) or let.operation == "copy":
                return False
            # An expression that reads a changing variable must be written before the change.
            is_late = isinstance(users[0][1], Set) and users[0][1].late
            if len(text) > self.longest or (is_moved and is_late):
                return False
            if is_moved:
                moved.add(id(let.writes[0]))
            return True

        def write(block: list[Statement]) -> None:
            self.depth += 1
            for s in block:
                match s:
                    case Let():
                        (variable,) = s.writes
                        text = self.expression(s.operation, s.reads, variable.kind)
                        if is_inlined(s, block, text[0]):
                            self.inlined[id(variable)] = text
                        else:
                            self.name_constant(variable, text[0])
                    case Set():
                        self.write(self.change.format(s.writes[0].name, self.text(s.reads[0])))
                    case Store():
                        index, value = map(self.text, s.reads)
                        self.write(self.change.format(f"{s.writes[0].name}[{index}]", value))
                    case If():
                        self.write(self.choose[0].format(self.text(s.reads[0])))
                        write(s.blocks[0])
                        if s.blocks[1]:
                            self.write(self.choose[1])
                            write(s.blocks[1])
                        self.write(self.choose[2])
                    case Loop():
                        begin, end = self.repeat if s.count is None else self.count
                        self.write(begin.format(self.depth, s.count, (s.count or 0) - 1))
                        write(s.blocks[0])
                        self.write(end)
                    case Break():
                        self.write(self.leave.format(self.text(s.reads[0])))
                    case Call():
                        self.call(s, list(map(self.text, s.reads)))
            self.depth -= 1

        lines, self.lines = self.lines, []
        write(function.body)
        body, self.lines = self.lines, lines
        self.wrap(function, body)

    def name_constant(self, variable: Variable, text: str) -> None:
        self.constants.append(variable)
        self.write(self.let.format(self.types[variable.kind], variable.name, text))

    def number(self, value: float, infinity: str, nan: str) -> str:
        """Return a finite number as Python writes it, otherwise `infinity` or `nan`."""
        if math.isnan(value):
            return nan
        return repr(value) if math.isfinite(value) else ("-" if value < 0 else "") + infinity
