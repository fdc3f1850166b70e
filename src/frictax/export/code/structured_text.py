"""Printer of structured text of IEC 61131-3, a language of industrial controllers."""

from collections.abc import Sequence
from typing import Any, ClassVar

from .language import ATOM, EQUALITY, PREFIX, Language, Text
from .statements import REAL, TRUTH, WHOLE, Array, Call, Function

LARGEST = "1.0E+300"  # replaces infinity and NaN, which the language does not have


class StructuredText(Language):
    name = "Structured text"
    types = {REAL: "LREAL", WHOLE: "DINT", TRUTH: "BOOL"}
    signs: ClassVar[dict[str, str]] = {"eq": "=", "ne": "<>", "and": "AND", "or": "OR"}
    functions = {
        **{
            name.lower(): f"{name}({{}})"
            for name in "EXP SQRT SIN COS TAN ASIN ACOS ATAN ABS".split()
        },
        "log": "LN({})",
        "max": "MAX({}, {})",
        "min": "MIN({}, {})",
        "pow": "EXPT({}, {})",
        "power": "EXP(({1}) * LN({0}))",
        "tanh": "(1.0 - 2.0 / (EXP(2.0 * ({})) + 1.0))",
        "log1p": "LN(1.0 + ({}))",
        "expm1": "(EXP({}) - 1.0)",
        "finite": f"(ABS({{}}) < {LARGEST})",
        "floor": "(DINT_TO_LREAL(TRUNC({0})) - BOOL_TO_LREAL(DINT_TO_LREAL(TRUNC({0})) > ({0})))",
    }
    let, change, leave = "{1} := {2};", "{} := {};", "IF {} THEN EXIT; END_IF"
    choose = "IF {} THEN", "ELSE", "END_IF"
    repeat, count = ("WHILE TRUE DO", "END_WHILE"), ("FOR n{0} := 0 TO {2} DO", "END_FOR")

    def literal(self, value: Any, kind: str) -> str:
        if kind == TRUTH:
            return "TRUE" if value else "FALSE"
        if kind == WHOLE:
            return str(value)
        text = self.number(value, LARGEST, LARGEST).upper()
        return text.replace("E", ".0E") if "E" in text and "." not in text else text

    def special(self, operation: str, arguments: Sequence[Any], kind: str) -> Text | None:
        x, (text, *rest) = arguments[0], map(self.text, arguments)
        match operation:
            case "select":  # The value for FALSE is the first operand of SEL.
                return f"SEL({text}, {rest[1]}, {rest[0]})", ATOM
            case "not":
                return f"NOT {self.above(x, PREFIX)}", PREFIX
            case "sign" if kind == REAL:
                return f"SEL({text} > 0.0, SEL({text} < 0.0, 0.0, -1.0), 1.0)", ATOM
            case "sign":
                return f"(BOOL_TO_DINT({text} > 0) - BOOL_TO_DINT({text} < 0))", ATOM
            case "to_whole" if x.kind == REAL:
                return f"TRUNC({text})", ATOM
            case "to_real" | "to_whole":
                return f"{self.types[x.kind]}_TO_{self.types[kind]}({text})", ATOM
            case "to_truth":
                return f"{self.above(x, EQUALITY)} <> 0", EQUALITY
            case "rem" if kind == WHOLE:
                return f"({text} MOD {rest[0]})", ATOM
            case "rem":
                ratio = f"DINT_TO_LREAL(TRUNC(({text}) / ({rest[0]})))"
                return f"({text} - ({rest[0]}) * {ratio})", ATOM
        return None

    def table(self, table: Array) -> str:
        values = ", ".join(self.literal(v, table.kind) for v in table.values or ())
        return f"VAR_GLOBAL CONSTANT\n  {self.declare(table)} := [{values}];\nEND_VAR"

    def declare(self, x: Any) -> str:
        size = f"ARRAY[0..{x.size - 1}] OF " if isinstance(x, Array) else ""
        return f"{x.name} : {size}{self.types[x.kind]}"

    def call(self, call: Call, arguments: list[str]) -> None:
        given = [
            f"{x.name} := {text}" for x, text in zip(call.function.inputs, arguments, strict=True)
        ]
        for variable, (_, letter, i) in zip(call.writes, self.results(call.function), strict=True):
            if variable is not None:
                self.constants.append(variable)
                given.append(f"{letter}{i} => {variable.name}")
        self.write(f"{call.function.name}({', '.join(given)});")

    def wrap(self, function: Function, body: list[str]) -> None:
        counters = sorted({line.split()[1] for line in body if line.lstrip().startswith("FOR ")})
        blocks = {
            "VAR_IN_OUT": [self.declare(x) for x in function.inputs if isinstance(x, Array)],
            "VAR_INPUT": [self.declare(x) for x in function.inputs if not isinstance(x, Array)],
            "VAR_OUTPUT": [
                f"{letter}{i} : {self.types[x.kind]}" for x, letter, i in self.results(function)
            ],
            "VAR": [
                *map(self.declare, [*self.changing, *self.constants]),
                *(f"{name} : DINT" for name in counters),
            ],
        }
        self.write(f"FUNCTION {function.name} : BOOL")
        for head, rows in blocks.items():
            if rows:
                self.lines += [head, *(f"  {row};" for row in rows), "END_VAR"]
        last = [f"  {letter}{i} := {self.text(x)};" for x, letter, i in self.results(function)]
        self.lines += [*body, *last, f"  {function.name} := TRUE;", "END_FUNCTION", ""]
