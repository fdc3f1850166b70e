"""Whether records agree in what they tell of a number."""

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import fdtrc

from frictax.fitting import FitResult
from frictax.fitting.problem.problem import PreparedSweep
from frictax.fitting.result.covariance import inverse_gram
from frictax.fitting.search.certificate import certify
from frictax.notice import Notice

from .clusters import of_clusters
from .linearized import AbstractLinearErrors, Linearized, LinearSpread
from .refits import Samples, method_of, reweighted, searched

_STEPS = 60  # of the search of one record
_LEVEL = 0.05  # of all tests together


def differences(
    linear: Linearized, account: AbstractLinearErrors
) -> tuple[Bool[np.ndarray, " p"], tuple[Notice, ...]]:
    """In which estimates the records differ by more than their errors by `account`, and a notice
    for each.

    Each record's own value is that of the linearised fit to it alone.
    """
    found = linear.found
    shared = _is_shared(found)
    differ = np.zeros(len(shared), bool)
    runs = [i for i, p in enumerate(found.problem.prepared) if not isinstance(p, PreparedSweep)]
    if len(runs) < 2:
        return differ, ()
    moved, variance, dof = (np.zeros((len(runs), len(shared))) for _ in range(3))
    told = np.zeros((len(runs), len(shared)), bool)
    for row, i in enumerate(runs):
        one, moved[row] = linear.of_record(i)
        made = account.of(one)
        variance[row], dof[row] = np.diag(made.covariance), made.dof(np.eye(len(shared)))
        told[row] = _apart(one) & shared & (variance[row] > 0)
    return _differing(found, moved, variance, dof, told)


def _differing(
    found: FitResult,
    values: Float[np.ndarray, "k p"],
    variance: Float[np.ndarray, "k p"],
    dof: Float[np.ndarray, "k p"],
    told: Bool[np.ndarray, "k p"],
) -> tuple[Bool[np.ndarray, " p"], tuple[Notice, ...]]:
    """In which of the estimates `values` of k records differ, where a record has `told` it."""
    differ, notices = np.zeros(told.shape[1], bool), []
    tests = max(int(np.sum(told.sum(axis=0) > 1)), 1)
    unknowns = [u for u in found.problem.unknowns if not u.hidden for _ in u.names]
    for k in np.flatnonzero(told.sum(axis=0) > 1):
        mine = told[:, k]
        probability = welch(values[mine, k], variance[mine, k], dof[mine, k])
        if probability < _LEVEL / tests:
            differ[k] = True
            between = spread_between(values[mine, k], variance[mine, k])
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
    """Notices of the numbers in which fits to each record alone differ, where the fit to all leaves
    more than noise and two of those alone leave no more.

    The values of each record alone are found by a search, not by the linearised common fit: where
    records differ much, that fit is far from them. Each search begins at the start of the common
    fit, and at its end if it does not reach the noise.
    """
    whole, problem = found.certificate, found.problem
    if whole is None or whole.at_noise or len(problem.prepared) < 2 or problem.priors:
        return ()
    record, values, variance, dof = Samples(problem).record, [], [], []
    starts = [problem.coordinates(np.asarray(problem.x0)), found.z]
    for i in range(len(problem.prepared)):
        mine = reweighted(problem, (record == i).astype(float))
        for z in starts:
            end = searched(mine, method_of(found), z, _STEPS)
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
        values.append(np.asarray(end.x))
        variance.append(float(r @ r) / max(free, 1) * np.diag(covariance))
        dof.append(np.full(norms.size, float(max(free, 1))))
    if len(values) < 2:
        return ()
    shown = found.shown
    x, squares, freedom = (np.array(a)[:, shown] for a in (values, variance, dof))
    return _differing(found, x, squares, freedom, (squares > 0) & _is_shared(found))[1]


def by_record(linear: Linearized) -> LinearSpread:
    """What differs between whole records."""
    record = linear.samples.record
    covariance, dof = of_clusters(linear, record)
    return LinearSpread(covariance, dof, f"scatter between {record[-1] + 1} records")


def welch(
    x: Float[np.ndarray, " k"], variance: Float[np.ndarray, " k"], dof: Float[np.ndarray, " k"]
) -> float:
    """The probability that k values with these variances, known to so many degrees of freedom,
    differ as much by chance.

    F = sum w (x - m)**2 / (k - 1) / (1 + 2 (k - 2)/(k**2 - 1) L) with w = 1/variance, m their
    weighted mean and L = sum (1 - w/sum w)**2 / dof, has k - 1 and (k**2 - 1)/(3 L) of them.

    **Source:** B. L. Welch, "On the comparison of several mean values", Biometrika 38 (1951).

    >>> round(welch(np.array([1.0, 1.2, 1.8]), np.full(3, 0.04), np.full(3, 10.0)), 3)
    0.03
    """
    k, w = len(x), 1.0 / variance
    mean, share = w @ x / w.sum(), (1.0 - w / w.sum()) ** 2
    away = float(np.sum(share / dof))
    f = w @ (x - mean) ** 2 / (k - 1) / (1.0 + 2.0 * (k - 2) / (k**2 - 1) * away)
    return float(fdtrc(k - 1, (k**2 - 1) / (3.0 * away), f))


def spread_between(x: Float[np.ndarray, " k"], variance: Float[np.ndarray, " k"]) -> float:
    """The standard deviation of what values with these variances are drawn from, besides them.

    **Source:** R. C. Paule, J. Mandel, "Consensus values and weighting factors", Journal of
    Research of the National Bureau of Standards 87 (1982).

    >>> round(spread_between(np.array([1.0, 2.0, 3.0]), np.full(3, 0.19)), 6)
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
    """Whether each estimate is one number for all records."""
    return np.array(
        [u.record is None for u in found.problem.unknowns if not u.hidden for _ in u.names]
    )


def _apart(one: Linearized) -> Bool[np.ndarray, " p"]:
    """Which numbers a record tells without the others."""
    norms = np.linalg.norm(one.jacobian, axis=0)
    _, unseen = one.axes
    size = np.linalg.norm(unseen, axis=1, keepdims=True)
    share = np.divide(unseen, size, out=np.zeros_like(unseen), where=size > 0) * norms
    mixed = np.linalg.norm(share, axis=0) / np.maximum(np.linalg.norm(share), 1e-300) > 1e-4
    return (norms > 0) & ~mixed
