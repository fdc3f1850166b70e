"""Units of fitted parameters, in SI and in the units of their records."""

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

from frictax.bristles import AbstractBristle
from frictax.contacts import Brake
from frictax.contacts.contact import AbstractContact, AbstractPressed
from frictax.laws import AbstractLaw
from frictax.measurements.record import Record
from frictax.measurements.sweep import Sweep
from frictax.measurements.units import Unit, split_channel
from frictax.mechanism import AbstractLinkage, Mechanism
from frictax.mechanism.forces import AbstractSource
from frictax.mechanism.layout import is_rotational, turns_about
from frictax.parameters import UnknownName, get, rotational_unit
from frictax.signals import AbstractSignal

from ..problem.readings import tick_noise
from ..problem.setup import channel_unit

# Unit of the signal in each of these fields of a part, because a signal does not declare a unit.
_DRIVEN = {"f": "N", "tau": "N.m", "s": "m", "s_ref": "m"}
_OF_CHANNEL = {"offset": "", "drift": "/s"}  # field of an instrument -> end of its unit


def unit_of(records: Mapping[str, Any], machine: Any) -> Callable[[Any], str]:
    """Return a function that returns the unit of an unknown or of a parameter.

    A field of a user's own machine or part has its declared unit. The offset of a channel has the
    channel's unit, and its drift has this unit per second. Laws, bristles and contacts declare
    units of translation, which are converted to units of rotation for a rotating part. If a normal
    force multiplies a law, a force of the law has the unit of a friction coefficient. An amplitude
    or offset of a signal has the unit of the force, torque or position that the signal drives.
    Times, frequencies and phases keep their declared units.
    """
    motions = [r for r in records.values() if isinstance(r, Record)]
    channels = {
        f"{kind}.{name}": r.units[name]
        for r in motions
        for kind in ("inputs", "outputs")
        for name in getattr(r, kind)
    }
    measured = any(r.units[name].rotational for r in motions for name in r.outputs)
    measured |= any(isinstance(r, Sweep) and r.rotational for r in records.values())
    return functools.partial(_unit_of, machine, motions, channels, measured)


def _unit_of(
    machine: Any, motions: list[Record], channels: Mapping[str, Unit], measured: bool, u: Any
) -> str:
    """Return the unit of the parameter `u`. `channels`: unit of each channel, by path; `measured`:
    true if the measured motion is a rotation.
    """
    channel, _, last = u.path.rpartition(".")
    if channel in channels and last in _OF_CHANNEL:
        return channels[channel].si_name + _OF_CHANNEL[last]
    declared, (name, _, field) = u.declaration.unit, u.path.partition(".")
    if _is_of_user(machine, u.path):
        return declared
    if not isinstance(machine, Mechanism) or name not in machine.names:
        turns = _coordinate_turns(machine, u.path, motions, measured)
        return rotational_unit(declared) if turns else declared
    part, turns, drive = machine[name], turns_about(machine, name), field.partition(".")[0]
    if drive == field:
        if turns and isinstance(part, Brake) and field == "cgeo":
            return "m"
        turns = turns and isinstance(part, AbstractSource) and is_rotational(part) is None
    elif isinstance(getattr(part, drive, None), AbstractSignal):
        if declared == "1" and last != "nperiod":
            declared = _DRIVEN.get(drive, "1")
        turns = turns and declared == "m"
    elif isinstance(part, AbstractPressed):
        # The law is multiplied by a force, so "N" becomes "1", "N/m" "1/m" and "N.s/m" "s/m".
        declared = re.sub(r"^N(\.|$)", "", re.sub("^N/", "1/", declared)) or "1"
    return rotational_unit(declared) if turns else declared


def _is_of_user(machine: Any, path: str) -> bool:
    """Return True if a user's own class declares the field at `path`. Laws, bristles and contacts
    are excluded, because their units depend on whether they slide or turn.
    """
    above, _, field = path.rpartition(".")
    try:
        owner = get(machine, above) if above else machine
    except UnknownName:  # the path belongs to the instrument of a channel
        return False
    if isinstance(owner, AbstractLaw | AbstractBristle | AbstractContact):
        return False
    declares = (cls for cls in type(owner).__mro__ if field in vars(cls).get("__annotations__", {}))
    cls = next(declares, None)
    return cls is not None and cls.__module__.partition(".")[0] != "frictax"


def _coordinate_turns(machine: Any, path: str, records: list[Record], measured: bool) -> bool:
    """Return True if the friction at `path` of a user's own machine acts on an angle, False for a
    distance. Return `measured` if records and state name do not show this.
    """
    first, *more = path.split(".")
    states = machine.states() if callable(getattr(machine, "states", None)) else ()
    number = {"friction": 0, "frictions": int(more[0]) if more and more[0].isdigit() else 0}
    if first not in number or not states:
        return measured
    dofs = getattr(machine, "degrees_of_freedom", 1)
    if isinstance(machine, AbstractLinkage) and not machine.is_by_joint:
        return measured
    for name in states[number[first] :: dofs][:2]:
        for record in records:
            if name in record.outputs:
                return record.units[name].rotational
        if (last := split_channel(name)[1]) in ("phi", "w", "s", "v"):
            return last in ("phi", "w")
    return measured


def in_records(
    records: Mapping[str, Any], unit: str, path: str = "", value: float = 0.0
) -> tuple[str, float] | None:
    """Return the unit that the records use for the SI unit `unit`, and the SI value of that unit.
    Return None if records use more or fewer units than one for `unit`, or if the prefix does not
    suit `value`.

    A parameter of a channel has the unit of the channel. If `unit` begins with a force or torque,
    the records' unit replaces it. For example, with torques in N.cm, N.m.s/rad becomes N.cm.s/rad.
    """
    given = [
        (name, declared)
        for r in records.values()
        for name, declared in (
            r.units.items()
            if isinstance(r, Record)
            else [("velocity", r.velocity_unit), ("force", r.force_unit)]
        )
        if declared.si_name != "1"
    ]
    own = [
        d for name, d in given if path in (name, f"inputs.{name}.offset", f"outputs.{name}.offset")
    ]
    # "N.m.s/rad" begins with a torque, not with a force.
    forces = ("N.m",) if f"{unit}.".startswith("N.m.") else ("N", "N.m")
    leading = [n for n in forces if unit.startswith((f"{n}.", f"{n}/"))]
    for declared in (own, [d for _, d in given]):
        known = {d for d in declared if d.si_name == unit} or {
            d for d in declared if d.si_name in leading
        }
        if len(known) == 1:
            (one,) = known
            name, size = one.name + unit[len(one.si_name) :], one.si
            by_prefix = one.name.endswith(one.si_name)
            handy = not value or 0.1 <= abs(value) / size < 1e4
            return None if by_prefix and (size == 1.0 or not handy) else (name, size)
    return None


def rms_units(records: Mapping[str, Any], model: Any, label: str, names: Any) -> dict[str, Any]:
    record = records[label]
    if not isinstance(record, Record):
        return dict.fromkeys(names, record.force_unit.si_name)
    return {
        name: "s" if name in tick_noise(record) else channel_unit(model, record, name)
        for name in names
    }
