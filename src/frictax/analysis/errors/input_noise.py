"""Noise models of known errors of inputs and outputs: input noise, rounding, position noise."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.fitting import FitResult, InverseDynamics
from frictax.fitting.problem.objectives import PreparedRecord
from frictax.fitting.problem.problem import Problem, predictions
from frictax.fitting.problem.readings import acting
from frictax.fitting.problem.weak_form import band, force_band, terms
from frictax.fitting.result.spread import SameDegreesOfFreedom
from frictax.measurements import Record
from frictax.measurements.diagnostics import quantum
from frictax.measurements.noise import noise_of, noise_of_output
from frictax.notice import Notice
from frictax.programs import cached_jit
from frictax.pytree import pytree_dataclass

from .linearization import CovarianceEstimate, Linearization, LinearNoiseModel


@pytree_dataclass
class InputNoise(LinearNoiseModel):
    """The noise model of white noise in the recorded inputs. Simulations determine the effect of
    the noise.

    The variance of the noise is estimated from each input. Random noise of this variance is added
    to the inputs, the records are simulated, and the estimates follow from the linearised fit.

    In a long run the machine integrates the input noise, and impacts or breakaways amplify its
    effect. The residuals then oscillate slowly. An autoregression cannot separate these slow
    oscillations from other errors. An input that is rough by design looks noisy, too. Therefore the
    mean square of the simulated effect is limited to four times the mean square of the residuals.
    """

    def estimate(self, linear: Linearization) -> CovarianceEstimate:
        root, _ = linear.axes
        changes = simulate_input_noise(linear.found)
        moved = changes @ linear.jacobian @ root @ root.T
        left, count = changes - moved @ linear.jacobian.T, max(len(changes), 1)
        most = np.sum(left**2) / count
        shown = np.sum(linear.residuals**2) / max(float(most), 1e-300)
        covariance = moved.T @ moved / count * min(1.0, 4.0 * shown)
        if not len(changes):  # No simulation succeeded, so nothing is known of the effect.
            covariance = np.full_like(covariance, np.nan)
        says = f"noise of the inputs, simulated {len(changes)} times"
        return CovarianceEstimate(covariance, SameDegreesOfFreedom(count), says)


def simulate_input_noise(found: FitResult) -> Float[np.ndarray, "k n"]:
    """Return the change of the weighted residuals for each of many draws of input noise."""
    problem, noise, rng = found.problem, _noises(found), np.random.default_rng(0)
    base, changes = None, []
    # The linearised fit is valid for small changes only. Therefore a tenth of the noise is
    # simulated, and the response is multiplied by ten. k draws give k degrees of freedom.
    share, draws = 0.1, 40
    for k in range(draws + 1):  # run 0 is without noise
        rows = []
        for i, one in enumerate(problem.prepared):
            if isinstance(one, PreparedRecord):
                inputs = {
                    name: np.asarray(u) + (k > 0) * share * sd * rng.standard_normal(np.shape(u))
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
            changes.append((r - base) / share)
    assert base is not None
    return np.reshape(changes, (-1, base.size))


@pytree_dataclass
class EncoderSteps(LinearNoiseModel):
    """The noise model of outputs that are rounded to the steps of their sensors. The position of
    the sensor's zero within a step is unknown.

    The rounding error of a position s with the step q is a sawtooth over s. The covariance of the
    errors at two positions s_i and s_j, averaged over all positions of the sensor's zero, is

        q**2 * sum over k of cos(2*pi*k*(s_i - s_j)/q) * exp(-(2*pi*k*sigma/q)**2) / (2*pi**2*k**2)

    if white noise with the standard deviation sigma is added before the rounding. A machine that
    reverses at the same position again and again repeats the same error. The autocorrelation of the
    residuals does not show this repetition. While a machine creeps through one step of the sensor,
    all errors are nearly equal. The autocorrelation shows this effect only partly.

    **Source:** the Fourier series of the sawtooth; for the noise, B. Widrow, I. Kollár,
    *Quantization Noise* (2008), chapter 4.
    """

    def estimate(self, linear: Linearization) -> CovarianceEstimate:
        root, _ = linear.axes
        covariance = np.zeros((root.shape[1],) * 2)
        for rows, weight, s, step, noise in _rounded_outputs(linear.found):
            g = linear.jacobian[rows] @ root * weight[:, None]
            covariance += _rounding_covariance(g, s, step, noise)
        says = "rounding to the steps of the sensors"
        return CovarianceEstimate(root @ covariance @ root.T, SameDegreesOfFreedom(np.inf), says)


def are_rounded(found: FitResult) -> tuple[bool, bool]:
    """Return two booleans: whether any fitted output is rounded to the steps of its sensor and has
    little other noise, and whether all fitted outputs are rounded."""
    rows = sum(rows.size for rows, *_ in _rounded_outputs(found))
    counted = sum(np.count_nonzero(one.weight) for one in found.problem.prepared)
    return rows > 0, bool(rows == counted)


def _rounded_outputs(
    found: FitResult,
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, float, float]]:
    """Return a tuple for each output that consists of multiples of its sensor's step: indices and
    weights of its residuals, predictions, step, and a standard deviation. This standard deviation
    is that of the part of the residuals that rounding does not explain."""
    first, out = 0, []
    for record, one in zip(found.records.values(), found.problem.prepared, strict=True):
        weight, measured = np.asarray(one.weight), np.asarray(one.measured)
        rows = np.arange(first, first + weight.size).reshape(weight.shape)
        first += weight.size
        for c, name in enumerate(one.names if isinstance(one, PreparedRecord) else ()):
            if name in record.ticks:  # Ticks are samples at encoder steps; they are not rounded.
                continue
            counted = weight[..., c] > 0
            y, w, mine = measured[..., c][counted], weight[..., c][counted], rows[..., c][counted]
            step = quantum(y)
            counts = (y - y[0]) / step if step else np.full(1, 0.5)
            # Rounded values deviate from multiples of the step by less than 1e-3 steps.
            if np.abs(counts - np.round(counts)).max() < 1e-3:
                off = found.full_residuals[mine] / w
                noise = float(np.sqrt(max(np.mean(off**2) - step**2 / 12, 0.0)))
                if noise < 0.4 * step:  # With more noise, rounding errors are white.
                    out.append((mine, w, y + off, step, noise))
    return out


def _rounding_covariance(
    g: Float[np.ndarray, "n p"], s: Float[np.ndarray, " n"], q: float, noise: float
) -> Float[np.ndarray, "p p"]:
    """Return the covariance of (sum over i of g[i] e[i]), where e[i] is the error of rounding s[i]
    to a multiple of `q`. `noise`: standard deviation of white noise added before the rounding."""
    out, rest = np.zeros((g.shape[1],) * 2), noise**2 + q**2 / 12
    for k in range(1, 65):  # number of the term of the Fourier series
        wave = g.T @ np.exp(2j * np.pi * k * (s / q % 1.0))
        size = q**2 / (2 * np.pi**2 * k**2) * np.exp(-((2 * np.pi * k * noise / q) ** 2))
        out, rest = out + size * np.real(np.outer(wave, wave.conj())), rest - size
    return out + max(rest, 0.0) * g.T @ g  # the remaining error is white


def input_noise_exceeds_sensors(found: FitResult) -> bool:
    """Return whether an input is noisy and an output's misfit exceeds 3 times the sensor noise."""
    for label, record in found.records.items():
        for name, misfit in found.rms[label].items() if isinstance(record, Record) else ():
            if name not in record.outputs:  # A force of inverse dynamics does not have a sensor.
                continue
            # [SI] Sensor noise below this limit does not explain the misfit.
            least = misfit / 3.0
            if least > noise_of_output(record, name, least):
                return has_noisy_inputs(found)
    return False


