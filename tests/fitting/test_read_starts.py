"""What the filter that reads the starts of windows does to kinks is in no estimate."""

from typing import Any

import numpy as np
import pytest

import frictax as fx
from frictax.analysis.selection.cross_validation import body_speeds
from frictax.fitting.problem.initial_state import starting_state
from frictax.fitting.problem.simulations import without_rounding
from frictax.fitting.result.notices import idle_filters
from rigs import FINE

T = np.linspace(0.0, 10.0, 1001)
DRIVE = 0.15 * np.sin(2 * np.pi * 0.31 * T) + 0.2 * np.sin(2 * np.pi * 0.7 * T)
TRUE = {"rotor.J": 2e-3, "bearing.tau_pos.F_Coulomb": 0.05, "bearing.tau_pos.F_prop": 0.01}


def rotor(J: float, dry: float, viscous: float, drive: object = 0.0) -> fx.Mechanism:
    """It stops and turns back thrice a second or so."""
    return fx.Mechanism(
        rotor=fx.Inertia(J=J),
        bearing=fx.BearingFriction("rotor", tau_pos=fx.Coulomb(F_Coulomb=dry, F_prop=viscous)),
        drive=fx.Torque("rotor", drive),
    )


def measured(t: np.ndarray, u: np.ndarray) -> np.ndarray:
    run = fx.simulate(rotor(*TRUE.values(), drive=fx.Sampled(t, u)), t, FINE)
    return np.asarray(run["rotor"].phi)


def fitted(t: np.ndarray, u: np.ndarray, phi: np.ndarray, cutoff: float | None) -> fx.FitResult:
    record = fx.Record(t, {"drive": u}, {"rotor.phi": phi}, hold=False, name="run")
    windows = fx.Windows(0.5, cutoff=cutoff)
    found = fx.fit(rotor(2.3e-3, 0.057, 0.0115), record, free=list(TRUE), objective=windows)
    vars(found)["notices"] = found.notices_at_hand  # printed without a search for missing terms
    return found


@pytest.fixture(scope="module")
def clean() -> fx.FitResult:
    """Of a record without noise."""
    return fitted(T, DRIVE, measured(T, DRIVE), 15.0)


def relative(found: fx.FitResult) -> np.ndarray:
    return np.array([found.values[path] / true - 1 for path, true in TRUE.items()])


@pytest.mark.slow
def test_estimates_of_a_noise_free_record_are_right_to_1e_4(clean: fx.FitResult) -> None:
    """With starts as the filter reads them they are up to 6e-4 off."""
    assert np.all(np.abs(relative(clean)) < 1e-4), relative(clean)


@pytest.mark.slow
def test_errors_of_windows_are_by_what_differs_between_them(clean: fx.FitResult) -> None:
    """Noise and its numbers: tests/analysis/test_clusters.py."""
    u = clean.uncertainty()
    assert isinstance(u.by, fx.Guarded)
    assert clean.uncertainty(fx.Clustered()).says == "scatter between 20 windows"
    with pytest.raises(ValueError, match=r"each window is a run of its own. Take `Clustered\(\)`"):
        clean.uncertainty(fx.Autoregression())


@pytest.mark.slow
def test_starts_that_the_model_corrects_are_those_of_the_motion(clean: fx.FitResult) -> None:
    prepared: Any = clean.problem.prepared[0]
    run = fx.simulate(rotor(*TRUE.values(), drive=fx.Sampled(T, DRIVE)), T, FINE)
    speed = np.asarray(run["rotor"].w)[np.asarray(prepared.rows)[:, 0]]
    off = np.asarray(prepared.start["rotor.w"]) - speed
    off = off[1:]  # what lies before the first sample nobody knows
    again: Any = without_rounding(clean.problem, clean.x).prepared[0]
    # what the filter alone leaves is what would be taken off once more
    rounded = np.asarray(again.start["rotor.w"]) - np.asarray(prepared.start["rotor.w"])
    assert np.sqrt(np.mean(off**2)) < 0.2 * np.sqrt(np.mean(rounded**2))


@pytest.mark.slow
def test_a_record_s_own_cutoff_makes_starts_that_are_off_less(clean: fx.FitResult) -> None:
    """White noise of 1 mrad: speeds of starts are off by a tenth of what 50 Hz leave of it, and
    estimates by half or less.
    """
    phi = measured(T, DRIVE) + 1e-3 * np.random.default_rng(5).standard_normal(T.size)
    own, wide = fitted(T, DRIVE, phi, None), fitted(T, DRIVE, phi, 50.0)
    prepared: Any = own.problem.prepared[0]
    (cutoff,) = prepared.cutoffs.values()
    assert 3.0 < cutoff < 12.0
    assert f"starts read below {float(cutoff):.2g} Hz" in str(own)
    assert "starts read" not in str(wide)
    assert "starts read" not in str(clean)
    half = [u.half_widths for u in (own.uncertainty(), wide.uncertainty())]
    assert np.all(half[0] < 0.5 * half[1])
    for found in (own, wide):
        u = found.uncertainty()
        for path, true in TRUE.items():
            assert u.intervals[path][0] < true < u.intervals[path][1]


