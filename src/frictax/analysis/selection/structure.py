"""Structures (hypotheses on a machine), the default structures, and results of a comparison."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from frictax.annotations import Checked
from frictax.arguments import check_count
from frictax.contacts import AbstractContact
from frictax.fitting import AbstractPrior, Bounds, FitOptions, FitResult, Instrument, Own, Smooth
from frictax.fitting.problem.ties import Tied
from frictax.handover import Verb
from frictax.laws import AbstractLaw, Coulomb, Stribeck, Table
from frictax.measurements import Record
from frictax.mechanism import (
    AbstractHybridSystem,
    LinearPositionDependentForce,
    Machine,
    Mechanism,
    PeriodicPositionDependentForce,
    QuadraticSpeedDependentForce,
    QuadraticSpeedDependentTorque,
)
from frictax.parameters import UnknownName, select
from frictax.summary import Summarised, Summary
from frictax.text import figures
from frictax.verbs import StructureComparisonVerbs

from .cross_validation import HeldOut, body_speeds, sliding_speed


@dataclasses.dataclass(frozen=True)
class Structure:
    """A hypothesis on a machine: its friction laws, its parts, and the parameters to fit.

    All fields except `model` are options of `fit`.

    The friction of this sledge differs between the directions:

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
    - `trajectory`: root mean square residual of simulations over whole records from the measured
      initial state, free or in closed loop like the objective. The unit is that of the output, or
      the output's standard deviation for several outputs or given standard deviations.
    - `force`: root mean square residual of inverse dynamics at the fitted values [N or N.m]; NaN if
      the records do not determine the force. `mean_square`: mean square of the weighted residuals.
    - `aic`, `bic`: criteria for `StructureComparison.n_eff` independent residuals.
    - `held_out`: kind of the left-out data (``"repeats"``, ``"speeds"``, or with several records
      also ``"records"``) -> the prediction errors of these data.
    - `implausible`: reasons why a structure cannot describe the machine; `doubts`: other remarks.

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
        """All entries of `implausible` and `doubts` in one text, which may be empty."""
        return "; ".join((*self.implausible, *self.doubts))