def has_noisy_inputs(found: FitResult) -> bool:
    """Return whether an input of a record is noisy."""
    return any(sd > 0 for each in _noises(found) for sd in each)


def _noises(found: FitResult) -> list[Float[np.ndarray, " _"]]:
    """Return the standard deviation of the noise of each input of each record. It is 0 for noise
    below 0.1 % of the input's standard deviation, or for few levels (< 32) with noise below
    rounding."""
    out = []
    for prepared in found.problem.prepared:
        noises = []
        for u in prepared.inputs.values() if isinstance(prepared, PreparedRecord) else ():
            u = np.asarray(u)
            sd, step = noise_of(u), quantum(u)
            few = sd <= step / np.sqrt(12.0) and np.ptp(u) < 32 * step
            noises.append(sd if sd > 1e-3 * float(np.std(u)) and not few else 0.0)
        out.append(np.array(noises))
    return out


@pytree_dataclass
class Whitened(LinearNoiseModel):
    """The noise model of residuals that the objective has whitened by their expected covariance. If
    this covariance lacks a term, the whitened residuals have a variance above 1."""

    def estimate(self, linear: Linearization) -> CovarianceEstimate:
        root, unseen = linear.axes
        covariance = linear.noise**2 * (root @ root.T + unseen.T @ unseen)
        dof = SameDegreesOfFreedom(linear.found.dof)
        return CovarianceEstimate(
            covariance, dof, "whitened residuals", allows_autocorrelation=False
        )


