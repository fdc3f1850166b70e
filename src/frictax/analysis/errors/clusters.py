"""Errors where what differs between pieces of the records is error, whatever makes it differ."""

import functools
import itertools
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from frictax.arguments import whole
from frictax.fitting.problem.problem import PreparedSweep, Problem
from frictax.fitting.result.identifiability import listed
from frictax.fitting.result.spread import Memoized
from frictax.notice import Notice
from frictax.pytree import pytree_dataclass, static

from .linearized import AbstractLinearErrors, Linearized, LinearSpread, axes

_ALONE = 1 - 1e-6  # of what is known of a direction: more, and one cluster tells it alone
_FEW, _ENOUGH = 6, 12  # windows
_ROUGH = 2.5  # degrees of freedom: with fewer, an interval is an order of magnitude


@pytree_dataclass
class Clustered(AbstractLinearErrors):
    """Windows, or blocks of time, that do not depend on each other.

    Each window is a run of its own from the measurement. An error of its start, or of its input,
    acts on all samples that follow, so that its residuals hang together; those of another window
    know nothing of it. What counts is how far windows pull the estimates apart ("CR2"), with
    Student's t of as many degrees of freedom as there are windows that tell a number. A window that
    begins where the one before has ended belongs to it; the rows of a sweep are alone.

    An error that lasts for many windows, such as a drift, it does not see: take `Jackknife`.

    **Arguments:** `blocks`: compare so many blocks of equal length in all instead (each record is
    cut in as many as it takes, in `blocks` each where records have numbers of their own), which any
    objective has.

    **Source:** R. M. Bell, D. F. McCaffrey, "Bias reduction in standard errors for linear
    regression with multi-stage samples", Survey Methodology 28 (2002); what each cluster has to
    itself: J. E. Pustejovsky, E. Tipton, Journal of Business & Economic Statistics 36 (2018).

    **Example:** all accounts side by side, at `FitResult.uncertainty`.
    """

    blocks: int | None = static(default=None)

    def __post_init__(self) -> None:
        if self.blocks is not None:
            whole("`Clustered.blocks`", self.blocks, 2, "Leave it out to compare windows.")

    def check(self, problem: Problem) -> None:
        if self.blocks is None and not has_windows(problem):
            raise ValueError(
                "`Clustered` compares windows with each other, and "
                f"{type(problem.objective).__name__} has none. Fit on `Windows`, or take"
                " `Clustered(10)`."
            )

    def of(self, linear: Linearized) -> LinearSpread:
        problem = linear.found.problem
        if self.blocks is not None:
            cluster, seconds = blocks(linear, self.blocks)
            says = f"scatter between {cluster[-1] + 1} blocks of {seconds:.2g} s"
            covariance, dof = of_clusters(linear, cluster)
            return LinearSpread(covariance, dof, says)
        cluster, windows, single = _clusters(problem)
        covariance, dof = of_clusters(linear, cluster)
        pieces = _counted(windows) + (f" and {single} rows of sweeps" if single else "")
        return LinearSpread(
            covariance, dof, f"scatter between {pieces}", _doubts(linear, windows, dof)
        )


def has_windows(problem: Problem) -> bool:
    """Whether records are cut in pieces, each a run of its own."""
    return any(not isinstance(p, PreparedSweep) and p.rows is not None for p in problem.prepared)


def of_clusters(
    linear: Linearized, cluster: Int[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "p p"], Callable[[np.ndarray], Float[np.ndarray, " m"]]]:
    """`bias_reduced` of a fit."""
    j, r, at = linear.jacobian, linear.residuals, linear.axes
    return bias_reduced(j, r, cluster, noise=linear.noise, known=linear.known, along=at)


