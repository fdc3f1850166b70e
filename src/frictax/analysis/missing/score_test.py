"""Score tests of candidate terms: does a term explain the residuals better than coloured noise?"""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import chdtrc, fdtrc

from frictax.fitting import FitResult
from frictax.fitting.problem.objectives import PreparedRecord
from frictax.measurements.noise import integrated_autocorrelation_time, white_noise_of
from frictax.measurements.record import Record

from ..errors.clusters import bias_reduced, time_blocks
from ..errors.input_noise import has_noisy_inputs, input_noise_exceeds_sensors, simulate_input_noise
from ..errors.linearization import linearize, orthonormal_basis
from .likelihood import Likelihood, Stretches, autoregression, window_autoregression
from .sensitivities import Sensitivities

# An autoregression: coefficients, and standard deviation of its prediction errors (innovations).
Autoregressive = tuple[Float[np.ndarray, " q"], float]

# A candidate is not tested if fitted parameters explain more than 1 - 1e-5 of its sum of squares.
UNEXPLAINED = 1e-5
SURE = 0.01  # significance level of the tests by likelihood and by blocks of time.
# A refit reaches the noise if it removes more than 70 % of the excess of the mean square residual
# over the noise. Before the refit, the residuals must exceed 1.1 times the noise (mean squares).
_ABOVE_NOISE, _MOST = 1.1, 0.7
# If the residuals with the term are white noise, the test by blocks of time is left out for small p
# values: of the F test below the first limit, and of the score test below the second limit.
_BEYOND_DOUBT, _BEYOND_DOUBT_BY_SCORE = 1e-10, 1e-6
# On windows, the likelihood test is sufficient if its p value is below the first limit and the
# explained share exceeds the second limit. Noise cannot explain so much in every window.
_WINDOWS_BEYOND_DOUBT, _WINDOWS_EXPLAINED = 1e-40, 0.5
# In whole runs, blocks of time are not compared if the explained share exceeds the first limit and
# the p values by likelihood and by score are below the second and the third limit. A clear term may
# act in few blocks only, as in a decaying motion.
_RUN_EXPLAINED, _RUN_BEYOND_DOUBT, _RUN_BEYOND_DOUBT_BY_SCORE = 0.4, 1e-25, 1e-10
_LOWEST = 8, 32, 128  # numbers of lowest frequencies whose mean power is tested
_BANDS = 1, 4, 16  # numbers of neighbouring frequencies whose common power is tested for a peak


@dataclasses.dataclass(frozen=True, eq=False)
class TestResult:
    """The test of one candidate.

    - `explained`: fraction of the residual sum of squares that the candidate explains; `rms`: root
      mean square of the weighted residuals with the candidate.
    - `c` (k,), `covariance` (k, k): coefficients of the candidate, fitted with the parameters, and
      their covariance; `own`: fraction of its sum of squares that the parameters do not explain.
    - `p_values`: probability that noise explains as much as the candidate, by three tests: for
      autoregressive residuals, by the covariance of the score, and by the differences between
      blocks of time. The third p value is 0 if the first two p values make the test unnecessary.
    - `is_white`: whether the residuals with the candidate are white noise.
    """

    explained: float
    rms: float
    c: Float[np.ndarray, " k"]
    covariance: Float[np.ndarray, "k k"]
    own: float
    p_values: tuple[float, float, float]
    is_white: bool = False


UNTESTABLE = TestResult(0.0, np.nan, np.zeros(1), np.full((1, 1), np.inf), 0.0, (1.0, 1.0, 1.0))


@dataclasses.dataclass(frozen=True)
class RefitGain:
    """The gain of a refit with a candidate.

    - `p_value` of the gain for autoregressive residuals. It replaces a smaller predicted p value.
    - `reaches_noise`: whether the refit removes most of the misfit above the noise of the sensors.
    - `covariance` (k, k) of the candidate's coefficients, from the residuals of the refit.
    """

    p_value: float = 0.0
    reaches_noise: bool = False
    covariance: Float[np.ndarray, "k k"] | None = None


