"""How long do a simulation with a bristle, with all outputs, and its derivatives take?

Problem P6: block, force and samples of P2. The friction has a LuGre bristle with sigma_0 = 1e5 N/m
and sigma_1 = 316 N.s/m; other options of `LuGre` are defaults.

The timed functions are compiled. From four friction parameters and two bristle parameters they
compute position and speed at all samples, and the derivatives with respect to all six. For
comparison, P2 runs without a bristle, with its four parameters. The error is the largest one over
all samples, relative to the largest value of its column.

    python experiments/benchmarks/p6.py [--rounds 9] [--csv FILE]
"""

import ctypes
import functools

import numpy as np
from contest import Contestant, built, hold, timed
from sampled_problem import END, PARAMETERS, outputs_of_frictax, refined, times

from frictax import fast_loops

fast_loops()  # must run before jax computes anything

TIMES = times(25000)
FORCE = 2.0 * np.sin(2.0 * np.pi * TIMES)
ALL = np.append(PARAMETERS, [1e5, 316.0])
STEP = 1e-5  # relative step of central differences


@functools.cache
def _library() -> ctypes.CDLL:
    return built("p6")


def _in_c(p: np.ndarray, u: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
    out = np.empty((len(u), 2)) if y is None else y
    at = lambda a: np.ascontiguousarray(a).ctypes.data_as(ctypes.c_void_p)  # noqa: E731
    step = ctypes.c_double(END / (len(u) - 1))
    _library().forward(at(p), at(u), len(u) - 1, step, out.ctypes.data_as(ctypes.c_void_p))
    return out


def _differences(p: np.ndarray, u: np.ndarray) -> np.ndarray:
    sides = [
        [_in_c(p * (1 + sign * STEP * (np.arange(6) == i)), u) for sign in (1, -1)]
        for i in range(6)
    ]
    return np.stack([(a - b) / (2 * STEP * p[i]) for i, (a, b) in enumerate(sides)], axis=-1)


def c_floor() -> list[Contestant]:
    """Return the programs in C. Their derivatives are central differences of twelve runs."""
    y = np.empty((len(FORCE), 2))
    return [
        Contestant(
            "C",
            "forward",
            lambda: _in_c(ALL, FORCE),
            lambda: timed(lambda i: _in_c(changed(i), FORCE, y), 20),
        ),
        Contestant(
            "C",
            "jacobian",
            lambda: _differences(ALL, FORCE),
            lambda: timed(lambda i: _differences(changed(i), FORCE), 3),
        ),
    ]


def frictax() -> list[Contestant]:
    """Return the programs of frictax: compiled functions with and without the bristle."""
    import jax
    import jax.numpy as jnp

    import frictax as fx

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    ts, us = jnp.asarray(TIMES), jnp.asarray(FORCE)

    def bent(p):
        law = fx.Stribeck(F_Coulomb=p[0], F_prop=p[1], F_Stribeck=p[2], fexp=p[3])
        bristle = fx.LuGre(sigma_0=p[4], sigma_1=p[5])
        block = fx.Mechanism(
            mass=fx.Mass(m=1.0),
            friction=fx.SupportFriction("mass", f_pos=law, bristle=bristle),
            drive=fx.Force("mass", fx.Sampled(ts, us)),
        )
        run = fx.simulate(block, ts, fx.OnSamples(tolerance=None))["mass"]
        return jnp.stack([run.s, run.v], axis=-1)

    def contestant(name: str, task: str, f, count: int) -> Contestant:
        ps = [jnp.asarray(changed(i)[:count]) for i in range(10)]
        return Contestant(
            name,
            task,
            lambda: np.asarray(f(ps[0])),
            lambda: timed(lambda i: f(ps[i]).block_until_ready(), len(ps)),
        )

    sticks = outputs_of_frictax(FORCE)
    return [
        contestant("frictax, LuGre", "forward", jax.jit(bent), 6),
        contestant("frictax, LuGre", "jacobian", jax.jit(jax.jacfwd(bent)), 6),
        contestant("frictax, sticks (P2)", "forward", jax.jit(sticks), 4),
        contestant("frictax, sticks (P2)", "jacobian", jax.jit(jax.jacfwd(sticks)), 4),
    ]


def changed(i: int) -> np.ndarray:
    """Return parameters that differ slightly from call to call, so that no call can be skipped."""
    return ALL + 1e-10 * i * (np.arange(6) == 1)


@functools.cache
def truth(task: str) -> np.ndarray:
    """Return the reference results: C with sixteen time steps per sample."""
    run = {"forward": _in_c, "jacobian": _differences}[task]
    return run(ALL, refined(FORCE, 16))[::16]


def error(c: Contestant) -> float:
    """Return the largest error over all samples, relative to the largest value of its column."""
    exact = truth(c.task)
    exact = exact[..., :4] if c.answer().shape[-1] == 4 else exact
    return float(np.max(np.abs(c.answer() - exact).max(axis=0) / np.abs(exact).max(axis=0)))


def field() -> list[Contestant]:
    """Return all compared programs."""
    return [*c_floor(), *frictax()]


if __name__ == "__main__":
    hold(__doc__, "p6.csv", field, error)
