"""Trajectories of other tools, and runs beside them."""

import csv
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import frictax as fx
from machines import REFERENCE


def table_of(path: Path) -> dict[str, np.ndarray]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    values = np.array(
        [[{"True": 1.0, "False": 0.0}.get(x, x) for x in row] for row in rows], dtype=float
    )
    return dict(zip(header, values.T, strict=True))


def changes(time: np.ndarray, mode: np.ndarray) -> list[tuple[float, int]]:
    """The modes with the times at which they begin, without those that last no time."""
    begins = [0, *(np.flatnonzero(np.diff(mode)) + 1)]
    ends = [*begins[1:], len(mode) - 1]
    lasting = [
        (float(time[i]), int(mode[i]))
        for i, j in zip(begins, ends, strict=True)
        if time[j] - time[i] > 1e-8
    ]
    return [c for k, c in enumerate(lasting) if k == 0 or c[1] != lasting[k - 1][1]]


def own_changes(run: fx.Trajectory, part: str) -> list[tuple[float, int]]:
    events = run.events
    # A breakaway at the very start shows in the first sample.
    own = [
        k
        for k in range(int(events.count))
        if events.names[int(events.part[k])] == part and events.time[k] > run.ts[0]
    ]
    return [(float(run.ts[0]), int(run[part].mode[0]))] + [
        (float(events.time[k]), int(events.mode_after[k])) for k in own
    ]


def run_on(machine: fx.Mechanism, time: np.ndarray) -> tuple[fx.Trajectory, np.ndarray]:
    """A run on the reference's times, and the row of each time after its events."""
    last = np.append(np.diff(time) > 1e-12, True)
    return fx.simulate(machine, jnp.asarray(time[last]), REFERENCE), np.flatnonzero(last)


def assert_same_modes(
    run: fx.Trajectory, table: dict[str, np.ndarray], part: str, column: str, within: float
) -> None:
    expected, got = changes(table["time"], table[column]), own_changes(run, part)
    assert [mode for _, mode in got] == [mode for _, mode in expected]
    assert max(abs(a - b) for (a, _), (b, _) in zip(got, expected, strict=True)) <= within


def away_from_events(run: fx.Trajectory, distance: float) -> np.ndarray:
    """The samples that are no event rows, nor so near to one that the two tools' events may lie on
    either side.
    """
    events = np.asarray(run.events.time[: int(run.events.count)])
    return (
        np.min(np.abs(np.asarray(run.ts)[:, None] - events[None, :]), axis=1, initial=np.inf)
        > distance
    )
