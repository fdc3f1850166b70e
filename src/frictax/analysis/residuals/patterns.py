"""Patterns in residuals: autocorrelation, speed, position, direction, time, and ripple."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from frictax.text import WAYS

from ..errors.linearization import orthonormal_basis
from .regression import (
    CHANCE,
    Curve,
    Finding,
    Regressed,
    amount,
    bin_means,
    corners_of,
    hats,
    is_strong,
    percent,
    regress,
    with_error,
)
from .series import Series

_CORNERS_SPEED, _CORNERS_POSITION = 6, 9  # corners of the functions of speed and of position
_BINS = 16  # number of bins for the means in a plot
# `_SAMPLES`, `_ROWS`: least number of samples of a record, and of rows of a sweep, per direction.
_SAMPLES, _ROWS = 20, 2


@dataclasses.dataclass(frozen=True, eq=False)
class Columns:
    """Regression columns of each pattern, a row per sample. `ways`: directions, 1 and -1."""

    ways: tuple[int, ...]
    level: Float[np.ndarray, "n a"]
    drift: Float[np.ndarray, "n b"]
    speed: Float[np.ndarray, "n c"]
    slope: Float[np.ndarray, "n d"]
    position: Float[np.ndarray, "n e"]
    waves: Float[np.ndarray, "n f"]

    @classmethod
    def from_series(cls, x: Series) -> "Columns":
        one, nothing, way = np.ones((x.t.size, 1)), np.zeros((x.t.size, 0)), x.way
        least = _SAMPLES if x.in_time else _ROWS
        ways = tuple(w for w in (1, -1) if np.sum(way == w) >= least) or (1,)
        turned = way[:, None] if len(ways) == 2 else nothing
        time = ((x.t - x.t.mean()) / (x.t[-1] - x.t[0]))[:, None]  # scaled from -1/2 to 1/2
        drift = _join_columns(time, time * turned)
        speed = [nothing]
        if x.v is not None:
            for w in ways:
                mine = way == w
                columns = hats(np.abs(x.v), corners_of(np.abs(x.v[mine]), _CORNERS_SPEED))
                speed.append(columns * mine[:, None])
        slope, position = nothing, nothing
        if x.s is not None:
            slope = (x.s - x.s.mean())[:, None]
            position = hats(x.s, np.linspace(x.s.min(), x.s.max(), _CORNERS_POSITION))
        level, speeds = _join_columns(one, turned), _join_columns(*speed)
        return cls(ways, level, drift, speeds, slope, position, nothing)


def _join_columns(*columns: np.ndarray) -> np.ndarray:
    return np.concatenate(columns, axis=1)


def subject(x: Series) -> str:
    """Return the first words of a finding's sentence, such as "Residual force on mass"."""
    if not x.is_force:
        return f"Residual of {x.of}"
    return f"Residual {'torque' if x.unit == 'N.m' else 'force'} on {x.of}"


def ending(found: Regressed, x: Series) -> str:
    """Return the end of a finding's sentence: the fractions that pattern and noise explain."""
    size = float(np.sqrt(found.hidden * np.mean(x.e**2)))
    verdict = (
        ""
        if found.strong
        else f"; noise alone explains up to {percent(found.hidden)}, {amount(size, x.unit)} rms"
        if found.p >= CHANCE
        else ", which is too small to matter"
    )
    return f"this explains {percent(found.share)} of the residual's mean square{verdict}"


def without_information(name: str, x: Series, why: str, x_label: tuple[str, str]) -> Finding:
    """Return the finding that a record cannot show the pattern `name`, with the reason `why`."""
    return Finding(
        name, x.record, x.of, f"{subject(x)}: {why}.", False, np.nan, np.nan, x.unit,
        0.0, 1.0, {}, (), x_label, ("residual", x.unit),
    )  # fmt: skip


def finding_of(
    name: str,
    x: Series,
    sentence: str,
    effect: tuple[float, float],
    found: Regressed,
    numbers: Mapping[str, float],
    curves: Iterable[Curve],
    x_label: tuple[str, str],
) -> Finding:
    """Return a regression's `Finding`. `effect`: size of the pattern and its standard error."""
    size, error = (float(value) for value in effect)
    numbers = {**numbers, "independent samples": found.independent}
    return Finding(
        name, x.record, x.of, sentence, found.strong, size, error, x.unit,
        found.share, found.p, numbers, tuple(curves), x_label, ("residual", x.unit),
    )  # fmt: skip


