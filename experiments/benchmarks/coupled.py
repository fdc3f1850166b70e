"""How fast are a simulation of three coupled clutches and its Jacobian by 13 parameters?

Modelica.Mechanics.Rotational.Examples.CoupledClutches runs for 1.5 s with 9 mode changes, at rtol
1e-8. "forward" computes the final states and the times of the mode changes. The Jacobian has their
derivatives with respect to mu, peak and fn_max of each clutch and to the four inertias, in forward
mode. Times are medians of calls compiled by `jax.jit`. The first call, without `jax.jit`, runs in a
new process after its imports. The first process compiles all programs, and further processes load
them from the cache of frictax.

    python experiments/benchmarks/coupled.py [--rounds 50] [--processes 5]
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import jax

jax.config.update("jax_enable_x64", True)

import frictax as fx  # noqa: E402

fx.fast_loops()

import jax.numpy as jnp  # noqa: E402

# For comparison: a C program for this problem takes 24 microseconds on a computer on which P1 in C
# takes 57 microseconds.
NAMES = [
    *(f"clutch{i}.{name}" for i in (1, 2, 3) for name in ("mu_pos.f", "peak", "fn_max")),
    *(f"J{i}.J" for i in (1, 2, 3, 4)),
]
START = dict(zip(NAMES, (*(0.5, 1.1, 20.0) * 3, *(1.0,) * 4), strict=True))


def coupled_clutches() -> fx.Mechanism:
    """Return the example CoupledClutches of the Modelica Standard Library."""
    presses = (
        fx.Sine(1.0, f=0.2, phase=jnp.pi / 2),
        fx.Step(1.0, startTime=0.4),
        fx.Step(1.0, startTime=0.9),
    )
    clutches = {
        f"clutch{i + 1}": fx.Clutch(
            f"J{i + 1}", f"J{i + 2}", mu_pos=[[0, 0.5]], peak=1.1, fn_max=20.0, f_normalized=press
        )
        for i, press in enumerate(presses)
    }
    wheels = {f"J{i}": fx.Inertia(J=1.0, w=10.0 if i == 1 else 0.0) for i in (1, 2, 3, 4)}
    return fx.Mechanism(**wheels, **clutches, torque=fx.Torque("J1", fx.Sine(10.0, f=5.0)))


MACHINE = coupled_clutches()
ENGINE = fx.Adaptive(rtol=1e-8, atol=1e-10)


def outcome(at: dict[str, jax.Array]) -> jax.Array:
    """Return the final states and the times of the mode changes for the parameters `at`."""
    values = {name: x[None] if name.endswith(".f") else x for name, x in at.items()}
    run = fx.simulate(fx.parameters.replace(MACHINE, values), jnp.array([0.0, 1.5]), ENGINE)
    return jnp.concatenate([run.ys[-1], run.events.time[:9]])


TASKS = {"forward": outcome, "13-parameter Jacobian": jax.jacfwd(outcome)}


def start() -> dict[str, jax.Array]:
    return {name: jnp.asarray(value) for name, value in START.items()}


def first_call(name: str) -> None:
    """Print wall-clock and processor time [s] of the first call of the task `name`."""
    begin, used = time.perf_counter(), time.process_time()
    jax.block_until_ready(TASKS[name](start()))
    print(time.perf_counter() - begin, time.process_time() - used)


def in_a_process_of_its_own(*arguments: str, **environment: str) -> list[float]:
    """Return the numbers that this script prints in a new process, without JAX's own cache."""
    kept = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        env=kept | environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return [float(number) for number in done.stdout.split()]


def main() -> None:
    """Run all tasks in each round, and print the medians of their times."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=50)
    options.add_argument("--processes", type=int, default=5)
    options.add_argument("--first", choices=TASKS, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.first:
        return first_call(chosen.first)
    calls: dict[str, list[list[float]]] = {name: [] for name in TASKS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(1 + chosen.processes):
            for i, name in enumerate(calls):
                kept = {"FRICTAX_CACHE": f"{folder}/{i}"}
                calls[name].append(in_a_process_of_its_own("--first", name, **kept))
    tasks = {name: jax.jit(f) for name, f in TASKS.items()}
    at = start()
    for f in tasks.values():
        jax.block_until_ready(f(at))
    taken: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(chosen.rounds):
        for name, f in tasks.items():
            begin = time.perf_counter()
            jax.block_until_ready(f(at))
            taken[name].append(time.perf_counter() - begin)
    forward = statistics.median(taken["forward"])
    print(f"{'':<24}{'microseconds':>14}{'x forward':>11}{'first process':>24}{'further':>24}")
    for name in tasks:
        median = statistics.median(taken[name])
        further = [statistics.median(column) for column in zip(*calls[name][1:], strict=True)]
        seconds = "".join(
            f"{f'{wall:.2f} s ({used:.2f} s)':>24}" for wall, used in (calls[name][0], further)
        )
        print(f"{name:<24}{median * 1e6:>14.0f}{median / forward:>11.2f}{seconds}")


if __name__ == "__main__":
    main()
