"""Write each part of a machine as a component of a Modelica model (`write_part`, `Sheet`)."""

import dataclasses
import functools
import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import jax.numpy as jnp
import numpy as np

from frictax.bristles import Dahl, ElastoPlastic, LuGre
from frictax.bristles.bristle import inverse_fading_speed
from frictax.contacts import (
    BearingFriction,
    Brake,
    Clutch,
    MassWithStopAndFriction,
    MotionDependent,
    OneWayClutch,
    SupportFriction,
)
from frictax.contacts.rubbing import bristle_of
from frictax.laws import AbstractLaw, TemperatureDependent
from frictax.mechanism import (
    Damper,
    ElastoBacklash,
    ElastoGap,
    Fixed,
    Force,
    HeatCapacitor,
    IdealGear,
    IdealPlanetary,
    Inertia,
    LinearPositionDependentForce,
    LossyGear,
    Mass,
    Mechanism,
    PeriodicPositionDependentForce,
    Position,
    PositionController,
    QuadraticSpeedDependentForce,
    QuadraticSpeedDependentTorque,
    RotationalDamper,
    RotationalSpring,
    RotationalSpringDamper,
    Spring,
    SpringDamper,
    ThermalConductor,
    Torque,
)  # fmt: skip
from frictax.mechanism.layout import BODIES, Contact, Flange, Layout, is_rotational, layout
from frictax.parameters.declaration import declaration_of
from frictax.signals import Constant, Pulse, Ramp, Sampled, Sine, Step, Trapezoid

from .modelica_text import identifier, law_table, matrix, number

_SLIDES, _TURNS = "Modelica.Mechanics.Translational", "Modelica.Mechanics.Rotational"
_HEAT, _SOURCES = "Modelica.Thermal.HeatTransfer", "Modelica.Blocks.Sources"

# Package of the Modelica library -> names that its elements have in `elements.mo`
_HOMES = {
    f"{_SLIDES}.Components": (
        "Mass Fixed Rod Spring Damper SpringDamper ElastoGap SupportFriction Brake"
        " MassWithStopAndFriction"
    ),
    f"{_SLIDES}.Sources": "Force Position QuadraticSpeedDependentForce",
    f"{_TURNS}.Components": (
        "Inertia BearingFriction Clutch OneWayClutch ElastoBacklash IdealGear IdealPlanetary"
        " LossyGear RotationalFixed RotationalSpring RotationalDamper RotationalSpringDamper"
        " RotationalBrake"
    ),
    f"{_TURNS}.Sources": "Torque RotationalPosition QuadraticSpeedDependentTorque",
    f"{_HEAT}.Components": "HeatCapacitor ThermalConductor",
    f"{_HEAT}.Sources": "FixedTemperature PrescribedHeatFlow",
    _SOURCES: "Constant Step Ramp Sine Trapezoid Pulse",
}
LIBRARY = {
    **{
        name: f"{home}.{name.removeprefix('Rotational')}"
        for home, names in _HOMES.items()
        for name in names.split()
    },
    **dict.fromkeys(("Sampled", "Held"), f"{_SOURCES}.CombiTimeTable"),
}
# Connector of `elements.mo` -> the equal connector of the Modelica library
_CONNECTORS = {
    "Flange": f"{_SLIDES}.Interfaces.Flange_a",
    "RotationalFlange": f"{_TURNS}.Interfaces.Flange_a",
    "HeatPort": f"{_HEAT}.Interfaces.HeatPort",
    "RealInput": "Modelica.Blocks.Interfaces.RealInput",
    "RealOutput": "Modelica.Blocks.Interfaces.RealOutput",
}
_HEAD = re.compile(r"^  (?:partial model|model|function|connector) (\w+)", re.MULTILINE)


@functools.cache
def elements() -> dict[str, str]:
    """Return a dict from the name of each element (class) in `elements.mo` to its Modelica text.

    >>> print(elements()["RealInput"])
      connector RealInput = input Real "A signal that comes in";
    """
    whole = files("frictax.export").joinpath("elements.mo").read_text(encoding="utf-8")
    blocks = (block.rstrip() for block in re.split(r"\n\n", whole.removesuffix("end Elements;\n")))
    return {head[1]: block for block in blocks if (head := _HEAD.match(block))}


