"""Print functions as C, JavaScript or structured text; each language is a class of formats."""

import abc
import collections
import itertools
import math
import re
from collections.abc import Sequence
from string import ascii_letters as LETTERS
from typing import Any, ClassVar, NamedTuple

from .lowering import CannotBeWritten, Program
from .statements import REAL, RESULTS, TRUTH, WHOLE, Array, Entry, Function, Literal, Statement

# A form is the text pattern of an operation. A form begins with the precedence of the operation: 9
# for a name or a call, 8 for a prefix, 7 for a product, 6 for a sum, 5 for < and <=, 4 for an
# equality, 3 for "and", 2 for "or", 1 for a choice. "{0:6}" is the first operand, with brackets if
# its precedence is 6 or lower. With "{0:6-}" a negative operand also has brackets. Brackets around
# `and` inside `or`, and around `<` inside `==`, avoid compiler warnings.
OPERATORS = {
    "mul": "7 {:6} * {:7-}", "div": "7 {:6} / {:7-}",
    "add": "6 {:5} + {:6-}", "sub": "6 {:5} - {:6-}", "lt": "5 {:5} < {:5-}",
    "le": "5 {:5} <= {:5-}", "eq": "4 {:5} == {:5-}", "ne": "4 {:5} != {:5-}",
    "and": "3 {:2} && {:3-}", "or": "2 {:3} || {:3-}", "not": "8 !{:8}", "neg": "8 -{:8}",
    "load": "9 {}[{}]", "copy": "same",
}  # fmt: skip


def calls(form: str, names: str) -> dict[str, str]:
    """Return a form for each function in `names`, whose name replaces NAME in `form`."""
    return {name: form.replace("NAME", name) for name in names.split()}


class Text(NamedTuple):
    """The text of an expression, and its precedence (see `OPERATORS`)."""

    text: str
    precedence: int = 9

    def __format__(self, least: str) -> str:
        is_plain = self.precedence > int(least.rstrip("-") or 0)
        is_plain &= not (least.endswith("-") and self.text.startswith("-"))
        return self.text if is_plain else f"({self.text})"


class Language(abc.ABC):
    """A printer of the functions of a `Program`; each subclass has the formats of one language."""

    name: ClassVar[str]
    types: dict[str, str]
    forms: dict[str, str]  # form of an operation, or of an operation and its first operand's kind
    statements: ClassVar[dict[str, str]]
    words: dict[str, str]  # text for each Python constant, such as "True"
    place: ClassVar[str]  # format of a result: {0} function, {1} array ("o" or "k"), {2} index
    comma, indent = ", ", "  "
    longest = 110  # [characters] a longer expression is assigned to a named constant

    def print(self, program: Program) -> str:
        """Return the text of all functions; functions with equal code are written only once."""
        self.depth, self.lines = 0, list[str]()
        for x in program.tables.values():
            values = self.comma.join(map(self.text, x.values))
            self.write("table", self.types[x.kind], x.name, x.size, values, x.size - 1)
        out, written, equal = self.lines, dict[str, str](), dict[str, str]()
        for function in program.called_functions():
            text = "\n".join(self._function(function))
            text = re.sub(r"\b[a-z_]+_\d+(?!\d)", lambda m: equal.get(m[0], m[0]), text)
            anonymous = text.replace(function.name, "@")
            equal[function.name] = written.setdefault(anonymous, function.name)
            out += [text] if equal[function.name] == function.name else []
        return "\n".join(out) + "\n"

    @abc.abstractmethod
    def number(self, value: float) -> str:
        """Return the text of a finite real number."""

    def literal(self, value: Any, kind: str) -> str:
        if (word := str(value)) in self.words:
            return self.words[word]
        return word if kind == WHOLE else self.number(value)

    def atom(self, x: Any) -> Text:
        """Return the text of an atom (literal, variable or array entry) or of an array."""
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
        if form == "same":
            return operands[0]
        return Text(form[1:].lstrip().format(*operands), int(form[0]))

    def write(self, statement: str, *texts: Any) -> None:
        self.lines.append(self.indent * self.depth + self.statements[statement].format(*texts))

    def name_constant(self, variable: Any, text: str) -> None:
        self.constants.append(variable)
        self.write("let", self.types[variable.kind], variable.name, text)

    @abc.abstractmethod
    def call(self, call: Statement, arguments: list[str]) -> None: ...

    @abc.abstractmethod
    def wrap(self, function: Function, body: list[str]) -> list[str]:
        """Return the lines of a function: head and declarations, the lines `body`, and the end."""

    def _function(self, function: Function) -> list[str]:
        # `users` lists the statements that read a variable, as pairs of block and statement name.
        self.users = collections.defaultdict[Any, list[Any]](list)
        changing = list[Any]()
        for block, s in function.statements():
            for x in s.reads:
                self.users[x].append((block, s.name))
            changing += s.writes if s.name in ("set", "late", "store") else ()
        self.changing = list(dict.fromkeys(changing))
        self.moved = set(changing)  # changing variables, and expressions that read these
        self.constants, self.inlined, self.lines = list[Any](), dict[Any, Text](), list[str]()
        self.block(function.body)
        return self.wrap(function, self.lines)

    def is_inlined(self, let: Statement, block: list[Statement], text: str) -> bool:
        """Return whether to write an expression inside the only statement that uses its value."""
        (where, user), *others = self.users[let.writes[0]]
        is_moved = not self.moved.isdisjoint(let.reads)
        if others or where is not block or let.detail == "copy" or len(text) > self.longest:
            return False
        # An expression that reads a changing variable must be evaluated before the change.
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
                case "result":
                    self.write("set", self.place.format(*s.detail), *texts)
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


