"""Recovery of known parameters: eight machines, seven imperfections, many seeds.

`python experiments/recovery/run.py` adds missing runs to those in `build/`, and writes `rows.csv`
and its table in the README.
"""

import argparse
import csv
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import frictax as fx

HERE = Path(__file__).resolve().parent
COLUMNS = ("seed", "contestant", "parameter", "error", "standard_error", "lower", "upper", "codes")


def runs(folder: Path, machine: str, imperfection: str, seeds: int, end: float) -> str:
    """Add runs to the file of a machine until all seeds have a run or the time is `end`. Return a
    text on the progress. The file has (value - truth)/truth of estimates and intervals.
    """
    import jax

    jax.config.update("jax_enable_x64", True)
    import numpy as np
    from eight_machines import CASES
    from finders import FINDERS, fitted
    from imperfections import measured

    file = folder / f"{machine} {imperfection}.csv"
    done = {int(row["seed"]) for row in read(file)} if file.exists() else set()
    todo = [seed for seed in range(seeds) if seed not in done]
    if not todo:
        return f"{machine}, {imperfection}: complete"
    begin, case = time.monotonic(), CASES[machine]()
    truth, made = np.array(list(case.truth.values())), 0
    with file.open("a", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        if not done:
            writer.writerow(COLUMNS)
        for seed in todo:
            if time.time() > end:
                break
            data = case.data(measured(case, imperfection, seed))
            found = fitted(case, data)
            for name, finder in FINDERS.items():
                answer = finder(case, data, found)
                table = np.stack([answer.value, answer.error, answer.lower, answer.upper])
                table[[0, 2, 3]] -= truth
                for path, numbers in zip(case.truth, (table / truth).T, strict=True):
                    shown = [f"{x:.5g}" for x in numbers]
                    writer.writerow([seed, name, path, *shown, " ".join(answer.codes)])
            out.flush()
            made += 1
    seconds = time.monotonic() - begin
    return f"{machine}, {imperfection}: {made} of {len(todo)} seeds in {seconds:.0f} s"


def read(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8") as table:
        return list(csv.DictReader(table))


def ready() -> None:
    """Set up a process before jax computes anything."""
    fx.fast_loops()


def main() -> None:
    from eight_machines import CASES
    from imperfections import IMPERFECTIONS
    from scores import publish

    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--machines", nargs="+", choices=CASES, default=list(CASES))
    options.add_argument(
        "--imperfections", nargs="+", choices=IMPERFECTIONS, default=list(IMPERFECTIONS)
    )
    options.add_argument("--seeds", type=int, default=100)
    options.add_argument("--minutes", type=float, default=60.0, help="then it ends, to be resumed")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--runs", type=Path, default=HERE / "build", help="where runs are kept")
    options.add_argument("--rows", type=Path, default=HERE / "rows.csv", help="their scores")
    options.add_argument("--readme", type=Path, default=HERE / "README.md", help="with the table")
    chosen = options.parse_args()
    chosen.runs.mkdir(parents=True, exist_ok=True)
    begin, end = time.monotonic(), time.time() + 60.0 * chosen.minutes
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(chosen.processes, spawn, ready) as pool:
        jobs = [
            pool.submit(runs, chosen.runs, machine, imperfection, chosen.seeds, end)
            for machine in chosen.machines
            for imperfection in chosen.imperfections
        ]
        for job in as_completed(jobs):
            print(job.result(), flush=True)
    publish(chosen.runs, chosen.rows, chosen.readme)
    print(f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
