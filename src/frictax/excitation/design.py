"""Search for the excitation that identifies parameters best within limits (`design`, `Design`)."""

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float

from frictax.arguments import check_names, lists_options
from frictax.files.replacing import write_whole
from frictax.fitting import AbstractObjective
from frictax.handover import Verb
from frictax.interrupts import Keys, nested_work
from frictax.measurements import Record
from frictax.mechanism import Machine
from frictax.programs import interruptible_jit
from frictax.progress import Work, show_progress
from frictax.summary import Summarised, Summary
from frictax.text import figures, format_estimate
from frictax.verbs import DesignVerbs

from .building import DesignOptions, DesignRequest, DesignSettings, build_problem, draw_machines
from .limits import Limits
from .problem import DesignProblem, ExperimentRun
from .rivals import Rival, best_rivals, largest_within_limits


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Design(Summarised, DesignVerbs):
    """A designed excitation, and the expected errors of a later fit. Print a `Design` for a table.

    - `t`, `excitation` (n,): times [s] and values of the drive [N, N.m; m, rad for a reference];
      `drive`, `unit`: name and unit of the drive.
    - `names`, `units`, `values` (p,): the parameters and their assumed values; `errors` (p,): the
      expected standard errors; `relative` (p,): `errors` divided by the option `size`.
    - `beside`: name of a conventional experiment or existing record -> its relative errors (p,).
    - `asked`: limited quantity -> (largest value in the run, its limit); `events`: event count.
    - `drawn` (k): parameter values (p,) of each machine drawn from `over`; `kept`: fraction of the
      drawn machines that stay within all limits (1 if none are drawn).
    - `slip`: duration of the shortest slip [samples]; `miss`: smallest relative distance from an
      event that does not happen, as in `Margins`.

    **Example:** at `design`.
    """

    problem: DesignProblem
    excitation: Float[np.ndarray, " n"]
    run: ExperimentRun
    rivals: tuple[Rival, ...]
    drawn: tuple[np.ndarray, ...]
    drawn_runs: tuple[ExperimentRun, ...]
    outputs: dict[str, float]
    objective: AbstractObjective | None
    seconds: float

    @property
    def t(self) -> Float[np.ndarray, " n"]:
        return self.problem.t

    @property
    def drive(self) -> str:
        return self.problem.drive

    @property
    def unit(self) -> str:
        return self.problem.unit

    @property
    def names(self) -> tuple[str, ...]:
        return self.problem.names

    @property
    def units(self) -> tuple[str, ...]:
        return self.problem.units

    @functools.cached_property
    def values(self) -> Float[np.ndarray, " p"]:
        return np.asarray(self.problem.under_test.values())

    @functools.cached_property
    def relative(self) -> Float[np.ndarray, " p"]:
        return self._relative_errors(self.run)

    @property
    def errors(self) -> Float[np.ndarray, " p"]:
        return self.relative * self.problem.size

    @property
    def wanted(self) -> tuple[str, ...]:
        """Names of the parameters whose errors are minimised."""
        return tuple(self.names[i] for i in self.problem.wanted)

    @functools.cached_property
    def beside(self) -> dict[str, Float[np.ndarray, " p"]]:
        return {rival.description: self._relative_errors(rival.run) for rival in self.rivals}

    @property
    def asked(self) -> dict[str, tuple[float, float]]:
        loads = np.asarray(self.run.loads)
        return {
            limit.what: (float(load * limit.limit), limit.limit)
            for limit, load in zip(self.problem.limits, loads, strict=True)
        }

    @property
    def slip(self) -> float:
        return float(self.run.slip)

    @property
    def miss(self) -> float:
        return float(self.run.miss)

    @property
    def events(self) -> int:
        return int(self.run.events)

    def worst(self, says: str | None = None) -> float:
        """Return the largest relative error of a `wanted` parameter. `says`: name of an experiment
        in `beside` that is evaluated instead of the design.
        """
        relative = self.relative if says is None else self.beside[says]
        return float(np.max(relative[self.problem.wanted]))

    def worst_of_drawn(self, says: str | None = None) -> Float[np.ndarray, " k"]:
        """Return the largest relative error of a wanted parameter for each of the k machines that
        were drawn at random. The error is infinite if the run of the machine failed.
        """
        others = {rival.description: rival.drawn_runs for rival in self.rivals}
        runs = self.drawn_runs if says is None else others[says]
        wanted = self.problem.wanted
        worst = [
            np.max(self._relative_errors(run)[wanted]) if run.is_complete else np.inf
            for run in runs
        ]
        return np.array(worst)

    def worst_of_most(self, says: str | None = None) -> float:
        """Return the 90 % quantile of `worst_of_drawn`."""
        return float(np.percentile(self.worst_of_drawn(says), 90))

    @property
    def kept(self) -> float:
        return share_within_limits(self.drawn_runs)

    def record(self, seed: int = 0, name: str = "designed") -> Record:
        """Simulate a record of the given machine, with white noise."""
        problem = self.problem
        clean = self.clean()
        draws = np.random.default_rng(seed)
        noisy = {
            output: clean[output] + sd * draws.standard_normal(problem.t.size)
            for output, sd in self.outputs.items()
        }
        inputs = {
            k: np.asarray(u) for k, u in problem.under_test.inputs.items() if k != problem.drive
        }
        return Record(
            problem.t,
            {problem.drive: self.excitation, **inputs},
            noisy,
            sd=dict(self.outputs),
            units=problem.channel_units,
            hold=problem.under_test.hold,
            name=name,
        )

    def clean(self) -> dict[str, Float[np.ndarray, " n"]]:
        """Simulate the outputs of the given machine without noise."""
        return self.problem.outputs(self.excitation)

    def to_csv(self, path: str | Path) -> Path:
        """Write times and drive to `path`, with one row for each sample.

        **Raises:** `ValueError` if the folder does not exist.
        """
        path = Path(path)
        if not path.parent.is_dir():
            raise ValueError(f"`to_csv`: the folder {path.parent} does not exist. Make it first.")
        write_whole(path.resolve(), self.csv_text(), replace=True)
        return path

    def csv_text(self) -> str:
        """Return the text that `to_csv` writes."""
        head = f"time [s],{self.drive} [{self.unit}]"
        rows = zip(self.t, self.excitation, strict=True)
        return "\n".join([head, *(f"{t:.9g},{u:.9g}" for t, u in rows)]) + "\n"

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the column titles and the rows of the printed table."""
        others = list(self.beside)
        short_names = [says.partition(",")[0].partition(" of ")[0] for says in others]
        head = ("parameter", "value", "unit", "expected error", "relative", *short_names)
        rows = []
        for i, name in enumerate(self.names):
            row = format_estimate(self.values[i], self.errors[i], self.units[i])
            mark = "" if i in self.problem.wanted else " (not wanted)"
            cells = figures(self.values[i] / row.size, 6), row.unit, row.error
            shares = [error_in_words(self.beside[says][i]) for says in others]
            rows.append((name + mark, *cells, error_in_words(self.relative[i]), *shares))
        return head, rows

    @property
    def title(self) -> str:
        """A title with the drive, its duration, and the numbers of samples and events."""
        count, rate = self.t.size, 1.0 / (self.t[1] - self.t[0])
        return (
            f"{self.drive} [{self.unit}] for {self.t[-1]:.4g} s at {rate:.4g} Hz, {count} samples,"
            f" {self.events} events"
        )

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines of text about the limits, the conventional experiments, and the drawn machines."""
        loads = [
            f"{what} {figures(amount, 3)} of {figures(limit, 3)}"
            for what, (amount, limit) in self.asked.items()
        ]
        lines = [f"asks for {', '.join(loads)}"]
        if self.beside:
            lines.append(f"compared with: {'; '.join(self.beside)}")
        if self.drawn:
            own, *others = [
                error_in_words(self.worst_of_most(says)) for says in (None, *self.beside)
            ]
            beside = f" (compared with {'; '.join(others)})" if others else ""
            lines.append(
                f"{100 * self.kept:.0f} % of {len(self.drawn)} machines drawn stay within the"
                f" limits; in 9 of 10 machines the worst error is at most {own}{beside}"
            )
        return tuple(lines)

    def _summary(self) -> Summary:
        head, rows = self.rows()
        sides = "lrlr" + "r" * (len(head) - 4)
        return Summary(self.title, (head, rows), sides, self.lines, self.warnings)

    _repr_html_ = Verb("frictax.report.cards:design_html")

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about limits, margins, better experiments and large errors."""
        out, problem = [], self.problem
        # A warning appears if a margin is below this fraction of its required value, or if the
        # error of a rival experiment is below this fraction of the design's error.
        tolerance = 0.95
        if self.run.excess > 1e-9:
            out.append("No excitation within all limits was found: this one is the nearest.")
        if self.slip < tolerance * problem.margins.slip:
            out.append(
                f"The shortest slip lasts {self.slip:.2g} samples. There a search may stop at a"
                " discontinuity of the cost, with larger errors. Sample faster."
            )
        if self.miss < tolerance * problem.margins.miss:
            out.append(
                f"A possible event is only {100 * self.miss:.2g} % of its margin away. With"
                " slightly different values it happens, and the errors differ from the predicted"
                " errors."
            )
        better = min(self.beside, key=self.worst, default=None)
        if better is not None and self.worst(better) < tolerance * self.worst():
            out.append(
                f"The {better.split(',')[0]} identifies the worst parameter better. Use it, or"
                " search for longer with more `starts` and `steps`."
            )
        weak = [self.names[i] for i in problem.wanted if self.relative[i] > 0.5]
        if weak:
            out.append(
                f"{', '.join(weak)}: the expected error is above 50 %. Let the experiment last"
                " longer, or widen its limits."
            )
        return tuple(out)

    def _relative_errors(self, run: ExperimentRun) -> np.ndarray:
        covariance = np.asarray(self.problem.covariance(jnp.asarray(run.sampled)))
        return np.sqrt(np.diag(covariance))

    def model(self, x: Float[np.ndarray, " p"] | None = None) -> Any:
        """Return the machine. `x`: parameter values, by default the assumed values."""
        if x is None:
            return self.problem.machine
        return self.problem.under_test.with_values(jnp.asarray(x)).machine


# weight of the penalty for violated limits and margins in the last iteration of a search
_PENALTY_WEIGHT = 5.0


@dataclasses.dataclass
class Candidate:
    """An excitation with parameters `c`, `cost` (with full penalty) and `excess` over a limit."""

    c: Float[np.ndarray, " k"]
    cost: float
    excess: float

    def is_better_than(self, other: "Candidate | None") -> bool:
        """Return whether this excitation is better than `other`, first by limits, then by cost."""
        if other is None:
            return True
        if (self.excess <= 0) != (other.excess <= 0):
            return self.excess <= 0
        return self.cost < other.cost if self.excess <= 0 else self.excess < other.excess


class Descent:
    """A search from one start by Adam, a first-order gradient method. The cost has kinks where
    events appear and disappear, so second-order methods fail.
    """

    def __init__(
        self, problem: DesignProblem, machines: Sequence[np.ndarray], c: np.ndarray, steps: int
    ):
        self.problem, self.machines = problem, machines
        initialize, self.update = _adam(steps)
        self.c, self.state = jnp.asarray(c), initialize(jnp.asarray(c))
        self.best: Candidate | None = None
        self.lowest_cost = np.inf
        self.done, self.steps = 0, steps

    def step(self) -> None:
        """Evaluate the current excitation, and make one iteration of Adam."""
        # The weight of the penalty increases during the search, from a hundredth to its full value.
        weight = _PENALTY_WEIGHT * 0.01 ** (1.0 - self.done / self.steps)
        u = self.problem.compiled_excitation(self.c)
        cost, by_drive, excess, succeeded = mean_cost(self.problem, self.machines, u, weight)
        if succeeded:
            candidate = Candidate(np.asarray(self.c), cost, excess)
            self.lowest_cost = min(self.lowest_cost, cost)
            if candidate.is_better_than(self.best):
                self.best = candidate
            gradient = self.problem.pull_back(self.c, by_drive)
            self.c, self.state = self.update(gradient, self.state, self.c)
        elif self.best is not None:
            # After a failed simulation, go halfway back to the best excitation.
            self.c = 0.5 * (self.c + self.best.c)
        else:
            self.c = 0.7 * self.c
        self.done += 1


@functools.lru_cache(maxsize=8)
def _adam(steps: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return two compiled functions of Adam, for `steps` iterations: initialisation and update."""
    # Parameters of an excitation have magnitudes of about 1, so the learning rate starts at 0.1.
    schedule = optax.cosine_decay_schedule(0.1, steps, 0.05)
    adam = optax.chain(optax.clip_by_global_norm(5.0), optax.adam(schedule))

    def update(gradient: Any, state: Any, c: Any) -> Any:
        change, state = adam.update(gradient, state)
        return optax.apply_updates(c, change), state

    return interruptible_jit(adam.init), interruptible_jit(update)


