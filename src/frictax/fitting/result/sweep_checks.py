"""Notices of a fitted sweep: unidentified parameters, lack of fit over the speed, and outliers."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from frictax.laws import Stribeck
from frictax.measurements.sweep import Sweep
from frictax.measurements.units import shown_force
from frictax.notice import Notice

from ..problem.losses import AbstractLoss
from ..problem.steady import SteadyFriction, as_steady
from .identifiability import Knowledge, join_names


def peak_unseen(model: Any) -> Notice:
    return Notice("peak-unseen", "peak", {"peak": float(as_steady(model).peak)})


def weight_notices(model: Any, sweep: Sweep, paths: Sequence[str]) -> list[Notice]:
    """Return a notice that a sweep of both directions cannot distinguish a constant force, such as
    a weight, from friction that differs by direction.
    """
    if not sweep.both_directions:
        return []
    if isinstance(model, SteadyFriction) and model.f_neg is not None and model.offset is None:
        shown = shown_force(sweep.force_unit, float(np.median(np.abs(sweep.force))))
        difference = (float(model.f_pos.f0) - float(model.f_neg.f0)) / shown.si
        numbers = {"difference": difference, "force": difference / 2, "unit": shown.name}
        return [Notice("weight-or-friction", "", numbers)]
    return [Notice("offset-if-symmetric", "offset")] if "offset" in paths else []


@dataclasses.dataclass(frozen=True)
class SteadyFit:
    """A fitted sweep: weighted residuals (n,), and their Jacobian (n, p) with respect to the
    parameters `names` at their values `x` (p,).
    """

    model: Any
    sweep: Sweep
    names: list[str]
    x: Float[np.ndarray, " p"]
    jacobian: Float[np.ndarray, "n p"]
    residuals: Float[np.ndarray, " n"]
    noise_scale: float
    loss: AbstractLoss


def doubtful_dips(fit: SteadyFit, knowledge: dict[str, Knowledge]) -> list[Notice]:
    """Return notices of Stribeck terms that noise alone could explain. Mark F_Stribeck and fexp of
    these terms in `knowledge` as not identifiable.
    """
    model = fit.model
    if isinstance(model, SteadyFriction):
        branches = [("f_pos.", model.f_pos), ("f_neg.", model.f_neg)]
    else:
        branches = [("", model)]
    out = []
    for prefix, law in branches:
        terms = [prefix + name for name in ("F_Stribeck", "fexp") if prefix + name in knowledge]
        if not isinstance(law, Stribeck) or prefix + "F_Stribeck" not in terms:
            continue
        chance = _chance_of_dip(fit, terms)
        if knowledge[terms[0]] is Knowledge.AT_BOUND or chance > 0.05:
            knowledge.update(dict.fromkeys(terms, Knowledge.UNKNOWN))
            said = f"terms {join_names(terms)} are" if len(terms) > 1 else f"term {terms[0]} is"
            out.append(Notice("doubtful-dip", terms[0], {"terms": said, "percent": 100 * chance}))
    return out


def _chance_of_dip(fit: SteadyFit, terms: list[str]) -> float:
    """Return the probability that, with noise alone, a Stribeck term improves the fit as much as
    observed.

    Without a Stribeck term, fexp does not have an effect, so the usual intervals and criteria are
    invalid. The law is then F_Coulomb + F_prop*v, with F_Coulomb >= 0 and F_prop >= 0. With normal
    noise, the distribution of the largest improvement over all values of fexp depends only on the
    speeds. The probability follows from 999 random samples of this distribution.

    **Source:** R. B. Davies, Biometrika 64 (1977) for the problem; M. Dwass, Ann. Math. Stat. 28
    (1957) for the test by random samples.
    """
    from scipy.optimize import lsq_linear

    steady, sweep, names, negative = (
        as_steady(fit.model),
        fit.sweep,
        fit.names,
        terms[0].startswith("f_neg."),
    )
    law = steady.f_neg if negative else steady.f_pos
    assert isinstance(law, Stribeck)
    mine = (
        np.ones(sweep.n, bool)
        if steady.f_neg is None
        else sweep.direction == (-1 if negative else 1)
    )
    weight = np.where(mine, sweep.direction, 0.0) * (
        1.0 if sweep.sigma is None else 1.0 / sweep.sigma
    )
    speed = np.abs(sweep.velocity)

    def dip(fexp: float) -> np.ndarray:
        return weight * np.where(
            sweep.breakaway, float(steady.peak), np.exp(-((fexp * speed) ** float(law.exponent)))
        )

    x, jacobian = fit.x, fit.jacobian
    # The score of the loss limits the influence of outliers.
    residual = fit.noise_scale * np.asarray(
        fit.loss.score(jnp.asarray(fit.residuals / max(fit.noise_scale, np.finfo(float).tiny)))
    )
    # A parameter does not have an effect if the squares in its Jacobian column underflow to 0.
    norms = np.linalg.norm(jacobian, axis=0)
    kept = [i for i, name in enumerate(names) if name not in terms and norms[i] > 0]
    # For F_Coulomb and F_prop, the unknowns of the linear fit are the values, because they have
    # bounds. For all other parameters, the unknowns are the changes from the estimates.
    prefix = terms[0].removesuffix("F_Stribeck")
    own = np.array(
        [names[i] in (prefix + "F_Coulomb", prefix + "F_prop") for i in kept], dtype=bool
    )
    columns = jacobian[:, kept] / norms[kept]
    data = (
        float(law.F_Stribeck) * dip(float(law.fexp))
        - residual
        + jacobian[:, kept] @ np.where(own, x[kept], 0.0)
    )
    if kept:
        # With exact data scipy warns about steps that are not finite, and rejects these steps.
        with np.errstate(invalid="ignore"):
            without = lsq_linear(
                columns, data / np.max(np.abs(data)), bounds=(np.where(own, 0.0, -np.inf), np.inf)
            ).x
        columns = columns[:, ~own | (without > 1e-6 * np.max(np.abs(without)))]

    left, size, _ = np.linalg.svd(columns, full_matrices=False)
    basis = left[:, size > 1e-10 * np.max(size, initial=0.0)]
    moving = speed[mine & ~sweep.breakaway]
    grid = (
        np.geomspace(0.5 / moving.max(), 2.0 / moving.min(), 60)
        if len(terms) > 1
        else [float(law.fexp)]
    )
    dips = np.column_stack([dip(fexp) for fexp in grid])
    apart = dips - basis @ (basis.T @ dips)
    length = np.linalg.norm(apart, axis=0)
    seen = length > 1e-6 * np.linalg.norm(dips, axis=0)
    if not seen.any():
        return 1.0
    draws = np.column_stack([data, np.random.default_rng(0).standard_normal((sweep.n, 999))])
    draws -= basis @ (basis.T @ draws)
    gain = np.max(np.maximum((apart[:, seen] / length[seen]).T @ draws, 0.0) ** 2, axis=0)
    if not sweep.sigma_known:
        gain = gain / np.maximum(np.sum(draws**2, axis=0), 1e-300)
    return float(np.mean(gain >= gain[0]))


_LEVEL = 0.05  # significance level of all tests
_REMEDIES = (
    "Look at how it was measured, or fit with loss=Huber()",
    "The loss limits its influence. Look at how it was measured",
)


def sweep_checks(fit: SteadyFit, active: Bool[np.ndarray, " q"]) -> list[Notice]:
    """Return the notices of a fitted sweep about outliers and lack of fit. `active`: mask of the
    parameters that are not at a bound.

    Outliers are found by the test of the generalised extreme studentised deviate. This test removes
    the row with the largest studentised residual repeatedly, so that outliers do not mask each
    other. The p-value of each outlier has Bonferroni's correction.

    Four tests of lack of fit use the residuals in order of speed, in each direction:

    - runs of one sign (Wald and Wolfowitz);
    - products of neighbouring residuals;
    - squares of the eight cosine components of lowest frequency over the rows (Neyman);
    - for repeated speeds, the scatter between speeds, compared with the scatter at one speed.

    The tests use clipped residuals of a fit without outliers. The smallest of the four p-values is
    compared with the smallest p-values of simulated noise (Westfall and Young), at a level of 5 %.
    The simulated noise is 999 vectors of white normal noise, minus their least-squares fits by the
    columns of the Jacobian. With simulated noise, the p-values are also valid for few rows.

    **Source:** B. Rosner, Technometrics 25 (1983); A. Wald, J. Wolfowitz, Ann. Math. Stat. 11
    (1940); J. Neyman, Skandinavisk Aktuarietidskrift 20 (1937); N. R. Draper, H. Smith, *Applied
    Regression Analysis*, 3rd ed. (1998), sections 2.1, 7.2 and 8.1; P. H. Westfall, S. S. Young,
    *Resampling-Based Multiple Testing* (1993); M. Dwass, Ann. Math. Stat. 28 (1957) for p-values by
    random samples.
    """
    sweep, r = fit.sweep, fit.residuals
    columns = fit.jacobian[:, active] / _lengths(fit.jacobian[:, active])
    n, p = columns.shape
    sigma = 1.0 if sweep.sigma is None else sweep.sigma
    size = np.sqrt(np.mean((sweep.force / sigma) ** 2))
    if n - p < 4 or np.sqrt(np.mean(r**2)) < 1e-5 * size:  # few rows, or data without noise
        return []
    off = outliers([sweep], r, columns)
    basis, others = independent(columns), residuals_without(off, r, columns)
    scale = np.sqrt(np.sum(others[~off] ** 2) / (np.sum(~off) - p))
    noise = np.random.default_rng(0).standard_normal((n, 999))
    draws = np.column_stack([np.clip(others, -3.0 * scale, 3.0 * scale), noise])
    notices = _lacking(sweep, draws - basis @ (basis.T @ draws))
    names = [name for name, is_active in zip(fit.names, active, strict=True) if is_active]
    robust, unit, pull = fit.loss.rounds > 1, sweep.velocity_unit, r
    if robust:
        scaled = jnp.asarray(r / fit.noise_scale)
        slope = float(jnp.mean(fit.loss.score_slope(scaled)))
        pull = np.asarray(fit.loss.score(scaled)) * fit.noise_scale / max(slope, 0.1)
    gram, kept = np.linalg.pinv(columns.T @ columns), columns[~off]
    without = np.linalg.pinv(kept.T @ kept)
    for i in np.flatnonzero(off).tolist():
        times = abs(others[i]) / scale / np.sqrt(1.0 + columns[i] @ without @ columns[i])
        # Compute the change of the estimates without this row, in standard errors.
        step = gram @ columns[i] * pull[i] / max(1.0 - columns[i] @ gram @ columns[i], 1e-6)
        errors = np.abs(step) / np.maximum(np.sqrt(np.diag(gram)) * scale, 1e-300)
        k = int(np.argmax(errors))
        numbers = {"row": i, "speed": sweep.velocity[i] / unit.si, "unit": unit.name}
        numbers |= {"times": times, "probability": _chance(times, n, len(kept) - p)}
        numbers |= {"errors": float(errors[k]), "remedy": _REMEDIES[robust]}
        notices.append(Notice("row-lies-off", names[k], numbers))
    return notices


def outliers(
    sweeps: Sequence[Sweep], r: Float[np.ndarray, " n"], columns: Float[np.ndarray, "n p"]
) -> Bool[np.ndarray, " n"]:
    """Return a mask of the outliers among the rows. `r`: residuals; `columns`: Jacobian of `r`.
    Three or more successive rows on one side of the law are a lack of fit, not outliers.
    """
    n, p = columns.shape
    left_out, count, longest = [], 0, 2  # `longest`: largest number of outliers in succession
    kept = np.ones(n, bool)
    for _ in range(min(max((n - p) // 5, 1), 50)):  # at most one outlier for 5 degrees of freedom
        basis = independent(columns[kept])
        left, free = r[kept] - basis @ (basis.T @ r[kept]), 1.0 - np.sum(basis**2, axis=1)
        share = np.where(free > 1e-6, left**2 / np.maximum(free, 1e-6), 0.0)
        share /= max(np.sum(left**2), 1e-300)
        dof, i = len(left) - basis.shape[1], int(np.argmax(share))
        if dof < 3:
            break
        times = np.sqrt(share[i] * (dof - 1) / max(1.0 - share[i], 1e-12))
        left_out.append(np.flatnonzero(kept)[i])
        kept[left_out[-1]] = False
        if _chance(times, len(left), dof - 1) <= _LEVEL:
            count = len(left_out)
    off = np.isin(np.arange(n), left_out[:count])
    if np.sum(off) <= longest:
        return off
    side = np.where(off, np.sign(residuals_without(off, r, columns)), 0.0)
    way = np.concatenate([sweep.direction for sweep in sweeps])
    speed = np.concatenate([np.abs(sweep.velocity) for sweep in sweeps])
    record = np.repeat(np.arange(len(sweeps)), [s.n for s in sweeps])
    order = np.lexsort((speed, way, record))
    changes = np.any(np.diff(np.column_stack([side, way, record])[order], axis=0) != 0, axis=1)
    run = np.cumsum(np.concatenate([[0], changes]))
    off[order] &= np.bincount(run)[run] <= longest
    return off


def residuals_without(
    off: Bool[np.ndarray, " n"], r: Float[np.ndarray, " n"], columns: Float[np.ndarray, "n p"]
) -> Float[np.ndarray, " n"]:
    """Return the residuals of all rows for a fit without the rows `off`, by a linear model of the
    fit. `r`: residuals of the fit to all rows; `columns`: Jacobian of `r`.
    """
    return r - columns @ np.linalg.lstsq(columns[~off], r[~off], rcond=None)[0]


def independent(columns: Float[np.ndarray, "n p"]) -> Float[np.ndarray, "n q"]:
    """Return an orthonormal basis of the space that the columns span."""
    left, size, _ = np.linalg.svd(columns / _lengths(columns), full_matrices=False)
    return left[:, size > 1e-10 * np.max(size, initial=0.0)]


def _chance(times: float, rows: int, dof: int) -> float:
    """Return Bonferroni's p-value of `times`, the largest studentised residual of `rows` rows."""
    from scipy.special import stdtr

    return float(min(2.0 * rows * stdtr(dof, -times), 1.0))


