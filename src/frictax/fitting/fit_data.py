"""How a fit is run: from what was asked to the answer."""

import dataclasses
import functools
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from frictax.arguments import whole
from frictax.engine import Adaptive, Result
from frictax.interrupts import may_keep, nested_work
from frictax.measurements import Sweep
from frictax.notice import Notice
from frictax.parameters import get
from frictax.programs import interruptible_jit
from frictax.progress import Work

from .checks import check_arguments, labelled, without_repeats
from .limits import inside, shared_limits
from .posing import entries, fit_engine, pose, pose_sweep
from .problem.initial_state import begun_at, named_paths, own_parameters
from .problem.inverse_dynamics import InverseDynamics
from .problem.losses import AbstractLoss, Squares
from .problem.objectives import AbstractObjective, PreparedRecord
from .problem.priors import AbstractPrior
from .problem.problem import Problem
from .problem.read_starts import without_rounding
from .problem.sensors import Instrument
from .problem.simulations import ClosedLoop, FreeRun
from .result.answer import answer
from .result.fit_result import FitResult
from .result.notices import above_noise
from .result.step_error import SHORTER, between_samples, long_steps, with_steps_needed
from .search.methods import AbstractMethod, LevenbergMarquardt
from .search.multistart import Extent, search
from .steady_model import assembled, near_data

_NOISES = 3  # times that the noise of a weak form is found, each time with the search again
_ROUNDS = 4  # after the search of a free run, unless the user asks for another number
_RISEN = 1.05  # times the sum of squares: more is left with starts that were to be better


@dataclasses.dataclass(frozen=True)
class Search:
    """How the search goes, and what is printed: options that fits of sweeps and of records share;
    see `fit`.
    """

    method: AbstractMethod | None
    loss: AbstractLoss | None
    level: float
    extent: Extent
    progress: Work

    def __post_init__(self) -> None:
        for name, kind, says in (
            (
                "method",
                AbstractMethod,
                (
                    f"LevenbergMarquardt() or Optax(...), got {self.method!r}. Write"
                    f" Optax({self.method!r}) for an optax rule."
                ),
            ),
            ("loss", AbstractLoss, f"Squares() or Huber(), got {self.loss!r}."),
        ):
            if not isinstance(getattr(self, name), kind | None):
                raise ValueError(f"`{name}` must be {says}")
        if not isinstance(self.level, int | float) or not 0 < self.level < 1:
            raise ValueError(
                f"`level` must be a number between 0 and 1, got {self.level!r}. 0.95 is usual."
            )
        starts, spread, seed, _ = self.extent
        whole("`starts`", starts, 1)
        if (
            not isinstance(spread, int | float)
            or isinstance(spread, bool)
            or not (np.isfinite(spread) and spread >= 0)
        ):
            raise ValueError(
                f"`spread` must be a number >= 0, got {spread!r}. 0.5 draws starts about half"
                " their size apart."
            )
        whole("`seed`", seed, 0, "Leave it out for 0.")
        if jax.dtypes.canonicalize_dtype(float) != np.float64:
            raise ValueError(
                '`fit` needs 64 bit numbers, got 32. Write jax.config.update("jax_enable_x64",'
                " True) before the first computation."
            )

    def end(
        self,
        model: Any,
        problem: Problem,
        records: Mapping[str, Any],
        method: AbstractMethod,
        notes: list[Notice],
        also: Sequence[np.ndarray] = (),
    ) -> FitResult:
        """Search, and tell what was found; `also`: further starts."""
        began = time.perf_counter()
        end = search(problem, method, self.extent, self.progress, also)
        made = end.rounds
        raise_if_failed(problem, end.costs, records)
        notes = [*notes, *end.told]
        for _ in range(_NOISES):
            again = problem if end.interrupted else with_noise_found(problem, end.state.x)
            if again is problem:
                break
            second = search(again, method, say=self.progress, first=end.state.z)
            if second.interrupted or not np.isfinite(float(second.state.cost)):
                break
            least, steps = float(second.state.cost), end.state.steps + second.state.steps
            costs = np.where(end.costs == np.min(end.costs), least, end.costs)
            state = dataclasses.replace(second.state, steps=np.asarray(steps, np.int32))
            problem, end = again, second._replace(state=state, costs=costs)
        again = problem if end.interrupted else without_rounding(problem, np.asarray(end.state.x))
        if again is not problem:
            first, costs = end.state, end.costs
            try:
                second = search(again, method, say=self.progress, first=first.z)
            except KeyboardInterrupt:  # before it had got anywhere
                if not may_keep():
                    raise
                second = end._replace(interrupted=True)
            # a machine whose kinks are not the record's mends nothing
            if second.state is not first and float(second.state.cost) < _RISEN * float(first.cost):
                steps = np.asarray(first.steps + second.state.steps, np.int32)
                state = dataclasses.replace(second.state, steps=steps)
                costs = np.where(costs == np.min(costs), float(state.cost), costs)
                notes = [*notes, *(n for n in second.told if n not in notes)]
                problem, end = again, second._replace(state=state, costs=costs)
            end = end._replace(interrupted=second.interrupted)
        if end.interrupted:
            self.progress.break_off()
            notes.append(Notice("search-interrupted", "", {"steps": int(end.state.steps)}))

        def answered(problem: Problem, end: Any) -> FitResult:
            given = problem, records, end.state, end.costs, end.noise, method, self.level, notes
            return answer(model, *given, time.perf_counter() - began)

        found = answered(problem, end)
        if end.interrupted:
            return found
        for _ in range(SHORTER):
            shorter = with_steps_needed(found)
            if shorter is None:
                break
            second = search(shorter, method, say=self.progress, first=end.state.z)
            if second.interrupted or not np.isfinite(float(second.state.cost)):
                break
            end, found = second, answered(shorter, second)
        known = found.certificate if made else None
        if known is not None and not known.at_noise:
            said = above_noise(known, list(records), made)
            found = dataclasses.replace(found, notes=(said, *found.notes))
        return looked_at(found)


