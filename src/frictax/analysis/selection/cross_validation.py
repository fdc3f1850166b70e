"""Cross-validation of a structure: refits without parts of the records, and their errors."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import Problem, bounds, upper_bounds
from frictax.interrupts import Workers

from ..errors.resampling import run_search, scale_weights
from .folds import Fold, Folds

_STEPS = 30  # most steps of a refit
_LEFT_OUT = {"repeats": "a repeat", "speeds": "a band of speeds", "records": "a record"}


@dataclasses.dataclass(frozen=True, eq=False)
class HeldOut:
    """Errors of the predictions of data left out of the fit, for each fold.

    - `folds`: names of the data left out; `unfinished`: number of refits without convergence.
    - `trajectory` (k,): root mean square residual of the objective in each fold, in the unit of the
      outputs. `force` (k,): the same for inverse dynamics [N or N.m], or NaN.
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
        """Root mean square over all data left out."""
        return root_mean(self.trajectory_squares)

    @property
    def force_rms(self) -> float:
        """Root mean square over all data left out [N or N.m]."""
        return root_mean(self.force_squares)


def unfinished_refits(held_out: Mapping[str, HeldOut]) -> tuple[str, ...]:
    """Return a sentence on the refits that were stopped before convergence, if any."""
    some = {by: held for by, held in held_out.items() if held.unfinished}
    counts = ", ".join(
        f"{held.unfinished} of {len(held.folds)} fits without {_LEFT_OUT[by]}"
        for by, held in some.items()
    )
    return (f"stopped after {_STEPS} steps: {counts}",) if some else ()


class Refits:
    """Fits of one structure without parts of its records, by the compiled program of the full fit.

    A refit begins at the user's model, or at a refit of `before` to the same part of the records.
    The estimates of the full fit are not used, because they depend on the data left out.

    `found`: the full fit; `before`: the fit whose estimates were the start of `found`, or None;
    `force`: the same machine with the objective `InverseDynamics`, or None.
    """

    def __init__(
        self,
        found: FitResult,
        before: FitResult | None,
        force: Problem | None,
        folds: Folds,
    ) -> None:
        self.found, self.before, self.force = found, before, force
        self.count = folds.record.size
        self.pieces = folds.piece_of_residuals(found.problem)
        self.pieces_before = None if before is None else folds.piece_of_residuals(before.problem)
        self.pieces_force = None if force is None else folds.piece_of_residuals(force)

    def left_out(self, fold: Fold) -> HeldOut:
        """Return the errors of each fold in the data that it leaves out."""
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
        """Return the root mean square of each fold, and the contribution of each piece to the mean
        square of all data.
        """
        each, total = np.full(len(ends), np.nan), np.full(self.count, np.nan)
        if problem is None:
            return each, total
        counted = weights(problem) > 0
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
        """Fit without the pieces `gone`. Return the estimates (NaN if the fit failed), and whether
        the search converged.
        """
        found, x, done = self.found, np.array(self.found.problem.x0), True
        if self.before is not None and self.pieces_before is not None:
            first = self.before.problem
            part = scale_weights(first, ~gone[self.pieces_before])
            # `before` is refitted too, because its estimates depend on the data left out.
            end = _refit(self.before, part, np.zeros(first.x0.size))
            if not np.isfinite(float(end.cost)):
                return np.full(x.size, np.nan), True
            done = bool(end.done)
            known = {
                u.path: np.asarray(end.x)[u.first : u.first + u.size]
                for u in first.unknowns
                if u.record is None
            }
            for u in found.problem.unknowns:
                if u.record is None:
                    x[u.first : u.first + u.size] = known[u.path]
        part = scale_weights(found.problem, ~gone[self.pieces])
        end = _refit(found, part, coordinates(found.problem, x))
        known = np.isfinite(float(end.cost))
        return np.asarray(end.x) if known else np.full(x.size, np.nan), done and bool(end.done)

    def residuals(self, problem: Problem, x: np.ndarray) -> np.ndarray:
        """Return the residuals of `problem` at the values x, without priors, by the first step of a
        search.
        """
        rows = weights(problem).size
        if not np.all(np.isfinite(x)):
            return np.full(rows, np.inf)
        end = run_search(problem, self.found.method, coordinates(problem, x), 1, dof=self.found.dof)
        known = np.isfinite(float(end.cost))
        return np.asarray(end.residuals)[:rows] if known else np.full(rows, np.inf)


def weights(problem: Problem) -> np.ndarray:
    """Return the weights of all residuals, without priors."""
    return np.concatenate([np.ravel(np.asarray(p.weight)) for p in problem.prepared])


def coordinates(problem: Problem, x: Any) -> np.ndarray:
    """Return the coordinates of the values x. Values at a bound are first moved inside, by a
    thousandth of the distance of the start value from the bound.
    """
    low, high = (
        end + inward * np.abs(problem.x0 - np.where(np.isfinite(end), end, 0.0))
        for end, inward in (
            (bounds(problem.unknowns), 1e-3),
            (upper_bounds(problem.unknowns), -1e-3),
        )
    )
    return np.asarray(problem.coordinates(np.clip(x, low, high)))


def root_mean(squares: np.ndarray) -> float:
    """Return the root mean square without NaN; NaN without values, inf if a fit failed."""
    known = squares[~np.isnan(squares)]
    return float(np.sqrt(np.mean(known))) if known.size else float("nan")


def _refit(found: FitResult, problem: Problem, z: np.ndarray) -> Any:
    noise = found.noise_scale if problem.priors else 1.0
    return run_search(problem, found.method, z, _STEPS, noise, found.dof)
