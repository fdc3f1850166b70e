"""How much time and memory does reading a text file need, compared with `pandas.read_csv`?

pandas, `Record.from_csv` and the first step of `frictax init` read a million rows of time, current
and angle alternately. Compare ratios of the medians. With `--large`, each reader also reads ten
million rows in a new process, and the script prints the peak memory.

    python experiments/benchmarks/reading.py [--rounds 9] [--large]
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

READ = {
    "pandas.read_csv": "import pandas as pd; read = lambda path: pd.read_csv(path)",
    "Record.from_csv": (
        "import frictax as fx; read = lambda path: fx.Record.from_csv(path, time='t',"
        " inputs={'drive': 'current'}, outputs={'rotor.phi': 'angle'})"
    ),
    "shape_of (init)": (
        "from frictax.problems.starting.shape import shape_of; read = lambda path: shape_of(path)"
    ),
}
PEAK = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)"


def main() -> None:
    """Run the readers alternately, and print medians and their ratios."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--large", action="store_true", help="ten million rows, peak memory")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.csv"
        write(file, 1_000_000)
        times = turns(file, chosen.rounds)
        base = times["pandas.read_csv"]
        for name, seconds in times.items():
            print(f"{name:<18}{seconds:8.3f} s   {seconds / base:6.2f} x pandas")
        if chosen.large:
            write(file, 10_000_000)
            for name, code in READ.items():
                whole = f"{code}; read({str(file)!r}); {PEAK}"
                done = subprocess.run(
                    [sys.executable, "-c", whole], check=True, capture_output=True, text=True
                )
                print(f"{name:<18}{float(done.stdout):8.2f} GB at most, ten million rows")


def turns(file: Path, rounds: int) -> dict[str, float]:
    """Return the median time of each reader [s], without the first round."""
    readers = dict[str, Callable[[Path], object]]()
    for name, code in READ.items():
        names = dict[str, Callable[[Path], object]]()
        exec(code, names)
        readers[name] = names["read"]
    times: dict[str, list[float]] = {name: [] for name in readers}
    for i in range(rounds + 1):
        for name, read in readers.items():
            begin = time.perf_counter()
            read(file)
            if i:
                times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(taken) for name, taken in times.items()}


def write(file: Path, rows: int) -> None:
    """Write a record of a rotor with `rows` rows, sampled at 250 kHz."""
    with file.open("w", encoding="utf-8") as out:
        out.write("t,current,angle\n")
        for first in range(0, rows, 100_000):
            t = (first + np.arange(100_000)) / 250_000
            table = np.stack([t, 0.4 * np.sin(6 * t), 50 * np.cos(6 * t)], axis=1)
            np.savetxt(out, table, fmt=["%.6f", "%.4f", "%.3f"], delimiter=",")


if __name__ == "__main__":
    main()