def row_named(rows: Iterable[Any], name: str, kind: str) -> Any:
    known = {row.name: row for row in rows}
    if name not in known:
        raise UnknownName(
            f"There is no {kind} {name!r} in this comparison. It has: {', '.join(known)}."
        )
    return known[name]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class StructureComparison(Summarised, StructureComparisonVerbs):
    """Structures fitted to the same records, in the given order, and the chosen structure. `print`
    shows a table, and `plot()` a figure.

    `best`: the structure chosen by `frictax.analysis.selection.selection_rule.choose_structure`.
    `reason`: why `best` is chosen, and not a structure with smaller residuals. `n_eff`: effective
    number of independent residuals. `unit`, `force_unit`: units of trajectory and force errors.
    `cutoff` [Hz]: cutoff frequency for forces and speeds.

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

    def _summary(self) -> Summary:
        head, rows = structures_rows(self)
        sides = "l" + "r" * (len(head) - 2) + "l"
        sentences = [*(f"! {remark}" for remark in remarks(self)), self.reason]
        title = structures_title(self, ", ".join(self.records))
        return Summary(title, (head, rows), sides, sentences, chosen=self.best.name)


def structures_rows(made: StructureComparison) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    unit, size = _handy(made.unit, [row.trajectory for row in made.rows])
    left_out = [held.trajectory_rms for row in made.rows for held in row.held_out.values()]
    as_output = made.best.found.problem.objective.in_units_of_outputs()
    out_unit, out_size = _handy(made.unit, left_out) if as_output else (made.force_unit, 1.0)
    schemes = list(made.rows[0].held_out)
    head = [
        "structure", "numbers", f"free run {unit}", f"force {made.force_unit}",
        *(f"{by} {u}" for by in schemes for u in (out_unit, made.force_unit)), "AIC", "BIC", "",
    ]  # fmt: skip
    rows = []
    for row in made.rows:
        left = [
            x
            for by in schemes
            for x in (row.held_out[by].trajectory_rms / out_size, row.held_out[by].force_rms)
        ]
        mark = "<- chosen" if row is made.best else "implausible" if row.implausible else ""
        cells = [
            figures(row.trajectory / size),
            figures(row.force),
            *(figures(x, 3) for x in left),
            f"{row.aic:.1f}",
            f"{row.bic:.1f}",
        ]
        rows.append((row.name, str(row.numbers), *(c.replace("nan", "-") for c in cells), mark))
    return tuple(head), rows


def remarks(made: StructureComparison) -> list[str]:
    """Return the entries of `implausible` and `doubts` of all structures, as "name: entry"."""
    return [f"{row.name}: {x}" for row in made.rows for x in (*row.implausible, *row.doubts)]


def structures_title(made: StructureComparison, records: str) -> str:
    """Return the title of the table: records, objective, and the kinds of left-out data."""
    return (
        f"Structures fitted to {records} by"
        f" {type(made.best.found.problem.objective).__name__};"
        f" {', '.join(made.rows[0].held_out)}: errors on the data left out"
    )


def _handy(unit: str, values: list[float]) -> tuple[str, float]:
    """Return `unit` with an SI prefix that suits the smallest value, and the prefix's factor."""
    if unit == "sd":
        return "x sd", 1.0
    known = [v for v in values if np.isfinite(v) and v > 0]
    least = min(known, default=1.0)
    sizes = (("", 1.0), ("m", 1e-3), ("µ", 1e-6))
    prefix, size = next(((p, s) for p, s in sizes if least >= 0.01 * s), sizes[-1])
    return f"{prefix}{unit}", size


