"""Simulations of a machine, before or after a fit, without feedback, compared with a record."""

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from frictax.annotations import Checked
from frictax.contacts import MassWithStopAndFriction
from frictax.engine import OnSamples, Result, walk
from frictax.engine.tangents import over_samples
from frictax.fitting import AbstractObjective, ClosedLoop, FitResult, FreeRun
from frictax.fitting.build_problem import prepare_record
from frictax.fitting.problem.initial_state import own_parameters
from frictax.fitting.problem.objectives import PreparedRecord
from frictax.fitting.problem.problem import Problem, bounds, upper_bounds
from frictax.fitting.problem.readings import (
    acting,
    apply_sensors,
    divide_gaps,
    dividing,
    measured_starts,
)
from frictax.fitting.problem.setup import (
    Setup,
    channel_unit,
    contact_forces,
    contact_names,
    driven,
    moved_to,
    state_names,
    variable_at,
)
from frictax.laws import AbstractLaw
from frictax.measurements import Record
from frictax.measurements.units import VELOCITY_OF, related_channel
from frictax.mechanism import MechanicalSystem
from frictax.parameters import get, parameters, replace
from frictax.programs import cached_jit
from frictax.text import amount, prefix_unit

from ..errors.resampling import Jackknife
from ..errors.uncertainty import Uncertainty, uncertainty


@dataclasses.dataclass(frozen=True, eq=False)
class Motion:
    """A free run of a machine at the samples of a record.

    - `t` (n,) [s]; `states`: name of a state -> its values (n,) [SI]; `result`: code that says
      whether the run is complete and accurate, or why it ended early.
    - `modes`: contact -> (n,), 1 forward, -1 backward, 0 stuck, 2 free (not in contact).
    - `friction`: contact -> friction (n,) [N or N.m], positive if it opposes forward motion.
    - `readings`: output of the record -> the values (n,) that its sensor records in this run [SI].
      If a position is recorded without its velocity, the velocity is included.
    """

    t: Float[np.ndarray, " n"]
    states: Mapping[str, Float[np.ndarray, " n"]]
    modes: Mapping[str, Int[np.ndarray, " n"]]
    friction: Mapping[str, Float[np.ndarray, " n"]]
    result: Any
    readings: Mapping[str, Float[np.ndarray, " n"]] = dataclasses.field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """True if the run reached the end of the record. It may be inaccurate."""
        return self.successful or bool(self.result == Result.inaccurate)

    @property
    def successful(self) -> bool:
        """True if the run is complete and accurate."""
        return bool(self.result == Result.successful)

    @property
    def end(self) -> float:
        """The last sample time that the run reached [s]."""
        known = np.all(np.isfinite([self.t, *self.states.values()]), axis=0)
        return float(self.t[known][-1]) if known.any() else float(self.t[0])


def motion(found: FitResult, record: str | Record, objective: FreeRun | None = None) -> Motion:
    """Run the fitted machine with the inputs of `record`: a label of the fit, or another `Record`.
    The run starts from the measured initial state, or as `objective` specifies.
    """
    i, data = find_record(found, record)
    objective = FreeRun(measured_start=True) if objective is None else objective
    setup = found.problem.setup_at(jnp.asarray(found.x), i)
    prepared = divide_gaps(objective.prepare(setup.machine, data), found.problem.engine)
    here = setup.for_channels(prepared.inputs, prepared.names)
    return simulate_beside(here, prepared, data.t, found.problem.engine, found.problem.delayed)[0]


def simulate_beside(
    setup: Setup, prepared: PreparedRecord, t: Any, engine: Any, delayed: frozenset[str]
) -> tuple[Motion, np.ndarray, np.ndarray]:
    """Simulate a record. Return the motion and the contacts' modes before and after each event."""
    run = _run(setup, prepared, engine, delayed)
    ys, modes, forces, shown, before, after, count, ended = run
    result = jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(Result.successful), [ended])
    names, states = contact_names(setup.machine), state_names(setup.machine)
    values = dict(zip(states, np.asarray(ys).T, strict=False))
    readings = dict(zip(prepared.names, np.asarray(shown).T, strict=True))
    for of in prepared.names:
        rate = related_channel(of, VELOCITY_OF)
        if rate in values and rate not in readings:
            # Differentiate the formula of the sensor. The velocity outside the run is unknown.
            sensor = setup.outputs.at(of)
            late = np.interp(t - float(sensor.delay), t, values[rate], np.nan, np.nan)
            readings[rate] = float(sensor.gain) * late + float(sensor.drift)
    moved = Motion(
        t,
        values,
        dict(zip(names, np.asarray(modes).T, strict=False)),
        dict(zip(names, map(np.asarray, forces), strict=False)),
        result,
        readings,
    )
    return moved, np.asarray(before)[: int(count)], np.asarray(after)[: int(count)]


