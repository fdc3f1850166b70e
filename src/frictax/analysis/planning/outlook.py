"""Predict the accuracy of a fit, and the experiments that improve it: `outlook`."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.arguments import check_names, lists_options
from frictax.engine import Engine
from frictax.engine.sensitive import jvp_columns
from frictax.fitting import (
    AbstractObjective,
    AbstractPrior,
    Data,
    Estimate,
    FitOptions,
    FitResult,
    Identifiability,
    Instrument,
    InverseDynamics,
    Knowledge,
    Law,
    LevenbergMarquardt,
    Own,
    Squares,
)
from frictax.fitting.build_problem import build_problem
from frictax.fitting.checks import check_data, label_data
from frictax.fitting.fit import fit, raise_if_failed
from frictax.fitting.options import (
    DEFAULTS,
    NoSuchOption,
    ParameterOptions,
    SweepFit,
    SweepOptions,
    names_of,
    refuse,
)
from frictax.fitting.problem.problem import bounds, residuals_and_jacobian
from frictax.fitting.problem.readings import allowed_cutoff, integral
from frictax.fitting.problem.steady import as_steady
from frictax.fitting.problem.ties import tied_again
from frictax.fitting.result.fit_result import make_fit_result
from frictax.fitting.result.identifiability import join_names, null_directions, null_notice
from frictax.fitting.result.notices import standing_still
from frictax.fitting.result.spread import inverse_gram
from frictax.fitting.search.multistart import search
from frictax.interrupts import nested_work
from frictax.measurements import Record, Sweep
from frictax.measurements.filters import smooth
from frictax.measurements.units import VELOCITY_OF
from frictax.mechanism import Machine, Mechanism
from frictax.notice import Notice
from frictax.progress import SILENT, Progress, Work, show_progress
from frictax.summary import Summarised, Summary
from frictax.text import figures, format_estimate

from ..errors.guarded import Guarded
from ..errors.linearization import NoiseModel, Samples
from ..errors.resampling import run_search

# A parameter is weak if its relative standard error (`Outlook.relative`) exceeds this value.
_WEAK = 0.5


# `_FAST`, `_SLOW`: factors by which proposed motions are faster and slower than the recorded one.
# `_SPAN`: ratio of the highest to the lowest speed in a proposed sweep of the speed.
_FAST, _SLOW, _SPAN = 3.0, 4.0, 100.0


@dataclasses.dataclass(frozen=True)
class Remedy:
    """An experiment that reduces the standard error of a parameter. `says`: the experiment in
    words; `gain` [1]: standard error in the record / standard error in the experiment, for equal
    errors of the measured force."""

    says: str
    gain: float

    @classmethod
    def from_errors(cls, says: str, here: float, there: float) -> "Remedy":
        """Compare a parameter's standard errors: `here` (record) and `there` (experiment)."""
        return cls(says, float(here / there) if np.isfinite(here) else np.inf)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Outlook(Summarised):
    """Expected accuracy of the free parameters of a fit. `print` shows a table.

    - `names`, `units`, `values` (p,): free parameters, with start values (sweep: best fit) [SI].
    - `errors` (p,): expected standard errors at `values` [SI], from the residuals of a first fit.
    - `relative` (p,): `errors` divided by the distance of each value from its lower bound. For a
      parameter without lower bound, the error is divided by the absolute value.
    - `identifiability`: which parameters the data identify, singular values of the Jacobian,
      combinations without effect, and the `notices` and `sentences`, which name the remedies.
    - `declared`: for each parameter, the unit in the table and its size in SI, or None.
    - `cures`: name of a parameter -> a `Remedy` for each experiment that was tried.

    **Example:** at `outlook`.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Float[np.ndarray, " p"]
    errors: Float[np.ndarray, " p"]
    relative: Float[np.ndarray, " p"]
    identifiability: Identifiability
    cures: Mapping[str, tuple[Remedy, ...]]
    title: str
    declared: tuple[tuple[str, float] | None, ...]

    @property
    def notices(self) -> tuple[Notice, ...]:
        return self.identifiability.notices

    @property
    def sentences(self) -> tuple[str, ...]:
        return self.identifiability.sentences

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the header of the table, and its rows."""
        verdicts = {
            Knowledge.KNOWN: "",
            Knowledge.WEAK: "weak",
            Knowledge.UNKNOWN: "not identifiable",
            Knowledge.AT_BOUND: "at its bound",
        }
        rows = []
        for i, name in enumerate(self.names):
            row = format_estimate(
                self.values[i], self.errors[i], self.units[i], fixed=self.declared[i]
            )
            start, share, text = figures(self.values[i] / row.size, 6), self.relative[i], ""
            if np.isfinite(share):
                percent = f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"
                text = percent if share < 2 else f"{share:.2g} times"
            verdict = verdicts[self.identifiability.knowledge[name]]
            rows.append((name, start, row.unit, row.error, text, verdict))
        return ("parameter", "start", "unit", "expected error", "relative", ""), rows

    def _summary(self) -> Summary:
        condition = f"condition {self.identifiability.condition:.3g}"
        return Summary(self.title, self.rows(), "lrlrrl", [condition], self.sentences)


