"""Printer of structured text of IEC 61131-3, a language of industrial controllers."""

from typing import Any

from .language import OPERATORS, Language
from .statements import REAL, TRUTH, WHOLE, Array, Function, Statement

LARGEST = "1.0E+300"  # replaces infinity and NaN, which the language does not have


class StructuredText(Language):
    """Printer of structured text. `real`: the type of real numbers, "LREAL" or "REAL"."""

    name = "Structured text"
    forms = OPERATORS | {
        **{x: f"9 {x.upper()}({{}})" for x in "exp sqrt sin cos tan asin acos atan abs".split()},
        "log": "9 LN({})", "max": "9 MAX({}, {})", "min": "9 MIN({}, {})", "pow": "9 EXPT({}, {})",
        "power": "9 EXP(({1}) * LN({0}))", "tanh": "9 (1.0 - 2.0 / (EXP(2.0 * ({})) + 1.0))",
        "log1p": "9 LN(1.0 + ({}))", "expm1": "9 (EXP({}) - 1.0)",
        "finite": f"9 (ABS({{}}) < {LARGEST})",
        "floor": "9 (DINT_TO_LREAL(TRUNC({0})) - BOOL_TO_LREAL(DINT_TO_LREAL(TRUNC({0})) > ({0})))",
        "eq": "4 {:5} = {:5-}", "ne": "4 {:5} <> {:5-}", "and": "3 {:2} AND {:3-}",
        "or": "2 {:3} OR {:3-}", "not": "8 NOT {:8}", "to_truth": "4 {:4} <> 0",
        "select": "9 SEL({0}, {2}, {1})",  # the value for FALSE is the first one of SEL
        "sign real": "9 SEL({0} > 0.0, SEL({0} < 0.0, 0.0, -1.0), 1.0)",
        "sign": "9 (BOOL_TO_DINT({0} > 0) - BOOL_TO_DINT({0} < 0))",
        "rem real": "9 ({0} - ({1}) * DINT_TO_LREAL(TRUNC(({0}) / ({1}))))", "rem": "9 ({} MOD {})",
        "to_whole real": "9 TRUNC({})", "to_whole truth": "9 BOOL_TO_DINT({})",
        "to_real truth": "9 BOOL_TO_LREAL({})", "to_real whole": "9 DINT_TO_LREAL({})",
    }  # fmt: skip
    words = {
        "False": "FALSE",
        "True": "TRUE",
        "inf": LARGEST,
        "-inf": f"-{LARGEST}",
        "nan": LARGEST,
    }
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
        self.forms = {name: form.replace("LREAL", real) for name, form in self.forms.items()}

    def number(self, value: float) -> str:
        digits, _, power = repr(value).upper().partition("E")
        return f"{digits}{'' if '.' in digits else '.0'}{f'E{power}' if power else ''}"

    def declare(self, x: Any) -> str:
        size = f"ARRAY[0..{x.size - 1}] OF " if isinstance(x, Array) else ""
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
