"""How much longer does `import frictax` take than `import jax`?

Whole processes start alternately. Compare ratios of the medians. The first start of each process is
not counted, because it fills the disk cache and writes byte code.

    python experiments/benchmarks/import_time.py [--rounds 11]
"""

import argparse
import statistics
import subprocess
import sys
import time


def seconds(code: str) -> float:
    """Return the wall-clock time of a new interpreter that runs `code` [s]."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - begin


def main() -> None:
    """Run the processes alternately, and print medians and their ratios."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=11)
    # frictax imports the module of a public name at its first use. Therefore the third entry
    # measures the imports that a first model needs.
    codes = ["import jax", "import frictax", "from frictax import Mechanism"]
    times: dict[str, list[float]] = {code: [] for code in codes}
    for i in range(options.parse_args().rounds + 1):
        for code in codes:
            taken = seconds(code)
            if i:
                times[code].append(taken)
    medians = {code: statistics.median(taken) for code, taken in times.items()}
    for code, median in medians.items():
        print(f"{code:<30}{median:8.3f} s   {median / medians['import jax']:6.3f} x import jax")


if __name__ == "__main__":
    main()