def with_dependencies(names: set[str], self_contained: bool) -> list[str]:
    """Return the texts of the elements `names` and of all elements that they use, in file order."""
    known, needed, left = elements(), set(), list(names)
    while left:
        name = left.pop()
        if name not in needed:
            needed.add(name)
            left += [
                n for n in re.findall(r"\w+", re.sub(r'"[^"]*"', "", known[name])) if n in known
            ]
    texts = {name: text for name, text in known.items() if name in needed}
    if not self_contained:
        texts |= {
            name: f"  connector {name} = {path};"
            for name, path in _CONNECTORS.items()
            if name in needed
        }
    return list(texts.values())


_SIGNALS = (Constant, Pulse, Ramp, Sine, Step, Trapezoid)


@dataclasses.dataclass
class Sheet:
    """The Modelica text of a machine, to which functions add one part after the other.

    `declarations`: component -> its declaration; `tables`: name -> long table for a separate file;
    `own`: names of the components whose class is from `elements.mo` instead of the library.
    """

    machine: Mechanism
    self_contained: bool
    tolerance: float
    v_max: float | None
    rows: int
    declarations: dict[str, str] = dataclasses.field(default_factory=dict)
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
        """Declare a component; `own`: use the class in `elements.mo`, not that of the library."""
        if own or self.self_contained or element not in LIBRARY:
            self.elements.add(element)
            self.own.add(name)
            path = element
        else:
            path = LIBRARY[element]
        if name not in self.own and self.heated_by(name):
            modifiers = [*modifiers, "useHeatPort=true"]
        lines = [f"  // {line}" for line in comment.splitlines()]
        inside = ", ".join(modifiers)
        if len(inside) > 100 or "\n" in inside:
            inside = "\n      " + ",\n      ".join(modifiers)
        brackets = f"({inside})" if modifiers else ""
        self.declarations[name] = "\n".join([*lines, f"  {path} {name}{brackets};"])

    def extra(self, element: str, name: str, modifiers: list[str], comment: str = "") -> str:
        """Declare a component that is not a part of the machine, and return its unique name."""
        name = self._new(name)
        self.declare(element, name, modifiers, comment=comment)
        return name

    def connect(self, a: str, b: str) -> None:
        self.equations.append(f"  connect({a}, {b});")

    def flange(self, flange: Flange, end: str = "flange_b", turns: bool = False) -> str:
        """Return the Modelica connector of a flange; `end`: the connector for a body's centre."""
        part = self.machine.parts[flange.part]
        name = self.machine.names[flange.part]
        if isinstance(part, Fixed):
            return self.housing(name, turns, part)
        return f"{self.names[name]}.{ {-1: 'flange_a', 0: end, 1: 'flange_b'}[flange.side] }"

    def housing(self, owner: str, turns: bool, fixed: Fixed | None = None) -> str:
        """Return the flange of part `fixed` or of an added housing; `turns`: the flange rotates."""
        if (owner, turns) not in self.housings:
            other = (owner, not turns) in self.housings or fixed is None
            name = self._new(f"{self.names[owner]}_housing") if other else self.names[owner]
            kind, place = ("RotationalFixed", "phi0") if turns else ("Fixed", "s0")
            s0 = 0.0 if fixed is None else fixed.s0
            self.declare(kind, name, [f"{place}={number(s0)}"])
            self.housings[owner, turns] = name
        return f"{self.housings[owner, turns]}.flange"

    def table(self, law: AbstractLaw, what: str, unit: str) -> tuple[str, str]:
        """Return a law as a Modelica matrix [speed, value], and a comment on the law."""
        rows, said = law_table(law, what, self.tolerance, self.v_max, unit)
        return matrix(rows), said

    def heated_by(self, name: str) -> str | None:
        """Return the name of the heat capacitor that the component `name` heats, or None."""
        for body, part in self.machine.named_parts():
            sources = part.sources if isinstance(part, HeatCapacitor) else ()
            if name in [self.names.get(source) for source in sources]:
                return body
        return None

    def signal(self, owner: str, field: str, to: str) -> None:
        """Declare the block of signal `field` of part `owner`; connect its output to `to`."""
        signal = getattr(self.machine[owner], field)
        name, kind = f"{self.names[owner]}_{field}", type(signal)
        if kind is Sampled:
            name, output = self._sampled_signal(name, signal)
        elif kind in _SIGNALS:
            name, output = self.extra(kind.__name__, name, values(signal)), "y"
        else:
            raise ValueError(
                f"`{owner}.{field}` is a {kind.__name__}, Python that Modelica cannot read: "
                "give it as `Sampled(times, values)` for the export."
            )
        self.connect(f"{name}.{output}", to)

    def turns(self, *flanges: Flange | None) -> bool:
        """Return whether at least one flange belongs to a rotating part."""
        parts = [self.machine.parts[f.part] for f in flanges if f is not None]
        return any(map(is_rotational, parts))

    @property
    def jumps(self) -> bool:
        """True if the machine has a part that can cause a jump of a velocity."""
        kinds = Position | MassWithStopAndFriction
        return any(isinstance(part, kinds) for part in self.machine.parts)

    def contact(self, name: str) -> Contact:
        index, contacts = self.machine.names.index(name), self.layout.contacts
        return next(c for c in (*contacts, *self.layout.bristles) if c.part == index)

    def starts(self, name: str, variables: tuple[str, ...]) -> list[str]:
        """Return initial values of a body, with `fixed=true` for an independent coordinate."""
        index = self.machine.names.index(name)
        bodies = [i for i, part in enumerate(self.machine.parts) if isinstance(part, BODIES)]
        given = ", fixed=true" if bodies.index(index) in self.layout.coordinates else ""
        return [f"{v}(start={number(getattr(self.machine[name], v))}{given})" for v in variables]

    def _sampled_signal(self, name: str, signal: Sampled) -> tuple[str, str]:
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
    part: Any, without: tuple[str, ...] = (), renamed: dict[str, str] | None = None
) -> list[str]:
    """Return parameters of a part or signal as modifiers; `renamed`: field -> Modelica name."""
    out = []
    for field in dataclasses.fields(part):
        if declaration_of(field) is not None and field.name not in without:
            value = getattr(part, field.name)
            text = str(int(value)) if field.name == "nperiod" else number(value)
            out.append(f"{(renamed or {}).get(field.name, field.name)}={text}")
    return out