class Projected:
    """Residuals and derivatives, minus the part that parameters and window starts explain.
    `residuals` (m,), `tried` (m, k): residuals and candidate columns after the projection; `own`
    (k,): remaining fraction of each column's sum of squares; `base`: orthonormal basis of the
    fitted columns; `rows` (m,): indices of the residuals in the fit; `taken`: number of columns
    that were projected out.
    """

    def __init__(self, columns: Sensitivities, rows: Int[np.ndarray, " m"]) -> None:
        self.rows = rows
        fitted, tried, starts = columns.fitted, columns.tried, columns.starts
        before = np.sum(tried**2, axis=0)
        table = np.column_stack([columns.residuals, fitted, tried])
        if starts.shape[1]:
            table = without_starts(table, starts, columns.window)
        p = fitted.shape[1]
        self.base = orthonormal_basis(table[:, 1 : p + 1])
        rest = table[:, [0, *range(p + 1, table.shape[1])]]
        rest = rest - self.base @ (self.base.T @ rest)
        self.residuals, self.tried = rest[:, 0], rest[:, 1:]
        after = np.sum(self.tried**2, axis=0)
        self.own = np.divide(after, before, out=np.zeros_like(after), where=before > 0)
        windows = len(np.unique(columns.window[columns.window >= 0]))
        self.taken = self.base.shape[1] + starts.shape[1] * windows

    @classmethod
    def from_columns(cls, columns: Sensitivities, counted: Bool[np.ndarray, " n"]) -> "Projected":
        """Return the `Projected` of the rows that `counted` selects."""
        mine = Sensitivities(*(rows[counted] for rows in vars(columns).values()))
        return cls(mine, np.flatnonzero(counted))

    def without(self, at: list[int]) -> Float[np.ndarray, " m"]:
        """Return the residuals minus the part that the candidate columns `at` explain."""
        u = orthonormal_basis(self.tried[:, at])
        return self.residuals - u @ (u.T @ self.residuals)


def without_starts(table: np.ndarray, starts: np.ndarray, window: np.ndarray) -> np.ndarray:
    """Return `table` (n, m) minus the part that the initial states of windows explain."""
    out = table.copy()
    for w in np.unique(window[window >= 0]):
        mine = window == w
        u = orthonormal_basis(starts[mine])
        out[mine] -= u @ (u.T @ out[mine])
    return out


def whiten(
    columns: Sensitivities,
    stretches: Stretches,
    model: Callable[[list[np.ndarray]], Autoregressive],
) -> tuple[Projected, Stretches]:
    """Filter residuals and columns by the autoregression that `model` gives for each channel, and
    divide them by the standard deviation of the innovations. Also return for each channel and
    section the indices of the filtered residuals: the first residuals are only past values for the
    filter.
    """
    table = np.column_stack([columns.residuals, columns.fitted, columns.tried, columns.starts])
    rows, kept = [], []
    for channel in stretches:
        phi, noise = model(channel)
        q = phi.size
        kept.append([])
        for s in channel:
            if len(s) <= 2 * q:
                continue
            z = table[s]
            now = z[q:] - sum((phi[j] * z[q - 1 - j : len(s) - 1 - j] for j in range(q)), 0.0)
            rows.append(now / noise)
            kept[-1].append(s[q:])
    white = np.concatenate(rows)
    p, k = columns.fitted.shape[1], columns.tried.shape[1]
    at = np.concatenate([s for channel in kept for s in channel])
    r, fitted, tried, starts = np.split(white, [1, p + 1, p + k + 1], axis=1)
    return Projected(Sensitivities(r[:, 0], fitted, tried, starts, columns.window[at]), at), kept


def model_of_residuals(
    left: Float[np.ndarray, " n"],
) -> Callable[[list[np.ndarray]], Autoregressive]:
    """Return a function that computes the autoregression of a channel from the residuals `left`."""
    return lambda channel: autoregression([left[s] for s in channel])


