"""The certificate of a search: a test of whether the residuals of a free run are white noise."""

import dataclasses

import numpy as np
from jaxtyping import Float

from frictax.measurements.noise import white_noise_of

from ..problem.objectives import PreparedRecord
from ..problem.problem import Problem
from ..problem.simulations import ClosedLoop, FreeRun

# The limits `_LEVEL` and `_LOW` reject 2 of 320 fits that start at the true values. If the sum of
# squares exceeds its minimum by 40 noise variances, `_LEVEL` alone accepts a quarter of the fits;
# both limits together accept almost none.
_LEVEL = 0.1  # [noise] largest excess of the root mean square of the residuals over the noise
# [noise] `_OF_FEW` / sqrt(samples) replaces `_LEVEL` if it is larger, because the noise estimated
# from few samples is uncertain.
_OF_FEW = 3.5
# [standard deviations] Largest excess of the residuals' low-frequency power over white noise.
_LOW = 3.8


@dataclasses.dataclass(frozen=True)
class Certificate:
    """A comparison of residuals with white noise, for the output with the least white residuals.

    - `subject`: the output; `record`: the index of its record.
    - `ratio`: root mean square of the residuals divided by the noise; `most`: the largest ratio
      that white noise alone explains.
    - `low`: power of the residuals at low frequencies minus that of white noise, in standard
      deviations of the power of white noise.
    - `matters`: true if the residuals of any output are not white noise, and their root mean square
      exceeds a thousandth of the standard deviation of that output.
    """

    subject: str
    record: int
    ratio: float
    most: float
    low: float
    matters: bool

    @property
    def at_noise(self) -> bool:
        return bool(self.ratio < self.most and self.low < _LOW)


def certify(problem: Problem, residuals: Float[np.ndarray, " n"]) -> Certificate | None:
    """Compare the weighted residuals of free runs with white noise, and return the comparison for
    the output whose residuals resemble white noise least. Return None for objectives other than
    free runs, for a robust loss, and if the noise of the records cannot be estimated.

    The noise is estimated from second differences of the residuals, and is at most the noise of the
    record. An error of the simulated motion hardly changes second differences, but adds low
    frequencies to the residuals.
    """
    if not isinstance(problem.objective, FreeRun | ClosedLoop) or problem.loss.rounds > 1:
        return None
    worst, matters = None, False
    for i, (prepared, weight, mine) in enumerate(problem.by_record(residuals)):
        if not isinstance(prepared, PreparedRecord):
            continue
        for c, name in enumerate(prepared.names):
            counted = weight[:, c] > 0
            if not counted.any():
                continue
            measured = (weight[:, c] * np.asarray(prepared.measured)[:, c])[counted]
            noise = prepared.tick_noise.get(name)
            # `exact`: largest misfit that rounding and time steps cause in a record without noise,
            # divided by the standard deviation of the record. The misfit is smaller for ticks (one
            # sample for each step of an encoder), because their positions are exact.
            exact = 1e-5 if noise is None else 1e-7
            noise = white_noise_of(measured) if noise is None else float(noise)
            spread = float(np.std(measured))
            found = _compare_with_noise(mine[counted, c], noise, spread, exact)
            if found is None:
                continue
            ratio, low, share = found
            most = 1.0 + max(_LEVEL, _OF_FEW / np.sqrt(np.sum(counted)))
            one = Certificate(name, i, ratio, float(most), low, False)
            # A misfit below a thousandth of the spread does not need a further search.
            matters |= not one.at_noise and share > 1e-3
            if worst is None or _excess(one) > _excess(worst):
                worst = one
    return None if worst is None else dataclasses.replace(worst, matters=matters)


def _excess(one: Certificate) -> float:
    return max(one.ratio / one.most, one.low / _LOW)


def _compare_with_noise(
    left: Float[np.ndarray, " n"], of_record: float, spread: float, exact: float
) -> tuple[float, float, float] | None:
    """Return three numbers for the residuals `left` of one output: their root mean square divided
    by the noise, their excess power at low frequencies (see `Certificate.low`), and their root mean
    square divided by `spread`. Return None if the noise cannot be estimated. `of_record`, `spread`:
    noise and standard deviation of the record; `exact`: largest root mean square that rounding and
    time steps cause, divided by `spread`.
    """
    n = left.size
    if n < 20:  # Noise cannot be estimated from fewer than 20 samples.
        return None
    if not np.isfinite(left).all():
        return float("inf"), float("inf"), float("inf")
    # Estimate the standard deviation of white noise from second differences. Differences are
    # clipped at three standard deviations, because the error at an event that is simulated one
    # sample late is not noise.
    second = np.diff(left, 2)
    scale = float(np.median(np.abs(second))) / 0.6745
    for _ in range(3):
        scale = 1.005 * float(np.sqrt(np.mean(np.clip(second, -3 * scale, 3 * scale) ** 2)))
    own = scale / np.sqrt(6.0)
    # For a long record, the estimated noise is limited to between half and 1.05 times the noise of
    # the record.
    noise = (1.05 + _OF_FEW / np.sqrt(n)) * of_record
    misfit = float(np.sqrt(np.mean(left**2)))
    if misfit > exact * spread:
        own = max(own, 0.5 * noise)
    noise = float(min(noise, own)) if own > 0 else float(noise)
    if not noise > 0:
        return None
    # For white noise, the entries of the cosine spectrum are squares of independent normal numbers.
    # The residuals are mirrored, so that their periodic series does not jump. The noise variance is
    # uncertain: the mean square of second differences has a relative variance of 35/9/n.
    x = left / noise
    power = np.abs(np.fft.rfft(np.concatenate([x, x[::-1]]))[:n]) ** 2 / (2 * n)
    power[0] /= 2
    total = np.cumsum(power)
    # The excess is computed over the lowest 1/4, 1/8, ... of the spectrum. Bands of fewer than 5
    # frequencies are excluded, because their excess is not normally distributed.
    counts = [n // part for part in (4, 8, 16, 32, 64, 128, 256) if n // part >= 5]
    excess = [(total[k - 1] - k) / np.sqrt(2.0 * k + 35 / 9 * k**2 / n) for k in counts]
    ratio, low = misfit / noise, float(max(excess, default=-np.inf))
    if misfit <= exact * spread and not (ratio < 1.0 + _LEVEL and low < _LOW):
        return None
    return float(ratio), float(low), misfit / max(spread, 1e-300)