class RecordOutlookOptions(ParameterOptions, total=False):
    """The options of `outlook` for a machine and its records."""

    by: NoiseModel | None
    own: Own
    objective: AbstractObjective | None
    priors: Sequence[AbstractPrior]
    instruments: Mapping[str, Instrument] | None
    engine: Engine | None
    progress: bool | Progress


class OutlookOptions(SweepOptions, RecordOutlookOptions, total=False):
    """All options of `outlook`."""


# For type checkers: the options in the overloads of `outlook`.
if TYPE_CHECKING:

    class RecordOutlook(RecordOutlookOptions, total=False, extra_items=NoSuchOption): ...

else:
    RecordOutlook = RecordOutlookOptions


@overload
def outlook(model: Law, data: Sweep, **options: Unpack[SweepFit]) -> Outlook: ...


@overload
def outlook(model: Machine, data: Data, **options: Unpack[RecordOutlook]) -> Outlook: ...


@lists_options(OutlookOptions, {"by": None, **DEFAULTS})
def outlook(model: Any, data: Any, **options: Any) -> Outlook:
    """Predict the standard errors of a fit of `model` to `data`. Find combinations of parameters
    that the fit cannot distinguish, and experiments that can distinguish these parameters.

    The expected errors are computed at the start values, from the residuals of a first fit. A
    parameter is weak if its standard error exceeds half of its distance from its lower bound. A
    parameter without lower bound is weak if its standard error exceeds half of its absolute value.

    For a weak parameter, other motions of the same machine and duration are tried: a faster motion,
    a slower motion, a motion with reversal, a slow sweep of the speed, and fast followed by slow
    motion. The remedy is a motion whose forces identify the parameter better, for equal errors of
    the force. A notice reports the factor by which the standard error of the parameter decreases.
    For a sweep, faster and slower speeds, the other direction and breakaway rows are tried.

    **Arguments:** `model`, `data` and the options of `fit`. For a sweep, all options of `fit` are
    possible. The options for records are `free`, `own`, `tied`, `objective`, `priors`,
    `instruments`, `engine`, `progress`, and `by`: the noise model of the errors, by default
    `Guarded()`. The errors of a sweep are computed at the best fit instead of the start values.

    A force of 2 N hardly moves this mass, so its low speeds do not identify the viscous friction:

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 4.0, 801)
    >>> u = 2.0 * np.sin(2 * np.pi * t)

    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction(
    ...         "mass", f_pos=fx.Stribeck(F_prop=0.2, F_Coulomb=1.0, F_Stribeck=0.4, fexp=5.0)
    ...     ),
    ...     drive=fx.Force("mass", fx.Sampled(t, u)),
    ... )
    >>> noise = 2e-3 * np.random.default_rng(0).standard_normal(801)
    >>> v = np.asarray(fx.simulate(block, t)["mass"].v) + noise
    >>> record = fx.Record(t, {"drive": u}, {"mass.v": v}, name="run")
    >>> print(fx.outlook(block, record, free=["friction.f_pos"]))
    Expected accuracy of run by FreeRun, at the start values
    parameter                  start  unit   expected error  relative
    friction.f_pos.F_prop      0.2    N.s/m  ...             ... times  not identifiable
    ...
    ! Remedy: move the body faster, at up to 0.37 m/s instead of 0.12. Then the errors are ...
    """
    check_names(outlook, options)
    if isinstance(data, Sweep) and not isinstance(model, Machine):
        known, of, here = names_of(SweepOptions), "records", "a law's sweep"
    else:
        known, of, here = names_of(RecordOutlookOptions), "a law's sweep", "a machine"
    refuse({name: x for name, x in options.items() if name not in known}, of, here)
    by = options.pop("by", None)
    given = FitOptions(**options)
    with show_progress(given.progress, "Computing the expected accuracy") as work:
        if isinstance(data, Sweep) and not isinstance(model, Machine):
            asked: dict[str, Any] = {**options, "progress": work}
            found = fit(model, data, **asked)
            jacobian, judged = found.jacobian, found.identifiability
            norms, seen = np.linalg.norm(jacobian, axis=0), _independent_columns(jacobian)
            covariance = found.noise_scale**2 * inverse_gram(jacobian, norms, seen)
            values = np.asarray([e.value for e in found.estimates])
            without = (Knowledge.UNKNOWN, Knowledge.AT_BOUND)
            unknown = [n for n, k in judged.knowledge.items() if k in without]
            title = f"Expected accuracy of {data.name or 'the sweep'}, at the best fit"
            # Leave out the notice "near-bound", as `_assess_parameters` uses relative errors.
            said = tuple(n for n in judged.notices if n.code != "near-bound")
            cures = functools.partial(better_speeds, found)
            return _assess_parameters(
                found, title, values, jacobian, covariance, cures, said, unknown
            )
        records, method = label_data(data), LevenbergMarquardt(tolerance=1e-2, max_steps=30)
        check_data(model, records)
        problem, _ = build_problem(model, records, dataclasses.replace(given, method=method))
        parts = work.parts({"first fit": 2.0, "other motions": 1.0})
        with nested_work():
            end = search(problem, method, say=parts["first fit"])
        parts["first fit"].end()
        raise_if_failed(problem, end.costs, records)
        first = make_fit_result(model, problem, records, end, method, 0.95, [])
        instruments = given.instruments or {}
        return _outlook_at_start(first, given.free, by, instruments, parts["other motions"])


