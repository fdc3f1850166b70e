"""Does a residual repeat itself over position?"""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from frictax.text import WAYS

from .effects import Columns, ending, finding_of, nothing_told, subject
from .finding import Curve, Finding, amount, with_error
from .regression import orthonormal, regressed
from .series import Series

_FINER = 8  # steps of the scan to one independent frequency
_NEAR = 41  # independent frequencies that the background is told from
_FEWEST = 40  # samples of a direction


def ripple(x: Series, c: Columns, step: float) -> tuple[Finding, Columns]:
    """The strongest sine and cosine over position, each direction with an amplitude and a phase of
    its own.

    Scanned are periods from what the record moves in four samples (`step` [s] apart) or in a period
    of the filter's cutoff, up to half of the travel. A period's power counts by the median of its
    neighbours', so that a background that rises to long periods is no ripple; that it is the
    greatest of many is accounted for (Scargle). Then the period is refined by least squares,
    where the filter's gain at the frequency speed/period is known, and tested as all the others
    are.

    **Returns:** the finding, and the columns with the waves of a strong one, so that the other
    kinds do not take them for theirs. **Source:** see `ResidualStudy`.
    """
    label = ("period", x.place)
    if x.s is None or x.v is None:
        return nothing_told("ripple", x, "the record does not contain the position", label), c
    s, speeds = x.s, np.abs(x.v)
    travel = float(np.ptp(s))
    shortest = max(
        4.0 * step * float(np.median(speeds)), float(np.quantile(speeds, 0.25)) / x.cutoff
    )
    ways = [w for w in c.ways if np.sum(np.sign(x.v) == w) >= _FEWEST]
    count = int(travel / shortest)
    if count < 8 or not ways:
        return nothing_told("ripple", x, "it moves too little for a period", label), c
    others = np.concatenate([c.level, c.drift, c.speed, c.position], axis=1)
    known = orthonormal(others)
    e = x.e - known @ (known.T @ x.e)
    masks = [np.sign(x.v) == w for w in ways]
    k, amplitude, above = _scan(s, e, masks, travel, count)
    # what falls from the longest period on repeats itself in a longer one, or never
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
    found = regressed(x.e, columns, others)
    if found is None:
        return nothing_told("ripple", x, "there are too few samples for a period", label), c
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
    moved = regressed(
        x.e,
        (2.0 * np.pi * (s - s.min()) * turned)[:, None],
        np.concatenate([others, columns], axis=1),
    )
    period_error = np.nan if moved is None else float(moved.errors[0]) / f**2
    parts = ", ".join(f"{amount(a, x.unit)} {WAYS[w]}" for w, a in amplitudes.items())
    turn = f", {2 * np.pi * f:.4g} times a turn," if x.place == "rad" else ""
    sentence = (
        f"{subject(x)} repeats itself every"
        f" {with_error(1 / f, period_error, x.place)}{turn} with an amplitude of"
        f" {parts if len(ways) > 1 else amount(size, x.unit)}, a ripple such as a screw's, a gear's"
        f" or a motor's: {ending(found, x)}."
        if found.strong
        else (
            f"{subject(x)} shows no ripple over position: the largest,"
            f" {amount(size, x.unit)} every {amount(1 / f, x.place)}, is {ending(found, x)}."
        )
    )
    numbers = {"period": 1 / f, "period error": period_error}
    numbers |= {WAYS[w]: a for w, a in amplitudes.items()}
    if x.place == "rad":
        numbers["per turn"] = 2 * np.pi * f
    shown = _thinned(k, amplitude)
    curves = (
        Curve(1.0 / k[shown], amplitude[shown], None, 0, "line"),
        Curve(np.array([1 / f]), np.array([size]), np.array([error])),
    )
    finding = finding_of(
        "ripple", x, sentence, (size, error), found, numbers, curves, label, "amplitude"
    )
    return finding, dataclasses.replace(c, waves=columns) if found.strong else c


def _scan(
    s: Float[np.ndarray, " n"],
    e: Float[np.ndarray, " n"],
    masks: list[np.ndarray],
    travel: float,
    count: int,
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Frequencies [1/m], amplitudes over them, and powers over their background, added up over the
    directions.
    """
    cells = 1 << (4 * count - 1).bit_length()
    place = np.minimum(((s - s.min()) / travel * cells).astype(int), cells - 1)
    length, power, above = cells * _FINER, 0.0, 0.0
    keep = np.arange(2 * _FINER, count * _FINER + 1)
    for mine in masks:
        sums = np.bincount(place[mine], e[mine] - e[mine].mean(), minlength=cells)
        own = np.abs(np.fft.rfft(sums, length)[: count * _FINER + 1]) ** 2
        power = power + own[keep] * (2.0 / mine.sum()) ** 2
        above = above + own[keep] / _background(own, count)[keep]
    return keep / (_FINER * travel), np.sqrt(power / len(masks)), np.asarray(above)


def _background(power: np.ndarray, count: int) -> np.ndarray:
    """The mean power of noise near each frequency: the median of independent neighbours over log 2,
    as for exponential spread.
    """
    independent = np.arange(1, count + 1)
    values, middle = power[independent * _FINER], np.empty(count)
    for j in range(count):
        # Towards long periods fewer: there the background is steep.
        reach = min(_NEAR // 2, max(j // 2, 3))
        middle[j] = np.median(values[max(j - reach, 0) : j + reach + 1])
    return np.maximum(
        np.interp(np.arange(power.size) / _FINER, independent, middle / np.log(2.0)), 1e-300
    )


def _thinned(k: np.ndarray, amplitude: np.ndarray) -> np.ndarray:
    """The greatest of each stretch of frequencies, evenly spread over their logarithm: what a
    picture can show.
    """
    stretch = np.floor(np.log(k / k[0]) / np.log(k[-1] / k[0]) * 800).astype(int)
    starts = np.flatnonzero(np.concatenate([[True], stretch[1:] != stretch[:-1]]))
    ends = np.append(starts[1:], k.size)
    return np.array([a + int(np.argmax(amplitude[a:b])) for a, b in zip(starts, ends, strict=True)])