def with_noise_found(problem: Problem, x: Any) -> Problem:
    """The problem with its noise sizes found at the values `x`; itself if nothing changes."""
    if not problem.objective.whitens():  # no other noise depends on the values
        return problem
    prepared = tuple(
        problem.objective.with_noise_found(problem.setup_at(np.asarray(x), i), one, problem.delayed)
        if isinstance(one, PreparedRecord)
        else one
        for i, one in enumerate(problem.prepared)
    )
    same = all(a is b for a, b in zip(prepared, problem.prepared, strict=True))
    return problem if same else dataclasses.replace(problem, prepared=prepared)


def looked_at(found: FitResult) -> FitResult:
    """With notices of what the length of steps does to the estimates."""
    said = [*long_steps(found), *between_samples(found)]
    # a copy would have to find its errors again
    return dataclasses.replace(found, notes=(*found.notes, *said)) if said else found


def misfit(found: FitResult) -> float:
    """What fits of the same data are compared by: the sum of squares, of a robust loss its
    scale.
    """
    robust = found.loss.rounds > 1
    return found.noise_scale if robust else float(np.sum(found.full_residuals**2))


def resumed(found: FitResult, z: Any) -> FitResult:
    """The better of `found` and the end of a search from the coordinates `z`."""
    began, problem = time.perf_counter(), found.problem
    with nested_work():
        end = search(problem, found.method, first=z)
    if not np.isfinite(end.costs).any():
        return found
    notes = [*(n for n in found.notes if not n.code.startswith("search-")), *end.told]
    how = (end.state, end.costs, end.noise, found.method, found.level, notes)
    seconds = found.seconds + time.perf_counter() - began
    other = answer(found.start, problem, found.records, *how, seconds)
    ended = 1 + 1e-6 * (other.converged - found.converged)
    return other if misfit(other) < misfit(found) * ended * (1 - 1e-9) else found