# If a line of `HEAD` defines a function, the line is written only if the code calls the function.
HEAD = """\
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#if defined __GNUC__
#define FX_MAYBE __attribute__((unused))
#else
#define FX_MAYBE
#endif
/* fx_max(a, b) and fx_min(a, b) return NaN if a or b is NaN. */
static FX_MAYBE inline double fx_max(double a, double b) { return a > b || a != a ? a : b; }
static FX_MAYBE inline double fx_min(double a, double b) { return a < b || a != a ? a : b; }
static FX_MAYBE inline int32_t fx_most(int32_t a, int32_t b) { return a > b ? a : b; }
static FX_MAYBE inline int32_t fx_least(int32_t a, int32_t b) { return a < b ? a : b; }
static FX_MAYBE inline double fx_sign(double a) { return (double)((a > 0) - (a < 0)); }
"""


class C(Language):
    """Printer of C99 code that does not allocate memory. `public`: names of the functions that
    other files may call; `real`: the type of real numbers, "double" or "float"."""

    name = "C"
    forms = OPERATORS | {
        **calls("9 NAME({})", "exp log sqrt sin cos tan tanh floor ceil log1p expm1 atan asin"),
        **calls("9 NAME({})", "acos cbrt sinh cosh erf"),
        **calls("9 NAME({}, {})", "pow atan2 nextafter"),
        "round": "9 rint({})", "finite": "9 (fabs({}) < INFINITY)",
        "power": "9 ({1} == 1 ? {0} : exp(({1}) * log({0})))",
        "max real": "9 fx_max({}, {})", "min real": "9 fx_min({}, {})",
        "max": "9 fx_most({}, {})", "min": "9 fx_least({}, {})",
        "abs real": "9 fabs({})", "abs": "9 abs({})",
        "sign real": "9 fx_sign({})", "sign": "9 (({0} > 0) - ({0} < 0))",
        "rem real": "9 fmod({}, {})", "rem": "7 {:7} % {:7}",
        "select": "1 {:1} ? {:1} : {}", "to_truth": "4 {:4} != 0", "to_real": "8 (double){:8}",
        "to_whole": "8 (int32_t){:8}", "to_whole truth": "same",
    }  # fmt: skip
    words = {"False": "0", "True": "1", "inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}
    statements = {
        "table": "static const {} {}[{}] = {{{}}};", "let": "const {} {} = {};", "set": "{} = {};",
        "if": "if ({}) {{", "else": "}} else {{", "end if": "}}", "break": "if ({}) break;",
        "loop": "for (;;) {{", "end loop": "}}", "end count": "}}", "call": "{}({});",
        "count": "for (int32_t n{0} = 0; n{0} < {1}; n{0}++) {{", "array": "{} {}[{}];",
    }  # fmt: skip
    place = "{1}[{2}]"

    def __init__(self, public: Sequence[str] = (), real: str = "double") -> None:
        self.public, self.calls, self.real = public, 0, real
        self.types = {REAL: real, WHOLE: "int32_t", TRUTH: "int32_t"}
        if real == "float":
            name = re.compile(r"\b(?!fx_|abs)([a-z]\w*)(?=\()")
            self.forms = {
                k: name.sub(r"\1f", form.replace("double", real)) for k, form in self.forms.items()
            }

    def head(self, body: str) -> str:
        """Return the include lines, and the helper functions that `body` calls."""
        lines = HEAD.replace("double", self.real).splitlines()
        named = [(line, re.search(r"fx_\w+\(", line)) for line in lines]
        return "\n".join(line for line, name in named if name is None or name[0] in body)

    def number(self, value: float) -> str:
        return repr(value) + "f" * (self.real == "float")

    def call(self, call: Statement, arguments: list[str]) -> None:
        self.calls += 1
        for letter, size in call.detail.sizes.items():
            arguments.append(f"{letter}_{self.calls}")
            self.write("array", self.types[RESULTS[letter]], arguments[-1], size)
        self.write("call", call.detail.name, ", ".join(arguments))
        for variable, (_, letter, i) in zip(call.writes, call.detail.places, strict=True):
            if variable is not None:
                self.name_constant(variable, f"{letter}_{self.calls}[{i}]")

    def signature(self, function: Function) -> str:
        given = list[str]()
        for x in function.inputs:
            form = "const {} *{}" if isinstance(x, Array) else "{} {}"
            given.append(form.format(self.types[x.kind], x.name))
        given += [f"{self.types[RESULTS[letter]]} *{letter}" for letter in function.sizes]
        before = "" if function.name in self.public else "static "
        return f"{before}void {function.name}({', '.join(given)})"

    def wrap(self, function: Function, body: list[str]) -> list[str]:
        words = set(re.findall(r"\w+", "\n".join(body)))
        unused = [f"  (void){x.name};" for x in function.inputs if x.name not in words]
        local = list[str]()
        for x in self.changing:
            size = f"[{x.size}]" if isinstance(x, Array) else ""
            local.append(f"  {self.types[x.kind]} {x.name}{size};")
        return [self.signature(function) + " {", *unused, *local, *body, "}"]


class JavaScript(Language):
    """Printer of JavaScript for a web page, with short names and results in arrays."""

    name = "JavaScript"
    types = {REAL: "Float64Array", WHOLE: "Int32Array", TRUTH: "Int32Array"}  # types of arrays
    forms = {operation: form.replace(" ", "") for operation, form in OPERATORS.items()} | {
        **calls("9 Math.NAME({})", "exp log sqrt sin cos tan tanh floor ceil log1p expm1 atan"),
        **calls("9 Math.NAME({})", "asin acos cbrt sinh cosh abs sign"),
        **calls("9 Math.NAME({},{})", "pow atan2 max min"),
        "power": "9 ({1}===1?{0}:Math.exp(({1})*Math.log({0})))", "finite": "9 isFinite({})",
        "eq": "4 {:5}==={:5-}", "ne": "4 {:5}!=={:5-}", "div whole": "9 (({})/({})|0)",
        "rem": "7 {:7}%{:7}", "select": "1 {:1}?{:1}:{}", "to_truth": "4 {:4}!==0",
        "to_real": "same", "to_whole": "9 Math.trunc({})",
        "to_real truth": "9 ({:1}?1:0)", "to_whole truth": "9 ({:1}?1:0)",
    }  # fmt: skip
    words = {"False": "false", "True": "true", "inf": "1/0", "-inf": "-1/0", "nan": "NaN"}
    statements = {
        "table": "const {1}=new {0}([{3}]);", "let": "const {1}={2};", "set": "{}={};",
        "if": "if({}){{", "else": "}}else{{", "end if": "}}", "break": "if({})break;",
        "loop": "for(;;){{", "end loop": "}}", "end count": "}}", "call": "{}({});",
        "count": "for(let n{0}_=0;n{0}_<{1};n{0}_++){{",
    }  # fmt: skip
    place, comma, indent = "{}_{}[{}]", ",", ""

    def number(self, value: float) -> str:
        return repr(value).removesuffix(".0")

    def call(self, call: Statement, arguments: list[str]) -> None:
        name = call.detail.name
        self.write("call", name, ",".join(arguments))
        for variable, (x, letter, i) in zip(call.writes, call.detail.places, strict=True):
            if variable is not None:
                test = "===1" if x.kind == TRUTH else ""
                self.name_constant(variable, self.place.format(name, letter, i) + test)

    def wrap(self, function: Function, body: list[str]) -> list[str]:
        stored = [
            f"const {function.name}_{letter}=new {self.types[RESULTS[letter]]}({size});"
            for letter, size in function.sizes.items()
        ]
        local = [
            f"{x.name}=new {self.types[x.kind]}({x.size})" if isinstance(x, Array) else x.name
            for x in self.changing
        ]
        body = [f"let {','.join(local)};", *body] if local else body
        head = f"function {function.name}({','.join(x.name for x in function.inputs)}){{"
        words = ("".join(x) for n in (1, 2, 3) for x in itertools.product(LETTERS, repeat=n))
        # A `$` in a name avoids confusion with the arguments p, t, y and with reserved words.
        names = ("$" * (len(x) > 1 or x in "pty") + x for x in words)
        short = collections.defaultdict[str, str](names.__next__)
        text = re.sub(r"\b[avmrty]\d+\b", lambda m: short[m[0]], "\n".join([head, *body]) + "}")
        return [*stored, text]


# LN(0) stops many controllers. SEL evaluates both values, so each argument of LN is at least
# 1.0E-37.
LARGEST = "1.0E+300"  # replaces infinity and NaN, which structured text does not have
IN_REAL = 1.2e-38, 3e38  # smallest and largest size of a literal of type REAL


class StructuredText(Language):
    """Printer of structured text of IEC 61131-3. `real`: the type of reals, "LREAL" or "REAL"."""

    name = "Structured text"
    forms = OPERATORS | {
        **{x: f"9 {x.upper()}({{}})" for x in "exp sqrt sin cos tan asin acos atan abs".split()},
        "log": "9 LN(MAX({}, 1.0E-37))", "max": "9 MAX({}, {})", "min": "9 MIN({}, {})",
        "pow": "9 EXPT({}, {})", "power": "9 EXP(({1}) * LN(MAX({0}, 1.0E-37)))",
        "tanh": "9 (1.0 - 2.0 / (EXP(2.0 * ({})) + 1.0))",
        "log1p": "9 LN(1.0 + ({}))", "expm1": "9 (EXP({}) - 1.0)",
        "finite": f"9 (ABS({{}}) < {LARGEST})",
        "floor": "9 (DINT_TO_LREAL(TRUNC({0})) - BOOL_TO_LREAL(DINT_TO_LREAL(TRUNC({0})) > ({0})))",
        "eq": "4 {:5} = {:5-}", "ne": "4 {:5} <> {:5-}", "and": "3 {:2} AND {:3-}",
        "or": "2 {:3} OR {:3-}", "not": "8 NOT {:8}", "to_truth": "4 {:4} <> 0",
        "select": "9 SEL({0}, {2}, {1})",  # the first value of SEL is the result for FALSE
        "sign real": "9 SEL({0} > 0.0, SEL({0} < 0.0, 0.0, -1.0), 1.0)",
        "sign": "9 (BOOL_TO_DINT({0} > 0) - BOOL_TO_DINT({0} < 0))",
        "rem real": "9 ({0} - ({1}) * DINT_TO_LREAL(TRUNC(({0}) / ({1}))))", "rem": "9 ({} MOD {})",
        "to_whole real": "9 TRUNC({})", "to_whole truth": "9 BOOL_TO_DINT({})",
        "to_real truth": "9 BOOL_TO_LREAL({})", "to_real whole": "9 DINT_TO_LREAL({})",
    }  # fmt: skip
    words = {"False": "FALSE", "True": "TRUE", "inf": LARGEST, "-inf": f"-{LARGEST}"}
    words |= {"nan": LARGEST}
    statements = {
        "table": "VAR_GLOBAL CONSTANT\n  {1} : ARRAY[0..{4}] OF {0} := [{3}];\nEND_VAR",
        "let": "{1} := {2};", "set": "{} := {};", "break": "IF {} THEN EXIT; END_IF",
        "if": "IF {} THEN", "else": "ELSE", "end if": "END_IF", "call": "{}({});",
        "loop": "WHILE TRUE DO", "end loop": "END_WHILE",
        "count": "FOR n{0} := 0 TO {2} DO", "end count": "END_FOR",
    }  # fmt: skip
    place = "{1}{2}"

    def __init__(self, real: str = "LREAL") -> None:
        self.types = {REAL: real, WHOLE: "DINT", TRUTH: "BOOL"}
        largest = LARGEST if real == "LREAL" else "3.0E+38"
        self.words = {word: text.replace(LARGEST, largest) for word, text in self.words.items()}
        self.forms = {
            name: form.replace("LREAL", real).replace(LARGEST, largest)
            for name, form in self.forms.items()
        }

    def number(self, value: float) -> str:
        if self.types[REAL] == "REAL" and value:
            value = math.copysign(min(max(abs(value), IN_REAL[0]), IN_REAL[1]), value)
        digits, _, power = repr(value).upper().partition("E")
        return f"{digits}{'' if '.' in digits else '.0'}{f'E{power}' if power else ''}"

    def declare(self, x: Any) -> str:
        size = f"ARRAY[0..{max(x.size - 1, 0)}] OF " if isinstance(x, Array) else ""
        return f"{x.name} : {size}{self.types[x.kind]}"

    def call(self, call: Statement, arguments: list[str]) -> None:
        function = call.detail
        given = [f"{x.name} := {a}" for x, a in zip(function.inputs, arguments, strict=True)]
        for variable, (_, letter, i) in zip(call.writes, function.places, strict=True):
            if variable is not None:
                self.constants.append(variable)
                given.append(f"{letter}{i} => {variable.name}")
        self.write("call", function.name, ", ".join(given))

    def wrap(self, function: Function, body: list[str]) -> list[str]:
        counters = sorted({line.split()[1] for line in body if line.lstrip().startswith("FOR ")})
        inputs, places = function.inputs, function.places
        blocks = {
            "VAR_IN_OUT": [self.declare(x) for x in inputs if isinstance(x, Array)],
            "VAR_INPUT": [self.declare(x) for x in inputs if not isinstance(x, Array)],
            "VAR_OUTPUT": [f"{letter}{i} : {self.types[x.kind]}" for x, letter, i in places],
            "VAR": [
                *map(self.declare, [*self.changing, *self.constants]),
                *(f"{name} : DINT" for name in counters),
            ],
        }
        lines = [f"FUNCTION {function.name} : BOOL"]
        for head, rows in blocks.items():
            lines += [head, *(f"  {row};" for row in rows), "END_VAR"] if rows else []
        return [*lines, *body, f"  {function.name} := TRUE;", "END_FUNCTION", ""]
