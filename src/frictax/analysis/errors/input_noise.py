"""Errors from known errors of the recorded channels: noise of inputs, interpolation, encoder
steps.
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

from .linearization import CovarianceEstimate, Linearization, LinearNoiseModel

_DRAWS = 40  # simulations with noisy inputs; also the degrees of freedom of their covariance
# [1] share of the noise that is simulated. The response is divided by it, because the linearised
# fit is valid for small changes only.
_SHARE = 0.1
_LEVELS = 32  # smallest range, in quantisation steps, of an input that is not a piecewise constant
_ABOVE = 3.0  # [noise of the output] misfit above which the sensor is not its only cause
_CLEAN = 1e-3  # [standard deviation of the input] noise below which an input is noise-free
_WAVES = 64  # terms of the Fourier series of the rounding error
_DITHERED = 0.4  # [steps] noise from which rounding errors are white
_ON_GRID = 1e-3  # [steps] largest distance of a rounded value from a multiple of the step
# [squares of the residuals] largest simulated variance; an input can be rough by design
_MOST = 4.0


@pytree_dataclass
class InputNoise(LinearNoiseModel):
    """White noise of the recorded inputs, simulated through the machine.

    The variance of the noise is read from each input. Each draw is added to the inputs, the
    records are simulated, and the estimates follow from the linearised fit.

    In a long run the machine integrates this noise, and impacts or breakaways amplify it. The
    result is a few slow oscillations in the residuals, which an autoregression cannot separate from
    other errors. At most four times the squares of the residuals are attributed to this noise,
    because an input can be rough by design.
    """

    def estimate(self, linear: Linearization) -> CovarianceEstimate:
        root, _ = linear.axes
        changes = simulate_input_noise(linear.found)
        moved = changes @ linear.jacobian @ root @ root.T
        left, count = changes - moved @ linear.jacobian.T, max(len(changes), 1)
        most = np.sum(left**2) / count
        shown = np.sum(linear.residuals**2) / max(float(most), 1e-300)
        covariance = moved.T @ moved / count * min(1.0, _MOST * shown)
        says = f"noise of the inputs, simulated {len(changes)} times"
        return CovarianceEstimate(covariance, SameDegreesOfFreedom(count), says)


def simulate_input_noise(found: FitResult) -> Float[np.ndarray, "k n"]:
    """Return the change of the weighted residuals by each of many draws of the noise of the
    inputs.
    """
    problem, noise, rng = found.problem, _noises(found), np.random.default_rng(0)
    base, changes = None, []
    for k in range(_DRAWS + 1):  # The first run has no noise.
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


def interpolation_error(linear: Linearization) -> Float[np.ndarray, " p"]:
    """Return the standard deviations of the estimates [SI] because inputs may have followed smooth
    curves instead of straight lines between samples; 0 if the effect is negligible.
    """
    bends = linear.found.bends
    if bends is None:
        return np.zeros(linear.jacobian.shape[1])
    return bends.spread * np.array(list(bends.moved.values()))


@pytree_dataclass
class EncoderSteps(LinearNoiseModel):
    """Rounding of the outputs to the steps of their sensors, with an unknown zero within a step.

    The rounding error of a position s with the step q is a sawtooth over s. Its covariance at two
    positions, averaged over all zeros, is

        q**2 * sum over k of cos(2*pi*k*(s_i - s_j)/q) * exp(-(2*pi*k*sigma/q)**2) / (2*pi**2*k**2)

    with white noise of the standard deviation sigma before the rounding. A machine that reverses
    at the same position again and again repeats the same error. A machine that creeps has the same
    error during a whole step. The first is not visible in the autocorrelation of the residuals, and
    the second only partly.

    **Source:** the Fourier series of the sawtooth; of the noise, B. Widrow, I. Kollár,
    *Quantization Noise* (2008), chapter 4.
    """

    def estimate(self, linear: Linearization) -> CovarianceEstimate:
        root, _ = linear.axes
        covariance = np.zeros((root.shape[1],) * 2)
        for one in _rounded_outputs(linear.found):
            g = linear.jacobian[one.rows] @ root * one.weight[:, None]
            covariance += _rounding_covariance(g, one.s, one.step, one.noise)
        says = "rounding to the steps of the sensors"
        return CovarianceEstimate(root @ covariance @ root.T, SameDegreesOfFreedom(np.inf), says)


@dataclasses.dataclass(frozen=True)
class _Rounded:
    """An output of a record whose values are multiples of the `step` of its sensor.

    `rows`: the numbers of its residuals; `weight`: their weights; `s`: the predictions there;
    `noise`: standard deviation of the rest of the residuals.
    """

    rows: Int[np.ndarray, " n"]
    weight: Float[np.ndarray, " n"]
    s: Float[np.ndarray, " n"]
    step: float
    noise: float


def are_rounded(found: FitResult) -> tuple[bool, bool]:
    """Return whether any fitted output, and whether every fitted output, is rounded to the steps of
    its sensor with little noise in addition.
    """
    rows = sum(one.rows.size for one in _rounded_outputs(found))
    counted = sum(np.count_nonzero(one.weight) for one in found.problem.prepared)
    return rows > 0, bool(rows == counted)


def _rounded_outputs(found: FitResult) -> list[_Rounded]:
    first, out = 0, []
    for record, one in zip(found.records.values(), found.problem.prepared, strict=True):
        weight, measured = np.asarray(one.weight), np.asarray(one.measured)
        rows = np.arange(first, first + weight.size).reshape(weight.shape)
        first += weight.size
        for c, name in enumerate(one.names if isinstance(one, PreparedRecord) else ()):
            if name in record.ticks:  # Ticks are at the changes from step to step.
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


def _rounding_covariance(
    g: Float[np.ndarray, "n p"], s: Float[np.ndarray, " n"], q: float, noise: float
) -> Float[np.ndarray, "p p"]:
    """Return the covariance of the sum of all rows of `g` times the error of rounding `s` to
    `q`.
    """
    out, rest = np.zeros((g.shape[1],) * 2), noise**2 + q**2 / 12
    for k in range(1, _WAVES + 1):
        wave = g.T @ np.exp(2j * np.pi * k * (s / q % 1.0))
        size = q**2 / (2 * np.pi**2 * k**2) * np.exp(-((2 * np.pi * k * noise / q) ** 2))
        out, rest = out + size * np.real(np.outer(wave, wave.conj())), rest - size
    return out + max(rest, 0.0) * g.T @ g  # The rest is white.


def input_noise_exceeds_sensors(found: FitResult) -> bool:
    """Return whether inputs are noisy and the misfit of an output exceeds the noise of its
    sensor.
    """
    for label, record in found.records.items():
        for name, misfit in found.rms[label].items() if isinstance(record, Record) else ():
            if name not in record.outputs:  # A force of inverse dynamics does not have a sensor.
                continue
            least = misfit / _ABOVE
            if least > noise_of_output(record, name, least):
                return has_noisy_inputs(found)
    return False


def has_noisy_inputs(found: FitResult) -> bool:
    """Return whether an input of a record is noisy."""
    return any(sd > 0 for each in _noises(found) for sd in each)


def _noises(found: FitResult) -> list[Float[np.ndarray, " _"]]:
    """Return the standard deviation of the noise of each input of each record, 0 without noise."""
    return [
        np.array([_noise_of_input(np.asarray(u)) for u in prepared.inputs.values()])
        if isinstance(prepared, PreparedRecord)
        else np.zeros(0)
        for prepared in found.problem.prepared
    ]


def _noise_of_input(u: Float[np.ndarray, " n"]) -> float:
    """Return the standard deviation of the noise of `u`. Pulses and stairs of a few levels count as
    noise-free.
    """
    sd, step = noise_of(u), quantum(u)
    few = sd <= step / np.sqrt(12.0) and np.ptp(u) < _LEVELS * step
    return sd if sd > _CLEAN * float(np.std(u)) and not few else 0.0
