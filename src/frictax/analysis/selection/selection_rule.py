"""The rule that chooses one of several structures, and checks whether a law is plausible."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from frictax.bristles import MaxwellSlip
from frictax.contacts import AbstractContact, MassWithStopAndFriction
from frictax.contacts.contact import AbstractPressed
from frictax.fitting import FitResult, Knowledge
from frictax.fitting.result.identifiability import join_names
from frictax.measurements import Record
from frictax.mechanism import Mechanism
from frictax.text import WAYS

from ..friction_curve import law_values
from .cross_validation import body_speeds, root_mean, sliding_speed
from .structure import ComparedStructure

EQUAL = 1.05  # two errors with a ratio up to this value are equal

_WORDS = {
    "repeats": "of repeats left out",
    "speeds": "at speeds left out",
    "records": "of records left out",
}


def choose_structure(rows: Sequence[ComparedStructure]) -> tuple[ComparedStructure, str]:
    """Choose a structure, and return it with the reason in words.

    1. Implausible structures are excluded, unless all are implausible.
    2. Each error in left-out data, of trajectory and of force, is divided by the smallest error of
       the same kind. A ratio up to 1.05 is replaced by 1. A ratio is also replaced by 1 if the mean
       squared errors differ by at most one standard error, computed from pieces of the records. The
       rating of a structure is its largest ratio, that of its worst prediction.
    3. Structures with a rating within 5 % of the smallest one are equal. The equal structure with
       the fewest parameters is chosen. The smallest rating decides a tie.

    **Source:** L. Breiman, J. H. Friedman, R. A. Olshen, C. J. Stone, *Classification and
    Regression Trees* (1984), section 3.4.3 (one standard error); largest ratio: L. J. Savage, "The
    theory of statistical decision", Journal of the American Statistical Association 46 (1951).
    """
    candidates = [row for row in rows if not row.implausible] or list(rows)
    ratio = dict(zip([row.name for row in candidates], _worst_ratios(candidates), strict=True))
    least = min(ratio.values())
    equal = [row for row in candidates if ratio[row.name] <= EQUAL * least] or candidates
    best = min(equal, key=lambda row: (row.numbers, round(ratio[row.name], 6)))
    if len(rows) == 1:
        return best, f"{best.name} is chosen: it is the only structure."
    if best.implausible:
        out = [f"No structure is plausible. {best.name} is the least bad: {best.implausible[0]}."]
    elif len(equal) > 1:
        others = [row.name for row in equal if row is not best]
        names, s = join_names(others), "" if len(others) > 1 else "s"
        out = [
            f"{best.name} is chosen: {names} predict{s} the data left out no better, and it has the"
            f" fewest parameters ({best.numbers})."
        ]
    elif ratio[best.name] <= EQUAL:
        out = [
            f"{best.name} is chosen: it predicts the data left out best, in trajectory and in"
            " force."
        ]
    else:
        out = [
            f"{best.name} is chosen: the error of its worst prediction is"
            f" {ratio[best.name]:.3g} times that of the best."
        ]
    for row in rows:
        if row not in equal and row.mean_square < best.mean_square:
            aside = row.name not in ratio
            why = f"is set aside: {row.implausible[0]}." if aside else ""
            out.append(f"{row.name} fits closer, but {why}{_transfer(row, best, aside)}")
    others = [row for row in rows if row.name in ratio and row not in equal]
    if others and len(out) == 1:
        near = min(others, key=lambda row: ratio[row.name])
        out.append(f"{near.name} comes next: {_transfer(near, best, False)}")
    return best, " ".join([*out, *_presliding_sentences(rows)])


def _transfer(row: ComparedStructure, best: ComparedStructure, also: bool) -> str:
    """Return a sentence on the left-out data for which `row` is worst relative to `best`."""
    worst, says = 0.0, ""
    for by, held in row.held_out.items():
        for what in ("trajectory", "force"):
            mine, its = (getattr(h, f"{what}_rms") for h in (held, best.held_out[by]))
            if its > 0 and mine / its > worst:
                worst = mine / its
                says = f"its error of {what} {_WORDS[by]} is {worst:.3g} times that of {best.name}."
    if worst > EQUAL:
        return f" {says[0].upper()}{says[1:]}" if also else says
    chance = f"none of its predictions is significantly better than that of {best.name}."
    return "" if also else chance


def _worst_ratios(rows: Sequence[ComparedStructure]) -> list[float]:
    """Return the rating of each structure: its largest ratio of an error to the smallest error."""
    out = np.ones(len(rows))
    for by in rows[0].held_out:
        for kind in ("trajectory_squares", "force_squares"):
            squares = [getattr(row.held_out[by], kind) for row in rows]
            size = np.asarray([root_mean(s) for s in squares])
            # The error is inf if a fit failed, and NaN if the structure does not have this error.
            if np.any(np.isnan(size)) or not np.any(np.isfinite(size)):
                continue
            first = int(np.argmin(size))
            ratios = size / max(size[first], 1e-150)
            for i, (s, ratio) in enumerate(zip(squares, ratios, strict=True)):
                d = s - squares[first]
                d = d[~np.isnan(d)]
                within_one_error = (
                    np.all(np.isfinite(d))
                    and d.size > 1
                    and d.mean() <= d.std(ddof=1) / np.sqrt(d.size)
                )
                if ratio > EQUAL and not within_one_error:
                    out[i] = max(out[i], ratio)
    return out.tolist()


def _presliding_sentences(rows: Sequence[ComparedStructure]) -> list[str]:
    """Return a sentence if bristles do not improve the prediction of left-out data, and a sentence
    if more springs and sliders do not. An implausible structure never counts as an improvement.
    """
    out, rigid, bent, counts = [], [], [], {}
    for row in rows:
        machine = row.found.problem.setup.machine
        parts = machine.parts if isinstance(machine, Mechanism) else ()
        bristles = [b for part in parts if (b := getattr(part, "bristle", None)) is not None]
        if bristles:
            bent.append(row)
        elif not row.implausible:
            rigid.append(row)
        # For a structure with other bristles, the number of springs with sliders is set to 0.
        numbers = [b.k.shape[0] for b in bristles if isinstance(b, MaxwellSlip)]
        counts[row.name] = sum(numbers) if len(numbers) == len(bristles) else 0
    # Without a plausible rigid structure, `all` returns True, and the sentence does not appear.
    if bent and not any(all(_is_better(b, r) for r in rigid) for b in bent):
        out.append(
            "A bristle does not improve the prediction of the data left out by more than 5 %,"
            " compared with rigid friction, or the improvement is not significant."
        )
    springs = sorted((row for row in bent if counts[row.name]), key=lambda row: counts[row.name])
    more = [row for row in springs if counts[row.name] > counts[springs[0].name]]
    if more and not springs[0].implausible and not any(_is_better(row, springs[0]) for row in more):
        n = counts[springs[0].name]
        said = "One spring and one slider are" if n == 1 else f"{n} springs and sliders are"
        out.append(
            f"{said} enough for these records. With more of them"
            f" ({join_names(row.name for row in more)}), parameters are not identifiable, or the"
            " prediction of the data left out does not improve by more than 5 %, or the improvement"
            " is not significant."
        )
    return out


def _is_better(row: ComparedStructure, other: ComparedStructure) -> bool:
    """Return whether structure `row` is plausible and predicts better than structure `other`."""
    mine, its = _worst_ratios([row, other])
    return not row.implausible and its > mine


UNENDED = "its search did not converge"


def implausible(found: FitResult, cutoff: float) -> tuple[str, ...]:
    """Return the reasons why a fit cannot describe the machine.

    - Friction that accelerates the motion: the law falls to 0 or below at a speed of the record.
    - A law that rises too steeply, such as a table that fits errors at one speed. Its slope over
      speed exceeds two limits: 5 times the slope of a straight line fitted to the law, and the mean
      friction divided by the highest speed.
    - Parameters that the records do not identify, or a search that did not converge.

    Only contacts with a measured motion are checked. A law may fall steeply (Stribeck friction).
    """
    out: list[str] = []
    for contact, way, v, f, units in visited_laws(found, cutoff):
        force, slope, speed = units
        where = f"{contact} {WAYS[way]}"
        low = int(np.argmin(f))
        if f[low] <= 0 < f[0]:
            out.append(
                f"{where}: the law falls to 0 {force} or below at {v[low]:.3g} {speed}, but"
                " friction cannot accelerate the motion"
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
    """Return a remark that names the parameters whose estimates are at a bound."""
    at_bound = [e.name for e in found.estimates if e.knowledge is Knowledge.AT_BOUND]
    return (f"at its bound: {join_names(at_bound)}",) if at_bound else ()


def visited_laws(
    found: FitResult, cutoff: float
) -> Iterator[tuple[str, int, np.ndarray, np.ndarray, tuple[str, str, str]]]:
    """Yield for each contact and direction: its name, the direction (1 or -1), speeds from 1 % to
    100 % of the highest recorded speed, friction, and the units of friction, slope and speed.
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
            own = isinstance(part, MassWithStopAndFriction)  # its own contact
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
        if isinstance(part, AbstractPressed):  # the law gives a coefficient of friction
            units = ("", "s/rad" if turns else "s/m", units[2])
        yield name, way, v, law_values(part.law(way), v), units
