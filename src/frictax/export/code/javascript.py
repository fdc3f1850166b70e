"""Printer of JavaScript for a page: names are short, and functions write results into arrays."""

import collections
import itertools
import re
from itertools import product
from string import ascii_letters as LETTERS

from .language import OPERATORS, Language, calls
from .statements import REAL, RESULTS, TRUTH, WHOLE, Array, Function, Statement


class JavaScript(Language):
    name = "JavaScript"
    types = {REAL: "Float64Array", WHOLE: "Int32Array", TRUTH: "Int32Array"}  # of arrays
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
        words = map("".join, (x for n in itertools.count(1) for x in product(LETTERS, repeat=n)))
        # A `$` prevents confusion with the arguments p, t and y and with words of the language.
        names = ("$" * (len(x) > 1 or x in "pty") + x for x in words)
        short = collections.defaultdict[str, str](names.__next__)
        text = re.sub(r"\b[avmrty]\d+\b", lambda m: short[m[0]], "\n".join([head, *body]) + "}")
        return [*stored, text]
