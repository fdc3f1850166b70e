"""Cross-validation of a structure: refit without a part of the records, and predict this part."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import Problem, bounds, upper_bounds
from frictax.fitting.problem.readings import allowed_cutoff
from frictax.interrupts import Workers
from frictax.measurements import Record
from frictax.measurements.filters import smooth
from frictax.measurements.units import POSITION_OF, VELOCITY_OF, split_channel

from ..errors.linearization import Samples
from ..errors.resampling import run_search, scale_weights

_STEPS = 30  # largest number of iterations of a refit
_LEFT_OUT = {"repeats": "a repeat", "speeds": "a band of speeds", "records": "a record"}

# A division into folds: for each piece of the records, the number of its fold; names of the folds.
Fold = tuple[Int[np.ndarray, " u"], tuple[str, ...]]


class Folds:
    """Division of records into pieces and folds. A fold is a set of pieces that a refit leaves out;
    a piece is a window of the objective, or half a second of a record. In a short record the pieces
    are shorter, so that it has at least `parts` of them.

    - `record`, `place`, `speed` (u,): for each piece the number of its record, its mid-time as a
      fraction of the record's duration, and its median speed in `unit`.
    - `piece_of_samples`: for each record an array: sample -> number of the piece that contains it.
    """

    def __init__(
        self, problem: Problem, records: Mapping[str, Record], cutoff: float, parts: int
    ) -> None:
        each, self.unit = speeds(list(records.values()), cutoff)
        record, place, speed, self.piece_of_samples = [], [], [], []
        for i, (r, prepared) in enumerate(zip(records.values(), problem.prepared, strict=True)):
            rows = getattr(prepared, "rows", None)
            usual = max(round(0.5 * r.rate), 2)
            shortest = max(min(usual, (r.n - 1) // parts), 1)
            size = rows.shape[1] - 1 if rows is not None else shortest
            count = max((r.n - 1) // size, 1)
            # The first sample of a window has weight 0, and it belongs to the previous window.
            at = np.clip((np.arange(r.n) - 1) // size, 0, count - 1)
            self.piece_of_samples.append(len(record) + at)
            record += [i] * count
            place += [(j + 0.5) / count for j in range(count)]
            speed += [float(np.median(each[i][at == j])) for j in range(count)]
        self.record, self.place, self.speed = map(np.asarray, (record, place, speed))

    def piece_of_residuals(self, problem: Problem) -> Int[np.ndarray, " m"]:
        """Return the number of the piece that contains each residual of `problem`, as an array."""
        pieces = [x.astype(float) for x in self.piece_of_samples]
        return Samples(problem).spread_out(pieces).astype(int)

    def repeats(self, parts: int) -> Fold:
        """Return folds. Each fold leaves out one of `parts` equal parts of one record."""
        return _number_folds(
            self.record * parts + np.floor(self.place * parts).astype(int),
            lambda f: f"part {f % parts + 1} of {parts}",
        )

    def records(self, labels: Sequence[str]) -> Fold:
        """Return folds. Each fold leaves out one whole record."""
        return _number_folds(self.record, lambda f: labels[f])

    def bands(self, count: int) -> Fold:
        """Return folds. Each fold leaves out the pieces in one of `count` bands of speed."""
        band = natural_classes(self.speed, count)

        def name(b: int) -> str:
            mine = self.speed[band == b]
            return f"{mine.min():.3g} to {mine.max():.3g} {self.unit}"

        return _number_folds(band, name)


def speeds(records: Sequence[Record], cutoff: float) -> tuple[list[Float[np.ndarray, " _"]], str]:
    """Return a list of the machine's speed at each sample, one array per record, and the unit. The
    speed is |v| of a single body, or the mean of |v|/max|v| over several bodies.
    """
    found = [{b: np.abs(v) for b, v in body_speeds(r, cutoff).items()} for r in records]
    if all(len(here) == 1 for here in found):
        turns = all(r.units[n].rotational for r in records for n in r.outputs if n in r.units)
        return [next(iter(here.values())) for here in found], "rad/s" if turns else "m/s"
    highest = {
        b: max(float(here[b].max()) for here in found if b in here) or 1.0
        for b in dict.fromkeys(b for here in found for b in here)
    }
    return [
        np.mean([v / highest[b] for b, v in here.items()], axis=0) for here in found
    ], "of the highest speeds"


def body_speeds(record: Record, cutoff: float | None) -> dict[str, Float[np.ndarray, " n"]]:
    """Return a dict: body -> its velocity [m/s or rad/s], filtered at `cutoff` [Hz]. If the record
    does not measure a motion, return the time derivatives of all outputs.
    """
    out, cutoff = {}, allowed_cutoff(record, cutoff)
    places = {*VELOCITY_OF, *POSITION_OF}
    moving = [n for n in record.outputs if split_channel(n)[1] in places] or [*record.outputs]
    for name in moving:
        body, variable = split_channel(name)
        smoothed = smooth(record.t, record.outputs[name], cutoff)
        out[body] = smoothed.x if variable in POSITION_OF else smoothed.v
    return out


def sliding_speed(
    ends: tuple[str, str | None], speeds: Mapping[str, np.ndarray]
) -> Float[np.ndarray, " n"] | None:
    """Return the relative velocity of a contact's two bodies; None if it is not measured."""
    bodies = [end.split(".")[0] for end in ends if end is not None]
    if not all(body in speeds for body in bodies):
        return None
    return speeds[bodies[0]] - (speeds[bodies[1]] if len(bodies) == 2 else 0.0)


