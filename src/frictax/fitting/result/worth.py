"""Notices of records that a fit does not explain. The residuals are compared with four baselines:
deviation from the mean, a straight line, a machine at rest, and the noise of the record.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.measurements.noise import integrated_autocorrelation_time, noise_of_output
from frictax.measurements.record import Record
from frictax.measurements.units import POSITION_OF, VELOCITY_OF, related_channel, split_channel
from frictax.mechanism import Force, Mechanism, Torque
from frictax.notice import Notice
from frictax.programs import cached_jit

from ..problem.inverse_dynamics import InverseDynamics
from ..problem.objectives import PreparedRecord
from ..problem.problem import Problem, bounds
from ..problem.readings import acting, allowed_cutoff
from ..problem.simulations import Windows
from ..problem.weak_form import terms

MISFIT = 3.0  # [noise] largest misfit that noise can explain.
# [share of the variance] A smaller gain of a fit is negligible, even if it is significant.
_NOTHING = 0.02
_SURE = 4.0  # F statistic above which the gain of a fit is significant


@dataclasses.dataclass(frozen=True)
class Channel:
    """The misfit of one channel and its baselines, in `unit`. `misfit`: root mean square (rms) of
    the residuals; `spread`, `line`: rms of the deviation from the mean and from a straight line;
    `still`: rms of the residuals of a machine at rest; `noise`: noise of the channel. `share`: gain
    (see `worth`); `sure`: true if the gain is significant; `beside`: baseline of the gain in words;
    `judged`: true if the noise was estimated from the record. `by_starts`: see `noise_by_starts`.
    `is_force`: true if the residuals are forces on a body; `line` is then infinite, and `spread` is
    the largest known force. `range`: maximum minus minimum of the channel in the whole record.
    """

    name: str
    record: str
    unit: str
    misfit: float
    spread: float
    line: float
    still: float
    noise: float
    judged: bool
    share: float
    sure: bool
    beside: str
    by_starts: float = 1.0
    is_force: bool = False
    range: float = 0.0

    @property
    def above(self) -> float:
        """The ratio of the misfit to the noise."""
        return self.misfit / self.noise if self.noise > 0 else np.inf

    @property
    def is_above_noise(self) -> bool:
        """True if noise does not explain the misfit and the misfit is not negligible."""
        if self.is_force:  # the noise of a record does not contain slow force errors
            return bool(self.above > 10.0 and self.misfit > 0.2 * self.spread)
        return bool(self.above > MISFIT * self.by_starts and self.misfit > 1e-3 * self.spread)

    @property
    def is_unexplained(self) -> bool:
        """True if the gain of the fit is below 2 %, or if it is below 20 % and not significant."""
        return bool(self.share < _NOTHING or (self.share < 0.2 and not self.sure))


def worth(
    problem: Problem, records: Mapping[str, Any], found: np.ndarray, x: np.ndarray
) -> list[Notice]:
    """Return notices of the channels that the fit does not explain, each for the record with the
    largest misfit. `found`: weighted residuals, predicted minus measured.

    The gain is the share of a baseline's sum of squares that the fit explains. The gain is
    significant if F = (gain / parameters) / ((1 - gain) / effective samples) exceeds 4. A misfit is
    reported if it exceeds three times the noise: the given `sd`, or the noise estimated from the
    record (`noise_of_output`). Noise of the record enters the initial states of windows. Therefore
    each window's straight line (for a speed, its mean) is subtracted from record and residuals, if
    the fit is better than the windows' means.
    """
    worst: dict[tuple[str, str], tuple[float, Notice]] = {}
    said = ("record", "unit", "misfit", "spread", "line", "still", "noise", "beside")
    each = list(channels(problem, records, found, x))
    for c in each:
        ratio, notice, numbers = 1.0 - c.share, None, {n: getattr(c, n) for n in said}
        if c.is_unexplained and not c.above < MISFIT:
            notice = Notice("explains-nothing", c.name, numbers)
        elif not c.is_above_noise:
            continue
        elif c.is_force:
            numbers["percent"] = 100.0 * c.misfit / c.spread
            notice = Notice("force-unexplained", c.name, numbers)
        elif c.misfit > c.line:
            notice = Notice("no-better-than-line", c.name, numbers)
        elif c.judged:
            ratio = c.above
            notice = Notice("misfit-above-noise", c.name, {**numbers, "ratio": ratio})
        if notice is not None and ratio >= worst.get((notice.code, c.name), (-np.inf,))[0]:
            worst[notice.code, c.name] = ratio, notice
    out = [notice for _, notice in worst.values()]
    if not out and each and all(c.is_unexplained for c in each):
        c = max(each, key=lambda c: c.spread / max(c.noise, 1e-300))
        numbers = {n: getattr(c, n) for n in said}
        # A channel that moves by more than 20 times its noise may still not move in a short window.
        if isinstance(problem.objective, Windows) and c.range > 20.0 * c.noise:
            numbers |= {"range": c.range, "length": problem.objective.length}
            out.append(Notice("windows-too-short", c.name, numbers))
        else:
            out.append(Notice("tells-next-to-nothing", c.name, numbers))
    return out


def channels(
    problem: Problem, records: Mapping[str, Any], found: np.ndarray, x: np.ndarray
) -> Iterator[Channel]:
    """Yield a `Channel` for each output of each record, or for each body (inverse dynamics)."""
    free = int(sum(not u.hidden for u in problem.unknowns for _ in u.names))
    each = zip(records, problem.by_record(found), strict=bool(records))
    for i, (label, (prepared, _, r)) in enumerate(each):
        record = records[label]
        if not isinstance(record, Record) or not isinstance(prepared, PreparedRecord):
            continue
        if isinstance(problem.objective, InverseDynamics):
            yield from _forces(problem, i, record, label, r, x, free)
        elif problem.objective.in_units_of_outputs():
            for k, name in enumerate(prepared.names):
                yield from _motion(problem, prepared, record, label, k, name, r[..., k], free)


def _motion(
    problem: Problem,
    prepared: PreparedRecord,
    record: Record,
    label: str,
    k: int,
    name: str,
    r: np.ndarray,
    free: int,
) -> Iterator[Channel]:
    """Yield the `Channel` of output `name` if 20 samples have weight > 0 and the noise is known."""
    weight, y = np.asarray(prepared.weight)[..., k], np.asarray(prepared.measured)[..., k]
    noise = noise_of_output(record, name)
    left = np.divide(r, weight, out=np.zeros_like(r), where=weight > 0)
    if problem.loss.rounds > 1:  # with a robust loss, baselines exclude outliers
        usual = np.median(np.abs(r[weight > 0])) if np.any(weight > 0) else 0.0
        weight = np.where(np.abs(r) > 10.0 * usual, 0.0, weight)
    if np.sum(weight > 0) < 20 or not noise >= 0:
        return
    t = np.asarray(prepared.t)
    t = t if prepared.rows is None else t[np.asarray(prepared.rows)]
    level, line = (_without_line(t, y, weight, order) for order in (0, 1))
    still, beside = y - (y + left)[..., :1], "the deviation from its mean"
    if isinstance(problem.objective, Windows):
        beside = "the deviation from the mean of each window"
        # A wrong initial state causes a linear error of a position in its window, and a constant
        # error of a speed. Subtract this error if the misfit is smaller than the motion.
        if _rms(left, weight) ** 2 <= (1.0 - _NOTHING) * _rms(level, weight) ** 2:
            is_speed = split_channel(name)[1] in POSITION_OF
            left = _without_line(t, left, weight, 0 if is_speed else 1)
            if not is_speed:
                level, beside = line, "the deviation from a straight line in each window"
    misfit, spread, lined, rest = (_rms(a, weight) for a in (left, level, line, still))
    unit = record.units[name].si_name
    if name in prepared.tick_noise:  # residuals of ticks are errors of time [s]
        unit, seconds = "s", float(np.sqrt(np.mean(weight[weight > 0] ** 2)))
        misfit, spread, lined, rest = (seconds * a for a in (misfit, spread, lined, rest))
    if not spread > 0:
        return
    share = 1.0 - (misfit / spread) ** 2
    sure = share > 0 and _f(share, left[weight > 0], free) > _SURE
    if isinstance(problem.objective, Windows):
        lined = np.inf
    yield Channel(
        name, label, unit, misfit, spread, lined, rest, noise,
        record.sd.get(name) is None, share, bool(sure), beside,
        noise_by_starts(problem.objective, record, prepared, name),
        range=float(np.ptp(record.outputs[name])),
    )  # fmt: skip


def noise_by_starts(objective: Any, record: Record, prepared: Any, name: str) -> float:
    """Return the factor by which noise in the initial states of windows increases the residuals of
    the output `name`. The factor is 1 if these states are not read from this output.

    White noise of a position, filtered at a cutoff f [Hz], causes a constant speed error in each
    window. The variance of this error is 8 pi**2 f**3 / (3 rate) [1/s2] times the variance of the
    position noise.
    """
    f = getattr(prepared, "cutoffs", {}).get(name)
    is_position = related_channel(name, VELOCITY_OF) is not None
    if f is None or not is_position or not isinstance(objective, Windows) or objective.free_starts:
        return 1.0
    speed = 8.0 * np.pi**2 * float(f) ** 3 / (3.0 * record.rate)
    return float(np.sqrt(1.0 + speed * objective.length**2 / 3.0))


def _forces(
    problem: Problem, i: int, record: Record, label: str, r: np.ndarray, x: np.ndarray, free: int
) -> Iterator[Channel]:
    """Yield a `Channel` for each body: the residual of its balance of forces, compared with the
    largest known force.
    """
    prepared, setup = problem.prepared[i], problem.setup_at(jnp.asarray(x), i)
    machine = setup.machine
    assert isinstance(prepared, PreparedRecord)
    assert isinstance(machine, Mechanism)
    assert isinstance(problem.objective, InverseDynamics)
    if prepared.weak is None:
        given = acting(setup, jax.tree.map(jnp.asarray, prepared), problem.delayed)
        driving = [
            np.asarray(u)
            for name, u in given.items()
            if isinstance(machine[name.partition(".")[0]], Force | Torque)
        ]
        mean = None
    else:
        # Move values off their bounds, because a mass of 0 has an infinite acceleration.
        inside = np.where(x == bounds(problem.unknowns), x + 1e-6 * (problem.x0 - x), x)
        driving, mean = [], [np.asarray(a) for a in _mean_forces(problem, jnp.asarray(inside), i)]
    for k, name in enumerate(prepared.names):
        body = name.removeprefix("force on ")
        part, kept = machine[body], np.asarray(prepared.weight)[:, k] > 0
        inertia = getattr(part, "m", getattr(part, "J", None))
        if inertia is None or kept.sum() < 20:
            continue
        if mean is None:
            forces = [float(inertia) * np.asarray(prepared.known[f"{body}.a"]), *driving]
            left = r[:, k][kept]
            # Compute the noise of the acceleration below the cutoff from the white noise of the
            # measured motion. The spectrum of the acceleration noise is proportional to f**(2
            # order).
            channels = [n for n in record.outputs if split_channel(n)[0] == body]
            order, of = max((1 if split_channel(n)[1] in POSITION_OF else 2, n) for n in channels)
            f = allowed_cutoff(record, problem.objective.cutoff)
            band = np.sqrt(2.0 * f / record.rate / (2 * order + 1))
            noise = noise_of_output(record, of) * (2 * np.pi * f) ** order * band
            noise = float(inertia) * float(noise)
        else:
            left, *forces = mean[0][:, kept, k]
            noise = float(np.sqrt(np.mean(mean[1][kept, k] ** 2)))
            kept = np.ones(left.size, bool)
        spread = max(_rms(np.broadcast_to(f, kept.shape), kept) for f in forces)
        misfit = float(np.sqrt(np.mean(left**2)))
        if not spread > 0:
            continue
        share = 1.0 - (misfit / spread) ** 2
        sure = share > 0 and _f(share, left, free) > _SURE
        unit = "N.m" if hasattr(part, "J") else "N"
        yield Channel(
            name, label, unit, misfit, spread, np.inf, spread, noise, True, share,
            bool(sure), "the largest known force", is_force=True,
        )  # fmt: skip


@cached_jit
def _mean_forces(problem: Problem, x: Array, i: int) -> tuple[Array, Array]:
    """Return the mean residual force, inertia force and input force along each of the K test
    splines of record number i (3, K, c) [N]. The second result (K, c) is the standard deviation of
    the residual force due to position noise.
    """
    prepared, setup = problem.prepared[i], problem.setup_at(x, i)
    assert isinstance(prepared, PreparedRecord)
    weak = prepared.weak
    assert weak is not None
    at = terms(setup, prepared, acting(setup, prepared, problem.delayed))
    seconds = (weak.step * jnp.asarray(weak.knots))[:, None]
    values = jnp.stack([at.residual, at.inertial, at.drive]) / seconds
    return values, jnp.sqrt(jnp.sum(at.response**2, axis=(2, 3))) / seconds


def _rms(x: np.ndarray, weight: np.ndarray) -> float:
    w = np.square(weight)
    return float(np.sqrt(np.sum(w * x * x) / np.sum(w)))


def _without_line(
    t: np.ndarray, y: np.ndarray, weight: np.ndarray, order: int
) -> Float[np.ndarray, "..."]:
    """Return `y` minus its mean (order 0) or its regression line over `t` (1), on the last axis."""
    w = np.square(weight)
    total = np.maximum(np.sum(w, axis=-1, keepdims=True), 1e-300)
    y = y - np.sum(w * y, axis=-1, keepdims=True) / total
    if not order:
        return y
    t = t - np.sum(w * t, axis=-1, keepdims=True) / total
    across = np.maximum(np.sum(w * t * t, axis=-1, keepdims=True), 1e-300)
    return y - t * np.sum(w * t * y, axis=-1, keepdims=True) / across


def _f(share: float, left: np.ndarray, free: int) -> float:
    """Return the F statistic of a gain `share` with `free` parameters. The effective number of
    samples follows from the autocorrelation of the residuals `left`.
    """
    freedom = max(left.size / integrated_autocorrelation_time(left) - free, 1.0)
    return share / max(free, 1) / max(1.0 - share, 1e-300) * freedom
