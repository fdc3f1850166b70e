"""How long do a hundred thousand simultaneous simulations take on a GPU?

The blocks are those of problem P3: 2000 samples, 39 mode changes each, friction parameters that
scatter by 5 %. `jax.vmap` runs the given number of blocks on the first device of JAX. It computes
position and speed at all samples, derivatives with respect to the four parameters of each block,
and the gradient of a misfit by reverse mode. For comparison, the hand-written C and `jax.vmap` run
1024 blocks each on one core of the same machine. Times are per block.

The column `off` compares the device with the CPU. It is the largest difference over all samples of
1024 blocks, relative to the largest value of its column.

    python experiments/benchmarks/gpu.py [--lanes 1024 16384 131072] [--rounds 3] [--csv FILE]

Without a GPU, the device is the CPU.
"""

import argparse
import csv
import functools
import platform
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from contest import HERE, timed
from sampled_problem import PARAMETERS, Floor, outputs_of_frictax, times

from frictax import fast_loops

fast_loops()  # must run before jax computes anything

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

COLUMNS = ("device", "task", "blocks", "first_call_s", "seconds", "microseconds_a_block", "off")
FEW = 1024
FORCE = 2.0 * np.sin(2.0 * np.pi * times(1999))


def drawn(blocks: int) -> np.ndarray:
    """Return parameters (blocks, 4). The first rows do not depend on the number of blocks."""
    return PARAMETERS * np.exp(0.05 * np.random.default_rng(0).standard_normal((blocks, 4)))


def tasks() -> dict[str, Callable[[Any], Any]]:
    """Return the timed functions. Their argument is the parameters of one block."""
    outputs = outputs_of_frictax(FORCE)
    goal = 0.95 * PARAMETERS

    def misfit(p: Any) -> Any:
        return jnp.mean((outputs(p)[:, 1] - measured) ** 2)

    with jax.default_device(jax.devices("cpu")[0]):
        measured = np.asarray(outputs(jnp.asarray(goal))[:, 1])
    return {
        "forward": outputs,
        "jacobian": jax.jacfwd(outputs),
        "gradient": jax.grad(misfit),
    }


def row(device: Any, task: str, f: Any, p: np.ndarray, rounds: int, exact: Any) -> tuple[str, ...]:
    on_device = jax.device_put(p, device)
    every = jax.jit(jax.vmap(f))
    first = timed(lambda i: every(on_device).block_until_ready(), 1)
    seconds = statistics.median(
        timed(lambda i: every(on_device).block_until_ready(), 1) for _ in range(rounds)
    )
    made = np.asarray(every(on_device)[:FEW])
    off = "" if exact is None else f"{difference(made, exact):.1e}"
    name = device.device_kind if device.platform != "cpu" else "one core"
    a_block = 1e6 * seconds / len(p)
    return (name, task, str(len(p)), f"{first:.1f}", f"{seconds:.4f}", f"{a_block:.2f}", off)


def difference(a: np.ndarray, b: np.ndarray) -> float:
    axes = tuple(range(min(2, b.ndim - 1)))
    most = lambda x: np.abs(x).max(axis=axes)  # noqa: E731
    return float(np.max(most(a - b) / most(b)))


def of_c(rounds: int) -> list[tuple[str, ...]]:
    """Return table rows of the hand-written C, which simulates one block after another."""
    floor, p = Floor.build(), drawn(FEW)
    y, dy = np.zeros((len(FORCE), 2)), np.zeros((len(FORCE), 2, 4))
    rows = []
    for task, run in (
        ("forward", lambda p: floor.forward(p, FORCE, y)),
        ("jacobian", lambda p: floor.jacobian(p, FORCE, y, dy)),
    ):
        once = functools.partial(lambda run, i: run(p[i]), run)
        seconds = statistics.median(timed(once, FEW) * FEW for _ in range(rounds))
        a_block = 1e6 * seconds / FEW
        rows.append(("C", task, str(FEW), "", f"{seconds:.4f}", f"{a_block:.2f}", ""))
    return rows


def table(lanes: list[int], rounds: int) -> list[tuple[str, ...]]:
    jax.config.update("jax_enable_x64", True)
    cpu, device = jax.devices("cpu")[0], jax.devices()[0]
    said(f"jax {jax.__version__}, {device.device_kind}, {platform.processor() or 'CPU'}")
    rows = of_c(rounds)
    for one in rows:
        said("   ".join(one))
    for task, f in tasks().items():
        exact = np.asarray(jax.jit(jax.vmap(f))(jax.device_put(drawn(FEW), cpu)))
        rows.append(row(cpu, task, f, drawn(FEW), rounds, exact))
        said("   ".join(rows[-1]))
        for blocks in lanes:
            rows.append(row(device, task, f, drawn(blocks), rounds, exact))
            said("   ".join(rows[-1]))
    return rows


def said(line: str) -> None:
    print(line, flush=True, file=sys.stdout)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--lanes", type=int, nargs="+", default=[FEW, 16384, 131072])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--csv", type=Path, default=HERE / "gpu.csv", help="where the table goes")
    chosen = options.parse_args()
    rows = table(chosen.lanes, chosen.rounds)
    with chosen.csv.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
