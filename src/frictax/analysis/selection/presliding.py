"""Sentences of a comparison on presliding: whether a bristle improves the prediction, and how many
springs and sliders are identifiable.
"""

from collections.abc import Sequence

from frictax.bristles import AbstractBristle, MaxwellSlip
from frictax.fitting.result.identifiability import join_names
from frictax.mechanism import Mechanism

from .ratios import worst_ratios
from .structure import ComparedStructure


def presliding_sentences(rows: Sequence[ComparedStructure]) -> list[str]:
    """Return sentences on the bristles of these structures, judged by the data left out. An
    implausible structure is not an improvement.
    """
    bristles = {row.name: _bristles(row) for row in rows}
    rigid = [row for row in rows if not bristles[row.name] and not row.implausible]
    bent = [row for row in rows if bristles[row.name]]
    out = []
    if rigid and bent and not any(all(_is_better(b, r) for r in rigid) for b in bent):
        out.append(
            "A bristle does not improve the prediction: none predicts the data left out better than"
            " rigid friction by more than 5 %, or by more than chance."
        )
    counts = {row.name: _elements(bristles[row.name]) for row in bent}
    springs = sorted((row for row in bent if counts[row.name]), key=lambda row: counts[row.name])
    more = [row for row in springs if counts[row.name] > counts[springs[0].name]]
    if more and not springs[0].implausible and not any(_is_better(row, springs[0]) for row in more):
        n = counts[springs[0].name]
        said = "One spring and one slider are" if n == 1 else f"{n} springs and sliders are"
        out.append(
            f"{said} enough for these records. With more of them"
            f" ({join_names(row.name for row in more)}), parameters are not identifiable, or the"
            " prediction of the data left out does not improve by more than 5 %, or by more than"
            " chance."
        )
    return out


def _bristles(row: ComparedStructure) -> list[AbstractBristle]:
    machine = row.found.problem.setup.machine
    parts = machine.parts if isinstance(machine, Mechanism) else ()
    found = (getattr(part, "bristle", None) for part in parts)
    return [bristle for bristle in found if bristle is not None]


def _elements(bristles: Sequence[AbstractBristle]) -> int:
    """Return the number of springs with sliders; 0 if there is another kind of bristle."""
    if not all(isinstance(bristle, MaxwellSlip) for bristle in bristles):
        return 0
    return sum(bristle.k.shape[0] for bristle in bristles if isinstance(bristle, MaxwellSlip))


def _is_better(row: ComparedStructure, other: ComparedStructure) -> bool:
    """Return whether a structure is plausible and predicts better than another."""
    mine, its = worst_ratios([row, other])
    return not row.implausible and its > mine
