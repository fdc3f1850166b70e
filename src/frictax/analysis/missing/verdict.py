"""Would a term explain what a fit leaves, or would noise of the same colour do as much?"""

import dataclasses
import functools

import numpy as np
from jaxtyping import Float, Int

from frictax.fitting import FitResult
from frictax.fitting.problem.objectives import PreparedRecord
from frictax.measurements.noise import memory, white_noise_of
from frictax.measurements.record import Record

from ..errors.clusters import bias_reduced, blocks
from ..errors.linearized import linearized
from ..errors.recorded_noise import has_noisy_inputs, inputs_err, led_noise
from .chances import chance_of, has_peak, holm, is_even
from .columns import Columns
from .likelihood import Likelihood, Stretches, autoregression
from .projected import Projected, basis, memory_beside, memory_of_left, projected, whitened

OWN = 1e-5  # of a column's square, which the fitted numbers cannot imitate: less is not told
AS_MUCH = 0.95  # of what the best explains: as good, where it is plainer
_BLOCKS = 16
_DOUBT = 10.0  # of what blocks say where noise of an input takes the machine elsewhere
_ABOVE_NOISE, _MOST = 1.1, 0.7  # times its mean square; of what is left above it
_BEYOND_DOUBT, _FAR_AFTER = 1e-10, 1e-6  # of white noise; by the spread of the score
# on windows: no noise does so much alike in all of them, whatever the spread of a few scores says
_PLAIN, _HALF = 1e-40, 0.5
# of a run, whatever blocks of time say
_MUCH, _FAR, _FAR_BY_SCORE = 0.4, 1e-25, 1e-10
_COSINES = 0.41  # times n^(2/3), of Lazarus, Lewis, Stock, Watson, JBES 36 (2018)
SURE, _SURE_AFTER = 0.01, 0.001  # by an autoregression; by the spread of the score


@dataclasses.dataclass(frozen=True, eq=False)
class Told:
    """What a record tells of one candidate.

    - `fall`: the share of the sum of squares that it would take away; `rms`: root mean square of
      the weighted residuals afterwards.
    - `c` (k,): the value of its coefficients, others moving along; `covariance` (k, k).
    - `own`: the share of its columns that the fitted numbers cannot imitate.
    - `chances`: those of as good a fit by chance, were the residuals an autoregression; by the
      spread of the score itself; and by what differs between blocks of time. Where it leaves white
      noise (`is_white`) and explains much, the first is that of white noise and the last is 0.
    """

    fall: float
    rms: float
    c: Float[np.ndarray, " k"]
    covariance: Float[np.ndarray, "k k"]
    own: float
    chances: tuple[float, float, float]
    is_white: bool = False


UNTOLD = Told(0.0, np.nan, np.zeros(1), np.full((1, 1), np.inf), 0.0, (1.0, 1.0, 1.0))


@dataclasses.dataclass(frozen=True)
class Refitted:
    """What a refit with a candidate gained.

    - `chance`: of as large a fall of residuals that are an autoregression; where the candidate's
      derivatives promise more than it holds, this is what it holds.
    - `reaches_noise`: whether most of what was left above the noise of the sensors is gone.
    """

    chance: float = 0.0
    reaches_noise: bool = False


