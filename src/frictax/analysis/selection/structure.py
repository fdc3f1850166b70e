"""A machine as a hypothesis, and the results of a comparison of several."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from frictax.annotations import Checked
from frictax.fitting import AbstractPrior, Bounds, FitOptions, FitResult, Instrument, Own
from frictax.fitting.problem.ties import Tied
from frictax.handover import Verb
from frictax.measurements import Record
from frictax.mechanism import AbstractHybridSystem, Machine, Mechanism
from frictax.parameters import UnknownName
from frictax.summary import Summarised
from frictax.verbs import StructureComparisonVerbs

from .cross_validation import HeldOut


@dataclasses.dataclass(frozen=True)
class Structure:
    """A machine as a hypothesis: its laws and parts, and which of its parameters are fitted.

    All fields except `model` are options of `fit`.

    This sledge has another friction in each direction:

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 8.0, 801)
    >>> v = np.sin(1.3 * t) + np.sin(3.1 * t)
    >>> a = 1.3 * np.cos(1.3 * t) + 3.1 * np.cos(3.1 * t)
    >>> force = a + np.where(v > 0, 2.0, -1.5) + 0.1 * np.random.default_rng(0).standard_normal(801)
    >>> record = fx.Record(t, {"drive": force}, {"mass.v": v}, name="run")
    >>> law = fx.Coulomb(F_Coulomb=1.0)
    >>> def sledge(f_neg):
    ...     return fx.Mechanism(
    ...         mass=fx.Mass(m=1.0),
    ...         friction=fx.SupportFriction("mass", f_pos=law, f_neg=f_neg),
    ...         drive=fx.Force("mass", 0.0),
    ...     )
    >>> structures = {
    ...     "one law": fx.Structure(sledge(None), free="friction.f_pos.F_Coulomb"),
    ...     "by direction": fx.Structure(
    ...         sledge(law), free=["friction.f_pos.F_Coulomb", "friction.f_neg.F_Coulomb"]
    ...     ),
    ... }
    >>> fx.compare(record, structures, objective=fx.InverseDynamics(20.0)).best.name
    'by direction'
    """

    model: Checked[Machine]
    free: str | Iterable[str] | None = None
    own: Own = ()
    priors: Sequence[AbstractPrior] = ()
    instruments: Mapping[str, Instrument] = dataclasses.field(default_factory=dict)
    bounds: Bounds = dataclasses.field(default_factory=dict)
    tied: Tied = dataclasses.field(default_factory=dict)
    log_scale: str | Iterable[str] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.model, Mechanism | AbstractHybridSystem):
            raise ValueError(
                "`Structure.model` must be a `Mechanism` or a hybrid system of your own, got"
                f" {self.model!r}."
            )
        FitOptions(priors=self.priors, instruments=self.instruments)

    def __repr__(self) -> str:
        kind, free = type(self.model).__name__, self.free
        if isinstance(self.model, Mechanism):
            kind += f" of {', '.join(self.model.names)}"
        if free is None:
            free = "all"
        elif isinstance(free, list | tuple):
            free = ", ".join(free)
        return f"Structure({kind}; free: {free})"


@dataclasses.dataclass(frozen=True, eq=False)
class ComparedStructure:
    """One structure of a comparison.

    - `found`: the fit to all records; `numbers`: number of fitted parameters.
    - `trajectory`: root mean square residual of a run over whole records from the measured start,
      free or in the closed loop as the objective. It has the unit of the output, or the standard
      deviations of several outputs.
    - `force`: root mean square residual of inverse dynamics at the fitted values [N or N.m]; NaN if
      the records do not determine it. `mean_square`: of the objective's weighted residuals.
    - `aic`, `bic`: for `StructureComparison.n_eff` independent residuals.
    - `held_out`: errors in data left out of the fit, by ``"repeats"``, ``"speeds"`` and, for
      several records, ``"records"``.
    - `implausible`: reasons why it cannot describe the machine; `doubts`: further remarks.

    **Example:** at `Structure`.
    """

    name: str
    found: FitResult
    trajectory: float
    force: float
    mean_square: float
    aic: float
    bic: float
    held_out: Mapping[str, HeldOut]
    implausible: tuple[str, ...]
    doubts: tuple[str, ...]

    def __repr__(self) -> str:
        remark = f"; {self.remark}" if self.remark else ""
        return f"ComparedStructure({self.name}: {self.numbers} numbers{remark})"

    @property
    def numbers(self) -> int:
        return len(self.found.estimates)

    @property
    def remark(self) -> str:
        """The reasons and doubts in words, or ""."""
        return "; ".join((*self.implausible, *self.doubts))


def row_named(rows: Iterable[Any], name: str, kind: str) -> Any:
    """Return the row of a comparison with this name."""
    known = {row.name: row for row in rows}
    if name not in known:
        raise UnknownName(
            f"There is no {kind} {name!r} in this comparison. It has: {', '.join(known)}."
        )
    return known[name]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class StructureComparison(Summarised, StructureComparisonVerbs):
    """Structures fitted to the same records, in the order given, with the chosen one.

    Print it, or draw it by `plot()`.

    `best`: see `frictax.analysis.selection.selection_rule.choose_structure`. `reason`: why it is
    chosen, and why structures that fit closer are not. `n_eff`: effective number of independent
    residuals. `unit` of the trajectory, `force_unit`.

    **Example:** at `Structure`.
    """

    records: Mapping[str, Record]
    rows: tuple[ComparedStructure, ...]
    best: ComparedStructure
    reason: str
    n_eff: float
    unit: str
    force_unit: str
    cutoff: float

    def __getitem__(self, name: str) -> ComparedStructure:
        return row_named(self.rows, name, "structure")

    def _ipython_key_completions_(self) -> list[str]:
        return [row.name for row in self.rows]

    _repr_html_ = Verb("frictax.report.cards:structures_html")

    _summary = Verb("frictax.analysis.selection.structures_text:structures_summary")
