"""Find the terms that a fitted machine lacks: score tests of all candidates, refits of the best."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.annotations import Checked
from frictax.fitting import FitResult, Squares
from frictax.fitting.problem.objectives import PreparedRecord
from frictax.fitting.problem.problem import bounds, residuals_and_jacobian, upper_bounds
from frictax.fitting.problem.setup import channel_unit
from frictax.fitting.result.step_error import long_steps, with_shorter_steps
from frictax.fitting.result.worth import channels
from frictax.interrupts import Keys
from frictax.progress import SILENT, Progress, Work, show_progress

from ..errors.resampling import scale_weights
from .candidates import bodies_of, catalogue, first_columns
from .score_test import (
    SURE,
    UNEXPLAINED,
    UNTESTABLE,
    Projected,
    ScoreTest,
    TestResult,
    f_test_p,
    without_starts,
)
from .sensitivities import (
    Point,
    Sensitivities,
    operating_range,
    ripple_columns,
    sensitivities,
    states_of_windows,
)
from .structures import SERIES, refit_by_free_runs, split_bodies
from .table import Missing, MissingTerm

_PERIODS = 45  # number of trial frequencies on each grid of the search for the period of a ripple.
# Least number of ripple periods over the travel of a body. Fewer periods look like a spring force.
_LEAST_PERIODS = 3.0
# A refit of a ripple begins at each of the `_WAVES` best periods. For any two of them, the numbers
# of ripple periods over the travel of the body differ by more than `_APART`.
_WAVES, _APART = 3, 1.2
_DAMPING, _CAREFUL = 1e-6, 30.0  # first damping of Levenberg-Marquardt; factor of its changes.
# If Schwarz's criterion of two terms differs by less than this value, the simpler term is chosen.
# Kass and Raftery, JASA 90 (1995), call a difference above 10 very strong evidence.
_NEARLY = 10.0


@Keys()
def missing(found: FitResult, *, progress: Checked[bool | Progress] = False) -> Missing:
    """Return a table of the terms that the fitted machine lacks (`Missing`).

    `found` must be a fit of a machine to records, with any objective. A fit to a sweep has the
    notice `lack-of-fit` instead. `progress` as in `fit`.

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 8.0, 801)
    >>> v = np.sin(1.3 * t) + np.sin(3.1 * t)

    >>> a = 1.3 * np.cos(1.3 * t) + 3.1 * np.cos(3.1 * t)
    >>> noise = 0.05 * np.random.default_rng(0).standard_normal(801)
    >>> record = fx.Record(
    ...     t, {"drive": a + np.sign(v) + 0.3 * v * np.abs(v) + noise}, {"mass.v": v}, name="run"
    ... )
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    ...     drive=fx.Force("mass", 0.0),
    ... )
    >>> found = fx.fit(
    ...     block, record, free="friction.f_pos.F_Coulomb", objective=fx.InverseDynamics(20.0)
    ... )
    >>> term = found.missing().found[0]
    >>> term.name, round(float(term.value), 2), term.unit
    ('drag over v^2 of friction', 0.3, 'N.s2/m2')
    """
    if found.of_sweep:
        raise ValueError(
            "`missing` needs a fit of a machine to records, and this is a fit of a law to a sweep."
            " Look for its notice `lack-of-fit`, and compare laws by `fx.compare(sweep)`."
        )
    cache = vars(found)  # printing the fit may have computed the table
    if "missing_table" not in cache:
        # Shorter time steps are used, because the error of long steps can look like a missing term.
        engine = found.problem.engine
        for notice in long_steps(found):
            engine = with_shorter_steps(engine, notice)
        problem = dataclasses.replace(found.problem, engine=engine)
        with show_progress(progress, "Searching for missing terms") as work:
            search = _Search(dataclasses.replace(found, problem=problem))
            cache["missing_table"] = search.run(work)
    return cache["missing_table"]


@dataclasses.dataclass(frozen=True, eq=False)
class Evaluation:
    """The sensitivities (`at`) at a point. `waves`: names of the bodies whose ripple is in the
    model; `by_wave`: residual derivatives with respect to travel/period of each of these ripples;
    `free`: mask of the fitted parameters that are not at a bound.
    """

    at: Sensitivities
    free: np.ndarray
    by_wave: np.ndarray
    waves: list[str]


def as_least_squares(found: FitResult) -> FitResult:
    """Return a fit with a robust loss as a least-squares fit with the same minimum: a residual of u
    noise scales gets the weight score(u)/u of the loss. Return a least-squares fit itself."""
    if found.loss.rounds == 1:
        return found
    r, rows = found.full_residuals, len(found.full_jacobian)
    u = r / found.noise_scale
    score = np.asarray(found.loss.score(jnp.asarray(u)))
    root = np.sqrt(np.divide(score, u, out=np.ones_like(u), where=u != 0))
    of_rows = np.concatenate([root, np.ones(rows - found.n)])  # followed by the rows of priors
    return dataclasses.replace(
        found,
        problem=dataclasses.replace(scale_weights(found.problem, root), loss=Squares()),
        full_residuals=root * r,
        full_jacobian=of_rows[:, None] * found.full_jacobian,
    )


class Trials:
    """The fitted machine with all candidate terms (`tried`). `first`: index of each candidate's
    first coefficient; `accepted`: indices of the candidates that earlier rounds added; `point`:
    present values of parameters and coefficients; `travel` of each body [m or rad].
    """

    def __init__(self, found: FitResult) -> None:
        plain = as_least_squares(found)
        problem = plain.problem
        self.found, self.problem = found, problem
        self.shared = found.shown
        x = np.asarray(found.x, float)
        self.ranges, self.travel = operating_range(problem, x)
        self.tried = catalogue(found)
        self.first = first_columns(self.tried)
        states = states_of_windows(problem)
        self.has_windows = bool(states)
        self.test = ScoreTest(plain, self.has_windows)
        windows = [(i, p) for i, p in enumerate(problem.prepared) if isinstance(p, PreparedRecord)]
        self.point = Point(
            x,
            np.zeros(sum(one.size for one in self.tried)),
            {i: np.zeros((len(p.weight), states)) for i, p in windows if states},
            dict.fromkeys(bodies_of(found.model), 1.0),
        )
        self.accepted: list[int] = []
        self.other_periods: dict[str, list[float]] = {}

    def at_values(self, at: Point, which: int | None = None) -> Evaluation:
        """Return the `Evaluation` at a point, with ripples of `which` and accepted candidates."""
        inside = [*self.accepted, *([] if which is None else [which])]
        waves = [self.tried[i].of for i in inside if self.tried[i].kind == "wave"]
        here = sensitivities(self.problem, self.tried, at, self.ranges)
        by_wave, nudge = [], 1e-4  # [periods over the travel] step of the finite difference
        for body in waves:
            period = 1.0 / (1.0 / at.periods[body] + nudge / self.travel[body])
            nudged = dataclasses.replace(at, periods={**at.periods, body: period})
            then = sensitivities(self.problem, self.tried, nudged, self.ranges)
            slope = (then.residuals - here.residuals) / nudge
            # If the simulation with the changed period fails, the derivative is set to 0.
            by_wave.append(slope if np.all(np.isfinite(slope)) else np.zeros_like(slope))
        by_wave = np.reshape(by_wave, (len(waves), len(here.residuals))).T
        # A parameter at a bound is free if it has left the bound since the fit.
        moved = np.abs(at.x - self.found.x)[self.shared] * np.linalg.norm(here.fitted, axis=0)
        has_left = moved > 1e-3 * np.linalg.norm(self.found.full_residuals)
        return Evaluation(here, self.found.active[self.shared] | has_left, by_wave, waves)

    def places(self, which: int) -> list[int]:
        """Return the indices of the coefficients of a candidate."""
        return list(range(self.first[which], self.first[which] + self.tried[which].size))

    def tries(self, which: int) -> float:
        """Return the number of periods that are tried for a ripple; 1 for any other candidate."""
        one = self.tried[which]
        return 1.0 if one.kind != "wave" else _PERIODS * (2.0 + self.turns(one.of))

    def with_accepted(self, seen: Evaluation) -> Sensitivities:
        """Return sensitivities whose fitted columns include those of the accepted candidates. The
        columns of parameters at a bound are 0."""
        own = [j for i in self.accepted for j in self.places(i)]
        fitted = np.column_stack([seen.at.fitted * seen.free, seen.at.tried[:, own], seen.by_wave])
        return dataclasses.replace(seen.at, fitted=fitted)

    def choose_periods(self) -> None:
        """Choose each ripple's period that explains most, and two further periods as starts of
        refits. The grid has 90 frequencies of at least three periods over the travel. If a body
        makes more than two turns, the grid also has 1 to 45 periods per turn. A finer grid around
        the best frequency follows."""
        for i, one in enumerate(self.tried):
            if one.kind != "wave" or i in self.accepted or not self.travel[one.of] > 0:
                continue
            travel, many = self.travel[one.of], np.arange(1, _PERIODS + 1)
            least = _LEAST_PERIODS / travel
            grids = [least + (many - 1.0) / travel, least + (many - 0.5) / travel]
            if self.turns(one.of):
                grids.append(np.maximum(many / (2 * np.pi), least))
            tried = np.concatenate(grids)
            explained = np.concatenate([self.explained_by_ripple(one.of, grid) for grid in grids])
            best: list[float] = []
            for f in tried[np.argsort(-explained)]:
                if all(abs(f - other) > _APART / travel for other in best):
                    best.append(float(f))
            near = np.maximum(best[0] + np.linspace(-1.0, 1.0, _PERIODS) / travel, least)
            finer = self.explained_by_ripple(one.of, near)
            if np.max(finer) > np.max(explained):
                best[0] = float(near[np.argmax(finer)])
            periods = {**self.point.periods, one.of: 1.0 / best[0]}
            self.point = dataclasses.replace(self.point, periods=periods)
            self.other_periods[one.of] = [1.0 / f for f in best[1:_WAVES]]

    def turns(self, body: str) -> bool:
        """Return whether a body rotates by more than two turns."""
        return bodies_of(self.found.model)[body] and self.travel[body] > 4 * np.pi

    def explained_by_ripple(self, body: str, frequencies: np.ndarray) -> Float[np.ndarray, " m"]:
        """Return the sum of squares that a ripple of each frequency [1/m or 1/rad] explains."""
        many = jnp.asarray(1.0 / frequencies)
        parts = []
        for i in range(len(self.problem.prepared)):
            at = self.point.of_record(i)
            of_record = ripple_columns(self.problem, self.tried, at, self.ranges, i, body, many)
            parts.append(np.asarray(of_record[0]))
        waves = np.concatenate(parts, axis=1)
        seen = self.with_accepted(self.at_values(self.point))
        trial = dataclasses.replace(seen, tried=np.concatenate(list(waves), axis=1))
        clean = Projected.from_columns(trial, self.test.counted)
        out = np.zeros(len(waves))
        for k in range(len(waves)):
            own = slice(2 * k, 2 * k + 2)
            if np.isfinite(clean.tried[:, own]).all() and np.min(clean.own[own]) > UNEXPLAINED:
                q, _ = np.linalg.qr(clean.tried[:, own])
                out[k] = np.sum((q.T @ clean.residuals) ** 2)
        return out

    def refit(self, which: int) -> tuple[float, Point, Evaluation]:
        """Refit with candidate `which`. Return the sum of squares, the point and its evaluation."""
        one = self.tried[which]
        best = self.refit_from(which, self.point)
        for period in self.other_periods.get(one.of, []) if one.kind == "wave" else []:
            periods = {**self.point.periods, one.of: period}
            new = self.refit_from(which, dataclasses.replace(self.point, periods=periods))
            best = new if new[0] < best[0] else best
        return best

    def settle(self) -> None:
        """Fit without priors, and with the initial states of windows, so that a refit gains only by
        its candidate."""
        if self.has_windows or self.problem.priors:
            _, self.point, _ = self.refit_from(None, self.point)

    def refit_from(self, which: int | None, at: Point) -> tuple[float, Point, Evaluation]:
        """Refit like `refit`, but from the point `at`. `which` = None: no candidate is added."""
        inside = [*self.accepted, *([] if which is None else [which])]
        own = [j for i in inside for j in self.places(i)]
        seen = self.at_values(at, which)
        p, damping, cost = int(np.sum(self.shared)), _DAMPING, self.cost(seen.at)
        for turn in range(25):
            # At first the amplitude of a new ripple is 0, so its period does not have an effect.
            by_wave = seen.by_wave if turn else seen.by_wave[:, :0]
            columns = np.column_stack([seen.at.fitted, seen.at.tried[:, own], by_wave])
            limits = self.limits(at, inside, seen.waves if turn else [])
            step, follow = self.step(seen.at, columns, damping, limits)
            x, c, periods = at.x.copy(), at.c.copy(), dict(at.periods)
            x[self.shared] += step[:p]
            c[own] += step[p : p + len(own)]
            for body, more in zip(seen.waves, step[p + len(own) :], strict=False):
                periods[body] = self.travel[body] / (self.travel[body] / periods[body] + more)
            moved = {i: m + follow[i] for i, m in at.moved.items()}
            new = Point(x, c, moved, periods)
            then = self.at_values(new, which)
            now = self.cost(then.at)
            derivatives = then.at.fitted, then.at.tried[:, own], then.by_wave
            if now < cost and all(np.all(np.isfinite(d)) for d in derivatives):
                done = cost - now < 1e-4 * cost and (turn > 0 or not seen.waves)
                at, seen, cost = new, then, now
                damping /= _CAREFUL
                if done:
                    break
            else:
                damping *= _CAREFUL
                if damping > 1e3:
                    break
        return cost, at, seen

    def limits(
        self, at: Point, inside: list[int], waves: list[str]
    ) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
        """Return the least and the largest change of each parameter, of each coefficient of the
        candidates `inside`, and of the number of periods of each ripple in `waves`. A parameter
        moves at most 0.9 of its distance to a bound."""
        x, unknowns = at.x[self.shared], self.problem.unknowns
        low, high = (0.9 * (f(unknowns)[self.shared] - x) for f in (bounds, upper_bounds))
        for i in inside:
            one, c = self.tried[i], at.c[self.places(i)]
            ends = (one.least, one.most) if one.size == 1 else (-np.inf, np.inf)
            low, high = np.append(low, ends[0] - c), np.append(high, ends[1] - c)
        turns = np.array([self.travel[body] / at.periods[body] for body in waves])
        low = np.append(low, _LEAST_PERIODS - turns)
        return low, np.append(high, np.full(len(waves), np.inf))

    def cost(self, seen: Sensitivities) -> float:
        """Return the sum of squares after a linearised fit of the initial states of windows."""
        r = seen.residuals[self.test.counted]
        if self.has_windows:
            starts, window = seen.starts[self.test.counted], seen.window[self.test.counted]
            r = without_starts(r[:, None], starts, window)[:, 0]
        return float(r @ r)

    def step(
        self,
        seen: Sensitivities,
        j: np.ndarray,
        damping: float,
        limits: tuple[np.ndarray, np.ndarray],
    ) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """Return the Levenberg-Marquardt step, and a dict: record -> changes of window states.
        `limits`: least and largest change for each column of `j`. A change that exceeds a limit is
        set to this limit, and the other changes are computed again."""
        on, (low, high) = self.test.counted, limits
        r, j = seen.residuals[on], j[on]
        starts, window = seen.starts[on], seen.window[on]
        step, free = np.zeros(j.shape[1]), np.ones(j.shape[1], bool)
        beyond = free
        while beyond.any():
            both = np.column_stack([r + j @ (step * ~free), j * free])
            if self.has_windows:
                both = without_starts(both, starts, window)
            norms = np.linalg.norm(both[:, 1:], axis=0)
            norms = np.where(norms > 0, norms, 1.0)
            a = both[:, 1:] / norms
            best = -np.linalg.solve(a.T @ a + damping * np.eye(len(step)), a.T @ both[:, 0]) / norms
            step = np.where(free, best, step)
            beyond = free & ((step < low) | (step > high))
            step, free = np.clip(step, low, high), free & ~beyond
        follow, first, rest = {}, 0, r + j @ step
        sizes = [np.linalg.norm(starts[window == w], axis=0) for w in np.unique(window)]
        scale = np.maximum(np.max(sizes, axis=0), 1e-300) if sizes else 1.0
        for i, moved in self.point.moved.items():
            out = np.zeros_like(moved)
            for w in range(len(moved)):
                mine = window == first + w
                u, d, v = np.linalg.svd(starts[mine] / scale, full_matrices=False)
                # Directions whose singular value is at most 0.001 are not identified, and omitted.
                large = d > 1e-3
                parts = np.divide(u.T @ rest[mine], d, out=np.zeros_like(d), where=large)
                out[w] = -(v.T @ parts) / scale
            follow[i] = out
            first += len(moved)
        return step, follow


@dataclasses.dataclass(frozen=True, eq=False)
class _Round:
    """The tests and refits of one round. The keys of the dicts are indices of candidates.

    - `cost`: sum of squares of the `count` residuals before a candidate is added.
    - `rows`: the test of each candidate. `order`: leaders of classes, the best first. A class
      contains candidates that the record cannot distinguish.
    - `alike`: leader -> names of the other candidates in its class; `p_values`: leader -> p value.
    - `refits`: candidate -> root mean square of the weighted residuals, point and table row of the
      refit; `leaves_white`: whether the residuals of any refit are white noise.
    """

    cost: float
    count: int
    rows: list[TestResult]
    order: list[int]
    alike: dict[int, list[str]]
    p_values: dict[int, float]
    refits: dict[int, tuple[float, Point, MissingTerm]]
    leaves_white: bool


class _Search(Trials):
    """Rounds of tests and refits. Each round adds one term to the model."""

    def run(self, work: Work, most: int = 3) -> Missing:
        self.settle()
        of, x, r = self.found, self.found.x, self.found.full_residuals
        if of.problem.priors:
            x = self.point.x
            r = np.asarray(residuals_and_jacobian(of.problem, x)[0])[: of.n]
        taken: list[MissingTerm] = []
        table: _Round | None = None
        terms, untestable, start = [], (), np.nan
        rounds = {f"round {k + 1}": 2.0**-k for k in range(most)}  # share of the time: 1, 1/2, ...
        for tell in work.parts(rounds).values():
            tell(f"{len(self.tried)} candidates")
            now = self.test_candidates(tell)
            confirmed = {i: rms for i, (rms, _, term) in now.refits.items() if term.is_significant}
            best, as_good = self.simplest(confirmed) if confirmed else (None, [])
            if table is None:
                table = now
                terms, untestable = self.table_of(now)
                start = float(np.sqrt(now.cost / now.count))
                if not now.leaves_white:
                    tell("a body split in two, with a spring between")
                    sprung = self.stiffness_in_series(now)
                    if sprung is not None:
                        taken = [sprung]
                        break
                    on_windows = self.stiffness_on_windows(now)
                    if on_windows is not None:
                        return dataclasses.replace(
                            on_windows, terms=terms, untold=untestable, of=self.found
                        )
            if best is None:
                break
            _, self.point, chosen = now.refits[best]
            self.accepted.append(best)
            alike = (*chosen.alike, *(self.tried[i].name for i in as_good))
            taken.append(dataclasses.replace(chosen, alike=alike))
        start = self.in_units(start)
        left = taken[-1].misfit if taken else start
        misfits = channels(of.problem, of.records, r, x)
        above = [c.above for c in misfits if c.is_above_noise and c.noise > 0]
        ratio = max(above, default=np.nan)
        return Missing(tuple(terms), tuple(taken), start, left, self.unit, untestable, of, ratio)

    def test_candidates(self, tell: Work) -> _Round:
        """Test all candidates, and refit the best candidates."""
        self.choose_periods()
        here = self.at_values(self.point)
        before = self.with_accepted(here)
        if not np.all(np.isfinite(before.residuals)):
            raise ValueError(
                "`missing` needs finite predictions at the fitted values, and they are not finite."
                " Fit again from another start, or with the parameters at their bounds fixed."
            )
        rows, plain, self.independent = self.score_tests(before)
        order, alike = self.classes(rows, plain)
        tries = np.array([self.tries(i) for i in order])
        each, passing = self.test.combine([rows[i] for i in order], tries)
        p_values = dict(zip(order, each.tolist(), strict=True))
        cost, count = self.cost(here.at), len(plain.residuals)
        refits: dict[int, tuple[float, Point, MissingTerm]] = {}
        leaves_white = False
        sure = [i for i in order if p_values[i] < SURE]
        # Always refit the three best candidates by Schwarz's criterion, and three significant ones.
        first = dict.fromkeys([*order[:3], *sure[:3]])
        queue = list(dict.fromkeys([*first, *sure]))
        square = float(plain.residuals @ plain.residuals)
        for k, i in enumerate(queue):
            if i not in first and any(term.is_significant for _, _, term in refits.values()):
                break
            after, at, seen = self.refit(i)
            row = self.test_refit(i, seen, at.c, before)
            leaves_white |= row.is_white
            by_colour, by_score, by_blocks = row.p_values
            alone = max(self.tries(i) * by_colour, by_score / self.test.limit)
            p_value = min(max(len(order) * alone, max(passing, 1) * by_blocks), 1.0)
            rms = float(np.sqrt(after / count))
            term = self.term(i, row, p_value, alike[i], rms, at)
            # 0 must be outside the 99 % interval of the value, and the sum of squares must decrease
            # by more than half of the predicted decrease.
            is_confirmed = (
                p_value < SURE
                and abs(term.value) > 2.58 * term.standard_error
                and self.tried[i].is_possible(at.c[self.places(i)])
                and square - after > 0.5 * rows[i].explained * square
            )
            refits[i] = rms, at, dataclasses.replace(term, is_significant=is_confirmed)
            tell.count(k + 1, len(queue), f"candidates fitted: {self.tried[i].name}")
        return _Round(cost, count, rows, order, alike, p_values, refits, leaves_white)

    def score_tests(self, seen: Sensitivities) -> tuple[list[TestResult], Projected, float]:
        """Return the test of each candidate, and the projected residuals and columns. Also return
        the number of independent residuals after a fit of the candidate that explains most.
        """
        tests = self.test.at(seen)
        out = []
        for i, one in enumerate(self.tried):
            if i in self.accepted:
                out.append(UNTESTABLE)
                continue
            row = tests.full_test(self.places(i))
            out.append(row if one.is_possible(row.c) else UNTESTABLE)
        best = max(range(len(out)), key=lambda i: out[i].explained)
        at = self.places(best) if out[best].explained > 0 else []
        return out, tests.plain, tests.independent(at)

    def test_refit(
        self, which: int, seen: Evaluation, c: np.ndarray, before: Sensitivities
    ) -> TestResult:
        """Test candidate `which` with the columns at its refitted coefficients `c`. The candidate's
        effect is first subtracted from the refitted residuals. `before`: sensitivities before the
        refit."""
        at = self.places(which)
        here = self.with_accepted(seen)
        tried = here.tried[:, at]
        alone = dataclasses.replace(here, residuals=here.residuals - tried @ c[at], tried=tried)
        gain = self.test.refit_gain(before, dataclasses.replace(here, tried=tried))
        row = self.test.at(alone).full_test(list(range(len(at))), gain)
        return row if row.own == 0 else dataclasses.replace(row, covariance=gain.covariance)

    def table_of(self, one: _Round) -> tuple[tuple[MissingTerm, ...], tuple[str, ...]]:
        """Return the terms, smallest misfit first, and the names of untestable candidates."""
        terms = [
            one.refits[i][2]
            if i in one.refits
            else self.term(i, one.rows[i], one.p_values[i], one.alike[i], one.rows[i].rms, None)
            for i in one.order
        ]
        terms.sort(key=lambda term: term.misfit)
        weak = (self.tried[i].name for i, row in enumerate(one.rows) if row.own <= UNEXPLAINED)
        return tuple(terms), tuple(weak)

    def schwarz(self, i: int, square: float) -> float:
        """Return (Schwarz's criterion of candidate i)/(number of independent residuals)."""
        n = self.independent
        return float(np.log(max(square, 1e-300)) + self.tried[i].numbers * np.log(n) / n)

    def simplest(self, refits: dict[int, float]) -> tuple[int, list[int]]:
        """Find the candidates with a Schwarz criterion less than `_NEARLY` above the smallest one.
        Return the simplest candidate and the others. `refits`: candidate -> root mean square
        residual."""
        score = {i: self.schwarz(i, rms**2) for i, rms in refits.items()}
        least = min(score.values())
        near = [i for i in score if self.independent * (score[i] - least) < _NEARLY]
        best = min(near, key=lambda i: (self.tried[i].rank, score[i]))
        return best, [i for i in near if i != best]

    def stiffness_in_series(self, one: _Round) -> MissingTerm | None:
        """Return a stiffness in series with a body if it is clearly the best term, else None."""
        best = min(split_bodies(self.found), key=lambda split: split.cost, default=None)
        if best is None:
            return None
        n, count = int(np.sum(self.test.counted)), len(one.order) + 1
        before, after = (self.test.independent(f.full_residuals) for f in (self.found, best.found))
        # The model with a split body has three more parameters than the fitted machine.
        k, each = 3, np.log(after)
        rivals = [
            after * np.log(n * rms**2 / best.cost) + self.tried[i].numbers * each
            for i, (rms, _, _) in one.refits.items()
        ]
        # A hardly damped spring can imitate residuals with a narrow spectrum. Therefore the F test
        # uses the smaller number of independent residuals; a second test compares autoregressions.
        gain, dof = one.cost / best.cost - 1.0, min(before, after) - len(best.found.x)
        by_gain = f_test_p(gain * dof / k, k, dof)
        p_value = 2 * count * min(by_gain, self.test.p_of_innovations(best.found, k))
        if min(rivals, default=np.inf) - k * each < _NEARLY or p_value >= SURE:
            return None
        rms = self.in_units(float(np.sqrt(best.cost / n)))
        name, value, unit = f"{SERIES}{best.body}", best.stiffness.value, best.stiffness.unit
        return MissingTerm(name, value, best.error, unit, None, rms, 1.0, p_value, True, True, ())

    def stiffness_on_windows(self, one: _Round) -> Missing | None:
        """Refit a fit on windows by free runs. Return the table of the refit if its first term is a
        stiffness in series, otherwise None. The refit requires a refitted compliance, and a
        significant term or a `chance` of the compliance below 5 %. Without compliances among the
        candidates, a significant term is enough."""
        soft = {i for i, tried in enumerate(self.tried) if tried.kind == "compliance"}
        is_sure = any(term.is_significant for _, _, term in one.refits.values())
        likely = [i for i, (_, _, term) in one.refits.items() if is_sure or term.chance < 0.05]
        is_asked = not soft.isdisjoint(likely) if soft else is_sure
        free = refit_by_free_runs(self.found) if is_asked else None
        table = None if free is None else _Search(free).run(SILENT, most=1)
        is_sprung = table is not None and table.found and table.found[0].name.startswith(SERIES)
        return table if is_sprung else None

    def classes(
        self, rows: list[TestResult], plain: Projected
    ) -> tuple[list[int], dict[int, list[str]]]:
        """Sort candidates into classes whose members the record cannot distinguish. Return each
        class's leader (the simplest of the best), and a dict: leader -> names of the other members.
        """
        score = {i: self.schwarz(i, 1.0 - r.explained) for i, r in enumerate(rows) if r.own > 0}
        order = sorted(score, key=score.__getitem__)
        unit = {i: np.linalg.qr(plain.tried[:, self.places(i)])[0] for i in order}
        groups: list[list[int]] = []
        for i in order:
            # Two candidates are in one class if their columns span nearly the same space.
            for group in groups:
                other = unit[group[0]]
                cosines = np.linalg.svd(unit[i].T @ other, compute_uv=False)
                if unit[i].shape == other.shape and np.min(cosines) > 0.99:
                    group.append(i)
                    break
            else:
                groups.append([i])
        alike = {}
        for group in groups:
            near = [i for i in group if rows[i].explained > 0.95 * rows[group[0]].explained]
            leader = min(near, key=lambda i: (self.tried[i].rank, i))
            alike[leader] = [self.tried[i].name for i in group if i != leader]
        return list(alike), alike

    def term(
        self,
        i: int,
        row: TestResult,
        p_value: float,
        alike: list[str],
        rms: float,
        at: Point | None,
    ) -> MissingTerm:
        """Return candidate i as a row of the table. `at`: point of its refit (None: no refit)."""
        one = self.tried[i]
        c = row.c if at is None else at.c[self.places(i)]
        # The value is the amplitude of a ripple, the additional friction at rest of a Stribeck dip,
        # or the coefficient of the drive force in a compliance.
        if len(c) != one.size or np.shape(row.covariance) != (one.size, one.size):
            value, error = float(c[0]), np.inf
        elif one.kind == "wave":
            value, error = np.hypot(*c), np.sqrt(np.max(np.diag(row.covariance)))
        elif one.term == "Stribeck":
            value, error = np.sum(c), np.sqrt(np.sum(row.covariance))
        else:
            value, error = c[-1], np.sqrt(row.covariance[-1, -1])
        periods, phase = (self.point if at is None else at).periods, None
        if one.kind == "wave" and len(c) == one.size:
            middle = 2 * np.pi * float(self.ranges.centre[one.of]) / periods[one.of]
            phase = float((np.arctan2(c[1], c[0]) + middle) % (2 * np.pi))
        return MissingTerm(
            one.name,
            float(value),
            float(error),
            one.unit,
            float(periods[one.of]) if one.kind == "wave" else None,
            self.in_units(rms),
            row.own,
            float(p_value),
            False,
            at is not None,
            tuple(alike),
            phase,
        )

    @property
    def unit(self) -> str:
        """The unit of the misfit: that of the channel, or "" with several channels or weights."""
        problem = self.found.problem  # With a robust loss, `self.problem` has other weights.
        names, weight = {n for p in problem.prepared for n in p.names}, problem.weights()
        if len(names) > 1 or not np.allclose(weight[weight > 0], np.max(weight), rtol=1e-9):
            return ""
        record: Any = next(iter(self.found.records.values()))
        return channel_unit(problem.setup.machine, record, next(iter(names)))

    def in_units(self, rms: float) -> float:
        """Convert a root mean square of weighted residuals to `unit`, unless `unit` is empty."""
        if not self.unit:
            return float(rms)
        return float(rms / np.max(self.found.problem.weights()))