def model_on_windows(columns: Sensitivities) -> Callable[[list[np.ndarray]], Autoregressive]:
    """Return a function that fits the autoregression of a channel by `window_autoregression`."""
    fitted = np.column_stack([columns.fitted, columns.tried])
    whole = dataclasses.replace(columns, fitted=fitted)

    def model(channel: list[np.ndarray]) -> Autoregressive:
        out = window_autoregression(whole, channel)
        return out.phi, float(np.sqrt(out.noise))

    return model


class ScoreTest:
    """Score tests of candidates for the residuals of a fit.

    - `counted` (n,): True for residuals with a weight above 0; `stretches`: for each channel, the
      indices of its residuals, one array for each section without a gap.
    - `noise`: mean square of the sensor noise, in units of the squared weighted residuals, from the
      record or estimated from the samples; infinite if the residuals are not those of outputs.
    - `has_windows`: whether initial states of windows are projected out. If True, the covariance of
      the score follows from the residuals without the candidate.
    - `limit`: significance level of the test by the score, divided by `SURE`.
    """

    def __init__(self, found: FitResult, has_windows: bool) -> None:
        linear, problem = linearize(found), found.problem
        self.has_windows, self.counted = has_windows, linear.counted
        # The significance level is 1 % with windows, 0.1 % without; `limit`: this level / `SURE`.
        self.limit = 1.0 if has_windows else 0.001 / SURE
        self.noise, squares = np.inf, []
        pairs = zip(found.records.values(), problem.prepared, strict=True)
        runs = [(r, p) for r, p in pairs if isinstance(r, Record) and isinstance(p, PreparedRecord)]
        if problem.objective.in_units_of_outputs() and len(runs) == len(problem.prepared):
            for record, prepared in runs:
                weight = np.asarray(prepared.weight)
                at = prepared.samples()
                for k, name in enumerate(prepared.names):
                    sd, counted = record.sd.get(name), weight[..., k] > 0
                    noise = white_noise_of(record.outputs[name]) if sd is None else sd
                    sizes = weight[..., k] * np.broadcast_to(noise, record.n)[at[..., k]]
                    sizes = prepared.tick_noise.get(name, sizes)
                    squares.append(np.broadcast_to(sizes, counted.shape)[counted] ** 2)
            self.noise = float(np.mean(np.concatenate(squares)))
        self._found = found
        self.stretches: Stretches = [stretches for _, _, stretches in linear.series]
        self.block = time_blocks(linear, 16)[0][linear.counted]
        alone = linear.counted.copy()
        for channel in self.stretches:
            alone[np.concatenate(channel)] = False
        if alone.any():  # each row of a sweep is a section by itself
            self.stretches.append(np.split(np.flatnonzero(alone), int(alone.sum())))

    @functools.cached_property
    def has_noisy_inputs(self) -> bool:
        """True if the fit is of whole runs and their inputs are noisy."""
        return not self.has_windows and has_noisy_inputs(self._found)

    @functools.cached_property
    def doubt(self) -> float:
        """Factor of p values by blocks of time: 10 if input noise may move the machine, else 1."""
        is_noisy = self.has_noisy_inputs or input_noise_exceeds_sensors(self._found)
        return 10.0 if is_noisy else 1.0

    @functools.cached_property
    def input_noise(self) -> Float[np.ndarray, "k n"]:
        """The changes (k, n) of the residuals that k draws of input noise cause."""
        return simulate_input_noise(self._found)

    def correlated_share(self, left: Float[np.ndarray, " n"]) -> float:
        """Return the largest ratio of correlation time to length among the channels of `left`."""
        series = (left[np.concatenate(channel)] for channel in self.stretches)
        return max(integrated_autocorrelation_time(x) / x.size for x in series)

    def independent(self, left: Float[np.ndarray, " n"]) -> float:
        """Return the number of independent residuals in all channels of `left`, at least 8."""
        series = (left[np.concatenate(channel)] for channel in self.stretches)
        return max(sum(x.size / integrated_autocorrelation_time(x) for x in series), 8.0)

    def at(self, seen: Sensitivities) -> "CandidateTests":
        return CandidateTests(self, seen)

    def refit_gain(self, before: Sensitivities, after: Sensitivities) -> RefitGain:
        """Return the gain of a refit from the sensitivities without and with the candidate."""
        was, then = (Projected.from_columns(x, self.counted) for x in (before, after))
        left = np.zeros(len(after.residuals))
        left[self.counted] = then.without(list(range(then.tried.shape[1])))
        size, noise = (float(x @ x) for x in (was.residuals, left))
        floor = self.noise * (len(then.residuals) - then.taken)
        reaches = size > _ABOVE_NOISE * floor and size - noise > _MOST * (size - floor)
        model = model_on_windows(after) if self.has_windows else model_of_residuals(left)
        was, then = (whiten(x, self.stretches, model)[0] for x in (before, after))
        k = then.tried.shape[1]
        rest = then.without(list(range(k)))
        noise, dof = float(rest @ rest), float(max(len(rest) - then.taken - k, 1))
        gain = (float(was.residuals @ was.residuals) - noise) / max(noise, 1e-300)
        covariance = noise / dof * np.linalg.pinv(then.tried.T @ then.tried, hermitian=True)
        return RefitGain(f_test_p(gain * dof / k, k, dof), bool(reaches), covariance)

    def p_of_innovations(self, after: FitResult, k: int) -> float:
        """Return the p value of the `k` additional parameters of the fit `after`. The test compares
        the innovations of the autoregressions of both fits.
        """
        n, gain, fits = 0, 0.0, (self._found.full_residuals, after.full_residuals)
        for channel in self.stretches:
            was, now = ([left[rows] for rows in channel] for left in fits)
            # `least`: innovations below this size are rounding errors
            count, least = sum(map(len, was)), 1e-6 * float(np.std(np.concatenate(was))) + 1e-300
            one, other = (max(autoregression(left)[1], least) for left in (was, now))
            n, gain = n + count, gain + 2 * count * float(np.log(one / other))
        dof = float(n - len(after.x))
        return f_test_p(float(np.expm1(max(gain, 0.0) / n)) * dof / k, k, dof)

    def combine(
        self, rows: list[TestResult], tries: Float[np.ndarray, " m"]
    ) -> tuple[Float[np.ndarray, " m"], int]:
        """Return a combined p value for each candidate, and the number of candidates that pass the
        first two tests. The p value of each test is corrected for the number of candidates and
        multiplied by 1 % / (significance level of the test). The largest of these p values is the
        combined one.
        """
        first, second, third = np.reshape([row.p_values for row in rows], (-1, 3)).T
        one = np.ones(len(rows))
        out = np.maximum(holm(first, tries), holm(second, one) / self.limit)
        # Only candidates that pass the first two tests are tested by blocks.
        passing = np.flatnonzero(out < SURE)
        out[passing] = np.maximum(out[passing], holm(third[passing], one[passing]))
        return np.minimum(out, 1.0), len(passing)


