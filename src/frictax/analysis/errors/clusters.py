"""Standard errors from differences between windows, blocks of time or records (cluster-robust)."""

import dataclasses
import functools
import itertools
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import fdtrc

from frictax.arguments import check_count
from frictax.fitting import FitResult
from frictax.fitting.problem.problem import PreparedSweep, Problem
from frictax.fitting.result.identifiability import join_names
from frictax.fitting.result.spread import Memoized, inverse_gram
from frictax.fitting.search.certificate import certify
from frictax.notice import Notice
from frictax.pytree import pytree_dataclass, static

from .linearization import (
    CovarianceEstimate,
    Linearization,
    LinearNoiseModel,
    Samples,
    inverse_root,
    varies_by_record,
)
from .resampling import method_of, run_search, scale_weights

# [1] If one cluster has more than this share of the information on a linear combination of the
# parameters, the other clusters are neglected for this combination.
_ALONE = 1 - 1e-6


@pytree_dataclass
class Clustered(LinearNoiseModel):
    """The noise model of windows, or blocks of time, that are independent of each other.

    Each window is a separate run that starts at the measured state. An error of the start state or
    of an input changes only later residuals of the same window. The standard errors follow from the
    differences between windows ("CR2"). The degrees of freedom of Student's t follow from the
    number of windows that determine a parameter. A window that continues the previous window
    belongs to the same cluster. Each row of a sweep is a cluster.

    This model does not detect errors that last over many windows, such as a drift; `Jackknife` can.

    **Arguments:** `blocks`: number of blocks of equal length that are compared instead of windows,
    for any objective. The number is that of all records together, or of each record if parameters
    differ by record.

    **Source:** R. M. Bell, D. F. McCaffrey, "Bias reduction in standard errors for linear
    regression with multi-stage samples", Survey Methodology 28 (2002); directions that one cluster
    determines: J. E. Pustejovsky, E. Tipton, Journal of Business & Economic Statistics 36 (2018).

    **Example:** `FitResult.uncertainty` compares all noise models.
    """

    blocks: int | None = static(default=None)

    def __post_init__(self) -> None:
        if self.blocks is not None:
            check_count("`Clustered.blocks`", self.blocks, 2, "Leave it out to compare windows.")

    def check(self, problem: Problem) -> None:
        if self.blocks is None and not has_windows(problem):
            raise ValueError(
                "`Clustered` compares windows with each other, and "
                f"{type(problem.objective).__name__} has none. Fit on `Windows`, or take"
                " `Clustered(10)`."
            )

    def estimate(self, linear: Linearization) -> CovarianceEstimate:
        if self.blocks is not None:
            cluster, seconds = time_blocks(linear, self.blocks)
            says = f"scatter between {cluster[-1] + 1} blocks of {seconds:.2g} s"
            return cluster_covariance(linear, cluster, says)
        clusters, count, first = [], [0, 0], 0  # `count`: number of windows, and of rows of sweeps
        for prepared in linear.found.problem.prepared:
            weight, swept = np.asarray(prepared.weight), isinstance(prepared, PreparedSweep)
            goes_on = np.zeros(len(weight), bool)
            if not isinstance(prepared, PreparedSweep):
                goes_on = np.asarray(prepared.goes_on)
            mine = np.cumsum(~goes_on)
            counted = np.reshape(weight > 0, (len(weight), -1)).any(axis=1)
            count[swept] += np.unique(mine[counted]).size
            clusters.append(first + np.repeat(mine, weight.size // len(weight)))
            first = int(clusters[-1][-1]) + 1
        windows = f"{count[0]} window{'s' * (count[0] != 1)}"
        pieces = windows + (f" and {count[1]} rows of sweeps" if count[1] else "")
        out = cluster_covariance(linear, np.concatenate(clusters), f"scatter between {pieces}")
        names, notices = linear.found.names, ()
        if count[0] < 6:
            numbers = {"count": count[0], "windows": windows, "enough": 12}
            notices = (Notice("few-windows", "", numbers),)
        else:  # Below 2.5 degrees of freedom, only an interval's order of magnitude is right.
            is_rough = (out.dof(np.eye(len(names))) < 2.5) & linear.acts
            rough = [n for n, on in zip(names, is_rough, strict=True) if on]
            if rough:
                notices = (Notice("few-windows-tell", "", {"names": join_names(rough)}),)
        return dataclasses.replace(out, notices=notices)


def has_windows(problem: Problem) -> bool:
    """Return whether records are simulated in windows, each from its own initial state."""
    return any(not isinstance(p, PreparedSweep) and p.rows is not None for p in problem.prepared)


def cluster_covariance(
    linear: Linearization, cluster: Int[np.ndarray, " n"], says: str
) -> CovarianceEstimate:
    """Return the cluster-robust covariance "CR2" of a linearised fit (see `bias_reduced`)."""
    covariance, dof = bias_reduced(
        linear.jacobian,
        linear.residuals,
        cluster,
        noise=linear.noise,
        priors=linear.priors,
        axes=linear.axes,
    )
    return CovarianceEstimate(covariance, dof, says)


def bias_reduced(
    jacobian: Float[np.ndarray, "n p"],
    residuals: Float[np.ndarray, " n"],
    cluster: Int[np.ndarray, " n"],
    *,
    noise: float = 1.0,
    priors: Float[np.ndarray, "k p"] | None = None,
    axes: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[Float[np.ndarray, "p p"], Callable[[np.ndarray], Float[np.ndarray, " m"]]]:
    """Return the covariance "CR2" of least squares, and a function that returns Satterthwaite's
    degrees of freedom for linear combinations (m, p) of the estimates.

    Let J be the Jacobian of the residuals r, Z = J inv(J'J)^(1/2), b = inv(J'J)^(1/2) c, and M_g =
    Z_g'Z_g for each cluster g. The variance of a linear combination c'x of the estimates x is the
    sum over g of (b'(1 - M_g)^(-1/2) Z_g'r_g)**2. This variance is unbiased for white residuals. If
    one cluster alone determines a direction, its residuals do not have a component in this
    direction. `noise` replaces this component, with 1 degree of freedom.

    **Arguments:** `cluster`: the cluster number of each row; rows of a cluster must be neighbours.
    `noise`: standard deviation of white residuals; `priors`: rows that priors add to the Jacobian,
    for residuals of standard deviation `noise`; `axes`: result of `inverse_root`.

    **Source:** Bell and McCaffrey, see `Clustered`, equations 8 to 13.
    """
    priors = np.zeros((0, jacobian.shape[1])) if priors is None else priors
    root, unseen = inverse_root(jacobian, priors) if axes is None else axes
    both = np.column_stack([jacobian @ root, residuals])
    ends = [0, *(np.flatnonzero(np.diff(cluster)) + 1), len(cluster)]
    grams = np.stack([both[a:b].T @ both[a:b] for a, b in itertools.pairwise(ends)])
    e, v = np.linalg.eigh(grams[:, :-1, :-1])
    along = np.einsum("gij,gi->gj", v, grams[:, :-1, -1])
    only, e = e > _ALONE, np.clip(e, 0.0, _ALONE)
    lift = (v / np.sqrt(1.0 - e)[:, None]) @ v.transpose(0, 2, 1)
    share = (v * e[:, None]) @ v.transpose(0, 2, 1)
    lifted = (share @ lift).transpose(0, 2, 1)
    scores = np.einsum("gij,gj->gi", v, np.where(only, 0.0, along / np.sqrt(1.0 - e)))
    alone = noise**2 * np.einsum("gij,gj,gkj->ik", v, e * only, v)
    of_data, prior = root @ (scores.T @ scores + alone) @ root.T, noise * priors @ root @ root.T
    # Directions that are not identifiable get very large variances, as in `inverse_gram`.
    covariance = of_data + prior.T @ prior + noise**2 * unseen.T @ unseen
    dof = functools.partial(_satterthwaite, root, share, lifted, covariance, of_data)
    return covariance, Memoized(dof)


def _satterthwaite(
    root: Float[np.ndarray, "p s"],
    share: Float[np.ndarray, "g s s"],
    lifted: Float[np.ndarray, "g s s"],
    covariance: Float[np.ndarray, "p p"],
    of_data: Float[np.ndarray, "p p"],
    directions: Float[np.ndarray, "m p"],
) -> Float[np.ndarray, " m"]:
    """Return Satterthwaite's degrees of freedom of linear combinations of the estimates."""
    out = [np.zeros(0)]
    for c in np.array_split(directions, len(directions) // 500 + 1):
        b = c @ root
        # The variance is a quadratic form in white residuals. Its matrix has one row per cluster,
        # with `diagonal` on the diagonal and products of vectors `m` elsewhere.
        diagonal = np.sum((b @ share) * b, axis=2)
        m = b @ lifted
        square = np.sum(np.einsum("gmi,gmj->mij", m, m) ** 2, axis=(1, 2))
        square += np.sum(diagonal**2, axis=0) - np.sum(np.sum(m**2, axis=2) ** 2, axis=0)
        whole, data = (np.sum((c @ v) * c, axis=1) for v in (covariance, of_data))
        with np.errstate(divide="ignore", invalid="ignore"):
            nu = np.maximum(diagonal.sum(axis=0) ** 2 / square, 1.0)
            nu *= np.where(data > 0, whole / data, 1.0) ** 2
        out.append(np.where(np.isfinite(nu), np.minimum(nu, 1e9), 1e9))
    return np.concatenate(out)


def time_blocks(linear: Linearization, count: int) -> tuple[Int[np.ndarray, " n"], float]:
    """Divide the records into `count` blocks. Return the block number of each residual, and the
    length of the longest block [s]. A block contains whole windows. Each row of a sweep is a block.
    """
    problem, data = linear.found.problem, linear.found.records.values()
    out, first, seconds = [], 0, 0.0
    swept = [isinstance(p, PreparedSweep) for p in problem.prepared]
    shared = max(-(-count // max(len(swept) - sum(swept), 1)), 1)
    each = count if varies_by_record(problem) else shared
    for i, (record, prepared) in enumerate(zip(data, problem.prepared, strict=True)):
        size = len(prepared.weight)
        mine = np.arange(size) if swept[i] else np.arange(size) * min(each, size) // size
        if not swept[i]:
            seconds = max(seconds, record.duration / each)
        out.append(first + np.repeat(mine, prepared.weight.size // size))
        first = int(out[-1][-1]) + 1
    return np.concatenate(out), seconds


def compare_records(
    linear: Linearization, model: LinearNoiseModel
) -> tuple[Bool[np.ndarray, " p"], tuple[Notice, ...]]:
    """Return a mask of the estimates that differ between records by more than their errors by the
    noise `model`, and a notice for each of them. A linearised fit yields the estimates of each
    record."""
    found = linear.found
    shared = _is_shared(found)
    runs = [i for i, p in enumerate(found.problem.prepared) if not isinstance(p, PreparedSweep)]
    if len(runs) < 2:
        return np.zeros(len(shared), bool), ()
    moved, variance, dof = (np.zeros((len(runs), len(shared))) for _ in range(3))
    known = np.zeros((len(runs), len(shared)), bool)
    for row, i in enumerate(runs):
        one, moved[row] = linear.fit_to_record(i)
        errors = model.estimate(one)
        variance[row], dof[row] = np.diag(errors.covariance), errors.dof(np.eye(len(shared)))
        # Find the parameters that this record identifies without the other records.
        norms, (_, unseen) = np.linalg.norm(one.jacobian, axis=0), one.axes
        size = np.linalg.norm(unseen, axis=1, keepdims=True)
        share = np.divide(unseen, size, out=np.zeros_like(unseen), where=size > 0) * norms
        mixed = np.linalg.norm(share, axis=0) / np.maximum(np.linalg.norm(share), 1e-300) > 1e-4
        known[row] = (norms > 0) & ~mixed & shared & (variance[row] > 0)
    return _find_differences(found, moved, variance, dof, known)


def _find_differences(
    found: FitResult,
    values: Float[np.ndarray, "k p"],
    variance: Float[np.ndarray, "k p"],
    dof: Float[np.ndarray, "k p"],
    known: Bool[np.ndarray, "k p"],
) -> tuple[Bool[np.ndarray, " p"], tuple[Notice, ...]]:
    """Return a mask of the estimates that differ between records, and a notice for each of them.
    The test of an estimate uses the records whose entry in `known` is True."""
    differ, notices = np.zeros(known.shape[1], bool), []
    tests = max(int(np.sum(known.sum(axis=0) > 1)), 1)
    unknowns = [u for u in found.problem.unknowns if not u.hidden for _ in u.names]
    for k in np.flatnonzero(known.sum(axis=0) > 1):
        mine = known[:, k]
        probability = welch_test(values[mine, k], variance[mine, k], dof[mine, k])
        if probability < 0.05 / tests:  # significance level of all tests together
            differ[k] = True
            between = paule_mandel(values[mine, k], variance[mine, k])
            value = abs(float(found.x[found.shown][k]))
            numbers = {
                "between": between,
                "unit": found.unit_of(unknowns[k]),
                "percent": 100 * between / value if value else np.inf,
                "probability": probability,
                "records": int(mine.sum()),
            }
            notices.append(Notice("records-differ", found.names[k], numbers))
    return differ, tuple(notices)


def records_apart(found: FitResult) -> tuple[Notice, ...]:
    """Return notices on the parameters that differ between fits to single records. Two conditions
    are necessary: the residuals of the common fit exceed the noise, and the residuals of at least
    two single-record fits do not exceed it.

    Each single record is fitted by a search, because the linearised common fit is not valid far
    from the common values. The search begins at the start values of the common fit. If the final
    residuals exceed the noise, a second search begins at the result of the common fit.
    """
    whole, problem = found.certificate, found.problem
    if whole is None or whole.at_noise or len(problem.prepared) < 2 or problem.priors:
        return ()
    record, each = Samples(problem).record, []
    starts = [problem.coordinates(np.asarray(problem.x0)), found.z]
    for i in range(len(problem.prepared)):
        mine = scale_weights(problem, (record == i).astype(float))
        for z in starts:
            end = run_search(mine, method_of(found), z, 60)
            r = np.asarray(end.residuals)[: found.n]
            alone = certify(mine, r)
            if alone is not None and alone.at_noise:
                break
        else:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            jacobian = np.nan_to_num(np.asarray(end.jacobian)[: found.n] / np.asarray(end.slope))
        norms = np.linalg.norm(jacobian, axis=0)
        free = int(np.sum(mine.weights() > 0)) - int(np.sum(norms > 0))
        covariance = inverse_gram(np.linalg.qr(jacobian, mode="r"), norms, norms > 0)
        variance = float(r @ r) / max(free, 1) * np.diag(covariance)
        each.append((np.asarray(end.x), variance, np.full(norms.size, float(max(free, 1)))))
    if len(each) < 2:
        return ()
    x, variance, dof = (np.array(a)[:, found.shown] for a in zip(*each, strict=True))
    return _find_differences(found, x, variance, dof, (variance > 0) & _is_shared(found))[1]


def welch_test(
    x: Float[np.ndarray, " k"], variance: Float[np.ndarray, " k"], dof: Float[np.ndarray, " k"]
) -> float:
    """Return the p value of Welch's test that the true values of `x` (k,) are equal.

    F = sum w*(x - m)**2/(k - 1)/(1 + 2*(k - 2)/(k**2 - 1)*L) with w = 1/variance and the
    weighted mean m. L = sum (1 - w/sum w)**2/dof, where `dof` are the degrees of freedom of each
    variance. F has k - 1 and (k**2 - 1)/(3 L) degrees of freedom.

    **Source:** B. L. Welch, "On the comparison of several mean values", Biometrika 38 (1951).

    >>> round(welch_test(np.array([1.0, 1.2, 1.8]), np.full(3, 0.04), np.full(3, 10.0)), 3)
    0.03
    """
    k, w = len(x), 1.0 / variance
    mean, share = w @ x / w.sum(), (1.0 - w / w.sum()) ** 2
    away = float(np.sum(share / dof))
    f = w @ (x - mean) ** 2 / (k - 1) / (1.0 + 2.0 * (k - 2) / (k**2 - 1) * away)
    return float(fdtrc(k - 1, (k**2 - 1) / (3.0 * away), f))


def paule_mandel(x: Float[np.ndarray, " k"], variance: Float[np.ndarray, " k"]) -> float:
    """Return the standard deviation of the true values of `x`, measured with error `variance`.

    **Source:** R. C. Paule, J. Mandel, "Consensus values and weighting factors", Journal of
    Research of the National Bureau of Standards 87 (1982).

    >>> round(paule_mandel(np.array([1.0, 2.0, 3.0]), np.full(3, 0.19)), 6)
    0.9
    """

    def excess(between: float) -> float:
        w = 1.0 / (variance + between**2)
        return float(w @ (x - w @ x / w.sum()) ** 2) - (len(x) - 1)

    low, high = 0.0, 2.0 * float(np.ptp(x))
    for _ in range(60 if excess(0.0) > 0 else 0):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return low


def _is_shared(found: FitResult) -> Bool[np.ndarray, " p"]:
    """Return a mask of the estimates that have one value for all records."""
    return np.array(
        [u.record is None for u in found.problem.unknowns if not u.hidden for _ in u.names]
    )
