"""Six machines have one of seven terms that the fitted machine lacks: which term is named?

`python experiments/recovery/missing_terms.py` adds seeds to `missing_terms.csv` up to the given
number, and writes its table at the end of the README.
"""

import argparse
import csv
import dataclasses
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from run import HERE, ready

RIGHT, OTHER = "none", "none, other objective"  # cells without a missing term
LARGE, TIMES = "white, term 8 times as large", 8.0
TABLE = "<!-- table of missing terms: made by missing_terms.py -->"

# Term -> parts of right names. Names that the record cannot separate from the first also count.
CALLED = {
    "drag": ("drag over v^2",),
    "offset": ("constant force",),
    "ripple": ("ripple",),
    "delay": ("delay of input",),
    "other way": ("differs by direction",),
    "Stribeck": ("Stribeck",),
    "series stiffness": ("compliance", "stiffness in series"),
}


@dataclasses.dataclass
class Cell:
    """Counts for a machine, term and noise. In `seeds` records the first name is `right` or
    `wrong`, or `nothing` is named; `more` have several names. `seconds`: of all calls.
    """

    machine: str
    term: str
    noise: str
    seeds: int = 0
    right: int = 0
    wrong: int = 0
    nothing: int = 0
    more: int = 0
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str, str]:
        return self.machine, self.term, self.noise


def tried(cell: Cell, seeds: int, end: float) -> Cell:
    """Add records to `cell` until it has `seeds` records or `time.time()` exceeds `end`."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from six_machines import RIGS, fitted, recorded

    rig = RIGS[cell.machine]()
    times, noise = (TIMES, "white") if cell.noise == LARGE else (1.0, cell.noise)
    lacks = "" if cell.term in (RIGHT, OTHER) else cell.term
    size = times * rig.sizes.get(lacks, 0.0)
    while cell.seeds < seeds and time.time() < end:
        record = recorded(rig, lacks, noise, cell.seeds, size)
        found = fitted(rig, record, other=cell.term == OTHER)
        begin = time.monotonic()
        table = found.missing()
        cell.seconds = round(cell.seconds + time.monotonic() - begin, 2)
        names = (table.found[0].name, *table.found[0].alike) if table.found else ()
        is_right = any(called in name for called in CALLED.get(lacks, ()) for name in names)
        cell.right += is_right
        cell.wrong += bool(names) and not is_right
        cell.nothing += not names
        cell.more += len(table.found) > 1
        cell.seeds += 1
    return cell


def read(file: Path) -> dict[tuple[str, str, str], Cell]:
    if not file.exists():
        return {}
    with file.open(encoding="utf-8") as table:
        rows = [[row[f.name] for f in dataclasses.fields(Cell)] for row in csv.DictReader(table)]
    cells = [
        Cell(machine, term, noise, *map(int, counts), seconds=float(seconds))
        for machine, term, noise, *counts, seconds in rows
    ]
    return {cell.key: cell for cell in cells}


def write(file: Path, cells: dict[tuple[str, str, str], Cell]) -> None:
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([f.name for f in dataclasses.fields(Cell)])
        writer.writerows(dataclasses.astuple(cell) for cell in cells.values() if cell.seeds)


def main() -> None:
    from six_machines import NOISES, RIGS, TERMS

    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    terms, noises = (*TERMS, RIGHT, OTHER), (*NOISES, LARGE)
    options.add_argument("--machines", nargs="+", choices=RIGS, default=list(RIGS))
    options.add_argument("--terms", nargs="+", choices=terms, default=terms)
    options.add_argument("--noises", nargs="+", choices=noises, default=noises)
    options.add_argument("--seeds", type=int, default=50)
    options.add_argument("--minutes", type=float, default=150.0, help="then it ends, to be resumed")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--rows", type=Path, default=HERE / "missing_terms.csv")
    options.add_argument("--readme", type=Path, default=HERE / "README.md", help="with the table")
    chosen = options.parse_args()
    begin, end = time.monotonic(), time.time() + 60.0 * chosen.minutes
    cells = read(chosen.rows)
    todo = [
        cells.get((machine, term, noise), Cell(machine, term, noise))
        for machine in chosen.machines
        for term in chosen.terms
        for noise in chosen.noises
        if not (noise == LARGE and term in (RIGHT, OTHER))
    ]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(chosen.processes, spawn, ready) as pool:
        jobs = [pool.submit(tried, c, chosen.seeds, end) for c in todo if c.seeds < chosen.seeds]
        for job in as_completed(jobs):
            cell = job.result()
            cells[cell.key] = cell
            write(chosen.rows, cells)
            print(cell, flush=True)
    publish(cells, chosen.readme)
    print(f"{time.monotonic() - begin:.0f} s")


def publish(cells: dict[tuple[str, str, str], Cell], readme: Path) -> None:
    """Write the table into the README."""
    whole = readme.read_text(encoding="utf-8")
    before, _, _ = whole.partition(TABLE)
    readme.write_text(before + TABLE + "\n" + "\n".join(table(cells)) + "\n", encoding="utf-8")


def table(cells: dict[tuple[str, str, str], Cell]) -> list[str]:
    """Return table rows for each machine and term, and for the sum of all machines. Each row has
    the percentages right / wrong for each noise, and the smallest and largest number of records.
    """
    from six_machines import NOISES, RIGS, TERMS

    noises = (*NOISES, LARGE)
    lines = [
        f"| machine | term | {' | '.join(noises)} | records |",
        f"|---|---|{'---|' * (len(noises) + 1)}",
    ]
    for machine in (*RIGS, "**all**"):
        of = RIGS if machine not in RIGS else (machine,)
        for term in (*TERMS, RIGHT, OTHER):
            row = [_together([cells.get((m, term, noise)) for m in of]) for noise in noises]
            if any(row):
                shown = " | ".join("" if cell is None else _shown(cell) for cell in row)
                seeds = sorted({cell.seeds for cell in row if cell is not None})
                records = " to ".join(str(n) for n in dict.fromkeys((seeds[0], seeds[-1])))
                lines.append(f"| {machine} | {term} | {shown} | {records} |")
    return lines


def _together(cells: Sequence[Cell | None]) -> Cell | None:
    """Return the sums of the counts of all cells; None without a cell."""
    known = [cell for cell in cells if cell is not None]
    if not known:
        return None
    counts = [f.name for f in dataclasses.fields(Cell)[3:]]
    return dataclasses.replace(known[0], **{n: sum(getattr(c, n) for c in known) for n in counts})


def _shown(cell: Cell) -> str:
    wrong = 100 * cell.wrong / cell.seeds
    if cell.term in (RIGHT, OTHER):
        return f"{wrong:.0f}"
    return f"{100 * cell.right / cell.seeds:.0f} / {wrong:.0f}"


if __name__ == "__main__":
    main()
