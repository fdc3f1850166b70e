"""Six machines, each of which has one term of seven more than it is taken for: which is named?

`python experiments/recovery/missing_terms.py` adds what is missing to the runs in `build/`, and
makes `missing_terms.csv` and a table of the README of them.
"""

import argparse
import csv
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from run import HERE, read, ready

COLUMNS = ("seed", "right", "named", "more", "period", "before", "left", "seconds")
RIGHT, OTHER = "right", "right, other objective"  # records of machines that lack nothing

# What a name must hold to be the right one, of the term or of one that is alike on its record.
CALLED = {
    "drag": "drag over v^2",
    "offset": "constant force",
    "ripple": "ripple",
    "delay": "delay of input",
    "other way": "differs by direction",
    "Stribeck": "Stribeck",
    "series stiffness": "compliance",
}


def runs(folder: Path, machine: str, term: str, noise: str, seeds: int, end: float) -> str:
    """Add runs to the file of a machine until all seeds are there, or the time is over."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from six_machines import PERIOD, RIGS, fitted, recorded

    file = folder / f"missing {machine} {term} {noise}.csv"
    done = {int(row["seed"]) for row in read(file)} if file.exists() else set()
    todo, begin, made = [seed for seed in range(seeds) if seed not in done], time.monotonic(), 0
    if not todo:
        return f"{machine}, {term}, {noise}: complete"
    rig = RIGS[machine]()
    with file.open("a", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        if not done:
            writer.writerow(COLUMNS)
        for seed in todo:
            if time.time() > end:
                break
            record = recorded(rig, "" if term in (RIGHT, OTHER) else term, noise, seed)
            found = fitted(rig, record, other=term == OTHER)
            start = time.monotonic()
            table = found.missing()
            names = [(one.name, *one.alike) for one in table.found]
            is_right = [any(CALLED.get(term, "\n") in x for x in names_of) for names_of in names]
            period = table.found[0].period if table.found else None
            row = (
                seed,
                int(bool(is_right) and is_right[0]),
                names[0][0] if names else "",
                "; ".join(name for name, *_ in names[1:]),
                "" if period is None else f"{period / (PERIOD * rig.travel):.4g}",
                f"{table.misfit:.4g}",
                f"{table.left:.4g}",
                f"{time.monotonic() - start:.2f}",
            )
            writer.writerow(row)
            out.flush()
            made += 1
    seconds = time.monotonic() - begin
    return f"{machine}, {term}, {noise}: {made} of {len(todo)} seeds in {seconds:.0f} s"


def main() -> None:
    from six_machines import NOISES, RIGS, TERMS

    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    terms = (*TERMS, RIGHT, OTHER)
    options.add_argument("--machines", nargs="+", choices=RIGS, default=list(RIGS))
    options.add_argument("--terms", nargs="+", choices=terms, default=terms)
    options.add_argument("--noises", nargs="+", choices=NOISES, default=NOISES)
    options.add_argument("--seeds", type=int, default=50)
    options.add_argument("--minutes", type=float, default=150.0, help="then it ends, to be resumed")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--runs", type=Path, default=HERE / "build", help="where runs are kept")
    chosen = options.parse_args()
    chosen.runs.mkdir(parents=True, exist_ok=True)
    begin, end = time.monotonic(), time.time() + 60.0 * chosen.minutes
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(chosen.processes, spawn, ready) as pool:
        jobs = [
            pool.submit(runs, chosen.runs, machine, term, noise, chosen.seeds, end)
            for machine in chosen.machines
            for term in chosen.terms
            for noise in chosen.noises
        ]
        for job in as_completed(jobs):
            print(job.result(), flush=True)
    print(f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
