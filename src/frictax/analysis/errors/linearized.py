"""A fit as a linear one: its residuals near the estimates, and what their errors make of these."""

import abc
import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import PreparedSweep
from frictax.fitting.result.spread import Memoized, Spread
from frictax.notice import Notice

from .accounts import AbstractErrors, scored
from .refits import Samples

_SEEN = 1e-8  # of the largest singular value of a Jacobian with columns of norm 1
_GAP = 2.5  # median steps: a longer one interrupts a series


@dataclasses.dataclass(frozen=True, eq=False)
class Linearized:
    """residuals(x) = residuals + jacobian @ (x - estimates), starts of windows projected out.

    - `jacobian` (n, p) of the weighted residuals by the estimates, 0 for numbers at their bound;
      `residuals` (n,), for a robust loss as they pull; `known` (k, p): the rows that priors add, in
      units of the `noise`, the standard deviation that the residuals had were they white.
    - `samples`: which of its record each residual belongs to; `counted` (n,): the residuals that
      have a weight.
    - `rows`: of sweeps, whose rows have no time, the series that they are taken for, and in which
      `order`.
    """

    found: FitResult
    jacobian: Float[np.ndarray, "n p"]
    residuals: Float[np.ndarray, " n"]
    known: Float[np.ndarray, "k p"]
    noise: float
    samples: Samples
    counted: Bool[np.ndarray, " n"]
    rows: tuple[tuple[int, float, list[np.ndarray]], ...] = ()
    order: str = "in order of speed"

    @property
    def told(self) -> Bool[np.ndarray, " p"]:
        """Which estimates act on the residuals, or have a prior."""
        return np.any(self.jacobian, axis=0) | np.any(self.known, axis=0)

    @functools.cached_property
    def axes(self) -> tuple[Float[np.ndarray, "p s"], Float[np.ndarray, "m p"]]:
        """See `axes`."""
        return axes(self.jacobian, self.known)

    def of_record(self, i: int) -> tuple["Linearized", Float[np.ndarray, " p"]]:
        """The fit to record `i` alone, and how far from the estimates it ends."""
        mine = self.counted & (self.samples.record == i)
        one = dataclasses.replace(
            self,
            jacobian=self.jacobian * mine[:, None],
            residuals=self.residuals * mine,
            known=self.known[:0],
            counted=mine,
        )
        root, _ = one.axes
        moved = -root @ (root.T @ (one.jacobian.T @ one.residuals))
        return dataclasses.replace(one, residuals=one.residuals + one.jacobian @ moved), moved

    @functools.cached_property
    def series(self) -> list[tuple[int, float, list[Int[np.ndarray, " _"]]]]:
        """For each channel of each record the record's number, the time between samples [s], and
        the numbers of its residuals in the order of time, a stretch of neighbours each. Sweeps have
        none, but for `rows`.
        """
        if self.rows:
            return list(self.rows)
        out, first = [], 0
        data = self.found.records.values()
        for i, (record, prepared) in enumerate(zip(data, self.found.problem.prepared, strict=True)):
            weight = np.asarray(prepared.weight)
            here = np.arange(first, first + weight.size).reshape(-1, weight.shape[-1])
            first += weight.size
            if isinstance(prepared, PreparedSweep):
                continue
            steps = np.diff(record.t)
            step = float(np.median(steps))
            is_gap = steps > _GAP * step
            if record.ticks:  # a machine that slows down has longer intervals, and no gaps
                step, is_gap = record.duration / steps.size, np.zeros(steps.size, bool)
                is_gap[record.gaps] = True
            after_gap = np.concatenate([[0], np.cumsum(is_gap)])
            for channel in here.T:
                rows = channel[self.counted[channel]]
                at = self.samples.sample[rows]
                cut = (np.diff(at) != 1) | (np.diff(after_gap[at]) > 0)
                if rows.size:
                    out.append((i, step, np.split(rows, np.flatnonzero(cut) + 1)))
        return out


@dataclasses.dataclass(frozen=True, eq=False)
class LinearSpread:
    """What an account makes of the estimates alone: as in `Spread`, of them (p of them).

    `remembers`: whether it takes residuals for more than white noise.
    """

    covariance: Float[np.ndarray, "p p"]
    dof: Callable[[Float[np.ndarray, "m p"]], Float[np.ndarray, " m"]]
    says: str
    notices: tuple[Notice, ...] = ()
    remembers: bool = True


