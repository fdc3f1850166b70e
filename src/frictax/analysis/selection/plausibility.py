"""Implausible friction laws: checks of a fitted law over the speeds of its records."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from frictax.contacts import AbstractContact, MassWithStopAndFriction
from frictax.contacts.contact import AbstractPressed
from frictax.fitting import FitResult, Knowledge
from frictax.fitting.result.identifiability import join_names
from frictax.measurements import Record
from frictax.mechanism import Mechanism
from frictax.text import WAYS

from ..friction_curve import law_values
from .cross_validation import body_speeds, sliding_speed

UNENDED = "its search did not converge"


def implausible(found: FitResult, cutoff: float) -> tuple[str, ...]:
    """Return the reasons why a fit cannot describe the machine.

    - Friction that drives: the law falls to 0 at a speed of the record.
    - A law that rises too steeply, as a table that stores a speed of the record. Its slope exceeds
      5 times that of the straight line through the law, and the mean force over the highest speed.
    - Parameters that the records do not identify, or a search that did not converge.

    Only contacts with a measured motion are checked. A steep fall is plausible (Stribeck).
    """
    out: list[str] = []
    for contact, way, v, f, units in visited_laws(found, cutoff):
        force, slope, speed = units
        where = f"{contact} {WAYS[way]}"
        low = int(np.argmin(f))
        if f[low] <= 0 < f[0]:
            out.append(
                f"{where}: the friction is 0 {force} at {v[low]:.3g} {speed}, where its law is"
                " below 0 and would drive"
            )
        local = np.diff(f) / np.diff(v)
        line = abs(float(np.polyfit(v, f, 1)[0]))
        limit = max(5.0 * line, float(np.mean(np.abs(f))) / v[-1])
        steep = int(np.argmax(local))
        if local[steep] > limit:
            out.append(
                f"{where}: the law rises by {local[steep]:.3g} {slope} at {v[steep]:.3g} {speed},"
                f" {local[steep] / max(line, 1e-300):.3g} times as steeply as the straight line"
                f" through it ({line:.3g})"
            )
    if found.identifiability.unknown:
        out.append(f"not identifiable: {join_names(list(found.identifiability.unknown))}")
    if not found.converged:
        out.append(UNENDED)
    return tuple(dict.fromkeys(out))


def doubts(found: FitResult) -> tuple[str, ...]:
    """Return doubts about a fit that do not make it implausible: values at their bounds."""
    at_bound = [e.name for e in found.estimates if e.knowledge is Knowledge.AT_BOUND]
    return (f"at its bound: {join_names(at_bound)}",) if at_bound else ()


def visited_laws(
    found: FitResult, cutoff: float
) -> Iterator[tuple[str, int, np.ndarray, np.ndarray, tuple[str, str, str]]]:
    """Yield for each contact and direction: its name, the direction (1 or -1), speeds, friction,
    and the units of friction, slope and speed. The speeds begin at a hundredth of the highest.
    """
    seen: dict[tuple[str, int], Any] = {}
    for label, record in found.records.items():
        machine = found.model_for(label)
        if not isinstance(machine, Mechanism) or not isinstance(record, Record):
            continue
        speeds = body_speeds(record, cutoff)
        for name, part in machine.named_parts():
            if not isinstance(part, AbstractContact):
                continue
            own = isinstance(part, MassWithStopAndFriction)  # This body is its own contact.
            v = sliding_speed((name, None) if own else part.between(), speeds)
            if v is None:
                continue
            for way in (1, -1):
                top = float(np.max(way * v))
                if top > 0.05 * float(np.max(np.abs(v))) and top > seen.get((name, way), (0.0,))[0]:
                    seen[name, way] = (top, part)
    for (name, way), (top, part) in seen.items():
        v = np.linspace(0.01 * top, top, 401)
        turns = getattr(type(part), "rotational", False)
        units = ("N.m", "N.m.s/rad", "rad/s") if turns else ("N", "N.s/m", "m/s")
        if isinstance(part, AbstractPressed):  # its law is a coefficient of friction
            units = ("", "s/rad" if turns else "s/m", units[2])
        yield name, way, v, law_values(part.law(way), v), units