class CandidateTests:
    """Tests of candidates by the sensitivities at one point. `plain`: residuals and columns minus
    the part that fitted parameters explain; `white`: the same columns after the autoregressive
    filter.
    """

    def __init__(self, test: ScoreTest, seen: Sensitivities) -> None:
        self.test, self.seen = test, seen
        self.plain = Projected.from_columns(seen, test.counted)
        self.left = np.zeros(len(seen.residuals))
        self.left[test.counted] = self.plain.residuals
        self.white, self.rows = whiten(seen, test.stretches, model_of_residuals(self.left))

    @property
    def is_white(self) -> bool:
        """True if the residuals are uncorrelated and their spectrum does not have a peak."""
        left = self.left
        return not any(
            autoregression([left[s] for s in channel])[0].size
            or has_peak(left[np.concatenate(channel)])
            for channel in self.test.stretches
        )

    def leaves_white_noise(self, at: list[int], seen: Projected, rows: Stretches) -> bool:
        """Return whether the residuals of `seen` are white noise after a fit of the columns `at`:
        uncorrelated, with equal power at all frequencies and in all blocks of time. `rows`: indices
        of the residuals by channel and section."""
        left = np.zeros(len(self.left))
        left[seen.rows] = seen.without(at)
        block = np.zeros(len(left), int)
        block[self.test.counted] = self.test.block
        return all(
            not autoregression([left[s] for s in channel])[0].size
            and is_even(left[np.concatenate(channel)], block[np.concatenate(channel)])
            for channel in rows
        )

    def independent(self, at: list[int]) -> float:
        """Return `ScoreTest.independent` for the residuals after a fit of the columns `at`."""
        left = self.left
        if at:
            left = left.copy()
            left[self.test.counted] = self.plain.without(at)
        return self.test.independent(left)

    @functools.cached_property
    def likelihood(self) -> Likelihood:
        return Likelihood(self.seen, self.test.stretches, self.left)

    @functools.cached_property
    def likelihood_with_input_noise(self) -> Likelihood:
        return Likelihood(self.seen, self.test.stretches, self.left, self.test.input_noise)

    def quick_test(self, at: list[int]) -> TestResult:
        """Test the columns `at` by F test and score only, without likelihood or blocks of time."""
        return score_statistics(self.plain, self.white, at, self.test.has_windows)

    def _p_by_likelihood(self, at: list[int], quick: float) -> float:
        """Return the p value of the columns `at` by likelihood. The autoregression, random walk and
        input noise are fitted separately with and without these columns. On windows, an F test uses
        an autoregression fitted with these columns, if the p value `quick` is at most 1 %."""
        if not self.test.has_windows:
            p = self.likelihood.p_value(at)
            if p < SURE and self.test.has_noisy_inputs:
                p = max(p, self.likelihood_with_input_noise.p_value(at))
            return p
        if quick > SURE:
            return quick
        seen = dataclasses.replace(self.seen, tried=self.seen.tried[:, at])
        white, _ = whiten(seen, self.test.stretches, model_on_windows(seen))
        plain = Projected.from_columns(seen, self.test.counted)
        return max(quick, score_statistics(plain, white, list(range(len(at))), True).p_values[0])

    def full_test(self, at: list[int], gain: RefitGain = RefitGain()) -> TestResult:
        """Test the columns `at` by all tests, and by the `gain` of a refit with these columns."""
        out, test = self.quick_test(at), self.test
        if out.own == 0:
            return out
        first, second, _ = out.p_values
        first = max(self._p_by_likelihood(at, first), gain.p_value)
        is_white = self.leaves_white_noise(at, self.plain, test.stretches)
        out = dataclasses.replace(out, is_white=is_white)
        # Rounding by an encoder is noise too, but not white. The refit shows if this noise remains.
        is_noise = is_white or gain.reaches_noise
        if is_noise or self.leaves_white_noise(at, self.white, self.rows):
            by = self.plain if is_white else self.white
            # Residuals are not white noise if the zero of a sensor drifts. On windows the fitted
            # initial states absorb slow parts, so the residuals must be white before filtering.
            drifts = lambda: test.has_noisy_inputs or self.likelihood.has_walk  # noqa: E731
            may_be_white = is_white if test.has_windows else not drifts()
            even = first
            if may_be_white:
                even = min(first, score_statistics(by, by, at, False).p_values[0])
            even = max(even, gain.p_value)
            by_score = score_statistics(self.plain, self.white, at, False).p_values[1]
            if even < _BEYOND_DOUBT and by_score < _BEYOND_DOUBT_BY_SCORE:
                return dataclasses.replace(out, p_values=(even, by_score, 0.0))
        if test.has_windows:
            if first < _WINDOWS_BEYOND_DOUBT and out.explained > _WINDOWS_EXPLAINED:
                return dataclasses.replace(out, p_values=(first, first, 0.0))
        elif out.explained > _RUN_EXPLAINED:
            if first < _RUN_BEYOND_DOUBT and second < _RUN_BEYOND_DOUBT_BY_SCORE:
                return dataclasses.replace(out, p_values=(first, second, 0.0))
        # Compute the p value from the differences between blocks of time, with the columns fitted.
        own = orthonormal_basis(self.plain.tried[:, at])
        c, k = own.T @ self.plain.residuals, own.shape[1]
        columns = np.column_stack([self.plain.base, own])
        covariance, dof = bias_reduced(columns, self.plain.residuals - own @ c, test.block)
        mine = covariance[-k:, -k:]
        nu = max(float(np.min(dof(np.eye(columns.shape[1])[-k:]))) - k + 1, 1.0)
        size = float(c @ np.linalg.solve(mine + 1e-12 * np.trace(mine) * np.eye(k) / k, c))
        by_blocks = test.doubt * f_test_p(size * nu / (nu + k - 1) / k, k, nu)
        return dataclasses.replace(out, p_values=(first, second, by_blocks))