_ELEMENTS = {Dahl: "LuGreFriction", LuGre: "LuGreFriction", ElastoPlastic: "ElastoPlasticFriction"}


def write_bristle(
    sheet: Sheet, name: str, part: Any, contact: Contact, field: str, unit: str
) -> None:
    """Declare and connect the bristle friction `name`; `field`: name of its law for v > 0.

    **Raises:** `ValueError` for a bristle model that `elements.mo` does not contain.
    """
    bristle, here, support = part.bristle, sheet.names[name], contact.support
    turns = sheet.turns(contact.flange, support)
    if type(bristle) not in _ELEMENTS or float(getattr(bristle, "exponent", 1.0)) != 1.0:
        raise ValueError(
            f"`{name}.bristle` is {bristle!r}, for which the export has no element. It has"
            " `LuGre`, `ElastoPlastic`, and `Dahl` with the exponent 1; or leave it out, for"
            " friction that sticks."
        )
    sigma_1 = jnp.asarray(getattr(bristle, "sigma_1", 0.0))
    v_d = getattr(bristle, "v_d", None)
    modifiers = [
        f"sigma_0={number(bristle.sigma_0)}",
        f"sigma_1={number(sigma_1)}",
        f"z_start={number(bristle.z)}",
    ]
    said = []
    for way, direction, which in (
        ("forward", 1, field),
        ("backward", -1, field.replace("_pos", "_neg")),
    ):
        law = part.law(direction)
        rows, words = law_table(law, f"{name}.{which}", sheet.tolerance, sheet.v_max, unit)
        viscous = float(law.viscous_slope)
        bends = np.column_stack([rows[:, 0], rows[:, 1] - viscous * rows[:, 0]])
        modifiers += [
            f"{way}={matrix(bends)}",
            f"viscous_{way}={number(viscous)}",
            f"fading_{way}={number(inverse_fading_speed(sigma_1, v_d, law))}",
        ]
        if isinstance(bristle, ElastoPlastic):
            least = law.f0 if law.stribeck_dip is None else law.stribeck_dip[0]
            modifiers.append(f"least_{way}={number(least)}")
        if direction == 1 or law is not part.law(1):
            said.append(f"{words}; the viscous part is beside it")
    if isinstance(bristle, ElastoPlastic):
        modifiers.append(f"z_ba={number(bristle.z_ba)}")
    element = ("Rotational" if turns else "") + _ELEMENTS[type(bristle)]
    sheet.declare(element, here, modifiers, own=True, comment="\n".join(said))
    sheet.connect(f"{here}.flange_b", sheet.flange(contact.flange, turns=turns))
    grounded = sheet.housing(name, turns) if support is None else sheet.flange(support, turns=turns)
    sheet.connect(f"{here}.support", grounded)