def natural_classes(values: Float[np.ndarray, " n"], count: int) -> Int[np.ndarray, " n"]:
    """Divide values into `count` classes with the smallest sum of squares within classes. Return
    the number of the class of each value; class 0 has the lowest values.

    **Source:** W. D. Fisher, "On grouping for maximum homogeneity", Journal of the American
    Statistical Association 53 (1958).

    >>> import numpy as np
    >>> natural_classes(np.array([1.0, 5.1, 1.1, 9.0, 5.0, 9.2]), 3).tolist()
    [0, 1, 0, 2, 1, 2]
    """
    order = np.argsort(values, kind="stable")
    x = values[order] - np.mean(values)
    n, count = x.size, min(count, np.unique(x).size)
    sums, squares = (np.concatenate([[0.0], np.cumsum(a)]) for a in (x, x**2))
    # within[i, j]: sum of squared deviations of sorted values i to j - 1 from their mean.
    size = np.arange(n + 1) - np.arange(n + 1)[:, None]
    within = squares - squares[:, None] - (sums - sums[:, None]) ** 2 / np.maximum(size, 1)
    within = np.where(size > 0, within, np.inf)
    least, cuts = within[0], []
    for _ in range(count - 1):
        cuts.append(np.argmin(least[:, None] + within, axis=0))
        least = np.min(least[:, None] + within, axis=0)
    out, last = np.zeros(n, int), n
    for k in reversed(range(1, count)):
        first = int(cuts[k - 1][last])
        out[order[first:last]], last = k, first
    return out


def _number_folds(fold: np.ndarray, name: Callable[[int], str]) -> Fold:
    present, number = np.unique(fold, return_inverse=True)
    return number, tuple(name(int(f)) for f in present)


@dataclasses.dataclass(frozen=True, eq=False)
class HeldOut:
    """Prediction errors of the data that each fold leaves out of the fit.

    - `folds`: names of the folds; `unfinished`: number of refits that did not converge.
    - `trajectory` (k,): root mean square of the objective's weighted residuals in each fold.
      `force` (k,): root mean square residual of inverse dynamics [N or N.m], or NaN.
    - `trajectory_squares`, `force_squares` (u,): contribution of each piece of the records to the
      mean square. The mean of the contributions is the mean square of all samples.
    """

    folds: tuple[str, ...]
    trajectory: Float[np.ndarray, " k"]
    force: Float[np.ndarray, " k"]
    trajectory_squares: Float[np.ndarray, " u"]
    force_squares: Float[np.ndarray, " u"]
    unfinished: int = 0

    def __repr__(self) -> str:
        rms = f"trajectory {self.trajectory_rms:.4g}, force {self.force_rms:.4g}"
        return f"HeldOut({', '.join(self.folds)}: {rms})"

    @property
    def trajectory_rms(self) -> float:
        """Root mean square error of the trajectory over all left-out data."""
        return root_mean(self.trajectory_squares)

    @property
    def force_rms(self) -> float:
        """Root mean square error of the force [N or N.m] over all left-out data."""
        return root_mean(self.force_squares)


def unfinished_refits(held_out: Mapping[str, HeldOut]) -> tuple[str, ...]:
    """Return a tuple with a sentence on refits that did not converge; empty if all converged."""
    some = {by: held for by, held in held_out.items() if held.unfinished}
    counts = ", ".join(
        f"{held.unfinished} of {len(held.folds)} fits without {_LEFT_OUT[by]}"
        for by, held in some.items()
    )
    return (f"stopped after {_STEPS} steps: {counts}",) if some else ()


