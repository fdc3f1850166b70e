"""Records predicted from a start of their own, left out in turn, and under other conditions."""

import numpy as np
import pytest

import frictax as fx
from frictax.analysis.errors.input_noise import without_intervals
from pushed_block import fitted_apart

T = np.linspace(0.0, 4.0, 401)
FREE = ["mass.m", "friction.f_pos.F_Coulomb", "friction.f_pos.F_prop"]
NOISE = 1e-3


def block(
    F_Coulomb: float,
    drive: fx.Sampled | float = 0.0,
    s: float = 0.0,
    v: float = 0.0,
    m: float = 1.0,
) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=m, s=s, v=v),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=F_Coulomb, F_prop=0.5)),
        drive=fx.Force("mass", drive),
    )


def measured(number: int, seed: int, F_Coulomb: float = 1.0, s: float = 0.0, v: float = 0.0):
    """A record with one of three names: a name that is used again needs no further program."""
    rng = np.random.default_rng(seed)
    u = 3.0 * np.sin(2.6 * T + seed) + 2.2 * np.sin(6.7 * T + 2 * seed)
    run = fx.simulate(block(F_Coulomb, fx.Sampled(T, u), s, v), T, fx.OnSamples(substeps=2))
    seen = np.asarray(run["mass"].s) + NOISE * rng.standard_normal(T.size)
    return fx.Record(T, {"drive": u}, {"mass.s": seen}, hold=False, name=f"run{number}")


def fitted(*records: fx.Record) -> fx.FitResult:
    return fx.fit(block(0.9, m=1.1), records, free=FREE, rounds=0)


@pytest.fixture(scope="module")
def alike() -> fx.FitResult:
    return fitted(*(measured(i, i) for i in range(3)))


@pytest.mark.slow
def test_a_record_that_begins_elsewhere_is_predicted_to_its_noise_with_parameters_held(
    alike,
) -> None:
    made = alike.validate(measured(0, 9, s=0.2, v=0.6))
    assert made.rms["mass.s"] == pytest.approx(NOISE, rel=0.15)
    assert made.from_measured["mass.s"] > 3 * NOISE
    assert made.from_given["mass.s"] > 100 * NOISE
    s, v = made.start
    assert s.lower < 0.2 < s.upper
    assert v.lower < 0.6 < v.upper
    assert "parameters fixed" in str(made)
    assert "its initial state (nothing else is fitted): mass.s = " in str(made)


@pytest.mark.slow
def test_a_start_that_no_parameter_is_or_no_output_shows_is_read_from_the_measurement(
    alike,
) -> None:
    made = alike.validate(measured(0, 9, s=0.2), states=[])
    assert made.start == ()
    assert made.rms == made.from_measured
    assert "from the measured start" in str(made)


@pytest.mark.slow
def test_what_cannot_be_validated_is_refused_with_the_remedy(alike) -> None:
    with pytest.raises(ValueError, match="one start"):
        alike.validate("run0", objective=fx.Windows(0.5))
    with pytest.raises(ValueError, match="takes a `Record`"):
        alike.validate(fx.Sweep([1, 2], [1, 2]))
    with pytest.raises(ValueError, match="takes the fit"):
        alike.transfer(measured(0, 4))
    swept = fx.fit(fx.Coulomb, fx.Sweep([1, 2, 3, 4], [7.1, 7.9, 9.1, 9.9]))
    with pytest.raises(ValueError, match="two records"):
        swept.leave_records_out()


@pytest.mark.slow
def test_each_record_is_predicted_by_the_others(alike) -> None:
    made = alike.leave_records_out()
    assert list(made.records) == ["run0", "run1", "run2"]
    assert made.rms["mass.s"] < 1.2 * NOISE
    for values in made.values.values():
        assert list(values) == FREE
        assert values["friction.f_pos.F_Coulomb"] == pytest.approx(1.0, abs=0.01)


@pytest.mark.slow
def test_a_record_of_another_machine_is_predicted_worst() -> None:
    odd = [measured(0, 0), measured(1, 1), measured(2, 2, F_Coulomb=1.2)]
    mixed = fitted(*odd).leave_records_out()
    each = {label: one.rms["mass.s"] for label, one in mixed.records.items()}
    assert each["run2"] == max(each.values()) > 10 * NOISE
    assert mixed.fitted["run2"].rms["mass.s"] < 0.9 * each["run2"]
    assert str(mixed).count("run2") == 1


@pytest.mark.slow
def test_between_conditions_the_number_that_changed_is_told_and_its_interval_holds_the_change(
    alike,
) -> None:
    warm = fitted(*(measured(i, 20 + i, F_Coulomb=0.8) for i in range(3)))
    made = alike.transfer(warm)
    assert made.differ == ("friction.f_pos.F_Coulomb",)
    change = next(e for e in made.differences if e.name == "friction.f_pos.F_Coulomb")
    assert change.lower < -0.2 < change.upper < 0
    errors = (f.standard_errors["friction.f_pos.F_Coulomb"] for f in (alike, warm))
    assert change.standard_error == pytest.approx(np.hypot(*errors))
    assert made.predicted["run0"].rms["mass.s"] > 5 * NOISE
    assert made.fitted["run0"].rms["mass.s"] < 1.2 * NOISE
    assert "Different: friction.f_pos.F_Coulomb." in str(made)
    assert alike.transfer(alike).differ == ()


def test_the_difference_from_an_infinite_interval_is_infinite() -> None:
    v = np.linspace(0.5, 8.0, 12)
    noise = 0.01 * np.random.default_rng(0).standard_normal((2, 12))
    here, there = (
        fx.fit(fx.Coulomb, fx.Sweep(v, 6.0 + 0.2 * v + e, velocity_unit="m/s", force_unit="N"))
        for e in noise
    )
    assert all(np.isfinite(e.upper) for e in here.transfer(there).differences)
    vars(there)["spread"] = without_intervals(there, 0.5)
    for made in (here.transfer(there), there.transfer(here)):
        assert all(e.upper - e.value == np.inf for e in made.differences)
        assert made.differ == ()


@pytest.mark.slow
def test_a_fit_with_parameters_that_differ_by_record_predicts_no_record_from_there(alike) -> None:
    found = fitted_apart()
    made = found.transfer(found)
    assert list(made.predicted) == list(made.fitted) == ["one", "two"]
    assert made.fitted["one"].rms == found.validate("one").rms
    made = found.transfer(alike)
    assert made.predicted == {}
    assert "run0: rms of mass.s not predicted (parameters differ)" in str(made)
