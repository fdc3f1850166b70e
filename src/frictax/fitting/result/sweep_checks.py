"""Whether a law follows its sweep over speed, and which rows lie off."""

import numpy as np
from jaxtyping import Float, Real

from frictax.measurements.sweep import Sweep
from frictax.notice import Notice

_LEVEL = 0.05
_DRAWS = 999
_WAVES = 8  # over the rows of one direction
_EXACT = 1e-5  # of the forces: what is left of data without noise


def sweep_checks(
    sweep: Sweep,
    names: list[str],
    residuals: Float[np.ndarray, " n"],
    jacobian: Float[np.ndarray, "n p"],
) -> list[Notice]:
    """Notices of a sweep fitted by least squares: weighted `residuals`, predicted minus measured,
    and their `jacobian` by the numbers called `names` that are not at a bound.

    Four tests of lack of fit, over rows sorted by speed in each direction: runs of one sign (Wald
    and Wolfowitz), the product of neighbours, the squares of the eight slowest waves over the rows
    (Neyman), and where speeds are replicated the scatter between them over that within. The least
    of their chances has to be so small in 5 % of draws at most (Westfall and Young). Rows by the
    largest studentised residual. Chances are those of 999 draws of white normal noise from which
    the same columns are taken away, so that they hold for few rows too.

    **Source:** A. Wald, J. Wolfowitz, Ann. Math. Stat. 11 (1940); J. Neyman, Skandinavisk
    Aktuarietidskrift 20 (1937); N. R. Draper, H. Smith, *Applied Regression Analysis*, 3rd ed.
    (1998), sections 2.1, 7.2 and 8.1; P. H. Westfall, S. S. Young, *Resampling-Based Multiple
    Testing* (1993); M. Dwass, Ann. Math. Stat. 28 (1957) for chances by draws.
    """
    n, p = jacobian.shape
    sigma = 1.0 if sweep.sigma is None else sweep.sigma
    size = np.sqrt(np.mean((sweep.force / sigma) ** 2))
    if n - p < 4 or np.sqrt(np.mean(residuals**2)) < _EXACT * size:
        return []
    left, scale, _ = np.linalg.svd(jacobian / _lengths(jacobian), full_matrices=False)
    basis = left[:, scale > 1e-10 * np.max(scale, initial=0.0)]
    noise = np.random.default_rng(0).standard_normal((n, _DRAWS))
    noise = np.column_stack([residuals, noise - basis @ (basis.T @ noise)])
    return [*_lacking(sweep, noise), *_outlying(sweep, names, jacobian, basis, noise)]


def _lacking(sweep: Sweep, r: Float[np.ndarray, "n k"]) -> list[Notice]:
    """A notice where the first column of `r` is none like the others, over speed."""
    order = np.lexsort((np.abs(sweep.velocity), sweep.direction))
    speed, ahead = sweep.velocity[order], sweep.direction[order]
    r = r[order] / np.linalg.norm(r, axis=0)
    next_to = ahead[1:] == ahead[:-1]
    kept = (np.sign(r[1:]) == np.sign(r[:-1])) & next_to[:, None]
    tests = {
        "runs of one sign": np.sum(kept, axis=0),
        "likeness of neighbours": np.sum((r[1:] * r[:-1])[next_to], axis=0),
        "slow waves over the speed": sum(_waves(r[ahead == way]) for way in np.unique(ahead)),
    }
    group = np.cumsum(np.concatenate([[True], np.diff(speed) != 0])) - 1
    counts = np.bincount(group)
    if np.sum(counts[counts > 1] - 1) >= 3:
        sums = np.zeros((counts.size, r.shape[1]))
        np.add.at(sums, group, r)
        between = np.sum(sums**2 / counts[:, None], axis=0)
        tests["scatter between speeds over that within"] = between
    # the share of columns that have as much, for each column; what rounding alone parts is equal
    chances = {name: _share_as_large(np.round(x, 12)) for name, x in tests.items()}
    test = min(reversed(chances), key=lambda name: chances[name][0])  # of equals the replicates
    least = np.min(list(chances.values()), axis=0)
    chance = float(np.mean(least <= least[0]))
    if chance > _LEVEL:
        return []
    # the stretch of one sign that holds most of the squares
    stretch = np.concatenate([[0], np.cumsum(~kept[:, 0])])
    most = np.flatnonzero(stretch == np.argmax(np.bincount(stretch, r[:, 0] ** 2)))
    unit, sign = sweep.velocity_unit, "above" if r[most[0], 0] > 0 else "below"
    numbers = {"test": test, "probability": chance, "unit": unit.name, "side": sign}
    ends = {"first": float(speed[most[0]] / unit.si), "last": float(speed[most[-1]] / unit.si)}
    return [Notice("lack-of-fit", "", numbers | ends)]


def _waves(r: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " k"]:
    """What the slowest waves over the rows have of the squares of each column."""
    n = len(r)
    order = np.arange(1, min(_WAVES, n // 2) + 1)
    at = np.cos(np.pi * np.outer(order, (np.arange(n) + 0.5) / n))
    return np.sum((at @ r) ** 2, axis=0) * 2 / n


def _share_as_large(x: Real[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """Of each number, the share of all that are no less."""
    return (x.size - np.searchsorted(np.sort(x), x)) / x.size


def _outlying(
    sweep: Sweep,
    names: list[str],
    jacobian: Float[np.ndarray, "n p"],
    basis: Float[np.ndarray, "n q"],
    r: Float[np.ndarray, "n k"],
) -> list[Notice]:
    """Notices of rows whose studentised residual white noise would hardly make the largest."""
    free = 1.0 - np.sum(basis**2, axis=1)
    judged = free > 1e-6
    r, left = np.where(judged[:, None], r, 0.0), np.where(judged, free, 1.0)
    internal = r**2 / left[:, None] / np.sum(r**2, axis=0)
    most = np.max(internal, axis=0)
    dof = len(free) - basis.shape[1]
    out, length = [], _lengths(jacobian)
    for i in np.flatnonzero(internal[:, 0] > np.quantile(most, 1.0 - _LEVEL)).tolist():
        share = min(float(internal[i, 0]), 1.0 - 1e-12)
        times = np.sqrt(share * (dof - 1) / (1.0 - share))
        # in standard errors without the row
        gram = np.linalg.pinv((jacobian / length).T @ (jacobian / length))
        deviation = np.sqrt(max(np.sum(r[:, 0] ** 2) - r[i, 0] ** 2 / left[i], 1e-300) / (dof - 1))
        step = gram @ (jacobian[i] / length) * r[i, 0] / left[i]
        errors = np.abs(step) / np.maximum(np.sqrt(np.diag(gram)) * deviation, 1e-300)
        k, unit = int(np.argmax(errors)), sweep.velocity_unit
        numbers = {"row": i, "speed": sweep.velocity[i] / unit.si, "unit": unit.name}
        numbers |= {"times": times, "probability": float(np.mean(most >= internal[i, 0]))}
        out.append(Notice("row-lies-off", names[k], {**numbers, "errors": float(errors[k])}))
    return out


def _lengths(jacobian: Float[np.ndarray, "n p"]) -> Float[np.ndarray, " p"]:
    return np.maximum(np.linalg.norm(jacobian, axis=0), 1e-300)