def default_structures(
    model: Mechanism,
    contact: str,
    record: Record,
    free: Iterable[str] = (),
    *,
    nodes: int = 8,
    cutoff: float | None = None,
) -> dict[str, Structure]:
    """Return structures for `compare` at one contact of a machine, the simplest first.

    1. Coulomb friction, with one law or with a law for each direction.
    2. Coulomb friction with a law for each direction, and fitted fields of one part of the machine:
       a `LinearPositionDependentForce`, `PeriodicPositionDependentForce`,
       `QuadraticSpeedDependentForce` or `QuadraticSpeedDependentTorque`.
    3. By direction: Stribeck friction with exponent 1 or 2, a table, or table with `Smooth` prior.

    **Arguments:**

    - `model`: the machine. Its law in `contact` gives the start values. `contact`: the name of a
      contact with a law for each direction, such as `f_pos` and `f_neg`.
    - `record`: its highest speed, filtered at `cutoff` [Hz] (by default as for `FreeRun`), is the
      last node of the tables.
    - `free`: further parameters that every structure fits, such as ``["mass.m"]``.
    - `nodes` >= 3: number of evenly spaced speeds of a table. The `Smooth` prior limits second
      differences of the table to about a tenth of the friction.

    **Returns:** name -> structure, for `compare`.

    **Raises:** `KeyError` for an unknown contact, `ValueError` for a part that is not a contact, or
    for a contact whose speed is not measured.

    >>> import frictax as fx, numpy as np
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(1.0, 0.1)),
    ...     drive=fx.Force("mass", 0.0),
    ... )
    >>> t = np.linspace(0.0, 5.0, 501)
    >>> record = fx.Record(t, {"drive": np.sin(t)}, {"mass.v": 0.1 * np.sin(t)})
    >>> list(fx.default_structures(block, "friction", record, ["mass.m"]))
    ['symmetric', 'by direction', 'Stribeck, exponent 1', 'Stribeck, exponent 2', 'table of 8',
    'smooth table of 8']
    """
    if not isinstance(model, Mechanism):
        raise ValueError(
            f"`default_structures` needs a `Mechanism`, got {model!r}. Write the structures of a"
            " machine of your own yourself."
        )
    part: Any = model[contact]
    laws = [f.name for f in dataclasses.fields(part) if f.name.endswith("_pos")]
    both = bool(laws) and hasattr(part, laws[0].replace("_pos", "_neg"))
    if not isinstance(part, AbstractContact) or not both:
        raise ValueError(
            f"`default_structures`: {contact!r} must be a contact with a law for each direction,"
            f" got {part!r}."
        )
    pos = laws[0]
    neg = pos.replace("_pos", "_neg")
    law, free = part.law(1), [p.path for p in select(model, list(free))] if free else []
    if any(path.startswith((f"{contact}.{pos}", f"{contact}.{neg}")) for path in free):
        raise ValueError(
            f"`default_structures` frees the laws of {contact!r} itself. Leave them out of `free`."
        )
    check_count("`default_structures`: `nodes`", nodes, 3)
    if not isinstance(record, Record):
        raise ValueError(
            f"`default_structures` takes the record whose speeds it reads, got {record!r}."
        )
    ends = part.between()
    speed = sliding_speed(ends, body_speeds(record, cutoff))
    if speed is None:
        raise ValueError(
            "`default_structures`: the record must measure the speed or position of the bodies of"
            f" {contact!r}, {ends[0].split('.')[0]}."
        )
    top = float(np.max(np.abs(speed)))
    force = lambda v: float(law(jnp.asarray(float(v))))  # noqa: E731
    rest, end = force(0.0), force(top)
    least = 0.01 * max(abs(rest), abs(end))
    straight = {"F_Coulomb": max(rest, least), "F_prop": max((end - rest) / top, least / top)}

    def with_laws(f_pos: AbstractLaw, f_neg: AbstractLaw | None) -> Mechanism:
        both = lambda m: (getattr(m[contact], pos), getattr(m[contact], neg))  # noqa: E731
        return eqx.tree_at(both, model, (f_pos, f_neg), is_leaf=lambda x: x is None)

    def each(made: AbstractLaw, more: Iterable[str] = (), **options: Any) -> Structure:
        return Structure(
            with_laws(made, made), [*free, f"{contact}.{pos}", f"{contact}.{neg}", *more], **options
        )

    line = Coulomb(**straight)
    out = {
        "symmetric": Structure(with_laws(line, None), [*free, f"{contact}.{pos}"]),
        "by direction": each(line),
    }
    # Type of force -> the name of the structure with this force, and the fields that are fitted.
    forces: dict[type, tuple[str, tuple[str, ...]]] = {
        LinearPositionDependentForce: ("linear in position", ("slope",)),
        PeriodicPositionDependentForce: ("periodic in position", ("f_cos", "f_sin")),
        QuadraticSpeedDependentForce: ("quadratic in speed", ("f_nominal",)),
        QuadraticSpeedDependentTorque: ("quadratic in speed", ("tau_nominal",)),
    }
    for name, other in model.named_parts():
        called, fields = forces.get(type(other), ("", ()))
        more = [f"{name}.{field}" for field in fields if f"{name}.{field}" not in free]
        if more:
            out[called] = each(line, more)
    dip = {**straight, "F_Stribeck": 0.2 * straight["F_Coulomb"], "fexp": 5.0 / top}
    for exponent in (1.0, 2.0):
        out[f"Stribeck, exponent {exponent:g}"] = each(Stribeck(**dip, exponent=exponent))
    v = np.linspace(0.0, top, nodes)
    rows = Table(np.column_stack([v, straight["F_Coulomb"] + straight["F_prop"] * v]))
    out[f"table of {nodes}"] = each(rows)
    priors = [Smooth(f"{contact}.{way}.f", 0.1 * max(abs(end), abs(rest))) for way in (pos, neg)]
    out[f"smooth table of {nodes}"] = each(rows, priors=priors)
    return out