class AbstractLinearErrors(AbstractErrors):
    """An account that a linearised fit is enough for."""

    @abc.abstractmethod
    def of(self, linear: Linearized) -> LinearSpread:
        """What it makes of the estimates."""

    def spread(self, found: FitResult) -> Spread:
        self.check(found.problem)
        linear, follow = linearized(found)
        return lifted(found, follow, self.of(linear))


def axes(
    jacobian: Float[np.ndarray, "n p"], known: Float[np.ndarray, "k p"]
) -> tuple[Float[np.ndarray, "p s"], Float[np.ndarray, "m p"]]:
    """B with B'AB = 1 over all directions that are told, A = J'J + known'known, so that
    inv(A) = BB'; and the directions of which nothing is, enormous.
    """
    told = np.any(jacobian, axis=1)  # of one record among many few rows
    rows = np.concatenate([jacobian if told.all() else jacobian[told], known])
    scale = np.sqrt(np.einsum("ij,ij->j", rows, rows))
    back = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    _, size, turn = np.linalg.svd(np.asarray(np.linalg.qr(rows * back, mode="r")))
    turn, size = turn * back, np.concatenate([size, np.zeros(len(turn) - size.size)])
    seen = size > _SEEN * np.max(size, initial=0.0)
    return turn[seen].T / size[seen], turn[~seen] / np.maximum(size[~seen], 1e-12)[:, None]


def lifted(found: FitResult, follow: Float[np.ndarray, "q p"], made: LinearSpread) -> Spread:
    """From the estimates to all fitted numbers: starts `follow` them."""
    return Spread(
        follow @ made.covariance @ follow.T + _of_starts(found, follow),
        Memoized(functools.partial(_lifted_dof, made.dof, follow, found.dof)),
        None,
        made.says,
        made.notices,
    )


def _lifted_dof(
    dof: Callable[[np.ndarray], np.ndarray],
    follow: Float[np.ndarray, "q p"],
    most: float | int,
    directions: Float[np.ndarray, "m q"],
) -> Float[np.ndarray, " m"]:
    """The degrees of freedom `dof` of the estimates, at most `most`, for directions of all fitted
    numbers.
    """
    return np.minimum(dof(directions @ follow), most)


def linearized(found: FitResult) -> tuple[Linearized, Float[np.ndarray, "q p"]]:
    """The fit as a linear one, and how far all its numbers move with the estimates, starts as the
    fit has them.

    A start acts on its own window alone: there it is projected out.
    """
    problem, (r, slope), rows = found.problem, scored(found), found.n
    shown, first, samples = found.shown, 0, Samples(problem)
    follow = np.diag(found.active.astype(float))[:, shown]
    jacobian = found.full_jacobian[:, shown] * found.active[shown]
    for i, prepared in enumerate(problem.prepared):
        starts = [u for u in problem.unknowns if u.hidden and u.record == i]
        each = prepared.weight.size // len(prepared.weight)
        for k in range(len(prepared.weight) if starts else 0):
            mine = slice(first + k * each, first + (k + 1) * each)
            columns = [u.first + k for u in starts if found.active[u.first + k]]
            own = found.full_jacobian[mine][:, columns]
            norms = np.linalg.norm(own, axis=0)
            left, size, right = np.linalg.svd(own / norms, full_matrices=False)
            left = left[:, size > 1e-10]
            told = left.T @ jacobian[mine]
            jacobian[mine] -= left @ told
            follow[columns] = (
                -(right[: left.shape[1]].T / size[: left.shape[1]]) @ told / norms[:, None]
            )
        first += prepared.weight.size
    linear = Linearized(
        found,
        jacobian[:rows],
        r / slope,
        jacobian[rows:] / np.sqrt(slope),
        found.noise_scale,
        samples,
        samples.counted,
    )
    return linear, follow


def _of_starts(found: FitResult, follow: np.ndarray) -> Float[np.ndarray, "q q"]:
    """What is not known of the starts of windows even where all else is, for white residuals."""
    hidden = ~found.shown
    if not hidden.any():
        return np.zeros_like(found.full_covariance)
    white = (
        found.full_covariance - follow @ found.full_covariance[np.ix_(~hidden, ~hidden)] @ follow.T
    )
    return np.where(np.outer(hidden, hidden), white, 0.0)