def score_statistics(plain: Projected, white: Projected, at: list[int], before: bool) -> TestResult:
    """Return the score test of the columns `at`. The score is the derivative of the log likelihood.
    Its covariance is that of the residuals without (`before` True) or with the candidate."""
    own = float(np.min(plain.own[at]))
    if not (own > UNEXPLAINED and np.all(np.isfinite(plain.tried[:, at]))):
        return UNTESTABLE
    r, u = plain.residuals, orthonormal_basis(plain.tried[:, at])
    square = float(r @ r)
    explained = float(np.sum((u.T @ r) ** 2)) / square if square > 0 else 0.0
    rms = np.sqrt(square * max(1.0 - explained, 0.0) / len(r))

    r, g = white.residuals, white.tried[:, at]
    u, n = orthonormal_basis(g), len(r)
    k = u.shape[1]
    if not k:
        return UNTESTABLE
    c = -np.linalg.lstsq(g, r, rcond=None)[0]
    z = u.T @ r
    after = r - u @ z
    dof = float(max(n - white.taken - k, 1))
    variance = float(after @ after) / dof
    first = f_test_p(float(z @ z) / variance / k, k, dof)
    scores = u * (r if before else after)[:, None]
    # The number of cosines, 0.41 n^(2/3), follows Lazarus, Lewis, Stock, Watson, JBES 36 (2018).
    m = max(int(0.41 * n ** (2 / 3)), 2 * k)
    sums = _cosines(n, m).T @ scores
    spread = n * (sums.T @ sums) / m
    size = float(z @ np.linalg.solve(spread + 1e-12 * np.trace(spread) * np.eye(k) / k, z))
    second = f_test_p(size * (m - k + 1) / (m * k), k, float(m - k + 1))
    to_c = np.linalg.pinv(g) @ u
    covariance = np.maximum(variance, 0.0) * to_c @ to_c.T
    return TestResult(explained, float(rms), c, covariance, own, (first, second, 1.0))