def write_part(sheet: Sheet, name: str) -> None:
    """Write the part `name` as a Modelica component with its connections.

    **Raises:** `ValueError` for a part of a class that Modelica does not have.
    """
    part = sheet.machine[name]
    writer = WRITERS.get(type(part))
    if writer is None:
        raise ValueError(
            f"{name!r} is a part of your own, {type(part).__name__}, whose Python Modelica cannot"
            " read: write its element by hand."
        )
    writer(sheet, name, part)


def _body(sheet: Sheet, name: str, part: Any) -> None:
    states = ("phi", "w") if type(part) is Inertia else ("s", "v")
    element, modifiers, said = type(part).__name__, values(part, states), ""
    modifiers += sheet.starts(name, states)
    own = (law := getattr(part, "f_neg", None)) is not None
    if own:
        table, said = sheet.table(law, f"{name}.f_neg", "N")
        element = "MassWithStopAndDirectionalFriction"
        modifiers.append(f"f_neg={table}")
    sheet.declare(element, sheet.names[name], modifiers, own=own, comment=said)


def _fixed_part(sheet: Sheet, name: str, part: Any) -> None:
    users = [f for _, *ends in sheet.layout.compliants for f in ends]
    for contact in (*sheet.layout.contacts, *sheet.layout.bristles):
        users += [f for f in (contact.flange, contact.support) if f]
    if not any(sheet.machine.names[f.part] == name for f in users):
        sheet.housing(name, False, part)


def _compliant(sheet: Sheet, name: str, part: Any) -> None:
    sheet.declare(type(part).__name__, sheet.names[name], values(part, renamed={"backlash": "b"}))
    index = sheet.machine.names.index(name)
    ((_, a, b),) = [c for c in sheet.layout.compliants if c[0] == index]
    turns = bool(type(part).rotational)
    sheet.connect(sheet.flange(a, "flange_b", turns), f"{sheet.names[name]}.flange_a")
    sheet.connect(f"{sheet.names[name]}.flange_b", sheet.flange(b, "flange_a", turns))


def _source(sheet: Sheet, name: str, part: Any) -> None:
    index = sheet.machine.names.index(name)
    ((_, flange, _),) = [f for f in sheet.layout.forces if f[0] == index]
    turns, kind, field = sheet.turns(flange), type(part).__name__, part.signal_name()
    if type(part) in _OF_EITHER and turns:
        kind = f"Rotational{kind}"
    # ForceDirection=false: by default, this force has the same sign for v > 0 and v < 0.
    along = [] if sheet.self_contained else _ALONG_THE_SPEED.get(type(part), [])
    sheet.declare(kind, sheet.names[name], values(part) + along)
    sheet.connect(f"{sheet.names[name]}.flange", sheet.flange(flange, turns=turns))
    if field is not None:
        sheet.signal(name, field, f"{sheet.names[name]}.{field}")


