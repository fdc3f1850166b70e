"""Clutches, brakes and bearings that lock against each other, beside Dymola's and OpenModelica's
runs of the same models.
"""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from beside import assert_same_modes, away_from_events, own_changes, run_on, table_of
from machines import (
    REFERENCE,
    coupled_clutches,
    four_rotational_elements,
    freewheel,
    lossy_gear,
    one_way_clutch,
    rotational_friction,
)


def _assert_states(
    run: fx.Trajectory,
    table: dict[str, np.ndarray],
    rows: np.ndarray,
    names: list[str],
    within: float = 3e-4,
    at: Any = slice(None),
) -> None:
    away = away_from_events(run, 2e-6)[at]
    for name in names:
        part, variable = name.split(".")
        error = np.abs(np.asarray(getattr(run[part], variable))[at] - table[name][rows])
        assert np.max(error[away]) <= within, name


def _rows(run: fx.Trajectory, table: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The rows of `table` after the events of their time, and the samples of `run` there."""
    rows = np.flatnonzero(np.append(np.diff(table["time"]) > 1e-12, True))
    return rows, np.searchsorted(run.ts, table["time"][rows])


@pytest.fixture(scope="module")
def clutches(reference_folder: Path) -> tuple[fx.Trajectory, list[dict[str, np.ndarray]]]:
    """The coupled clutches at the times of two tables, and these tables."""
    tables = [
        table_of(reference_folder / f"Rotational.CoupledClutches.{name}")
        for name in ("csv", "full.csv")
    ]
    ts = np.unique(np.concatenate([table["time"] for table in tables]))
    return fx.simulate(coupled_clutches(), ts, REFERENCE, energy=True), tables


@pytest.mark.slow
def test_coupled_clutches_modes_within_1e_5_s_and_states_within_3e_4(clutches: Any) -> None:
    run, (table, _) = clutches
    rows, at = _rows(run, table)
    for part in ("clutch1", "clutch2", "clutch3"):
        assert_same_modes(run, table, part, f"{part}.mode", 1e-5)
    states = [f"clutch{i}.{x}" for i in (1, 2, 3) for x in ("phi_rel", "w_rel")] + [
        "J1.phi",
        "J1.w",
    ]
    _assert_states(run, table, rows, [name for name in states if name in table], at=at)


@pytest.mark.slow
def test_coupled_clutches_until_0_4_s_is_the_closed_form_to_1e_8(clutches: Any) -> None:
    run, _ = clutches
    early = np.asarray(run.ts) < 0.4
    ts, w1, w2 = run.ts[early], run["J1"].w[early], run["J2"].w[early]
    closed = 10 / (0.4 * np.pi) * np.sin(0.4 * np.pi * ts)
    assert np.max(np.abs(w2 - closed)) <= 1e-8
    assert np.max(np.abs(w1 - (10 + (1 - np.cos(10 * np.pi * ts)) / np.pi - closed))) <= 1e-8


@pytest.mark.slow
def test_coupled_clutches_have_the_full_files_torques_sa_and_locked(clutches: Any) -> None:
    """The full file is coarse: 8e-4 in speed, 4e-4 s in switch times."""
    run, (_, table) = clutches
    rows, at = _rows(run, table)
    away = away_from_events(run, 2e-3)[at]
    for part in ("clutch1", "clutch2", "clutch3"):
        for variable in ("tau", "sa", "a_rel", "tau0", "tau0_max", "fn"):
            name = f"{part}.{variable}"
            error = np.abs(np.asarray(getattr(run[part], variable))[at] - table[name][rows])
            assert np.max(error[away]) <= 1e-3 * max(1.0, float(np.max(np.abs(table[name])))), name
        for variable in ("locked", "free", "mode"):
            got = np.asarray(getattr(run[part], variable), dtype=float)[at]
            assert np.all((got == table[f"{part}.{variable}"][rows])[away]), f"{part}.{variable}"


@pytest.mark.slow
def test_coupled_clutches_lose_what_the_drive_gives_and_the_wheels_lack(clutches: Any) -> None:
    run, _ = clutches
    assert float(jnp.max(jnp.abs(run.energy.balance))) <= 1e-7
    power = jnp.sum(jnp.stack([run[f"clutch{i}"].lossPower for i in (1, 2, 3)]), axis=0)
    assert float(jnp.min(power)) >= 0.0
    # Trapezoids between the samples see to 1e-3 what the run itself integrated.
    lost = jnp.sum(0.5 * (power[1:] + power[:-1]) * jnp.diff(run.ts))
    assert float(run.energy.friction[-1]) == pytest.approx(float(lost), rel=1e-2)


@pytest.mark.slow
def test_rotational_friction_modes_within_1e_5_s_and_states_within_3e_4(
    reference_folder: Path,
) -> None:
    table = table_of(reference_folder / "Rotational.Friction.csv")
    run, rows = run_on(rotational_friction(), table["time"])
    for part in ("clutch", "brake"):
        assert_same_modes(run, table, part, f"{part}.mode", 1e-5)
    _assert_states(
        run,
        table,
        rows,
        [
            "clutch.phi_rel",
            "clutch.w_rel",
            "inertia3.phi",
            "inertia3.w",
            "spring.phi_rel",
            "spring.w_rel",
        ],
    )


@pytest.mark.slow
def test_bearing_brake_and_clutch_of_the_library_test_within_1e_5_s_and_3e_4(
    reference_folder: Path,
) -> None:
    table = table_of(reference_folder / "ModelicaTest.Rotational.TestFriction.csv")
    run, rows = run_on(four_rotational_elements(), table["time"])
    for part in ("bearingFriction", "brake", "clutch"):
        assert_same_modes(run, table, part, f"{part}.mode", 1e-5)
    names = [f"inertia{i}.{x}" for i in ("", "1", "2") for x in ("phi", "w")] + [
        "clutch.phi_rel",
        "clutch.w_rel",
    ]
    _assert_states(run, table, rows, names)


@pytest.mark.slow
def test_a_freewheel_of_the_library_test_leaves_at_once_and_sticks_at_0_5315199_s(
    reference_folder: Path,
) -> None:
    table = table_of(reference_folder / "ModelicaTest.Rotational.TestFriction.csv")
    run, rows = run_on(freewheel(), table["time"])
    _assert_states(
        run,
        table,
        rows,
        ["inertia5.phi", "inertia5.w", "oneWayClutch.phi_rel", "oneWayClutch.w_rel"],
    )
    sticks = np.asarray(table["time"])[1:][np.diff(table["oneWayClutch.stuck"]) > 0]
    (own,) = (t for t, mode in own_changes(run, "oneWayClutch")[1:] if mode == 0)
    assert abs(own - sticks[0]) <= 1e-5
    assert own_changes(run, "oneWayClutch")[1][0] <= 1e-5


@pytest.mark.slow
def test_the_one_way_clutch_of_the_library_within_3e_4(reference_folder: Path) -> None:
    table = table_of(reference_folder / "Rotational.OneWayClutch.csv")
    run, rows = run_on(one_way_clutch(), table["time"])
    _assert_states(
        run,
        table,
        rows,
        ["inertiaIn.phi", "inertiaIn.w", "oneWayClutch.phi_rel", "oneWayClutch.w_rel"],
    )
    assert float(jnp.min(run["oneWayClutch"].w_rel)) >= -1e-12


@pytest.mark.slow
def test_a_lossy_gear_of_the_library_within_1e_5_s_and_3e_4(reference_folder: Path) -> None:
    table = table_of(reference_folder / "Rotational.LossyGearDemo1.csv")
    run, rows = run_on(lossy_gear(), table["time"])
    assert_same_modes(run, table, "gear", "gear.mode", 1e-5)
    _assert_states(run, table, rows, ["Inertia2.phi", "Inertia2.w"])


@pytest.mark.slow
def test_a_lossy_gear_has_the_full_files_torques(reference_folder: Path) -> None:
    table = table_of(reference_folder / "Rotational.LossyGearDemo1.full.csv")
    run, rows = run_on(lossy_gear(), table["time"])
    away = away_from_events(run, 2e-3)
    for variable in ("tauLoss", "sa", "a_a", "w_a", "phi_a", "phi_b"):
        error = np.abs(np.asarray(getattr(run["gear"], variable)) - table[f"gear.{variable}"][rows])
        assert np.max(error[away]) <= 1e-3 * max(
            1.0, float(np.max(np.abs(table[f"gear.{variable}"])))
        ), variable
    assert (
        np.max(np.abs(np.asarray(run["gear"].tau_a) - table["gear.flange_a.tau"][rows])[away])
        <= 1e-2
    )
    assert np.all((np.asarray(run["gear"].locked) == table["gear.locked"][rows])[away])


@pytest.mark.slow
def test_a_lossy_gear_with_a_bearing_moves_when_the_library_does(reference_folder: Path) -> None:
    """Which of the two bears how much at rest is not unique: Dymola lets the gear begin at 0.456 s
    already, at rest. The motion is.
    """
    table = table_of(reference_folder / "Rotational.LossyGearDemo2.csv")
    run, rows = run_on(lossy_gear(bearing=True), table["time"])
    _assert_states(run, table, rows, ["Inertia2.phi", "Inertia2.w"])
    expected = [0.06359110, 0.2303740, 0.3083068, 0.4727383]
    moves = np.asarray(run["gear"].w_a)
    begins = np.asarray(run.ts)[1:][np.diff(np.abs(moves) > 1e-9)]
    # the grid of the file; the first is the start
    assert begins[1:] == pytest.approx(expected, abs=6e-4)
    times = [t for t, _ in own_changes(run, "gear") + own_changes(run, "bearingFriction")]
    assert all(min(abs(t - e) for t in times) <= 1e-5 for e in expected)