def find_record(found: FitResult, record: Any) -> tuple[int | None, Any]:
    """Return (number, record) for a label of the fit, and (None, record) for a new `Record`. If
    machine parameters differ by record, a record that was fitted counts as its label, and a new
    `Record` raises `ValueError`.
    """
    if isinstance(record, str):
        return found.number(record), found.records[record]
    own = own_of_machine(found) if isinstance(record, Record) else []
    for i, data in enumerate(found.records.values() if own else ()):
        if isinstance(data, Record) and _have_same_data(data, record):
            return i, record
    if own:
        raise ValueError(
            f"The fit cannot predict a new record, because each record has a {own[0]} of its own."
            f" Name a fitted record, such as {next(iter(found.records))!r}, or share {own[0]}."
        )
    return None, record


def own_of_machine(found: FitResult) -> list[str]:
    """Return the paths of the parameters that differ by record, without sensors and starts."""
    own = [u.path for u in found.problem.unknowns if u.record is not None]
    return list(own_parameters(found.problem.setup.machine, own))


def _have_same_data(a: Record, b: Record) -> bool:
    return np.array_equal(a.t, b.t) and all(
        mine.keys() == other.keys() and all(np.array_equal(mine[n], other[n]) for n in mine)
        for mine, other in ((a.inputs, b.inputs), (a.outputs, b.outputs))
    )


@cached_jit
def _run(
    setup: Setup, prepared: PreparedRecord, engine: Any, delayed: frozenset[str]
) -> tuple[Any, ...]:
    t = jnp.asarray(prepared.t)
    start = measured_starts(setup, prepared, delayed)
    system: Any = moved_to(
        driven(setup.machine, t, acting(setup, prepared, delayed), prepared.hold), start
    )
    y0, mode0 = system.start(t[0])
    if start and not isinstance(system, MechanicalSystem):
        begun: list[Any] = [start.get(name, y0[i]) for i, name in enumerate(system.states())]
        y0, mode0 = system.begin(t[0], jnp.stack(begun))
    path = walk(system, y0, mode0, t, options=dividing(engine, prepared))
    forces, values = over_samples(
        lambda *at: (
            list(contact_forces(system, *at)),
            [variable_at(system, name, *at) for name in prepared.names],
        ),
        t,
        path.ys,
        path.modes,
    )
    shown = apply_sensors(
        setup, prepared.names, t, jnp.stack(values, axis=1), t[0], delayed, prepared.measured
    )
    events = path.before, path.after, path.count
    return path.ys, path.modes, forces, shown, *events, *jax.tree_util.tree_leaves(path.result)


@dataclasses.dataclass(frozen=True, eq=False)
class Preview:
    """The run of a machine that is not fitted, compared with a record.

    - `label`, `record`; `motion`: the run with the inputs of the record.
    - `final`: output -> (measured, simulated) value at the last sample [SI]; `rms`: output -> root
      mean square of measured - simulated [SI]; `units`: output -> its SI unit.
    - `events`: contact -> change of mode ("stuck to forward") -> number of such changes.
    """

    label: str
    record: Record
    motion: Motion
    final: Mapping[str, tuple[float, float]]
    rms: Mapping[str, float]
    units: Mapping[str, str]
    events: Mapping[str, Mapping[str, int]]

    def __str__(self) -> str:
        lines = [f"{self.label}: {self.record.n} samples, {self.record.duration:g} s"]
        for name, (measured, simulated) in self.final.items():
            unit = self.units[name]
            lines.append(
                f"  {name}: at the end {amount(measured, unit)} measured,"
                f" {amount(simulated, unit)} simulated; rms of the difference"
                f" {amount(self.rms[name], unit)}, of the measured motion"
                f" {amount(float(np.std(self.record.outputs[name])), unit)}"
            )
        for contact, counts in self.events.items():
            told = ", ".join(f"{what} {count}" for what, count in sorted(counts.items()))
            lines.append(f"  {contact}: {told or 'no event'}")
        if not self.motion.successful:
            where = "" if self.motion.complete else f"The run ended at {self.motion.end:.15g} s. "
            lines.append(f"! {where}{Result[self.motion.result]}")
        if self.record.gaps.size:
            lines.append("! The record has gaps, in which its inputs are interpolated.")
        return "\n".join(lines)

    __repr__ = __str__


