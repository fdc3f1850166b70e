"""The answer of a fit to records."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from frictax.contacts import AbstractContact, Brake
from frictax.contacts.contact import AbstractPressed
from frictax.executable_cache import kept
from frictax.fitting.problem.objectives import AbstractObjective
from frictax.fitting.problem.problem import Problem, SteadyPlan, Unknown, bounds, predictions, residuals_and_jacobian, upper_bounds
from frictax.fitting.problem.sensors import Instrument
from frictax.fitting.problem.setup import Bench, Named
from frictax.fitting.result.found import Estimate, Estimated
from frictax.fitting.result.identifiability import Identifiability, judge_columns
from frictax.fitting.result.notices import held_breakaways, not_settled, standing_still, too_large
from frictax.fitting.result.spread import Spread
from frictax.fitting.search.estimation import inverse_gram, robust_variance
from frictax.fitting.search.levenberg_marquardt import Descent
from frictax.fitting.search.methods import AbstractMethod
from frictax.handover import Verb
from frictax.measurements.record import Record
from frictax.mechanism import Mechanism
from frictax.mechanism.attachments import is_rotational
from frictax.parameters import UnknownName, parameters, replace, rotational_unit


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FoundMachine(Estimated):
    """What a fit to records found, how well it is known, and what it cannot know. Print it.

    - `start`: the machine that was fitted, with the values that it had before; `model`: with those that all records share now, and
      `model_for(label)` with those of one record's own, too.
    - `estimates`: one for each fitted number, in SI units; ``mass.v@run2`` belongs to record run2 alone. Their errors, intervals (at
      `level`, by Student's t) and degrees of freedom are those of `uncertainty()`: of white residuals, but for a fit on `Windows`.
    - `covariance` (p, p), in their order.
    - `residuals` (n,): weighted, 0 where a sample has no weight; `jacobian` (n, p): theirs by the estimates, rows of priors last.
      `dof`: residuals less fitted numbers.
    - `full_covariance` (q, q) for white residuals, `full_jacobian` (n, q) and `active` (q,), whether a number is not at its bound, are
      those of `x`.
    - `rms`: record -> output -> root mean square of what the objective compares [SI]; `noise_scale` of the weighted residuals.
    - `x`: all fitted numbers, with the starts of windows where those were free, which are no estimates; `z`: their coordinates.
    - `converged`, `iterations`, `seconds`; `costs` of all starts; `identifiability`; `warnings`, of which the fit's own are `notes`.
    """

    start: Any
    records: Mapping[str, Any]
    full_covariance: Float[np.ndarray, "q q"]
    full_jacobian: Float[np.ndarray, "m q"]
    active: Bool[np.ndarray, " q"]
    residuals: Float[np.ndarray, " n"]
    rms: Mapping[str, Mapping[str, float]]
    noise_scale: float
    dof: int
    level: float
    converged: bool
    iterations: int
    seconds: float
    costs: np.ndarray
    notes: tuple[str, ...]
    problem: Problem
    method: AbstractMethod
    x: Float[np.ndarray, " q"]
    z: Float[np.ndarray, " q"]

    @functools.cached_property
    def shown(self) -> Bool[np.ndarray, " q"]:
        """Which of `x` are estimates."""
        return np.asarray([not u.hidden for u in self.problem.unknowns for _ in u.names])

    @property
    def jacobian(self) -> Float[np.ndarray, "m p"]:
        """That of the weighted residuals by the estimates."""
        return self.full_jacobian[:, self.shown]

    # Errors, and what is said of them, are found when they are asked for: a search that asks for values alone is spared them.

    @functools.cached_property
    def spread(self) -> Spread:
        """What the usual account makes of the residuals."""
        return self._usual_spread()

    @functools.cached_property
    def estimates(self) -> tuple[Estimate, ...]:
        return self.uncertainty().estimates

    @property
    def covariance(self) -> Float[np.ndarray, "p p"]:
        return self.spread.covariance[np.ix_(self.shown, self.shown)]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(n for u in self.problem.unknowns if not u.hidden for n in u.names)

    @functools.cached_property
    def identifiability(self) -> Identifiability:
        shown, unknowns = self.shown, self.problem.unknowns
        # What is asked for are lengths of columns and angles between them, and this has the same.
        triangle = np.asarray(np.linalg.qr(self.full_jacobian, mode="r"))  # of one array: numpy's types do not know it
        told = triangle[:, shown]
        if not shown.all():  # what the starts of windows could explain as well says nothing of a parameter
            told = told - triangle[:, ~shown] @ np.linalg.lstsq(triangle[:, ~shown], told, rcond=None)[0]
        between = bounds(unknowns)[shown], upper_bounds(unknowns)[shown]
        half = self.spread.half_width(self.level, np.eye(len(shown))[shown])
        return judge_columns(told, list(self.names), self.active[shown], self.x[shown], np.asarray(self.problem.x0)[shown], between, half)

    @functools.cached_property
    def warnings(self) -> tuple[str, ...]:
        known, norms = self.identifiability, np.linalg.norm(self.full_jacobian, axis=0)
        out = [] if self.converged else [not_settled(self.method, self.iterations, self.problem.objective)]
        out += too_large(self.problem.objective, self.records, self.noise_scale)
        out = standing_still(self.problem, norms) + (out if norms.any() else [])
        if np.any(self.active) and known.condition > 100 and not known.null_directions:
            out.append(
                f"The scaled Jacobian's condition is {known.condition:.3g}: some combinations of the parameters are told far worse than "
                "others. Fit fewer, on `Windows` or `ClosedLoop`, or record a richer motion."
            )
        still = [n for n, norm in zip(self.names, norms[self.shown], strict=True) if norm == 0]
        return (*out, *held_breakaways(known.sentences, still, self.records), *self.spread.warnings, *self.notes)

    @functools.cached_property
    def unit_of(self) -> Callable[[Unknown], str]:
        """The unit of an unknown."""
        return _units(self.records, self.problem.bench.machine)

    def with_all_active(self) -> "FoundMachine":
        """The same with errors for numbers at their bounds too, as if these were not there."""
        norms = np.linalg.norm(self.full_jacobian, axis=0)
        covariance = self.noise_scale**2 * inverse_gram(self.full_jacobian, norms, norms > 0, np)
        return dataclasses.replace(self, full_covariance=covariance, active=norms > 0)

    @functools.cached_property
    def model(self) -> Any:
        """The machine with the fitted values that all records share."""
        here = {p.path for p in parameters(self.start)}
        shared = [u for u in self.problem.unknowns if u.record is None and u.path in here]
        return replace(self.start, {u.path: np.reshape(self.x[u.first : u.first + u.size], u.shape) for u in shared})

    def model_for(self, label: str) -> Any:
        """The machine with all values that belong to the record called `label`."""
        if label not in self.records:
            raise UnknownName(f"There is no record {label!r} in this fit. It has: {', '.join(self.records)}.")
        return self.problem.bench_at(jnp.asarray(self.x), list(self.records).index(label)).machine

    def predicted(self, label: str) -> Float[np.ndarray, "*w n c"]:
        """What the objective sets against the measurement of record `label`."""
        return np.asarray(predictions(self.problem, jnp.asarray(self.x), list(self.records).index(label)))

    def score(self, record: Any, objective: AbstractObjective) -> Mapping[str, float]:
        """How well the fitted machine explains a record by another objective: output -> root mean square of what is left [SI].

        `record`: a label of this fit, whose own values count then, or a `Record` that was not fitted. A free run of a validation record
        is ``found.score(validation, fx.FreeRun(measured_start=True))``.
        """
        if not isinstance(objective, AbstractObjective):
            raise ValueError(f"`score` needs an objective such as FreeRun(measured_start=True) or Windows(), got {objective!r}.")
        if isinstance(record, str):
            self.model_for(record)  # raises for a label that there is not
            return _score(self, record, self.records[record], objective)
        if not isinstance(record, Record):
            raise ValueError(f"`score` takes a `Record` or the label of one that was fitted, got {record!r}.")
        return _score(self, None, record, objective)

    uncertainty = Verb("frictax.analysis.errors.uncertainty:uncertainty")
    step_error = Verb("frictax.fitting.result.step_error:step_error")
    free_run = Verb("frictax.analysis.replay.free_run:free_run")
    profile = Verb("frictax.analysis.errors.profiles:profile_of")
    posterior = Verb("frictax.analysis.errors.posterior:posterior")
    residual_study = Verb("frictax.analysis.residuals.study:residual_study")
    report = Verb("frictax.report.machine_report:write_machine_report")
    to_mujoco = Verb("frictax.export.robots:machine_mujoco")
    to_urdf = Verb("frictax.export.robots:machine_urdf")
    to_modelica = Verb("frictax.export.modelica_found:identified_text")
    write_modelica = Verb("frictax.export.modelica_found:write_identified")
    to_modelica_modifiers = Verb("frictax.export.modelica_found:identified_modifiers")
    to_json = Verb("frictax.report.machine_json:found_machine_json")
    plot = Verb("frictax.report.figures:draw_fit")
    _text = Verb("frictax.fitting.result.machine_text:machine_text")
    intervals_in_words = Verb("frictax.analysis.errors.uncertainty:in_words")
    _usual_spread = Verb("frictax.analysis.errors.uncertainty:usual_spread")

    def __str__(self) -> str:
        return self._text()

    __repr__ = __str__


def found_machine(
    model: Any,
    problem: Problem,
    records: Mapping[str, Any],
    state: Descent,
    costs: np.ndarray,
    noise: float,
    method: AbstractMethod,
    level: float,
    notes: list[str],
    seconds: float,
) -> FoundMachine:
    """The answer at the end of a search."""
    x, slope = np.array(state.x), np.asarray(state.slope)
    if problem.loss.rounds == 1 and not problem.priors:
        r, jacobian = np.asarray(state.residuals), np.asarray(state.jacobian) / np.where(slope == 0, 1.0, slope)
    else:
        r, jacobian = (np.array(a) for a in residuals_and_jacobian(problem, x))
    weights = [np.ravel(np.asarray(p.weight)) for p in problem.plans]
    data = sum(w.size for w in weights)
    counted = np.concatenate([w > 0 for w in weights])
    jacobian = np.concatenate([jacobian[:data], noise * jacobian[data:]])  # data in their unit, priors in units of the noise
    triangle = np.asarray(np.linalg.qr(jacobian, mode="r"))  # of one array: numpy's types do not know it
    norms = np.linalg.norm(triangle, axis=0)
    rows = int(counted.sum())
    scale = max(float(np.sqrt(np.sum(r[:data] ** 2) / max(rows - x.size, 1))), 1e-300)
    effect = np.fmin(x - bounds(problem.unknowns), upper_bounds(problem.unknowns) - x) * np.where(norms > 0, norms, 1.0) / np.sqrt(rows)
    active = (norms > 0) & (effect > 1e-3 * scale)
    dof = max(rows - int(active.sum()), 1)
    if problem.loss.rounds > 1:
        scaled = jnp.asarray(r[:data][counted] / noise)
        variance = float(robust_variance(problem.loss, scaled, jnp.ones(rows, bool), jnp.asarray(dof), False)) * noise**2
        scale = noise
    else:
        variance = float(np.sum(r[:data] ** 2)) / dof
        scale = float(np.sqrt(variance))
    covariance = variance * inverse_gram(triangle, norms, active, np)
    return FoundMachine(
        model, records, covariance, jacobian, active, r[:data], _rms(problem, records, r), scale, dof, level,
        bool(state.settled), int(state.steps), seconds, costs, tuple(notes), problem, method, x, np.asarray(state.z),
    )  # fmt: skip


def _units(records: Mapping[str, Any], machine: Any) -> Any:
    """The unit of an unknown: of a channel's offset and drift the channel's; a part's own fields say theirs; those of its laws are of
    translation, until it turns or their force is a coefficient."""
    motions = [r for r in records.values() if isinstance(r, Record)]
    channels = {f"{kind}.{name}": r.units[name] for r in motions for kind in ("inputs", "outputs") for name in getattr(r, kind)}
    measured = any(r.units[name].rotational for r in motions for name in r.outputs)

    def unit(u: Any) -> str:
        channel, _, last = u.path.rpartition(".")
        if channel in channels and last in ("offset", "drift"):
            return channels[channel].si_name + ("/s" if last == "drift" else "")
        declared, (name, _, field) = u.declaration.unit, u.path.partition(".")
        if not isinstance(machine, Mechanism) or name not in machine.names:
            return rotational_unit(declared) if measured else declared
        part = machine[name]
        turns = is_rotational(part)
        if turns is None and isinstance(part, AbstractContact):  # its body says
            turns = is_rotational(machine[part.between()[0].partition(".")[0]])
        if "." not in field:
            return "m" if turns and isinstance(part, Brake) and field == "cgeo" else declared
        if isinstance(part, AbstractPressed):
            declared = "1" if declared == "N" else "s/m" if declared == "N.s/m" else declared
        return rotational_unit(declared) if turns else declared

    return unit


def _score(found: FoundMachine, label: str | None, data: Record, objective: AbstractObjective) -> dict[str, float]:
    machine = objective.machine(found.model if label is None else found.model_for(label))
    bench = found.problem.bench_at(jnp.asarray(found.x), None if label is None else list(found.records).index(label))
    pick = lambda known, names: Named.of({n: known.at(n) if known.has(n) else Instrument() for n in names})  # noqa: E731
    here = Bench(machine, pick(bench.inputs, data.inputs), pick(bench.outputs, data.outputs))
    plan = objective.plan(machine, data)
    predicted = np.asarray(_predict(objective, here, plan, found.problem.engine))
    counted = np.asarray(plan.weight) > 0
    left = np.where(counted, np.asarray(plan.measured) - predicted, 0.0)
    axes = tuple(range(left.ndim - 1))
    return dict(zip(plan.names, np.sqrt(np.sum(left**2, axis=axes) / np.sum(counted, axis=axes)).tolist(), strict=True))


@kept
def _predict(objective: AbstractObjective, bench: Bench, plan: Any, engine: Any) -> Any:
    delayed = frozenset([f"inputs.{n}" for n in plan.inputs] + [f"outputs.{n}" for n in plan.names])
    return objective.predict(bench, plan, engine, delayed)


def _rms(problem: Problem, records: Mapping[str, Any], r: np.ndarray) -> dict[str, dict[str, float]]:
    out, first = {}, 0
    for label, plan in zip(records, problem.plans, strict=True):
        w = np.asarray(plan.weight)
        mine = r[first : first + w.size].reshape(w.shape)
        first += w.size
        plain = np.divide(mine, w, out=np.zeros_like(mine), where=w > 0)
        if isinstance(plan, SteadyPlan):
            out[label] = {"f": float(np.sqrt(np.sum(plain**2) / np.sum(w > 0)))}
            continue
        counts = [max(int(np.sum(w[..., c] > 0)), 1) for c in range(w.shape[-1])]
        out[label] = {n: float(np.sqrt(np.sum(plain[..., c] ** 2) / counts[c])) for c, n in enumerate(plan.names)}
    return out
