"""Does a residual follow what is known at each sample, where neighbours depend on each other?"""

import dataclasses

import numpy as np
from jaxtyping import Float

from ..errors.hac_covariance import long_run_covariance
from .finding import is_strong

_LEAST = 1e-6  # of a column: what others leave of it, below which it says nothing of its own
_RARE = 6.0  # squares of chance beyond one for each column


@dataclasses.dataclass(frozen=True, eq=False)
class Regressed:
    """A residual on columns, beside others that it may follow as well.

    - `values` (k,), `errors` (k,): of the columns, in the residual's unit over theirs; nan for one
      that the others say already.
    - `share` of the residual's mean square that the columns explain beyond the others; `p`: how
      often coloured noise alone would do as much; `independent`: as how many samples the residual
      counts here.
    - `part`, `rest` (n,): the sum of the columns times their values, and what is left of all.
    """

    values: Float[np.ndarray, " k"]
    errors: Float[np.ndarray, " k"]
    share: float
    p: float
    independent: float
    part: Float[np.ndarray, " n"]
    rest: Float[np.ndarray, " n"]

    @property
    def strong(self) -> bool:
        return is_strong(self.share, self.p)

    @property
    def hidden(self) -> float:
        """The share below which an effect drowns: that of chance in one of a hundred, roughly, of
        as many samples as are independent.
        """
        usual = (self.values.size + _RARE) / max(self.independent, 1.0)
        return float(np.clip(usual, self.share, 1.0))


def regressed(
    e: Float[np.ndarray, " n"],
    columns: Float[np.ndarray, "n k"],
    others: Float[np.ndarray, "n j"],
    in_time: bool = True,
) -> Regressed | None:
    """Least squares of `e` by `columns` beside `others`, and a Wald test of the columns; None where
    they say nothing of their own.

    What the others explain is taken out of both (Frisch and Waugh); the covariance of the rest is
    that of sums whose terms depend on their neighbours (`long_run_covariance`). W/k is held against
    Fisher's F with k and m - k degrees of freedom, with m the number of independent samples, which
    that covariance tells too: without, few periods of a slow error would seem to prove much. Rows
    of a sweep are not `in_time`: they are taken for independent, and the test is the usual one.
    """
    from scipy.stats import f as fisher

    known = orthonormal(others)
    own = columns - known @ (known.T @ columns)
    size, before = np.linalg.norm(own, axis=0), np.linalg.norm(columns, axis=0)
    told = size > _LEAST * np.maximum(before, 1e-300)
    target = e - known @ (known.T @ e)
    basis = orthonormal(own * told)
    k, n = basis.shape[1], e.size
    if k == 0 or n <= k + known.shape[1] + 4:
        return None
    along = basis.T @ target
    rest = target - basis @ along
    # the basis has columns of length 1, so that theirs is the covariance of `along`
    scores = basis * rest[:, None] * np.sqrt(n)
    if not np.any(scores):
        return None
    if in_time:
        long_run, _ = long_run_covariance(scores)
        ratio = np.mean(scores**2, axis=0) / np.maximum(np.diag(long_run), 1e-300)
        independent = float(n * min(np.min(ratio), 1.0))
    else:
        long_run = np.eye(k) * (rest @ rest) / (n - k - known.shape[1])
        independent = float(n)
    wald = float(along @ np.linalg.pinv(long_run, hermitian=True) @ along) / k
    p = float(fisher.sf(wald, k, max(independent - k - known.shape[1], 1.0)))
    back = np.linalg.pinv(own * told) @ basis
    values = back @ along
    errors = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", back, long_run, back), 0.0))
    share = float(along @ along / np.maximum(e @ e, 1e-300))
    hide = np.where(told, 1.0, np.nan)
    return Regressed(values * hide, errors * hide, share, p, independent, columns @ values, rest)


def orthonormal(columns: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n r"]:
    """An orthonormal basis of the columns' span."""
    size = np.linalg.norm(columns, axis=0)
    columns = columns[:, size > 0] / size[size > 0]
    if columns.shape[1] == 0:
        return columns
    u, s, _ = np.linalg.svd(columns, full_matrices=False)
    return u[:, s > 1e-8 * s[0]]


def hats(x: Float[np.ndarray, " n"], corners: Float[np.ndarray, " k"]) -> Float[np.ndarray, "n k"]:
    """Columns whose sums are all lines with these corners: each is 1 at its corner, 0 at all others
    and straight between.
    """
    return np.stack([np.interp(x, corners, row) for row in np.eye(corners.size)], axis=1)


def corners_of(x: Float[np.ndarray, " n"], most: int) -> Float[np.ndarray, " k"]:
    """At most so many corners, half of them evenly spaced and half with as many samples between
    each two.
    """
    low, high = float(x.min()), float(x.max())
    even = np.linspace(low, high, most // 2 + 1)
    corners = np.sort(
        np.concatenate([even, np.quantile(x, np.linspace(0.0, 1.0, most - most // 2 + 1)[1:-1])])
    )
    kept = [low]
    for c in corners:
        if c - kept[-1] > 0.5 * (high - low) / most and high - c > 0.5 * (high - low) / most:
            kept.append(float(c))
    return np.array([*kept, high]) if high > low else np.array([low])


def binned(
    x: Float[np.ndarray, " n"], e: Float[np.ndarray, " n"], edges: Float[np.ndarray, " b"]
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Means of x and e between each two edges, and the standard errors of those of e: from what
    differs between visits of a bin, since within one the samples depend on each other; of fewer
    than three visits, from how e varies in all bins.
    """
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, edges.size - 2)
    count = np.bincount(place, minlength=edges.size - 1)
    weights = np.maximum(count, 1)
    middle, mean = (np.bincount(place, a, minlength=edges.size - 1) / weights for a in (x, e))
    first = np.concatenate([[True], place[1:] != place[:-1]])
    apart = np.bincount(np.cumsum(first) - 1, e - mean[place])  # one sum for each visit
    visits = np.bincount(place[first], minlength=edges.size - 1)
    square = np.bincount(place[first], apart**2, minlength=edges.size - 1)
    shared = long_run_covariance((e - mean[place])[:, None])[0][0, 0] / weights
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(
            np.where(
                visits >= 3, square * visits / (visits - 1.0) / weights**2, np.maximum(shared, 0.0)
            )
        )
    here = count >= max(3, 0.1 * np.median(count[count > 0]))
    return middle[here], mean[here], error[here]