def preview(
    machine: Any,
    record: Record,
    objective: Any = None,
    *,
    label: str | None = None,
    instruments: Mapping[str, Any] | None = None,
    engine: OnSamples | None = None,
) -> Preview:
    """Run a machine before it is fitted, with a record's inputs. `engine` sets the time steps.

    The run starts from the measured state, or as `objective` (`FreeRun`, `ClosedLoop`) specifies.

    **Raises:** `ValueError` for a record whose channels the machine does not have.

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 2.0, 201)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    ...     drive=fx.Force("mass", 0.0),
    ... )
    >>> seen = {"mass.s": 0.3 * np.cos(3 * t)}
    >>> record = fx.Record(t, {"drive": -2.7 * np.cos(3 * t)}, seen, name="push")
    >>> print(preview(block, record, fx.FreeRun()))
    push: 201 samples, 2 s
      mass.s: at the end 0.288 m measured, 0.385 m simulated; rms of the difference ...
      friction: backward to forward 1, forward to backward 1
    """
    objective = FreeRun(measured_start=True) if objective is None else objective
    placed = objective.machine(machine)
    engine = OnSamples() if engine is None else engine
    setup, prepared, delayed = prepare_record(placed, record, objective, instruments, engine)
    here = setup.for_channels(prepared.inputs, prepared.names)
    motion, before, after = simulate_beside(here, prepared, record.t, engine, delayed)
    predicted = np.asarray(prepared.predict(here, objective, engine, delayed))
    left = predicted - np.asarray(prepared.measured)
    final = {
        name: (float(record.outputs[name][-1]), float(predicted[-1, i]))
        for i, name in enumerate(prepared.names)
    }
    rms = np.sqrt(np.nanmean(left**2, axis=0))
    modes, events = {-1: "backward", 0: "stuck", 1: "forward", 2: "free"}, {}
    for i, name in enumerate(contact_names(placed)):
        pairs = zip(before[:, i].tolist(), after[:, i].tolist(), strict=True)
        changes = [(a, b) for a, b in pairs if a != b and a in modes and b in modes]
        events[name] = dict(Counter(f"{modes[a]} to {modes[b]}" for a, b in changes))
    return Preview(
        record.name if label is None else label,
        record,
        motion,
        final,
        dict(zip(prepared.names, rms.tolist(), strict=True)),
        {name: channel_unit(placed, record, name) for name in prepared.names},
        events,
    )


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FreeRunScore:
    """A free run of a fitted machine, compared with a record, and its sensitivity to small changes.

    - `label` of the record; `rms`: output -> rms of measured - simulated [SI]; `units` of outputs.
    - `sensitivities`: a small change, in words -> output -> rms of its effect on the output [SI].
    - `draws` (k, c): rms of each of c outputs for k machines that differ from the fitted machine as
      `says` describes; `ranges`: output -> 10, 50 and 90 % quantiles of these rms values [SI].
    - `failed`: number of these k machines whose simulation failed.
    """

    label: str
    rms: Mapping[str, float]
    units: Mapping[str, str]
    sensitivities: Mapping[str, Mapping[str, float]]
    ranges: Mapping[str, tuple[float, float, float]]
    says: str
    draws: Float[np.ndarray, "k c"]
    failed: int

    def __str__(self) -> str:
        lines = []
        for name, value in self.rms.items():
            unit, size = prefix_unit(self.units[name], value, plain=(1.0, np.inf))
            low, middle, high = (x / size for x in self.ranges[name])
            lines.append(f"{self.label}: free run, rms of {name} {value / size:.3g} {unit}")
            lines += [
                f"  {says} changes it by {moved[name] / size:.2g} {unit}"
                for says, moved in self.sensitivities.items()
            ]
            lines.append(
                f"  {self.says}: {low:.3g} / {middle:.3g} / {high:.3g} {unit} at 10 / 50 / 90 %"
            )
        if self.failed:
            lines.append(f"  The simulation of {self.failed} of these machines failed")
        return "\n".join(lines)

    __repr__ = __str__


