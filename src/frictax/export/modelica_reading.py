"""Read parameters from Modelica text of frictax or of users, and give them their frictax names."""

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from frictax.laws import Table
from frictax.mechanism import LossyGear
from frictax.parameters import Declaration, rotational_unit
from frictax.parameters.declaration import declaration_of
from frictax.parameters.modelica_names import modelica_advice
from frictax.signals import AbstractSignal, Constant, Pulse, Ramp, Sampled, Sine, Step, Trapezoid
from frictax.text import brief, suggestion

from .modelica_parts import WRITERS, elements
from .modelica_text import plain_name

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
    |(?P<name>[A-Za-z_]\w*|'(?:[^'\\]|\\.)+')
    |(?P<sign><=|>=|<>|==|:=|\.[-+*/^]|[-+*/^=(){}\[\],;:.<>])""",
    re.VERBOSE | re.DOTALL,
)

# Last word of a Modelica class name -> name of the class in frictax, if these two differ.
_SAME = {
    "RotationalBrake": "Brake",
    "RotationalFixed": "Fixed",
    "RotationalPosition": "Position",
    "RotationalLinearPositionDependentForce": "LinearPositionDependentForce",
    "RotationalPeriodicPositionDependentForce": "PeriodicPositionDependentForce",
    "RotationalPositionController": "PositionController",
    "MassWithStopAndDirectionalFriction": "MassWithStopAndFriction",
    "LuGreFriction": "SupportFriction",
    "RotationalLuGreFriction": "BearingFriction",
    "ElastoPlasticFriction": "SupportFriction",
    "RotationalElastoPlasticFriction": "BearingFriction",
}
_PARTS = {part.__name__: part for part in WRITERS}
_SIGNALS = {cls.__name__: cls for cls in (Constant, Pulse, Ramp, Sine, Step, Trapezoid)}
# Modelica classes that `to_modelica` writes and that are not parts of a machine.
_BESIDE = ("Rod", "PrescribedHeatFlow", "FixedTemperature")
_TABLES = ("CombiTimeTable", "Sampled", "Held")
# Parameter of a table -> its allowed values (None: all values)
_OF_TABLES: dict[str, tuple[Any, ...] | None] = {
    "smoothness": ("LinearSegments", "ConstantSegments"),
    "extrapolation": ("HoldLastPoint",),
    **dict.fromkeys(("table", "tableOnFile", "tableName", "fileName", "columns", "offset")),
    **dict.fromkeys(("timeScale", "startTime", "shiftTime", "timeEvents")),
    **dict.fromkeys(("verboseRead", "verboseExtrapolation")),
}
# Library parameter without an effect in frictax -> its allowed values (None: all values)
_WITHOUT_EFFECT: dict[str, tuple[Any, ...] | None] = {
    "useSupport": None,
    "useHeatPort": None,
    "v_small": None,
    "w_small": None,
    "stateSelect": None,
    "phi_nominal": None,
    "s_nominal": None,
    "exact": None,
    "f_crit": None,
    "startForward": None,
    "startBackward": None,
    "stuck": None,
    "locked": None,
    "mode": None,
    "a": None,
    "smoothness": ("LinearSegments",),
    "ForceDirection": (False,),
    "TorqueDirection": (False,),
    "verboseExtrapolation": None,
}
_RENAMED = {"mue_pos": "mu_pos", "freqHz": "f", "phi0": "s0", "phi_ref": "s_ref"}
_STARTS = ("s", "v", "phi", "w", "T")
_BRISTLE = {"sigma_0": "sigma_0", "sigma_1": "sigma_1", "z_start": "z", "z_ba": "z_ba"}


def from_modelica(text: str, folder: str | Path | None = None) -> dict[str, Any]:
    """Read the parameters in Modelica text: a model that `to_modelica` wrote, a component with
    modifiers, a list of modifiers, or a parameter record.

    Values get their frictax names. The modifier ``peak`` of a component ``friction`` becomes
    ``"friction.peak"``. `frictax.parameters.replace` puts all values into a machine with these part
    names. Without a component, ``peak`` becomes ``"peak"``, an argument of a part's class.

    - A table (``f_pos=[0, 5; 1, 3]``) becomes a `Table`, and a block that drives a part becomes a
      signal. A ``CombiTimeTable`` must hold its last value (``HoldLastPoint``). ``s(start=0.2)`` of
      a component ``mass`` becomes ``"mass.s"``; an initial equation is an error.
    - Values are in SI units, as in Modelica; `displayUnit` is ignored. A value is a number, an
      array, arithmetic of numbers, or the name of an earlier parameter.
    - `from_modelica` reads the names of the Modelica Standard Library, versions 3.2.3 to 4.1.0.

    **Arguments:** `text`: Modelica text; `folder`: folder of the file with long signal tables.

    **Returns:** a dict from path to number, array, `Table` or signal, in the order of the text.

    **Raises:** `ValueError`, with the number of the line, for a name that is not a parameter of an
    element in frictax.

    >>> import frictax as fx
    >>> values = fx.from_modelica("f_pos=[0,5;1,3], peak=1.1")
    >>> fx.SupportFriction("mass", **values)
    SupportFriction(body='mass', f_pos=Table(v=f64[2], f=f64[2]), peak=1.1)

    Put the parameters of a Modelica model into a machine with the same parts:

    >>> block = fx.Mechanism(mass=fx.Mass(m=1.0), guide=fx.SupportFriction("mass"))
    >>> values = fx.from_modelica('''
    ...   Modelica.Mechanics.Translational.Components.Mass mass(m=2.5, s(start=0.1, fixed=true));
    ...   Modelica.Mechanics.Translational.Components.SupportFriction guide(
    ...     f_pos=[0, 15; 1, 6.4; 12, 17], final peak=1.1) "of the sledge";
    ... ''')
    >>> list(values)
    ['mass.m', 'mass.s', 'guide.f_pos', 'guide.peak']
    >>> fx.parameters.replace(block, values)["mass"]
    Mass(m=2.5, s=0.1, v=0.0, L=0.0)
    """
    if not isinstance(text, str):
        raise ValueError(
            f"`from_modelica` takes text, got {brief(text)}. Write from_modelica(Path('axis.mo')"
            ".read_text())."
        )
    largest = 5_000_000  # [characters] Reading a text of this length takes 10 s and 400 MB.
    if len(text) > largest:
        raise ValueError(
            f"`from_modelica` reads {largest} characters at most, got {len(text)}. Leave out the"
            " tables of drives."
        )
    return _Reader(text.removeprefix("\ufeff"), None if folder is None else Path(folder)).read()


@dataclasses.dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int


@dataclasses.dataclass(frozen=True)
class _Modifier:
    """A Modelica modifier ``name(inner) = value``; `value`: None if it is missing."""

    name: str
    inner: tuple["_Modifier", ...]
    value: Any
    line: int

    def attribute(self, name: str) -> Any:
        """Return the value of the attribute `name`, such as ``start``, or None if it is missing."""
        return next((m.value for m in self.inner if m.name == name), None)


@dataclasses.dataclass(frozen=True)
class _Word:
    """A name that is used as a value, such as ``StateSelect.prefer``."""

    path: str

    @property
    def last(self) -> str:
        return self.path.rpartition(".")[2]


@dataclasses.dataclass
class _Component:
    kind: str  # last word of the class name, such as Mass
    name: str
    modifiers: tuple[_Modifier, ...]
    line: int


class _Reader:
    """A recursive-descent parser of Modelica text, and the parameters that it found."""

    def __init__(self, text: str, folder: Path | None) -> None:
        self.folder = folder
        self.tokens = list[_Token]()
        at, line = 0, 1
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                rest = text[at : at + 20].splitlines()[0]
                if rest.startswith(('"', "/*", "'")):
                    raise _error_at(_Token("", "", line), f"{rest!r} has no end")
                raise _error_at(_Token("", "", line), f"{rest[:1]!r} is no sign of Modelica")
            kind = str(found.lastgroup)
            if kind != "space":
                self.tokens.append(_Token(kind, found[0], line))
            line += found[0].count("\n")
            at = found.end()
        self.tokens.append(_Token("end", "", text.count("\n") + 1))
        self.at, self.depth = 0, 0
        self.known: dict[str, Any] = {}  # name of a parameter that the text declares -> its value
        self.components: list[_Component] = []
        # Two connectors of each ``connect``, each with its index (2 in ``y[2]``, otherwise 1)
        self.connections: list[tuple[tuple[str, str], tuple[str, str]]] = []
        self.extended: list[_Modifier] = []  # modifiers of each ``extends``
        self.used: set[str] = set()  # parameters that other values depend on
        self.values: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        if self._begins_with_modifiers():
            self._add_parameters(self._parse_modifiers_to("end"))
        else:
            while self.now.kind != "end":
                self._parse_statement()
        names = {component.name: component for component in self.components}
        for one in self.extended:
            if one.name in names:
                names[one.name].modifiers += one.inner
            elif one.name in self.used:
                raise _error_at(one, f"{one.name!r} must have its value in its declaration")
        for component in self.components:
            # `to_modelica` adds a housing to some parts. The housing is not a part of the machine.
            owner = component.name.removesuffix("_housing")
            housing = owner != component.name and owner in names
            if housing and component.kind.endswith("Fixed"):
                continue
            if component.kind not in (*_BESIDE, *_SIGNALS, *_TABLES):
                self._add_component(component)
        self._add_nested(one for one in self.extended if one.name not in names)
        self._add_connections()
        if not self.values:
            raise ValueError(
                "`from_modelica` must be given text with parameters, got none. Write"
                " 'f_pos=[0,5;1,3], peak=1.1', say, or the declaration of a component."
            )
        return self.values

    # The following methods read tokens.

    @property
    def now(self) -> _Token:
        return self.tokens[self.at]

    def next(self) -> _Token:
        token = self.now
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def has(self, *texts: str) -> bool:
        """Return whether the next token is one of the words or signs `texts`."""
        return self.now.text in texts and self.now.kind != "string"

    def take(self, text: str) -> bool:
        """Skip the next token if it is `text`, and return whether it was skipped."""
        found = self.has(text)
        if found:
            self.next()
        return found

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise _error_at(self.now, f"{text!r} must stand before {self._next_shown()}")

    def _next_shown(self) -> str:
        return repr(brief(self.now.text, 30)[1:-1]) if self.now.kind != "end" else "the end"

    def _parse_path(self) -> str:
        """Parse a name, or names that are joined by dots."""
        self.take(".")
        if self.now.kind != "name":
            raise _error_at(self.now, f"a name must stand in place of {self._next_shown()}")
        names = [self.next().text]
        while self.has(".") and self.tokens[self.at + 1].kind == "name":
            self.next()
            names.append(self.next().text)
        return ".".join(names)

    # The following methods parse statements.

    def _begins_with_modifiers(self) -> bool:
        if self.has("("):  # The text is a list of modifiers in brackets.
            return True
        first, *others = [t for t in self.tokens[:8] if t.text not in ("final", "each")]
        sign = others[0].text if others and first.kind == "name" else ""
        return sign == "=" or (sign == "(" and first.text not in _known_classes())

    def _parse_statement(self) -> None:
        """Parse a declaration, the head or end of a class, or a section of equations."""
        if self.now.kind == "string" or self.has(";", "public", "protected"):
            self.next()  # A string here is the description of a class.
        elif self.has("within", "import", "annotation", "end"):
            self._skip_to_semicolon()
        elif self.has("equation", "algorithm", "initial"):
            self._parse_equations()
        elif self.has("extends"):
            self.next()
            self._parse_path()
            self.extended += self._parse_modifiers()
            self._skip_to_semicolon()
        elif self._is_class():
            self._parse_class()
        else:
            self._parse_declaration()

    def _is_class(self) -> bool:
        words = [t.text for t in self.tokens[self.at : self.at + 4]]
        while words and words[0] in ("encapsulated", "partial", "operator", "expandable"):
            words.pop(0)
        kinds = ("model", "record", "package", "block", "class", "function", "connector", "type")
        return bool(words) and words[0] in kinds

    def _parse_class(self) -> None:
        """Parse the head of a class; skip functions, connectors, types and frictax elements."""
        while not self.has("model", "record", "package", "block", "class"):
            if self.has("function", "connector", "type"):
                self._skip_class()
                return
            self.next()
        if self.tokens[self.at + 1].text in elements():
            self._skip_class()
            return
        self.next()
        self.next()

    def _skip_class(self) -> None:
        """Skip the definition of a class, such as an element in a self-contained text."""
        first = self.next()
        name = self.next().text
        if self.has("="):  # a short class, such as connector RealInput = input Real "...";
            self._skip_to_semicolon()
            return
        while self.now.kind != "end":
            if self.take("end") and self.take(name):
                self._skip_to_semicolon()
                return
            self.next()
        raise _error_at(first, f"`end {name};` is missing")

    def _skip_to_semicolon(self) -> None:
        while self._skip_brackets().text != ";" and self.now.kind != "end":
            pass

    def _parse_equations(self) -> None:
        """Store the connectors of each ``connect``. Refuse initial equations, and skip the rest."""
        initial = False
        while self.now.kind != "end" and not self.has("end", "public", "protected"):
            if self.has("initial", "equation", "algorithm"):
                initial = self.take("initial")
                self.next()
            elif self.has("annotation"):
                self._skip_to_semicolon()
            elif initial:
                says = "an initial equation must be a start value, such as s(start=0.1)"
                raise _error_at(self.now, says)
            elif self.take("connect"):
                self.expect("(")
                a = self._parse_connector()
                self.expect(",")
                self.connections.append((a, self._parse_connector()))
                self._skip_to_semicolon()
            elif self.has("if", "when", "for", "while"):
                word = self.next().text
                while self.now.kind != "end" and not (self.take("end") and self.take(word)):
                    self.next()
                self._skip_to_semicolon()
            else:
                self._skip_to_semicolon()

    def _parse_connector(self) -> tuple[str, str]:
        """Parse a connector and its index, as in ``y[2]``, the second output of a table."""
        path, index = self._parse_path(), "1"
        if self.has("["):
            index, end = (token.text for token in self.tokens[self.at + 1 : self.at + 3])
            index = index if end == "]" else "?"
            self._skip_brackets()
        return path, index

    def _parse_declaration(self) -> None:
        """Parse ``final parameter Real peak = 1.1 "...";``, ``Mass mass(m=2) "...";`` or a class
        with modifiers and without a component name.
        """
        first, is_parameter = self.now, False
        while self.has(
            "final", "parameter", "constant", "inner", "outer", "replaceable", "redeclare", "each"
        ):
            is_parameter |= self.next().text in ("parameter", "constant")
        kind = self._parse_path()
        if self.has("("):  # modifiers of an element without a component name
            kind = self._check_kind(kind, first)
            self.components.append(_Component(kind, "", self._parse_modifiers(), first.line))
            self._parse_end()
            return
        self._skip_dimensions()
        while True:
            name = self.now
            if name.kind != "name":
                raise _error_at(
                    name, f"the name of a {kind} must stand before {self._next_shown()}"
                )
            self.next()
            if self._skip_dimensions() and not is_parameter:
                raise _error_at(
                    name, f"{name.text!r} is an array of components. Write each by name"
                )
            inner = self._parse_modifiers()
            value = self._parse_expression() if self.take("=") else None
            if is_parameter:
                if "NonSI" in kind:
                    raise _error_at(
                        name, f"{name.text!r} must be in SI units, got a {kind}. Convert its value"
                    )
                if value is not None:
                    modifier = _Modifier(plain_name(name.text), inner, value, name.line)
                    self._add_parameters([modifier])
            else:
                kind_here = self._check_kind(kind, first)
                self.components.append(
                    _Component(kind_here, plain_name(name.text), inner, name.line)
                )
            if not self.take(","):
                break
        self._parse_end()

    def _parse_end(self) -> None:
        """Skip the end of a declaration: the description, the annotation and the semicolon."""
        while self.now.kind == "string" or self.has("+"):
            self.next()
        if self.has("annotation"):
            self.next()
            self._skip_brackets()
        if self.now.kind != "end":
            self.expect(";")

    def _skip_brackets(self) -> _Token:
        """Skip a token, or the whole bracket that it opens; return the last skipped token."""
        depth, token = 0, self.now
        while self.now.kind != "end":
            token = self.next()
            depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
            if depth <= 0:
                break
        return token

    def _skip_dimensions(self) -> bool:
        """Skip dimensions such as ``[:, 2]``; return True if any dimension was skipped."""
        if not self.has("["):
            return False
        self._skip_brackets()
        return True

    def _check_kind(self, path: str, at: _Token) -> str:
        last = path.rpartition(".")[2]
        if "Rotational" in path and f"Rotational{last}" in _known_classes():
            last = f"Rotational{last}"
        if last not in _known_classes():
            raise _error_at(
                at,
                f"{brief(path)[1:-1]!r} must be an element that frictax has or a `parameter`."
                f"{suggestion(last, _known_classes())} Leave its line out",
            )
        return last

    # The following methods parse modifiers and values.

    def _parse_modifiers(self) -> tuple[_Modifier, ...]:
        if not self.take("("):
            return ()
        self._enter_brackets()
        found = tuple(self._parse_modifiers_to(")"))
        self.depth -= 1
        self.expect(")")
        return found

    def _parse_modifiers_to(self, end: str) -> Iterator[_Modifier]:
        """Yield the modifiers up to the token `end`, or to the end of the text."""
        while not self.has(end) and self.now.kind != "end":
            if end == "end" and self.take("("):  # The whole list is in brackets.
                yield from self._parse_modifiers_to(")")
                self.expect(")")
            elif self.now.kind == "string" or self.has(";"):
                self.next()
            else:
                yield self._parse_modifier()
                while self.now.kind == "string":
                    self.next()
            if not self.take(",") and not self.take(";"):
                if not self.has(end) and self.now.kind != "end":
                    raise _error_at(self.now, f"a comma must stand before {self._next_shown()}")

    def _enter_brackets(self) -> None:
        deepest = 40  # largest number of nested brackets; Python's stack allows some hundred
        self.depth += 1
        if self.depth > deepest:
            raise _error_at(self.now, f"brackets must be at most {deepest} deep")

    def _parse_modifier(self) -> _Modifier:
        while self.has("final", "each"):
            self.next()
        if self.has("redeclare", "replaceable"):
            raise _error_at(self.now, "a `redeclare` changes a class, which frictax does not read")
        line = self.now.line
        name = ".".join(map(plain_name, self._parse_path().split(".")))
        inner = self._parse_modifiers()
        value = self._parse_expression() if self.take("=") else None
        if value is None and not inner:
            raise _error_at(self.now, f"{name!r} must have a value. Write {name}=...")
        return _Modifier(name, inner, value, line)

    def _parse_expression(self) -> Any:
        """Parse an arithmetic expression with +, -, *, / and ^."""
        self._enter_brackets()
        value = self._parse_sign(self._parse_product)
        while self.has("+", "-", ".+", ".-"):
            token = self.next()
            value = _evaluate(token, value, self._parse_product())
        self.depth -= 1
        return value

    def _parse_sign(self, parse_operand: Callable[[], Any]) -> Any:
        """Parse an operand, with or without a sign."""
        if not self.has("+", "-"):
            return parse_operand()
        self._enter_brackets()
        token, value = self.next(), parse_operand()
        self.depth -= 1
        return value if token.text == "+" else _evaluate(token, 0.0, value, negative=True)

    def _parse_product(self) -> Any:
        value = self._parse_power()
        while self.has("*", "/", ".*", "./"):
            token = self.next()
            value = _evaluate(token, value, self._parse_power())
        return value

    def _parse_power(self) -> Any:
        value = self._parse_primary()
        if self.has("^", ".^"):
            token = self.next()
            value = _evaluate(token, value, self._parse_primary())
        return value

    def _parse_primary(self) -> Any:
        token = self.now
        if token.kind == "number":
            return float(self.next().text)
        if token.kind == "string":
            return self.next().text[1:-1]
        if self.has("true", "false"):
            return self.next().text == "true"
        if self.has("-", "+"):
            return self._parse_sign(self._parse_power)
        if self.take("("):
            value = self._parse_expression()
            self.expect(")")
            return value
        if self.take("["):
            return self._parse_matrix(token)
        if self.take("{"):
            return self._parse_array(token)
        if token.kind == "name":
            return self._parse_name(token)
        raise _error_at(token, f"a value must stand in place of {self._next_shown()}")

    def _parse_name(self, token: _Token) -> Any:
        path = self._parse_path()
        if path.rpartition(".")[2] == "pi" and path in ("pi", "Modelica.Constants.pi"):
            return math.pi
        if self.has("("):
            raise _error_at(token, f"{path}(...) must be a number. Write its value")
        if plain_name(path) in self.known:
            self.used.add(plain_name(path))
            return self.known[plain_name(path)]
        return _Word(path)

    def _parse_matrix(self, token: _Token) -> np.ndarray:
        """Parse a matrix such as ``[0, 5; 1, 3]``."""
        rows: list[list[Any]] = [[]]
        while True:
            rows[-1].append(self._parse_expression())
            if self.take(";"):
                rows.append([])
            elif not self.take(","):
                break
        self.expect("]")
        return _numbers(token, rows)

    def _parse_array(self, token: _Token) -> np.ndarray:
        """Parse an array such as ``{{0, 5}, {1, 3}}``."""
        entries: list[Any] = []
        while not self.has("}"):
            entries.append(self._parse_expression())
            if not self.take(","):
                break
        self.expect("}")
        return _numbers(token, entries)

    # The following methods interpret declarations.

    def _add_parameters(self, modifiers: Iterable[_Modifier]) -> None:
        """Add parameters without a component, from a parameter record or a list of modifiers."""
        for one in modifiers:
            if one.value is None and not any(m.name == "start" for m in one.inner):
                self._add_nested([one])  # as in friction(peak=1.2)
                continue
            name, value = one.name, _value_in_si(one)
            self.known[name] = value
            if name in _WITHOUT_EFFECT:
                _check_without_effect(one)
            elif not isinstance(value, str | bool):
                self.values[_RENAMED.get(name, name)] = _check_value(name, value, one.line)

    def _add_nested(self, modifiers: Iterable[_Modifier], above: str = "") -> None:
        """Add values of nested modifiers: ``guide(friction(peak=1.2))`` as guide.friction.peak."""
        for one in modifiers:
            path = f"{above}{one.name}"
            if one.name in _STARTS and one.attribute("start") is not None:
                self.values[path] = _number(one, one.attribute("start"))
            elif one.value is not None and one.name in _WITHOUT_EFFECT:
                _check_without_effect(one)
            elif one.value is not None and not isinstance(one.value, str | bool):
                name = f"{above}{_RENAMED.get(one.name, one.name)}"
                self.values[name] = _check_value(one.name, _value_in_si(one), one.line)
            else:
                self._add_nested(one.inner, f"{path}.")

    def _add_component(self, component: _Component) -> None:
        kind, above = component.kind, f"{component.name}." if component.name else ""
        bristle = kind.endswith(("LuGreFriction", "ElastoPlasticFriction"))
        element = _parameters_of(kind)
        laws = {}
        for one in component.modifiers:
            name = _RENAMED.get(one.name, one.name)
            if name == "b" and kind == "ElastoBacklash":
                name = "backlash"
            if name in _WITHOUT_EFFECT:
                _check_without_effect(one)
            elif name in _STARTS and name in element and one.attribute("start") is not None:
                start = _number(one, one.attribute("start"), element[name])
                self.values[above + name] = start
            elif bristle and name in _BRISTLE:
                self.values[f"{above}bristle.{_BRISTLE[name]}"] = _number(one, one.value)
            elif bristle and name.rpartition("_")[2] in ("forward", "backward"):
                laws[name] = one
            elif name == "lossTable" and kind == "LossyGear" and above:
                self._add_loss_table(above, one)
            elif name in element:
                value = _value_in_si(one, element[name])
                self.values[above + name] = _check_value(name, value, one.line)
            else:
                known = [*element, *_WITHOUT_EFFECT]
                instead = modelica_advice(name, element) or suggestion(name, known)
                raise ValueError(
                    f"Modelica, line {one.line}: {one.name!r} is no parameter of"
                    f" {component.kind}.{instead} It has: {', '.join(element)}."
                )
        if bristle:
            self._add_bristle_laws(above, kind, laws)

    def _add_loss_table(self, above: str, one: _Modifier) -> None:
        rows = np.asarray(one.value)
        if rows.ndim != 2 or rows.shape[1] != 5:
            raise _error_at(one, f"lossTable must have five columns, got {brief(one.value)}")
        for k, field in enumerate(("w", "eta_mf1", "eta_mf2", "tau_bf1", "tau_bf2")):
            self.values[above + field] = rows[:, k]

    def _add_bristle_laws(self, above: str, kind: str, laws: dict[str, _Modifier]) -> None:
        """Add the friction laws of a contact with a bristle model, each with its viscous part."""
        field = "tau" if kind.startswith("Rotational") else "f"
        found = {}
        for way in ("forward", "backward"):
            if way in laws:
                one = laws[way]
                rows = np.array(one.value, float)
                viscous = laws.get(f"viscous_{way}")
                slope = 0.0 if viscous is None else _number(viscous, viscous.value)
                found[way] = np.column_stack([rows[:, 0], rows[:, 1] + slope * rows[:, 0]])
        if "forward" in found:
            self.values[f"{above}{field}_pos"] = Table(found["forward"])
            if "backward" in found and not np.array_equal(found["forward"], found["backward"]):
                self.values[f"{above}{field}_neg"] = Table(found["backward"])
        fade = laws.get("fading_forward")
        if fade is not None and (inverse := _number(fade, fade.value)) > 0:
            self.values[f"{above}bristle.v_d"] = 1.0 / inverse

    def _add_connections(self) -> None:
        """Add each signal and ambient temperature to the part to which a ``connect`` joins it."""
        kinds = {component.name: component for component in self.components}
        for a, b in self.connections:
            for (source, index), (sink, _) in ((a, b), (b, a)):
                here = kinds.get(plain_name(source.partition(".")[0]))
                part, _, field = sink.rpartition(".")
                part = plain_name(part)
                if here is None:
                    continue
                if here.kind in _SIGNALS or here.kind in _TABLES:
                    target = kinds.get(part)
                    if target is not None and target.kind.endswith("Position"):
                        field = "s"
                    self.values[f"{part}.{field}"] = self._make_signal(here, index)
                elif here.kind == "FixedTemperature":
                    for one in here.modifiers:
                        self.values[f"{part}.T_ambient"] = _number(one, one.value)

    def _make_signal(self, component: _Component, index: str) -> AbstractSignal:
        values = {_RENAMED.get(m.name, m.name): m for m in component.modifiers}
        for one in () if component.kind in _SIGNALS else component.modifiers:
            if one.name not in _OF_TABLES:
                known = suggestion(one.name, _OF_TABLES)
                raise _error_at(one, f"{one.name!r} must be a parameter of a table.{known}")
            _check_without_effect(one, _OF_TABLES)
        try:
            if component.kind in _SIGNALS:
                given = {name: _number(m, m.value) for name, m in values.items()}
                return _SIGNALS[component.kind](**given)
            return self._make_sampled(component.kind, values, index)
        except (TypeError, ValueError, IndexError) as error:
            says = " ".join(str(error).split())
            raise ValueError(
                f"Modelica, line {component.line}: {component.name!r} cannot be a signal: {says}"
            ) from error

    def _make_sampled(self, kind: str, values: Mapping[str, _Modifier], index: str) -> Sampled:
        """Return the output `index` of a table with the modifiers `values`."""
        given = {name: m.value for name, m in values.items()}
        on_file = given.get("tableOnFile") is True or "table" not in given
        rows = self._read_file(values) if on_file else np.asarray(given["table"])
        if rows.ndim != 2:
            raise ValueError(f"its table must be a matrix, got {brief(given['table'])}.")
        columns = np.atleast_1d(given.get("columns", np.arange(2.0, rows.shape[1] + 1)))
        output = int(index) - 1 if index.isdigit() else -1
        if not (0 <= output < columns.size and columns[output] in range(1, rows.shape[1] + 1)):
            says = f"{columns.size} outputs, from {rows.shape[1]} columns"
            raise ValueError(f"y[{index}] must be one of its {says}.")
        offset = np.broadcast_to(np.atleast_1d(given.get("offset", 0.0)), columns.shape)[output]

        def number(name: str, default: float) -> float:
            return _number(values[name], given[name]) if name in given else default

        scale, start = number("timeScale", 1.0), number("startTime", 0.0)
        t = number("shiftTime", start) + scale * rows[:, 0]
        y = rows[:, int(columns[output]) - 1]
        if start > 0 and (t[0] < start or y[0] != 0):
            raise ValueError("it jumps at startTime. Write the jump as a steep line of the table.")
        steady = np.ptp(y[-2:]) == 0 and (t[0] <= 0 or np.ptp(y[:2]) == 0)
        if kind == "CombiTimeTable" and "extrapolation" not in given and not steady:
            raise ValueError("extrapolation must be HoldLastPoint, got LastTwoPoints, its default.")
        smoothness = given.get("smoothness")
        held = isinstance(smoothness, _Word) and smoothness.last == "ConstantSegments"
        return Sampled(t, offset + y, hold=held or kind == "Held")

    def _read_file(self, values: Mapping[str, _Modifier]) -> np.ndarray:
        """Return the table [time, value] of a signal from the file that `values` names."""
        asked = values["tableName"].value if "tableName" in values else ""
        file = values["fileName"].value if "fileName" in values else ""
        file = self.known.get(file.path, file) if isinstance(file, _Word) else file
        if self.folder is None:
            raise ValueError(
                f"its table is in the file {str(getattr(file, 'path', file))!r}. Give `folder`,"
                " where that is."
            )
        text = (self.folder / Path(str(file)).name).read_text(encoding="utf-8")
        head = re.search(
            rf"^(?:double|float)\s+{re.escape(str(asked))}\((\d+),\s*(\d+)\)", text, re.M
        )
        if head is None:
            raise ValueError(f"the file {str(file)!r} has no table {asked!r}.")
        numbers = re.sub(r"#.*", "", text[head.end() :]).split()[: int(head[1]) * int(head[2])]
        return np.array(numbers, float).reshape(int(head[1]), int(head[2]))


@functools.cache
def _known_classes() -> frozenset[str]:
    """Return the last word of each Modelica class name that this module can read."""
    parts = (_PARTS, _SIGNALS, _SAME, _TABLES, _BESIDE)
    return frozenset(name for names in parts for name in names)


@functools.cache
def _parameters_of(kind: str) -> dict[str, Declaration | None]:
    """Return a dict from Modelica name to declaration (or None) for the parameters of a class."""
    part = _PARTS.get(_SAME.get(kind, kind))
    if part is None:
        return {}
    fields = {f.name: declaration_of(f) for f in dataclasses.fields(part)}
    laws = {name: None for name in fields if name.endswith(("_pos", "_neg"))}
    out = laws | {name: d for name, d in fields.items() if d is not None}
    return out | ({"lossTable": None} if part is LossyGear else {})


def _error_at(place: _Token | _Modifier, sentence: str) -> ValueError:
    return ValueError(f"Modelica, line {place.line}: {sentence}.")


def _evaluate(token: _Token, a: Any, b: Any, negative: bool = False) -> Any:
    for value in (a, b):
        if not isinstance(value, float | np.ndarray):
            says = getattr(value, "path", value)
            raise _error_at(token, f"{says!r} must be a number. Write its value")
    if negative:
        return -b
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and token.text in "*/^":
        raise _error_at(token, f"two arrays have no {token.text!r}. Write the result")
    try:
        with np.errstate(all="raise"):
            return {
                "+": lambda: a + b,
                "-": lambda: a - b,
                "*": lambda: a * b,
                "/": lambda: a / b,
                "^": lambda: float(a) ** float(b),
            }[token.text.removeprefix(".")]()
    except (ArithmeticError, TypeError, ValueError) as error:
        raise _error_at(token, f"{a!r} {token.text} {b!r} has no value ({error})") from error


def _numbers(token: _Token, entries: Any) -> np.ndarray:
    try:
        return np.array(entries, dtype=float)
    except (TypeError, ValueError):
        raise _error_at(token, "an array must have rows of numbers, all of one length") from None


def _number(one: _Modifier, value: Any, declaration: Declaration | None = None) -> float:
    _value_in_si(one, declaration)
    value = _check_value(one.name, value, one.line)
    if not isinstance(value, float):
        says = f"{one.name!r} must be a number, got {brief(value)}. Write one value"
        raise _error_at(one, says)
    return value


def _value_in_si(one: _Modifier, declaration: Declaration | None = None) -> Any:
    """Return the value (or ``start``) of a modifier; raise `ValueError` for a non-SI unit."""
    unit = one.attribute("unit")
    if unit is not None and declaration is not None and _is_of_si(str(unit)):
        allowed = (declaration.unit, rotational_unit(declaration.unit))
        if unit not in allowed and declaration.unit not in ("1", "%"):
            raise ValueError(
                f"Modelica, line {one.line}: {one.name!r} must be in {declaration.unit}, got"
                f" unit={unit!r}. Look whether it is another parameter."
            )
    if unit is not None and unit != "%" and not _is_of_si(str(unit)):
        says = f"{one.name!r} must be in SI units, got unit={unit!r}. Convert its value"
        raise _error_at(one, says)
    start = one.attribute("start")
    return start if one.value is None else one.value


def _is_of_si(unit: str) -> bool:
    """Return whether a unit consists of SI units without a prefix, such as N.m.s/rad."""
    symbols = {"N", "m", "s", "rad", "kg", "K", "J", "W", "Hz", "V", "A", ""}
    return set(re.split(r"[./()0-9-]+", unit)) <= symbols


def _check_without_effect(
    one: _Modifier, rules: Mapping[str, tuple[Any, ...] | None] = _WITHOUT_EFFECT
) -> None:
    """Raise `ValueError` if the value of a parameter is not allowed by `rules`."""
    allowed = rules[one.name]
    value = one.value.last if isinstance(one.value, _Word) else one.value
    if allowed is not None and value not in allowed:
        rule = ", ".join(str(x).lower() if isinstance(x, bool) else str(x) for x in allowed)
        raise ValueError(
            f"Modelica, line {one.line}: {one.name} must be {rule}, got {value}."
            f"{modelica_advice(one.name, ())}"
        )


def _check_value(name: str, value: Any, line: int) -> Any:
    """Return a finite `value`, as a `Table` for a friction law; otherwise raise `ValueError`."""
    if not isinstance(value, float | np.ndarray):
        says = getattr(value, "path", value)
        raise ValueError(
            f"Modelica, line {line}: {name!r} must be a number or an array, got {says}. Write its"
            " value, or declare that parameter before it."
        )
    if not np.all(np.isfinite(value)):
        raise ValueError(
            f"Modelica, line {line}: {name!r} must be finite, got {brief(value)}. Look at its"
            " exponent."
        )
    if isinstance(value, np.ndarray) and name.rpartition(".")[2].endswith(("_pos", "_neg")):
        try:
            return Table(value)
        except ValueError as error:
            raise ValueError(f"Modelica, line {line}: {name!r} is not valid: {error}") from error
    return value
