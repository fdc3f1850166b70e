"""The variables of an FMU, and its `modelDescription.xml`."""

import collections
import itertools
import re
from typing import Any
from xml.etree import ElementTree as Xml

import jax.numpy as jnp
import numpy as np

import frictax
from frictax.fitting.problem.setup import state_names, variable_unit
from frictax.mechanism.hybrid import MechanicalSystem
from frictax.mechanism.mechanism import Mechanism
from frictax.mechanism.variable_table import VARIABLES
from frictax.parameters import parameters

from ..code.machine import MachineCode
from ..modelica_text import identifier

NOMINAL = 0.1  # [range of a state] nominal value; importers multiply it by their tolerance
BASE = "kg m s A K mol cd rad".split()  # base units of FMI
DERIVED = {"N": "kg m s-2", "J": "kg m2 s-2", "W": "kg m2 s-3", "V": "kg m2 s-3 A-1", "Hz": "s-1"}
TYPES = {"2.0": ("Real", "Integer"), "3.0": ("Float64", "Int32")}  # types of real and whole numbers
TOKENS = {"2.0": "guid", "3.0": "instantiationToken"}  # attribute with the token of the C code
ABILITIES = {
    ("ModelExchange", "2.0"): "completedIntegratorStepNotNeeded canGetAndSetFMUstate"
    " providesDirectionalDerivative",
    ("CoSimulation", "2.0"): "canHandleVariableCommunicationStepSize canInterpolateInputs"
    " canGetAndSetFMUstate providesDirectionalDerivative",
    ("ModelExchange", "3.0"): "canGetAndSetFMUState providesDirectionalDerivatives",
    ("CoSimulation", "3.0"): "canHandleVariableCommunicationStepSize canGetAndSetFMUState"
    " providesDirectionalDerivatives",
}
KINDS = "NUMBER INPUT SLOPE STATE RATE OUTPUT MARGIN TIME MODE".split()
RATES = {"SLOPE": "INPUT", "RATE": "STATE"}  # kind of derivative -> kind of differentiated variable
INSIDE = "unit start min max nominal derivative".split()  # FMI 2.0 attributes of <Real>, <Integer>


def structured_name(name: str) -> str:
    """Convert a name of frictax to a structured name of FMI; indices in FMI begin at 1.

    >>> structured_name("guide.f_pos.v[0]"), structured_name("layers.0.k"), structured_name("größe")
    ('guide.f_pos.v[1]', 'layers[1].k', 'gr_u00f6_u00dfe')
    """
    name = re.sub(r"\.(\d+)(?=[.\[]|$)", r"[\1]", name).replace("][", ",").replace(", ", ",")
    name = re.sub(r"(?<=[\[,])\d+", lambda m: str(int(m[0]) + 1), name)
    return re.sub(r"[^.,\[\]]+", lambda m: m[0] if m[0].isdigit() else identifier(m[0]), name)


def base_units(unit: str) -> dict[str, str]:
    """Return a dict from base unit to its exponent in `unit`; an empty dict for an unknown unit.

    >>> base_units("N.s/m"), base_units("kg.m2"), base_units("furlong")
    ({'kg': '1', 's': '-1'}, {'kg': '1', 'm': '2'}, {})
    """
    total = collections.Counter[str]()
    for i, factors in enumerate(unit.split("/")):
        for name, power in re.findall(r"([A-Za-z]+)(\d*)", factors):
            for base, own in re.findall(r"([A-Za-z]+)(-?\d*)", DERIVED.get(name) or name):
                total[base] += (-1 if i else 1) * int(power or 1) * int(own or 1)
    return {base: str(n) for base, n in total.items() if n} if {*total} <= {*BASE} else {}