def direction_means(x: Series, c: Columns) -> Finding:
    """Find the mean residual for each direction of motion. Equal means indicate a constant force
    or friction that differs by direction. Means of opposite sign indicate a wrong friction value.
    """
    label = ("direction of motion", "")
    if x.v is None:
        return without_information(
            "direction", x, "the record does not contain the direction of motion", label
        )
    others = _join_columns(c.drift, c.slope, c.waves)
    others = others - others.mean(axis=0)
    found = regress(x.e, c.level, others, x.in_time)
    if found is None:
        return without_information("direction", x, "there are too few samples for a mean", label)
    even, odd = found.values[0], found.values[1] if len(c.ways) == 2 else 0.0
    means = {w: float(even + w * odd) for w in c.ways}
    curves = []
    for w in c.ways:
        own = regress(
            x.e,
            (np.sign(x.v) == w)[:, None].astype(float),
            _join_columns(others, (np.sign(x.v) == -w)[:, None].astype(float)),
            x.in_time,
        )
        error = np.nan if own is None else own.errors[0]
        curves.append(Curve(np.array([float(w)]), np.array([means[w]]), np.array([error]), w))
    told = " and ".join(f"{amount(m, x.unit)} {WAYS[w]}" for w, m in means.items())
    effect, error = even, found.errors[0]
    if len(c.ways) == 1:
        hint = "which may also be friction, because the record has only one direction"
    elif abs(even) / error >= abs(odd) / found.errors[1]:
        hint = (
            "mostly equal in both directions, which indicates an offset or friction that differs"
            " by direction"
        )
    else:
        effect, error = odd, found.errors[1]
        more = "more" if odd < 0 else "less"
        hint = f"mostly opposite by direction, which indicates {more} friction than the model has"
    because = ", " + hint if found.strong else ""
    sentence = f"{subject(x)} is {told} on average{because}: {ending(found, x)}."
    numbers = {"alike": float(even), "opposite": float(odd)}
    numbers |= {WAYS[w]: m for w, m in means.items()}
    finding = finding_of(
        "direction", x, sentence, (abs(effect), error), found, numbers, curves, label
    )
    return dataclasses.replace(finding, y_label=("mean", x.unit))


def time_drift(x: Series, c: Columns) -> Finding:
    """Find a linear change of the residual over time. If an offset drifts, the change is equal in
    both directions of motion. If friction changes, the signs are opposite.
    """
    label = ("time", "s")
    found = regress(x.e, c.drift, _join_columns(c.level, c.speed, c.slope, c.waves))
    if found is None:
        return without_information("time", x, "there are too few samples for a drift", label)
    both = len(c.ways) == 2
    even, odd = float(found.values[0]), float(found.values[1]) if both else 0.0
    errors = (float(found.errors[0]), float(found.errors[1]) if both else np.nan)
    span, ends = float(x.t[-1] - x.t[0]), x.t[[0, -1]]
    partial, middle = found.part + found.rest, float(x.t.mean())
    curves = []
    for w in c.ways:
        mine, side = x.way == w, w if both else 0
        means = bin_means(x.t[mine], partial[mine], np.linspace(x.t[0], x.t[-1], _BINS + 1))
        line = (even + w * odd) * (ends - middle) / span
        curves += [Curve(*means, side), Curve(ends, line, None, side, "line")]
    alike = not (np.isfinite(errors[1]) and abs(odd) / errors[1] > abs(even) / errors[0])
    effect, error = (even, errors[0]) if alike else (odd, errors[1])
    if len(c.ways) == 1:
        hint = (
            "which may be a drifting offset or a change of friction, because the record has only"
            " one direction"
        )
    elif alike:
        hint = "equal in both directions: an offset drifts, for example of an amplifier or a sensor"
    else:
        hint = (
            "against the motion: friction"
            f" {'falls, for example by temperature or wear' if odd > 0 else 'rises'}"
        )
    sentence = (
        f"{subject(x)} drifts by {with_error(effect, error, x.unit)} over"
        f" {span:.3g} s, {amount(effect / span, x.unit + '/s')}"
        f"{', ' + hint if found.strong else ''}: {ending(found, x)}."
    )
    numbers = {"alike": even / span, "with the motion": odd / span}
    return finding_of("time", x, sentence, (abs(effect), error), found, numbers, curves, label)


