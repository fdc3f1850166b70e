"""How long does `frictax identify` take, and how much of this time is compilation?

Each process identifies the problem of a folder and builds the texts of its results. The first
process has an empty compilation cache, and the second loads the programs of the first. Times of
tracing, lowering and compiling are JAX's own figures, summed over threads. On two cores they can
exceed the wall-clock time.

    python experiments/benchmarks/identify_process.py [identification/emps] [--rounds 3]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import p4

ROOT = Path(__file__).resolve().parents[2]
STEPS = {
    "jaxpr_trace_duration": "tracing",
    "jaxpr_to_mlir_module_duration": "lowering",
    "backend_compile_duration": "compiling or reading",
}
SCRIPT = """
import collections, json, sys
import frictax as fx

fx.fast_loops()
import jax

jax.config.update("jax_enable_x64", True)
spent = collections.Counter()
jax.monitoring.register_event_duration_secs_listener(
    lambda name, seconds, **_: spent.update({name.rpartition("/")[2]: seconds})
)
from frictax.problems import identify, result_texts

result_texts(identify(sys.argv[1], allow_code=True))
print(json.dumps(spent))
"""


def process(problem: Path, cache: Path) -> dict[str, float]:
    """Return the time [s] of the whole process and of each of the `STEPS`."""
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"} | {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(problem)],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    spent = json.loads(done.stdout.splitlines()[-1])
    return {
        "in all": time.perf_counter() - begin,
        **{says: spent.get(name, 0.0) for name, says in STEPS.items()},
    }


def main() -> None:
    """Run both processes in each round, and print the medians of their times."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("problem", type=Path, nargs="?", default=ROOT / "identification" / "emps")
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    taken: dict[str, list[dict[str, float]]] = {"empty cache": [], "filled cache": []}
    with tempfile.TemporaryDirectory() as folder:
        for i in range(given.rounds):
            for rows in taken.values():  # The process with the empty cache is first.
                rows.append(process(given.problem, Path(folder) / f"cache{i}"))
    print(f"P4 in C took {1e3 * p4.c_floor('C')[0].seconds():.2f} ms meanwhile")
    names = ["in all", *STEPS.values()]
    print(f"{'seconds':<16}" + "".join(f"{name:>22}" for name in names))
    for name, rows in taken.items():
        print(
            f"{name:<16}"
            + "".join(f"{statistics.median(row[n] for row in rows):22.1f}" for n in names)
        )


if __name__ == "__main__":
    main()
