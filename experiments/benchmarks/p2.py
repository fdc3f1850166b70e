"""What does a simulation under a sampled force cost, with all outputs kept, and their derivatives?

Problem P2: a mass of 1 kg, from rest at x = 0, pulled for 10 s by 2 sin(2 pi t) N that is given on
25001 samples and linear between them, with friction 1 + 0.2 |v| + 0.4 exp(-5 |v|) N that breaks
away at 1.4 N: 39 mode changes.

Timed is a compiled function from the four friction parameters to position and speed at all samples,
and to their derivatives by the parameters. The error is the largest one over all samples, relative
to the largest value of its column.

    python experiments/benchmarks/p2.py [--rounds 9] [--csv FILE]
"""

import functools

import numpy as np
from contest import Contestant, hold, timed
from sampled_problem import PARAMETERS, Floor, by_scipy, outputs_of_frictax, refined, times

from frictax import fast_loops

fast_loops()  # before jax computes anything

TIMES = times(25000)
FORCE = 2.0 * np.sin(2.0 * np.pi * TIMES)
TOLERANCE = 1e-7  # of scipy


def c_floor(name: str, *options: str) -> list[Contestant]:
    """The hand-written C, into memory that is there."""
    floor, y, dy = Floor.build(*options), np.zeros((len(FORCE), 2)), np.zeros((len(FORCE), 2, 4))
    return [
        Contestant(
            name,
            "forward",
            lambda: floor.forward(PARAMETERS, FORCE),
            lambda: timed(lambda i: floor.forward(changed(i), FORCE, y), 20),
        ),
        Contestant(
            name,
            "jacobian",
            lambda: floor.jacobian(PARAMETERS, FORCE),
            lambda: timed(lambda i: floor.jacobian(changed(i), FORCE, y, dy), 20),
        ),
    ]


def frictax() -> list[Contestant]:
    """The public interface, compiled from the parameters to all outputs."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    # else each call changes threads, 0.03 ms of it
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    outputs = outputs_of_frictax(FORCE)

    def contestant(task: str, f) -> Contestant:
        ps = [jnp.asarray(changed(i)) for i in range(20)]
        return Contestant(
            "frictax",
            task,
            lambda: np.asarray(f(ps[0])),
            lambda: timed(lambda i: f(ps[i]).block_until_ready(), len(ps)),
        )

    return [
        contestant("forward", jax.jit(outputs)),
        contestant("jacobian", jax.jit(jax.jacfwd(outputs))),
    ]


def scipy() -> list[Contestant]:
    """`solve_ivp` with events, one call a slide; derivatives by central differences, which is what
    its users have.
    """

    def jacobian() -> np.ndarray:
        columns = []
        for i, value in enumerate(PARAMETERS):
            step = np.zeros(4)
            step[i] = 1e-4 * value
            ends = [by_scipy(PARAMETERS + sign * step, FORCE, TOLERANCE) for sign in (1, -1)]
            columns.append((ends[0] - ends[1]) / (2 * step[i]))
        return np.stack(columns, axis=-1)

    def forward() -> np.ndarray:
        return by_scipy(PARAMETERS, FORCE, TOLERANCE)

    return [
        Contestant("scipy", "forward", forward, lambda: timed(lambda i: forward(), 1)),
        Contestant("scipy", "jacobian", jacobian, lambda: timed(lambda i: jacobian(), 1)),
    ]


def changed(i: int) -> np.ndarray:
    """Parameters that differ a little from call to call, so that none can be left out."""
    return PARAMETERS + [0.0, 1e-10 * i, 0.0, 0.0]


@functools.cache
def truth(task: str) -> np.ndarray:
    """From C with eight steps a sample."""
    run = getattr(Floor.build(), task)
    return run(PARAMETERS, refined(FORCE))[::8]


def error(c: Contestant) -> float:
    """The largest error over all samples, relative to the largest value of its column."""
    exact = truth(c.task)
    return float(np.max(np.abs(c.answer() - exact).max(axis=0) / np.abs(exact).max(axis=0)))


def field() -> list[Contestant]:
    """Everybody who takes part."""
    return [*c_floor("C"), *c_floor("C with library exp", "-DLIBRARY_EXP"), *frictax(), *scipy()]


if __name__ == "__main__":
    hold(__doc__, "p2.csv", field, error)
