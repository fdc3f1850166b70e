"""Errors where what differs between pieces of the records is error, whatever makes it differ."""

import itertools
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import PreparedSweep, Problem
from frictax.fitting.result.identifiability import listed
from frictax.fitting.result.spread import Spread
from frictax.notice import Notice

from .accounts import AbstractErrors, scored

_ALONE = 1 - 1e-6  # of what is known of a direction: more, and one cluster tells it alone
_FEW, _ENOUGH = 6, 12  # windows
_ROUGH = 4  # degrees of freedom: with fewer, an interval is an order of magnitude


class Clustered(AbstractErrors):
    """Windows that do not depend on each other: what a fit on `Windows` prints.

    Each window is a run of its own from the measurement. An error of its start, or of its input,
    acts on all samples that follow, so that its residuals hang together; those of another window
    know nothing of it. What counts is how far windows pull the estimates apart ("CR2"), with
    Student's t of as many degrees of freedom as there are windows that tell a number. A window that
    begins where the one before has ended belongs to it; the rows of a sweep are alone.

    An error that lasts for many windows, such as a drift, it does not see: take `Jackknife`.

    **Source:** R. M. Bell, D. F. McCaffrey, "Bias reduction in standard errors for linear
    regression with multi-stage samples", Survey Methodology 28 (2002); what each cluster has to
    itself: J. E. Pustejovsky, E. Tipton, Journal of Business & Economic Statistics 36 (2018).
    """

    def check(self, problem: Problem) -> None:
        if not has_windows(problem):
            raise ValueError(
                "`Clustered` compares windows with each other, and "
                f"{type(problem.objective).__name__} has none. Fit on `Windows`, or take `HAC()`."
            )

    def spread(self, found: FitResult) -> Spread:
        self.check(found.problem)
        (r, slope), rows = scored(found), found.n
        jacobian, follow = _without_starts(found)
        cluster, windows, single = _clusters(found.problem)
        covariance, dof = bias_reduced(
            jacobian[:rows],
            r / slope,
            cluster,
            noise=found.noise_scale,
            known=jacobian[rows:] / np.sqrt(slope),
        )
        pieces = _counted(windows) + (f" and {single} rows of sweeps" if single else "")
        return Spread(
            follow @ covariance @ follow.T + _of_starts(found, follow),
            lambda directions: np.minimum(dof(directions @ follow), found.dof),
            None,
            f"what differs between {pieces}",
            _doubts(found, windows, dof),
        )


def has_windows(problem: Problem) -> bool:
    """Whether records are cut in pieces, each a run of its own."""
    return any(not isinstance(p, PreparedSweep) and p.rows is not None for p in problem.prepared)