def bias_reduced(
    jacobian: Float[np.ndarray, "n p"],
    residuals: Float[np.ndarray, " n"],
    cluster: Int[np.ndarray, " n"],
    *,
    noise: float = 1.0,
    known: Float[np.ndarray, "k p"] | None = None,
    along: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[Float[np.ndarray, "p p"], Callable[[np.ndarray], Float[np.ndarray, " m"]]]:
    """The covariance "CR2" of least squares, and a function that gives Satterthwaite's degrees of
    freedom of each row (m, p) times the estimates.

    With Z = J inv(J'J)^(1/2), M_g = Z_g'Z_g of each cluster g and b = inv(J'J)^(1/2) c:
    variance of c'x = sum over g of (b'(1 - M_g)^(-1/2) Z_g'r_g)**2, which for white residuals is
    right in the mean. Where a cluster alone tells a direction its residual there is 0, and the
    `noise` stands for it, with 1 degree of freedom.

    **Arguments:** `jacobian`, `residuals` and the number of each row's `cluster`, whose rows stand
    together; a column of zeros has no variance. `noise`: standard deviation of white residuals;
    `known`: rows that priors add to the Jacobian, in units of it, which have no residual; `along`:
    the `axes` of both, found unless given.

    **Source:** Bell and McCaffrey, see `Clustered`, equations 8 to 13.
    """
    known = np.zeros((0, jacobian.shape[1])) if known is None else known
    root, unseen = axes(jacobian, known) if along is None else along
    both = np.column_stack([jacobian @ root, residuals])
    ends = [0, *(np.flatnonzero(np.diff(cluster)) + 1), len(cluster)]
    grams = np.stack([both[a:b].T @ both[a:b] for a, b in itertools.pairwise(ends)])
    e, v = np.linalg.eigh(grams[:, :-1, :-1])
    told = np.einsum("gij,gi->gj", v, grams[:, :-1, -1])
    only, e = e > _ALONE, np.clip(e, 0.0, _ALONE)
    lift = (v / np.sqrt(1.0 - e)[:, None]) @ v.transpose(0, 2, 1)
    share = (v * e[:, None]) @ v.transpose(0, 2, 1)
    lifted = (share @ lift).transpose(0, 2, 1)
    scores = np.einsum("gij,gj->gi", v, np.where(only, 0.0, told / np.sqrt(1.0 - e)))
    alone = noise**2 * np.einsum("gij,gj,gkj->ik", v, e * only, v)
    of_data, prior = root @ (scores.T @ scores + alone) @ root.T, noise * known @ root @ root.T
    # Along what nothing tells it is as enormous as that of `inverse_gram`.
    covariance = of_data + prior.T @ prior + noise**2 * unseen.T @ unseen

    return covariance, Memoized(
        functools.partial(_satterthwaite, root, share, lifted, covariance, of_data)
    )


def _satterthwaite(
    root: Float[np.ndarray, "p s"],
    share: Float[np.ndarray, "g s s"],
    lifted: Float[np.ndarray, "g s s"],
    covariance: Float[np.ndarray, "p p"],
    of_data: Float[np.ndarray, "p p"],
    directions: Float[np.ndarray, "m p"],
) -> Float[np.ndarray, " m"]:
    """The degrees of freedom of each row of `directions` times the estimates; `share` and `lifted`
    of each cluster, see `bias_reduced`.
    """
    out = [np.zeros(0)]
    for c in np.array_split(directions, len(directions) // 500 + 1):
        b = c @ root
        # Of the matrix whose quadratic form in white residuals the variance is: its diagonal,
        # and products of vectors m_g that hold all else.
        diagonal = np.sum((b @ share) * b, axis=2)
        m = b @ lifted
        square = np.sum(np.einsum("gmi,gmj->mij", m, m) ** 2, axis=(1, 2))
        square += np.sum(diagonal**2, axis=0) - np.sum(np.sum(m**2, axis=2) ** 2, axis=0)
        all_of_it, mine = (np.sum((c @ v) * c, axis=1) for v in (covariance, of_data))
        with np.errstate(divide="ignore", invalid="ignore"):
            nu = np.maximum(diagonal.sum(axis=0) ** 2 / square, 1.0)
            nu *= np.where(mine > 0, all_of_it / mine, 1.0) ** 2
        out.append(np.where(np.isfinite(nu), np.minimum(nu, 1e9), 1e9))
    return np.concatenate(out)


def blocks(linear: Linearized, count: int) -> tuple[Int[np.ndarray, " n"], float]:
    """The number of each residual's block, and how long the longest blocks are [s]. Windows stay
    whole; rows of sweeps are alone.
    """
    problem = linear.found.problem
    data, out, first, seconds = linear.found.records.values(), [], 0, 0.0
    own = any(u.record is not None for u in problem.unknowns if not u.hidden)
    swept = [isinstance(p, PreparedSweep) for p in problem.prepared]
    each = count if own else max(-(-count // max(len(swept) - sum(swept), 1)), 1)
    for i, (record, prepared) in enumerate(zip(data, problem.prepared, strict=True)):
        size = len(prepared.weight)
        mine = np.arange(size) if swept[i] else np.arange(size) * min(each, size) // size
        if not swept[i]:
            seconds = max(seconds, record.duration / each)
        out.append(first + np.repeat(mine, prepared.weight.size // size))
        first = int(out[-1][-1]) + 1
    return np.concatenate(out), seconds


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


def _doubts(
    linear: Linearized, windows: int, dof: Callable[[np.ndarray], np.ndarray]
) -> tuple[Notice, ...]:
    """A notice where windows are too few."""
    if windows < _FEW:
        numbers = {"count": windows, "windows": _counted(windows), "enough": _ENOUGH}
        return (Notice("few-windows", "", numbers),)
    names = linear.found.names
    rough = (dof(np.eye(len(names))) < _ROUGH) & linear.told
    told = [n for n, on in zip(names, rough, strict=True) if on]
    return (Notice("few-windows-tell", "", {"names": listed(told)}),) if told else ()


def _counted(windows: int) -> str:
    return f"{windows} window{'s' * (windows != 1)}"
