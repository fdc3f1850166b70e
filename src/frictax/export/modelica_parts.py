"""Each kind of part as Modelica's component."""

from collections.abc import Callable
from typing import Any

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
from frictax.laws import TemperatureDependent
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
from frictax.mechanism.layout import Contact

from .modelica_bristles import write_bristle
from .modelica_sheet import Sheet, values
from .modelica_words import matrix, number

_JUMP = "v_small=0.001"


def write_part(sheet: Sheet, name: str) -> None:
    """Write the part called `name`; raises `ValueError`, one sentence, for one that Modelica's
    elements cannot say.
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
    sheet.declare(
        type(part).__name__, sheet.names[name], values(part, states) + sheet.starts(name, states)
    )


def _fixed(sheet: Sheet, name: str, part: Any) -> None:
    users = [c for _, a, b in sheet.layout.compliants for c in (a, b)] + [
        f
        for c in (*sheet.layout.contacts, *sheet.layout.bristles)
        for f in (c.flange, c.support)
        if f
    ]
    if not any(sheet.machine.names[f.part] == name for f in users):
        sheet.housing(name, False, part)


def _stop(sheet: Sheet, name: str, part: Any) -> None:
    modifiers = values(part, ("s", "v")) + sheet.starts(name, ("s", "v"))
    if part.f_neg is None:
        sheet.declare("MassWithStopAndFriction", sheet.names[name], modifiers)
        return
    table, said = sheet.table(part.f_neg, f"{name}.f_neg", "N")
    sheet.declare(
        "MassWithStopAndDirectionalFriction",
        sheet.names[name],
        [*modifiers, f"f_neg={table}"],
        own=True,
        comment=said,
    )


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
    # the library's own default is a force of one direction, whichever way it moves
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


def _on_support(sheet: Sheet, name: str, part: Any) -> None:
    contact = _contact_of(sheet, name)
    here, support = sheet.names[name], contact.support
    turns = sheet.turns(contact.flange) or (support is not None and sheet.turns(support))
    forward, unit = {
        SupportFriction: ("f_pos", "N"),
        BearingFriction: ("tau_pos", "N.m"),
        Brake: ("mu_pos", "1"),
    }[type(part)]
    _check_heat(sheet, name, part, forward)
    if bristle_of(part) is not None and type(part) is not Brake:
        write_bristle(sheet, name, part, contact, forward, unit)
        return
    _check_bristle(name, part)
    element = "RotationalBrake" if type(part) is Brake and turns else type(part).__name__
    own, modifiers, said = _laws(sheet, name, part, forward, unit)
    if not own and support is not None:
        modifiers.append("useSupport=true")
    _declare_friction(sheet, element, here, modifiers, own, said, contact)
    sheet.connect(f"{here}.flange_b", sheet.flange(contact.flange, turns=turns))
    if support is not None:
        sheet.connect(f"{here}.support", sheet.flange(support, turns=turns))
    elif own:
        sheet.connect(f"{here}.support", sheet.housing(name, turns))
    if type(part) is Brake:
        _pressed(sheet, name, part)


def _clutch(sheet: Sheet, name: str, part: Any) -> None:
    contact, here = _contact_of(sheet, name), sheet.names[name]
    _check_heat(sheet, name, part, "mu_pos")
    _check_bristle(name, part)
    own, modifiers, said = _laws(sheet, name, part, "mu_pos", "1")
    if type(part) is OneWayClutch and not sheet.self_contained:
        modifiers.append("startForward(fixed=true), stuck(fixed=true)")
    _declare_friction(sheet, type(part).__name__, here, modifiers, own, said, contact)
    assert contact.support is not None
    sheet.connect(sheet.flange(contact.support, "flange_b", True), f"{here}.flange_a")
    sheet.connect(f"{here}.flange_b", sheet.flange(contact.flange, "flange_a", True))
    _pressed(sheet, name, part)


def _laws(sheet: Sheet, name: str, part: Any, pos: str, unit: str) -> tuple[bool, list[str], str]:
    """Return whether it needs an element of our own, its modifiers, and what is to be said."""
    neg = pos.replace("_pos", "_neg")
    law, back = getattr(part, pos), getattr(part, neg)
    table, said = sheet.table(law, f"{name}.{pos}", unit)
    modifiers = [f"{pos}={table}"]
    if back is not None:
        table, more = sheet.table(back, f"{name}.{neg}", unit)
        modifiers.append(f"{neg}={table}")
        said += f"\n{more}; the library mirrors one law, so this element is written out above"
    return back is not None or sheet.self_contained, modifiers + values(part), said


def _check_heat(sheet: Sheet, name: str, part: Any, pos: str) -> None:
    """Raise `ValueError` for a law that changes with a temperature of the machine."""
    heated = sheet.heated_by(sheet.names[name])
    laws = getattr(part, pos), getattr(part, pos.replace("_pos", "_neg"))
    if heated and any(isinstance(law, TemperatureDependent) for law in laws):
        raise ValueError(
            f"`{name}.{pos}` depends on the temperature of {heated!r}, which no friction of the"
            " Modelica Standard Library does: take out the one or the other."
        )


def _check_bristle(name: str, part: Any) -> None:
    """Raise `ValueError` for a bristle that something presses on."""
    if (bristle := bristle_of(part)) is not None:
        raise ValueError(
            f"`{name}.bristle` is a {type(bristle).__name__} that a normal force presses on, for"
            " which the export has no element. Leave it out, for friction that sticks."
        )


def _declare_friction(
    sheet: Sheet,
    element: str,
    here: str,
    modifiers: list[str],
    own: bool,
    said: str,
    contact: Contact,
) -> None:
    jumps = any(isinstance(p, Position | MassWithStopAndFriction) for p in sheet.machine.parts)
    if contact.redundant:
        said += (
            f"\n{here}: another friction can hold the same motion, and how the two share its force"
            " while stuck is not unique"
        )
    if own and jumps and element != "OneWayClutch":
        modifiers = [*modifiers, _JUMP]
    sheet.declare(element, here, modifiers, own=own, comment=said)


def _pressed(sheet: Sheet, name: str, part: Any) -> None:
    if isinstance(part.f_normalized, MotionDependent):
        raise ValueError(
            f"`{name}.f_normalized` is a `MotionDependent`, Python that Modelica cannot read: press"
            " it on by a signal over time."
        )
    sheet.signal(name, "f_normalized", f"{sheet.names[name]}.f_normalized")


def _gear(sheet: Sheet, name: str, part: Any) -> None:
    here = sheet.names[name]
    if type(part) is LossyGear:
        if sheet.self_contained:
            raise ValueError(
                f"{name!r} is a `LossyGear`, which is written with the Modelica Standard Library"
                " only: leave out `self_contained`."
            )
        table = matrix(part.continued())
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


def _capacitor(sheet: Sheet, name: str, part: Any) -> None:
    here = sheet.names[name]
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


def _conductor(sheet: Sheet, name: str, part: Any) -> None:
    here = sheet.names[name]
    sheet.declare("ThermalConductor", here, [f"G={number(part.G)}"])
    sheet.connect(f"{sheet.names[part.a]}.port", f"{here}.port_a")
    if part.b is not None:
        sheet.connect(f"{here}.port_b", f"{sheet.names[part.b]}.port")
        return
    around = sheet.extra("FixedTemperature", f"{here}_ambient", [f"T={number(part.T_ambient)}"])
    sheet.connect(f"{here}.port_b", f"{around}.port")


def _contact_of(sheet: Sheet, name: str) -> Contact:
    index = sheet.machine.names.index(name)
    everywhere = (*sheet.layout.contacts, *sheet.layout.bristles)
    return next(c for c in everywhere if c.part == index)


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
    **dict.fromkeys((Mass, Inertia), _body),
    Fixed: _fixed,
    MassWithStopAndFriction: _stop,
    **dict.fromkeys(_COMPLIANTS, _compliant),
    **dict.fromkeys((Force, Torque, *_OF_EITHER, *_ALONG_THE_SPEED), _source),
    Position: _position,
    **dict.fromkeys((SupportFriction, BearingFriction, Brake), _on_support),
    **dict.fromkeys((Clutch, OneWayClutch), _clutch),
    **dict.fromkeys((IdealGear, IdealPlanetary, LossyGear), _gear),
    HeatCapacitor: _capacitor,
    ThermalConductor: _conductor,
}
