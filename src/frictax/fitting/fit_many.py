"""Many fits of one model, to as many records or measurements."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from frictax.annotations import ArrayLike, Checked
from frictax.engine import OnSamples
from frictax.interrupts import Workers, nested_work
from frictax.laws import AbstractLaw
from frictax.measurements import Record, Sweep
from frictax.mechanism import Machine
from frictax.notice import Notice
from frictax.progress import Progress, Work, watched

from .checks import check_arguments
from .fit import refuse
from .fit_data import Search, posed, usual_method
from .many_data import numbers, own_values, records_of
from .many_search import Length, searched
from .posing import pose_sweep
from .problem.inverse_dynamics import InverseDynamics
from .problem.losses import AbstractLoss, Squares
from .problem.objectives import AbstractObjective
from .problem.problem import Problem, bounds
from .problem.read_starts import without_rounding
from .problem.readings import divide_gaps
from .problem.setup import state_names
from .problem.simulations import FreeRun
from .problem.steady import SteadyFriction
from .problem.ties import Tied
from .result.answer import answer
from .result.estimates import Replicates
from .result.fit_result import FitResult
from .result.step_error import SHORTER, is_doubtful, with_steps_needed
from .search.levenberg_marquardt import Descent
from .search.methods import AbstractMethod, LevenbergMarquardt
from .search.multistart import Extent, search
from .steady_model import assembled


def fit_many(
    model: AbstractLaw | type[AbstractLaw] | SteadyFriction | Machine,
    data: Checked[Sweep | Record | Sequence[Record]],
    measured: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    values: Checked[Mapping[str, ArrayLike]] | None = None,
    free: str | Iterable[str] | None = None,
    tied: Tied | None = None,
    method: AbstractMethod | None = None,
    loss: AbstractLoss | None = None,
    level: float = 0.95,
    objective: AbstractObjective | None = None,
    engine: OnSamples | None = None,
    progress: Checked[bool | Progress] = False,
) -> Replicates:
    """Fit one model to many measurements, each by itself: records of many machines, or measurements
    (or draws) of one experiment.

    By least squares and Levenberg-Marquardt 32 at a time in one compiled call, on each processor;
    by other ways one after the other. How many they are compiles nothing anew, nor do other
    numbers; records of another length do.

    **Arguments:**

    - `model`: a law or `SteadyFriction`, for records a machine, whose values are every fit's start.
    - `data`: records with the same channels, each with inputs and times of its own; or the sweep or
      record at whose rows, or under whose inputs, everything was `measured`: its own forces or
      outputs are not looked at.
    - `measured`: for a sweep forces (k, n) [N or N.m]; for a record output -> (k, n) in SI, or (k,
      n) where it has one output; for many records nothing.
    - `values`: path -> k numbers that the machine of each fit has in the place of the model's: what
      is known of each (its payload, where it begins), or, of what is free, its start.
    - `free`, `tied`, `method`, `loss`, `level`, `progress`: as in `fit`; `objective`, `engine`: for
      records only.

    **Returns:** `Replicates`: values of all k fits, as `fit` would give them, for bootstrap and
    coverage; intervals by the account of a single fit, when they are asked for.

    **Raises:** `ValueError` for measurements of another shape, and for records whose channels
    differ.

    How widely 200 repeats of one sweep would scatter, and what one fit says of it:

    >>> import frictax as fx, numpy as np
    >>> v = np.linspace(0.5, 8.0, 16)
    >>> law = fx.Coulomb(F_Coulomb=6.0, F_prop=0.2)
    >>> noise = 0.05 * np.random.default_rng(0).standard_normal((200, 16))
    >>> f = 6.0 + 0.2 * v
    >>> sweep = fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")
    >>> many = fx.fit_many(law, sweep, f + noise)
    >>> many.names, many.values.shape
    (('F_Coulomb', 'F_prop'), (200, 2))
    >>> np.std(many.values, axis=0).round(3), np.mean(many.standard_errors, axis=0).round(3)
    (array([0.026, 0.005]), array([0.032, 0.006]))
    """
    with watched(progress, "Fitting many") as work:
        # raises for what they cannot be
        Search(method, loss, level, Extent(), work)
        how = method, loss, level, objective, engine, work
        return _fitted(model, data, measured, values, free, tied, *how)


@dataclasses.dataclass(frozen=True, eq=False)
class Ends:
    """Where many searches ended, each with its problem: what a fit of each finds is made when it is
    asked for.
    """

    models: Sequence[Any]
    sources: Sequence[Any]
    problems: Sequence[Problem]
    notes: Sequence[list[Notice]]
    states: Sequence[Descent]
    method: AbstractMethod
    level: float
    costs: Sequence[np.ndarray] | None = None
    noise: Sequence[float] | None = None

    def found(self, i: int) -> FitResult:
        """The fit of number `i`."""
        source, state = self.sources[i], self.states[i]
        costs = np.reshape(state.cost, 1) if self.costs is None else self.costs[i]
        return answer(
            self.models[i],
            self.problems[i],
            {source.name or type(source).__name__: source},
            state,
            costs,
            1.0 if self.noise is None else self.noise[i],
            self.method,
            self.level,
            self.notes[i],
            0.0,
        )

    def with_steps_needed(self) -> "Ends":
        """Return the ends, after a further search with shorter steps where steps are too long."""
        problems, states = list(self.problems), list(self.states)
        costs, noise = (None if x is None else list(x) for x in (self.costs, self.noise))
        for i, (problem, state) in enumerate(zip(problems, states, strict=True)):
            if not isinstance(problem.engine, OnSamples) or not np.isfinite(float(state.cost)):
                continue
            if not problem.objective.in_units_of_outputs():
                continue
            r = np.asarray(state.residuals)
            if not is_doubtful(problem, r, float(np.sqrt(r @ r / max(r.size - state.z.size, 1)))):
                continue
            for _ in range(SHORTER):
                now = {"problems": problems, "states": states, "costs": costs, "noise": noise}
                shorter = with_steps_needed(dataclasses.replace(self, **now).found(i))
                if shorter is None:
                    break
                with nested_work():
                    end = search(shorter, self.method, first=states[i].z)
                if not np.isfinite(float(end.state.cost)):
                    break
                problems[i], states[i] = shorter, end.state
                if costs is not None and noise is not None:
                    costs[i], noise[i] = end.costs, end.noise
        now = {"problems": problems, "states": states, "costs": costs, "noise": noise}
        return dataclasses.replace(self, **now)


def ends_of(
    models: Sequence[Any],
    sources: Sequence[Any],
    asked: Sequence[tuple[Problem, list[Notice]]],
    method: AbstractMethod,
    level: float,
    work: Work,
    length: Length | None = None,
) -> Ends:
    """The searches of problems of one record each: `method` and the loss say whether together or
    one after the other. `length` as in `searched`.
    """
    problems, notes = [problem for problem, _ in asked], [told for _, told in asked]
    first = problems[0]
    if isinstance(method, LevenbergMarquardt) and first.loss.rounds == 1 and not first.priors:
        problems, states, told = searched(problems, method, work, length)
        notes = [[*a, *b] for a, b in zip(notes, told, strict=True)]
        ends = Ends(models, sources, problems, notes, states, method, level)
        return ends.with_steps_needed()
    ends = []
    for i, problem in enumerate(problems):
        with nested_work():
            end = search(problem, method)
            again = without_rounding(problem, np.asarray(end.state.x))
            if again is not problem:
                problems[i], end = again, search(again, method, first=end.state.z)
        ends.append(end)
        work.count(i + 1, len(problems), "fits")
    states, costs, noise = zip(*((e.state, e.costs, e.noise) for e in ends), strict=True)
    ends = Ends(models, sources, problems, notes, states, method, level, costs, noise)
    return ends.with_steps_needed()


def _fitted(
    model: Any,
    data: Any,
    measured: Any,
    values: Any,
    free: Any,
    tied: Any,
    method: AbstractMethod | None,
    loss: AbstractLoss | None,
    level: float,
    objective: AbstractObjective | None,
    engine: OnSamples | None,
    work: Work,
) -> Replicates:
    loss = Squares() if loss is None else loss
    if isinstance(data, Sweep):
        moving = {"objective": objective, "engine": engine, "values": values}
        refuse(moving, "a record", "a sweep")
        method = LevenbergMarquardt() if method is None else method
        start = assembled(model, data, None, None, None)
        problem, _ = pose_sweep(start, data, free, (), loss, tied=tied)
        forces = None if measured is None else numbers(measured, data.n)
        if forces is None:
            raise ValueError(
                f"`measured` must have shape (k, {data.n}), one column for each row of the sweep,"
                f" got {np.shape(np.asarray(measured))}."
            )
        (prepared,) = problem.prepared
        prepared = [dataclasses.replace(prepared, measured=f[:, None]) for f in forces]
        asked = [(dataclasses.replace(problem, prepared=(p,)), []) for p in prepared]
        sources: list[Any] = [data] * len(asked)
        models = [model] * len(asked)
    else:
        method = usual_method() if method is None else method
        sources = records_of(data, measured)
        models = own_values(model, values, len(sources))
        how = (objective, engine, method, loss, tied)
        asked = _of_records(models, sources, free, *how)
    names = tuple(name for u in asked[0][0].unknowns for name in u.names)
    ends = ends_of(models, sources, asked, method, level, work)
    return Replicates(
        names,
        np.stack([np.asarray(e.x) for e in ends.states]),
        np.asarray([bool(e.settled) for e in ends.states]),
        level,
        np.asarray([float(e.cost) for e in ends.states]),
        functools.partial(_errors, ends, level),
    )


def _errors(ends: Ends, level: float) -> tuple[np.ndarray, ...]:
    """Standard errors and intervals by the usual account, of one fit after the other."""

    def one(i: int) -> list[tuple[float, float, float]]:
        mine = ends.found(i)
        if not mine.of_sweep:
            return [(e.standard_error, e.lower, e.upper) for e in mine.estimates]
        # spared what a sweep cannot tell of a dip, which takes longer than the fit
        known = np.where(mine.active, 1.0, np.nan)
        half = known * mine.spread.half_width(level, np.eye(mine.x.size))
        sd = known * np.sqrt(np.diag(mine.covariance))
        low = np.where(mine.active, np.fmax(mine.x - half, bounds(mine.problem.unknowns)), np.nan)
        return list(zip(sd.tolist(), low.tolist(), (mine.x + half).tolist(), strict=True))

    with Workers() as pool:
        rows = np.asarray(pool.map(one, range(len(ends.states))))
    return rows[..., 0], rows[..., 1], rows[..., 2]


def _of_records(
    models: Sequence[Any],
    records: Sequence[Record],
    free: Any,
    objective: AbstractObjective | None,
    engine: Any,
    method: AbstractMethod,
    loss: AbstractLoss,
    tied: Any,
) -> list[tuple[Problem, list[Notice]]]:
    """The problem of each record."""
    objective, first = FreeRun() if objective is None else objective, records[0]
    if isinstance(objective, InverseDynamics):  # whose noise each fit would have to find
        objective = dataclasses.replace(objective, at_samples=True)
    check_arguments(models[0], {first.name: first}, objective, None, (), None, engine)
    how = (objective, (), {}, engine, method, loss, None, tied, ())

    def of(model: Any, record: Record) -> Problem:
        return posed(model, {record.name: record}, free, (), *how)[0]

    problem = of(models[0], first)
    if objective.fits_starts():
        raise ValueError(
            "`fit_many` cannot find the starts of windows. Write Windows(...) without free_starts,"
            " or call `fit`."
        )
    states = set(state_names(problem.setup.machine))
    if models[0] is models[-1] and not states & {u.path for u in problem.unknowns}:
        machine = objective.machine(models[0])
        prepared = [
            divide_gaps(objective.prepare(machine, record), problem.engine) for record in records
        ]
        return [(dataclasses.replace(problem, prepared=(p,)), []) for p in prepared]
    # whose values, or whose record's start, differ
    return [(of(*one), []) for one in zip(models, records, strict=True)]
