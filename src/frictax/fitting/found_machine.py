"""The answer of a fit to records."""

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.contacts import AbstractContact, Brake
from frictax.contacts.contact import AbstractPressed
from frictax.fitting.bench import Bench, Named
from frictax.fitting.descent import Descent
from frictax.fitting.estimation import inverse_gram, robust_variance
from frictax.fitting.found import Estimate, Estimated, quantile
from frictax.fitting.identifiability import Identifiability, judge_columns
from frictax.fitting.instruments import Instrument
from frictax.fitting.kept_programs import kept
from frictax.fitting.methods import AbstractMethod
from frictax.fitting.objectives import AbstractObjective
from frictax.fitting.problem import Problem, SteadyPlan, bounds, predictions, residuals_and_jacobian, upper_bounds
from frictax.fitting.record import Record
from frictax.fitting.record_sentences import held_breakaways, not_settled, standing_still, too_large
from frictax.mechanism import Mechanism
from frictax.mechanism.attachments import is_rotational
from frictax.parameters import UnknownName, parameters, replace, rotational_unit

if TYPE_CHECKING:
    from frictax.fitting.posterior import Posterior
    from frictax.fitting.residual_study import ResidualStudy
    from frictax.fitting.uncertainty import Uncertainty


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FoundMachine(Estimated):
    """What a fit to records found, how well it is known, and what it cannot know. Print it.

    - `start`: the machine that was fitted, with the values that it had before; `model`: with those that all records share now, and
      `model_for(label)` with those of one record's own, too.
    - `estimates`: one for each fitted number, in SI units; ``mass.v@run2`` belongs to record run2 alone.
    - `covariance` (p, p), in their order; `level` of the intervals, which use Student's t with `dof` degrees of freedom. They hold for
      white residuals; the residuals of a real record rarely are.
    - `residuals` (n,): weighted, 0 where a sample has no weight; `jacobian` (n, p): theirs by the estimates, rows of priors last.
      `full_covariance` (q, q) and `full_jacobian` (n, q) are those of `x`.
    - `rms`: record -> output -> root mean square of what the objective compares [SI]; `noise_scale` of the weighted residuals.
    - `x`: all fitted numbers, with the starts of windows where those were free, which are no estimates; `z`: their coordinates.
    - `converged`, `iterations`, `seconds`; `costs` of all starts; `identifiability`; `warnings`.
    """

    start: Any
    records: Mapping[str, Any]
    estimates: tuple[Estimate, ...]
    covariance: Float[np.ndarray, "p p"]
    full_covariance: Float[np.ndarray, "q q"]
    full_jacobian: Float[np.ndarray, "m q"]
    residuals: Float[np.ndarray, " n"]
    rms: Mapping[str, Mapping[str, float]]
    noise_scale: float
    dof: int
    level: float
    converged: bool
    iterations: int
    seconds: float
    costs: np.ndarray
    identifiability: Identifiability
    warnings: tuple[str, ...]
    problem: Problem
    method: AbstractMethod
    x: Float[np.ndarray, " q"]
    z: Float[np.ndarray, " q"]

    @functools.cached_property
    def jacobian(self) -> Float[np.ndarray, "m p"]:
        """That of the weighted residuals by the estimates."""
        return self.full_jacobian[:, [not u.hidden for u in self.problem.unknowns for _ in u.names]]

    def with_all_active(self) -> "FoundMachine":
        """The same with errors for numbers at their bounds too, as if these were not there."""
        jacobian, shown = self.full_jacobian, [not u.hidden for u in self.problem.unknowns for _ in u.names]
        norms = np.linalg.norm(jacobian, axis=0)
        covariance = self.noise_scale**2 * inverse_gram(jacobian, norms, norms > 0, np)
        return dataclasses.replace(self, full_covariance=covariance, covariance=covariance[np.ix_(shown, shown)])

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

    def uncertainty(self, by: Any) -> "Uncertainty":
        """Errors and intervals by another account of the residuals than white noise: `HAC()`, `BlockBootstrap()`, `Jackknife(4)`.

        >>> import frictax as fx, jax.numpy as jnp, numpy as np
        >>> t = np.linspace(0.0, 2.0, 401)
        >>> block = fx.Mechanism(
        ...     mass=fx.Mass(m=1.0), friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)), drive=fx.Force("mass", 2.0)
        ... )
        >>> record = fx.Record(t, outputs={"mass.v": 0.75 * t + 0.01 * np.sin(40 * t)}, name="pull")
        >>> found = fx.fit(block, record, free=["friction.f_pos.F_Coulomb"])
        >>> print(found.uncertainty(fx.HAC()))
        HAC: residuals that depend on their neighbours: kernel ... s wide
        parameter                 value  unit  std. error  95 % interval  x white
        friction.f_pos.F_Coulomb  ...    N     ...         ... to ...     ...
        """
        from frictax.fitting.uncertainty import uncertainty

        return uncertainty(self, by)

    def step_error(self) -> dict[str, float]:
        """How far each estimate would move if all steps were half as long: see `frictax.fitting.step_error.step_error`."""
        from frictax.fitting.step_error import step_error

        return step_error(self)

    def free_run(self, record: Any, **options: Any) -> Any:
        """A free run beside a record, with sensitivities and the range that chance allows: see `frictax.fitting.free_runs.free_run`."""
        from frictax.fitting.free_runs import free_run

        return free_run(self, record, **options)

    def profile(self, path: str | tuple[str, str], **options: Any) -> Any:
        """The profile likelihood of one fitted number, or of a pair: see `frictax.fitting.profiles.profile`."""
        from frictax.fitting.profiles import profile, profile_pair

        if not isinstance(path, str) and not (isinstance(path, tuple | list) and len(path) == 2):
            raise ValueError(
                f"`profile` takes the name of a fitted number or a pair of them, got {path!r}. There are: {', '.join(self.names)}."
            )
        return profile(self, path, **options) if isinstance(path, str) else profile_pair(self, path, **options)

    def posterior(self, **options: Any) -> "Posterior":
        """Draws from the posterior density of all fitted numbers, by NUTS: see `frictax.fitting.posterior.posterior`.

        Needs the extra ``pip install 'frictax[bayes]'``.
        """
        from frictax.fitting.posterior import posterior

        return posterior(self, **options)

    def residual_study(self, label: str | None = None, *, cutoff: float | None = None) -> "ResidualStudy":
        """What the fit leaves, and what it looks like: memory, speed, position, direction, time, ripple. See `ResidualStudy`.

        `label` of one record, else all; `cutoff` [Hz] of the filter that the missing force is told with, that of `InverseDynamics` or 50.
        """
        from frictax.fitting.residual_study import residual_study

        return residual_study(self, label, cutoff)

    def report(self, path: str | Path, **extras: Any) -> Path:
        """Write a self-contained HTML report, as `frictax identify` does; `comparison=`, `uncertainty=`, `profiles=` and `scores=` add to
        it: see `frictax.report.machine_report.write_machine_report`.

        A former report of frictax is replaced, unless ``overwrite=False``; any other file is left alone.
        """
        from frictax.report import write_machine_report

        return write_machine_report(path, self, **extras)

    def to_mujoco(self, contact: str | None = None, *, v_max: float, joint: str = "joint") -> str:
        """A MuJoCo joint with the friction of `contact` as far as it can be said there: see `frictax.export.robots.joint_friction`."""
        from frictax.export.robots import joint_friction

        return joint_friction(self, contact, v_max).mujoco(joint)

    def to_urdf(self, contact: str | None = None, *, v_max: float) -> str:
        """The same as URDF's ``<dynamics>``."""
        from frictax.export.robots import joint_friction

        return joint_friction(self, contact, v_max).urdf()

    def to_modelica(self, record: str | None = None, **options: Any) -> str:
        """A complete Modelica model of this machine as `record` drove it: see `frictax.export.modelica_found.identified_text`.

        A record of more than 200 samples is read from a file, which `write_modelica` writes too.
        """
        from frictax.export.modelica_found import identified_text

        return identified_text(self, record, **options)

    def write_modelica(self, folder: Any, record: str | None = None, **options: Any) -> list[Any]:
        """Write that model, and the file of its long tables, into `folder`; returns the paths."""
        from frictax.export.modelica_found import write_identified

        return write_identified(self, folder, record, **options)

    def to_modelica_modifiers(self, **options: Any) -> str:
        """Modelica's declarations of the parts that hold fitted values alone."""
        from frictax.export.modelica_found import identified_modifiers

        return identified_modifiers(self, **options)

    def to_json(self) -> str:
        """All of this as JSON, with units: see `frictax.report.machine_json.found_machine_json`."""
        from frictax.report import found_machine_json

        return found_machine_json(self)

    def plot(self, label: str | None = None, **kwargs: Any) -> Any:
        """Draw the record `label`, the first unless given, with what the fitted machine gives; returns the matplotlib figure."""
        from frictax.report import draw_fit

        return draw_fit(self, label, **kwargs)

    def __str__(self) -> str:
        from frictax.fitting.machine_text import machine_text

        return machine_text(self)

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
    names = [name for u in problem.unknowns for name in u.names]
    shown = np.asarray([not u.hidden for u in problem.unknowns for _ in u.names])
    x, slope = np.array(state.x), np.asarray(state.slope)
    if problem.loss.rounds == 1 and not problem.priors:
        r, jacobian = np.asarray(state.residuals), np.asarray(state.jacobian) / np.where(slope == 0, 1.0, slope)
    else:
        r, jacobian = (np.array(a) for a in residuals_and_jacobian(problem, x))
    weights = [np.ravel(np.asarray(p.weight)) for p in problem.plans]
    data = sum(w.size for w in weights)
    counted = np.concatenate([w > 0 for w in weights])
    jacobian = np.concatenate([jacobian[:data], noise * jacobian[data:]])  # data in their unit, priors in units of the noise
    lower, upper = bounds(problem.unknowns), upper_bounds(problem.unknowns)
    # What follows asks for lengths of columns and angles between them only, and this has the same.
    triangle = np.asarray(np.linalg.qr(jacobian, mode="r"))  # of one array: numpy's types do not know it
    norms = np.linalg.norm(triangle, axis=0)
    rows = int(counted.sum())
    scale = max(float(np.sqrt(np.sum(r[:data] ** 2) / max(rows - x.size, 1))), 1e-300)
    effect = np.fmin(x - lower, upper - x) * np.where(norms > 0, norms, 1.0) / np.sqrt(rows)
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
    error = np.sqrt(np.where(active, np.diag(covariance), np.nan))
    half = float(quantile(level, dof, False)) * error
    # What the starts of windows could explain as well says nothing of a parameter.
    told = triangle
    if not shown.all():
        told = triangle[:, shown] - triangle[:, ~shown] @ np.linalg.lstsq(triangle[:, ~shown], triangle[:, shown], rcond=None)[0]
    known = judge_columns(
        told, [n for n, on in zip(names, shown, strict=True) if on], active[shown], x[shown], np.asarray(problem.x0)[shown],
        (lower[shown], upper[shown]), half[shown],
    )  # fmt: skip
    owners, unit = [u for u in problem.unknowns for _ in u.names], _units(records, problem.bench.machine)
    estimates = tuple(
        Estimate(
            n, n if "@" in n else u.path, float(x[i]), float(error[i]), float(np.maximum(x[i] - half[i], lower[i])),
            float(np.minimum(x[i] + half[i], upper[i])), unit(u), known.knowledge[n],
        )
        for i, (n, u) in enumerate(zip(names, owners, strict=True))
        if shown[i]
    )  # fmt: skip
    warnings = [] if bool(state.settled) else [not_settled(method, int(state.steps), problem.objective)]
    warnings += too_large(problem.objective, records, scale)
    warnings = standing_still(problem, norms) + (warnings if norms.any() else [])
    if np.any(active) and known.condition > 100 and not known.null_directions:
        warnings.append(
            f"The scaled Jacobian's condition is {known.condition:.3g}: some combinations of the parameters are told far worse than "
            "others. Fit fewer, on `Windows` or `ClosedLoop`, or record a richer motion."
        )
    still = [n for n, norm, on in zip(names, norms, shown, strict=True) if on and norm == 0]
    sentences = (*warnings, *held_breakaways(known.sentences, still, records), *notes)
    return FoundMachine(
        model, records, estimates, covariance[np.ix_(shown, shown)], covariance, jacobian, r[:data],
        _rms(problem, records, r), scale, dof, level,
        bool(state.settled), int(state.steps), seconds, costs, known, sentences, problem, method, x,
        np.asarray(state.z),
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
