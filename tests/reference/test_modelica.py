"""Trajectories of other tools: Dymola and OpenModelica on the Modelica Standard Library's examples (see CASES.md beside them)."""

import csv
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from machines import REFERENCE, brake, spring_pendulum, translational_friction


def _table(path: Path) -> dict[str, np.ndarray]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    values = np.array([[{"True": 1.0, "False": 0.0}.get(x, x) for x in row] for row in rows], dtype=float)
    return dict(zip(header, values.T, strict=True))


def _changes(time: np.ndarray, mode: np.ndarray) -> list[tuple[float, int]]:
    """The modes with the times at which they begin, without those that last no time."""
    begins = [0, *(np.flatnonzero(np.diff(mode)) + 1)]
    ends = [*begins[1:], len(mode) - 1]
    lasting = [(float(time[i]), int(mode[i])) for i, j in zip(begins, ends, strict=True) if time[j] - time[i] > 1e-8]
    return [c for k, c in enumerate(lasting) if k == 0 or c[1] != lasting[k - 1][1]]


def _own_changes(run: fx.Trajectory, part: str) -> list[tuple[float, int]]:
    events = run.events
    own = [k for k in range(int(events.count)) if events.names[int(events.part[k])] == part]
    return [(float(run.ts[0]), int(run[part].mode[0]))] + [(float(events.time[k]), int(events.mode_after[k])) for k in own]


def _run(machine: fx.Mechanism, time: np.ndarray) -> tuple[fx.Trajectory, np.ndarray]:
    """A run on the reference's times, and the row of each time after its events."""
    last = np.append(np.diff(time) > 1e-12, True)
    return fx.simulate(machine, jnp.asarray(time[last]), REFERENCE), np.flatnonzero(last)


def _assert_same_modes(run: fx.Trajectory, table: dict[str, np.ndarray], part: str, column: str, within: float) -> None:
    expected, got = _changes(table["time"], table[column]), _own_changes(run, part)
    assert [mode for _, mode in got] == [mode for _, mode in expected]
    assert max(abs(a - b) for (a, _), (b, _) in zip(got, expected, strict=True)) <= within


def _away(run: fx.Trajectory, distance: float) -> np.ndarray:
    """The samples that are no event rows, nor so near to one that the two tools' events may lie on either side."""
    events = np.asarray(run.events.time[: int(run.events.count)])
    return np.min(np.abs(np.asarray(run.ts)[:, None] - events[None, :]), axis=1, initial=np.inf) > distance


def test_translational_friction_modes_within_1e_5_s_and_states_within_3e_4(reference_folder: Path) -> None:
    table = _table(reference_folder / "Translational.Friction.csv")
    run, rows = _run(translational_friction(), table["time"])
    for part in ("stop1", "stop2", "supportFriction"):
        _assert_same_modes(run, table, part, f"{part}.mode", 1e-5)
    # At its stop, at 0.0606 s, stop2 loses its velocity at once: the row before and the row after are both right.
    away = _away(run, 2e-6)
    for part in ("stop1", "stop2", "mass"):
        for variable in ("s", "v"):
            error = np.abs(np.asarray(getattr(run[part], variable)) - table[f"{part}.{variable}"][rows])
            assert np.max(error[away]) <= 3e-4, f"{part}.{variable}"


def test_translational_brake_stops_at_1_1_s_and_0_6_m_within_1e_9(reference_folder: Path) -> None:
    table = _table(reference_folder / "Translational.Brake.csv")
    run, rows = _run(brake(), table["time"])
    for part, mass in (("brake", "mass1"), ("brake1", "mass2")):
        _assert_same_modes(run, table, part, f"{part}.mode", 1e-9)
        assert abs(_own_changes(run, part)[-1][0] - 1.1) <= 1e-9
        assert abs(float(run[mass].s[-1]) - 0.6) <= 1e-9
        assert np.max(np.abs(np.asarray(run[mass].s) - table[f"{mass}.s"][rows])) <= 1e-9


def test_translational_brake_has_the_full_files_f_sa_locked_free_and_f0_max(reference_folder: Path) -> None:
    table = _table(reference_folder / "Translational.Brake.full.csv")
    run, rows = _run(brake(), table["time"])
    for part in ("brake", "brake1"):
        for variable in ("f", "locked", "free", "f0", "f0_max", "fn", "a", "mode"):
            error = np.abs(np.asarray(getattr(run[part], variable), dtype=float) - table[f"{part}.{variable}"][rows])
            assert np.max(error) <= 1e-9, f"{part}.{variable}"
        # While the brake is free the file holds sa = 1 although a = 0, against the element's own equation a = sa.
        engaged = table[f"{part}.free"][rows] == 0
        assert np.max(np.abs(np.asarray(run[part].sa) - table[f"{part}.sa"][rows])[engaged]) <= 1e-9


@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("base", spring_pendulum),
        ("fricScale5", lambda: spring_pendulum(fricScale=5.0)),
        ("smax1p2", lambda: spring_pendulum(smax=1.2)),
    ],
)
def test_spring_pendulum_modes_within_1e_7_s_and_positions_within_3e_7_m(
    reference_folder: Path, name: str, build: Callable[[], fx.Mechanism]
) -> None:
    table = _table(reference_folder / f"SpringPendulum.{name}.csv")
    run, rows = _run(build(), table["time"])
    _assert_same_modes(run, table, "mass", "mass.mode", 1e-7)
    away = _away(run, 1e-5)
    limits = {"s": 3e-7, "v": 1e-6, "f": 1e-6, "sa": 1e-6, "f0": 1e-12, "f0_max": 1e-12, "lossPower": 1e-6, "locked": 0.0}
    for variable, limit in limits.items():
        got = np.asarray(getattr(run["mass"], variable), dtype=float)
        error = np.abs(got - table[f"mass.{variable}"][rows])
        assert np.max(error[away]) <= limit, variable
