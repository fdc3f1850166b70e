"""Findings of a residual study, and the regression with autocorrelated errors that tests them."""

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from frictax.text import format_estimate, prefix_unit

from ..errors.linearization import long_run_covariance, orthonormal_basis

# A finding is strong if it explains more than the fraction SHARE of the residual's mean square and
# its p value is below CHANCE.
SHARE, CHANCE = 0.005, 0.005


@dataclasses.dataclass(frozen=True, eq=False)
class Curve:
    """A curve in the plot of a finding: `y` over `x`. `error`: standard errors of `y`, or None;
    `direction` of motion: 1, -1, or 0 for both; `kind`: "points", "line" or "band" (from -y to y).
    """

    x: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]
    error: Float[np.ndarray, " n"] | None = None
    direction: int = 0
    kind: str = "points"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Finding:
    """One pattern in the residuals. `print` shows `sentence`.

    - `name`: "whiteness", "speed", "position", "direction", "time" or "ripple"; `record`, `of`:
      label of the record, and body or channel of the residual.
    - `sentence`: the finding in words; `strong`: whether it is significant, see `ResidualStudy`.
    - `effect`: size of the pattern, with the standard error `error`, in `unit`. For "speed",
      "position" and "time": the range of the pattern. For "direction": mean, or half the difference
      of directions. For "ripple": amplitude. For "whiteness": autocorrelation at lag 1.
    - `share`: fraction of the residual's mean square that the pattern explains; `p`: probability
      that autocorrelated noise explains at least as much.
    - `numbers`: further results by name [SI], for example ``period``, ``period error``, ``forward``
      and ``backward`` of a ripple.
    - `curves` of the plot; `x_label`, `y_label`: name and unit of its axes.

    **Example:** at `ResidualStudy`.
    """

    name: str
    record: str
    of: str
    sentence: str
    strong: bool
    effect: float
    error: float
    unit: str
    share: float
    p: float
    numbers: Mapping[str, float]
    curves: tuple[Curve, ...]
    x_label: tuple[str, str]
    y_label: tuple[str, str]

    def __str__(self) -> str:
        return self.sentence

    __repr__ = __str__


def is_strong(share: float, p: float) -> bool:
    """Return whether a finding with the fraction `share` and the p value `p` is strong."""
    return bool(share > SHARE and p < CHANCE)


def amount(value: float, unit: str, figures: int = 3) -> str:
    """Return a value with a convenient SI prefix.

    >>> amount(0.0025, "m", 4), amount(-0.87, "N"), amount(12000.0, "N.m")
    ('2.500 mm', '-0.870 N', '12.0 kN.m')
    """
    if not math.isfinite(value):
        return f"unknown {unit}"
    name, size = prefix_unit(unit, value, plain=(0.1, 1e3))
    x = value / size
    digits = figures - 1 - (math.floor(math.log10(abs(x))) if x else 0)
    rounded = f"{x:.{min(max(digits, 0), 12)}f}" if -6 < digits < 12 else f"{x:.{figures}g}"
    return f"{rounded} {name}"


def with_error(value: float, error: float, unit: str) -> str:
    """Return a value and its standard error as text. Both numbers have the same SI prefix, and are
    rounded to the second digit of the error.

    >>> with_error(0.00250012, 0.0000031, "m")
    '2.5001 mm (std. error 0.0031 mm)'
    """
    if not (math.isfinite(value) and math.isfinite(error) and error > 0):
        return amount(value, unit)
    row = format_estimate(value, error, unit)
    return f"{row.value} {row.unit} (std. error {row.error} {row.unit})"


def percent(share: float) -> str:
    """Return a fraction as text in per cent.

    >>> percent(0.187), percent(0.0004)
    ('19 %', 'less than 0.1 %')
    """
    return "less than 0.1 %" if share < 1e-3 else f"{100 * share:.2g} %"


@dataclasses.dataclass(frozen=True, eq=False)
class Regressed:
    """The result of a regression of a residual on `columns` and `others` (see `regress`).

    - `values` (k,), `errors` (k,): coefficients of `columns` and their standard errors; nan for a
      column that `others` explain.
    - `share`: fraction of the residual's mean square that `columns` explain in addition to
      `others`; `p`: probability that noise explains as much; `independent`: effective sample size.
    - `part` (n,): `columns` times `values`; `rest` (n,): residual of the fit with all columns.
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
        """A limit for the fraction of the mean square: noise alone explains more in only about 1 %
        of records with so many independent samples. Smaller effects can remain hidden in noise.
        """
        # For k = 1 or 2, chi-square with k degrees of freedom exceeds k + 6 in 1 to 2 % of records.
        usual = (self.values.size + 6.0) / max(self.independent, 1.0)
        return float(np.clip(usual, self.share, 1.0))


def regress(
    e: Float[np.ndarray, " n"],
    columns: Float[np.ndarray, "n k"],
    others: Float[np.ndarray, "n j"],
    in_time: bool = True,
) -> Regressed | None:
    """Fit the residual `e` by least squares with `columns` and `others`, and test `columns` by a
    Wald test. Return None if `others` explain all columns, or if there are too few samples.

    The part that `others` explain is projected out of `e` and `columns` (Frisch and Waugh). The
    covariance accounts for autocorrelation (`long_run_covariance`). The Wald statistic W/k is
    compared with Fisher's F with k and m - k - j degrees of freedom (k `columns`, j `others`). m is
    the effective number of samples. With the actual number, a few periods of a slow error would
    seem significant. In sweeps (`in_time` False), samples count as independent.
    """
    from scipy.stats import f as fisher

    known = orthonormal_basis(others)
    own = columns - known @ (known.T @ columns)
    size, before = np.linalg.norm(own, axis=0), np.linalg.norm(columns, axis=0)
    told = size > 1e-6 * np.maximum(before, 1e-300)  # False if `others` explain it
    target = e - known @ (known.T @ e)
    basis = orthonormal_basis(own * told)
    k, n = basis.shape[1], e.size
    if k == 0 or n <= k + known.shape[1] + 4:
        return None
    along = basis.T @ target
    rest = target - basis @ along
    # The basis is orthonormal, so the long-run covariance of `scores` is the covariance of `along`.
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


def hats(x: Float[np.ndarray, " n"], corners: Float[np.ndarray, " k"]) -> Float[np.ndarray, "n k"]:
    """Return k columns, a basis of the piecewise linear functions of x with k `corners`. Each
    column is 1 at one corner, 0 at the other corners, and linear between corners.
    """
    return np.stack([np.interp(x, corners, row) for row in np.eye(corners.size)], axis=1)


def corners_of(x: Float[np.ndarray, " n"], most: int) -> Float[np.ndarray, " k"]:
    """Return at most `most` corners in the range of `x`, some equidistant, some at quantiles."""
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


def bin_means(
    x: Float[np.ndarray, " n"], e: Float[np.ndarray, " n"], edges: Float[np.ndarray, " b"]
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Return the means of x and e in the bins between `edges`, and standard errors of the means of
    e. The samples of one visit to a bin are correlated. Therefore a standard error follows from the
    differences between visits, or from the long-run variance of e for fewer than 3 visits.
    """
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, edges.size - 2)
    count = np.bincount(place, minlength=edges.size - 1)
    weights = np.maximum(count, 1)
    middle, mean = (np.bincount(place, a, minlength=edges.size - 1) / weights for a in (x, e))
    first = np.concatenate([[True], place[1:] != place[:-1]])
    apart = np.bincount(np.cumsum(first) - 1, e - mean[place])  # sum of e - mean in each visit
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