class Judge:
    """Who says what the columns of candidates would explain of the residuals of a fit.

    - `counted` (n,): the residuals that have a weight; `stretches`: those of each channel.
    - `noise`: the mean square of the residuals, were they those of the sensors alone.
    - `has_windows`: whether starts of windows are projected out, of which the score's spread is
      that of the residuals before the candidate.
    """

    def __init__(self, found: FitResult, has_windows: bool) -> None:
        linear, _ = linearized(found)
        self.has_windows, self.counted = has_windows, linear.counted
        self.limit = 1.0 if has_windows else _SURE_AFTER / SURE
        self.noise = _noise(found)
        self._found = found
        self.stretches: Stretches = [stretches for _, _, stretches in linear.series]
        self.block = blocks(linear, _BLOCKS)[0][linear.counted]
        alone = linear.counted.copy()
        for channel in self.stretches:
            alone[np.concatenate(channel)] = False
        if alone.any():  # rows of sweeps
            self.stretches.append(np.split(np.flatnonzero(alone), int(alone.sum())))

    @functools.cached_property
    def has_noisy_inputs(self) -> bool:
        """Whether inputs show noise, which takes a run elsewhere."""
        return not self.has_windows and has_noisy_inputs(self._found)

    @functools.cached_property
    def doubt(self) -> float:
        """What blocks say is multiplied by."""
        return _DOUBT if self.has_noisy_inputs or inputs_err(self._found) else 1.0

    @functools.cached_property
    def led_noise(self) -> Float[np.ndarray, "k n"]:
        """What draws of the noise of the inputs do to the residuals (`led_noise`)."""
        return led_noise(self._found)

    def share_remembered(self, left: Float[np.ndarray, " n"]) -> float:
        """The longest memory of a channel of residuals, over how many of them there are."""
        series = (left[np.concatenate(channel)] for channel in self.stretches)
        return max(memory(x) / x.size for x in series)

    def at(self, seen: Columns) -> "Verdicts":
        """What is said of the columns there."""
        return Verdicts(self, seen)

    def by_refit(self, before: Columns, after: Columns) -> "Refitted":
        """What a refit gained over `before` with the candidate whose columns are all that `after`
        has.
        """
        was, then = projected(before, self.counted), projected(after, self.counted)
        left = np.zeros(len(after.residuals))
        left[self.counted] = then.without(list(range(then.tried.shape[1])))
        size, noise = (float(x @ x) for x in (was.residuals, left))
        floor = self.noise * (len(then.residuals) - then.taken)
        reaches = size > _ABOVE_NOISE * floor and size - noise > _MOST * (size - floor)
        memory = memory_beside(after) if self.has_windows else memory_of_left(left)
        was, then = (whitened(x, self.stretches, memory)[0] for x in (before, after))
        k = then.tried.shape[1]
        rest = then.without(list(range(k)))
        noise, dof = float(rest @ rest), float(max(len(rest) - then.taken - k, 1))
        gain = float(was.residuals @ was.residuals) - noise
        chance = chance_of(gain / max(noise, 1e-300) * dof / k, k, dof)
        return Refitted(chance, bool(reaches))

    def chances(
        self, rows: list[Told], tries: Float[np.ndarray, " m"]
    ) -> tuple[Float[np.ndarray, " m"], int]:
        """Of each of all candidates, the largest chance over its limit, times 1 %; and how many
        pass all tests but that by blocks, which is asked of these alone.
        """
        first, second, third = np.array([row.chances for row in rows]).T
        one = np.ones(len(rows))
        out = np.maximum(holm(first, tries), holm(second, one) / self.limit)
        passing = np.flatnonzero(out < SURE)
        out[passing] = np.maximum(out[passing], holm(third[passing], one[passing]))
        return np.minimum(out, 1.0), len(passing)


