"""Units of fitted numbers."""

from collections.abc import Callable, Mapping
from typing import Any

from frictax.contacts import Brake
from frictax.contacts.contact import AbstractPressed
from frictax.measurements.record import Record
from frictax.measurements.sweep import Sweep
from frictax.mechanism import Mechanism
from frictax.mechanism.attachments import is_rotational, turns_about
from frictax.mechanism.forces import AbstractSource
from frictax.parameters import rotational_unit
from frictax.signals import AbstractSignal

# What a signal in a field of this name gives; it declares no unit itself.
_DRIVEN = {"f": "N", "tau": "N.m", "s": "m", "s_ref": "m"}


def unit_of(records: Mapping[str, Any], machine: Any) -> Callable[[Any], str]:
    """The unit of an unknown, or of a parameter.

    Of a channel's offset and drift it is the channel's; a part's own fields say theirs; those of
    its laws are of translation, until it turns or their force is a coefficient, and of its signals
    the drive's.
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

    def unit(u) -> str:
        channel, _, last = u.path.rpartition(".")
        if channel in channels and last in ("offset", "drift"):
            return channels[channel].si_name + ("/s" if last == "drift" else "")
        declared, (name, _, field) = u.declaration.unit, u.path.partition(".")
        if not isinstance(machine, Mechanism) or name not in machine.names:
            return rotational_unit(declared) if measured else declared
        part, turns = machine[name], turns_about(machine, name)
        if "." not in field:
            if turns and isinstance(part, AbstractSource) and is_rotational(part) is None:
                return rotational_unit(declared)
            return "m" if turns and isinstance(part, Brake) and field == "cgeo" else declared
        drive = field.partition(".")[0]
        if isinstance(getattr(part, drive, None), AbstractSignal):
            if declared == "1" and last != "nperiod":
                declared = _DRIVEN.get(drive, "1")
            return rotational_unit(declared) if turns and declared == "m" else declared
        if isinstance(part, AbstractPressed):
            declared = "1" if declared == "N" else "s/m" if declared == "N.s/m" else declared
        return rotational_unit(declared) if turns else declared

    return unit