def _lacking(sweep: Sweep, r: Float[np.ndarray, "n k"]) -> list[Notice]:
    """Return a notice if the law does not fit over the speed. The first column of `r` contains the
    residuals, the other columns contain simulated noise.
    """
    order = np.lexsort((np.abs(sweep.velocity), sweep.direction))
    speed, ahead = sweep.velocity[order], sweep.direction[order]
    r = r[order] / np.linalg.norm(r, axis=0)
    next_to = ahead[1:] == ahead[:-1]
    kept = (np.sign(r[1:]) == np.sign(r[:-1])) & next_to[:, None]
    tests = {
        "runs of one sign": np.sum(kept, axis=0),
        "autocorrelation of neighbouring rows": np.sum((r[1:] * r[:-1])[next_to], axis=0),
        "slow waves over the speed": np.zeros(r.shape[1]),
    }
    # Sum the squares of the residuals' eight slowest cosine components, in each direction.
    for way in np.unique(ahead):
        rows = r[ahead == way]
        n = len(rows)
        waves = np.arange(1, min(8, n // 2) + 1)
        at = np.cos(np.pi * np.outer(waves, (np.arange(n) + 0.5) / n))
        tests["slow waves over the speed"] += np.sum((at @ rows) ** 2, axis=0) * 2 / n
    group = np.cumsum(np.concatenate([[True], np.diff(speed) != 0])) - 1
    counts = np.bincount(group)
    if np.sum(counts[counts > 1] - 1) >= 3:
        sums = np.zeros((counts.size, r.shape[1]))
        np.add.at(sums, group, r)
        between = np.sum(sums**2 / counts[:, None], axis=0)
        tests["scatter between speeds divided by the scatter within"] = between
    # The p-value of a column is the share of columns with a statistic at least as large. Statistics
    # are rounded, so that statistics that differ only by rounding errors count as equal.
    rounded = {name: np.round(x, 12) for name, x in tests.items()}
    chances = {n: (x.size - np.searchsorted(np.sort(x), x)) / x.size for n, x in rounded.items()}
    # Of tests with equal p-values, the last one is reported.
    test = min(reversed(chances), key=lambda name: chances[name][0])
    least = np.min(list(chances.values()), axis=0)
    chance = float(np.mean(least <= least[0]))
    if chance > _LEVEL:
        return []
    # Find the run of neighbouring residuals with one sign that has the largest sum of squares.
    stretch = np.concatenate([[0], np.cumsum(~kept[:, 0])])
    most = np.flatnonzero(stretch == np.argmax(np.bincount(stretch, r[:, 0] ** 2)))
    unit, sign = sweep.velocity_unit, "above" if r[most[0], 0] > 0 else "below"
    first, last = (float(speed[most[i]] / unit.si) for i in (0, -1))
    where = f"from {first:.4g} to {last:.4g} {unit.name}"
    if first == last:
        row = f"in row {order[most[0]]} (counted from 0) " if len(most) == 1 else ""
        where = f"{row}at {first:.4g} {unit.name}"
    numbers = {"test": test, "probability": chance, "unit": unit.name, "side": sign}
    return [Notice("lack-of-fit", "", numbers | {"first": first, "last": last, "where": where})]


def _lengths(jacobian: Float[np.ndarray, "n p"]) -> Float[np.ndarray, " p"]:
    return np.maximum(np.linalg.norm(jacobian, axis=0), 1e-300)
