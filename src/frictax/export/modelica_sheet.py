"""What a machine's Modelica text is written on: declarations, equations, and the elements and
tables that they need.
"""

import dataclasses
from typing import Any

import numpy as np

from frictax.laws import AbstractLaw
from frictax.mechanism import Fixed, HeatCapacitor, Mechanism
from frictax.mechanism.layout import BODIES, Flange, Layout, is_rotational, layout
from frictax.parameters.declaration import declaration_of
from frictax.signals import Constant, Pulse, Ramp, Sampled, Sine, Step, Trapezoid

from .modelica_elements import LIBRARY, elements
from .modelica_words import identifier, law_table, matrix, number

_SIGNALS = (Constant, Pulse, Ramp, Sine, Step, Trapezoid)


@dataclasses.dataclass
class Sheet:
    """The text of `machine` as it grows; `tables`: what is too long for it, by name; `own`:
    components that are of `elements.mo`.
    """

    machine: Mechanism
    self_contained: bool
    tolerance: float
    v_max: float | None
    rows: int
    declarations: list[str] = dataclasses.field(default_factory=list)
    equations: list[str] = dataclasses.field(default_factory=list)
    elements: set[str] = dataclasses.field(default_factory=set)
    tables: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    names: dict[str, str] = dataclasses.field(default_factory=dict)
    housings: dict[tuple[str, bool], str] = dataclasses.field(default_factory=dict)
    own: set[str] = dataclasses.field(default_factory=set)
    taken: set[str] = dataclasses.field(default_factory=lambda: {*elements(), "tables"})

    def __post_init__(self) -> None:
        for name in self.machine.names:
            self.names[name] = self._new(name)

    @property
    def layout(self) -> Layout:
        return layout(self.machine)

    def declare(
        self, element: str, name: str, modifiers: list[str], *, own: bool = False, comment: str = ""
    ) -> None:
        """Write a component; `own`: an element of `elements.mo` even where the library has one of
        that name.
        """
        if own or self.self_contained or element not in LIBRARY:
            self.elements.add(element)
            self.own.add(name)
            path = element
        else:
            path = LIBRARY[element]
        if name not in self.own and self.heated_by(name):
            modifiers = [*modifiers, "useHeatPort=true"]
        lines = [f"  // {line}" for line in comment.splitlines()]
        self.declarations.append("\n".join([*lines, f"  {path} {name}{_in_brackets(modifiers)};"]))

    def extra(self, element: str, name: str, modifiers: list[str], comment: str = "") -> str:
        """Write a component that is no part of the machine, and give its name."""
        name = self._new(name)
        self.declare(element, name, modifiers, comment=comment)
        return name

    def connect(self, a: str, b: str) -> None:
        self.equations.append(f"  connect({a}, {b});")

    def flange(self, flange: Flange, end: str = "flange_b", turns: bool = False) -> str:
        """The connector of a flange; `end` of a body without a length."""
        part = self.machine.parts[flange.part]
        name = self.machine.names[flange.part]
        if isinstance(part, Fixed):
            return self.housing(name, turns, part)
        return f"{self.names[name]}.{ {-1: 'flange_a', 0: end, 1: 'flange_b'}[flange.side] }"

    def housing(self, owner: str, turns: bool, fixed: Fixed | None = None) -> str:
        """The flange of a `Fixed`, which may hold what slides as well as what turns, or of the
        housing of a friction.
        """
        if (owner, turns) not in self.housings:
            other = (owner, not turns) in self.housings or fixed is None
            name = self._new(f"{self.names[owner]}_housing") if other else self.names[owner]
            kind, place = ("RotationalFixed", "phi0") if turns else ("Fixed", "s0")
            s0 = 0.0 if fixed is None else fixed.s0
            self.declare(kind, name, [f"{place}={number(s0)}"])
            self.housings[owner, turns] = name
        return f"{self.housings[owner, turns]}.flange"

    def table(self, law: AbstractLaw, what: str, unit: str) -> tuple[str, str]:
        """A law as a matrix, and what is to be said of it."""
        rows, said = law_table(law, what, self.tolerance, self.v_max, unit)
        return matrix(rows), said

    def heated_by(self, name: str) -> str | None:
        """The heat capacitor that the component `name` heats."""
        for body, part in self.machine.named_parts():
            sources = part.sources if isinstance(part, HeatCapacitor) else ()
            if name in [self.names.get(source) for source in sources]:
                return body
        return None

    def signal(self, owner: str, field: str, to: str) -> None:
        """Write the source of a signal and connect it with the input `to`."""
        signal = getattr(self.machine[owner], field)
        name, kind = f"{self.names[owner]}_{field}", type(signal)
        if kind is Sampled:
            name, output = self._sampled(name, signal)
        elif kind in _SIGNALS:
            name, output = self.extra(kind.__name__, name, values(signal)), "y"
        else:
            raise ValueError(
                f"`{owner}.{field}` is a {kind.__name__}, Python that Modelica cannot read: "
                "give it as `Sampled(times, values)` for the export."
            )
        self.connect(f"{name}.{output}", to)

    def turns(self, flange: Flange) -> bool:
        """Return whether what a flange belongs to turns."""
        return bool(is_rotational(self.machine.parts[flange.part]))

    def starts(self, name: str, variables: tuple[str, ...]) -> list[str]:
        """The start values of a body: given where its motion is a coordinate, else guesses."""
        index = self.machine.names.index(name)
        bodies = [i for i, part in enumerate(self.machine.parts) if isinstance(part, BODIES)]
        given = ", fixed=true" if bodies.index(index) in self.layout.coordinates else ""
        return [f"{v}(start={number(getattr(self.machine[name], v))}{given})" for v in variables]

    def _sampled(self, name: str, signal: Sampled) -> tuple[str, str]:
        rows = np.column_stack([np.asarray(signal.times), np.asarray(signal.values)])
        kind = "Held" if signal.hold else "Sampled"
        if self.self_contained:
            return self.extra(kind, name, [f"table={matrix(rows)}"]), "y"
        shape = "Constant" if signal.hold else "Linear"
        smoothness = f"smoothness=Modelica.Blocks.Types.Smoothness.{shape}Segments"
        more = [smoothness, "extrapolation=Modelica.Blocks.Types.Extrapolation.HoldLastPoint"]
        if len(rows) <= self.rows:
            return self.extra(kind, name, [f"table={matrix(rows)}", *more]), "y[1]"
        on_file = ["tableOnFile=true", f'tableName="{name}"', "fileName=tables"]
        name = self.extra(kind, name, [*on_file, *more])
        self.tables[name] = rows
        return name, "y[1]"

    def _new(self, name: str) -> str:
        name = identifier(name, self.taken)
        self.taken.add(name)
        return name


def values(
    part: Any, but: tuple[str, ...] = (), renamed: dict[str, str] | None = None
) -> list[str]:
    """The parameters of a part or signal as modifiers; `nperiod` is a whole number in Modelica."""
    out = []
    for field in dataclasses.fields(part):
        if declaration_of(field) is not None and field.name not in but:
            value = getattr(part, field.name)
            text = str(int(value)) if field.name == "nperiod" else number(value)
            out.append(f"{(renamed or {}).get(field.name, field.name)}={text}")
    return out


def _in_brackets(modifiers: list[str]) -> str:
    if not modifiers:
        return ""
    one = ", ".join(modifiers)
    if len(one) <= 100 and "\n" not in one:
        return f"({one})"
    return "(\n      " + ",\n      ".join(modifiers) + ")"
