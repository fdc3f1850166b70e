"""One Kalman filter, or several side by side, at one sample and from one to the next."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from frictax.engine import Engine
from frictax.parameters import Modes, Number
from frictax.parameters.arrays import larger

from .interval import Interval

Mean = Float[Array, " k"]
Covariance = Float[Array, "k k"]

# a mode whose end is farther than so many standard deviations is taken as sure
NEAR = 4.0


class Sensors(eqx.Module):
    """What is measured at a sample, and its variances."""

    y: Float[Array, " c"]
    variance: Float[Array, " c"]
    names: tuple[str, ...] = eqx.field(static=True)


class Seen(eqx.Module):
    """What one filter makes of a sample: mean and covariance after it, innovation with its
    covariance, logarithm of its density, the mode after it.
    """

    x: Float[Array, "... k"]
    P: Float[Array, "... k k"]
    innovation: Float[Array, "... c"]
    S: Float[Array, "... c c"]
    log_density: Float[Array, "..."]
    mode: Int[Array, "... m"]


def predicted(
    interval: Interval, x: Mean, P: Covariance, engine: Engine, saltation: bool
) -> tuple[Mean, Covariance, PyTree]:
    """Mean and covariance where the interval ends, and how its run ended.

    The mean by the exact run; the covariance by the run's derivatives, which hold the saltation
    matrices of all events, or by those of the mode in which the interval begins.
    """
    draw = jnp.zeros(interval.wanders.size)

    def end(x: Array, draw: Array) -> tuple[Array, Any]:
        at, result = interval.end(x, draw, engine)
        return at, (at, result)

    if saltation:
        (A, G), (x, result) = jax.jacfwd(end, (0, 1), has_aux=True)(x, draw)
    else:
        A, G = jax.jacfwd(interval.end_in_mode, (0, 1))(x, draw)
        x, result = interval.end(x, draw, engine)
    return x, even(A @ P @ A.T + G @ G.T), result


def updated(
    interval: Interval,
    x: Mean,
    P: Covariance,
    sensors: Sensors,
    saltation: bool,
) -> Seen:
    """What a sample at the beginning of `interval` adds."""
    mode, R = interval.begun(x)[2], jnp.diag(sensors.variance)
    show = lambda x: interval.shown(x, mode, sensors.names)  # noqa: E731
    C = jax.jacfwd(show)(x)
    innovation, S = sensors.y - show(x), even(C @ P @ C.T + R)
    nis = distance(innovation, S)
    log_density = -0.5 * (nis + jnp.linalg.slogdet(2 * jnp.pi * S)[1])
    K = jnp.linalg.solve(S, C @ P).T
    rest = jnp.eye(x.shape[0]) - K @ C
    x, P = x + K @ innovation, rest @ P @ rest.T + K @ R @ K.T
    x, P, mode = at_rest(interval, x, P, saltation)
    return Seen(x, P, innovation, S, log_density, mode)


def at_rest(
    interval: Interval, x: Mean, P: Covariance, saltation: bool
) -> tuple[Mean, Covariance, Modes]:
    """Mean and covariance with what is held brought to rest: it has no velocity, and no variance of
    velocity. And the mode there.
    """

    def settled(x: Array) -> tuple[Array, Any]:
        _, y, mode = interval.begun(x)
        x = jnp.concatenate([y, x[y.shape[0] :]])
        return x, (x, mode)

    J, (x, mode) = jax.jacfwd(settled, has_aux=True)(x)
    return x, even(J @ P @ J.T if saltation else P), mode


def drawn(
    interval: Interval, x: Mean, P: Covariance, mode: Modes, number: Number
) -> tuple[Mean, Covariance]:
    """One of the filters whose mixture is the Gaussian given: where the mode's end is near, its
    margin is known to each as well as it changes within an interval, so that an event is linear to
    each; how they differ follows a standard normal `number`.
    """
    up, by = _standard_margins(interval, x, P, mode)
    i = jnp.argmin(jnp.abs(up))
    variance = by[i] @ P @ by[i]
    near = (jnp.abs(up[i]) < NEAR) & (variance > 0)
    known = jnp.where(near, variance, 1.0)
    apart = larger(1.0 - interval.change(x, mode)[i] ** 2 / known, 0.0)
    along = jnp.where(near, P @ by[i] * jnp.sqrt(apart / known), 0.0)
    return x + number * along, even(P - jnp.outer(along, along))


def _standard_margins(
    interval: Interval, x: Mean, P: Covariance, mode: Modes
) -> tuple[Float[Array, " g"], Float[Array, "g k"]]:
    """How many of their standard deviations the margins of the mode are up, and the derivatives of
    the margins.
    """

    def margins(x: Array) -> tuple[Array, Array]:
        g = interval.margins(x, mode)
        return g, g

    by, g = jax.jacfwd(margins, has_aux=True)(x)
    variance = jnp.einsum("gi,ij,gj->g", by, P, by)
    known = variance > 0
    return jnp.where(known, g / jnp.sqrt(jnp.where(known, variance, 1.0)), jnp.inf), by


def distance(innovation: Float[Array, " c"], S: Float[Array, "c c"]) -> Number:
    """The square of an innovation in units of its covariance."""
    return innovation @ jnp.linalg.solve(S, innovation)


def even(P: Covariance) -> Covariance:
    """Symmetric in spite of rounding."""
    return 0.5 * (P + P.T)
