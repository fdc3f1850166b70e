"""A bank (weighted set) of extended Kalman filters for machines that stick and slip. `Interval`
simulates from one sample to the next; the functions predict, update and combine the filters.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from frictax.contacts.mode import STUCK
from frictax.engine import Engine, Result, walk
from frictax.fitting.problem.setup import driven, moved_to, variable_at
from frictax.mechanism import AbstractHybridSystem, MechanicalSystem
from frictax.parameters import Modes, Number, State, get, replace
from frictax.parameters.arrays import constant, larger
from frictax.programs import interruptible_jit


class Uncertainties(eqx.Module):
    """The uncertain parameters and inputs of a machine.

    - `names` (p): parameters that are estimated with the state; `q` (p,): standard deviations of
      their random walks, per root of a second; `low`, `high` (p,): bounds of their domains.
    - `noisy` (w): inputs and parameters with white noise; `r` (w,): root of the spectral density of
      this noise; `noisy_low`, `noisy_high` (w,): bounds of their domains.
    """

    q: Float[Array, " p"]
    low: Float[Array, " p"]
    high: Float[Array, " p"]
    r: Float[Array, " w"]
    noisy_low: Float[Array, " w"]
    noisy_high: Float[Array, " w"]
    names: tuple[str, ...] = eqx.field(static=True)
    noisy: tuple[str, ...] = eqx.field(static=True)

    @property
    def size(self) -> int:
        """The number of standard normal variables that describe the noise in one interval."""
        return len(self.noisy) + len(self.names)


class Interval(eqx.Module):
    """A machine between two successive samples of a record.

    The vector x contains the state of the machine, then the parameters `uncertain.names`. `t`,
    `inputs`: times and inputs at both samples; `contacts`: number of contacts, whose modes are the
    first entries of the mode vector.
    """

    machine: Any
    uncertain: Uncertainties
    t: Float[Array, " 2"]
    inputs: dict[str, Float[Array, " 2"]]
    states: tuple[str, ...] = eqx.field(static=True)
    hold: bool = eqx.field(static=True)
    contacts: int = eqx.field(static=True)

    def system(self, x: Array, draw: Array | None = None) -> AbstractHybridSystem:
        """Return the machine with the parameters in x and noise from the normal numbers `draw`."""
        w = self.uncertain
        values = {
            name: _clip(x[len(self.states) + i], w.low[i], w.high[i])
            for i, name in enumerate(w.names)
        }
        inputs = dict(self.inputs)
        if draw is not None:
            noise = draw * w.r / jnp.sqrt(self._length)
            for i, name in enumerate(w.noisy):
                if name in inputs:
                    inputs[name] = inputs[name] + noise[i]
                else:
                    value = values[name] if name in values else get(self.machine, name)
                    values[name] = _clip(value + noise[i], w.noisy_low[i], w.noisy_high[i])
        return driven(replace(self.machine, values), self.t, inputs, self.hold)

    def start(self, x: Array, draw: Array | None = None) -> tuple[Any, State, Modes]:
        """Return the machine, its state and its mode at the start of the interval.

        The velocity of stuck bodies is set to 0, even if x contains another velocity.
        """
        system, y = self.system(x, draw), x[: len(self.states)]
        if isinstance(system, MechanicalSystem):
            system = moved_to(system, dict(zip(self.states, y, strict=True)))
            return system, *system.start(self.t[0])
        return system, *system.begin(self.t[0], y)

    def end(self, x: Array, draw: Array, engine: Engine) -> tuple[Array, PyTree]:
        """Return x at the end of the interval, simulated through all events, and the result code of
        the simulation. `draw`: standard normal numbers for the noise.
        """
        x, draw = self._add_drift(x, draw)
        system, y, mode = self.start(x, draw)
        path = walk(system, y, mode, self.t, options=engine)
        return self._join(path.ys[-1], x), path.result

    def end_in_mode(self, x: Array, draw: Array) -> Array:
        """Return x at the end of the interval after one Runge-Kutta step in a constant mode."""
        y = x[: len(self.states)]
        x, draw = self._add_drift(x, draw)
        system, mode, (t0, t1) = self.system(x, draw), constant(self.start(x, draw)[2]), self.t
        h = t1 - t0
        rate = lambda t, y: system.flow(t, y, mode, None)  # noqa: E731
        k1 = rate(t0, y)
        k2 = rate(t0 + h / 2, y + h / 2 * k1)
        k3 = rate(t0 + h / 2, y + h / 2 * k2)
        k4 = rate(t1, y + h * k3)
        return self._join(y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), x)

    def outputs(self, x: Array, mode: Modes, names: tuple[str, ...]) -> Float[Array, " c"]:
        system, y = self.system(x), x[: len(self.states)]
        return jnp.stack([variable_at(system, name, self.t[0], y, mode) for name in names])

    def margins(self, x: Array, mode: Modes) -> Float[Array, " g"]:
        """Return the values of the event functions of `mode` at the start of the interval."""
        return self.system(x).guard(self.t[0], x[: len(self.states)], mode, None)

    def margin_change(self, x: Array, mode: Modes) -> Float[Array, " g"]:
        """Return the change of the event functions over the interval if the mode stays constant."""
        system, (t0, t1), y = self.system(x), self.t, x[: len(self.states)]
        after = y + (t1 - t0) * system.flow(t0, y, mode, None)
        return system.guard(t1, after, mode, None) - system.guard(t0, y, mode, None)

    @property
    def _length(self) -> Array:
        return self.t[1] - self.t[0]

    def _add_drift(self, x: Array, draw: Array) -> tuple[Array, Array]:
        n, k = len(self.states), len(self.uncertain.noisy)
        by = draw[k:] * self.uncertain.q * jnp.sqrt(self._length)
        return jnp.concatenate([x[:n], x[n:] + by]), draw[:k]

    def _join(self, y: Array, x: Array) -> Array:
        w, n = self.uncertain, len(self.states)
        return jnp.concatenate([y, _clip(x[n:], w.low, w.high)])


def _clip(value: Array, low: Array, high: Array) -> Array:
    """Clip a value to its domain. The derivative is 1, so an update can change the result."""
    return value + constant(jnp.clip(value, low, high) - value)


Mean = Float[Array, " k"]
Covariance = Float[Array, "k k"]


class FilterProblem(eqx.Module):
    """A machine, the arrays of a record, and the uncertainties of the machine and the record.

    `t`, `inputs` (m,): the n samples, and one more, at which the last interval ends. `x`, `sd`
    (k,): mean and standard deviation of the estimated vector before the first sample; `variance`
    (n, c): variance of the noise of each sensor.
    """

    machine: Any
    uncertain: Uncertainties
    t: Float[Array, " m"]
    inputs: dict[str, Float[Array, " m"]]
    measured: Float[Array, "n c"]
    variance: Float[Array, "n c"]
    x: Float[Array, " k"]
    sd: Float[Array, " k"]
    states: tuple[str, ...] = eqx.field(static=True)
    outputs: tuple[str, ...] = eqx.field(static=True)
    hold: bool = eqx.field(static=True)
    contacts: int = eqx.field(static=True)

    def interval(self, i: Any) -> Interval:
        ends = jnp.stack([i, i + 1])
        inputs = {name: u[ends] for name, u in self.inputs.items()}
        return Interval(
            self.machine,
            self.uncertain,
            self.t[ends],
            inputs,
            self.states,
            self.hold,
            self.contacts,
        )


class FilterOutput(eqx.Module):
    """The estimates at one sample or all samples. `P`, `S`: covariances of `x` and `innovation`;
    `nis`: normalised innovation squared; `stuck`: probability that each contact sticks; `result`:
    result code.
    """

    x: Float[Array, "... k"]
    P: Float[Array, "... k k"]
    innovation: Float[Array, "... c"]
    S: Float[Array, "... c c"]
    nis: Float[Array, "..."]
    log_density: Float[Array, "..."]
    stuck: Float[Array, "... m"]
    result: PyTree


class Measurement(eqx.Module):
    """The measured values at a sample, and their variances."""

    y: Float[Array, " c"]
    variance: Float[Array, " c"]
    names: tuple[str, ...] = eqx.field(static=True)


class FilterUpdate(eqx.Module):
    """One filter after the update by a sample: mean and covariance, innovation and its covariance,
    log of the probability density of the sample, and mode.
    """

    x: Float[Array, "... k"]
    P: Float[Array, "... k k"]
    innovation: Float[Array, "... c"]
    S: Float[Array, "... c c"]
    log_density: Float[Array, "..."]
    mode: Int[Array, "... m"]


def predict(
    interval: Interval, x: Mean, P: Covariance, engine: Engine, saltation: bool
) -> tuple[Mean, Covariance, PyTree]:
    """Return mean and covariance at the end of the interval, and the simulation's result code.

    The mean is simulated through all events. If `saltation`, the covariance is computed from the
    derivatives of this simulation, which include the saltation matrix of each event. Otherwise the
    covariance is computed from one Runge-Kutta step in the mode at the start.
    """
    draw = jnp.zeros(interval.uncertain.size)

    def end(x: Array, draw: Array) -> tuple[Array, Any]:
        at, result = interval.end(x, draw, engine)
        return at, (at, result)

    if saltation:
        (A, G), (x, result) = jax.jacfwd(end, (0, 1), has_aux=True)(x, draw)
    else:
        A, G = jax.jacfwd(interval.end_in_mode, (0, 1))(x, draw)
        x, result = interval.end(x, draw, engine)
    return x, symmetrize(A @ P @ A.T + G @ G.T), result


def update(
    interval: Interval, x: Mean, P: Covariance, sensors: Measurement, saltation: bool
) -> FilterUpdate:
    """Return the filter after its update by the sample at the start of the interval."""
    mode, R = interval.start(x)[2], jnp.diag(sensors.variance)
    output = lambda x: interval.outputs(x, mode, sensors.names)  # noqa: E731
    C = jax.jacfwd(output)(x)
    innovation, S = sensors.y - output(x), symmetrize(C @ P @ C.T + R)
    nis = squared_distance(innovation, S)
    log_density = -0.5 * (nis + jnp.linalg.slogdet(2 * jnp.pi * S)[1])
    K = jnp.linalg.solve(S, C @ P).T
    rest = jnp.eye(x.shape[0]) - K @ C
    x, P = x + K @ innovation, rest @ P @ rest.T + K @ R @ K.T
    x, P, mode = apply_rest(interval, x, P, saltation)
    return FilterUpdate(x, P, innovation, S, log_density, mode)


def apply_rest(
    interval: Interval, x: Mean, P: Covariance, saltation: bool
) -> tuple[Mean, Covariance, Modes]:
    """Set the velocity of stuck bodies to 0, and return mean, covariance and mode."""

    def without_velocity(x: Array) -> tuple[Array, Any]:
        _, y, mode = interval.start(x)
        x = jnp.concatenate([y, x[y.shape[0] :]])
        return x, (x, mode)

    J, (x, mode) = jax.jacfwd(without_velocity, has_aux=True)(x)
    return x, symmetrize(J @ P @ J.T if saltation else P), mode


def draw_member(
    interval: Interval, x: Mean, P: Covariance, mode: Modes, z: Number
) -> tuple[Mean, Covariance]:
    """Draw a member of a Gaussian mixture that equals the Gaussian with mean x and covariance P.

    Near an event, the member gets a smaller covariance: the standard deviation of the event
    function is at most the change of this function during the interval. In this range the event
    function is nearly linear. `z`: standard normal number that shifts the mean of the member.
    """

    def margins(x: Array) -> tuple[Array, Array]:
        g = interval.margins(x, mode)
        return g, g

    by, g = jax.jacfwd(margins, has_aux=True)(x)
    variance = jnp.einsum("gi,ij,gj->g", by, P, by)
    known = variance > 0
    standardized = jnp.where(known, g / jnp.sqrt(jnp.where(known, variance, 1.0)), jnp.inf)
    i = jnp.argmin(jnp.abs(standardized))
    variance = by[i] @ P @ by[i]
    # An event counts as near if its event function is less than 4 standard deviations from 0.
    near = (jnp.abs(standardized[i]) < 4.0) & (variance > 0)
    known = jnp.where(near, variance, 1.0)
    removed = larger(1.0 - interval.margin_change(x, mode)[i] ** 2 / known, 0.0)
    direction = jnp.where(near, P @ by[i] * jnp.sqrt(removed / known), 0.0)
    return x + z * direction, symmetrize(P - jnp.outer(direction, direction))


def squared_distance(innovation: Float[Array, " c"], S: Float[Array, "c c"]) -> Number:
    """Return the squared Mahalanobis distance of an innovation."""
    return innovation @ jnp.linalg.solve(S, innovation)


def symmetrize(P: Covariance) -> Covariance:
    """Return P without the asymmetry that rounding causes."""
    return 0.5 * (P + P.T)


@interruptible_jit
def run_filters(
    problem: FilterProblem, engine: Engine, saltation: bool, members: int, key: Array
) -> FilterOutput:
    """Run `members` weighted Kalman filters over a record."""
    n = problem.measured.shape[0]

    def step(carry: Any, at: Any) -> Any:
        (X, P, log_w, result), (i, key) = carry, at
        # The update by sample i and the next prediction use the interval that begins at sample i.
        interval = problem.interval(i)
        sensors = Measurement(problem.measured[i], problem.variance[i], problem.outputs)
        correct = lambda x, P: update(interval, x, P, sensors, saltation)  # noqa: E731
        corrected = jax.vmap(correct)(X, P)
        X, P = corrected.x, corrected.P
        # Combine the filters. The innovation uses the weights before the update, the estimate uses
        # the weights after the update.
        before = jnp.exp(log_w)
        innovation = before @ corrected.innovation
        deviation = corrected.innovation - innovation
        S = jnp.einsum("p,pij->ij", before, corrected.S)
        S = S + jnp.einsum("p,pi,pj->ij", before, deviation, deviation)
        log_density = jax.scipy.special.logsumexp(log_w + corrected.log_density)
        log_w = log_w + corrected.log_density - log_density
        w = jnp.exp(log_w)
        mean = w @ X
        covariance = jnp.einsum("p,pij->ij", w, P)
        covariance = covariance + jnp.einsum("p,pi,pj->ij", w, X - mean, X - mean)
        nis = squared_distance(innovation, S)
        stuck = w @ (corrected.mode[:, : problem.contacts] == STUCK).astype(w.dtype)
        output = FilterOutput(mean, covariance, innovation, S, nis, log_density, stuck, result)
        if members > 1:
            normal_key, resample_key = jax.random.split(key)
            z = jax.random.normal(normal_key, (members,))
            # If the effective number of filters is below half of `members`, filters are drawn again
            # by systematic resampling, in proportion to their weights.
            few = jnp.sum(w**2) > 2.0 / members
            at = (jax.random.uniform(resample_key) + jnp.arange(members)) / members
            pick = jnp.minimum(jnp.searchsorted(jnp.cumsum(w), at), members - 1)
            X, P, mode = (jnp.where(few, a[pick], a) for a in (X, P, corrected.mode))
            log_w = jnp.where(few, -jnp.log(members), log_w)
            X, P = jax.vmap(lambda *one: draw_member(interval, *one))(X, P, mode, z)
        go = lambda x, P: predict(interval, x, P, engine, saltation)  # noqa: E731
        X, P, result = jax.vmap(go)(X, P)
        failed = ~jnp.all(jnp.isfinite(X), axis=1)
        if members > 1:  # a failed filter gets weight 0
            X = jnp.where(failed[:, None], problem.x, X)
            P = jnp.where(failed[:, None, None], 0.0, P)
            log_w = jnp.where(failed, -jnp.inf, log_w)
            total = jax.scipy.special.logsumexp(log_w)  # -inf if every filter failed
            log_w = jnp.where(jnp.isfinite(total), log_w - total, log_w)
        worst = jax.tree.map(lambda a: a[jnp.argmax(failed)], result)
        return (X, P, log_w, worst), output

    first = problem.interval(jnp.array(0))
    x, P, _ = apply_rest(first, problem.x, jnp.diag(problem.sd**2), saltation)
    each = lambda a: jnp.broadcast_to(a, (members, *a.shape))  # noqa: E731
    start = each(x), each(P), jnp.full(members, -jnp.log(members)), Result.successful
    return jax.lax.scan(step, start, (jnp.arange(n), jax.random.split(key, n)))[1]
