"""Predictions of records by a fitted machine: new records, records left out, other conditions."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from frictax.annotations import Checked
from frictax.fitting import AbstractObjective, ClosedLoop, Estimate, FitResult, FreeRun, fit
from frictax.fitting.problem.initial_state import starting_state
from frictax.fitting.problem.readings import divide_gaps
from frictax.fitting.problem.setup import Setup, state_names
from frictax.fitting.result.estimates import quantile
from frictax.interrupts import nested_work
from frictax.measurements import Record
from frictax.measurements.record import replace_fields
from frictax.parameters import parameters
from frictax.programs import cached_jit
from frictax.text import align_columns, prefix_unit, round_by_error

from ..errors.linearization import Samples
from ..errors.resampling import refit_with_counts
from .free_run import find_record, own_of_machine


def score(
    found: FitResult, record: Record | str, objective: AbstractObjective
) -> Mapping[str, float]:
    """Predict a record with the fitted machine and any objective, and return the errors. For a free
    run: ``found.score(validation, fx.FreeRun(measured_start=True))``.

    `record`: a label of this fit (with the parameters of this record), or a new `Record`.

    **Returns:** output -> root mean square of (measured - predicted) [SI].

    **Raises:** `ValueError` for a new `Record` if machine parameters differ by record.
    """
    if not isinstance(objective, AbstractObjective):
        raise ValueError(
            "`score` needs an objective such as FreeRun(measured_start=True) or Windows(), got"
            f" {objective!r}."
        )
    number, data = find_record(found, record)
    if not isinstance(data, Record):
        raise ValueError(
            f"`score` takes a `Record` or the label of one that was fitted, got {record!r}."
        )
    setup = found.problem.setup_at(jnp.asarray(found.x), number)
    machine = objective.machine(setup.machine)
    here = setup.for_channels(data.inputs, data.outputs, machine)
    prepared = divide_gaps(objective.prepare(machine, data), found.problem.engine)
    predicted = np.asarray(_predict(objective, here, prepared, found.problem.engine))
    counted = np.asarray(prepared.weight) > 0
    left = np.where(counted, np.asarray(prepared.measured) - predicted, 0.0)
    axes = tuple(range(left.ndim - 1))
    rms = np.sqrt(np.sum(left**2, axis=axes) / np.sum(counted, axis=axes))
    return dict(zip(prepared.names, rms.tolist(), strict=True))


@cached_jit
def _predict(objective: AbstractObjective, setup: Setup, prepared: Any, engine: Any) -> Any:
    channels = [f"inputs.{n}" for n in prepared.inputs] + [f"outputs.{n}" for n in prepared.names]
    return objective.predict(setup, prepared, engine, frozenset(channels))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Validation:
    """A record predicted by a fitted machine with fixed parameters. `print` shows the errors.

    - `label` of the record; `rms`: output -> root mean square of measured - predicted [SI], for an
      initial state fitted to the record; `from_measured`, `from_given`: `rms` for a run from the
      smoothed measured initial state, or from the machine's own; `units`: output -> SI unit.
    - `start`: the fitted initial state, an `Estimate` for each position and speed; `measured`: the
      smoothed measured initial state by name. If the two differ much, the fitted initial state
      compensates for wrong parameters. If no initial value is both a parameter of the machine and
      measured, `start` is empty and `rms` is `from_measured`.
    """

    label: str
    rms: Mapping[str, float]
    from_measured: Mapping[str, float]
    from_given: Mapping[str, float]
    units: Mapping[str, str]
    start: tuple[Estimate, ...]
    measured: Mapping[str, float]
    by: ClassVar[str] = "start of its own"

    def __str__(self) -> str:
        lines = []
        for name, value in self.rms.items():
            others = (self.from_measured[name], self.from_given[name])
            unit, size = prefix_unit(self.units[name], value, plain=(1.0, np.inf))
            measured, given = (f"{x / size:.3g} {unit}" for x in others)
            lines.append(
                f"{self.label}: parameters fixed, rms of {name} {value / size:.3g} {unit} from a"
                f" fitted start, {measured} from the measured start, {given} from the machine's"
                " start"
                if self.start
                else f"{self.label}: parameters fixed, rms of {name} {measured} from the measured"
                f" start, {given} from the machine's start"
            )
        if self.start:
            found = []
            for e in self.start:  # The measured value is rounded like the estimate.
                n, shown = e.name.partition("@")[0], e.shown
                value, error = self.measured.get(n, np.nan), e.standard_error
                measured = round_by_error(value / shown.size, error / shown.size)
                found.append(f"{n} = {shown.value} {shown.unit} ({measured} measured)")
            lines.append(f"  its initial state (nothing else is fitted): {', '.join(found)}")
        return "\n".join(lines)

    __repr__ = __str__


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LeftOut:
    """Predictions of each record by a fit to all other records. `print` shows a table.

    - `records`: label -> `Validation` by the fit without this record; `fitted`: label ->
      `Validation` by the fit to all records.
    - `values`: label -> parameter values, by name, of the fit without this record.
    - `unfinished`: labels of the left-out records for which the search did not converge.
    """

    records: Mapping[str, Validation]
    fitted: Mapping[str, Validation]
    values: Mapping[str, Mapping[str, float]]
    unfinished: tuple[str, ...]

    @property
    def rms(self) -> Mapping[str, float]:
        """Output -> root mean square [SI] of the `rms` of all records that measure this output."""
        return _combined_rms(self.records)

    def __str__(self) -> str:
        head, rows = ("left out", "output", "predicted", "fitted with it"), []
        for label, one in self.records.items():
            for name, value in one.rms.items():
                both = (value, self.fitted[label].rms[name])
                rows.append((label, name, *_texts(one.units[name], *both)))
        units = {n: u for one in self.records.values() for n, u in one.units.items()}
        for name, value in self.rms.items():
            rows.append(
                ("all", name, *_texts(units[name], value, _combined_rms(self.fitted)[name]))
            )
        said = [f"! The search without {label} did not converge." for label in self.unfinished]
        return "\n".join([*align_columns(head, rows), *said])

    __repr__ = __str__


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Transfer:
    """A machine fitted under one condition ("here"), compared with the same machine fitted under
    another condition ("there"). `print` shows a table.

    - `differences`: for each parameter that both fits share, the value there minus the value here,
      with standard error, interval and degrees of freedom of Student's t.
    - `predicted`, `fitted`: label -> `Validation` of each record from there, with the parameters
      fitted here and with those fitted there; `level` of the intervals. If machine parameters
      fitted here differ by record, the records from there are not in `predicted`.
    """

    differences: tuple[Estimate, ...]
    predicted: Mapping[str, Validation]
    fitted: Mapping[str, Validation]
    level: float

    @property
    def differ(self) -> tuple[str, ...]:
        """Names of the parameters that differ: the interval of their difference excludes 0."""
        return tuple(e.name for e in self.differences if e.lower > 0 or e.upper < 0)

    def __str__(self) -> str:
        head = ("parameter", "difference", "unit", "std. error", f"{100 * self.level:g} % interval")
        lines = align_columns(head, [e.cells for e in self.differences])
        for label, one in self.fitted.items():
            for name, value in one.rms.items():
                other = self.predicted[label].rms[name] if label in self.predicted else np.nan
                own, by = _texts(one.units[name], value, other)
                by = f"{by} predicted" if other == other else "not predicted (parameters differ)"
                lines.append(f"{label}: rms of {name} {by}, {own} by its own fit")
        told = ", ".join(self.differ)
        return "\n".join(
            [*lines, f"Different: {told or 'no parameter, within the errors of these fits'}."]
        )

    __repr__ = __str__


def validate(
    found: FitResult,
    record: Checked[Record | str],
    *,
    states: Iterable[str] | None = None,
    objective: AbstractObjective | None = None,
) -> Validation:
    """Predict a record by a fitted machine with fixed parameters. Only the initial state is fitted.

    A free run from a wrong initial state is wrong even with the right parameters. If a record does
    not begin at the initial state of the machine, most of the misfit does not come from errors of
    the parameters. Therefore the initial state is fitted to the record.

    **Arguments:** `record`: a `Record` that was not fitted, or a label of the fit (then with the
    parameter values of this record); `states`: the initial positions and speeds to fit, by default
    all that are parameters and recorded; `objective`: `FreeRun()`, or `ClosedLoop(...)`.

    **Raises:** `ValueError` for a new `Record` if machine parameters differ by record.

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 2.0, 401)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    ...     drive=fx.Force("mass", 2.0),
    ... )
    >>> noise = 0.01 * np.random.default_rng(0).standard_normal((2, 401))
    >>> pull = fx.Record(t, outputs={"mass.v": 0.75 * t + noise[0]}, name="pull")
    >>> moving = fx.Record(t, outputs={"mass.v": 0.3 + 0.75 * t + noise[1]}, name="moving")
    >>> found = fx.fit(block, pull, free=["friction.f_pos.F_Coulomb"])
    >>> print(found.validate(moving))
    moving: parameters fixed, rms of mass.v ... mm/s from a fitted start, ...
      its initial state (nothing else is fitted): mass.v = 0.300... m/s (0.3... measured)
    """
    objective = FreeRun() if objective is None else objective
    if not isinstance(objective, FreeRun | ClosedLoop):
        raise ValueError(
            "`validate` runs from one start, by FreeRun(...) or ClosedLoop(...), got"
            f" {objective!r}. For windows, which start from the measurement, use"
            " `score`."
        )
    i, data = find_record(found, record)
    if not isinstance(data, Record):
        raise ValueError(
            f"`validate` takes a `Record` or the label of one that was fitted, got {record!r}."
        )
    label = record if isinstance(record, str) else data.name or "record"
    objective = dataclasses.replace(objective, measured_start=False)
    measured = score(found, record, dataclasses.replace(objective, measured_start=True))
    given, rms, start = score(found, record, objective), measured, ()
    begins: dict[str, float] = {}
    setup = found.problem.setup_at(jnp.asarray(found.x), i)
    here = {p.path for p in parameters(setup.machine)}
    if states is None:
        known = (n for n in state_names(setup.machine) if n in here)
        states = [n for n in known if starting_state(setup.machine, data, n) is not None]
    if states := list(states):
        ends = [("inputs", setup.inputs, data.inputs), ("outputs", setup.outputs, data.outputs)]
        known = {f"{kind}.{n}": at.at(n) for kind, at, of in ends for n in of if at.has(n)}
        with nested_work():
            held = fit(
                setup.machine,
                {label: data},
                free=[],
                own=states,
                objective=objective,
                instruments=known,
                engine=found.problem.engine,
                level=found.level,
                rounds=0,
            )
        rms, start = score(held, label, objective), held.estimates
        at = {n: starting_state(setup.machine, data, n) for n in states}
        begins = {n: x for n, x in at.items() if x is not None}
    units = {n: data.units[n].si_name for n in rms}
    return Validation(label, rms, measured, given, units, start, begins)


def leave_records_out(found: FitResult) -> LeftOut:
    """Leave out each record in turn: fit the other records, and predict the left-out record.

    The searches begin at the result of the fit to all records. A parameter that the other records
    do not identify has the value of the fit to all records. The initial state of the prediction is
    fitted to the left-out record.

    **Raises:** `ValueError` for fewer than two records, or if machine parameters differ by record.
    """
    problem = found.problem
    labels = [n for n, data in found.records.items() if isinstance(data, Record)]
    if len(labels) < 2:
        raise ValueError(
            f"`leave_records_out` needs two records or more, got {len(labels)}. Fit them together:"
            " fit(machine, [one, other], ...)."
        )
    states = state_names(problem.setup.machine)
    own = [u.path for u in problem.unknowns if u.record is not None and not u.hidden]
    other = next((path for path in own if path not in states), None)
    if other is not None:
        raise ValueError(
            f"`leave_records_out` cannot predict a record that has a {other} of its own. Share it."
        )
    record = Samples(problem).record
    x, ended = refit_with_counts(
        found, np.array([record != found.number(n) for n in labels], float)
    )
    records, fitted = {}, {}
    for label, mine in zip(labels, x, strict=True):
        without = dataclasses.replace(found, x=mine)
        records[label] = validate(without, _as_new_record(found, label))
        fitted[label] = validate(found, _as_new_record(found, label))
    shown = [dict(zip(found.names, a[found.shown].tolist(), strict=True)) for a in x]
    values = {
        label: {n: v for n, v in mine.items() if "@" not in n}
        for label, mine in zip(labels, shown, strict=True)
    }
    stopped = tuple(n for n, ok in zip(labels, ended, strict=True) if not ok)
    return LeftOut(records, fitted, values, stopped)


def transfer(found: FitResult, there: Checked[FitResult[Any]]) -> Transfer:
    """Predict the records of the fit `there`, made under another condition, with the parameters of
    `found`, and compare the parameters of both fits.

    The two fits are independent. Therefore the variance of a difference is the sum of both
    variances. Welch's formula gives the degrees of freedom. A parameter that differs by record is
    omitted. If a fit gives an infinite interval of a parameter, that of the difference is infinite.

    **Source:** B. L. Welch, "The generalization of Student's problem when several different
    population variances are involved", Biometrika 34 (1947).
    """
    if not isinstance(there, FitResult):
        raise ValueError(f"`transfer` takes the fit to the other condition, got {there!r}.")
    other = {e.name: e for e in there.estimates}
    open_ended = {
        name
        for fit in (found, there)
        for name, half in zip(fit.names, fit.uncertainty().half_widths, strict=True)
        if half == np.inf
    }
    differences = []
    for a in [a for a in found.estimates if a.name in other and "@" not in a.name]:
        b = other[a.name]
        variance = np.array([a.standard_error**2, b.standard_error**2])
        error = float(np.sqrt(variance.sum()))
        with np.errstate(divide="ignore", invalid="ignore"):
            dof = float(variance.sum() ** 2 / np.sum(variance**2 / np.array([a.dof, b.dof])))
        half = float(quantile(found.level, dof, False)) * error
        half = np.inf if a.name in open_ended else half
        value = b.value - a.value
        differences.append(
            dataclasses.replace(
                a,
                value=value,
                standard_error=error,
                lower=value - half,
                upper=value + half,
                dof=dof,
            )
        )
    if not differences:
        raise ValueError(
            "`transfer`: the two fits have no number in common. Fit the same machine with the same"
            f" `free`; here are {', '.join(found.names)}."
        )
    labels = [n for n, data in there.records.items() if isinstance(data, Record)]
    fitted = {n: validate(there, _as_new_record(there, n)) for n in labels}
    able = found is there or not own_of_machine(found)
    predicted = {n: validate(found, _as_new_record(there, n)) for n in labels if able}
    return Transfer(tuple(differences), predicted, fitted, found.level)


def _as_new_record(found: FitResult, label: str) -> Record:
    """Return the fitted record `label` as a new record with this label as its name."""
    data: Any = found.records[label]
    return data if data.name == label else replace_fields(data, name=label)


def _combined_rms(all_of_them: Mapping[str, Validation]) -> dict[str, float]:
    names = dict.fromkeys(n for one in all_of_them.values() for n in one.rms)
    each = {n: [one.rms[n] for one in all_of_them.values() if n in one.rms] for n in names}
    return {n: float(np.sqrt(np.mean(np.square(x)))) for n, x in each.items()}


def _texts(unit: str, *values: float) -> list[str]:
    name, size = prefix_unit(unit, *values, plain=(1.0, np.inf))
    return [f"{x / size:.3g} {name}" for x in values]