@functools.lru_cache(4)
def _cosines(n: int, m: int) -> np.ndarray:
    """Return m cosines over n samples, which are orthonormal and orthogonal to a constant."""
    at = (np.arange(n) + 0.5) / n
    return np.sqrt(2.0 / n) * np.cos(np.pi * np.outer(at, np.arange(1, m + 1)))


def is_even(left: Float[np.ndarray, " n"], block: Int[np.ndarray, " n"]) -> bool:
    """Return whether `left` has equal power over frequency and equal variance in each `block`."""
    uneven = 0.001  # a smaller p value shows unequal power or variance
    power = _periodogram(left)
    low = [m for m in _LOWEST if 4 * m < len(power)]
    if any(chdtrc(2 * m, 2.0 * float(np.sum(power[:m]))) < uneven for m in low):
        return False
    groups = [left[block == b] for b in np.unique(block)]
    groups = [x for x in groups if len(x) > 2]
    if len(groups) < 2:
        return True
    # Bartlett's test of equal variances.
    dof = np.array([len(x) - 1.0 for x in groups])
    variance = np.array([max(float(np.var(x, ddof=1)), 1e-300) for x in groups])
    pooled = float(np.sum(dof * variance) / np.sum(dof))
    size = float(np.sum(dof) * np.log(pooled) - np.sum(dof * np.log(variance)))
    fix = 1.0 + (np.sum(1.0 / dof) - 1.0 / np.sum(dof)) / (3.0 * (len(groups) - 1))
    return bool(chdtrc(len(groups) - 1, size / fix) >= uneven)


