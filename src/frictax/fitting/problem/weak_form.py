"""The weak form of inverse dynamics, whose residuals are integrals of Newton's law times splines.
The noise of the measured positions determines the covariance that whitens the residuals.

Newton's law m*a = F is multiplied by splines w of degree 5. At both ends of a spline, w and its
first four derivatives are 0. Integration by parts gives int w F dt - m int w'' y dt = 0 with the
position y. No measurement is differentiated twice. Each spline lies in a section of the record in
which every contact slides in one direction.

The force F is evaluated at a smoothed motion. Two first-order terms correct F for the difference
between the measured and the smoothed motion, in position and in velocity. For forces that are
linear in position and velocity, the effect of smoothing cancels. The corrected residual R is linear
in the position noise. The covariance C of R depends on the parameters. The cost is R'C^-1 R without
the term log det C, because with this term the estimated inertia is too low.

**Source:** D. A. Messenger, D. M. Bortz, "Weak SINDy for partial differential equations", Journal
of Computational Physics 443 (2021), for the weak form. Generalised total least squares also has a
covariance that depends on the parameters.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from frictax.measurements.diagnostics import quantum
from frictax.measurements.filters import smooth
from frictax.measurements.noise import cutoff_of, white_noise_of, white_share
from frictax.mechanism import MechanicalSystem
from frictax.parameters import Numbers
from frictax.pytree import pytree_dataclass
from frictax.signals import Constant

from .setup import Setup, driven, moved_to, perfect

_DEGREE = 5  # degree of the splines; their fourth derivative is continuous.
# Force noise that the first fit assumes, as a fraction of the standard deviation of the inputs.
_FIRST = 0.02
# Autocorrelations of the position noise at a lag of one sample; the likelihood selects one.
_CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
# Standard deviations of the force noise, relative to the forces; the likelihood selects one.
_SIZES = np.concatenate([[1e-6], np.geomspace(3e-5, 0.3, 65)])


@pytree_dataclass
class WeakForm:
    """The splines of one record, and the data with which they are multiplied.

    There are K splines, each over at most L samples, for c bodies. `stretch` (K,): number of the
    section of the record in which each spline lies; -1 for unused splines, which are 0.

    - `first` (K,): the sample at which each spline begins; `knots` (K,): number of time steps
      between two knots of the spline.
    - `kernel` (4, K, L) [s, 1, 1/s, s]: each spline w and its derivatives w' and w'' at the
      samples, times the time step. The fourth array contains weights for the integral of w times an
      input, which is held or linear between samples.
    - `slope_at` (K, c): for each body, the sample of the section at which the body has its median
      speed.
    - `before`, `after` (n,): index of the previous and the next sample in the same section.
    - `measured` (n, c): the measured positions; `noise` (c,): standard deviations of the white part
      of the position noise; `rounded` (c,): whether the resolution of the sensor causes most of the
      noise.
    - `correlation` (c,): autocorrelation of the position noise at a lag of one sample; None for
      white noise.
    - `force_noise` (c,): standard deviation of the force noise on each body at one sample [N]. In
      the first fit, this noise is a fixed fraction of the inputs' standard deviation.
    - `scale` (c,): typical standard deviation of a residual of each body [N].
    - `cutoff` [Hz]: cutoff frequency of the smoothed motion; `step` [s]: time between samples.
    """

    first: Int[Numbers, " K"]
    knots: Int[Numbers, " K"]
    stretch: Int[Numbers, " K"]
    kernel: Float[Numbers, "4 K L"]
    slope_at: Int[Numbers, "K c"]
    before: Int[Numbers, " n"]
    after: Int[Numbers, " n"]
    measured: Float[Numbers, "n c"]
    noise: Float[Numbers, " c"]
    rounded: Bool[Numbers, " c"]
    force_noise: Float[Numbers, " c"]
    scale: Float[Numbers, " c"]
    cutoff: Numbers
    step: Numbers
    correlation: Float[Numbers, " c"] | None = None

    def centres(self) -> Int[np.ndarray, " K"]:
        """Return the index of the sample in the middle of each spline."""
        middle = np.asarray(self.first) + (_DEGREE + 1) * np.asarray(self.knots) // 2
        return np.minimum(middle, np.asarray(self.measured).shape[0] - 1)


class Terms(NamedTuple):
    """The terms of the weak form for one set of parameters.

    - `residual` (K, c) [N.s]; `response` (K, c, c, L) [N.s]: derivative of the residual with
      respect to each body's position at each sample, times the standard deviation of the position
      noise.
    - `inertial`, `drive` (K, c) [N.s]: the terms of the inertia and of the inputs.
    """

    residual: Array
    response: Array
    inertial: Array
    drive: Array


def automatic_cutoff(t: Float[np.ndarray, " n"], positions: Sequence[np.ndarray]) -> float:
    """Return the frequency above which the measured positions contain only noise [Hz].

    For a record without noise, this frequency is undefined. Therefore the result is at most 20
    times the mean frequency of the speed, and at most a fifth of the sampling rate.
    """
    rate = (t.size - 1) / float(t[-1] - t[0])
    out = highest = 0.2 * rate
    for x in positions:
        cutoff = min(cutoff_of(t, x, 1), highest)
        found = smooth(t, x, cutoff)
        speed = float(np.std(found.v))
        mean = float(np.std(found.a)) / (2 * np.pi * speed) if speed > 0 else np.inf
        out = min(out, cutoff, max(20.0 * mean, 4.0 / (t[-1] - t[0])))
    return out


def weak_form(
    t: Float[np.ndarray, " n"],
    positions: Float[np.ndarray, "n c"],
    hold: bool,
    contacts: Float[np.ndarray, "k c"],
    cutoff: float,
    v_min: float,
    inputs: Sequence[np.ndarray] = (),
) -> tuple[WeakForm, np.ndarray, np.ndarray] | None:
    """Return the splines of a record, and the smoothed positions and speeds (n, c). Return None if
    the sections of sliding are too short for 12 splines.

    `contacts`: each row of this matrix times the speeds of the bodies is the sliding speed of a
    contact. `v_min`: least sliding speed, as a fraction of the highest sliding speed. `inputs`:
    input forces; the first fit assumes a force noise that is a fixed fraction of these forces.
    """
    from scipy.interpolate import make_lsq_spline

    apart = 0.25  # [1/cutoff] distance between knots; keeps all motion below the cutoff
    most = 700  # largest number of splines of a record; more do not improve the accuracy
    fewest = 12  # least number of splines of a record; fewer do not identify a machine
    rounded = 0.5  # [noise] a larger rounding error counts as the main cause of the noise
    n, step = t.size, float(t[-1] - t[0]) / (t.size - 1)
    motion = [smooth(t, x, cutoff) for x in positions.T]
    x, v, a = (np.stack([getattr(m, of) for m in motion], axis=1) for of in ("x", "v", "a"))
    noise = np.array([white_noise_of(y) for y in positions.T])
    parts = _stretches(t, v @ contacts.T, a @ contacts.T, contacts, noise, cutoff, v_min)
    total = sum(b - a for a, b in parts)
    widest = max(2, int(apart / (cutoff * step)), -(-total // most))
    rows, bodies = [], positions.shape[1]
    before, after = np.maximum(np.arange(n) - 1, 0), np.minimum(np.arange(n) + 1, n - 1)
    for number, (low, high) in enumerate(parts):
        m = max(2, min(widest, (high - low - 1) // (_DEGREE + 3)))
        pieces = (high - low - 1) // m
        if pieces < _DEGREE + 1:
            continue
        low += (high - low - 1 - pieces * m) // 2
        high = low + pieces * m + 1
        # The speed in a section is the derivative of a spline through the samples of this section
        # only. The knots of this spline are half a period of the cutoff apart.
        x_of_stretch = np.arange(high - low) * step
        end, count = x_of_stretch[-1], high - low
        inside = max(1, min(round(end / (0.5 / cutoff)), count // 3))
        degree = 5 if count > 6 + inside else 3
        inner = np.linspace(0.0, end, inside + 1)[1:-1]
        places = np.concatenate([np.zeros(degree + 1), inner, np.full(degree + 1, end)])
        for b, y in enumerate(positions[low:high].T):
            spline = make_lsq_spline(x_of_stretch, y - y[0], places, k=degree)
            v[low:high, b] = spline.derivative()(x_of_stretch)
        before[low], after[high - 1] = low, high - 1
        middle = low + np.argsort(v[low:high], axis=0)[(high - low) // 2]
        rows += [[low + m * k, m, number, *middle] for k in range(pieces - _DEGREE)]
    if len(rows) < fewest:
        return None
    table = np.tile([0, 1, -1] + [0] * bodies, (_rounded_up(len(rows)), 1))
    table[: len(rows)] = rows
    first, knots, stretch = table[:, 0], table[:, 1], table[:, 2]
    kernel = np.zeros((4, len(table), _rounded_up((_DEGREE + 1) * int(knots.max()) + 1)))
    for m in np.unique(knots[stretch >= 0]):
        of = np.asarray(_kernels(int(m), step, hold))
        kernel[:, (knots == m) & (stretch >= 0), : of.shape[1]] = of[:, None]
    noise_of_force = np.full(bodies, _FIRST * max((float(np.std(u)) for u in inputs), default=0.0))
    made = WeakForm(
        first,
        knots,
        stretch,
        kernel,
        table[:, 3:],
        before,
        after,
        np.array(positions),
        noise,
        np.array([quantum(y) for y in positions.T]) / np.sqrt(12.0) > rounded * noise,
        noise_of_force,
        np.ones(bodies),
        np.asarray(cutoff),
        np.asarray(step),
    )
    return made, x, v


def _stretches(
    t: np.ndarray,
    speed: Float[np.ndarray, "n k"],
    acceleration: Float[np.ndarray, "n k"],
    contacts: Float[np.ndarray, "k c"],
    noise: Float[np.ndarray, " c"],
    cutoff: float,
    v_min: float,
) -> list[tuple[int, int]]:
    """Return the sections in which every contact slides in one direction. A section is a pair of
    indices: its first sample, and the sample after its last sample.
    """
    # Speed above which the direction of sliding is certain [standard deviations of speed noise].
    sure = 5.0
    turn = 0.03  # [acceleration/cutoff] speed below which the filter mixes both directions.
    # Time [1/cutoff] that is removed at both ends of a section, except at the ends of the record.
    cut = 0.06
    n, step = t.size, float(t[-1] - t[0]) / (t.size - 1)
    one = np.zeros(n)
    one[n // 2] = 1.0
    # Standard deviation of the filtered speed for position noise of standard deviation 1.
    gain = float(np.linalg.norm(smooth(t, one, cutoff).v))
    least = np.maximum(
        sure * gain * np.sqrt(contacts**2 @ noise**2)
        + turn / cutoff * np.percentile(np.abs(acceleration), 90, axis=0),
        v_min * np.max(np.abs(speed), axis=0),
    )
    way = np.where(speed > least, 1, np.where(speed < -least, -1, 0))
    sliding = np.all(way != 0, axis=1)
    new = np.any(way[1:] != way[:-1], axis=1) | (sliding[1:] != sliding[:-1])
    ends = [0, *(np.flatnonzero(new) + 1), n]
    edge, out = int(np.ceil(cut / (cutoff * step))), []
    for low, high in zip(ends[:-1], ends[1:], strict=True):
        if sliding[low]:
            low, high = low + edge * (low > 0), high - edge * (high < n)
            if high - low > 2 * (_DEGREE + 1):
                out.append((int(low), int(high)))
    return out


@functools.lru_cache(maxsize=64)
def _kernels(m: int, step: float, hold: bool) -> tuple[np.ndarray, ...]:
    """Return w, w' and w'' at the samples, times the time step `step`, and weights for the integral
    of w times an input. The knots of the spline w are `m` samples apart.
    """
    from scipy.interpolate import BSpline

    spline = BSpline.basis_element(np.arange(_DEGREE + 2), extrapolate=False)
    at = np.arange((_DEGREE + 1) * m + 1) / m
    of = [
        np.nan_to_num((spline.derivative(i) if i else spline)(at)) * step / (m * step) ** i
        for i in range(3)
    ]
    # Gauss-Legendre quadrature between samples is exact for a spline times a linear function.
    nodes, weights = np.polynomial.legendre.leggauss(4)
    nodes, weights = 0.5 * (nodes + 1.0), 0.5 * weights
    inside = np.nan_to_num(spline(at[:-1, None] + nodes / m)) * weights * step
    here = np.sum(inside if hold else inside * (1.0 - nodes), axis=1)
    there = np.zeros_like(here) if hold else np.sum(inside * nodes, axis=1)
    return *of, np.append(here, 0.0) + np.insert(there, 0, 0.0)


def _rounded_up(count: int) -> int:
    """Round up to two significant bits, so that similar records share a compiled program."""
    unit = 2 ** max(int(np.log2(max(count, 1))) - 1, 0)
    return -(-count // unit) * unit


def terms(setup: Setup, prepared: Any, given: Mapping[str, Array]) -> Terms:
    """Return the `Terms` of the weak form, for the machine in `setup` and a prepared record.
    `given`: the inputs as they act on the machine. JAX can compile and differentiate this function.
    """
    weak: WeakForm = prepared.weak
    t = jnp.asarray(prepared.t)
    names = [name.removeprefix("force on ") for name in prepared.names]
    pairs = [[n for n in prepared.known if n.rpartition(".")[0] == body][:2] for body in names]
    sensors = [setup.outputs.at(s) if setup.outputs.has(s) else perfect() for s, _ in pairs]

    def without_sensors(values: Any, order: int) -> Array:
        columns = [
            sensor.invert(t, jnp.asarray(value), t[0], order) + jnp.zeros_like(t)
            for sensor, value in zip(sensors, values, strict=True)
        ]
        return jnp.stack(columns, axis=1)

    x = without_sensors([prepared.known[s] for s, _ in pairs], 0)
    v = without_sensors([prepared.known[v] for _, v in pairs], 1)
    y = without_sensors(list(jnp.asarray(weak.measured).T), 0)
    u = jnp.stack([*given.values(), jnp.zeros_like(t)], axis=1)
    c, k = len(names), len(given)

    def forces(t: Array, state: Array) -> tuple[Array, tuple[Array, Array]]:
        signals = {name: Constant(state[2 * c + j]) for j, name in enumerate(given)}
        system = driven(setup.machine, prepared.t, signals, prepared.hold)
        now = {name: state[b] for b, (name, _) in enumerate(pairs)}
        now |= {name: state[c + b] for b, (_, name) in enumerate(pairs)}
        system = moved_to(system, now)
        assert isinstance(system, MechanicalSystem)
        moment = system.snapshot(t, *system.start(t))
        inertia = jnp.stack([jnp.asarray(m, float) for m in moment.inertias])
        force = inertia * jnp.stack(moment.accelerations)
        return force, (force, inertia)

    state = jnp.concatenate([x, v, u], axis=1)
    slopes, (force, inertia) = jax.vmap(jax.jacfwd(forces, argnums=1, has_aux=True))(t, state)
    by_x, by_v, by_u = slopes[..., :c], slopes[..., c : 2 * c], slopes[..., 2 * c : 2 * c + k]
    driving = jnp.einsum("nbk,nk->nb", by_u, u[:, :k])
    free = force - driving + jnp.einsum("nbc,nc->nb", by_x, y - x)

    w, w1, w2, of_input = (jnp.asarray(a) for a in weak.kernel)
    n, length = t.size, w.shape[1]
    at = jnp.minimum(jnp.asarray(weak.first)[:, None] + np.arange(length), n - 1)
    near = y[at] - y[weak.first][:, None]
    once, twice = (jnp.einsum("kl,klc->kc", a, near) for a in (w1, w2))
    # One value of dF/dv for each section, because values at all samples correlate with the noise.
    slope = jnp.stack([by_v[jnp.asarray(weak.slope_at)[:, j], :, j] for j in range(c)], axis=2)
    corrected = once + jnp.einsum("kl,klc->kc", w, v[at])
    drive = jnp.einsum("kl,klb->kb", of_input, driving[at])
    inertial = inertia[0] * twice
    residual = (
        drive
        + jnp.einsum("kl,klb->kb", w, free[at])
        - jnp.einsum("kbc,kc->kb", slope, corrected)
        - inertial
    )
    after, before = jnp.asarray(weak.after), jnp.asarray(weak.before)
    span = weak.step * jnp.maximum(after - before, 1)
    bend = (by_v[after] - by_v[before]) / span[:, None, None]
    own = w2[:, None, None] * (inertia[0] * jnp.eye(c))[None, :, :, None]
    by_position = (by_x - bend)[at] * w[..., None, None] - by_v[at] * w1[..., None, None]
    gains = jnp.stack([jnp.asarray(sensor.gain) for sensor in sensors])
    response = (jnp.moveaxis(by_position, 1, 3) - own) * (weak.noise / gains)[:, None]
    if weak.correlation is not None:
        response = _by_white_noise(response, jnp.asarray(weak.correlation))
    return Terms(residual, response, inertial, drive)


def _by_white_noise(
    response: Float[Array, "K c s L"], correlation: Float[Array, " s"]
) -> Float[Array, "K c s L"]:
    """Convert `response`, the derivative with respect to the position noise, to the derivative with
    respect to white noise. The position noise is a first-order autoregression of this white noise.
    `response` is scaled by the standard deviation of the white part of the position noise. Noise
    before the first sample of a spline is neglected. The effect of this noise is small, because w,
    w' and w'' begin with zeros of high order, and the sums of w' and w'' are zero.
    """

    def earlier(later: Array, here: Array) -> tuple[Array, Array]:
        here = here + correlation * later
        return here, here

    samples = jnp.moveaxis(response, 3, 0)
    _, samples = jax.lax.scan(earlier, jnp.zeros_like(samples[0]), samples, reverse=True)
    size = jnp.sqrt((1 - correlation**2) / white_share(correlation))
    return jnp.moveaxis(samples, 0, 3) * size[:, None]


def _size(weak: WeakForm, values: Float[Array, "K c"]) -> Float[Array, " c"]:
    """Convert `values` [N.s] to mean forces; return their rms over the splines [N] (c,)."""
    used = (jnp.asarray(weak.stretch) >= 0)[:, None]
    forces = values / (weak.step * jnp.asarray(weak.knots))[:, None]
    return jnp.sqrt(jnp.sum(jnp.where(used, forces**2, 0.0), axis=0) / jnp.sum(used))


def band(weak: WeakForm, left: Array, right: Array) -> Float[Array, "K c d c"]:
    """Return the products of `left` (K, c, s, L) at spline k and `right` at spline k + d, summed
    over the samples and over s. The index d = 0, 1, ... runs over the following splines that
    overlap spline k.
    """
    size, _, _, length = left.shape
    wide = jnp.pad(left, ((0, 0), (0, 0), (0, 0), (0, 1)))
    stretch, knots = jnp.asarray(weak.stretch), jnp.asarray(weak.knots)

    def apart(d: Array) -> Array:
        place = jnp.minimum(np.arange(length) + d * knots[:, None], length)
        moved = jnp.take_along_axis(wide, place[:, None, None, :], axis=3)
        other = (np.arange(size) + d) % size
        same = (stretch[other] == stretch) & (stretch >= 0) & (np.arange(size) + d < size)
        sums = jnp.einsum("kbsl,kasl->kba", moved, right[other])
        return jnp.where(same[:, None, None], sums, 0.0)

    return jax.vmap(apart, out_axes=2)(jnp.arange(_DEGREE + 1))


def force_band(weak: WeakForm) -> Float[Array, "K c d c"]:
    """Return the covariance of the residuals for white force noise of standard deviation 1."""
    c = np.shape(weak.noise)[0]
    one = jnp.asarray(weak.kernel[3])[:, None, None, :]
    sums = band(weak, one, one)
    return sums * jnp.eye(c)[None, :, None, :]


def whiten(
    weak: WeakForm, covariance: Float[Array, "K c d c"], residual: Float[Array, "K c"]
) -> tuple[Float[Array, "K c"], Array]:
    """Whiten `residual` by a Cholesky decomposition of its `covariance` (see `band`). Return
    whitened residuals (variance 1), and half the log determinant of the covariance.
    """
    size, c = residual.shape
    width = (_DEGREE + 1) * c
    rows = covariance.reshape(size, c, width)
    rows = jnp.stack([jnp.pad(rows[:, b, b:], ((0, 0), (0, b))) for b in range(c)], axis=1).reshape(
        size * c, width
    )
    unused = jnp.repeat(jnp.asarray(weak.stretch) < 0, c)
    # For a record without noise, an added relative variance of 1e-9 makes the covariance positive
    # definite.
    rows = rows.at[:, 0].set(rows[:, 0] * (1.0 + 1e-9) + unused)

    def eliminate(carry: tuple[Array, Array], row: tuple[Array, Array]) -> Any:
        lowered, moved = carry  # sums that are subtracted from the next rows
        covariances, r = row[0] + lowered[0], row[1] + moved[0]
        pivot = covariances[0]
        share = covariances / pivot
        lowered = lowered - jnp.outer(covariances, share)
        moved = moved - share * r
        ahead = jnp.pad(lowered[1:, 1:], ((0, 1), (0, 1))), jnp.append(moved[1:], 0.0)
        return ahead, (r / jnp.sqrt(pivot), pivot)

    begun = jnp.zeros((width, width)), jnp.zeros(width)
    _, (white, pivots) = jax.lax.scan(eliminate, begun, (rows, residual.ravel()))
    return white.reshape(size, c), 0.5 * jnp.sum(jnp.log(pivots))


def weak_residuals(setup: Setup, prepared: Any, given: Mapping[str, Array]) -> Float[Array, "K c"]:
    """Return the whitened residuals times each body's typical standard deviation [N]."""
    weak: WeakForm = prepared.weak
    at = terms(setup, prepared, given)
    # Without inputs, the first fit assumes a force noise of `_FIRST` times the inertia forces.
    own = _FIRST * _size(weak, jnp.abs(at.inertial))
    noise = jnp.where(weak.force_noise > 0, weak.force_noise, own)
    covariance = band(weak, at.response, at.response)
    covariance += force_band(weak) * (noise**2)[None, :, None, None]
    return whiten(weak, covariance, at.residual)[0] * weak.scale