def speed_curve(x: Series, c: Columns) -> Finding:
    """Fit the residual over speed for each direction: a curve of at most five straight segments."""
    label = ("velocity", f"{x.place}/s")
    if x.v is None:
        return without_information("speed", x, "the record does not contain the speed", label)
    found = regress(x.e, c.speed, _join_columns(c.level, c.drift, c.slope, c.waves), x.in_time)
    if found is None:
        return without_information("speed", x, "the speed varies too little", label)
    curves, spans = [], {}
    for w in c.ways:
        mine = np.sign(x.v) == w
        part, v = found.part[mine] - found.part[mine].mean(), x.v[mine]
        curves.append(Curve(*bin_means(v, part + found.rest[mine], corners_of(v, _BINS)), w))
        order = np.argsort(v)[np.linspace(0, v.size - 1, min(v.size, 400)).astype(int)]
        curves.append(Curve(v[order], part[order], None, w, "line"))
        # The curve has few samples at its ends, so 2 % and 98 % quantiles replace its extremes.
        low, high = np.quantile(part, [0.02, 0.98])
        spans[w] = (
            float(high - low),
            abs(v[np.argmin(np.abs(part - low))]),
            abs(v[np.argmin(np.abs(part - high))]),
        )
    most = max(spans, key=lambda w: spans[w][0])
    size, slow, fast = spans[most]
    error = _typical_error(curves)
    names = (" forward" if most > 0 else " backward") if len(c.ways) == 2 else ""
    sentence = (
        f"{subject(x)} varies with the speed by {amount(size, x.unit)}{names}"
        + (
            f", from its minimum at {amount(slow, label[1])} to its maximum at"
            f" {amount(fast, label[1])}, which indicates another friction law"
            if found.strong
            else ""
        )
        + f": {ending(found, x)}."
    )
    numbers = {WAYS[w]: s[0] for w, s in spans.items()}
    return finding_of("speed", x, sentence, (size, error), found, numbers, curves, label)


def position_curve(x: Series, c: Columns) -> Finding:
    """Fit the residual over position: a straight line, or a curve of eight straight segments."""
    label = ("position" if x.place == "m" else "angle", x.place)
    if x.s is None:
        return without_information("position", x, "the record does not contain the position", label)
    others = _join_columns(c.level, c.drift, c.speed, c.waves)
    found, straight = regress(x.e, c.position, others), regress(x.e, c.slope, others)
    if found is None or straight is None:
        return without_information("position", x, "the position varies too little", label)
    part = found.part - found.part.mean()
    edges = np.linspace(x.s.min(), x.s.max(), _BINS + 1)
    curves = []
    for w in c.ways:
        means = bin_means(x.s[x.way == w], (part + found.rest)[x.way == w], edges)
        curves.append(Curve(*means, w if len(c.ways) == 2 else 0))
    order = np.argsort(x.s)[np.linspace(0, x.s.size - 1, min(x.s.size, 400)).astype(int)]
    curves.append(Curve(x.s[order], part[order], None, 0, "line"))
    slope, error, travel = float(straight.values[0]), float(straight.errors[0]), float(np.ptp(x.s))
    # The test of a straight line detects weaker effects: it has one coefficient instead of eight.
    p = min(1.0, 2 * min(found.p, straight.p))
    line = straight.p < CHANCE and straight.share > 0.5 * found.share
    best = dataclasses.replace(straight if line else found, p=p)
    size = abs(slope) * travel if line else float(np.subtract(*np.quantile(part, [0.98, 0.02])))
    what = (
        "a spring or an axis that is not level"
        if line
        else "an uneven guide or a drive force that varies with position"
    )
    unit = f"{x.unit}/{x.place}"
    sentence = (
        f"{subject(x)} varies by {amount(size, x.unit)} over {amount(travel, x.place)} of"
        f" {label[0]}, {'with' if line else 'in addition to'} a slope of"
        f" {with_error(slope, error, unit)}{', which indicates ' + what if best.strong else ''}:"
        f" {ending(best, x)}."
    )
    numbers = {"slope": slope, "slope error": error}
    effect = size, error * travel if line else _typical_error(curves)
    return finding_of("position", x, sentence, effect, best, numbers, curves, label)