def has_peak(left: Float[np.ndarray, " n"]) -> bool:
    """Return whether a band of neighbouring frequencies has too much power for white noise. A
    missing term with an effect below the noise can cause such a peak, unseen by an autoregression.

    **Source:** R. A. Fisher, "Tests of significance in harmonic analysis", Proc. R. Soc. A 125
    (1929). An upper bound of the p value is used.
    """
    power = _periodogram(left)
    sums = np.append(0.0, np.cumsum(power))
    bands = (m for m in _BANDS if 4 * m < len(power))
    most = ((m, float(np.max(sums[m:] - sums[:-m]))) for m in bands)
    return any(len(power) * chdtrc(2 * m, 2.0 * x) < 0.003 for m, x in most)


def _periodogram(left: Float[np.ndarray, " n"]) -> Float[np.ndarray, " f"]:
    """Return the power at each frequency > 0, divided by the mean power."""
    power = np.abs(np.fft.rfft(left - left.mean())) ** 2
    return power[1:] / max(float(np.mean(power[1:])), 1e-300)


def p_of_slow_changes(left: Float[np.ndarray, " n"], fitted: Float[np.ndarray, "n p"]) -> float:
    """Return the p value of slow changes of the fitted parameters during a run. `fitted`: the
    derivatives of the residuals `left` with respect to these parameters. Slow changes occur if a
    missing term depends on the amplitude of a free decay, or if a sensor drifts.

    **Source:** a test by scores, after J. Nyblom, "Testing for the constancy of parameters over
    time", JASA 84 (1989).
    """
    n, p = fitted.shape
    # Slow changes are sums of four cosines, with half a period to two periods over the record.
    slow = np.cos(np.pi * np.outer((np.arange(n) + 0.5) / n, np.arange(1, 5)))
    more = np.reshape(fitted[:, :, None] * slow[:, None, :], (n, -1))
    table = np.column_stack([fitted, left, more])
    table = table / np.maximum(np.linalg.norm(table, axis=0), 1e-300)
    gram = table.T @ table
    smallest = 1e-8  # Smaller eigenvalues of products of unit columns are rounding errors.
    inverse = np.linalg.pinv(gram[:p, :p], smallest, hermitian=True)
    gram = gram - gram[:, :p] @ inverse @ gram[:p]
    size, turn = np.linalg.eigh(gram[p + 1 :, p + 1 :])
    large = size > smallest
    k, dof = int(np.sum(large)), float(n - p - np.sum(large))
    if not k or dof < 1:
        return 1.0
    gain = float(np.sum((turn[:, large].T @ gram[p + 1 :, p]) ** 2 / size[large]))
    return f_test_p(gain / max(float(gram[p, p]) - gain, 1e-300) * dof / k, k, dof)


def holm(p_values: Float[np.ndarray, " m"], tries: Float[np.ndarray, " m"]) -> np.ndarray:
    """Return p values corrected for multiple tests (Holm, 1979), with `tries` tests per p value."""
    p, out, most = np.minimum(p_values * tries, 1.0), np.ones(len(p_values)), 0.0
    for i, j in enumerate(np.argsort(p)):
        most = max(most, min((len(p) - i) * p[j], 1.0))
        out[j] = most
    return out


def f_test_p(f: float, k: int, dof: float) -> float:
    """Return the probability that F with k and dof degrees of freedom exceeds `f`."""
    return float(fdtrc(k, max(dof, 1), max(f, 0.0)))
