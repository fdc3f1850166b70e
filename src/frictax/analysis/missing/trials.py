"""A fitted machine with candidates in it: what they do at any values, and refits with one."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import bounds, upper_bounds

from .candidates import bodies, catalogue, starts_of
from .columns import Columns, bank, columns, ranges_of, states_of_windows
from .projected import projected, without_starts
from .verdict import OWN, Judge

_PERIODS = 45
_LEAST_PERIODS = 3.0  # of a ripple in the travel of a record: fewer are a slope or a bend
_WAVES, _APART = 3, 1.2  # periods that a refit tries, which differ by so many waves of the travel
_STEPS, _FLAT = 25, 1e-4
_DAMPING, _CAREFUL = 1e-6, 30.0
_NUDGE = 1e-4  # waves over the travel
_HARDLY = 1e-3  # of the effect that starts have on the window which tells them best


@dataclasses.dataclass(frozen=True, eq=False)
class Point:
    """Fitted values, coefficients of candidates, how far the starts of each
    record's windows have moved, and the period of each body's ripple.
    """

    x: np.ndarray
    c: np.ndarray
    moved: dict[int, np.ndarray]
    periods: dict[str, float]


@dataclasses.dataclass(frozen=True, eq=False)
class Seen:
    """The columns at a point, and the derivatives by the waves over the travel of the bodies
    `waves`, whose ripple is in the model.
    """

    columns: Columns
    by_wave: np.ndarray
    waves: list[str]


class Trials:
    """The fitted machine with all candidates, of which some are `accepted` and stay in the model.

    - `tried`: the candidates, whose coefficients begin `at`; `point`: where the model stands.
    - `judge`: which residuals count; `travel` of each body [m or rad].
    """

    def __init__(self, found: FitResult) -> None:
        problem = found.problem
        self.found, self.problem = found, problem
        self.shared = found.shown
        x = np.asarray(found.x, float)
        self.ranges, self.travel = ranges_of(problem, x)
        self.tried = catalogue(found)
        self.at = starts_of(self.tried)
        states = states_of_windows(problem)
        self.has_windows = bool(states)
        self.judge = Judge(found, bool(states))
        windows = enumerate(problem.prepared if states else ())
        self.point = Point(
            x,
            np.zeros(sum(one.size for one in self.tried)),
            {i: np.zeros((len(p.weight), states)) for i, p in windows},
            dict.fromkeys(bodies(found.model), 1.0),
        )
        self.accepted: list[int] = []
        self.also: dict[str, list[float]] = {}

    # -- one evaluation

    def at_values(self, at: Point, which: int | None = None) -> Seen:
        """With the candidate `which` in the model, beside those that were accepted."""
        inside = [*self.accepted, *([] if which is None else [which])]
        waves = [self.tried[i].of for i in inside if self.tried[i].kind == "wave"]
        at_periods = lambda p: columns(  # noqa: E731
            self.problem, self.tried, at.x, at.c, at.moved, p, self.ranges
        )
        seen = at_periods(at.periods)
        by_wave = []
        for body in waves:  # the derivative by the number of waves over the travel
            change = {body: 1.0 / (1.0 / at.periods[body] + _NUDGE / self.travel[body])}
            then = at_periods({**at.periods, **change})
            slope = (then.residuals - seen.residuals) / _NUDGE
            # a run that comes to no end there says nothing of the period
            by_wave.append(slope if np.all(np.isfinite(slope)) else np.zeros_like(slope))
        return Seen(seen, np.reshape(by_wave, (len(waves), len(seen.residuals))).T, waves)

    def places(self, which: int) -> list[int]:
        return list(range(self.at[which], self.at[which] + self.tried[which].size))

    def tries(self, which: int) -> float:
        one = self.tried[which]
        return 1.0 if one.kind != "wave" else _PERIODS * (2.0 + self.turns(one.of))

    def with_accepted(self, seen: Seen) -> Columns:
        own = [j for i in self.accepted for j in self.places(i)]
        all_of = seen.columns
        fitted = np.column_stack([all_of.fitted, all_of.tried[:, own], seen.by_wave])
        return dataclasses.replace(all_of, fitted=fitted)

    def choose_periods(self) -> None:
        """The period of each ripple that would explain most: of 90 over the travel, at least three
        periods long, for what turns on and on also of 45 over a turn, and once more between these;
        and the next best two of these, which a refit tries too.
        """
        for i, one in enumerate(self.tried):
            if one.kind != "wave" or i in self.accepted or not self.travel[one.of] > 0:
                continue
            travel, many = self.travel[one.of], np.arange(1, _PERIODS + 1)
            least = _LEAST_PERIODS / travel
            grids = [least + (many - 1.0) / travel, least + (many - 0.5) / travel]
            if self.turns(one.of):
                grids.append(np.maximum(many / (2 * np.pi), least))
            tried = np.concatenate(grids)
            falls = np.concatenate([self.falls(one.of, grid) for grid in grids])
            best: list[float] = []
            for f in tried[np.argsort(-falls)]:
                if all(abs(f - other) > _APART / travel for other in best):
                    best.append(float(f))
            near = np.maximum(best[0] + np.linspace(-1.0, 1.0, _PERIODS) / travel, least)
            finer = self.falls(one.of, near)
            if np.max(finer) > np.max(falls):
                best[0] = float(near[np.argmax(finer)])
            self.point.periods[one.of] = 1.0 / best[0]
            self.also[one.of] = [1.0 / f for f in best[1:_WAVES]]

    def turns(self, body: str) -> bool:
        """Whether it turns twice and more."""
        return bodies(self.found.model)[body] and self.travel[body] > 4 * np.pi

    def falls(self, body: str, frequencies: np.ndarray) -> Float[np.ndarray, " m"]:
        """How much a ripple of each of `frequencies` explains."""
        many = jnp.asarray(1.0 / frequencies)
        parts = [
            np.asarray(
                bank(
                    self.problem,
                    self.tried,
                    jnp.asarray(self.point.x),
                    jnp.asarray(self.point.c),
                    self.point.moved.get(i),
                    {b: jnp.asarray(v) for b, v in self.point.periods.items()},
                    self.ranges,
                    i,
                    body,
                    many,
                )[0]
            )
            for i in range(len(self.problem.prepared))
        ]
        waves = np.concatenate(parts, axis=1)
        seen = self.with_accepted(self.at_values(self.point))
        trial = dataclasses.replace(seen, tried=np.concatenate(list(waves), axis=1))
        clean = projected(trial, self.judge.counted)
        falls = []
        for k in range(len(waves)):
            g = clean.tried[:, 2 * k : 2 * k + 2]
            if not (np.isfinite(g).all() and np.min(clean.own[2 * k : 2 * k + 2]) > OWN):
                falls.append(0.0)
                continue
            q, _ = np.linalg.qr(g)
            falls.append(float(np.sum((q.T @ clean.residuals) ** 2)))
        return np.array(falls)

    # -- a refit

    def refit(self, which: int) -> tuple[float, Point, Seen]:
        """The sum of squares with the candidate in the model, where it is least, and the columns
        there.
        """
        one = self.tried[which]
        best = self.refit_from(which, self.point)
        for period in self.also.get(one.of, []) if one.kind == "wave" else []:
            periods = {**self.point.periods, one.of: period}
            new = self.refit_from(which, dataclasses.replace(self.point, periods=periods))
            best = new if new[0] < best[0] else best
        return best

    def settle(self) -> None:
        """Let the starts of windows go where they fit best, which were read from the record: else
        a refit with any candidate would gain by that alone.
        """
        if self.has_windows:
            _, self.point, _ = self.refit_from(None, self.point)

    def refit_from(self, which: int | None, at: Point) -> tuple[float, Point, Seen]:
        """Likewise, from `at`; None: without a candidate."""
        inside = [*self.accepted, *([] if which is None else [which])]
        own = [j for i in inside for j in self.places(i)]
        seen = self.at_values(at, which)
        p, damping, cost = int(np.sum(self.shared)), _DAMPING, self.cost(seen.columns)
        for turn in range(_STEPS):
            by_wave = seen.by_wave if turn else seen.by_wave[:, :0]  # no wave yet
            parts = seen.columns.fitted, seen.columns.tried[:, own], by_wave
            step, follow = self.step(seen.columns, np.column_stack(parts), damping)
            x, c, periods = at.x.copy(), at.c.copy(), dict(at.periods)
            x[self.shared] = self.bounded(x[self.shared], step[:p])
            c[own] += step[p : p + len(own)]
            for body, more in zip(seen.waves, step[p + len(own) :], strict=False):
                waves = self.travel[body] / periods[body] + more
                periods[body] = self.travel[body] / max(waves, _LEAST_PERIODS)
            for i in inside:
                if self.tried[i].size == 1:
                    k = self.at[i]
                    c[k] = np.clip(c[k], self.tried[i].least, self.tried[i].most)
            moved = {i: m + follow[i] for i, m in at.moved.items()}
            new = Point(x, c, moved, periods)
            then = self.at_values(new, which)
            now = self.cost(then.columns)
            told = (then.columns.fitted, then.columns.tried[:, own], then.by_wave)
            if now < cost and all(np.all(np.isfinite(x)) for x in told):
                done = cost - now < _FLAT * cost and (turn > 0 or not seen.waves)
                at, seen, cost = new, then, now
                damping /= _CAREFUL
                if done:
                    break
            else:
                damping *= _CAREFUL
                if damping > 1e3:
                    break
        return cost, at, seen

    def bounded(self, x: np.ndarray, step: np.ndarray) -> np.ndarray:
        """`x` and a step, which goes at most nine tenths of the way to a bound."""
        unknowns = self.problem.unknowns
        low, high = (f(unknowns)[self.shared] for f in (bounds, upper_bounds))
        with np.errstate(invalid="ignore"):
            low = np.where(np.isfinite(low), low + 0.1 * (x - low), -np.inf)
            high = np.where(np.isfinite(high), high - 0.1 * (high - x), np.inf)
        return np.clip(x + step, low, high)

    def cost(self, seen: Columns) -> float:
        r = seen.residuals[self.judge.counted]
        if self.has_windows:
            starts, window = seen.starts[self.judge.counted], seen.window[self.judge.counted]
            r = without_starts(r[:, None], starts, window)[:, 0]
        return float(r @ r)

    def step(
        self, seen: Columns, j: np.ndarray, damping: float
    ) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """That of Levenberg and Marquardt; starts follow."""
        on = self.judge.counted
        r, j = seen.residuals[on], j[on]
        both = np.column_stack([r, j])
        if self.has_windows:
            both = without_starts(both, seen.starts[on], seen.window[on])
        norms = np.linalg.norm(both[:, 1:], axis=0)
        norms = np.where(norms > 0, norms, 1.0)
        a = both[:, 1:] / norms
        step = -np.linalg.solve(a.T @ a + damping * np.eye(a.shape[1]), a.T @ both[:, 0]) / norms
        follow, first, rest = {}, 0, r + j @ step
        starts, window = seen.starts[on], seen.window[on]
        sizes = [np.linalg.norm(starts[window == w], axis=0) for w in np.unique(window)]
        scale = np.maximum(np.max(sizes, axis=0), 1e-300) if sizes else 1.0
        for i, moved in self.point.moved.items():
            out = np.zeros_like(moved)
            for w in range(len(moved)):  # a start that a window hardly tells stays
                mine = window == first + w
                u, d, v = np.linalg.svd(starts[mine] / scale, full_matrices=False)
                parts = np.divide(u.T @ rest[mine], d, out=np.zeros_like(d), where=d > _HARDLY)
                out[w] = -(v.T @ parts) / scale
            follow[i] = out
            first += len(moved)
        return step, follow