def _position(sheet: Sheet, name: str, part: Any) -> None:
    driven = part.body.partition(".")[0]
    body, here, there = sheet.machine[driven], sheet.names[name], sheet.names[driven]
    turns = isinstance(body, Inertia)
    exact = [] if sheet.self_contained else ["exact=true"]
    sheet.declare("RotationalPosition" if turns else "Position", here, exact)
    sheet.signal(name, "s", f"{here}.{'phi_ref' if turns else 's_ref'}")
    length = 0.0 if turns else float(getattr(body, "L", 0.0))
    if length == 0:
        sheet.connect(f"{here}.flange", f"{there}.flange_b")
        return
    said = f"{name} gives the position of the centre"
    rod = sheet.extra("Rod", f"{here}_half", [f"L={number(length / 2)}"], said)
    sheet.connect(f"{here}.flange", f"{rod}.flange_a")
    sheet.connect(f"{rod}.flange_b", f"{there}.flange_b")


def _friction(sheet: Sheet, name: str, part: Any) -> None:
    """Declare and connect a brake, a clutch, or a friction between a body and its support."""
    kind, here, contact = type(part), sheet.names[name], sheet.contact(name)
    flange, support = contact.flange, contact.support
    clutch = kind in (Clutch, OneWayClutch)
    turns = clutch or sheet.turns(flange, support)
    pos, unit = {SupportFriction: ("f_pos", "N"), BearingFriction: ("tau_pos", "N.m")}.get(
        kind, ("mu_pos", "1")
    )
    neg = pos.replace("_pos", "_neg")
    _check_friction(sheet, name, part, (pos, neg))
    if bristle_of(part) is not None:
        write_bristle(sheet, name, part, contact, pos, unit)
        return
    table, said = sheet.table(getattr(part, pos), f"{name}.{pos}", unit)
    modifiers, back = [f"{pos}={table}"], getattr(part, neg)
    own = back is not None or sheet.self_contained
    if back is not None:
        table, more = sheet.table(back, f"{name}.{neg}", unit)
        modifiers.append(f"{neg}={table}")
        said += f"\n{more}; the library mirrors one law, so this element is written out above"
    modifiers += values(part)
    if not own and not clutch and support is not None:
        modifiers.append("useSupport=true")
    if kind is OneWayClutch:
        if not sheet.self_contained:
            modifiers.append("startForward(fixed=true), stuck(fixed=true)")
    elif own and sheet.jumps:
        modifiers.append("v_small=0.001")  # [m/s or rad/s] faster contacts slide after a jump of v
    if contact.redundant:
        said += (
            f"\n{here}: another friction can stop the same motion, so the force of each while"
            " stuck is not unique"
        )
    element = "RotationalBrake" if kind is Brake and turns else kind.__name__
    sheet.declare(element, here, modifiers, own=own, comment=said)
    if clutch:
        assert support is not None
        sheet.connect(sheet.flange(support, "flange_b", True), f"{here}.flange_a")
        sheet.connect(f"{here}.flange_b", sheet.flange(flange, "flange_a", True))
    else:
        sheet.connect(f"{here}.flange_b", sheet.flange(flange, turns=turns))
        if support is not None:
            sheet.connect(f"{here}.support", sheet.flange(support, turns=turns))
        elif own:
            sheet.connect(f"{here}.support", sheet.housing(name, turns))
    if hasattr(part, "f_normalized"):
        sheet.signal(name, "f_normalized", f"{here}.f_normalized")


