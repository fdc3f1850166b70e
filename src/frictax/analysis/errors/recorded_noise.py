"""Errors that what is known of the recorded channels makes: noise of inputs, by which the machine
was not driven, how they went between samples, and the steps of an encoder.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from frictax.fitting import FitResult
from frictax.fitting.problem.objectives import PreparedRecord
from frictax.fitting.problem.problem import predictions
from frictax.fitting.result.spread import SameDegreesOfFreedom
from frictax.measurements import Record
from frictax.measurements.diagnostics import quantum
from frictax.measurements.noise import noise_of, noise_of_output
from frictax.pytree import pytree_dataclass

from .linearized import AbstractLinearErrors, Linearized, LinearSpread

_DRAWS = 40  # as many degrees of freedom
_SHARE = 0.1  # of the noise is drawn, and what it does is taken as many times: tangents are local
_LEVELS = 32  # of a sensor with steps, at least
_ABOVE = 3.0  # times the noise of an output: a misfit that is not of the sensor
_CLEAN = 1e-3  # of the spread of an input: less noise is none
_WAVES = 64  # of the saw that rounding makes of a position
_DITHERED = 0.4  # of a step: noise that makes of rounding errors noise of its own
_ON_GRID = 1e-3  # of a step: how far a value is off its multiples
_MOST = 4.0  # times the squares that the residuals show: more no noise has made of them


@pytree_dataclass
class InputNoise(AbstractLinearErrors):
    """White noise of the recorded inputs, as large as it is read from each, led through the
    machine: each draw is added to the inputs, the records are predicted once more, and the
    estimates follow by the linearised fit.

    In one run such noise is integrated, and hits of stops or breakaways multiply it, so that it
    shows as few swings that are as long as the record: a residual that no account of its memory
    can tell from others. How the machine passes it on is known, though. No more than four times the
    squares of the residuals are put down to it, for an input may be meant to be rough.
    """

    def of(self, linear: Linearized) -> LinearSpread:
        root, _ = linear.axes
        changes = led_noise(linear.found)
        moved = changes @ linear.jacobian @ root @ root.T
        left, count = changes - moved @ linear.jacobian.T, max(len(changes), 1)
        most = np.sum(left**2) / count
        shown = np.sum(linear.residuals**2) / max(float(most), 1e-300)
        covariance = moved.T @ moved / count * min(1.0, _MOST * shown)
        says = f"noise of the inputs, simulated {len(changes)} times"
        return LinearSpread(covariance, SameDegreesOfFreedom(count), says)


def led_noise(found: FitResult) -> Float[np.ndarray, "k n"]:
    """What each of many draws of the noise of the inputs changes of the weighted residuals."""
    problem, noise, rng = found.problem, _noises(found), np.random.default_rng(0)
    base, changes = None, []
    for k in range(_DRAWS + 1):  # the first without noise
        rows = []
        for i, one in enumerate(problem.prepared):
            if isinstance(one, PreparedRecord):
                inputs = {
                    name: np.asarray(u) + (k > 0) * _SHARE * sd * rng.standard_normal(np.shape(u))
                    for (name, u), sd in zip(one.inputs.items(), noise[i], strict=True)
                }
                one = dataclasses.replace(one, inputs=inputs)
            prepared = (*problem.prepared[:i], one, *problem.prepared[i + 1 :])
            mine = dataclasses.replace(problem, prepared=prepared)
            weight = np.asarray(one.weight)
            after = np.asarray(predictions(mine, jnp.asarray(found.x), i))
            rows.append(np.ravel(weight * np.where(weight > 0, after, 0.0)))
        r = np.concatenate(rows)
        base = r if base is None else base
        if k and np.isfinite(r).all():
            changes.append((r - base) / _SHARE)
    assert base is not None
    return np.reshape(changes, (-1, base.size))


def between_samples(linear: Linearized) -> Float[np.ndarray, " p"]:
    """What estimates are off by for inputs that went between samples on curves as smooth as samples
    allow, or on straight lines: standard deviations [SI]; 0 where that is little.
    """
    bends = linear.found.bends
    if bends is None:
        return np.zeros(linear.jacobian.shape[1])
    return bends.spread * np.array(list(bends.moved.values()))


@pytree_dataclass
class EncoderSteps(AbstractLinearErrors):
    """Rounding of the outputs to the steps of their sensors, whose zero is somewhere in a step.

    What is rounded to multiples of q is off by a saw over the position s. Over all zeros its
    covariance at two positions is

        q**2 * sum over k of cos(2*pi*k*(s_i - s_j)/q) * exp(-(2*pi*k*sigma/q)**2) / (2*pi**2*k**2)

    with white noise of the standard deviation sigma before the rounding. So a machine that turns
    back at the same place again and again errs by the same, and one that creeps from step to step
    errs as long as that takes: no account of the residuals' memory sees the first, few the second.

    **Source:** the Fourier series of the saw; of the noise, B. Widrow, I. Kollár, *Quantization
    Noise* (2008), chapter 4.
    """

    def of(self, linear: Linearized) -> LinearSpread:
        root, _ = linear.axes
        covariance = np.zeros((root.shape[1],) * 2)
        for one in _rounded(linear.found):
            g = linear.jacobian[one.rows] @ root * one.weight[:, None]
            covariance += _of_rounding(g, one.s, one.step, one.noise)
        return LinearSpread(
            root @ covariance @ root.T,
            SameDegreesOfFreedom(np.inf),
            "rounding to the steps of the sensors",
        )


@dataclasses.dataclass(frozen=True)
class _Rounded:
    """An output of a record with the `step` of its sensor: the numbers of its residuals, their
    weight and what was predicted there; `noise`: the standard deviation of what else they hold.
    """

    rows: Int[np.ndarray, " n"]
    weight: Float[np.ndarray, " n"]
    s: Float[np.ndarray, " n"]
    step: float
    noise: float


def are_rounded(found: FitResult) -> tuple[bool, bool]:
    """Whether any output that was fitted, and whether each of them, has the steps of its sensor and
    hardly any noise beside them.
    """
    rows = sum(one.rows.size for one in _rounded(found))
    counted = sum(np.count_nonzero(one.weight) for one in found.problem.prepared)
    return rows > 0, bool(rows == counted)


def _rounded(found: FitResult) -> list[_Rounded]:
    first, out = 0, []
    for record, one in zip(found.records.values(), found.problem.prepared, strict=True):
        weight, measured = np.asarray(one.weight), np.asarray(one.measured)
        rows = np.arange(first, first + weight.size).reshape(weight.shape)
        first += weight.size
        for c, name in enumerate(one.names if isinstance(one, PreparedRecord) else ()):
            if name in record.ticks:  # which are where the sensor changes from step to step
                continue
            counted = weight[..., c] > 0
            y, w, mine = measured[..., c][counted], weight[..., c][counted], rows[..., c][counted]
            step = quantum(y)
            counts = (y - y[0]) / step if step else np.full(1, 0.5)
            if np.abs(counts - np.round(counts)).max() < _ON_GRID:
                off = found.full_residuals[mine] / w
                noise = float(np.sqrt(max(np.mean(off**2) - step**2 / 12, 0.0)))
                if noise < _DITHERED * step:
                    out.append(_Rounded(mine, w, y + off, step, noise))
    return out


def _of_rounding(
    g: Float[np.ndarray, "n p"], s: Float[np.ndarray, " n"], q: float, noise: float
) -> Float[np.ndarray, "p p"]:
    """The covariance of the sum of all rows of `g` times the error of rounding `s` to steps `q`."""
    out, rest = np.zeros((g.shape[1],) * 2), noise**2 + q**2 / 12
    for k in range(1, _WAVES + 1):
        wave = g.T @ np.exp(2j * np.pi * k * (s / q % 1.0))
        size = q**2 / (2 * np.pi**2 * k**2) * np.exp(-((2 * np.pi * k * noise / q) ** 2))
        out, rest = out + size * np.real(np.outer(wave, wave.conj())), rest - size
    return out + max(rest, 0.0) * g.T @ g  # what differs from sample to sample


def inputs_err(found: FitResult) -> bool:
    """Whether inputs are noisy, and leave more of an output than its sensor's noise."""
    for label, record in found.records.items():
        for name, misfit in found.rms[label].items() if isinstance(record, Record) else ():
            if name not in record.outputs:  # a force of inverse dynamics: no sensor's
                continue
            least = misfit / _ABOVE
            if least > noise_of_output(record, name, least):
                return has_noisy_inputs(found)
    return False


def has_noisy_inputs(found: FitResult) -> bool:
    """Whether an input of a record shows noise."""
    return any(sd > 0 for each in _noises(found) for sd in each)


def _noises(found: FitResult) -> list[Float[np.ndarray, " _"]]:
    """The standard deviation of the noise of each input of each record, 0 where there is none."""
    return [
        np.array([_noise_of_input(np.asarray(u)) for u in prepared.inputs.values()])
        if isinstance(prepared, PreparedRecord)
        else np.zeros(0)
        for prepared in found.problem.prepared
    ]


def _noise_of_input(u: Float[np.ndarray, " n"]) -> float:
    """That of one; pulses and stairs of a few levels are meant so, and no steps of a sensor."""
    sd, step = noise_of(u), quantum(u)
    few = sd <= step / np.sqrt(12.0) and np.ptp(u) < _LEVELS * step
    return sd if sd > _CLEAN * float(np.std(u)) and not few else 0.0
