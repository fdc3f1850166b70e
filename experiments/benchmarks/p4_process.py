"""How long does a fit of a record take as a whole process in the shell?

In each process Python starts, imports frictax, and reads time, force and speed from a CSV file with
2001 rows (problem P4, see p4.py). Then it fits four friction parameters and prints them. In each
round the first process has an empty compilation cache. The second process loads the programs of the
first (from JAX's persistent cache, and from that of frictax in the same folder). Both run with
optimised programs, and with `fx.fast_loops(once=True)`. The results are medians over the rounds.

    python experiments/benchmarks/p4_process.py [--rounds 5]
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import p4

# A typical script of a user. It prints the parameters, then the time of the imports and the time of
# the rest [s].
SCRIPT = """
import sys
import time

begin = time.perf_counter()
import jax

jax.config.update("jax_enable_x64", True)

import numpy as np

import frictax as fx

fx.fast_loops(once=sys.argv[2] == "once")
law = fx.Stribeck(F_Coulomb=1.3, F_prop=0.14, F_Stribeck=0.28, fexp=6.5)
imported = time.perf_counter()
ts, u, v = np.loadtxt(sys.argv[1], delimiter=",", skiprows=1, unpack=True)
block = fx.Mechanism(
    mass=fx.Mass(m=1.0),
    friction=fx.SupportFriction("mass", f_pos=law, peak=1.0),
    drive=fx.Force("mass", fx.Sampled(ts, u)),
)
record = fx.Record(ts, inputs={"drive": u}, outputs={"mass.v": v})
found = fx.fit(block, record, free=["friction.f_pos"], objective=fx.FreeRun())
names = ("F_Coulomb", "F_prop", "F_Stribeck", "fexp")
print(*(found.values[f"friction.f_pos.{name}"] for name in names))
print(imported - begin, time.perf_counter() - imported)
"""


def process(record: Path, cache: Path, how: str) -> tuple[np.ndarray, tuple[float, float, float]]:
    """Return the parameters that one process finds, and three times [s]: the whole process, the
    imports, and the rest of the script.
    """
    # The environment is that of a user's shell: no XLA flags, and Python saves byte code.
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("XLA_FLAGS", "PYTHONDONTWRITEBYTECODE")
    } | {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(record), how],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    total = time.perf_counter() - begin
    parameters, (imports, rest) = (
        np.array(line.split(), float) for line in done.stdout.splitlines()
    )
    return parameters, (total, float(imports), float(rest))


def main() -> None:
    """Run all processes in each round, and print the medians of their times."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=5)
    ways = [
        (how, cache) for how in ("optimised", "once") for cache in ("empty cache", "filled cache")
    ]
    taken: dict[tuple[str, str], list[tuple[float, float, float]]] = {way: [] for way in ways}
    floor, floors = p4.c_floor("C")[0], []
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.csv"
        np.savetxt(
            record,
            np.stack([p4.TIMES, p4.FORCE, p4.speeds()], 1),
            "%.12g",
            ",",
            header="time,u,v",
            comments="",
        )
        for i in range(options.parse_args().rounds):
            for (how, _), seconds in taken.items():  # The process with the empty cache is first.
                parameters, times = process(record, Path(folder) / f"{how}{i}", how)
                seconds.append(times)
                floors.append(floor.seconds())
    print(
        f"F_Coulomb, F_prop, F_Stribeck, fexp: {parameters}; from the optimum:"
        f" {np.max(np.abs(parameters / p4.optimum() - 1)):.1e}"
    )
    low, middle, high = 1e3 * np.quantile(floors, (0.0, 0.5, 1.0))
    print(f"P4 in C took {low:.2f} to {high:.2f} ms meanwhile, in the median {middle:.2f} ms")
    print(f"{'':<24}{'in all':>10}{'imports':>10}{'the rest':>10}")
    for (how, cache), seconds in taken.items():
        print(
            f"{f'{how}, {cache}':<24}"
            + "".join(
                f"{statistics.median(column):>8.2f} s" for column in zip(*seconds, strict=True)
            )
        )


if __name__ == "__main__":
    main()