def free_run(
    found: FitResult,
    record: Checked[Record | str],
    *,
    errors: Uncertainty | None = None,
    objective: AbstractObjective | None = None,
    draws: Checked[int] = 200,
    seed: int = 0,
) -> FreeRunScore:
    """Simulate the fitted machine with the inputs of a whole record, without feedback. Repeat the
    run for machines whose parameters are drawn from normal distributions about the estimates.

    With `Jackknife` errors, the drawn machines differ as much as the repeats of the motion. With
    another noise model, the drawn machines differ by the standard errors of the parameters. A
    parameter drawn beyond its bound is set to the bound.

    **Arguments:** `record`: a label of the fit, or a `Record` that was not fitted; `errors`: an
    `Uncertainty` of this fit, by default `found.uncertainty()`; `objective`: by default
    `FreeRun(measured_start=True)`; `draws`: number of drawn machines; `seed`.

    **Returns:** a `FreeRunScore`.

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 2.0, 401)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    ...     drive=fx.Force("mass", 0.0),
    ... )
    >>> seen = {"mass.v": 0.75 * t + 0.01 * np.random.default_rng(0).standard_normal(t.size)}
    >>> record = fx.Record(t, {"drive": 2.0 + 0.0 * t}, seen, name="pull")
    >>> found = fx.fit(block, record, free=["friction.f_pos.F_Coulomb"])
    >>> print(found.free_run("pull", objective=fx.FreeRun()))
    pull: free run, rms of mass.v 9.93 mm/s
      0.001 N more from drive changes it by 1.2 mm/s
      1 % more friction changes it by 14 mm/s
      parameters drawn from their distribution (Guarded): ... / ... / ... mm/s at 10 / 50 / 90 %
    """
    if not isinstance(record, str | Record):
        raise ValueError(
            f"`free_run` takes a `Record` or the label of one that was fitted, got {record!r}."
        )
    if not isinstance(draws, int) or draws < 10:
        raise ValueError(
            f"`free_run` needs `draws`, a whole number >= 10, got {draws!r}. 200 are usual."
        )
    errors = uncertainty(found) if errors is None else errors
    i, data = find_record(found, record)
    if not isinstance(data, Record):
        raise ValueError(f"`free_run` simulates a record, and {record!r} is a sweep.")
    objective = FreeRun(measured_start=True) if objective is None else objective
    if not isinstance(objective, FreeRun | ClosedLoop):
        raise ValueError(
            f"`free_run` takes FreeRun(...) or ClosedLoop(...) as objective, got {objective!r}."
            " `score` takes any."
        )
    x = np.asarray(found.x)
    machine = objective.machine(found.problem.setup_at(jnp.asarray(x), i).machine)
    prepared = divide_gaps(objective.prepare(machine, data), found.problem.engine)
    changes, driven = _changes(data, machine)
    unknowns, covariance = found.problem.unknowns, errors.full
    says = f"parameters drawn from their distribution ({type(errors.by).__name__})"
    if isinstance(errors.by, Jackknife):
        # An estimate is a mean over `each` repeats if its record has a separate value, and over
        # `shared` repeats if not. A repeat's variance is this number times the mean's variance.
        says = "machines that differ as much as the repeats"
        each, shared = 1, len(found.records)
        if errors.by.repeats is not None:
            each = errors.by.repeats
            shared = each * sum(isinstance(r, Record) for r in found.records.values())
        times = np.concatenate(
            [np.full(u.size, float(shared if u.record is None else each)) for u in unknowns]
        )
        covariance = covariance * np.sqrt(np.outer(times, times))
    values, vectors = np.linalg.eigh(covariance)
    away = (
        np.random.default_rng(seed).standard_normal((draws, x.size))
        @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    )
    drawn = np.clip(x + away, bounds(unknowns), upper_bounds(unknowns))
    xs = np.concatenate([np.tile(x, (1 + len(changes), 1)), drawn])
    more, scale = np.zeros(len(xs)), np.ones(len(xs))
    for k, (_, force, times) in enumerate(changes):
        more[1 + k], scale[1 + k] = force, times
    kept = np.unique(np.linspace(0, data.n - 1, min(data.n, 1500)).round().astype(int))
    machines = xs, more, scale
    ends = _runs(found.problem, objective, prepared, i, driven, machines, kept)
    rms, runs = map(np.asarray, ends)
    base, moved, spread = rms[0], runs[1 : 1 + len(changes)] - runs[0], rms[1 + len(changes) :]
    ok = np.all(np.isfinite(spread), axis=1)
    ends = (
        np.quantile(spread[ok], [0.1, 0.5, 0.9], axis=0)
        if ok.any()
        else np.full((3, base.size), np.nan)
    )
    return FreeRunScore(
        record if isinstance(record, str) and record else data.name,
        dict(zip(prepared.names, base.tolist(), strict=True)),
        {n: data.units[n].si_name for n in prepared.names},
        {
            c[0]: dict(zip(prepared.names, np.sqrt(np.mean(m**2, axis=0)).tolist(), strict=True))
            for c, m in zip(changes, moved, strict=True)
        },
        {
            name: (low, middle, high)
            for name, (low, middle, high) in zip(prepared.names, ends.T.tolist(), strict=True)
        },
        says,
        spread,
        int(np.sum(~ok)),
    )


