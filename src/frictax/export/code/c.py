"""Printer of C99 code, which does not allocate memory."""

import math
import re
from collections.abc import Sequence
from typing import Any

from .language import ATOM, CHOICE, EQUALITY, PREFIX, PRODUCT, Language, Text, call_formats
from .statements import REAL, TRUTH, WHOLE, Array, Call, Function

HEAD = """\
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#if defined __GNUC__
#define FX_MAYBE __attribute__((unused))
#else
#define FX_MAYBE
#endif
/* The larger and the smaller of two numbers; NaN if one is NaN. */
static FX_MAYBE inline REAL fx_max(REAL a, REAL b) { return a > b || a != a ? a : b; }
static FX_MAYBE inline REAL fx_min(REAL a, REAL b) { return a < b || a != a ? a : b; }
static FX_MAYBE inline int32_t fx_most(int32_t a, int32_t b) { return a > b ? a : b; }
static FX_MAYBE inline int32_t fx_least(int32_t a, int32_t b) { return a < b ? a : b; }
static FX_MAYBE inline REAL fx_sign(REAL a) { return (REAL)((a > 0) - (a < 0)); }
"""


class C(Language):
    """Printer of C99. `public`: names of the functions that other files may call; `real`: the type
    of real numbers, "double" or "float".
    """

    name = "C"
    functions = {
        **call_formats("{}", "exp log sqrt sin cos tan tanh floor ceil log1p expm1 atan asin acos"),
        **call_formats("{}", "cbrt sinh cosh erf"),
        **call_formats("{}", "pow atan2 nextafter", 2),
        "round": "rint({})",
        "power": "({1} == 1 ? {0} : exp(({1}) * log({0})))",
        "finite": "(fabs({}) < INFINITY)",
    }
    let, change, leave = "const {} {} = {};", "{} = {};", "if ({}) break;"
    choose = "if ({}) {{", "} else {", "}"
    repeat, count = ("for (;;) {{", "}"), ("for (int32_t n{0} = 0; n{0} < {1}; n{0}++) {{", "}")

    def __init__(self, public: Sequence[str] = (), real: str = "double") -> None:
        self.public, self.calls = public, 0
        self.types = {REAL: real, WHOLE: "int32_t", TRUTH: "int32_t"}
        self.suffix = "f" if real == "float" else ""
        if self.suffix:
            named = re.compile(r"[a-z]\w*(?=\()")
            self.functions = {k: named.sub(r"\g<0>f", v) for k, v in self.functions.items()}

    def head(self, body: str) -> str:
        """Return the include lines, and the helper functions that `body` calls."""
        lines = HEAD.replace("REAL", self.types[REAL]).splitlines()
        called = [re.search(r"(fx_\w+)\(", line) for line in lines]
        used = [name is None or name[0] in body for name in called]
        if not any(name and x for name, x in zip(called, used, strict=True)):
            used = [x and not line.startswith("/*") for line, x in zip(lines, used, strict=True)]
        return "\n".join(line for line, x in zip(lines, used, strict=True) if x)

    def literal(self, value: Any, kind: str) -> str:
        if kind != REAL:
            return str(int(value))
        text = self.number(value, "INFINITY", "NAN")
        return text + self.suffix if math.isfinite(value) else text

    def special(self, operation: str, arguments: Sequence[Any], kind: str) -> Text | None:
        x, is_real, (text, *rest) = arguments[0], kind == REAL, map(self.text, arguments)
        match operation:
            case "select":
                then, otherwise = self.above(arguments[1], CHOICE), self.above(arguments[2], 0)
                return f"{self.above(x, CHOICE)} ? {then} : {otherwise}", CHOICE
            case "max" | "min":
                name = {"max": ("most", "max"), "min": ("least", "min")}[operation][is_real]
                return f"fx_{name}({text}, {rest[0]})", ATOM
            case "abs":
                return f"{f'fabs{self.suffix}' if is_real else 'abs'}({text})", ATOM
            case "sign":
                return f"fx_sign({text})" if is_real else f"(({text} > 0) - ({text} < 0))", ATOM
            case "not":
                return f"!{self.above(x, PREFIX)}", PREFIX
            case "to_whole" if x.kind == TRUTH:
                return self.atom(x)
            case "to_real" | "to_whole":
                return f"({self.types[kind]}){self.above(x, PREFIX)}", PREFIX
            case "to_truth":
                return f"{self.above(x, EQUALITY)} != 0", EQUALITY
            case "rem" if is_real:
                return f"fmod{self.suffix}({text}, {rest[0]})", ATOM
            case "rem":
                return f"{self.above(x, PRODUCT)} % {self.above(arguments[1], PRODUCT)}", PRODUCT
        return None

    def table(self, table: Array) -> str:
        values = ", ".join(self.literal(v, table.kind) for v in table.values or ())
        return f"static const {self.types[table.kind]} {table.name}[{table.size}] = {{{values}}};"

    def call(self, call: Call, arguments: list[str]) -> None:
        self.calls += 1
        arrays = self.result_arrays(call.function)
        for letter, (kind, size) in arrays.items():
            self.write(f"{self.types[kind]} {letter}_{self.calls}[{size}];")
        given = [*arguments, *(f"{letter}_{self.calls}" for letter in arrays)]
        self.write(f"{call.function.name}({', '.join(given)});")
        results = self.results(call.function)
        for variable, (_, letter, i) in zip(call.writes, results, strict=True):
            if variable is not None:
                self.name_constant(variable, f"{letter}_{self.calls}[{i}]")

    def signature(self, function: Function) -> str:
        given = [
            f"const {self.types[x.kind]} *{x.name}"
            if isinstance(x, Array)
            else f"{self.types[x.kind]} {x.name}"
            for x in function.inputs
        ]
        arrays = self.result_arrays(function)
        given += [f"{self.types[kind]} *{letter}" for letter, (kind, _) in arrays.items()]
        before = "" if function.name in self.public else "static "
        return f"{before}void {function.name}({', '.join(given)})"

    def wrap(self, function: Function, body: list[str]) -> None:
        last = [f"  {letter}[{i}] = {self.text(x)};" for x, letter, i in self.results(function)]
        words = set(re.findall(r"\w+", "\n".join([*body, *last])))
        unused = [f"  (void){x.name};" for x in function.inputs if x.name not in words]
        local = [
            f"  {self.types[x.kind]} {x.name}{f'[{x.size}]' if isinstance(x, Array) else ''};"
            for x in self.changing
        ]
        self.lines += [self.signature(function) + " {", *unused, *local, *body, *last, "}"]
