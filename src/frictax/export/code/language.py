"""Base class of the printers of C, JavaScript and structured text: expressions and statements."""

import abc
import collections
import re
from typing import Any, ClassVar, NamedTuple

from .lowering import CannotBeWritten, Program
from .statements import WHOLE, Entry, Function, Literal, Statement

# The form of an operation begins with its precedence: 9 for a name or a call, 8 for a prefix, 7 for
# a product, 6 for a sum, 5 for an order, 4 for an equality, 3 for "and", 2 for "or", 1 for choices.
# "{0:6}" is the first operand, in brackets unless its precedence is above 6. "{0:6-}" is the same,
# but a negative operand is in brackets too. Compilers warn if `and` inside `or`, or `<` inside
# `==`, is not in brackets.
OPERATORS = {
    "mul": "7 {:6} * {:7-}", "div": "7 {:6} / {:7-}",
    "add": "6 {:5} + {:6-}", "sub": "6 {:5} - {:6-}", "lt": "5 {:5} < {:5-}",
    "le": "5 {:5} <= {:5-}", "eq": "4 {:5} == {:5-}", "ne": "4 {:5} != {:5-}",
    "and": "3 {:2} && {:3-}", "or": "2 {:3} || {:3-}", "not": "8 !{:8}", "neg": "8 -{:8}",
    "load": "9 {}[{}]", "copy": "same",
}  # fmt: skip


def calls(form: str, names: str) -> dict[str, str]:
    """Return the form of a call for each name in `names`, such as "9 Math.NAME({})"."""
    return {name: form.replace("NAME", name) for name in names.split()}


class Text(NamedTuple):
    """An expression and its precedence."""

    text: str
    precedence: int = 9

    def __format__(self, least: str) -> str:
        is_plain = self.precedence > int(least.rstrip("-") or 0)
        is_plain &= not (least.endswith("-") and self.text.startswith("-"))
        return self.text if is_plain else f"({self.text})"


class Language(abc.ABC):
    """A printer of the functions of a `Program`, with formats for operations and statements."""

    name: ClassVar[str]
    types: dict[str, str]
    forms: dict[str, str]  # by operation, or by operation and kind of the first operand
    statements: ClassVar[dict[str, str]]
    words: ClassVar[dict[str, str]]  # by a value as Python writes it
    place: ClassVar[str]  # of a result, by name of the function, array and index
    comma, indent = ", ", "  "
    longest = 110  # [characters] a longer expression is assigned to a named constant

    def print(self, program: Program) -> str:
        """Return the text of all functions. Of equal functions only the first is written."""
        self.depth, self.lines = 0, list[str]()
        for x in program.tables.values():
            values = self.comma.join(map(self.text, x.values))
            self.write("table", self.types[x.kind], x.name, x.size, values, x.size - 1)
        out, written, equal = self.lines, dict[str, str](), dict[str, str]()
        for function in program.called_functions():
            text = "\n".join(self._function(function))
            text = re.sub(r"\b[a-z_]+_\d+(?!\d)", lambda m: equal.get(m[0], m[0]), text)
            name = written.setdefault(text.replace(function.name, "@"), function.name)
            if name == function.name:
                out.append(text)
            else:
                equal[function.name] = name
        return "\n".join(out) + "\n"

    # The following methods write expressions.

    @abc.abstractmethod
    def number(self, value: float) -> str:
        """Return the text of a finite real number."""

    def literal(self, value: Any, kind: str) -> str:
        number = str(value) if kind == WHOLE else self.number(value)
        return self.words.get(str(value), number)

    def atom(self, x: Any) -> Text:
        """Return the text of an atom or array."""
        if isinstance(x, Literal):
            text = self.literal(x.value, x.kind)
            return Text(text, 7 if "/" in text else 8 if text.startswith("-") else 9)
        if isinstance(x, Entry):
            return Text(f"{x.array.name}[{x.index}]")
        return self.inlined.get(x) or Text(x.name)

    def text(self, x: Any) -> str:
        return self.atom(x).text

    def expression(self, let: Statement) -> Text:
        operation, operands = let.detail, list(map(self.atom, let.reads))
        form = self.forms.get(f"{operation} {let.reads[0].kind}") or self.forms.get(operation)
        if form is None:
            raise CannotBeWritten(
                f"{self.name} has no function for `{operation}`. Write the machine without it."
            )
        return (
            operands[0]
            if form == "same"
            else Text(form[1:].lstrip().format(*operands), int(form[0]))
        )

    # The following methods write statements.

    def write(self, statement: str, *texts: Any) -> None:
        self.lines.append(self.indent * self.depth + self.statements[statement].format(*texts))

    def name_constant(self, variable: Any, text: str) -> None:
        self.constants.append(variable)
        self.write("let", self.types[variable.kind], variable.name, text)

    @abc.abstractmethod
    def call(self, call: Statement, arguments: list[str]) -> None: ...

    @abc.abstractmethod
    def wrap(self, function: Function, body: list[str]) -> list[str]:
        """Return the lines of a function around the lines of its body."""

    def _function(self, function: Function) -> list[str]:
        # The users of each variable: names of the statements that read it, with their blocks.
        self.users = collections.defaultdict[Any, list[Any]](list)
        for x in function.results:
            self.users[x].append((function.body, "result"))
        changing = list[Any]()
        for block, s in function.statements():
            for x in s.reads:
                self.users[x].append((block, s.name))
            changing += s.writes if s.name in ("set", "late", "store") else ()
        self.changing = list(dict.fromkeys(changing))
        self.moved = set(changing)  # changing variables and expressions of them
        self.constants, self.inlined, self.lines = list[Any](), dict[Any, Text](), list[str]()
        self.block(function.body)
        self.depth += 1
        for x, *place in function.places:
            self.write("set", self.place.format(function.name, *place), self.text(x))
        self.depth -= 1
        return self.wrap(function, self.lines)

    def is_inlined(self, let: Statement, block: list[Statement], text: str) -> bool:
        """Return whether the only statement that uses an expression contains it."""
        (where, user), *others = self.users[let.writes[0]]
        is_moved = not self.moved.isdisjoint(let.reads)
        if others or where is not block or let.detail == "copy" or len(text) > self.longest:
            return False
        # An expression that reads a changing variable must be written before the change.
        if is_moved and user == "late":
            return False
        self.moved.update(let.writes if is_moved else ())
        return True

    def block(self, block: list[Statement]) -> None:
        self.depth += 1
        for s in block:
            texts = list(map(self.text, s.reads))
            match s.name:
                case "let":
                    text = self.expression(s)
                    if self.is_inlined(s, block, text.text):
                        self.inlined[s.writes[0]] = text
                    else:
                        self.name_constant(s.writes[0], text.text)
                case "set" | "late":
                    self.write("set", s.writes[0].name, *texts)
                case "store":
                    self.write("set", f"{s.writes[0].name}[{texts[0]}]", texts[1])
                case "if" | "loop":
                    count = s.detail or 0
                    begin = "count" if count else s.name
                    for form, inside in zip((begin, "else"), s.blocks, strict=False):
                        if inside or form == begin:
                            self.write(form, *(texts or [self.depth, count, count - 1]))
                            self.block(inside)
                    self.write(f"end {begin}")
                case "break":
                    self.write("break", *texts)
                case "call":
                    self.call(s, texts)
        self.depth -= 1