def _typical_error(curves: Sequence[Curve]) -> float:
    """Return the median of the standard errors of all points of the curves."""
    errors = np.concatenate([np.empty(0), *(q.error for q in curves if q.error is not None)])
    return float(np.median(errors)) if errors.size else np.nan


def autocorrelation(x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the autocorrelation of x at lags of 0 to n - 1 samples; it is 1 at lag 0.

    >>> autocorrelation(np.array([1.0, -1.0, 1.0, -1.0])).round(2)
    array([ 1.  , -0.75,  0.5 , -0.25])
    """
    x = x - x.mean()
    spectrum = np.fft.rfft(x, 1 << (2 * x.size - 1).bit_length())
    products = np.fft.irfft(np.abs(spectrum) ** 2)[: x.size]
    return products / products[0] if products[0] > 0 else np.eye(1, x.size)[0]


def whiteness(
    record: str, of: str, t: Float[np.ndarray, " n"], e: Float[np.ndarray, " n"]
) -> Finding:
    """Test whether the residuals of the objective are white, and find their correlation time. The n
    samples contain as much information as n/(1 + 2*sum of autocorrelations) independent samples.

    By Sokal's rule, the sum ends at the first lag k [samples] with k >= 5*(1 + 2*sum up to lag k).
    The test compares Ljung and Box's Q, from at most 20 lags, with the chi-square distribution.

    **Source:** G. M. Ljung, G. E. P. Box, Biometrika 65 (1978); A. D. Sokal, Monte Carlo methods in
    statistical mechanics (1997), sec. 3.
    """
    from scipy.stats import chi2

    n, step = e.size, float(np.median(np.diff(np.sort(t))))
    rho = autocorrelation(e)
    lags = min(20, n // 5)  # more lags would reduce the power of the test
    q = n * (n + 2) * float(np.sum(rho[1 : lags + 1] ** 2 / (n - np.arange(1, lags + 1))))
    p = float(chi2.sf(q, lags))
    sums = 1.0 + 2.0 * np.cumsum(rho[1:])
    inside = np.flatnonzero(np.arange(1, n) >= 5.0 * sums)
    times = max(float(sums[inside[0] if inside.size else -1]), 1e-3)
    independent = float(min(n / times, n))
    # Compute the share of the variance that the previous `lags` samples predict (Levinson, Durbin).
    rest, a = 1.0, np.zeros(0)
    for k in range(1, lags + 1):
        new = (rho[k] - a @ rho[k - 1 : 0 : -1]) / rest if k > 1 else rho[1]
        a = np.concatenate([a - new * a[::-1], [new]])
        rest *= 1.0 - new**2
        if rest <= 1e-12:
            break
    share = max(0.0, float(1.0 - rest) - lags / n)
    strong, lasts = is_strong(share, p), 0.5 * times * step
    reach = int(min(max(6 * times, 40), n - 1, 3000))
    band = 1.96 / np.sqrt(n)
    at = np.unique(np.linspace(0, reach, min(reach + 1, 600)).astype(int))
    curves = (
        Curve(step * np.array([0.0, reach]), np.full(2, band), None, 0, "band"),
        Curve(step * at, rho[at], None, 0, "line"),
    )
    if not strong:
        sentence = (
            f"Residuals of {of} are not significantly different from white noise ({n} samples,"
            f" first autocorrelation {rho[1]:.2f}, p = {p:.2g})."
        )
    elif independent < 0.9 * n:
        sentence = (
            f"Residuals of {of} are correlated over {amount(lasts, 's', 2)} (first autocorrelation"
            f" {rho[1]:.2f}): {n} samples carry the information of {independent:.0f} independent"
            f" ones. Errors of white noise would be {np.sqrt(n / independent):.2g} times too small."
            " The printed errors account for this."
        )
    else:
        sentence = (
            f"Residuals of {of} are correlated with alternating sign (first"
            f" autocorrelation {rho[1]:.2f}), as after a filter."
        )
    numbers = {"first": float(rho[1]), "correlation time": lasts, "Q": q}
    numbers["independent samples"] = independent
    return Finding(
        "whiteness", record, of, sentence, strong, abs(float(rho[1])), 1.0 / np.sqrt(n), "1",
        share, p, numbers, curves, ("lag", "s"), ("autocorrelation", "1"),
    )  # fmt: skip


def ripple(x: Series, c: Columns, step: float) -> tuple[Finding, Columns]:
    """Find the strongest ripple: a sine over position, with an amplitude and a phase for each
    direction. Return the finding, and the columns `c`. For a significant ripple, add its sine and
    cosine to the columns, so that it does not affect the tests of other patterns.

    The longest period of the scan is half of the travel. The shortest period is the larger of two
    distances: the travel in four samples (`step` [s] apart), and in one period of the cutoff
    frequency. The power at a period is compared with the median power of neighbouring periods,
    because power that increases with the period is not a ripple. The p value accounts for the
    search over many periods (Scargle). After the scan, least squares refines the period. The fitted
    sine is attenuated like the residual, by the filter's gain at the frequency speed/period.

    **Source:** see `ResidualStudy`.
    """
    label = ("period", x.place)
    if x.s is None or x.v is None:
        return without_information(
            "ripple", x, "the record does not contain the position", label
        ), c
    s, speeds = x.s, np.abs(x.v)
    travel = float(np.ptp(s))
    shortest = max(
        4.0 * step * float(np.median(speeds)), float(np.quantile(speeds, 0.25)) / x.cutoff
    )
    ways = [w for w in c.ways if np.sum(np.sign(x.v) == w) >= 40]
    count = int(travel / shortest)
    if count < 8 or not ways:
        return without_information("ripple", x, "the motion is too short for a period", label), c
    others = np.concatenate([c.level, c.drift, c.speed, c.position], axis=1)
    known = orthonormal_basis(others)
    e = x.e - known @ (known.T @ x.e)
    masks = [np.sign(x.v) == w for w in ways]
    k, amplitude, above, shown = _scan(s, e, masks, travel, count)
    # If the power falls from the longest scanned period on, its source has an even longer period.
    # Therefore the search for the maximum begins at the first frequency where the power increases.
    rises = int(np.argmax(np.diff(above) > 0))
    best = rises + int(np.argmax(above[rises:]))
    from scipy.optimize import minimize_scalar
    from scipy.stats import gamma

    def waves(f: float) -> np.ndarray:
        phase = 2.0 * np.pi * f * (s - s.min())
        gain = 1.0 / (1.0 + (speeds * f / x.cutoff) ** 8)
        return np.concatenate(
            [np.stack([np.cos(phase) * gain * m, np.sin(phase) * gain * m], axis=1) for m in masks],
            axis=1,
        )

    def misfit(f: float) -> float:
        a = waves(f)
        a = a - known @ (known.T @ a)
        return float(e @ e - (a.T @ e) @ np.linalg.lstsq(a.T @ a, a.T @ e, rcond=None)[0])

    longest = 2.0 / travel
    near = np.maximum(k[best] + np.linspace(-1, 1, 9) / travel, longest)
    first = near[np.argmin([misfit(f) for f in near])]
    half = 0.25 / travel
    found_at: Any = minimize_scalar(
        misfit,
        bounds=(max(first - half, longest), first + half),
        method="bounded",
        options={"xatol": 1e-5 * first},
    )
    f = float(found_at.x)
    columns = waves(f)
    found = regress(x.e, columns, others)
    if found is None:
        return without_information("ripple", x, "there are too few samples for a period", label), c
    chance = float(-np.expm1(count * np.log1p(-min(gamma.sf(above[best], len(ways)), 1 - 1e-12))))
    found = dataclasses.replace(found, p=max(min(1.0, count * found.p), chance))
    amplitudes = {w: float(np.hypot(*found.values[2 * i : 2 * i + 2])) for i, w in enumerate(ways)}
    size = float(np.sqrt(np.mean(np.square(list(amplitudes.values())))))
    error = float(np.sqrt(np.nanmean(found.errors**2)))
    turned = (
        np.concatenate(
            [columns[:, [2 * i + 1, 2 * i]] * [1.0, -1.0] for i in range(len(ways))], axis=1
        )
        @ found.values
    )
    moved = regress(
        x.e,
        (2.0 * np.pi * (s - s.min()) * turned)[:, None],
        np.concatenate([others, columns], axis=1),
    )
    period_error = np.nan if moved is None else float(moved.errors[0]) / f**2
    parts = ", ".join(f"{amount(a, x.unit)} {WAYS[w]}" for w, a in amplitudes.items())
    turn = f", {2 * np.pi * f:.4g} times a turn," if x.place == "rad" else ""
    sentence = (
        f"{subject(x)} repeats every {with_error(1 / f, period_error, x.place)}{turn} with an"
        f" amplitude of {parts if len(ways) > 1 else amount(size, x.unit)}, a ripple such as a"
        f" screw's, a gear's or a motor's: {ending(found, x)}."
        if found.strong
        else (
            f"{subject(x)} shows no ripple over position. The largest one is"
            f" {amount(size, x.unit)} every {amount(1 / f, x.place)}: {ending(found, x)}."
        )
    )
    numbers = {"period": 1 / f, "period error": period_error}
    numbers |= {WAYS[w]: a for w, a in amplitudes.items()}
    if x.place == "rad":
        numbers["per turn"] = 2 * np.pi * f
    curves = (
        Curve(1.0 / k[shown], amplitude[shown], None, 0, "line"),
        Curve(np.array([1 / f]), np.array([size]), np.array([error])),
    )
    finding = finding_of("ripple", x, sentence, (size, error), found, numbers, curves, label)
    finding = dataclasses.replace(finding, y_label=("amplitude", x.unit))
    return finding, dataclasses.replace(c, waves=columns) if found.strong else c


def _scan(
    s: Float[np.ndarray, " n"],
    e: Float[np.ndarray, " n"],
    masks: list[np.ndarray],
    travel: float,
    count: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return frequencies [1/m or 1/rad], amplitudes, and ratios of power to background power, all
    (k,). Also return the indices (m,) for a plot. Powers are sums over the directions of motion.
    """
    cells = 1 << (4 * count - 1).bit_length()
    place = np.minimum(((s - s.min()) / travel * cells).astype(int), cells - 1)
    finer = 8  # number of scan steps for each independent frequency
    length, power, above = cells * finer, 0.0, 0.0
    keep = np.arange(2 * finer, count * finer + 1)
    for mine in masks:
        sums = np.bincount(place[mine], e[mine] - e[mine].mean(), minlength=cells)
        own = np.abs(np.fft.rfft(sums, length)[: count * finer + 1]) ** 2
        power = power + own[keep] * (2.0 / mine.sum()) ** 2
        # The background is the mean power of noise near a frequency: the median power of 41
        # neighbours divided by log 2, because powers of noise have an exponential distribution. At
        # long periods, the background changes steeply with frequency, so fewer neighbours are used.
        values, middle = own[np.arange(1, count + 1) * finer], np.empty(count)
        for j in range(count):
            reach = min(20, max(j // 2, 3))
            middle[j] = np.median(values[max(j - reach, 0) : j + reach + 1])
        near = np.interp(keep / finer, np.arange(1, count + 1), middle / np.log(2.0))
        above = above + own[keep] / np.maximum(near, 1e-300)
    k, amplitude = keep / (finer * travel), np.sqrt(power / len(masks))
    stretch = np.floor(np.log(k / k[0]) / np.log(k[-1] / k[0]) * 800).astype(int)
    starts = np.flatnonzero(np.concatenate([[True], stretch[1:] != stretch[:-1]]))
    pairs = zip(starts, np.append(starts[1:], k.size), strict=True)
    shown = np.array([a + int(np.argmax(amplitude[a:b])) for a, b in pairs])
    return k, amplitude, np.asarray(above), shown
