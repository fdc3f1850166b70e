"""Which term a fitted machine lacks, by a score test through the simulation."""

import dataclasses
from collections.abc import Collection
from typing import Any

import numpy as np

from frictax.annotations import Checked
from frictax.fitting import FitResult
from frictax.fitting.problem.setup import channel_unit
from frictax.fitting.result.step_error import long_steps, with_shorter_steps
from frictax.fitting.result.worth import channels
from frictax.progress import SILENT, Progress, Work, watched

from .candidates import Candidate
from .chances import chance_of
from .columns import Columns
from .in_series import SERIES, by_free_runs, in_series
from .projected import Projected
from .table import Missing, MissingTerm
from .trials import Point, Seen, Trials
from .verdict import AS_MUCH, OWN, SURE, UNTOLD, Told

_ALIKE = 0.99  # of the cosine of two columns, which a record cannot tell apart
_REFITTED, _TERMS = 3, 3
_MADE = "missing_table"  # the entry of a fit's `vars` that holds its table
_FROM_ZERO = 2.58  # [standard errors] half of a 99 % interval, which must not contain 0
_PROMISED = 0.5  # least gain of a refit, as a share of what its derivatives promise
_NEARLY = 10.0  # below which Kass, Raftery, JASA 90 (1995), call evidence less than very strong