def _check_friction(sheet: Sheet, name: str, part: Any, laws: tuple[str, str]) -> None:
    """Raise `ValueError` if a friction has a property that the Modelica elements do not have."""
    heated = sheet.heated_by(sheet.names[name])
    if heated and any(isinstance(getattr(part, law), TemperatureDependent) for law in laws):
        raise ValueError(
            f"`{name}.{laws[0]}` depends on the temperature of {heated!r}, which no friction of the"
            " Modelica Standard Library does: take out the one or the other."
        )
    if not hasattr(part, "f_normalized"):
        return
    if (bristle := bristle_of(part)) is not None:
        raise ValueError(
            f"`{name}.bristle` is a {type(bristle).__name__} that a normal force presses on, for"
            " which the export has no element. Leave it out, for friction that sticks."
        )
    if isinstance(part.f_normalized, MotionDependent):
        raise ValueError(
            f"`{name}.f_normalized` is a `MotionDependent`, Python that Modelica cannot read: press"
            " it on by a signal over time."
        )


def _gear(sheet: Sheet, name: str, part: Any) -> None:
    here = sheet.names[name]
    if type(part) is LossyGear:
        if sheet.self_contained:
            raise ValueError(
                f"{name!r} is a `LossyGear`, which is written with the Modelica Standard Library"
                " only: leave out `self_contained`."
            )
        table = matrix(part.extended_rows())
        ratio = f"ratio={number(part.ratio)}"
        sheet.declare("LossyGear", here, [ratio, f"lossTable={table}"])
    else:
        sheet.declare(type(part).__name__, here, values(part))
    ends = ("sun", "carrier", "ring") if type(part) is IdealPlanetary else ("a", "b")
    for end in ends:
        body = sheet.names[getattr(part, end).partition(".")[0]]
        inward = end in ("a", "sun")
        connector = end if type(part) is IdealPlanetary else f"flange_{end}"
        sheet.connect(f"{here}.{connector}", f"{body}.{'flange_b' if inward else 'flange_a'}")


def _thermal_part(sheet: Sheet, name: str, part: Any) -> None:
    here = sheet.names[name]
    if isinstance(part, ThermalConductor):
        sheet.declare("ThermalConductor", here, [f"G={number(part.G)}"])
        sheet.connect(f"{sheet.names[part.a]}.port", f"{here}.port_a")
        if part.b is None:
            T = f"T={number(part.T_ambient)}"
            there = sheet.extra("FixedTemperature", f"{here}_ambient", [T])
        else:
            there = sheet.names[part.b]
        sheet.connect(f"{here}.port_b", f"{there}.port")
        return
    sheet.declare(
        "HeatCapacitor", here, [f"C={number(part.C)}", f"T(start={number(part.T)}, fixed=true)"]
    )
    for source in part.sources:
        there = sheet.names[source]
        if there in sheet.own:
            flow = sheet.extra("PrescribedHeatFlow", f"{there}_heat", [])
            sheet.equations.append(f"  {flow}.Q_flow = {there}.lossPower;")
            sheet.connect(f"{flow}.port", f"{here}.port")
        else:
            sheet.connect(f"{there}.heatPort", f"{here}.port")


_COMPLIANTS = (
    Spring,
    Damper,
    SpringDamper,
    RotationalSpring,
    RotationalDamper,
    RotationalSpringDamper,
    ElastoGap,
    ElastoBacklash,
)
_OF_EITHER = (LinearPositionDependentForce, PeriodicPositionDependentForce, PositionController)
_ALONG_THE_SPEED = {
    QuadraticSpeedDependentForce: ["ForceDirection=false"],
    QuadraticSpeedDependentTorque: ["TorqueDirection=false"],
}
WRITERS: dict[type, Callable[[Sheet, str, Any], None]] = {
    **dict.fromkeys((Mass, Inertia, MassWithStopAndFriction), _body),
    Fixed: _fixed_part,
    **dict.fromkeys(_COMPLIANTS, _compliant),
    **dict.fromkeys((Force, Torque, *_OF_EITHER, *_ALONG_THE_SPEED), _source),
    Position: _position,
    **dict.fromkeys((SupportFriction, BearingFriction, Brake, Clutch, OneWayClutch), _friction),
    **dict.fromkeys((IdealGear, IdealPlanetary, LossyGear), _gear),
    **dict.fromkeys((HeatCapacitor, ThermalConductor), _thermal_part),
}