def mean_cost(
    problem: DesignProblem, machines: Sequence[np.ndarray], u: Any, weight: float
) -> tuple[float, np.ndarray, float, bool]:
    """Return four values for the drive u: mean cost over the machines, its gradient with respect to
    u, largest excess over a limit, and whether all runs succeeded. The cost includes the full
    penalty, and the gradient includes `weight` times the penalty."""
    cost, gradient, excess, succeeded = 0.0, np.zeros(np.shape(u)), -np.inf, True
    for x in machines:
        (value, (run, penalty)), by_drive = problem.cost_and_gradient(u, x, weight)
        full = float(value) + (_PENALTY_WEIGHT - weight) * float(penalty)
        by_drive = np.asarray(by_drive)
        cost += full / len(machines)
        gradient = gradient + by_drive / len(machines)
        excess = max(excess, run.excess)
        succeeded &= bool(np.isfinite(full)) and bool(np.all(np.isfinite(by_drive)))
        succeeded &= run.is_complete
    return cost, gradient, excess, succeeded


def search_excitation(
    problem: DesignProblem,
    machines: Sequence[np.ndarray],
    starts: int,
    steps: int,
    seed: int,
    work: Work,
) -> Candidate:
    """Search in three stages, and return the best excitation. In the first stage, the search from
    each start makes a quarter of its iterations. In the second stage, the better half of the
    searches makes a third of its iterations. In the third stage, the best quarter of the searches
    makes the remaining iterations."""
    draws = np.random.default_rng(seed)
    with nested_work():
        descents: list[Descent] = []
        informed = np.zeros(len(problem.names))
        without = float(problem.compiled_criterion(np.zeros(problem.known.shape)))
        for _ in range(3 * starts):
            c = problem.shape.draw(problem.t, problem.band, draws)
            # Reduce the excitation until it exceeds the limits by less than a factor of 11. The
            # search starts beyond the limits, because large motions have many events, which remain
            # when the search makes the motions smaller.
            for _ in range(8):
                run = problem.run_once(problem.compiled_excitation(c), machines[0])
                criterion = float(problem.compiled_criterion(run.information))
                informed += np.nan_to_num(np.diag(run.information))
                if run.is_complete and np.isfinite(criterion) and run.excess < 10.0:
                    # For a machine at rest, information and gradient are 0.
                    if criterion < without - 1e-3:
                        descents.append(Descent(problem, machines, c, steps))
                        count = len(descents)
                        work(f"{count} of {starts} starts", 0.1 * count / starts)
                    break
                c = problem.shape.resized(c, 0.6)
            if len(descents) == starts:
                break
        if not descents:
            idle = [name for name, sure in zip(problem.names, informed, strict=True) if sure == 0]
            if 0 < len(idle) < informed.size:
                raise ValueError(
                    f"`design`: {idle[0]!r} must have an effect on the outputs, got none in any"
                    " run. Leave it out of `free`, or measure other `outputs`."
                )
            raise ValueError(
                "`design` found no excitation under which the machine can be simulated: see whether"
                " `Limits` and the machine's values fit each other."
            )
        # Each stage is a pair: the number of searches that continue, and the number of their
        # iterations.
        first, second, half = steps // 4, steps // 3, (len(descents) + 1) // 2
        last = (half + 1) // 2, steps - first - second
        schedule = [(len(descents), first), (half, second), last]
        total, done = sum(kept * count for kept, count in schedule), 0
        for kept, count in schedule:
            descents = sorted(descents, key=lambda descent: descent.lowest_cost)[:kept]
            for descent in descents:
                for _ in range(count):
                    descent.step()
                    done += 1
                    work(f"{done} of {total} steps", 0.1 + 0.9 * done / total)
        best = None
        for descent in descents:
            if descent.best is not None and descent.best.is_better_than(best):
                best = descent.best
    assert best is not None
    return best


