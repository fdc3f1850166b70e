"""The lowest and highest values of the states over a cycle."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from frictax.engine import Adaptive, Path, walk
from frictax.mechanism import Machine
from frictax.parameters.arrays import constant, least

from .returns import Place, as_system

_NODES = 32  # inside of each phase
_EDGE = 1e-6  # of a phase: how far from the events the first and the last node are


def _shares() -> np.ndarray:
    """Where in a phase the nodes are: closer to each other at its ends."""
    inside = 0.5 * (1.0 - np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES))
    return np.concatenate([[_EDGE], inside, [1.0 - _EDGE]])


def sampled(
    machine: Machine, args: PyTree, y: Any, place: Place, ends: Any, engine: Adaptive
) -> tuple[Path, Array]:
    """The run at the start, then at p nodes of each of k phases, which last to `ends` (k,) [s]
    after the start.
    """
    begins = jnp.append(0.0, ends[:-1])
    nodes = begins[:, None] + (ends - begins)[:, None] * _shares()
    ts = place.time + jnp.append(0.0, jnp.ravel(nodes))
    return walk(as_system(machine), y, place.mode, ts, args, engine), ts


def extremes(
    machine: Machine, args: PyTree, y: Any, place: Place, ends: Any, engine: Adaptive
) -> tuple[Array, Array]:
    """The lowest and the highest value of each state, differentiable, with the times `ends` of the
    events.

    Inside of a phase the motion is smooth: between two nodes an extremum is found by the cubic
    through states and rates, and its value by the quintic through the second rates, too.
    """
    path, ts = sampled(machine, args, y, place, ends, engine)
    system = as_system(machine)

    def rates(t: Any, y: Any, mode: Any) -> Any:
        flow = lambda t, y: system.flow(t, y, mode, args)  # noqa: E731
        speed = flow(t, y)
        return speed, jax.jvp(flow, (t, y), (jnp.ones_like(t), speed))[1]

    speed, bend = jax.vmap(rates)(ts[1:], path.ys[1:], path.modes[1:])
    shape = (ends.shape[0], len(_shares()), -1)
    at, y0, f0, a0 = (x.reshape(shape) for x in (ts[1:], path.ys[1:], speed, bend))
    beyond = _EDGE * (at[:, -1] - at[:, 0])
    first, last = y0[:, 0] - f0[:, 0] * beyond, y0[:, -1] + f0[:, -1] * beyond
    left, right = ([x[:, i : len(_shares()) - 1 + i] for x in (y0, f0, a0, at)] for i in (0, 1))
    inner = _inner(*left, *right)
    every = jnp.concatenate([x.reshape(-1, y.shape[0]) for x in (y0, first, last, inner)])
    return least(every.T), -least(-every.T)


def _inner(y0: Any, f0: Any, a0: Any, t0: Any, y1: Any, f1: Any, a1: Any, t1: Any) -> Array:
    """The value at the extremum between two nodes; that at the first node where there is none."""
    h = t1 - t0
    r0, r1, c0, c1, rise = f0 * h, f1 * h, a0 * h * h, a1 * h * h, y1 - y0
    # y = y0 + r0*x + b*x^2 + a*x^3, with rates of opposite sign at both ends
    a, b = r0 + r1 - 2 * rise, 3 * rise - 2 * r0 - r1
    turns = r0 * r1 < 0
    root = jnp.sqrt(jnp.maximum(b * b - 3 * a * r0, 0.0))
    below = jnp.where(r0 < 0, b + root, b - root)
    x = constant(jnp.clip(-r0 / jnp.where(turns & (below != 0), below, 1.0), 0.0, 1.0))
    p, q, r = rise - r0 - 0.5 * c0, r1 - r0 - c0, c1 - c0
    third, fourth, fifth = 10 * p - 4 * q + 0.5 * r, -15 * p + 7 * q - r, 6 * p - 3 * q + 0.5 * r
    return jnp.where(
        turns, y0 + x * (r0 + x * (0.5 * c0 + x * (third + x * (fourth + x * fifth)))), y0
    )