def noise_sizes(
    setup: Setup, prepared: Any, given: Mapping[str, Array]
) -> tuple[Float[Array, " c"], Float[Array, " c"], Float[Array, " c"]]:
    """Estimate by maximum likelihood the noise autocorrelation of each position, and the force
    noise. Return these estimates, and the typical standard deviation of each body's residual [N].
    """
    weak: WeakForm = dataclasses.replace(prepared.weak, correlation=None)
    at = terms(setup, dataclasses.replace(prepared, weak=weak), given)
    others = at.residual - at.drive + at.inertial
    size = _size(weak, jnp.abs(at.drive) + jnp.abs(at.inertial) + jnp.abs(others))
    of_force, sizes = force_band(weak), jnp.asarray(_SIZES)

    def best(correlation: Array) -> tuple[Array, ...]:
        """Return the minimum of -log(likelihood), the noise autocorrelation of each position, the
        force noise as a fraction of `size`, and the variances of the residuals.
        """
        each = jnp.where(jnp.asarray(weak.rounded), 0.0, correlation)
        response = _by_white_noise(at.response, each)
        of_position = band(weak, response, response)

        def unlikely(share: Array) -> Array:
            covariance = of_position + of_force * jnp.square(share * size)[None, :, None, None]
            white, half_log = whiten(weak, covariance, at.residual)
            return 0.5 * jnp.sum(white**2) + half_log

        costs = jax.lax.map(unlikely, sizes)
        k = jnp.nanargmin(costs)
        variance = of_position + of_force * jnp.square(sizes[k] * size)[None, :, None, None]
        return costs[k], each, sizes[k], jnp.einsum("kbb->kb", variance[:, :, 0, :])

    costs, each, shares, variances = jax.lax.map(best, jnp.asarray(_CORRELATIONS))
    k = jnp.nanargmin(costs)
    # Noise counts as autocorrelated if this increases the log likelihood by more than 5.
    k = jnp.where(costs[0] - costs[k] > 5.0, k, 0)
    return each[k], shares[k] * size, _size(weak, jnp.sqrt(variances[k]))
