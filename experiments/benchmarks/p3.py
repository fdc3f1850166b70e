"""How long do a thousand simultaneous simulations and their derivatives take?

Problem P3: 1024 blocks of P2 with friction parameters that scatter by 5 %, under a force with 2000
samples, with 39 mode changes each. The timed functions are compiled, by `jax.vmap`. They compute
position and speed of all blocks at all samples, and the derivatives with respect to the four
parameters of each block. C and `jax.lax.map` simulate one block after another. All use one core.

The error is the largest one over all blocks and samples, relative to the largest value of its
column. The reference is C with eight time steps per sample.

    python experiments/benchmarks/p3.py [--rounds 9] [--csv FILE]
"""

import functools

import numpy as np
from contest import Contestant, hold, timed
from sampled_problem import PARAMETERS, Floor, outputs_of_frictax, refined, times

from frictax import fast_loops

fast_loops(keep_memory=True)  # must run before jax computes anything

BLOCKS = 1024
TIMES = times(1999)
FORCE = 2.0 * np.sin(2.0 * np.pi * TIMES)
DRAWN = PARAMETERS * np.exp(0.05 * np.random.default_rng(0).standard_normal((BLOCKS, 4)))


def c_floor(name: str, *options: str) -> list[Contestant]:
    """Return the programs in C, which simulate one block after another."""
    floor = Floor.build(*options)
    y, dy = np.zeros((BLOCKS, len(FORCE), 2)), np.zeros((BLOCKS, len(FORCE), 2, 4))

    def forward() -> np.ndarray:
        for p, one in zip(DRAWN, y, strict=True):
            floor.forward(p, FORCE, one)
        return y

    def jacobian() -> np.ndarray:
        for p, one, d_one in zip(DRAWN, y, dy, strict=True):
            floor.jacobian(p, FORCE, one, d_one)
        return dy

    return [
        Contestant(name, "forward", forward, lambda: timed(lambda i: forward(), 1)),
        Contestant(name, "jacobian", jacobian, lambda: timed(lambda i: jacobian(), 1)),
    ]


def frictax() -> list[Contestant]:
    """Return the programs of frictax: compiled functions of the parameters of all blocks.

    The name "a force each" means that each block has its own table of the force, as an input of the
    program. All tables have equal values.
    """
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    outputs = outputs_of_frictax(FORCE)

    def contestant(name: str, task: str, f, *more) -> Contestant:
        at = jnp.asarray(DRAWN), *more
        return Contestant(
            name,
            task,
            lambda: np.asarray(f(*at)),
            lambda: timed(lambda i: f(*at).block_until_ready(), 1),
        )

    def of_own(p, force) -> jax.Array:
        return outputs_of_frictax(force)(p)

    jacobian, forces = jax.jacfwd(outputs), jnp.tile(FORCE, (len(DRAWN), 1))
    return [
        contestant("frictax, vmap", "forward", jax.jit(jax.vmap(outputs))),
        contestant("frictax, vmap", "jacobian", jax.jit(jax.vmap(jacobian))),
        contestant("frictax, vmap, a force each", "forward", jax.jit(jax.vmap(of_own)), forces),
        contestant(
            "frictax, vmap, a force each",
            "jacobian",
            jax.jit(jax.vmap(jax.jacfwd(of_own))),
            forces,
        ),
        contestant("frictax, lax.map", "forward", jax.jit(lambda p: jax.lax.map(outputs, p))),
        contestant("frictax, lax.map", "jacobian", jax.jit(lambda p: jax.lax.map(jacobian, p))),
    ]


@functools.cache
def truth(task: str) -> np.ndarray:
    """Return the reference results: C with eight time steps per sample."""
    run, force = getattr(Floor.build(), task), refined(FORCE)
    return np.stack([np.array(run(p, force)[::8]) for p in DRAWN])


def error(c: Contestant) -> float:
    """Return the largest error over all samples, relative to the largest value of its column."""
    exact = truth(c.task)
    most = lambda x: np.abs(x).max(axis=(0, 1))  # noqa: E731
    return float(np.max(most(c.answer() - exact) / most(exact)))


def field() -> list[Contestant]:
    """Return all compared programs."""
    return [*c_floor("C"), *c_floor("C with library exp", "-DLIBRARY_EXP"), *frictax()]


if __name__ == "__main__":
    hold(__doc__, "p3.csv", field, error)