class Verdicts:
    """What a `Judge` says of candidates by their columns at some values.

    `plain`: the columns without what was fitted; `white`: the same whitened.
    """

    def __init__(self, judge: Judge, seen: Columns) -> None:
        self.judge, self.seen = judge, seen
        self.plain = projected(seen, judge.counted)
        self.left = np.zeros(len(seen.residuals))
        self.left[judge.counted] = self.plain.residuals
        self.white, self.rows = whitened(seen, judge.stretches, memory_of_left(self.left))

    @property
    def is_white(self) -> bool:
        """Whether nothing of the residuals remembers the ones before, nor swings among them."""
        left = self.left
        return not any(
            autoregression([left[s] for s in channel])[0].size
            or has_peak(left[np.concatenate(channel)])
            for channel in self.judge.stretches
        )

    def leaves_even(self, at: list[int], seen: Projected, rows: Stretches) -> bool:
        """Whether the residuals of `seen`, which stand at `rows` of all, are as white noise less
        what the columns `at` explain: with no memory, no more at low frequencies, and as large in
        each block of time.
        """
        left = np.zeros(len(self.left))
        left[seen.rows] = seen.without(at)
        of_block = np.zeros(len(left), int)
        of_block[self.judge.counted] = self.judge.block
        return all(
            not autoregression([left[s] for s in channel])[0].size
            and is_even(left[np.concatenate(channel)], of_block[np.concatenate(channel)])
            for channel in rows
        )

    def share_remembered(self, at: list[int] | None = None) -> float:
        """The longest memory of a channel's residuals, over how many of them there are; less what
        the columns `at` explain.
        """
        left = self.left
        if at:
            left = left.copy()
            left[self.judge.counted] = self.plain.without(at)
        return self.judge.share_remembered(left)

    @functools.cached_property
    def likelihood(self) -> Likelihood:
        return Likelihood(self.seen, self.judge.stretches, self.left)

    @functools.cached_property
    def beside_inputs(self) -> Likelihood:
        """With the noise of the inputs led through the machine."""
        return Likelihood(self.seen, self.judge.stretches, self.left, self.judge.led_noise)

    @property
    def wanders(self) -> bool:
        """Whether something slow is beside the noise of the residuals of a run."""
        return self.judge.has_noisy_inputs or self.likelihood.wanders

    def glimpse(self, at: list[int]) -> Told:
        """Of the candidate with the columns `at`, by the whitened columns alone."""
        return told(self.plain, self.white, at, self.judge.has_windows)

    def _first(self, at: list[int], glimpsed: float) -> float:
        """The first of the chances of the columns `at`: by likelihood, both with their own memory,
        beside a walk and beside what the noise of the inputs would do; on windows, where `glimpsed`
        is small, by the memory beside them.
        """
        if not self.judge.has_windows:
            chance = self.likelihood.chance(at)
            if chance < SURE and self.judge.has_noisy_inputs:
                chance = max(chance, self.beside_inputs.chance(at))
            return chance
        if glimpsed > SURE:
            return glimpsed
        seen = dataclasses.replace(self.seen, tried=self.seen.tried[:, at])
        white, _ = whitened(seen, self.judge.stretches, memory_beside(seen))
        plain = projected(seen, self.judge.counted)
        return max(glimpsed, told(plain, white, list(range(len(at))), True).chances[0])

    def judged(self, at: list[int], refitted: Refitted = Refitted()) -> Told:
        """Of the candidate with the columns `at`, by all tests, and by what a refit gained."""
        this = self.glimpse(at)
        if this.own == 0:
            return this
        first, second, _ = this.chances
        first = max(self._first(at, first), refitted.chance)
        is_white = self.leaves_even(at, self.plain, self.judge.stretches)
        this = dataclasses.replace(this, is_white=is_white)
        is_noise = is_white or refitted.reaches_noise
        # steps of encoders are not even noise, though they may pass for it
        if is_noise or self.leaves_even(at, self.white, self.rows):
            by = self.plain if is_white else self.white
            # beside a zero that wanders nothing is as white noise alone; nor, on windows, whose
            # starts take what is slow, is what is not white
            alike = is_white if self.judge.has_windows else not self.wanders
            even = first if not alike else min(first, told(by, by, at, False).chances[0])
            even = max(even, refitted.chance)
            after = told(self.plain, self.white, at, False).chances[1]
            if even < _BEYOND_DOUBT and after < _FAR_AFTER:
                return dataclasses.replace(this, chances=(even, after, 0.0))
        if self.judge.has_windows and first < _PLAIN and this.fall > _HALF:
            return dataclasses.replace(this, chances=(first, first, 0.0))
        by_run = not self.judge.has_windows and this.fall > _MUCH
        if by_run and first < _FAR and second < _FAR_BY_SCORE:  # a decay may fill few blocks
            return dataclasses.replace(this, chances=(first, second, 0.0))
        chances = first, second, self.judge.doubt * _by_blocks(self.plain, at, self.judge.block)
        return dataclasses.replace(this, chances=chances)