def fit_records(
    model: Any,
    data: Any,
    how: Search,
    *,
    free: str | Iterable[str] | None,
    own: Mapping[str, Sequence[float] | None] | Iterable[str],
    objective: AbstractObjective | None,
    start: AbstractObjective | None,
    priors: Sequence[AbstractPrior],
    limits: Any,
    tied: Any,
    log_scale: Any,
    instruments: Mapping[str, Instrument] | None,
    engine: Any,
    rounds: int | None,
) -> FitResult:
    """`fit` of a machine to records; see there."""
    given, instruments = labelled(data), {} if instruments is None else instruments
    records, twice = without_repeats(given)
    if twice and isinstance(own, Mapping):
        starts = {path: values for path, values in own.items() if values is not None}
        if any(np.shape(values)[:1] != (len(given),) for values in starts.values()):
            records, twice = given, []  # for which `own` is refused below
        else:
            kept = [i for i, label in enumerate(given) if label in records]
            own = {**own, **{path: [x[i] for i in kept] for path, x in starts.items()}}
    check_arguments(model, records, objective, start, priors, instruments, engine)
    objective = FreeRun() if objective is None else objective
    method = usual_method() if how.method is None else how.method
    loss = Squares() if how.loss is None else how.loss
    is_free_run = isinstance(objective, FreeRun | ClosedLoop)
    if rounds is not None:
        whole("`rounds`", rounds, 0, "0 is one search alone, 4 are usual.")
    if rounds and not (is_free_run and _is_usual(method, loss)):
        kinds = ", ".join(type(x).__name__ for x in (objective, method, loss))
        raise ValueError(
            "`rounds` must be left out except for a `FreeRun` or `ClosedLoop` by"
            f" `LevenbergMarquardt` and `Squares`, got {rounds} for {kinds}."
        )
    if rounds is None:
        is_fast = _is_usual(method, loss) and not isinstance(engine, Adaptive)
        rounds = _ROUNDS if is_free_run and is_fast and how.extent.starts == 1 else 0
    how = dataclasses.replace(how, extent=how.extent._replace(rounds=rounds))
    if start is not None and objective.drives() != start.drives():
        raise ValueError(
            f"`start` {type(start).__name__} and `objective` {type(objective).__name__} take the"
            " record's inputs for different things, a force and a controller's reference. Leave"
            " `start` out, or let both be `ClosedLoop`."
        )
    if start is not None:
        theirs = own_parameters(model, own)
        parts = how.progress.parts({type(start).__name__: 1.0, type(objective).__name__: 2.0})
        before, after = parts.values()
        first = dataclasses.replace(how, method=None, extent=Extent(), progress=before)
        how = dataclasses.replace(how, progress=after)
        begin_at = shared_limits(limits, [path for path in named_paths(own) if path not in theirs])
        settings = {
            "free": free,
            "own": theirs,
            "priors": (),
            "instruments": instruments,
            "engine": engine,
            "limits": begin_at,
            "tied": tied,
            "log_scale": (),
            "rounds": 0,
        }
        if isinstance(start, InverseDynamics):  # a start needs no intervals
            start = dataclasses.replace(start, at_samples=True)
        with nested_work():
            found = fit_records(model, records, first, objective=start, start=None, **settings)
        if theirs:
            begun = [begun_at(found.model_for(label), model, found.problem) for label in records]
            given = own if isinstance(own, Mapping) else dict.fromkeys(named_paths(own))
            own = {
                **given,
                **{path: [np.asarray(get(machine, path)) for machine in begun] for path in theirs},
            }
        model = begun_at(found.model, model, found.problem)
    asked = (objective, priors, instruments, engine, method, loss, limits, tied, log_scale)
    problem, notes = posed(model, records, free, own, *asked)
    notes = [*twice, *notes]
    if is_free_run and how.extent.starts > 1:
        notes.append(Notice("starts-of-free-run", type(objective).__name__))
    return how.end(model, problem, records, method, notes)


def _is_usual(method: AbstractMethod, loss: AbstractLoss) -> bool:
    return isinstance(method, LevenbergMarquardt) and loss.rounds == 1


def posed(
    model: Any,
    records: Mapping[str, Any],
    free: Any,
    own: Any,
    objective: AbstractObjective,
    priors: Any,
    instruments: Any,
    engine: Any,
    method: AbstractMethod,
    loss: AbstractLoss,
    limits: Any,
    tied: Any,
    log_scale: Any,
) -> tuple[Problem, list[Notice]]:
    """The problem of a machine and its records, and notices of what was not fitted."""
    by = fit_engine(engine, method)
    how = (objective, priors, instruments, by, loss, limits, tied, log_scale)
    return pose(model, records, free, own, *how)


def fit_sweep(
    model: Any,
    sweep: Sweep,
    how: Search,
    *,
    f_neg: Any,
    peak: float | None,
    offset: float | None,
    free: str | Iterable[str] | None,
    priors: Sequence[AbstractPrior],
    limits: Any,
    tied: Any,
    log_scale: Any,
) -> FitResult:
    """`fit` of a friction law to a sweep; see there."""
    start = assembled(model, sweep, f_neg, peak, offset)
    if isinstance(model, type):  # whose start the data give
        start = inside(start, limits)
    problem, notes = pose_sweep(
        start,
        sweep,
        free,
        priors,
        Squares() if how.loss is None else how.loss,
        limits,
        tied,
        log_scale,
    )
    paths = tuple(u.path for u in problem.unknowns)
    near = [entries(problem, inside(other, limits)) for other in near_data(start, sweep, paths)]
    return how.end(
        start,
        problem,
        {sweep.name: sweep},
        LevenbergMarquardt() if how.method is None else how.method,
        notes,
        near,
    )


def raise_if_failed(problem: Problem, costs: np.ndarray, records: Mapping[str, Any]) -> None:
    if np.isfinite(costs).any():
        return
    for i, label in enumerate(records):
        if isinstance(problem.prepared[i], PreparedRecord):
            result = _ending(problem, i)
            if not bool(result == Result.successful):
                raise ValueError(
                    f"`fit` cannot start: with the start values the run of record {label!r} fails."
                    f" {Result[result]}"
                )
    raise ValueError(
        "`fit` cannot start: the residuals at the start values are not finite. Give other start"
        " values."
    )


@interruptible_jit
def _ending(problem: Problem, i: int) -> Any:
    """How the run of prepared i ends at the start values."""
    prepared = problem.prepared[i]
    assert isinstance(prepared, PreparedRecord)
    return problem.objective.result(
        problem.setup_at(problem.x0, i), prepared, problem.engine, problem.delayed
    )


@functools.cache
def usual_method() -> LevenbergMarquardt:
    return LevenbergMarquardt(tolerance=1e-3, max_steps=200)
