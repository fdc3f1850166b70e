"""Printer of C99 code, which does not allocate memory."""

import re
from collections.abc import Sequence

from .language import OPERATORS, Language, calls
from .statements import REAL, RESULTS, TRUTH, WHOLE, Array, Function, Statement

# A line with a function is written only where the code calls the function.
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
    """Printer of C99. `public`: names of the functions that other files may call; `real`: the type
    of real numbers, "double" or "float".
    """

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
        sizes = [f"[{x.size}]" if isinstance(x, Array) else "" for x in self.changing]
        local = [
            f"  {self.types[x.kind]} {x.name}{size};"
            for x, size in zip(self.changing, sizes, strict=True)
        ]
        return [self.signature(function) + " {", *unused, *local, *body, "}"]