@pytest.mark.slow
def test_sensors_have_cutoffs_of_their_own() -> None:
    """A coarse one beside a fine one."""
    phi = measured(T, DRIVE)
    random = np.random.default_rng(4)
    outputs = {"rotor.phi": phi + 1e-5 * random.standard_normal(T.size)}
    outputs["rotor.w"] = np.gradient(phi, T) + 0.05 * random.standard_normal(T.size)
    sd = {"rotor.phi": 1e-5, "rotor.w": 0.05}
    record = fx.Record(T, {"drive": DRIVE}, outputs, hold=False, name="run", sd=sd)
    windows = fx.Windows(0.5)
    found = fx.fit(rotor(2.3e-3, 0.057, 0.0115), record, free=list(TRUE), objective=windows)
    vars(found)["notices"] = found.notices_at_hand
    prepared: Any = found.problem.prepared[0]
    fine, coarse = (prepared.cutoffs[name] for name in outputs)
    assert fine > 2 * coarse
    assert f"starts read below {fine:.2g} Hz (rotor.phi), {coarse:.2g} Hz (rotor.w)" in str(found)


@pytest.mark.slow
@pytest.mark.parametrize(("cutoff", "sd", "told"), [(50.0, 1e-3, False), (None, 1e-4, True)])
def test_what_noise_makes_of_starts_is_not_put_down_to_the_machine(cutoff, sd, told) -> None:
    phi = measured(T, DRIVE) + 1e-3 * np.random.default_rng(6).standard_normal(T.size)
    of = fx.Record(T, {"drive": DRIVE}, {"rotor.phi": phi}, sd={"rotor.phi": sd}, hold=False)
    windows = fx.Windows(0.5, cutoff=cutoff)
    found = fx.fit(rotor(2.3e-3, 0.057, 0.0115), of, free=list(TRUE), objective=windows)
    assert found.noise_scale > 8.0
    assert told == any(n.code == "residuals-too-large" for n in found.notices_at_hand)


def test_a_cutoff_is_a_frequency_or_left_out() -> None:
    assert fx.Windows(0.5).cutoff is None
    for objective in (fx.Windows, fx.FreeRun):
        with pytest.raises(ValueError, match=r"cutoff` must be a number > 0 \[Hz\], got 0"):
            objective(cutoff=0.0)


def turned(t: np.ndarray, w: float) -> fx.Record:
    return fx.Record(t, {"drive": np.cos(t)}, {"rotor.phi": np.sin(w * t)}, hold=False)


def test_a_filter_stays_below_the_mean_sampling_rate_of_a_record_with_gaps() -> None:
    k = np.arange(400)
    record = turned(1e-3 * (k + 120 * (k // 10)), 1.0)  # 10 samples at 1 kHz, then 121 ms
    objective = fx.InverseDynamics(at_samples=True)
    assert np.asarray(objective.prepare(rotor(*TRUE.values()), record).weight).any()
    assert np.isfinite(body_speeds(record, 50.0)["rotor"]).all()
    (notice,) = idle_filters(objective, [record])
    mean = 399 / record.duration
    assert f"at {mean:.4g} Hz cannot be filtered at 50 Hz. At {0.45 * mean:.4g} Hz" in str(notice)


def test_a_record_of_ten_milliseconds_is_filtered_at_four_periods() -> None:
    machine, record = rotor(*TRUE.values()), turned(np.linspace(0.0, 0.01, 201), 400.0)
    prepared: Any = fx.FreeRun(measured_start=True).prepare(machine, record)
    assert float(prepared.cutoffs["rotor.phi"]) == pytest.approx(400.0)
    assert float(prepared.start["rotor.w"]) == pytest.approx(400.0, rel=0.02)
    assert starting_state(machine, record, "rotor.w") == pytest.approx(400.0, rel=0.02)
    forces = fx.InverseDynamics(at_samples=True).prepare(machine, record)
    assert np.asarray(forces.weight).any()


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_intervals_on_windows_hold_the_truth_under_smooth_noise_and_are_not_loose() -> None:
    """Noise at the period of the slow motion that lasts for 3 s of 25 s: without the correction the
    kinks' bias is 6 times the spread, and counts as scatter 4 times as large as it.
    """
    t = np.linspace(0.0, 25.0, 2501)
    u = 0.15 * np.sin(2 * np.pi * 0.31 * t) + 0.2 * np.sin(2 * np.pi * 0.7 * t)
    phi, truth = measured(t, u), np.array(list(TRUE.values()))
    rng, n = np.random.default_rng(5), t.size
    # an autoregression of order 2, as the sum of its two turning phasors
    turn = np.exp(-1.0 / 300.0 + 2j * np.pi * 0.31 * 0.01)
    values, half = [], []
    for _ in range(50):
        kick = rng.standard_normal((2, 2 * n))
        z, noise = 0.0, np.zeros(2 * n)
        for k, (a, b) in enumerate(kick.T):
            z = turn * z + a + 1j * b
            noise[k] = z.real
        noise = noise[n:] * np.sqrt(1 - abs(turn) ** 2)
        found = fitted(t, u, phi + 1e-4 * np.sqrt(np.mean(phi**2)) * noise, 15.0)
        by_name = {e.name: e for e in found.estimates}
        low, high = np.array([(by_name[n].lower, by_name[n].upper) for n in TRUE]).T
        values.append([found.values[n] for n in TRUE])
        half.append((high - low) / 2)
    off, half = np.array(values) - truth, np.array(half)
    held = np.mean(np.abs(off) <= half, axis=0)
    assert np.all(held >= 0.86), held  # 95 % of 50 have a standard deviation of 3.1 %
    width = np.median(half, axis=0) / 1.96 / np.std(off, axis=0)
    assert np.all(width < 1.6), width