def bias_reduced(
    jacobian: Float[np.ndarray, "n p"],
    residuals: Float[np.ndarray, " n"],
    cluster: Int[np.ndarray, " n"],
    *,
    noise: float = 1.0,
    known: Float[np.ndarray, "k p"] | None = None,
) -> tuple[Float[np.ndarray, "p p"], Callable[[np.ndarray], Float[np.ndarray, " m"]]]:
    """The covariance "CR2" of least squares, and a function that gives Satterthwaite's degrees of
    freedom of each row (m, p) times the estimates.

    With Z = J inv(J'J)^(1/2), M_g = Z_g'Z_g of each cluster g and b = inv(J'J)^(1/2) c:
    variance of c'x = sum over g of (b'(1 - M_g)^(-1/2) Z_g'r_g)**2, which for white residuals is
    right in the mean. Where a cluster alone tells a direction its residual there is 0, and the
    `noise` stands for it, with 1 degree of freedom.

    **Arguments:** `jacobian`, `residuals` and the number of each row's `cluster`, whose rows stand
    together; a column of zeros has no variance. `noise`: standard deviation of white residuals;
    `known`: rows that priors add to the Jacobian, in units of it, which have no residual.

    **Source:** Bell and McCaffrey, see `Clustered`, equations 8 to 13.
    """
    known = np.zeros((0, jacobian.shape[1])) if known is None else known
    rows = np.concatenate([jacobian, known])
    scale = np.linalg.norm(rows, axis=0)
    back = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    _, size, turn = np.linalg.svd(np.asarray(np.linalg.qr(rows * back, mode="r")))
    turn, size = turn * back, np.concatenate([size, np.zeros(len(turn) - size.size)])
    seen = size > 1e-8 * np.max(size, initial=0.0)
    root, unseen = turn[seen].T / size[seen], turn[~seen] / np.maximum(size[~seen], 1e-12)[:, None]
    both = np.column_stack([jacobian @ root, residuals])
    ends = [0, *(np.flatnonzero(np.diff(cluster)) + 1), len(cluster)]
    grams = np.stack([both[a:b].T @ both[a:b] for a, b in itertools.pairwise(ends)])
    e, v = np.linalg.eigh(grams[:, :-1, :-1])
    told = np.einsum("gij,gi->gj", v, grams[:, :-1, -1])
    e, only = np.clip(e, 0.0, _ALONE), e > _ALONE
    lift = (v / np.sqrt(1.0 - e)[:, None]) @ v.transpose(0, 2, 1)
    share = (v * e[:, None]) @ v.transpose(0, 2, 1)
    scores = np.einsum("gij,gj->gi", v, np.where(only, 0.0, told / np.sqrt(1.0 - e)))
    alone = noise**2 * np.einsum("gij,gj,gkj->ik", v, e * only, v)
    of_data, prior = root @ (scores.T @ scores + alone) @ root.T, noise * known @ root @ root.T
    # Along what nothing tells it is as enormous as that of `inverse_gram`.
    covariance = of_data + prior.T @ prior + noise**2 * unseen.T @ unseen

    def dof(directions: Float[np.ndarray, "m p"]) -> Float[np.ndarray, " m"]:
        out = [np.zeros(0)]
        for c in np.array_split(directions, len(directions) // 500 + 1):
            b = c @ root
            # Of the matrix whose quadratic form in white residuals the variance is: its diagonal,
            # and products of vectors m_g that hold all else.
            diagonal = np.einsum("mi,gij,mj->gm", b, share, b, optimize=True)
            m = np.einsum("gij,mj->gmi", share @ lift, b)
            square = np.sum(np.einsum("gmi,gmj->mij", m, m) ** 2, axis=(1, 2))
            square += np.sum(diagonal**2, axis=0) - np.sum(np.sum(m**2, axis=2) ** 2, axis=0)
            all_of_it = np.einsum("mi,ij,mj->m", c, covariance, c)
            mine = np.einsum("mi,ij,mj->m", c, of_data, c)
            with np.errstate(divide="ignore", invalid="ignore"):
                nu = np.maximum(diagonal.sum(axis=0) ** 2 / square, 1.0)
                nu *= np.where(mine > 0, all_of_it / mine, 1.0) ** 2
            out.append(np.where(np.isfinite(nu), np.minimum(nu, 1e9), 1e9))
        return np.concatenate(out)

    return covariance, dof


def _clusters(problem: Problem) -> tuple[Int[np.ndarray, " n"], int, int]:
    """The number of each residual's cluster; how many are windows, and how many rows of a sweep."""
    out, count, first = [], [0, 0], 0
    for prepared in problem.prepared:
        weight = np.asarray(prepared.weight)
        single = isinstance(prepared, PreparedSweep)
        begins = np.ones(len(weight), bool) if single else ~np.asarray(prepared.goes_on)
        mine = np.cumsum(begins)
        counted = np.reshape(weight > 0, (len(weight), -1)).any(axis=1)
        count[single] += np.unique(mine[counted]).size
        out.append(first + np.repeat(mine, weight.size // len(weight)))
        first = int(out[-1][-1]) + 1
    return np.concatenate(out), count[0], count[1]


def _without_starts(
    found: FitResult,
) -> tuple[Float[np.ndarray, "n p"], Float[np.ndarray, "q p"]]:
    """The Jacobian by what is no start of a window, less what such starts could explain as well,
    0 for numbers at a bound; and how far all numbers move with these, starts as the fit has them.

    A start acts on its own window alone: there it is projected out.
    """
    problem = found.problem
    shown, first = found.shown, 0
    follow = np.diag(found.active.astype(float))[:, shown]
    jacobian = found.full_jacobian[:, shown] * found.active[shown]
    for i, prepared in enumerate(problem.prepared):
        starts = [u for u in problem.unknowns if u.hidden and u.record == i]
        each = prepared.weight.size // len(prepared.weight)
        for k in range(len(prepared.weight) if starts else 0):
            rows = slice(first + k * each, first + (k + 1) * each)
            columns = [u.first + k for u in starts if found.active[u.first + k]]
            own = found.full_jacobian[rows][:, columns]
            norms = np.linalg.norm(own, axis=0)
            left, size, right = np.linalg.svd(own / norms, full_matrices=False)
            left = left[:, size > 1e-10]
            told = left.T @ jacobian[rows]
            jacobian[rows] -= left @ told
            follow[columns] = (
                -(right[: left.shape[1]].T / size[: left.shape[1]]) @ told / norms[:, None]
            )
        first += prepared.weight.size
    return jacobian, follow


def _of_starts(found: FitResult, follow: np.ndarray) -> Float[np.ndarray, "q q"]:
    """What is not known of the starts of windows even where all else is, for white residuals."""
    hidden = ~found.shown
    white = (
        found.full_covariance - follow @ found.full_covariance[np.ix_(~hidden, ~hidden)] @ follow.T
    )
    return np.where(np.outer(hidden, hidden), white, 0.0)


def _doubts(
    found: FitResult, windows: int, dof: Callable[[np.ndarray], np.ndarray]
) -> tuple[Notice, ...]:
    """A notice where windows are too few."""
    if windows < _FEW:
        numbers = {"count": windows, "windows": _counted(windows), "enough": _ENOUGH}
        return (Notice("few-windows", "", numbers),)
    rough = (dof(np.eye(len(found.names))) < _ROUGH) & found.active[found.shown]
    told = [n for n, on in zip(found.names, rough, strict=True) if on]
    return (Notice("few-windows-tell", "", {"names": listed(told)}),) if told else ()


def _counted(windows: int) -> str:
    return f"{windows} window{'s' * (windows != 1)}"
