"""What a fit says of the parts of its records that it did not see."""

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

_STEPS = 30
_LEFT_OUT = {"repeats": "a repeat", "speeds": "a band of speeds", "records": "a record"}


@dataclasses.dataclass(frozen=True, eq=False)
class HeldOut:
    """Errors in what was left out of the fit, one fold after the other.

    - `folds`: what was left out in each; `trajectory` (k,): root mean square of the objective's
      residuals there, in the outputs' unit; `force` (k,): that of inverse dynamics [N or N.m]; nan
      where there is none.
    - `unfinished`: how many of these fits were stopped before they came to an end.
    - `trajectory_squares`, `force_squares` (u,): what each piece of the records, left out once,
      adds to the mean square: their mean is that of all samples.
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
        """Over all that was left out."""
        return root_mean(self.trajectory_squares)

    @property
    def force_rms(self) -> float:
        """Over all that was left out [N or N.m]."""
        return root_mean(self.force_squares)


def unfinished(held_out: Mapping[str, HeldOut]) -> tuple[str, ...]:
    """In words, how many of the fits to parts were stopped on their way."""
    some = {by: held for by, held in held_out.items() if held.unfinished}
    told = ", ".join(
        f"{held.unfinished} of {len(held.folds)} fits without {_LEFT_OUT[by]}"
        for by, held in some.items()
    )
    return (f"stopped after {_STEPS} steps: {told}",) if some else ()


class Refits:
    """Fits of one structure without parts of its records, by the programs compiled for the fit to
    all of them.

    Each begins where the user's model stands, with the fit of `before` to the same part of the
    records first. One that began at the values of the full fit would know what it is to predict:
    what the rest of the records does not tell, such as the force of a table at a speed left out,
    would stay there.

    `found`: the fit to all; `before`: the fit whose end was its start, or None; `force`: the same
    machine under `InverseDynamics`, or None.
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
        self.of = folds.of(found.problem)
        self.of_before = None if before is None else folds.of(before.problem)
        self.of_force = None if force is None else folds.of(force)

    def left_out(self, fold: Fold) -> HeldOut:
        """What each fold says of what it did not see."""
        number, names = fold
        with Workers() as pool:
            ends, ended = zip(
                *pool.map(lambda k: self.without(number == k), range(len(names))), strict=True
            )
        each, squares = self._errors(self.found.problem, self.of, number, ends)
        forces, of_forces = self._errors(self.force, self.of_force, number, ends)
        return HeldOut(names, each, forces, squares, of_forces, len(names) - sum(ended))

    def _errors(
        self, problem: Any, of: Any, number: np.ndarray, ends: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The root mean square of each fold, and what each piece adds to the mean
        square of all.
        """
        each, total = np.full(len(ends), np.nan), np.full(self.count, np.nan)
        if problem is None:
            return each, total
        counted = weights(problem) > 0
        size = np.bincount(of[counted], minlength=self.count)
        for k, x in enumerate(ends):
            squares = np.bincount(
                of[counted], self.residuals(problem, x)[counted] ** 2, minlength=self.count
            )
            mine = (number == k) & (size > 0)
            total[mine] = squares[mine]
            each[k] = np.sqrt(squares[mine].sum() / size[mine].sum()) if mine.any() else np.nan
        return each, total * np.sum(size > 0) / size.sum()

    def without(self, gone: np.ndarray) -> tuple[np.ndarray, bool]:
        """All fitted numbers of the fit without the samples `gone`, nan where it failed; whether
        the search was done.
        """
        found, x, done = self.found, np.array(self.found.problem.x0), True
        if self.before is not None and self.of_before is not None:
            first = self.before.problem
            part = scale_weights(first, ~gone[self.of_before])
            end = _fitted(self.before, part, np.zeros(first.x0.size))
            # its start on all data would know what is left out
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
        part = scale_weights(found.problem, ~gone[self.of])
        end = _fitted(found, part, coordinates(found.problem, x))
        known = np.isfinite(float(end.cost))
        return np.asarray(end.x) if known else np.full(x.size, np.nan), done and bool(end.done)

    def residuals(self, problem: Problem, x: np.ndarray) -> np.ndarray:
        """All residuals of `problem` at the values x, without those of priors: what the first step
        of a search finds.
        """
        rows = weights(problem).size
        if not np.all(np.isfinite(x)):
            return np.full(rows, np.inf)
        end = run_search(problem, self.found.method, coordinates(problem, x), 1, dof=self.found.dof)
        known = np.isfinite(float(end.cost))
        return np.asarray(end.residuals)[:rows] if known else np.full(rows, np.inf)


def weights(problem: Problem) -> np.ndarray:
    """Those of all residuals, without those of priors."""
    return np.concatenate([np.ravel(np.asarray(p.weight)) for p in problem.prepared])


def coordinates(problem: Problem, x: Any) -> np.ndarray:
    """Those of the values x; of values at a bound, those a thousandth of the start's distance
    inside.
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
    """nan where there is none, inf where a fit failed."""
    known = squares[~np.isnan(squares)]
    return float(np.sqrt(np.mean(known))) if known.size else float("nan")


def _fitted(found: FitResult, problem: Problem, z: np.ndarray) -> Any:
    noise = found.noise_scale if problem.priors else 1.0
    return run_search(problem, found.method, z, _STEPS, noise, found.dof)
