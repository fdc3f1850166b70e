"""How long do a simulation under a sampled force, with all outputs, and its derivatives take?

Problem P2: the mass, friction and force of P1 (see p1.py) for 10 s, with 39 mode changes. The force
has 25001 samples and is interpolated linearly.

The timed functions are compiled. From the four friction parameters they compute position and speed
at all samples, and the derivatives with respect to these parameters. The error is the largest one
over all samples, relative to the largest value of its column.

    python experiments/benchmarks/p2.py [--rounds 9] [--csv FILE]
"""

import functools

import numpy as np
from contest import Contestant, hold, timed
from sampled_problem import PARAMETERS, Floor, by_scipy, outputs_of_frictax, refined, times

from frictax import fast_loops

fast_loops()  # must run before jax computes anything

TIMES = times(25000)
FORCE = 2.0 * np.sin(2.0 * np.pi * TIMES)
TOLERANCE = 1e-7  # rtol and atol of scipy


def c_floor(name: str, *options: str) -> list[Contestant]:
    """Return the programs in C, which write their results into existing memory."""
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
    """Return the programs of frictax: compiled functions of the parameters."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    # Otherwise JAX sends each call to another thread, which takes 0.03 ms.
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
    """Return the programs of scipy: `solve_ivp` with events, one call for each sliding phase. Its
    derivatives are central differences, because `solve_ivp` does not compute derivatives.
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
    """Return parameters that differ slightly from call to call, so that no call can be skipped."""
    return PARAMETERS + [0.0, 1e-10 * i, 0.0, 0.0]


@functools.cache
def truth(task: str) -> np.ndarray:
    """Return the reference results: C with eight time steps per sample."""
    run = getattr(Floor.build(), task)
    return run(PARAMETERS, refined(FORCE))[::8]


def error(c: Contestant) -> float:
    """Return the largest error over all samples, relative to the largest value of its column."""
    exact = truth(c.task)
    return float(np.max(np.abs(c.answer() - exact).max(axis=0) / np.abs(exact).max(axis=0)))


def field() -> list[Contestant]:
    """Return all compared programs."""
    return [*c_floor("C"), *c_floor("C with library exp", "-DLIBRARY_EXP"), *frictax(), *scipy()]


if __name__ == "__main__":
    hold(__doc__, "p2.csv", field, error)
