"""How fast do three clutches run that lock against each other, and their Jacobian by 13 parameters?

Modelica.Mechanics.Rotational.Examples.CoupledClutches, 1.5 s, 9 mode changes, at rtol 1e-8: the
states at the end and the times of the mode changes, then their derivatives by mu, peak and fn_max
of each clutch and the four inertias, forward mode. Times are medians of calls that take turns; the
first call is tracing and compilation, once with an empty and once with a filled compilation cache,
and last reading and calling a compiled program that another process saved, each in a process of its
own after its imports.

    python experiments/benchmarks/coupled.py [--rounds 50]
"""

import argparse
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)

import diffrax  # noqa: E402

import frictax as fx  # noqa: E402

fx.fast_loops()

import jax.numpy as jnp  # noqa: E402
from jax.experimental import serialize_executable  # noqa: E402

# A program in C for this very problem takes 24 microseconds on the machine on which the aim was set
# (its P1 there: 57).
NAMES = [
    *(f"clutch{i}.{name}" for i in (1, 2, 3) for name in ("mu_pos.f", "peak", "fn_max")),
    *(f"J{i}.J" for i in (1, 2, 3, 4)),
]
START = jnp.array([*(0.5, 1.1, 20.0) * 3, *(1.0,) * 4])


def coupled_clutches() -> fx.Mechanism:
    """The drive train of the Modelica Standard Library."""
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
ENGINE = fx.Adaptive(rtol=1e-8, atol=1e-10, adjoint=diffrax.ForwardMode())


def outcome(x: jax.Array) -> jax.Array:
    """States at the end, and the times of the mode changes."""
    values = {
        name: value[None] if name.endswith(".f") else value
        for name, value in zip(NAMES, x, strict=True)
    }
    run = fx.simulate(fx.parameters.replace(MACHINE, values), jnp.array([0.0, 1.5]), ENGINE)
    return jnp.concatenate([run.ys[-1], run.events.time[:9]])


TASKS = {"forward": outcome, "13-parameter Jacobian": jax.jacfwd(outcome)}


def first_calls() -> None:
    """Print the seconds that the first call of each takes."""
    for f in TASKS.values():
        begin = time.perf_counter()
        jax.block_until_ready(jax.jit(f)(START))
        print(time.perf_counter() - begin)


def save(folder: Path) -> None:
    """Write each as a compiled program, for this machine and these versions of the packages."""
    for name, f in TASKS.items():
        compiled = jax.jit(f).lower(START).compile()
        (folder / name).write_bytes(pickle.dumps(serialize_executable.serialize(compiled)))


def load(folder: Path) -> None:
    """Print the seconds that it takes to read each and call it."""
    for name in TASKS:
        begin = time.perf_counter()
        compiled = serialize_executable.deserialize_and_load(
            *pickle.loads((folder / name).read_bytes())
        )
        jax.block_until_ready(compiled(START))
        print(time.perf_counter() - begin)


def in_a_process_of_its_own(*arguments: str, **environment: str) -> list[float]:
    """The numbers that this script prints there."""
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        env=os.environ | environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return [float(line) for line in done.stdout.split()]


def main() -> None:
    """Take turns, print medians."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=50)
    for part in ("--first", "--save", "--load"):
        options.add_argument(part, metavar="FOLDER", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.first:
        return first_calls()
    if chosen.save:
        return save(chosen.save)
    if chosen.load:
        return load(chosen.load)
    with tempfile.TemporaryDirectory() as folder:
        cache = {
            "JAX_COMPILATION_CACHE_DIR": folder,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        first = [
            in_a_process_of_its_own("--first", folder, **which) for which in ({}, cache, cache)
        ]
    with tempfile.TemporaryDirectory() as folder:
        in_a_process_of_its_own("--save", folder)
        saved = in_a_process_of_its_own("--load", folder)
    tasks = {name: jax.jit(f) for name, f in TASKS.items()}
    for f in tasks.values():
        jax.block_until_ready(f(START))
    taken: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(chosen.rounds):
        for name, f in tasks.items():
            begin = time.perf_counter()
            jax.block_until_ready(f(START))
            taken[name].append(time.perf_counter() - begin)
    forward = statistics.median(taken["forward"])
    print(
        f"{'':<24}{'microseconds':>14}{'x forward':>11}"
        f"{'first call':>12}{'from cache':>12}{'saved':>9}"
    )
    for i, name in enumerate(tasks):
        median = statistics.median(taken[name])
        seconds = f"{first[0][i]:>10.1f} s{first[2][i]:>10.1f} s{saved[i]:>7.1f} s"
        print(f"{name:<24}{median * 1e6:>14.0f}{median / forward:>11.2f}{seconds}")


if __name__ == "__main__":
    main()
