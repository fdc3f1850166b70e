"""Choose a friction law for a sweep, or a structure for records: `compare`."""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np

from frictax.arguments import check_names, lists_options
from frictax.fitting import AbstractLoss, AbstractMethod, Data, FitResult, Law, fit, starting_law
from frictax.fitting.options import DEFAULTS, NoSuchOption, names_of
from frictax.handover import Verb
from frictax.laws import Coulomb, Stribeck, Table
from frictax.measurements import Sweep
from frictax.progress import Progress, show_progress
from frictax.summary import Summarised, Summary
from frictax.text import figures as shortly

from ..errors.resampling import refit_with_counts
from .directions import autocorrelation_of, criteria_with, with_directions
from .nested import from_contained
from .selection_rule import UNENDED
from .structure import Structure, StructureComparison, row_named
from .structures import Criteria, StructureOptions, compare_structures


@dataclasses.dataclass(frozen=True, eq=False)
class ComparedLaw:
    """One law of a comparison.

    - `name`; `found`: the fit of the law; `left_out`: root mean square error [N or N.m] of the
      predicted forces. The fit for a row leaves out this row and its correlated neighbours.
    - `aicc`, `bic`: information criteria; they account for `Comparison.autocorrelation`.
    - `remark`: why the law cannot be chosen (not identifiable, or not converged); otherwise "".

    **Example:** at `compare`.
    """

    name: str
    found: FitResult
    left_out: float
    aicc: float
    bic: float
    remark: str

    def __repr__(self) -> str:
        force, count = self.found.shown_force, len(self.found.estimates)
        left_out = f"left out {self.left_out / force.si:.4g} {force.name}"
        remark = f"; {self.remark}" if self.remark else ""
        return f"ComparedLaw({self.name}: {count} numbers, {left_out}{remark})"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Comparison(Summarised):
    """Laws fitted to one sweep, in the given order, and the chosen law. `print` shows a table.

    `best`: the law with the smallest AICc among the laws whose parameters are all identifiable.
    `reason`: why this law is chosen; it also names a law that predicts left-out rows better.
    `autocorrelation`: that of the errors of neighbouring rows, 0 for white noise.

    **Example:** at `compare`.
    """

    sweep: Sweep
    rows: tuple[ComparedLaw, ...]
    best: ComparedLaw
    reason: str
    autocorrelation: float = 0.0

    def __getitem__(self, name: str) -> ComparedLaw:
        return row_named(self.rows, name, "law")

    def _ipython_key_completions_(self) -> list[str]:
        return [row.name for row in self.rows]

    _repr_html_ = Verb("frictax.report.cards:comparison_html")

    def as_table(
        self, unit: str = " {}", figures: int = 4, chosen: str = "<- chosen", unknown: str = "inf"
    ) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the header of the table, and its rows.

        **Arguments:** `unit`: format string of the force unit in the header; `figures`: significant
        digits of forces; `chosen`: remark in the best row; `unknown`: text for infinite errors.
        """
        force = self.best.found.shown_force
        name = unit.format(force.name)
        return ("law", "numbers", f"rms{name}", f"left out{name}", "AICc", "BIC", ""), [
            (
                row.name,
                str(len(row.found.estimates)),
                shortly(row.found.rms_force / force.si, figures),
                shortly(row.left_out / force.si, figures) if np.isfinite(row.left_out) else unknown,
                f"{row.aicc:.1f}",
                f"{row.bic:.1f}",
                chosen if row is self.best else row.remark,
            )
            for row in self.rows
        ]

    def _summary(self) -> Summary:
        return Summary("", self.as_table(), "lrrrrrl", [self.reason], chosen=self.best.name)


class LawOptions(TypedDict, total=False):
    """The options of `compare` for laws and a sweep."""

    offset: float | None
    method: AbstractMethod | None
    loss: AbstractLoss | None
    progress: bool | Progress


class CompareOptions(LawOptions, StructureOptions, total=False):
    """All options of `compare`."""


# For type checkers: the options in the overloads of `compare`.
if TYPE_CHECKING:

    class CompareLaws(LawOptions, total=False, extra_items=NoSuchOption): ...

    class CompareStructures(StructureOptions, total=False, extra_items=NoSuchOption): ...

else:
    CompareLaws, CompareStructures = LawOptions, StructureOptions

_DEFAULTS = {f.name: f.default for f in dataclasses.fields(Criteria)} | DEFAULTS


@overload
def compare(
    data: Sweep, candidates: Mapping[str, Law] | None = None, **options: Unpack[CompareLaws]
) -> Comparison: ...


@overload
def compare(
    data: Data, candidates: Mapping[str, Structure], **options: Unpack[CompareStructures]
) -> StructureComparison: ...


@lists_options(CompareOptions, _DEFAULTS)
def compare(data: Any, candidates: Any = None, **options: Any) -> Comparison | StructureComparison:
    """Fit several laws to one sweep and choose one by AICc, or compare structures on records.

    `frictax.analysis.selection.structures.compare_structures` describes the comparison of
    structures and its options: `objective`, `start`, `engine`, `cutoff`, `repeats`, `bands`.

    **Arguments:** `data`: usually one direction, ``sweep.positive()``, because measured machines
    are rarely symmetric. `candidates`: name -> law or `SteadyFriction` with start values; by
    default Coulomb, Stribeck with exponents 1 and 2, and a table whose speeds are chosen from the
    data. `offset` [N or N.m]: start value of a constant force in each fit. `offset`, `method`,
    `loss` and `progress` have the same meaning as in `fit`.

    **Returns:** a `Comparison`. If `sigma_known` is False, the `sigma` of a sweep gives only
    relative weights of its rows. The criteria use the likelihood of normally distributed noise.
    Differences of AICc below 2 are not decisive. If the errors of neighbouring rows, in the given
    order, are significantly correlated, the likelihood is that of autocorrelated errors.

    **Source:** K. P. Burnham, D. R. Anderson, *Model Selection and Multimodel Inference*, 2nd ed.
    (2002), section 2.4.

    >>> import frictax as fx, numpy as np
    >>> v = np.linspace(0.1, 4.0, 40)
    >>> f = 5.0 + 0.5 * v + 2.0 * np.exp(-3.0 * v)

    >>> f += 0.05 * np.random.default_rng(0).standard_normal(40)
    >>> sweep = fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")
    >>> laws = {
    ...     "Coulomb": fx.Coulomb(F_Coulomb=5.0, F_prop=0.5),
    ...     "Stribeck": fx.Stribeck(F_prop=0.5, F_Coulomb=5.0, F_Stribeck=1.0, fexp=2.0),
    ... }
    >>> made = fx.compare(sweep, laws)
    >>> made.best.name, [round(row.left_out, 3) for row in made.rows]
    ('Stribeck', [0.275, 0.04])
    """
    check_names(compare, options)
    progress = options.pop("progress", False)
    if isinstance(data, Sweep):
        _refuse(options, names_of(LawOptions), "records", "a sweep")
        return _compare_laws(data, candidates, options, progress)
    _refuse(options, names_of(StructureOptions), "sweeps", "records")
    given = {name: value for name, value in options.items() if value is not None}
    return compare_structures(data, candidates, Criteria(**given), progress)


def _compare_laws(
    sweep: Sweep, laws: Mapping[str, Law] | None, options: Mapping[str, Any], progress: Any
) -> Comparison:
    rows, laws = [], default_laws(sweep) if laws is None else laws
    with show_progress(progress, "Comparing laws") as work:
        parts, fits = work.parts(dict.fromkeys(laws, 1.0)), {}
        for name, law in laws.items():
            fits[name] = fit(law, sweep, **options)
            parts[name]("fitted", 0.5)
        fits, differences = with_directions(from_contained(fits))
        rho = autocorrelation_of(fits.values()) if fits else 0.0
        for name, found in fits.items():
            aicc, bic = criteria_with(found, rho)
            left_out = _left_out(found, rho)
            unknown = ", ".join(found.identifiability.unknown)
            remark = f"not identifiable: {unknown}" if unknown else ""
            remark = remark if found.converged else UNENDED
            rows.append(ComparedLaw(name, found, left_out, aicc, bic, remark))
            if name in parts:
                parts[name]("fitted without each of its rows", 1.0)
    if not rows:
        raise ValueError(
            "`compare` needs at least one law, got none. Leave `candidates` out for the usual ones."
        )
    ended = [row for row in rows if row.found.converged] or rows
    candidates = [row for row in ended if not row.remark] or ended
    # If several laws have the same criterion, the first is chosen, which is the simplest.
    best = min(candidates, key=lambda row: round(row.aicc, 6))
    said = [_reason(rows, best)]
    if rho:
        said.append(
            f"The errors of neighbouring rows have an autocorrelation of up to {rho:.2g}. The"
            " criteria allow for that, and each prediction leaves out neighbouring rows together."
        )
    near = min(candidates, key=lambda row: row.left_out)
    if np.isfinite(best.aicc) and near.left_out < best.left_out * (1 - 1e-6):
        force, less = best.found.shown_force, 100 * (1 - near.left_out / best.left_out)
        errors = " and ".join(f"{row.left_out / force.si:.4g}" for row in (near, best))
        said.append(
            f"The two criteria disagree: the error of {near.name} on rows left out is {less:.2g} %"
            f" smaller ({errors} {force.name}). AICc decides, because it uses the likelihood of"
            " every row, while the mean square of rows left out depends on a few of them; look at"
            " both laws."
        )
    if best.name in differences:
        said.insert(1, f"The two directions differ: {differences[best.name]}.")
    return Comparison(sweep, tuple(rows), best, " ".join(said), rho)


def _refuse(options: Mapping[str, Any], known: Iterable[str], of: str, here: str) -> None:
    """Raise `ValueError` for an option that is not in `known`, the options of this comparison."""
    for name, value in options.items():
        if name not in known and value is not None:
            raise ValueError(
                f"`compare`: `{name}` belongs to comparisons of {of}, and what is compared here is"
                f" {here}. Leave it out."
            )


def default_laws(sweep: Sweep) -> dict[str, Any]:
    """Return the laws that `compare` tries by default, with start values, the simplest first."""
    speeds = np.unique(np.abs(sweep.velocity[~sweep.breakaway])).size
    laws: dict[str, Any] = {"Coulomb": starting_law(Coulomb, sweep)}
    if sweep.n > 5:
        laws["Stribeck, exponent 1"] = starting_law(Stribeck, sweep, exponent=1.0)
        laws["Stribeck, exponent 2"] = starting_law(Stribeck, sweep, exponent=2.0)
    if speeds >= 6:
        table = starting_law(Table, sweep)
        laws[f"Table, {table.v.size} nodes"] = table
    return laws


def _left_out(found: FitResult, rho: float) -> float:
    """Return the root mean square error [N or N.m] of the predictions of left-out rows. The refit
    for a row gives weight 0 to this row and its correlated neighbours (autocorrelation `rho`).
    """
    if found.dof < 2:
        return float("inf")
    # A search that starts with a parameter at its bound does not change this parameter. Therefore
    # such a value is moved inside by 1 % of a typical value: mean force, highest speed, or 1.
    force = float(np.mean(np.abs(found.sweep.force)))
    speed = float(np.max(np.abs(found.sweep.velocity)))
    of_force = found.sweep.force_unit.si_name

    def size(unit: str) -> float:
        of_speed = re.findall(r"(/?)\b(?:m|rad)(\d*)\b", unit.removeprefix(of_force))
        power = sum((-1 if slash else 1) * int(digits or 1) for slash, digits in of_speed)
        return (force if "N" in unit else 1.0) * speed**power

    inside = [
        e.value + (0.01 * size(e.unit) if np.isnan(e.standard_error) else 0.0)
        for e in found.estimates
    ]
    start = np.asarray(found.problem.coordinates(np.asarray(inside)))
    # The prediction of a row does not use this row, or rows correlated with it by more than 0.3.
    reach = int(np.ceil(np.log(0.3) / np.log(rho))) if rho > 0.3 else 0
    away = np.abs(np.arange(found.n)[:, None] - np.arange(found.n))
    kept = (away > min(reach, found.n // 8)).astype(float)
    ends, _ = refit_with_counts(found, kept, start)
    label = next(iter(found.records))
    predicted = [
        np.ravel(dataclasses.replace(found, x=x).predicted(label))[i] for i, x in enumerate(ends)
    ]
    return float(np.sqrt(np.mean((np.array(predicted) - found.sweep.force) ** 2)))


def _reason(rows: list[ComparedLaw], best: ComparedLaw) -> str:
    if not np.isfinite(best.aicc):
        return (
            f"{best.name} is chosen as the first: {best.found.n} rows are too few for the"
            " small-sample AIC."
        )
    text = f"{best.name} is chosen: it has the least AICc ({best.aicc:.1f})"
    better = [row for row in rows if row.remark and row.found.converged and row.aicc < best.aicc]
    if better:
        names = " and ".join(row.name for row in better)
        text = (
            f"{best.name} is chosen: the AICc of {names} is smaller, but this sweep cannot identify"
            " all of the terms"
        )
    elif any(row.remark and row.found.converged for row in rows):
        text += " and no term that this sweep cannot identify"
    others = [row for row in rows if row is not best and row.found.converged]
    if not best.found.converged:
        return f"No search converged. {best.name} has the least AICc at the last step."
    if others:
        near = min(others, key=lambda row: row.aicc)
        text += f"; {near.name} comes next ({near.aicc:.1f})."
        if abs(near.aicc - best.aicc) < 2:
            text += " The two differ by less than 2, which is not significant."
        return text
    return text + "."