def outlook_of(found: FitResult, by: NoiseModel | None = None) -> Outlook:
    """Return the outlook for the records of `found`, at the start values of this fit."""
    setup = found.problem.setup
    shared = [u.path for u in found.problem.unknowns if u.record is None]
    instruments = {
        f"inputs.{name}": setup.inputs.at(name)
        for r in found.records.values()
        for name in getattr(r, "inputs", ())
    }
    plain = dataclasses.replace(found, problem=dataclasses.replace(found.problem, loss=Squares()))
    return _outlook_at_start(plain, shared, by, instruments)


def _outlook_at_start(
    first: FitResult,
    free: Any,
    by: NoiseModel | None,
    instruments: Mapping[str, Any],
    work: Work = SILENT,
) -> Outlook:
    """Return the outlook at the start values of the fit `first`, with the residuals of this fit."""
    problem, records, method = first.problem, first.records, first.method
    method = method if isinstance(method, LevenbergMarquardt) else LevenbergMarquardt()
    # One iteration of the fit's compiled program evaluates the residuals at the start values.
    begun = run_search(problem, method, np.zeros(problem.x0.size), 1, dof=first.dof)
    slope = np.asarray(begun.slope)
    jacobian = np.asarray(begun.jacobian) / np.where(slope == 0, 1.0, slope)
    rows = first.n
    # Residuals of priors have a standard deviation of 1; scale them to the noise of the data.
    jacobian = np.concatenate([jacobian[:rows], first.noise_scale * jacobian[rows:]])
    if not np.isfinite(float(begun.cost)) and not np.any(jacobian):
        raise ValueError(
            "`outlook` cannot look from here: with the start values a run fails. Give other start"
            " values."
        )
    shown = first.shown
    norms = np.linalg.norm(jacobian, axis=0)
    seen = _independent_columns(jacobian)
    here = dataclasses.replace(
        first,
        full_jacobian=jacobian,
        full_covariance=first.noise_scale**2 * inverse_gram(jacobian, norms, seen),
        active=seen,
        dof=max(int(Samples(problem).counted.sum()) - int(seen.sum()), 1),
    )
    by = Guarded() if by is None else by
    covariance = by.spread(here).covariance[np.ix_(shown, shown)]
    columns, starts = jacobian[:, shown], jacobian[:, ~shown]
    columns = columns - starts @ np.linalg.lstsq(starts, columns, rcond=None)[0]

    title = (
        f"Expected accuracy of {', '.join(records)} by {type(problem.objective).__name__}, at the"
        " start values"
    )

    def cures(weak: Sequence[str]) -> Mapping[str, tuple[Remedy, ...]]:
        tied = tied_again(problem.ties)
        return better_motions(
            first.start, records, first.names, weak, free, instruments, tied, work
        )

    said = tuple(standing_still(problem, norms))
    x0 = np.asarray(problem.x0)[shown]
    return _assess_parameters(first, title, x0, columns, covariance, cures, said)