_DEFAULTS: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(DesignSettings)}


@Keys()
@lists_options(DesignOptions, _DEFAULTS)
def design(
    machine: Machine,
    outputs: Mapping[str, float],
    *,
    duration: float,
    rate: float,
    limits: Limits,
    **options: Unpack[DesignOptions],
) -> Design:
    """Design the excitation of `machine` that identifies its parameters best, within `limits`.

    A search minimises the expected errors of the parameters in a later fit to a record of
    `outputs`. Because the Fisher information is a state of the run (`information`), the gradients
    of the search are exact, also for motions with breakaway, sticking and stops. (Fisher
    information as a sum over samples jumps where an event passes a sample, so its derivative is
    wrong.)

    **Arguments:**

    - `machine`: a `Mechanism`, or a hybrid system of your own, with assumed parameter values.
    - `outputs`: measured variable -> standard deviation of its noise [SI unit].
    - `duration` [s] and sampling `rate` [Hz] of the record and of the drive.
    - `limits`: a `Limits` of the machine and its drive.
    - `drive`: the excited part: a force, a torque, or a `PositionController`, whose reference is
      then designed. By default it is the machine's only controller or only force.
    - `free`: the unknown parameters, as for `fit`; `wanted`: the free parameters whose errors are
      minimised, all by default. Free parameters that are not wanted also count as unknown.
    - `shape`: `FourierSeries()` by default, `Multisine()`, `CubicSpline()`, `Ramps()` or, for a
      reference, `Staircase()`.
    - `criterion`: which relative error is minimised. "E": the error of the worst combination of
      parameters; "minimax": the error of the worst parameter; "A": the mean square error; "D": the
      product of the errors along the principal axes of the covariance. "A" and "E" lead to larger
      distances from changes of the event sequence than "minimax".
    - `objective`: objective of the later fit, `FreeRun()`, `Windows(...)` or `ClosedLoop(...)`.
    - `inputs`: name of another driven part -> its samples (n,). `instruments`: as for `fit`. If the
      gain of a sensor is unknown, add for example ``"outputs.mass.v.gain"`` to `free`.
    - `memory`: output -> correlation time of its noise [s]. One sample then counts as (1 - r)/(1 +
      r) independent samples with r = exp(-1/(rate*memory)). This number is accurate for motions
      that are slow compared with the correlation time.
    - `over`: distribution of uncertain parameter values. Give it as a relative scatter, a dict path
      -> scatter, a fit (its covariance), or a `Posterior`. The criterion then is a mean over the
      given machine and `machines` drawn machines. The amplitudes of all experiments are reduced
      until 97 % of 200 drawn machines stay within the limits.
    - `after`: an earlier fit, whose information is added; `priors`: as for `fit`.
    - `beside`: an existing record with the same drive and duration, for comparison.
    - `size`: name -> error that counts as a relative error of 1, by default the value of the
      parameter. `margins`: a `Margins`. `hold`: whether the drive is constant between samples.
    - `engine`: an `OnSamples`. `starts`, `steps`: numbers of searches and of iterations per search;
      `seed`: seed of the random starts. `progress`: as in `fit`.

    **Returns:** a `Design`.

    **Raises:** `ValueError` for invalid arguments.

    **Source:** J. Swevers et al., IEEE Transactions on Robotics and Automation 13(5), 1997, for the
    excitation. `Sensitive` names the source for the derivatives at events.

    Only the speed of this block is measured:

    >>> import frictax as fx
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0, F_prop=0.2)),
    ...     drive=fx.Force("mass", 0.0),
    ... )
    >>> experiment = fx.design(
    ...     block,
    ...     {"mass.v": 2e-3},
    ...     free=["mass.m", "friction.f_pos"],
    ...     duration=4.0,
    ...     rate=50.0,
    ...     limits=fx.Limits(force=3.0, travel=0.2, band=(0.25, 3.0)),
    ...     starts=1,
    ...     steps=40,
    ... )
    >>> experiment.worst() < min(experiment.worst(other) for other in experiment.beside)
    True
    >>> experiment.plot().axes[0].get_ylabel(), experiment.excitation.size
    ('drive [N]', 201)
    """
    began = time.perf_counter()
    check_names(design, options)
    request = DesignRequest(
        machine=machine, outputs=outputs, duration=duration, rate=rate, limits=limits, **options
    )
    problem, record = build_problem(request), request.beside
    if record is not None:
        _check_beside(problem, record)
    nominal = problem.under_test.values()
    draw = functools.partial(
        draw_machines, request.over, problem.under_test, problem.names, problem.lower
    )
    few = draw(request.machines, request.seed)
    drawn = draw(200, request.seed + 1)[1:]
    with show_progress(request.progress, "Designing") as work:
        parts = work.parts({"search": 8.0, "looking at it": 1.0})
        best = search_excitation(
            problem, few, request.starts, request.steps, request.seed, parts["search"]
        )
        u = np.asarray(problem.compiled_excitation(best.c))
        found = largest_within_limits(
            problem, lambda scale: problem.centre + scale * (u - problem.centre)
        )
        u, drawn_runs = _reduce_for_machines(problem, u if found is None else found[0], drawn)
        run = problem.run_once(u, nominal)
        parts["looking at it"]("others", 0.5)
        rivals = best_rivals(problem)
        # Each rival experiment is reduced to the limits in the same way as the designed experiment.
        for k, rival in enumerate(rivals):
            other, runs = _reduce_for_machines(problem, rival.u, drawn)
            again = rival.run if other is rival.u else problem.run_once(other, nominal)
            rivals[k] = dataclasses.replace(rival, u=other, run=again, drawn_runs=runs)
        if record is not None:
            t = np.asarray(record.t, dtype=float)
            other = np.interp(problem.t, t - t[0], record.inputs[problem.drive])
            name, existing = f"{record.name} (at hand)", problem.run_once(other, nominal)
            rivals.append(Rival(name, other, existing, _runs(problem, other, drawn)))
    return Design(
        problem,
        u,
        run,
        tuple(rivals),
        tuple(drawn),
        drawn_runs,
        {name: float(sd) for name, sd in outputs.items()},
        request.objective,
        time.perf_counter() - began,
    )


