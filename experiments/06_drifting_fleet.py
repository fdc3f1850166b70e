"""Five hundred axes are measured each month. Do ten thousand fits find the axes that wear?

Each record lasts 10 s and has its own force. The measured speed has AR(1) noise with coefficient
0.6. Each of the four friction parameters scatters by 8 % between axes. Viscous friction decreases
by 1.5 % per kelvin, and the temperature varies by +-10 K over the year. The lubricant changes each
parameter by 1 % between records, with a correlation time of two months. The Coulomb friction of 25
of the 500 axes grows by 0.4 % a month. For five other axes it is 50 % larger from the beginning.

The script prints the coverage of the 40 000 intervals, and how many axes `fx.drift` reports as
drifting and `fx.population` as outliers, correctly and falsely.

Run: python experiments/06_drifting_fleet.py [--axes 500] [--months 20] [--jobs 2]
(some minutes, 400 MB of disk for a while; prints a table)
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent / "benchmarks"))

from fleet import NAMES, drawn, made

import frictax as fx

WEARS, ODD = 0.004, 1.5  # relative growth of F_Coulomb per month; factor on it for outliers
SEASON, SCATTER, FADES = 10.0, 0.01, 2.0  # seasonal [K]; lubricant: scatter, correlation [months]
BY_HEAT = -0.015  # relative change of viscous friction per kelvin


def fleet(axes: int, months: int, seed: int) -> tuple[np.ndarray, pd.DataFrame]:
    """Return true parameters (axes*months, 4), and machine, date and temperature of each record."""
    rng = np.random.default_rng(seed)
    own = np.repeat(drawn(axes, rng), months, axis=0)
    axis, month = np.repeat(np.arange(axes), months), np.tile(np.arange(months), axes)
    heat = SEASON * np.sin(month / 12 * 2 * np.pi) + rng.standard_normal(axis.size)
    keeps = np.exp(-1.0 / FADES)
    state = rng.standard_normal((axes, months, 4))
    for k in range(1, months):
        state[:, k] = keeps * state[:, k - 1] + np.sqrt(1 - keeps**2) * state[:, k]
    change = SCATTER * state.reshape(-1, 4)
    change[:, NAMES.index("F_prop")] += BY_HEAT * heat
    change[:, NAMES.index("F_Coulomb")] += np.where(wears(axis), WEARS * month, 0.0)
    change[:, NAMES.index("F_Coulomb")] += np.where(is_odd(axis), np.log(ODD), 0.0)
    known = pd.DataFrame(
        {
            "record": [f"r{i:05d}" for i in range(axis.size)],
            "machine": [f"axis {i}" for i in axis],
            "date": pd.Timestamp("2024-01-15") + pd.to_timedelta(30.4 * month, "D"),
            "temperature": 24.0 + heat,
        }
    )
    return own * np.exp(change), known


def wears(axis: np.ndarray) -> np.ndarray:
    """Return for each axis whether it wears. One axis in 20 does."""
    return axis % 20 == 7


def is_odd(axis: np.ndarray) -> np.ndarray:
    """Return for each axis whether it is an outlier. One axis in 100 is."""
    return axis % 100 == 33


def called(names: Sequence[str], right: np.ndarray) -> str:
    """Return a text: how many of the reported `names` are in `right`, and how many are not."""
    named = {int(name.removeprefix("axis ")) for name in names}
    hit = len(named & set(right.tolist()))
    return f"{hit} of {right.size} that are, and {len(named) - hit} that are not"


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--axes", type=int, default=500)
    parser.add_argument("--months", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    truth, known = fleet(given.axes, given.months, given.seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        made(folder, truth, np.random.default_rng(given.seed + 1))
        began = time.perf_counter()
        done = fx.fleet(folder, folder / "records.parquet", jobs=given.jobs, about=known)
        seconds = time.perf_counter() - began
    table, out = done.table, {"records": float(len(truth)), "seconds": seconds}
    print(f"{len(table)} records in {seconds:.0f} s, {np.mean(~table['converged']):.2%} not fitted")
    for k, name in enumerate(NAMES):
        path = f"friction.f_pos.{name}"
        inside = (table[f"{path}.lower"] < truth[:, k]) & (truth[:, k] < table[f"{path}.upper"])
        out[name] = float(np.mean(inside[table["converged"]]))
        print(f"intervals of {name} hold the truth in {out[name]:.1%}")
    axes = np.arange(given.axes)
    path = "friction.f_pos.F_Coulomb"
    drift = fx.drift(table, path, log=[path])
    worn = axes[wears(axes)]
    drifting = drift.drifting["machine"].tolist()
    print(f"called drifting: {called(drifting, worn)}")
    population = fx.population(table)
    odd = axes[is_odd(axes)]
    found = sorted(set(population.outliers["machine"]))
    print(f"called odd: {called(found, odd)}")
    out["drifting, right"] = len({f"axis {i}" for i in worn} & set(drifting)) / worn.size
    out["drifting, wrong"] = len(set(drifting) - {f"axis {i}" for i in worn})
    out["odd, right"] = len({f"axis {i}" for i in odd} & set(found)) / odd.size
    out["odd, wrong"] = len(set(found) - {f"axis {i}" for i in odd})
    print(drift)
    print(population)
    return out


if __name__ == "__main__":
    main()
