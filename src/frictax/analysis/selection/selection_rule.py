"""The rule that chooses one of several structures, and the sentence on its reason."""

from collections.abc import Sequence

from frictax.fitting.result.identifiability import join_names

from .presliding import presliding_sentences
from .ratios import EQUAL, worst_ratios
from .structure import ComparedStructure

_WORDS = {
    "repeats": "of repeats left out",
    "speeds": "at speeds left out",
    "records": "of records left out",
}


def choose_structure(rows: Sequence[ComparedStructure]) -> tuple[ComparedStructure, str]:
    """Choose a structure, and return it with the reason in words.

    1. Implausible structures are excluded, unless all are implausible.
    2. Each held-out error, of trajectory and of force, is divided by the least error of its kind.
       The ratio counts as 1 up to 1.05. It also counts as 1 if the difference is within one
       standard error over the pieces of the records. A structure has the largest of its ratios.
    3. Structures within 5 % of the least ratio are equal. Among them the one with the fewest
       parameters is chosen, then the one with the smaller ratio, then the first.

    So a structure is as good as its worst prediction, and the simplest of equal structures wins.

    **Source:** L. Breiman, J. H. Friedman, R. A. Olshen, C. J. Stone, *Classification and
    Regression Trees* (1984), section 3.4.3 (one standard error); the largest ratio after L. J.
    Savage, "The theory of statistical decision", Journal of the American Statistical Association 46
    (1951).
    """
    candidates = [row for row in rows if not row.implausible] or list(rows)
    ratio = dict(zip([row.name for row in candidates], worst_ratios(candidates), strict=True))
    least = min(ratio.values())
    equal = [row for row in candidates if ratio[row.name] <= EQUAL * least] or candidates
    best = min(equal, key=lambda row: (row.numbers, round(ratio[row.name], 6)))
    return best, _reason(rows, ratio, equal, best)


def _reason(
    rows: Sequence[ComparedStructure],
    ratio: dict[str, float],
    equal: list[ComparedStructure],
    best: "ComparedStructure",
) -> str:
    if len(rows) == 1:
        return f"{best.name} is the only structure: there is nothing to choose from."
    if best.implausible:
        out = [f"No structure is plausible; {best.name} is the least bad: {best.implausible[0]}."]
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
    return " ".join([*out, *presliding_sentences(rows)])


def _transfer(row: ComparedStructure, best: ComparedStructure, also: bool) -> str:
    """Return a sentence on the prediction in which `row` is worst relative to the chosen one."""
    worst, says = 0.0, ""
    for by, held in row.held_out.items():
        for what in ("trajectory", "force"):
            mine, its = (getattr(h, f"{what}_rms") for h in (held, best.held_out[by]))
            if its > 0 and mine / its > worst:
                worst = mine / its
                says = f"its error of {what} {_WORDS[by]} is {worst:.3g} times that of {best.name}."
    if worst > EQUAL:
        return f" {says[0].upper()}{says[1:]}" if also else says
    chance = f"no prediction of it is better than that of {best.name} by more than chance."
    return "" if also else chance
