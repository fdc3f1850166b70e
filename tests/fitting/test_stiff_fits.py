"""Fits of a machine whose viscous time constant is shorter than a sample, by all ways of fitting.

Its truth is simulated by `Adaptive`, its fits take the default steps, which are divided.
"""

import numpy as np
import pytest

import frictax as fx

T = np.linspace(0.0, 6.0, 601)  # 0.01 s a sample
U = 12.0 * np.sin(2 * np.pi * 0.4 * T) + 5.0 * np.sin(2 * np.pi * 1.1 * T)
F_COULOMB = 4.0
FREE = ["friction.f_pos.F_Coulomb", "friction.f_pos.F_prop"]


def slider(F_Coulomb: float, F_prop: float, force: float | fx.Sampled = 0.0) -> fx.Mechanism:
    law = fx.Coulomb(F_Coulomb=F_Coulomb, F_prop=F_prop)
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=law),
        drive=fx.Force("mass", force),
    )


def record_of(F_prop: float, seed: int = 0) -> fx.Record:
    run = fx.simulate(slider(F_COULOMB, F_prop, fx.Sampled(T, U)), T, fx.Adaptive())
    v = np.asarray(run["mass"].v)
    noise = 0.002 * np.max(np.abs(v)) * np.random.default_rng(seed).standard_normal(T.size)
    return fx.Record(T, {"drive": U}, {"mass.v": v + noise}, name=f"slider {seed}")


# F_prop*dt/m: 2.6 is beyond what an explicit step a sample can follow.
@pytest.mark.slow
@pytest.mark.parametrize("F_prop", [260.0, 100.0, 800.0, 5000.0])
def test_windows_find_a_stiff_friction_within_the_noise(F_prop: float) -> None:
    found = fx.fit(
        slider(4.5, 0.9 * F_prop), record_of(F_prop), free=FREE, objective=fx.Windows(0.5)
    )
    off = [abs(found.values[n] - x) for n, x in zip(FREE, (F_COULOMB, F_prop), strict=True)]
    errors = [found.standard_errors[n] for n in FREE]
    assert np.all(np.array(off) < 2.0 * np.array(errors))
    assert not {"steps-too-long", "misfit-above-noise"} & {n.code for n in found.notices_at_hand}


@pytest.mark.slow
def test_fits_of_many_and_fleets_find_a_stiff_friction_within_the_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fx.FitResult, "notices", fx.FitResult.notices_at_hand)
    F_prop, start = 400.0, slider(4.5, 360.0)
    records = [record_of(F_prop, seed) for seed in range(10)]
    truth = np.array([F_COULOMB, F_prop])
    measured = np.stack([np.asarray(r.outputs["mass.v"]) for r in records])
    many = fx.fit_many(start, records[0], measured, free=FREE)
    columns = [many.names.index(n) for n in FREE]
    fleet = fx.fleet(start, records, free=FREE, jobs=1)
    values = fleet.table[FREE].to_numpy(float)
    errors = fleet.table[[f"{n}.standard_error" for n in FREE]].to_numpy(float)
    assert np.max(np.abs(np.asarray(many.values)[:, columns] - values) / errors) < 1e-2
    # Ten records, two numbers: the largest of twenty normal numbers is above 3.2 once in 40.
    assert np.max(np.abs(values - truth) / errors) < 3.2
    assert np.sqrt(np.mean(((values - truth) / errors) ** 2)) < 1.5
    notices = " ".join(fleet.table["notices"])
    assert "steps-too-long" not in notices
    assert "misfit-above-noise" not in notices
