"""What does `import frictax` cost beyond `import jax`?

Whole processes, started in turn; the ratios of the medians count. The first start of each, which
fills the disk's cache and writes byte code, is not counted.

    python experiments/benchmarks/import_time.py [--rounds 11]
"""

import argparse
import statistics
import subprocess
import sys
import time


def seconds(code: str) -> float:
    """Wall-clock time of a new interpreter that runs `code` [s]."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - begin


def main() -> None:
    """Take turns, print medians and their ratios."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=11)
    # frictax imports each name when it is first used: the last line is what a first model costs on
    # top.
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