def _independent_columns(jacobian: Float[np.ndarray, "n p"]) -> np.ndarray:
    """Return a mask of columns that are linearly independent. Dependent columns are left out."""
    norms = np.linalg.norm(jacobian, axis=0)
    kept = norms > 1e-12 * np.max(norms, initial=0.0)
    while kept.any():
        columns = jacobian[:, kept] / norms[kept]
        _, s, vt = np.linalg.svd(columns, full_matrices=False)
        if s[-1] >= 1e-7 * s[0]:
            break
        kept[np.flatnonzero(kept)[np.argmax(np.abs(vt[-1]))]] = False
    return kept


def _assess_parameters(
    found: FitResult,
    title: str,
    x: Float[np.ndarray, " p"],
    jacobian: Float[np.ndarray, "n p"],
    covariance: Float[np.ndarray, "p p"],
    cures: Callable[[Sequence[str]], Mapping[str, tuple[Remedy, ...]]],
    said: tuple[Notice, ...],
    unknown: Sequence[str] = (),
) -> Outlook:
    """Decide which parameters of `found` are identifiable at values `x` (p,), and find remedies.

    - `jacobian` (n, p) of the weighted residuals; `covariance` (p, p): expected for the estimates.
    - `cures`: function that returns experiments for weak parameters; `said`: notices that begin the
      list of notices; `unknown`: parameters that the data do not identify.
    """
    names, lower = list(found.names), bounds(found.problem.unknowns)[found.shown]
    norms = np.linalg.norm(jacobian, axis=0)
    seen = norms > 1e-12 * np.max(norms, initial=0.0)
    s, null = null_directions(jacobian, names, seen)
    from_bound = np.isfinite(lower) & (x > lower)
    size = np.where(from_bound, x - np.where(np.isfinite(lower), lower, 0.0), np.abs(x))
    nulls = [name for direction in null for name in direction]
    alone = ~np.isin(names, nulls)
    errors = np.where(seen & alone, np.sqrt(np.maximum(np.diag(covariance), 0.0)), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = errors / size
    # A parameter that starts at 0, such as an offset, does not have a relative error.
    hopeless = ~seen | ~alone | np.isin(names, list(unknown)) | ~(relative < 2.0) & (size > 0)
    weak = ~hopeless & (relative > _WEAK) & (relative < 2.0)
    knowledge = {
        name: Knowledge.UNKNOWN if h else Knowledge.WEAK if w else Knowledge.KNOWN
        for name, h, w in zip(names, hopeless, weak, strict=True)
    }
    notices = [*said, *(null_notice("null-direction-always", direction) for direction in null)]
    notices += [Notice("no-effect", name) for name, on in zip(names, seen, strict=True) if not on]
    asked = [names[i] for i in np.flatnonzero((hopeless | weak) & alone)]
    kept = np.flatnonzero(seen & alone & (size > 0))
    weakest = None
    if asked and kept.size and not unknown:
        mine = [found.estimates[i] for i in kept]
        weakest = mine, covariance[np.ix_(kept, kept)], size[kept]
    remedies = cures(asked) if asked else {}
    notices += _weak_notices(weakest, remedies, asked)
    condition = float(s[0] / s[-1]) if s.size and s[-1] > 0 else float("inf")
    known = Identifiability(knowledge, tuple(dict.fromkeys(notices)), s, condition, tuple(null))
    units = tuple(e.unit for e in found.estimates)
    declared = tuple(e.declared for e in found.estimates)
    return Outlook(tuple(names), units, x, errors, relative, known, remedies, title, declared)


def _weak_notices(
    weakest: tuple[Sequence[Estimate], np.ndarray, np.ndarray] | None,
    remedies: Mapping[str, tuple[Remedy, ...]],
    asked: Sequence[str],
) -> list[Notice]:
    """Return notices on at most two combinations of parameters with relative errors above one half,
    and on the best experiment for each parameter in `asked`. `weakest`: estimates, the covariance
    of the estimates, and divisors that turn standard errors into relative errors.
    """
    out = list[Notice]()
    if weakest is not None:
        estimates, covariance, size = weakest
        spread, directions = np.linalg.eigh(covariance / np.outer(size, size))
        for variance, w in list(zip(spread, directions.T, strict=True))[::-1][:2]:
            if not np.sqrt(max(variance, 0.0)) > _WEAK:
                break
            change = w / np.max(np.abs(w)) * min(np.sqrt(variance) * np.max(np.abs(w)), 1.0)
            acts = np.abs(w) > 0.1 * np.max(np.abs(w))
            mine = [(estimates[i], change[i] * size[i]) for i in np.flatnonzero(acts).tolist()]
            changes = ", ".join(f"{e.name} by {moved:+.2g} {e.unit}" for e, moved in mine)
            names = [e.name for e, _ in mine]
            if len(mine) > 1:
                numbers = {"names": join_names(names), "changes": changes}
                out.append(Notice("hard-to-tell-apart", "", numbers))
            else:
                out.append(Notice("hard-to-tell", names[0], {"changes": changes}))
    best: dict[str, list[tuple[str, float]]] = {}
    for name in asked:
        helpful = [one for one in remedies.get(name, ()) if one.gain >= 1.5]
        if helpful:
            one = max(helpful, key=lambda one: one.gain)
            best.setdefault(one.says, []).append((name, one.gain))
    for says, gains in best.items():
        errors = [f"{name} {gain:.2g} times" for name, gain in gains if np.isfinite(gain)]
        unseen = [name for name, gain in gains if not np.isfinite(gain)]
        effects = [f"the errors are smaller ({join_names(errors)})"] if errors else []
        effects += [f"the data identify {join_names(unseen)}"] if unseen else []
        out.append(Notice("cure", "", {"experiment": says, "gains": ", and ".join(effects)}))
    helped = {name for gains in best.values() for name, _ in gains}
    without = [name for name in asked if name not in helped]
    if without:
        out.append(Notice("no-cure", "", {"names": join_names(without)}))
    return out


def better_motions(
    machine: Any,
    records: Mapping[str, Any],
    names: Sequence[str],
    weak: Sequence[str],
    free: Any,
    instruments: Mapping[str, Any],
    tied: Any = None,
    work: Work = SILENT,
) -> dict[str, tuple[Remedy, ...]]:
    """Try variations of the motion in the first record. Return for each weak parameter one remedy
    per tried motion. Sliding does not identify a parameter `peak`, so its remedy is breakaway.
    """
    hold = (
        "let the body come to rest and wait, then raise the force slowly until the body breaks"
        " away; do this several times"
    )
    out: dict[str, tuple[Remedy, ...]] = {
        name: (Remedy(hold, np.inf),) for name in weak if name.endswith(".peak")
    }
    record = next((r for r in records.values() if isinstance(r, Record)), None)
    if record is None or not isinstance(machine, Mechanism):
        return out
    # Motions are proposed only for a machine with one body whose position or speed is measured.
    bodies = [n for n, part in machine.named_parts() if hasattr(part, "inertia")]
    motion: dict[str, np.ndarray] = {}
    for s, v in VELOCITY_OF.items() if len(bodies) == 1 else ():
        position, velocity = f"{bodies[0]}.{s}", f"{bodies[0]}.{v}"
        if position in record.outputs:
            motion = {position: record.outputs[position]}
        elif velocity in record.outputs:
            motion = {position: integral(record.t, record.outputs[velocity])}
        if motion:
            break
    else:
        return out
    here = _errors(machine, record, motion, names, free, instruments, tied)
    if here is None:
        return out
    motions = _motions(record, motion)
    for k, (says, tried) in enumerate(motions):
        there = _errors(machine, record, tried, names, free, instruments, tied)
        work.count(k + 1, len(motions), "tried")
        for i, name in enumerate(names):
            if there is not None and name in weak and not name.endswith(".peak") and there[i] > 0:
                out[name] = (*out.get(name, ()), Remedy.from_errors(says, here[i], there[i]))
    return out


def _motions(
    record: Record, motion: Mapping[str, np.ndarray]
) -> list[tuple[str, dict[str, np.ndarray]]]:
    """Return other motions of the same duration, each with a text that describes the motion."""
    t = record.t - record.t[0]
    ((name, s),) = motion.items()
    cutoff = max(min(20.0, 0.2 * record.rate), 4.0 / record.duration)
    v = smooth(record.t, s, allowed_cutoff(record, cutoff)).v
    top = float(np.max(np.abs(v)))
    unit = "rad/s" if name.endswith("phi") else "m/s"
    tried = [
        (
            f"move the body faster, at up to {_FAST * top:.2g} {unit} instead of {top:.2g}",
            s[0] + _FAST * (s - s[0]),
        ),
        (
            f"move the body more slowly, at up to {top / _SLOW:.2g} {unit} instead of {top:.2g},"
            " with slow ramps",
            np.interp(t / _SLOW, t, s),
        ),
    ]
    if np.min(v) > -0.05 * top or np.max(v) < 0.05 * top:
        half = 0.5 * t[-1]
        there = np.interp(np.where(t <= half, 2 * t, 2 * (t[-1] - t)), t, s)
        tried.append(("let the motion reverse, instead of moving in one direction only", there))
    # Speed grows from `top`/`_SPAN` to `top` and falls again, first forward and then backward.
    phase = 4.0 * t / t[-1]
    speed = np.where(phase < 2, 1.0, -1.0) * top * _SPAN ** -np.abs(np.mod(phase, 2.0) - 1.0)
    low = top / _SPAN
    tried.append(
        (
            f"sweep the speed slowly from {low:.2g} to {top:.2g} {unit} and back, in both"
            " directions",
            s[0] + np.concatenate([[0.0], np.cumsum(speed[1:] * np.diff(t))]),
        )
    )
    half = len(s) // 2
    fast, slow = _FAST * (s[:half] - s[0]), np.interp(t[: len(s) - half] / _SLOW, t, s) - s[0]
    tried.append(
        (
            f"record both slow and fast motion, at {top / _SLOW:.2g} and {_FAST * top:.2g} {unit}",
            np.concatenate([fast, fast[-1] + slow]),
        )
    )
    return [(says, {name: x}) for says, x in tried]


def _errors(
    machine: Mechanism,
    record: Record,
    motion: Mapping[str, np.ndarray],
    names: Sequence[str],
    free: Any,
    instruments: Mapping[str, Any],
    tied: Any = None,
) -> np.ndarray | None:
    """Return the standard error of each parameter if the forces along `motion` are measured with a
    standard deviation of 1. The error is nan for a parameter without effect on the forces.
    """
    try:
        other = Record(record.t, record.inputs, dict(motion), hold=record.hold, name=record.name)
        objective = InverseDynamics(min(20.0, 0.2 * record.rate), at_samples=True)
        given = {k: v for k, v in instruments.items() if k.startswith("inputs.")}
        options = FitOptions(objective=objective, instruments=given, free=free, tied=tied)
        problem, _ = build_problem(machine, {record.name: other}, options)
        _, jacobian = (np.asarray(a) for a in residuals_and_jacobian(problem, problem.x0))
    except (ValueError, KeyError):  # a free parameter does not change the forces
        return None
    mine = [name for u in problem.unknowns for name in u.names]
    norms = np.linalg.norm(jacobian, axis=0)
    covariance = inverse_gram(jacobian, norms, norms > 0)
    error = dict(zip(mine, np.sqrt(np.where(norms > 0, np.diag(covariance), np.nan)), strict=True))
    return np.asarray([error.get(name, np.nan) for name in names])


def better_speeds(found: FitResult, weak: Sequence[str]) -> dict[str, tuple[Remedy, ...]]:
    """Return a remedy for each weak parameter and each tried change of the sweep: other speeds, the
    other direction, or breakaway rows.
    """
    sweep, problem, x = found.sweep, found.problem, jnp.asarray(found.x)
    v, way, breakaway = (jnp.asarray(a) for a in (sweep.velocity, sweep.direction, sweep.breakaway))
    unit = "rad/s" if sweep.rotational else "m/s"
    sliding = np.abs(sweep.velocity[~sweep.breakaway])
    top, slowest = float(np.max(sliding)), float(np.min(sliding))

    def errors(v: Array, breakaway: Array, way: Array) -> np.ndarray:
        def forces(x: Array) -> Array:
            return as_steady(problem.setup_at(x, None).machine).predict(v, breakaway, way)

        jacobian = np.asarray(jvp_columns(forces, (x,), (jnp.eye(x.size),))[1])
        norms = np.linalg.norm(jacobian, axis=0)
        return np.sqrt(
            np.where(norms > 0, np.diag(inverse_gram(jacobian, norms, norms > 0)), np.inf)
        )

    here = errors(v, breakaway, way)
    half = jnp.arange(v.shape[0]) % 2 == 0
    tried = [
        (
            f"measure higher speeds too, up to {_FAST * top:.2g} {unit} instead of {top:.2g}",
            (jnp.where(half, _FAST * v, v), breakaway, way),
        ),
        (
            f"measure lower speeds too, down to {slowest / _SLOW:.2g} {unit} instead of"
            f" {slowest:.2g}",
            (jnp.where(half, v / _SLOW, v), breakaway, way),
        ),
        ("measure the breakaway force too", (v, breakaway | half, way)),
    ]
    if not sweep.both_directions:
        turned = (jnp.where(half, -v, v), breakaway, jnp.where(half, -way, way))
        tried.append(("measure the other direction too", turned))
    out: dict[str, tuple[Remedy, ...]] = {}
    for says, rows in tried:
        there = errors(*rows)
        for i, name in enumerate(found.names):
            if name in weak and there[i] > 0 and np.isfinite(there[i]):
                out[name] = (*out.get(name, ()), Remedy.from_errors(says, here[i], there[i]))
    return out