def _check_beside(problem: DesignProblem, record: Record) -> None:
    if problem.drive not in record.inputs:
        raise ValueError(
            f"`beside` must be a record under {problem.drive!r}; its inputs are"
            f" {', '.join(record.inputs) or 'none'}."
        )
    if abs(record.duration - problem.t[-1]) > 1.001 * (problem.t[1] - problem.t[0]):
        raise ValueError(
            f"`beside` must last as long as the design, {problem.t[-1]:g} s, got"
            f" {record.duration:g} s in record {record.name!r}. Design for the same `duration`, or"
            " give a part of the record."
        )


def _reduce_for_machines(
    problem: DesignProblem, u: np.ndarray, drawn: Sequence[np.ndarray]
) -> tuple[np.ndarray, tuple[ExperimentRun, ...]]:
    """Reduce the excitation until nearly all of the machines `drawn` stay within the limits.

    **Returns:** the excitation, and its run on each machine.
    """
    wanted = 0.97  # fraction of the machines that must stay within the limits
    trials = 8  # number of bisection steps; the scale is then accurate to 1 %
    runs = _runs(problem, u, drawn)
    if share_within_limits(runs) >= wanted:
        return u, runs
    # A machine within the limits is usually also within the limits under a smaller excitation.
    # Therefore the bisection simulates only machines that exceed a limit. After the bisection, all
    # machines are simulated.
    allowed = len(drawn) - round(wanted * len(drawn))
    beyond = [x for x, run in zip(drawn, runs, strict=True) if not run.within_limits]
    scaled = lambda scale: problem.centre + scale * (u - problem.centre)  # noqa: E731
    low, high = 0.0, 1.0
    for _ in range(trials):
        middle = 0.5 * (low + high)
        count = sum(not run.within_limits for run in _runs(problem, scaled(middle), beyond))
        low, high = (middle, high) if count <= allowed else (low, middle)
    runs = _runs(problem, scaled(low), drawn)
    for _ in range(trials):
        if share_within_limits(runs) >= wanted:
            break
        low *= 0.95
        runs = _runs(problem, scaled(low), drawn)
    return scaled(low), runs


def _runs(
    problem: DesignProblem, u: np.ndarray, drawn: Sequence[np.ndarray]
) -> tuple[ExperimentRun, ...]:
    return tuple(jax.device_get([problem.run_repeatedly(u, x) for x in drawn]))


def share_within_limits(runs: Sequence[ExperimentRun]) -> float:
    """Return the fraction of runs within all limits; 1 if `runs` is empty."""
    return float(np.mean([run.within_limits for run in runs])) if runs else 1.0


def error_in_words(x: float) -> str:
    """Return a relative error as text."""
    if not np.isfinite(x) or x > 50:
        return "unknown"
    return f"{100 * x:.2g} %" if x < 1 else f"{x:.2g} times"