def _noise(found: FitResult) -> float:
    """Of a fit, the mean square of its weighted residuals, were they the white noise that is given
    for each output or read from it; infinite where the residuals are not of outputs.
    """
    problem, squares = found.problem, []
    if not problem.objective.in_units_of_outputs():
        return np.inf
    for record, prepared in zip(found.records.values(), problem.prepared, strict=True):
        if not (isinstance(record, Record) and isinstance(prepared, PreparedRecord)):
            return np.inf
        weight = np.asarray(prepared.weight)
        for k, name in enumerate(prepared.names):
            sd, counted = record.sd.get(name), weight[..., k][weight[..., k] > 0]
            noise = white_noise_of(record.outputs[name]) if sd is None else np.sqrt(np.mean(sd**2))
            of_ticks = prepared.tick_noise.get(name)
            sizes = counted * noise if of_ticks is None else np.full(counted.size, of_ticks)
            squares.append(sizes**2)
    return float(np.mean(np.concatenate(squares)))


def told(plain: Projected, white: Projected, at: list[int], before: bool) -> Told:
    """What the columns `at` would do; `before`: whether the spread of the score is that of the
    residuals before the candidate, and not after it.
    """
    own = float(np.min(plain.own[at]))
    if not (own > OWN and np.all(np.isfinite(plain.tried[:, at]))):
        return UNTOLD
    r, g = plain.residuals, plain.tried[:, at]
    u = basis(g)
    square = float(r @ r)
    fall = float(np.sum((u.T @ r) ** 2)) / square if square > 0 else 0.0
    rms = np.sqrt(square * max(1.0 - fall, 0.0) / len(r))

    r, g = white.residuals, white.tried[:, at]
    u, n = basis(g), len(r)
    k = u.shape[1]
    if not k:
        return UNTOLD
    c = -np.linalg.lstsq(g, r, rcond=None)[0]
    z = u.T @ r
    after = r - u @ z
    dof = float(max(n - white.taken - k, 1))
    variance = float(after @ after) / dof
    first = chance_of(float(z @ z) / variance / k, k, dof)
    scores = u * (r if before else after)[:, None]
    m = max(int(_COSINES * n ** (2 / 3)), 2 * k)
    sums = _cosines(n, m).T @ scores
    spread = n * (sums.T @ sums) / m
    size = float(z @ np.linalg.solve(spread + 1e-12 * np.trace(spread) * np.eye(k) / k, z))
    second = chance_of(size * (m - k + 1) / (m * k), k, float(m - k + 1))
    to_c = np.linalg.pinv(g) @ u
    covariance = np.maximum(variance, 0.0) * to_c @ to_c.T
    return Told(fall, float(rms), c, covariance, own, (first, second, 1.0))


def _by_blocks(plain: Projected, at: list[int], block: Int[np.ndarray, " m"]) -> float:
    """That the columns `at` are worth as much by what differs between blocks of time, whatever
    makes them differ (`Clustered`), with them in the model.
    """
    own = basis(plain.tried[:, at])
    c = own.T @ plain.residuals
    columns = np.column_stack([plain.base, own])
    covariance, dof = bias_reduced(columns, plain.residuals - own @ c, block)
    k, mine = len(c), covariance[-len(c) :, -len(c) :]
    nu = max(float(np.min(dof(np.eye(columns.shape[1])[-k:]))) - k + 1, 1.0)
    size = float(c @ np.linalg.solve(mine + 1e-12 * np.trace(mine) * np.eye(k) / k, c))
    return chance_of(size * nu / (nu + k - 1) / k, k, nu)


@functools.lru_cache(4)
def _cosines(n: int, m: int) -> np.ndarray:
    at = (np.arange(n) + 0.5) / n
    return np.sqrt(2.0 / n) * np.cos(np.pi * np.outer(at, np.arange(1, m + 1)))