def missing(found: FitResult, *, progress: Checked[bool | Progress] = False) -> Missing:
    """Which term the fitted machine lacks: `Missing`.

    Of machines on records, by any objective; a sweep says `lack-of-fit` by itself. `progress` as in
    `fit`.

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
            "`missing` asks what the simulation of a machine lacks, and this fit is of a law to a"
            " sweep. Its `notices` say lack of fit; compare laws by `fx.compare(sweep)`."
        )
    made = vars(found)  # what a print of the fit has found is not searched again
    if _MADE not in made:
        with watched(progress, "Looking for what is missing") as work:
            made[_MADE] = _Search(_in_short_steps(found)).run(work)
    return made[_MADE]


def _in_short_steps(found: FitResult) -> FitResult:
    """`found` with the steps that its notice asks for: what long steps do to a simulation is no
    term of the machine.
    """
    engine = found.problem.engine
    for notice in long_steps(found):
        engine = with_shorter_steps(engine, notice)
    return dataclasses.replace(found, problem=dataclasses.replace(found.problem, engine=engine))


class _Search(Trials):
    """Rounds of the table, each with what was found before in the model."""

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
            out.append(this if one.is_possible(this.c) else UNTOLD)
        best = max(range(len(out)), key=lambda i: out[i].fall)
        share = verdicts.share_remembered(self.places(best) if out[best].fall > 0 else [])
        return out, verdicts.plain, max(1.0 / share, 8.0)

    def judged_at(self, which: int, seen: Seen, c: np.ndarray, before: Columns) -> Told:
        """The candidate where it was fitted: against what would be left without it, there by its
        columns, and by the refit itself against `before`.
        """
        at = self.places(which)
        all_of = self.with_accepted(seen)
        tried = all_of.tried[:, at]
        alone = dataclasses.replace(all_of, residuals=all_of.residuals - tried @ c[at], tried=tried)
        gained = self.judge.by_refit(before, dataclasses.replace(all_of, tried=tried))
        return self.judge.at(alone).judged(list(range(len(at))), gained)

    # -- all rounds

    def run(self, work: Work, most: int = _TERMS) -> Missing:
        taken, terms, untold, start = [], [], (), np.nan
        self.settle()
        rounds = {f"round {k + 1}": 2.0**-k for k in range(most)}  # there may be one
        for turn, tell in enumerate(work.parts(rounds).values()):
            tell(f"{len(self.tried)} candidates")
            self.choose_periods()
            here = self.at_values(self.point)
            before = self.with_accepted(here)
            if not np.all(np.isfinite(before.residuals)):
                raise ValueError(
                    "`missing` asks what the misfit at the fitted values would become, and there is"
                    " none: what is predicted there is not finite. Fit anew with the numbers that"
                    " lie on their bounds held, or from another start."
                )
            rows, plain, self.independent = self.table(before)
            count = len(plain.residuals)
            order, alike = self.classes(rows, plain)
            tries = np.array([self.tries(i) for i in order])
            each, passing = self.judge.chances([rows[i] for i in order], tries)
            chances = dict(zip(order, each.tolist(), strict=True))
            sure = [i for i in order if chances[i] < SURE]
            refits, leaves_white = {}, False
            square = float(plain.residuals @ plain.residuals)
            first = dict.fromkeys([*order[:_REFITTED], *sure[:_REFITTED]])
            for k, i in enumerate(best_of := list(dict.fromkeys([*first, *sure]))):
                if i not in first and any(term.is_significant for _, _, term in refits.values()):
                    break
                cost, at, seen = self.refit(i)
                row = self.judged_at(i, seen, at.c, before)
                leaves_white |= row.is_white
                first_chance, second, third = row.chances
                alone = max(self.tries(i) * first_chance, second / self.judge.limit)
                chance = min(max(len(order) * alone, max(passing, 1) * third), 1.0)
                rms = float(np.sqrt(cost / count))
                term = self.term(i, row, chance, alike[i], rms, at)
                holds = (
                    chance < SURE
                    and abs(term.value) > _FROM_ZERO * term.standard_error
                    and self.tried[i].is_possible(at.c[self.places(i)])
                    and square - cost > _PROMISED * rows[i].fall * square
                )
                refits[i] = rms, at, dataclasses.replace(term, is_significant=holds)
                tell.count(k + 1, len(best_of), f"candidates fitted: {self.tried[i].name}")
            named = {i: rms for i, (rms, _, term) in refits.items() if term.is_significant}
            best, as_good = self.plainest(named) if named else (None, [])
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
                tell("a body in two, with a spring between")
                cost = self.cost(here.columns)
                sprung = self.sprung(
                    cost, {i: rms for i, (rms, _, _) in refits.items()}, len(order)
                )
                if sprung is not None:
                    taken = [sprung]
                    break
                table = None if best is None else self.sprung_on_windows(refits)
                if table is not None:
                    terms.sort(key=lambda term: term.misfit)
                    return dataclasses.replace(
                        table, terms=tuple(terms), untold=untold, of=self.found
                    )
            if best is None:
                break
            _, self.point, chosen = refits[best]
            self.accepted.append(best)
            alike = (*chosen.alike, *(self.tried[i].name for i in as_good))
            taken.append(dataclasses.replace(chosen, alike=alike))
        terms.sort(key=lambda term: term.misfit)
        start = self.in_units(start)
        left = taken[-1].misfit if taken else start
        of = self.found
        misfits = channels(of.problem, of.records, of.full_residuals, of.x)
        above = [c.above for c in misfits if c.is_above_noise and c.noise > 0]
        ratio = max(above, default=np.nan)
        return Missing(tuple(terms), tuple(taken), start, left, self.unit, untold, of, ratio)

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

    def sprung(self, cost: float, refits: dict[int, float], count: int) -> MissingTerm | None:
        """A stiffness in series with a body, where that explains clearly more than the best of
        `count` candidates, of which the best leave `refits`, and than chance.
        """
        n, best = int(np.sum(self.judge.counted)), None
        for one in in_series(self.found):
            if best is None or one.cost < best.cost:
                best = one
        if best is None:
            return None
        independent = max(1.0 / self.judge.share_remembered(best.found.full_residuals[:n]), 8.0)
        k, dof, each = best.numbers, independent - len(best.found.x), np.log(independent)
        rivals = [
            independent * np.log(n * rms**2 / best.cost) + self.tried[i].numbers * each
            for i, rms in refits.items()
        ]
        chance = chance_of((cost - best.cost) / best.cost * dof / k, k, dof) if dof > 0 else 1.0
        if min(rivals) - k * each < _NEARLY or (count + 1) * chance >= SURE:
            return None
        rms = self.in_units(float(np.sqrt(best.cost / n)))
        name, value = f"{SERIES}{best.body}", best.stiffness
        chance = (count + 1) * chance
        return MissingTerm(
            name, value, best.error, best.unit, None, rms, 1.0, chance, True, True, ()
        )

    def sprung_on_windows(self, refits: Collection[int]) -> Missing | None:
        """What free runs tell of a fit on windows, where they name a stiffness in series; looked at
        where a compliance is among the best candidates, or none can be seen.
        """
        bends = {i for i, one in enumerate(self.tried) if one.kind == "compliance"}
        free = None if bends and bends.isdisjoint(refits) else by_free_runs(self.found)
        table = None if free is None else _Search(free).run(SILENT, most=1)
        is_sprung = table is not None and table.found and table.found[0].name.startswith(SERIES)
        return table if is_sprung else None

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
            near = [i for i in group if rows[i].fall > AS_MUCH * rows[group[0]].fall]
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
        at: Point | None,
    ) -> MissingTerm:
        """`at`: where it was fitted."""
        one = self.tried[i]
        c = row.c if at is None else at.c[self.places(i)]
        value, error = _amount(one, c, row.covariance)
        periods, phase = (self.point if at is None else at).periods, None
        if one.kind == "wave" and len(c) == one.size:
            middle = 2 * np.pi * float(self.ranges.centre[one.of]) / periods[one.of]
            phase = float((np.arctan2(c[1], c[0]) + middle) % (2 * np.pi))
        return MissingTerm(
            one.name,
            value,
            error,
            one.unit,
            float(periods[one.of]) if one.kind == "wave" else None,
            self.in_units(rms),
            row.own,
            float(chance),
            False,
            at is not None,
            tuple(alike),
            phase,
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
