"""How much time does the first result need in addition to `import jax`?

Whole processes run the first examples of the README, with `fx.fast_loops()`. One simulates a block
and prints its speed, modes and events. Two others differentiate the final position with respect to
the breakaway factor, with `jax.jacfwd` and with `jax.grad`. The first process of each kind has an
empty cache and compiles all programs. Further processes load the programs that frictax saved. In
each round, `import jax` alone and derivatives of a product of two numbers, without frictax, also
run. The table has medians of wall-clock time and of processor time (user and system), which depends
less on other programs of the computer.

    python experiments/benchmarks/first_answer.py [--rounds 9] [--csv FILE]
"""

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
COLUMNS = ("task", "process", "seconds", "beyond_import_jax", "processor_seconds", "beyond")

BLOCK = """
import jax
import jax.numpy as jnp
import frictax as fx

jax.config.update("jax_enable_x64", True)
fx.fast_loops()
block = fx.Mechanism(
    mass=fx.Mass(m=1.0, s=0.0, v=0.0),
    friction=fx.SupportFriction(
        "mass", f_pos=fx.Stribeck(F_prop=2.0, F_Coulomb=7.0, F_Stribeck=4.0, fexp=3.0), peak=1.1
    ),
    drive=fx.Force("mass", fx.Sine(amplitude=18.0, f=0.25)),
)
"""

DERIVED = """
import equinox as eqx


def final_position(peak):
    changed = eqx.tree_at(lambda b: b["friction"].peak, block, peak)
    return fx.simulate(changed, ts=jnp.array([0.0, 8.0]))["mass"].s[-1]
"""

# In this script a product of two numbers replaces the simulation: the time without frictax.
PRODUCT = """
import jax
import jax.numpy as jnp
import equinox as eqx

jax.config.update("jax_enable_x64", True)


class Factor(eqx.Module):
    peak: float


factor = Factor(1.0)


def product(peak):
    changed = eqx.tree_at(lambda f: f.peak, factor, peak)
    return (changed.peak * jnp.array([0.0, 8.0]))[-1]
"""

SCRIPTS = {
    "import jax": "import jax",
    "simulate": f"""{BLOCK}
run = fx.simulate(block, ts=jnp.linspace(0.0, 8.0, 801))
print(run["mass"].v[-1], run["friction"].mode[::100], run.events.time[: run.events.count])
""",
    "jacfwd": f"{BLOCK}{DERIVED}\nprint(jax.jacfwd(final_position)(1.1))\n",
    "grad": f"{BLOCK}{DERIVED}\nprint(jax.grad(final_position)(1.1))\n",
    "jacfwd of a product": f"{PRODUCT}\nprint(jax.jacfwd(product)(1.1))\n",
    "grad of a product": f"{PRODUCT}\nprint(jax.grad(product)(1.1))\n",
}
FLOOR = ("import jax", "jacfwd of a product", "grad of a product")  # scripts without frictax


def process(script: str, folder: Path) -> tuple[float, float]:
    """Return wall-clock and processor time [s] of a new interpreter that runs `script`."""
    # The environment is that of a user's shell: no XLA flags, and Python saves byte code.
    left_out = ("XLA_FLAGS", "PYTHONDONTWRITEBYTECODE", "JAX_COMPILATION_CACHE_DIR")
    environment = {k: v for k, v in os.environ.items() if k not in left_out}
    before, begin = os.times(), time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", script],
        env=environment | {"FRICTAX_CACHE": str(folder)},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    seconds, after = time.perf_counter() - begin, os.times()
    used = after.children_user + after.children_system
    return seconds, used - before.children_user - before.children_system


def main() -> None:
    """Run all tasks in each round, and print the medians of their times."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--csv", type=Path, default=HERE / "first_answer.csv")
    chosen = options.parse_args()
    taken: dict[tuple[str, str], list[tuple[float, float]]] = {}
    process(SCRIPTS["import jax"], HERE)  # fills the disk cache of the system
    with tempfile.TemporaryDirectory() as folder:
        for i in range(chosen.rounds + 1):
            for name, script in SCRIPTS.items():
                kind = "any" if name in FLOOR else "second" if i else "first"
                taken.setdefault((name, kind), []).append(process(script, Path(folder) / name))
    alone = [statistics.median(column) for column in zip(*taken["import jax", "any"], strict=True)]
    rows = []
    for (name, kind), seconds in taken.items():
        wall, used = (statistics.median(column) for column in zip(*seconds, strict=True))
        numbers = wall, wall - alone[0], used, used - alone[1]
        rows.append((name, kind, *(f"{x:.2f}" for x in numbers)))
    with chosen.csv.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    print(f"{'':<24}{'seconds':>10}{'beyond':>10}{'of processors':>16}{'beyond':>10}")
    for name, kind, *numbers in rows:
        widths = 10, 10, 16, 10
        columns = "".join(f"{x:>{w}}" for x, w in zip(numbers, widths, strict=True))
        print(f"{f'{name}, {kind}':<24}{columns}")


if __name__ == "__main__":
    main()