class Refits:
    """Refits of one structure to parts of its records, with the compiled program of the full fit. A
    refit begins at the user's start values, or at a refit of `before` to the same part of the
    records. It cannot begin at the estimates of the full fit, which depend on the left-out data.

    `found`: the fit to all data; `before`: the fit with the objective `start`, from which the
    search for `found` began, or None; `force`: the problem with `InverseDynamics`, or None.
    """

    def __init__(
        self, found: FitResult, before: FitResult | None, force: Problem | None, folds: Folds
    ) -> None:
        self.found, self.before, self.force = found, before, force
        self.count = folds.record.size
        self.pieces = folds.piece_of_residuals(found.problem)
        self.pieces_before = None if before is None else folds.piece_of_residuals(before.problem)
        self.pieces_force = None if force is None else folds.piece_of_residuals(force)

    def left_out(self, fold: Fold) -> HeldOut:
        """Return the prediction errors of each fold, for the data that the fold leaves out.

        **Raises:** `ValueError` if a fold leaves out all residuals.
        """
        number, names = fold
        with Workers() as pool:
            ends, ended = zip(
                *pool.map(lambda k: self.without(number == k), range(len(names))), strict=True
            )
        each, squares = self._errors(self.found.problem, self.pieces, number, ends)
        forces, of_forces = self._errors(self.force, self.pieces_force, number, ends)
        return HeldOut(names, each, forces, squares, of_forces, len(names) - sum(ended))

    def _errors(
        self, problem: Any, pieces: Any, number: np.ndarray, ends: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the root mean square error of each fold, and the contribution of each piece."""
        each, total = np.full(len(ends), np.nan), np.full(self.count, np.nan)
        if problem is None:
            return each, total
        counted = problem.weights() > 0
        size = np.bincount(pieces[counted], minlength=self.count)
        for k, x in enumerate(ends):
            squares = np.bincount(
                pieces[counted], self.residuals(problem, x)[counted] ** 2, minlength=self.count
            )
            mine = (number == k) & (size > 0)
            total[mine] = squares[mine]
            each[k] = np.sqrt(squares[mine].sum() / size[mine].sum()) if mine.any() else np.nan
        return each, total * np.sum(size > 0) / size.sum()

    def without(self, gone: np.ndarray) -> tuple[np.ndarray, bool]:
        """Refit without the pieces that `gone` marks as True. Return the estimates (NaN if the fit
        failed), and whether the search converged.
        """
        found, x, done = self.found, np.array(self.found.problem.x0), True
        if self.before is not None and self.pieces_before is not None:
            first = self.before.problem
            part = _kept_part(first, ~gone[self.pieces_before])
            # Repeat also the fit `before`, because its estimates depend on the data left out.
            end = _refit(self.before, part, np.zeros(first.x0.size))
            if not np.isfinite(float(end.cost)):
                return np.full(x.size, np.nan), False
            done = bool(end.done)
            known = {
                u.path: np.asarray(end.x)[u.first : u.first + u.size]
                for u in first.unknowns
                if u.record is None
            }
            for u in found.problem.unknowns:
                if u.record is None:
                    x[u.first : u.first + u.size] = known[u.path]
        part = _kept_part(found.problem, ~gone[self.pieces])
        end = _refit(found, part, coordinates(found.problem, x))
        known = np.isfinite(float(end.cost))
        return np.asarray(end.x) if known else np.full(x.size, np.nan), done and bool(end.done)

    def residuals(self, problem: Problem, x: np.ndarray) -> np.ndarray:
        """Return the residuals of `problem` at the values x, without priors."""
        rows = problem.weights().size
        if not np.all(np.isfinite(x)):
            return np.full(rows, np.inf)
        end = run_search(problem, self.found.method, coordinates(problem, x), 1, dof=self.found.dof)
        known = np.isfinite(float(end.cost))
        return np.asarray(end.residuals)[:rows] if known else np.full(rows, np.inf)


def _kept_part(problem: Problem, kept: np.ndarray) -> Problem:
    """Return the problem with only the residuals that `kept` marks as True."""
    part = scale_weights(problem, kept)
    if not np.any(part.weights() > 0):
        raise ValueError(
            "`compare` predicts parts of the records that a fit did not see, and without one part"
            " no residual remains. Give a longer record, or an `objective` with shorter windows."
        )
    return part


def coordinates(problem: Problem, x: Any, inward: float = 1e-3) -> np.ndarray:
    """Return the search coordinates of the parameter values x. Values near a bound are first moved
    inside, to a distance of `inward` times the distance between start value and bound.
    """
    low, high = (
        end + share * np.abs(problem.x0 - np.where(np.isfinite(end), end, 0.0))
        for end, share in (
            (bounds(problem.unknowns), inward),
            (upper_bounds(problem.unknowns), -inward),
        )
    )
    return np.asarray(problem.coordinates(np.clip(x, low, high)))


def root_mean(squares: np.ndarray) -> float:
    """Return the root of the mean of `squares`, ignoring NaN; NaN if all are NaN."""
    known = squares[~np.isnan(squares)]
    return float(np.sqrt(np.mean(known))) if known.size else float("nan")


def _refit(found: FitResult, problem: Problem, z: np.ndarray) -> Any:
    noise = found.noise_scale if problem.priors else 1.0
    return run_search(problem, found.method, z, _STEPS, noise, found.dof)