def motion_share(found: FitResult) -> float:
    """Return the fraction of the regressors that is motion and not noise of measured positions, for
    the worst combination of parameters. For objectives other than `InverseDynamics` the fraction is
    1. With `at_samples`, the fraction is 0 if all sections of the record are too short, and
    otherwise 1.

    The fraction is 1 - largest eigenvalue of inv(X'X) N. The regressors X are the derivatives of
    the whitened residuals with respect to the parameters; N is the mean of X'X if X contains only
    noise.
    """
    problem, objective = found.problem, found.problem.objective
    if not isinstance(objective, InverseDynamics):
        return 1.0
    if objective.at_samples:
        return 0.0 if any(n.code == "no-stretch" for n in found.notes) else 1.0
    active = found.active
    both = np.zeros((2, found.x.size, found.x.size))
    for i, one in enumerate(problem.prepared):
        if isinstance(one, PreparedRecord):
            weak = one.weak
            assert weak is not None
            used = np.flatnonzero(np.asarray(weak.stretch) >= 0)
            covariance, by_x, noise = (
                np.asarray(a)[..., used, :, :, :] if np.ndim(a) > 3 else np.asarray(a)
                for a in _derivatives(problem, jnp.asarray(found.x), i)
            )
            count, c, rows = len(used), covariance.shape[1], np.arange(len(used))
            wide = count + covariance.shape[2]
            dense = np.zeros((wide, c, wide, c))
            for d in range(covariance.shape[2]):
                dense[rows, :, rows + d, :] = covariance[:, :, d, :]
                dense[rows + d, :, rows, :] = np.swapaxes(covariance[:, :, d, :], 1, 2)
            dense = dense[:count, :, :count, :].reshape(count * c, count * c)
            dense[np.diag_indices_from(dense)] *= 1.0 + 1e-9
            inverse = np.linalg.inv(dense)
            columns = by_x[used].reshape(count * c, -1)
            wide = count + noise.shape[4]
            blocks = np.zeros((wide, c, wide, c))
            blocks[:count, :, :count, :] = inverse.reshape(count, c, count, c)
            added = np.zeros((len(found.x), len(found.x)))
            for d in range(noise.shape[4]):
                mine = blocks[rows, :, rows + d, :]
                part = np.einsum("kba,ijkba->ij", mine, noise[:, :, :, :, d, :])
                added += part if d == 0 else part + part.T
            both += np.stack([columns.T @ inverse @ columns, added])
    gram, noise = both[:, active][:, :, active]
    size = np.sqrt(np.diag(gram))
    if not size.size or not np.all(size > 0):
        return 1.0  # Other notices report parameters that are not identifiable.
    gram, noise = (a / np.outer(size, size) for a in (gram, noise))
    ridge = 1e-12 * np.eye(size.size)
    return 1.0 - float(np.max(np.linalg.eigvals(np.linalg.solve(gram + ridge, noise)).real))


def without_intervals(found: FitResult, share: float) -> CovarianceEstimate:
    """Return infinite intervals, for estimates that are useful only as start values of another
    fit."""
    said = () if share == 0.0 else (Notice("motion-within-noise", "", {"share": share}),)
    dof = SameDegreesOfFreedom(found.dof)
    return _Unbounded(found.full_covariance, dof, "a start only", said)


@dataclasses.dataclass(frozen=True)
class _Unbounded(CovarianceEstimate):
    """A covariance whose intervals are infinite."""

    def half_width(
        self, level: float, directions: Float[np.ndarray, "m q"]
    ) -> Float[np.ndarray, " m"]:
        del level
        return np.full(len(directions), np.inf)


@cached_jit
def _derivatives(problem: Problem, x: Array, i: int) -> tuple[Array, Array, Array]:
    """Return three arrays for record i with K splines and c bodies: the covariance (K, c, d, c) of
    the residuals, as a band of d splines; the derivatives (K, c, p) of the residuals with respect
    to the parameters; the covariance (p, p, K, c, d, c) of the noise of each pair of derivatives.
    """
    prepared: Any = problem.prepared[i]
    weak = prepared.weak

    def at(x: Array) -> tuple[Array, Array]:
        setup = problem.setup_at(x, i)
        made = terms(setup, prepared, acting(setup, prepared, problem.delayed))
        return made.residual, made.response

    _, response = at(x)
    by_x, moved = jax.jacfwd(at)(x)
    moved = jnp.moveaxis(moved, -1, 0)
    covariance = band(weak, response, response)
    covariance += force_band(weak) * (weak.force_noise**2)[None, :, None, None]
    noise = jax.vmap(lambda a: jax.vmap(lambda b: band(weak, a, b))(moved))(moved)
    return covariance, by_x, noise