def _changes(data: Record, machine: Any) -> tuple[list[tuple[str, float, float]], tuple[str, ...]]:
    """Return small changes of the machine, and the names of the inputs in N (N.m if no input is in
    N). A change is a text, an additional force of each of these inputs, and a factor on friction.
    """
    out, units = [], {n: data.units[n].si_name for n in data.inputs}
    pushes = "N" if "N" in units.values() else "N.m"
    driven = tuple(n for n in units if units[n] == pushes)
    if driven:
        largest = max(float(np.max(np.abs(data.inputs[n]))) for n in driven)
        small = float(f"{10.0 ** np.floor(np.log10(max(largest, 1e-300) * 1e-3)):.0e}")
        out.append((f"{small:g} {pushes} more from {' and '.join(driven)}", small, 1.0))
    if _of_friction(machine):
        out.append(("1 % more friction", 0.0, 1.01))
    return out, driven


def _of_friction(machine: Any) -> list[Any]:
    """Return the parameters that scale friction: parameters of laws whose unit begins with N."""

    def is_of_law(path: str) -> bool:
        owner = path.rpartition(".")[0]
        part = get(machine, owner) if owner else machine
        return isinstance(part, AbstractLaw | MassWithStopAndFriction)

    return [
        p for p in parameters(machine) if p.declaration.unit.startswith("N") and is_of_law(p.path)
    ]


@cached_jit
def _runs(
    problem: Problem,
    objective: Any,
    prepared: PreparedRecord,
    record: Any,
    driven: tuple[str, ...],
    machines: tuple[Any, Any, Any],
    kept: Any,
) -> tuple[Any, Any]:
    """Return for each machine the rms of measured - simulated of each output, and the simulated
    outputs at the samples `kept`. `machines`: fitted parameters, additional force of the inputs
    `driven` [N or N.m], and factor on friction of each machine."""
    weight = jnp.asarray(prepared.weight) > 0

    def simulate(at: tuple[Any, Any, Any]) -> tuple[Any, Any]:
        x, force, times = at
        setup = problem.setup_at(x, record)
        machine = objective.machine(setup.machine)
        machine = replace(machine, {p.path: p.value * times for p in _of_friction(machine)})
        here = setup.for_channels(prepared.inputs, prepared.names, machine)
        pushed = [n for n in prepared.inputs if n in driven]
        here = eqx.tree_at(
            lambda b: [b.inputs.at(n).offset for n in pushed], here, replace_fn=lambda x: x + force
        )
        run = objective.predict(here, prepared, problem.engine, problem.delayed)
        left = jnp.where(weight, run - prepared.measured, 0.0)
        return jnp.sqrt(jnp.sum(left**2, axis=0) / jnp.sum(weight, axis=0)), run[kept]

    return jax.lax.map(simulate, tuple(jnp.asarray(a) for a in machines))
