"""Printer of JavaScript for a page: names are short, and functions write results into arrays."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from .language import ATOM, CHOICE, EQUALITY, PREFIX, PRODUCT, SUM, Language, Text, call_formats
from .statements import REAL, TRUTH, WHOLE, Array, Call, Function

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class JavaScript(Language):
    name = "JavaScript"
    types = {REAL: "0", WHOLE: "0", TRUTH: "false"}  # initial values of variables, by type
    signs: ClassVar[dict[str, str]] = {"eq": "===", "ne": "!=="}
    functions = {
        **call_formats("Math.{}", "exp log sqrt sin cos tan tanh floor ceil log1p expm1 atan asin"),
        **call_formats("Math.{}", "acos cbrt sinh cosh abs sign"),
        **call_formats("Math.{}", "pow atan2 max min", 2),
        "finite": "isFinite({})",
        "power": "({1}===1?{0}:Math.exp(({1})*Math.log({0})))",
        "idiv": "(({})/({})|0)",
    }
    let, change, leave = "const {1}={2};", "{}={};", "if({})break;"
    choose = "if({}){{", "}else{", "}"
    repeat, count = ("for(;;){{", "}"), ("for(let n{0}_=0;n{0}_<{1};n{0}_++){{", "}")
    indent = ""

    def literal(self, value: Any, kind: str) -> str:
        if kind == TRUTH:
            return "true" if value else "false"
        return self.number(value, "1/0", "NaN").removesuffix(".0") if kind == REAL else str(value)

    def atom(self, x: Any) -> Text:
        text, binding = super().atom(x)
        return text, binding if "1/0" != text.lstrip("-") else SUM if text[0] == "-" else PRODUCT

    def expression(self, operation: str, arguments: Sequence[Any], kind: str) -> Text:
        text, binding = super().expression(operation, arguments, kind)
        return text.replace(" ", ""), binding

    def special(self, operation: str, arguments: Sequence[Any], kind: str) -> Text | None:
        x = arguments[0]
        match operation:
            case "select":
                then, otherwise = self.above(arguments[1], CHOICE), self.above(arguments[2], 0)
                return f"{self.above(x, CHOICE)}?{then}:{otherwise}", CHOICE
            case "not":
                return f"!{self.above(x, PREFIX)}", PREFIX
            case "to_real" | "to_whole" if x.kind == TRUTH:
                return f"({self.above(x, CHOICE)}?1:0)", ATOM
            case "to_real":
                return self.atom(x)
            case "to_whole":
                return f"Math.trunc({self.text(x)})", ATOM
            case "to_truth":
                return f"{self.above(x, EQUALITY)}!==0", EQUALITY
            case "rem":
                return f"{self.above(x, PRODUCT)}%{self.above(arguments[1], PRODUCT)}", PRODUCT
        return None

    def table(self, table: Array) -> str:
        values = ",".join(self.literal(v, table.kind) for v in table.values or ())
        return f"const {table.name}={self.new(table.kind)}([{values}]);"

    def new(self, kind: str) -> str:
        return f"new {'Float64Array' if kind == REAL else 'Int32Array'}"

    def call(self, call: Call, arguments: list[str]) -> None:
        name = call.function.name
        self.write(f"{name}({','.join(arguments)});")
        for variable, (x, letter, i) in zip(call.writes, self.results(call.function), strict=True):
            if variable is not None:
                test = "===1" if x.kind == TRUTH else ""
                self.name_constant(variable, f"{name}_{letter}[{i}]{test}")

    def wrap(self, function: Function, body: list[str]) -> None:
        name = function.name
        for letter, (kind, size) in self.result_arrays(function).items():
            self.write(f"const {name}_{letter}={self.new(kind)}({size});")
        local = [
            f"{x.name}="
            + (f"{self.new(x.kind)}({x.size})" if isinstance(x, Array) else self.types[x.kind])
            for x in self.changing
        ]
        last = "".join(
            f"{name}_{letter}[{i}]={self.above(x, CHOICE)}{'?1:0' if x.kind == TRUTH else ''};"
            for x, letter, i in self.results(function)
        )
        head = f"function {name}({','.join(x.name for x in function.inputs)}){{"
        text = [head, *([f"let {','.join(local)};"] if local else []), *body, last + "}"]
        short: dict[str, str] = {}

        def rename(match: Any) -> str:
            """Return a short name. A `$` prevents confusion with the arguments p, t and y and with
            words of the language.
            """
            letters, k = "", len(short)
            while k >= 0:
                letters, k = _LETTERS[k % 52] + letters, k // 52 - 1
            is_taken = letters in "pty" or len(letters) > 1
            return short.setdefault(match[0], f"${letters}" if is_taken else letters)

        self.write(re.sub(r"\b[avmrty]\d+\b", rename, "\n".join(text)))
