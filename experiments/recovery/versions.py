"""Compare the fits of two versions of frictax, for example before and after a change of the code.

Make the records once, fit the same records with both versions, and compare the results. `OLD` is a
clone of the other version:

    python experiments/recovery/versions.py records records.npz
    PYTHONPATH=OLD/src python experiments/recovery/versions.py fits records.npz old.json
    python experiments/recovery/versions.py fits records.npz new.json
    python experiments/recovery/versions.py compare old.json new.json

A second call of `records` or `fits` adds the entries that the file lacks. The last command lists
each difference, and its exit status is 1 if there is a difference.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from eight_machines import CASES, Taken
from finders import fitted
from imperfections import IMPERFECTIONS, measured

import frictax as fx

LEAST = 1e-6  # [standard errors] larger differences are listed
TABLE = ("value", "standard_error", "lower", "upper")


def make_records(file: Path, machines: list[str], imperfections: list[str]) -> None:
    """Write the records of seed 0 to `file`."""
    arrays = dict(np.load(file)) if file.exists() else {}
    for machine in machines:
        for imperfection in imperfections:
            name = f"{machine}, {imperfection}"
            if f"{name}/t" in arrays:
                continue
            taken = measured(CASES[machine](), imperfection, 0)
            arrays[f"{name}/t"] = taken.t
            for kind in ("inputs", "outputs"):
                arrays |= {f"{name}/{kind}/{k}": x for k, x in getattr(taken, kind).items()}
    np.savez(file, **arrays)


def read_records(file: Path) -> dict[str, Taken]:
    """Return the records in `file` by name, such as "sliding, white"."""
    records: dict[str, Taken] = {}
    for key, x in np.load(file).items():
        name, kind, *channel = key.split("/")
        one = records.setdefault(name, Taken(np.zeros(0), {}, {}))
        if channel:
            getattr(one, kind)[channel[0]] = x
        else:
            records[name] = Taken(x, one.inputs, one.outputs)
    return records


def fit_records(file: Path, out: Path) -> None:
    """Fit each record in `file`, and write estimates, intervals and notices to `out`."""
    print(f"frictax in {Path(fx.__file__).parent}")
    results = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    for name, taken in read_records(file).items():
        if name in results:
            continue
        case = CASES[name.split(",")[0]]()
        found = fitted(case, case.data(taken))
        results[name] = {
            "table": {e.name: [float(getattr(e, key)) for key in TABLE] for e in found.estimates},
            "numbers": {
                "degrees of freedom": float(found.dof),
                "least cost": float(np.min(found.costs)),
                "noise scale": float(found.noise_scale),
            },
            "notices": sorted(" ".join([n.code, n.subject]).strip() for n in found.notices),
        }
        out.write_text(json.dumps(results, indent=1), encoding="utf-8")
        print(f"{name}: {len(found.estimates)} estimates", flush=True)


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return a line for each difference between the results of `fit_records`."""
    lines = [f"{name}: only in one file" for name in sorted(set(old) ^ set(new))]
    for name in old:
        if name not in new:
            continue
        before, after = old[name], new[name]
        if before["table"].keys() != after["table"].keys():
            lines.append(f"{name}: other parameters: {sorted(after['table'])}")
            continue
        for parameter, row in before["table"].items():
            error = row[TABLE.index("standard_error")]
            moved = _distance(row, after["table"][parameter]) / (error if error > 0 else 1.0)
            if not moved <= LEAST:
                lines.append(f"{name}: {parameter} differs by {moved:.2g} standard errors")
        for key, x in before["numbers"].items():
            if not _distance([x], [after["numbers"][key]]) <= LEAST * abs(x):
                lines.append(f"{name}: {key} {x:.9g}, then {after['numbers'][key]:.9g}")
        for code in sorted(set(before["notices"]) ^ set(after["notices"])):
            which = "old" if code in before["notices"] else "new"
            lines.append(f"{name}: notice {code!r} of the {which} version only")
    return lines


def _distance(first: list[float], second: list[float]) -> float:
    """Return the largest difference of two rows: inf if infinite or missing entries differ."""
    a, b = np.array(first), np.array(second)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):  # inf - inf is nan
        return float(np.max(np.where(same, 0.0, np.nan_to_num(np.abs(a - b), nan=np.inf))))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("task", choices=["records", "fits", "compare"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--machines", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument(
        "--imperfections", nargs="+", choices=IMPERFECTIONS, default=list(IMPERFECTIONS)
    )
    given = parser.parse_args()
    if len(given.files) != (1 if given.task == "records" else 2):
        parser.error(f"{given.task} needs other files; see the first lines of this script")
    if given.task == "records":
        make_records(given.files[0], given.machines, given.imperfections)
    elif given.task == "fits":
        fit_records(*given.files)
    else:
        old, new = (json.loads(file.read_text(encoding="utf-8")) for file in given.files)
        lines = differences(old, new)
        print("\n".join([*lines, f"{len(old)} fits, {len(lines)} differences"]))
        sys.exit(bool(lines))


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    fx.fast_loops()
    main()
