"""Which term a fitted machine lacks, by a score test through the simulation."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import bounds, upper_bounds
from frictax.fitting.problem.setup import channel_unit

from .candidates import Candidate, bodies, catalogue, starts_of
from .columns import Columns, bank, columns, ranges_of, states_of_windows
from .in_series import SERIES, in_series
from .table import Missing, MissingTerm
from .verdict import OWN, SURE, UNTOLD, Judge, Projected, Told, chance_of, projected, without_starts

_ALIKE = 0.99  # of the cosine of two columns, which a record cannot tell apart
_PERIODS = 45
_WAVES, _APART = 3, 1.2  # periods that a refit tries, which differ by so many waves of the travel
_REFITTED, _STEPS, _FLAT, _TERMS = 3, 25, 1e-4, 3
_DAMPING, _CAREFUL = 1e-6, 30.0
_NUDGE = 1e-4  # waves over the travel
_AT_BOUND = 1e-9
_HARDLY = 1e-3  # of the effect that starts have on the window which tells them best
_AS_MUCH = 0.95  # of the best of a class
_NEARLY = 10.0  # below which Kass, Raftery, JASA 90 (1995), call evidence less than very strong


def missing(found: FitResult) -> Missing:
    """Which term the fitted machine lacks: `Missing`.

    Of machines on records, by any objective; a sweep says `lack-of-fit` by itself.
    """
    if found.of_sweep:
        raise ValueError(
            "`missing` asks what the simulation of a machine lacks, and this fit is of a law to a"
            " sweep. Its `notices` say lack of fit; compare laws by `fx.compare(sweep)`."
        )
    return _Search(found).run()


@dataclasses.dataclass(frozen=True, eq=False)
class _Point:
    """Fitted values, coefficients of candidates, how far the starts of each
    record's windows have moved, and the period of each body's ripple.
    """

    x: np.ndarray
    c: np.ndarray
    moved: dict[int, np.ndarray]
    periods: dict[str, float]


@dataclasses.dataclass(frozen=True, eq=False)
class _Seen:
    """The columns at a point, and the derivatives by the waves over the travel of the bodies
    `waves`, whose ripple is in the model.
    """

    columns: Columns
    by_wave: np.ndarray
    waves: list[str]


class _Search:
    """Rounds of the table, each with what was found before in the model."""

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
        self.point = _Point(
            x,
            np.zeros(sum(one.size for one in self.tried)),
            {i: np.zeros((len(p.weight), states)) for i, p in windows},
            dict.fromkeys(bodies(found.model), 1.0),
        )
        self.accepted: list[int] = []
        self.also: dict[str, list[float]] = {}

    # -- one evaluation

    def at_values(self, at: "_Point", which: int | None = None) -> "_Seen":
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
            by_wave.append((then.residuals - seen.residuals) / _NUDGE)
        return _Seen(seen, np.reshape(by_wave, (len(waves), len(seen.residuals))).T, waves)

    def places(self, which: int) -> list[int]:
        return list(range(self.at[which], self.at[which] + self.tried[which].size))

    def tries(self, which: int) -> float:
        one = self.tried[which]
        return 1.0 if one.kind != "wave" else _PERIODS * (2.0 + self.turns(one.of))

    def with_accepted(self, seen: "_Seen") -> Columns:
        own = [j for i in self.accepted for j in self.places(i)]
        all_of = seen.columns
        fitted = np.column_stack([all_of.fitted, all_of.tried[:, own], seen.by_wave])
        return dataclasses.replace(all_of, fitted=fitted)

    # -- the table

    def table(self, seen: Columns) -> tuple[list[Told], Projected, float]:
        """Of each candidate, at `seen` with all fitted columns in it; and how many residuals would
        not remember each other with the best of them.
        """
        verdicts = self.judge.at(seen)
        out = []
        for i, one in enumerate(self.tried):
            if i in self.accepted:
                out.append(UNTOLD)
                continue
            this = verdicts.judged(self.places(i))
            if one.size == 1 and not one.least - _AT_BOUND <= this.c[0] <= one.most + _AT_BOUND:
                this = UNTOLD
            out.append(this)
        best = max(range(len(out)), key=lambda i: out[i].fall)
        share = verdicts.share_remembered(self.places(best) if out[best].fall > 0 else [])
        return out, verdicts.plain, max(1.0 / share, 8.0)

    def judged_at(self, which: int, seen: "_Seen", c: np.ndarray) -> Told:
        """The candidate where it was fitted: against what would be left without it, there."""
        at = self.places(which)
        all_of = self.with_accepted(seen)
        tried = all_of.tried[:, at]
        alone = dataclasses.replace(all_of, residuals=all_of.residuals - tried @ c[at], tried=tried)
        return self.judge.at(alone).judged(list(range(len(at))))

    def choose_periods(self) -> None:
        """The period of each ripple that would explain most: of 90 over the travel, for what turns
        on and on also of 45 over a turn, and once more between these; and the next best two of
        these, which a refit tries too.
        """
        for i, one in enumerate(self.tried):
            if one.kind != "wave" or i in self.accepted or not self.travel[one.of] > 0:
                continue
            travel, many = self.travel[one.of], np.arange(1, _PERIODS + 1)
            grids = [(many + 0.5) / travel, (many + 1.0) / travel]
            if self.turns(one.of):
                grids.append(many / (2 * np.pi))
            tried = np.concatenate(grids)
            falls = np.concatenate([self.falls(one.of, grid) for grid in grids])
            best: list[float] = []
            for f in tried[np.argsort(-falls)]:
                if all(abs(f - other) > _APART / travel for other in best):
                    best.append(float(f))
            near = np.maximum(best[0] + np.linspace(-1.0, 1.0, _PERIODS) / travel, 0.2 / travel)
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

    def refit(self, which: int) -> tuple[float, "_Point", "_Seen"]:
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

    def refit_from(self, which: int, at: "_Point") -> tuple[float, "_Point", "_Seen"]:
        """Likewise, from `at`."""
        inside = [*self.accepted, which]
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
                periods[body] = 1.0 / (1.0 / periods[body] + more / self.travel[body])
            for i in inside:
                if self.tried[i].size == 1:
                    k = self.at[i]
                    c[k] = np.clip(c[k], self.tried[i].least, self.tried[i].most)
            moved = {i: m + follow[i] for i, m in at.moved.items()}
            new = _Point(x, c, moved, periods)
            then = self.at_values(new, which)
            now = self.cost(then.columns)
            if np.isfinite(now) and now < cost:
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

    # -- all rounds

    def run(self) -> Missing:
        taken, terms, untold, start = [], [], (), np.nan
        for turn in range(_TERMS):
            self.choose_periods()
            here = self.at_values(self.point)
            rows, plain, self.independent = self.table(self.with_accepted(here))
            count = len(plain.residuals)
            order, alike = self.classes(rows, plain)
            tries = np.array([self.tries(i) for i in order])
            each = self.judge.chances([rows[i] for i in order], tries)
            chances = dict(zip(order, each.tolist(), strict=True))
            sure = [i for i in order if chances[i] < SURE]
            refits, leaves_white = {}, False
            for i in dict.fromkeys(order[:_REFITTED] + sure[:_REFITTED]):
                cost, at, seen = self.refit(i)
                row = self.judged_at(i, seen, at.c)
                leaves_white |= row.is_white
                first, second, third = row.chances
                each = self.tries(i) * first, second / self.judge.limit, third
                chance = min(len(order) * max(each), 1.0)
                rms = float(np.sqrt(cost / count))
                refits[i] = rms, at, self.term(i, row, chance, alike[i], rms, at)
            # chance tells whether something is missing, and the misfit what
            is_told = any(term.is_significant for _, _, term in refits.values())
            best, as_good = self.plainest({i: rms for i, (rms, _, _) in refits.items()})
            best = best if is_told else None
            if turn == 0:
                start = float(np.sqrt(self.cost(here.columns) / count))
                untold = tuple(self.tried[i].name for i, row in enumerate(rows) if row.own <= OWN)
                terms = [
                    refits[i][2]
                    if i in refits
                    else self.term(i, rows[i], chances[i], alike[i], rows[i].rms, None)
                    for i in order
                ]
            if turn == 0 and not leaves_white:
                cost = self.cost(here.columns)
                sprung = self.sprung(cost, min(rms for rms, _, _ in refits.values()), len(order))
                if sprung is not None:
                    taken = [sprung]
                    break
            if best is None:
                break
            _, self.point, chosen = refits[best]
            self.accepted.append(best)
            alike = (*chosen.alike, *(self.tried[i].name for i in as_good))
            taken.append(dataclasses.replace(chosen, alike=alike))
        terms.sort(key=lambda term: term.misfit)
        start = self.in_units(start)
        left = taken[-1].misfit if taken else start
        return Missing(tuple(terms), tuple(taken), start, left, self.unit, untold, self.found)

    def schwarz(self, i: int, square: float) -> float:
        """Schwarz's criterion, over the number of residuals that do not remember each other, of a
        model with the candidate which leaves a mean square.
        """
        n = self.independent
        return float(np.log(max(square, 1e-300)) + self.tried[i].numbers * np.log(n) / n)

    def plainest(self, refits: dict[int, float]) -> tuple[int, list[int]]:
        """Of the candidates with these root mean squares the best by Schwarz's criterion, or a
        plainer one that is nearly as good; and those that are as good as that.
        """
        worth = {i: self.schwarz(i, rms**2) for i, rms in refits.items()}
        least = min(worth.values())
        near = [i for i in worth if self.independent * (worth[i] - least) < _NEARLY]
        best = min(near, key=lambda i: (self.tried[i].rank, worth[i]))
        return best, [i for i in near if i != best]

    def sprung(self, cost: float, least: float, count: int) -> MissingTerm | None:
        """A stiffness in series with a body, where that explains clearly more than the best of
        `count` candidates, which leaves `least`, and than chance.
        """
        n, best = int(np.sum(self.judge.counted)), None
        for one in in_series(self.found):
            if best is None or one.cost < best.cost:
                best = one
        if best is None:
            return None
        independent = max(1.0 / self.judge.share_remembered(best.found.full_residuals[:n]), 8.0)
        k, dof = best.numbers, independent - len(best.found.x)
        gain = independent * np.log(n * least**2 / best.cost) - k * np.log(independent)
        chance = chance_of((cost - best.cost) / best.cost * dof / k, k, dof) if dof > 0 else 1.0
        if gain < _NEARLY or (count + 1) * chance >= SURE:
            return None
        rms = self.in_units(float(np.sqrt(best.cost / n)))
        name, value = f"{SERIES}{best.body}", best.stiffness
        chance = (count + 1) * chance
        return MissingTerm(
            name, value, best.error, best.unit, None, rms, 1.0, chance, True, True, ()
        )

    def classes(self, rows: list[Told], plain: Projected) -> tuple[list[int], dict[int, list[str]]]:
        """The leaders of classes, best first, and the names of the others. Of those that explain as
        much the plainest leads.
        """
        worth = {i: self.schwarz(i, 1.0 - r.fall) for i, r in enumerate(rows) if r.own > 0}
        order = sorted(worth, key=worth.__getitem__)
        unit = {i: _unit(plain.tried[:, self.places(i)]) for i in order}
        groups: list[list[int]] = []
        for i in order:
            mine = (g for g in groups if _cosine(unit[i], unit[g[0]]) > _ALIKE)
            group = next(mine, None)
            if group is None:
                groups.append([i])
            else:
                group.append(i)
        alike = {}
        for group in groups:
            near = [i for i in group if rows[i].fall > _AS_MUCH * rows[group[0]].fall]
            leader = min(near, key=lambda i: (self.tried[i].rank, i))
            alike[leader] = [self.tried[i].name for i in group if i != leader]
        return list(alike), alike

    def term(
        self,
        i: int,
        row: Told,
        chance: float,
        alike: list[str],
        rms: float,
        at: "_Point | None",
    ) -> MissingTerm:
        """`at`: where it was fitted."""
        one = self.tried[i]
        c = row.c if at is None else at.c[self.places(i)]
        value, error = _amount(one, c, row.covariance)
        periods = self.point.periods if at is None else at.periods
        return MissingTerm(
            one.name,
            value,
            error,
            one.unit,
            float(periods[one.of]) if one.kind == "wave" else None,
            self.in_units(rms),
            row.own,
            float(chance),
            bool(chance < SURE),
            at is not None,
            tuple(alike),
        )

    @property
    def unit(self) -> str:
        """The unit of the misfit: that of the only channel, else none."""
        names = {n for p in self.problem.prepared for n in p.names}
        if len(names) > 1:
            return ""
        record: Any = next(iter(self.found.records.values()))
        return channel_unit(self.problem.setup.machine, record, next(iter(names)))

    def in_units(self, rms: float) -> float:
        """A root mean square of weighted residuals in `unit`, where there is one weight."""
        if not self.unit:
            return float(rms)
        weight = self.problem.weights()
        return float(rms / np.mean(weight[weight > 0]))


def _amount(one: Candidate, c: np.ndarray, covariance: np.ndarray) -> tuple[float, float]:
    """Its value and standard error: of a ripple the amplitude, of a dip what friction at rest has
    more, of a compliance what a drive's force bends.
    """
    if len(c) != one.size or np.shape(covariance) != (one.size, one.size):
        return float(c[0]), np.inf
    errors = np.sqrt(np.diag(covariance))
    if one.kind == "wave":
        return float(np.hypot(*c)), float(np.max(errors))
    if one.term == "Stribeck":
        return float(np.sum(c)), float(np.sqrt(np.sum(covariance)))
    return float(c[-1]), float(errors[-1])


def _unit(columns: np.ndarray) -> np.ndarray:
    q, _ = np.linalg.qr(columns)
    return q


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Of the largest angle between two spans of as many columns, else 0."""
    if a.shape[1] != b.shape[1]:
        return 0.0
    return float(np.min(np.linalg.svd(a.T @ b, compute_uv=False)))