class Description:
    """The variables of an FMU. `rows`: a dict of FMI 3.0 attributes for each variable.

    `at`: kind of variable (`KINDS`) -> its first value reference, as in the C code; `outputs`:
    indices of the outputs that are not states; `nominals`: nominal values of the states; `step`:
    the longest step in co-simulation [s].
    """

    def __init__(self, code: MachineCode) -> None:
        sensed, t = code.instruments, jnp.asarray(code.ts[0])
        self.code, self.step = code, float(np.median(np.diff(code.ts))) / code.substeps
        names = [*state_names(code.machine), *[""] * code.states][: code.states]
        states = [name or f"state[{i}]" for i, name in enumerate(names)]
        shown = [f"outputs.{n}" if f"outputs.{n}" in sensed else n for n in code.outputs]
        self.outputs = [i for i, name in enumerate(shown) if name not in states]
        margins = code.system(code.p).guard(t, *code.start(code.p, t), None).size
        sizes = [len(code.numbers), *[len(code.inputs)] * 2, *[code.states] * 2]
        starts = itertools.accumulate([*sizes, len(self.outputs), margins, 1], initial=0)
        self.at: dict[str, int] = dict(zip(KINDS, starts, strict=True))
        spans = np.where(code.ranges > 0, NOMINAL * code.ranges, 1.0)
        self.nominals = [float(f"{x:.1g}") for x in spans]
        self.rows = list[dict[str, Any]]()
        self._add("TIME", 0, "time", "independent", "time", unit="s")
        self._add_numbers({*states, *shown})
        for i, (name, (how, *_)) in enumerate(code.inputs.items()):
            about = f"{how} from one communication point to the next"
            self._add("INPUT", i, name, "input", about, start=0.0)
            if how == "linear":
                self._add("SLOPE", i, name, "input", f"slope of {name}", start=0.0)
        for i, name in enumerate(states):
            causality = "output" if name in shown or not names[i] else "local"
            self._add("STATE", i, name, causality, _meaning(name), nominal=self.nominals[i])
            self._add("RATE", i, name, "local", f"rate of {name}")
        for i, k in enumerate(self.outputs):
            name, unit = shown[k], [*code.outputs.values()][k]
            self._add("OUTPUT", i, name, "output", _meaning(name), unit=unit)
        for i in range(margins):
            about = "margin of the mode; the mode ends when the margin falls to 0"
            self._add("MARGIN", i, f"margin[{i}]", "local", about)
        for i, name in enumerate([*_mode_names(code.machine, code.modes), "events"]):
            about = "number of events" if name == "events" else _meaning(name) or "mode"
            self._add("MODE", i, name, "local", about, variability="discrete")

    def _add_numbers(self, moving: set[str]) -> None:
        code, declared = self.code, {p.path: p for p in parameters(self.code.machine)}
        inputs = tuple(f"{name}." for name in code.inputs)
        for i, number in enumerate(code.numbers):
            path = number.name.partition("[")[0]
            if not number.listed or path.startswith(inputs):
                continue
            name, about, limits = number.name, "", (number.lower, number.upper)
            if path in declared:
                field, domain = path.rpartition(".")[2], declared[path].declaration.domain
                about = f"{field} of {declared[path].owner}"
                limits = max(limits[0], domain.bound()), min(limits[1], domain.upper())
            rest: dict[str, Any] = {"variability": "tunable", "start": number.value}
            if name in moving:
                name, about = f"{name}.start", f"{_meaning(name)} at the start"
                rest["variability"] = "fixed"
            rest |= {k: x for k, x in zip(("min", "max"), limits, strict=True) if np.isfinite(x)}
            self._add("NUMBER", i, name, "parameter", about, unit=number.unit, **rest)

    def _add(self, kind: str, i: int, name: str, causality: str, about: str, **rest: Any) -> None:
        """Add variable `i` of a kind. For a time derivative (`RATES`), `name` is the differentiated
        variable. `rest`: other attributes. The default unit follows from `name`.
        """
        plain = name if kind == "TIME" else structured_name(name)
        unit = rest.pop("unit", None)
        unit = variable_unit(self.code.machine, name) if unit is None else unit
        if kind in RATES:
            plain, rest["derivative"] = f"der({plain})", self.at[RATES[kind]] + i
            unit = f"{unit}2" if unit.endswith("/s") else unit and f"{unit}/s"
        while any(row["name"] == plain for row in self.rows):
            plain += "_"
        row = {"name": plain, "valueReference": self.at[kind] + i, "causality": causality}
        row |= {"description": about, "variability": "continuous", **rest}
        row["unit"] = "" if unit == "1" else unit
        self.rows.append({key: x for key, x in row.items() if x != ""})

    def xml(self, version: str, name: str, token: str) -> bytes:
        is_2, at, ts, add = version == "2.0", self.at, self.code.ts, Xml.SubElement
        outputs = [r["valueReference"] for r in self.rows if r["causality"] == "output"]
        lists = {"Output": outputs, "ContinuousStateDerivative": range(at["RATE"], at["OUTPUT"])}
        lists["InitialUnknown"] = sorted({*outputs, *range(at["STATE"], at["OUTPUT"])})
        lists["EventIndicator"] = range(at["MARGIN"], at["TIME"])
        head = {"fmiVersion": version, "modelName": name, "description": self._about()}
        head |= {TOKENS[version]: token, "generationTool": f"frictax {frictax.__version__}"}
        head |= {"variableNamingConvention": "structured"}
        if is_2:
            head["numberOfEventIndicators"] = str(len(lists.pop("EventIndicator")))
        root = Xml.Element("fmiModelDescription", head)
        for kind in "ModelExchange", "CoSimulation":
            offer = dict.fromkeys(ABILITIES[kind, version].split(), "true")
            element = add(root, kind, offer, modelIdentifier=name)
            if is_2:
                add(add(element, "SourceFiles"), "File", name=f"{name}.c")
        units = add(root, "UnitDefinitions")
        for unit in dict.fromkeys(row["unit"] for row in self.rows if "unit" in row):
            element = add(units, "Unit", name=unit)
            if base := base_units(unit):
                add(element, "BaseUnit", base)
        first, last, step = map(str, (ts[0], ts[-1], self.step * self.code.substeps))
        add(root, "DefaultExperiment", startTime=first, stopTime=last, stepSize=step)
        listed = add(root, "ModelVariables")
        places = {row["valueReference"]: i for i, row in enumerate(self.rows, 1)}
        for row in self.rows:
            kind = TYPES[version][row["variability"] == "discrete"]
            own = {key: str(value) for key, value in row.items()}
            if not is_2:
                add(listed, kind, own)
                continue
            inside = {key: own.pop(key) for key in INSIDE if key in own}
            if "derivative" in row:
                inside["derivative"] = str(places[row["derivative"]])
            add(add(listed, "ScalarVariable", own), kind, inside)
        structure = add(root, "ModelStructure")
        for kind, references in lists.items():
            group = f"{kind.removeprefix('ContinuousState')}s"
            inside = add(structure, group) if is_2 and references else structure
            for r in references:
                where = {"index": str(places[r])} if is_2 else {"valueReference": str(r)}
                add(inside, "Unknown" if is_2 else kind, where)
        Xml.indent(root)
        return Xml.tostring(root, "utf-8", xml_declaration=True)

    def _about(self) -> str:
        """Return sentences for the user on time steps, simulation error and inputs."""
        inputs = {name: how for name, (how, *_) in self.code.inputs.items()}
        held = ", ".join(name for name, how in inputs.items() if how == "held")
        linear = ", ".join(name for name, how in inputs.items() if how == "linear")
        return " ".join([
            "Co-simulation divides a communication step into equal steps of at most"
            f" {self.step:.6g} s and locates the events inside. The error of this run was"
            f" {self.code.error:.1e} of the range of a state at the export.",
            *[f"The held inputs ({held}) keep their value for a communication step, so a smooth"
            " drive acts half a step late. Take short steps or linear inputs."] * bool(held),
            *[f"The linear inputs ({linear}) change in a communication step with the slope that"
            " is given as der(...), by default 0."] * bool(linear),
            *[f"The delays of the sensors ({', '.join(self.code.delayed)}) are left out."]
            * bool(self.code.delayed),
        ])  # fmt: skip


def _meaning(name: str) -> str:
    part, _, variable = name.rpartition(".")
    return f"{VARIABLES[variable].meaning} of {part}" if variable in VARIABLES and part else ""


def _mode_names(machine: Any, modes: int) -> list[str]:
    names = [f"mode[{i}]" for i in range(modes)]
    if isinstance(machine, Mechanism):
        layout = MechanicalSystem(machine).layout
        for c, contact in enumerate(layout.contacts):
            names[c] = f"{machine.names[contact.part]}.mode"
            if contact.wall is not None:
                names[contact.wall] = f"{machine.names[contact.part]}.stopped"
        for j, (part, field) in enumerate(layout.signals):
            names[layout.first_signal + j] = f"{machine.names[part]}.{field}.segment"
    return names
