"""Trajectories of other tools: Dymola and OpenModelica on the Modelica Standard Library's examples
(see CASES.md beside them).
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import frictax as fx
from beside import assert_same_modes, away_from_events, own_changes, run_on, table_of
from machines import (
    REFERENCE,
    brake,
    coupled_clutches,
    spring_pendulum,
    translational_friction,
)


def test_translational_friction_modes_within_1e_5_s_and_states_within_3e_4(
    reference_folder: Path,
) -> None:
    table = table_of(reference_folder / "Translational.Friction.csv")
    run, rows = run_on(translational_friction(), table["time"])
    for part in ("stop1", "stop2", "supportFriction"):
        assert_same_modes(run, table, part, f"{part}.mode", 1e-5)
    # At its stop, at 0.0606 s, stop2 loses its velocity at once: the row before and the row after
    # are both right.
    away = away_from_events(run, 2e-6)
    for part in ("stop1", "stop2", "mass"):
        for variable in ("s", "v"):
            error = np.abs(
                np.asarray(getattr(run[part], variable)) - table[f"{part}.{variable}"][rows]
            )
            assert np.max(error[away]) <= 3e-4, f"{part}.{variable}"


@pytest.mark.slow
def test_translational_brake_stops_at_1_1_s_and_0_6_m_within_1e_9(reference_folder: Path) -> None:
    table = table_of(reference_folder / "Translational.Brake.csv")
    run, rows = run_on(brake(), table["time"])
    for part, mass in (("brake", "mass1"), ("brake1", "mass2")):
        assert_same_modes(run, table, part, f"{part}.mode", 1e-9)
        assert abs(own_changes(run, part)[-1][0] - 1.1) <= 1e-9
        assert abs(float(run[mass].s[-1]) - 0.6) <= 1e-9
        assert np.max(np.abs(np.asarray(run[mass].s) - table[f"{mass}.s"][rows])) <= 1e-9


@pytest.mark.slow
def test_translational_brake_has_the_full_files_flanges_f_sa_locked_free_and_f0_max(
    reference_folder: Path,
) -> None:
    table = table_of(reference_folder / "Translational.Brake.full.csv")
    run, rows = run_on(brake(), table["time"])
    within = dict.fromkeys(("f", "locked", "free", "f0", "f0_max", "fn", "a", "mode"), 1e-9)
    # The file holds flanges, relative to the support, in single precision.
    within |= {"s_a": 1e-7, "s_b": 1e-7}
    for part in ("brake", "brake1"):
        for variable, limit in within.items():
            error = np.abs(
                np.asarray(getattr(run[part], variable), dtype=float)
                - table[f"{part}.{variable}"][rows]
            )
            assert np.max(error) <= limit, f"{part}.{variable}"
        # While the brake is free the file holds sa = 1 although a = 0, against the element's own
        # equation a = sa.
        engaged = table[f"{part}.free"][rows] == 0
        assert np.max(np.abs(np.asarray(run[part].sa) - table[f"{part}.sa"][rows])[engaged]) <= 1e-9


@pytest.mark.slow
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
    table = table_of(reference_folder / f"SpringPendulum.{name}.csv")
    run, rows = run_on(build(), table["time"])
    assert_same_modes(run, table, "mass", "mass.mode", 1e-7)
    away = away_from_events(run, 1e-5)
    limits = {
        "s": 3e-7,
        "v": 1e-6,
        "f": 1e-6,
        "sa": 1e-6,
        "f0": 1e-12,
        "f0_max": 1e-12,
        "lossPower": 1e-6,
        "locked": 0.0,
    }
    for variable, limit in limits.items():
        got = np.asarray(getattr(run["mass"], variable), dtype=float)
        error = np.abs(got - table[f"mass.{variable}"][rows])
        assert np.max(error[away]) <= limit, variable


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "build", "parts"),
    [
        ("Translational.Friction", translational_friction, ("stop1", "stop2", "supportFriction")),
        ("SpringPendulum.base", spring_pendulum, ("mass",)),
        ("SpringPendulum.smax1p2", lambda: spring_pendulum(smax=1.2), ("mass",)),
        ("Rotational.CoupledClutches", coupled_clutches, ("clutch1", "clutch2", "clutch3")),
    ],
)
def test_start_flags_are_true_where_the_library_s_are_at_the_time_of_the_event(
    reference_folder: Path, file: str, build: Callable[[], fx.Mechanism], parts: tuple[str, ...]
) -> None:
    """The library keeps a flag true until there is a speed, and does not report a turn without a
    stop. A run asked at its events has these flags there, and others at events alone.
    """
    table = table_of(reference_folder / f"{file}.csv")
    run, _ = run_on(build(), table["time"])
    events = run.events
    # A sample at the last digit of a time may be before the event of another run.
    times = np.asarray(events.time[: int(events.count)]) + 1e-13
    # As many samples as before: the same program
    others = np.linspace(0.0, table["time"][-1], run.ts.size - times.size)
    run = fx.simulate(build(), np.sort(np.concatenate([others, times])), REFERENCE)
    for part in parts:
        for flag, sign in (("startForward", 1), ("startBackward", -1)):
            on = np.flatnonzero(table[f"{part}.{flag}"])
            theirs = table["time"][on[np.diff(on, prepend=-9) > 1]]
            ours = np.asarray(run.ts)[np.asarray(getattr(run[part], flag))]
            assert all(np.min(np.abs(ours - t)) < 1e-5 for t in theirs), (part, flag)
            turns = [
                float(t)
                for t, i, old, new in zip(
                    times, events.part, events.mode_before, events.mode_after, strict=False
                )
                if events.names[int(i)] == part and int(new) == sign and int(old) in (0, -sign)
            ]
            assert all(min(abs(t - turn) for turn in turns) < 1e-9 for t in ours), (part, flag)
