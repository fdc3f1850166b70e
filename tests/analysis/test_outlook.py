"""What data can tell is said before the fit, with what would cure it."""

import numpy as np
import pytest

import frictax as fx
from rigs import AWAY_LAW, NOISE, TRUE_LAW, block, motion

T = np.linspace(0.0, 10.0, 1001)
RICH = 3 * np.sin(2 * np.pi * T) + 3 * np.sin(2 * np.pi * 0.37 * T)  # problem P4 of the benchmarks
POOR = 2 * np.sin(2 * np.pi * T)
LAW = ["friction.f_pos"]


@pytest.fixture(scope="module")
def emps_record(data_folder) -> fx.Record:
    force = fx.Column("vir", unit="V", gain=35.15065, to="N")
    outputs = {"mass.s": fx.Column("qm", unit="m")}
    return fx.Record.from_mat(
        data_folder / "emps" / "DATA_EMPS.mat",
        time="t",
        inputs={"drive": force},
        outputs=outputs,
        name="emps",
    )


def recorded(u: np.ndarray, seed: int = 0, **more: float) -> fx.Record:
    v = np.asarray(motion(block(peak=1.0, **more), T, u)["mass"].v)
    return fx.Record(
        T,
        {"drive": u},
        {"mass.v": v + NOISE * np.random.default_rng(seed).standard_normal(T.size)},
        name="run",
    )


@pytest.mark.slow
def test_a_sine_that_hardly_moves_the_mass_tells_no_term_of_its_friction_and_faster_motion_would():
    poor = fx.outlook(block(peak=1.0, **AWAY_LAW), recorded(POOR), free=LAW)
    assert set(poor.identifiability.unknown) == {f"friction.f_pos.{name}" for name in TRUE_LAW}
    assert poor.identifiability.condition > 1e4
    text = str(poor)
    assert (
        "friction.f_pos.F_Stribeck and friction.f_pos.fexp are strongly correlated: changing"
        in text
    )
    assert "Remedy: move the body faster, at up to 0.37 m/s instead of 0.12" in text
    assert all(max(cure.gain for cure in cures) > 5 for cures in poor.cures.values())
    # The cure is no guess: where the mass does move faster, all four are known.
    rich = fx.outlook(block(peak=1.0, **AWAY_LAW), recorded(RICH), free=LAW)
    assert rich.identifiability.complete
    assert rich.sentences == ()
    assert np.all(rich.relative < 0.05)


@pytest.mark.slow
def test_expected_errors_at_the_truth_are_the_scatter_of_fits() -> None:
    record = recorded(RICH)
    expected = fx.outlook(block(peak=1.0), record, free=LAW, by=fx.White())
    clean = np.asarray(motion(block(peak=1.0), T, RICH)["mass"].v)
    speeds = clean + NOISE * np.random.default_rng(3).standard_normal((100, T.size))
    many = fx.fit_many(block(peak=1.0), record, speeds, free=LAW)
    np.testing.assert_allclose(expected.errors, np.std(many.values, axis=0), rtol=0.25)


@pytest.mark.slow
def test_the_law_of_a_direction_that_never_moved_would_show_if_the_motion_reversed() -> None:
    u = 2.0 + 0.5 * np.sin(2 * np.pi * T)
    machine = block(peak=1.0, f_neg=fx.Coulomb(F_Coulomb=1.1, F_prop=0.2))
    told = fx.outlook(machine, recorded(u), free=["friction.f_pos.F_Coulomb", "friction.f_neg"])
    assert set(told.identifiability.unknown) == {
        "friction.f_neg.F_Coulomb",
        "friction.f_neg.F_prop",
    }
    assert any(
        "the motion reverse" in s or "both directions" in s
        for s in told.sentences
        if s.startswith("Remedy")
    )
    assert any("friction.f_neg.F_Coulomb has no effect" in s for s in told.sentences)


@pytest.mark.slow
def test_peak_asks_for_a_breakaway() -> None:
    u = 3.0 + 0.1 * np.sin(2 * np.pi * T)
    told = fx.outlook(
        block(peak=1.2, v=1.0),
        recorded(u, v=1.0),
        free=["friction.f_pos.F_Coulomb", "friction.peak"],
    )
    assert told.identifiability.unknown == ("friction.peak",)
    assert any("until the body breaks away" in s for s in told.sentences)


@pytest.mark.slow
def test_an_offset_beside_a_law_for_each_direction_is_refused_with_the_direction() -> None:
    machine = block(peak=1.0, f_neg=fx.Coulomb(F_Coulomb=1.1, F_prop=0.2))
    run = motion(machine, T, RICH)
    record = fx.Record(T, {"drive": RICH}, {"mass.s": np.asarray(run["mass"].s)}, name="run")
    free = ["mass.m", "friction.f_pos.F_Coulomb", "friction.f_neg.F_Coulomb", "inputs.drive.offset"]
    told = fx.outlook(machine, record, free=free, objective=fx.InverseDynamics(20.0))
    assert set(told.identifiability.unknown) == set(free[1:])
    assert "null direction" in told.sentences[0]
    assert "leave it out of `free`" in told.sentences[0]
    assert told.relative[0] < 0.05  # the mass is none the worse for it


@pytest.mark.slow
@pytest.mark.parametrize(
    "objective",
    [
        pytest.param(fx.InverseDynamics(50.0), id="InverseDynamics"),
        pytest.param(fx.Windows(0.5, cutoff=50.0), id="Windows"),
    ],
)
def test_emps_does_not_tell_stribeck_terms_and_a_slow_sweep_of_speed_would(
    emps_record, objective
) -> None:
    def law() -> fx.Stribeck:
        return fx.Stribeck(F_Coulomb=20.0, F_prop=200.0, F_Stribeck=3.0, fexp=100.0)

    axis = fx.Mechanism(
        mass=fx.Mass(m=95.0),
        friction=fx.SupportFriction("mass", f_pos=law(), f_neg=law(), peak=1.0),
        drive=fx.Force("mass", 0.0),
    )
    record = emps_record.decimate(5)  # 200 Hz
    told = fx.outlook(
        axis, record, free=["mass.m", "friction.f_pos", "friction.f_neg"], objective=objective
    )
    weak = {name for name, share in zip(told.names, told.relative, strict=True) if share > 0.4}
    assert weak == {
        f"friction.{way}.{term}" for way in ("f_pos", "f_neg") for term in ("F_Stribeck", "fexp")
    }
    assert any(
        "are strongly correlated" in s and "friction.f_neg.F_Stribeck" in s for s in told.sentences
    )
    assert any(
        s.startswith("Remedy: sweep the speed slowly") and "friction.f_neg.F_Stribeck" in s
        for s in told.sentences
    )


def test_drive_2_does_not_tell_stribeck_terms_and_drive_1_does(drive) -> None:
    flat, dip = (drive(n, "positive") for n in (2, 1))
    told = fx.outlook(fx.starting_law(fx.Stribeck, flat, exponent=2.0), flat)
    assert set(told.identifiability.unknown) == {"F_Stribeck", "fexp"}
    assert any("measure lower speeds" in s for s in told.sentences)
    assert any(s.startswith("Remedy: measure") for s in told.sentences)
    assert fx.outlook(fx.starting_law(fx.Stribeck, dip, exponent=2.0), dip).identifiability.complete


@pytest.mark.slow
def test_a_machine_that_turns_gets_the_same_advice() -> None:
    law = fx.Stribeck(**{**TRUE_LAW, **AWAY_LAW})
    wheel = fx.Mechanism(
        wheel=fx.Inertia(J=1.0),
        friction=fx.BearingFriction("wheel", tau_pos=law, peak=1.0),
        drive=fx.Torque("wheel", 0.0),
    )
    record = recorded(POOR)
    turned = fx.Record(T, {"drive": POOR}, {"wheel.w": record.outputs["mass.v"]}, name="run")
    told = fx.outlook(wheel, turned, free=["friction.tau_pos"])
    assert any(
        "Remedy: move the body faster, at up to 0.37 rad/s instead of 0.12" in s
        for s in told.sentences
    )


@pytest.mark.slow
def test_what_a_prior_says_counts() -> None:
    priors = [
        fx.Normal(f"friction.f_pos.{name}", value, 0.02 * value) for name, value in TRUE_LAW.items()
    ]
    told = fx.outlook(block(peak=1.0, **AWAY_LAW), recorded(POOR), free=LAW, priors=priors)
    assert told.identifiability.complete
    assert np.all(told.relative < 0.1)


@pytest.mark.slow
def test_a_run_that_fails_is_no_outlook() -> None:
    with pytest.raises(ValueError, match="cannot start"):
        fx.outlook(block(peak=1.0), recorded(RICH), free=LAW, engine=fx.OnSamples(max_events=1))


def test_wrong_questions_get_a_sentence() -> None:
    record = fx.Record(T, {"drive": POOR}, {"mass.v": np.sin(T)})
    with pytest.raises(ValueError, match="`starts` is an option for a law's sweep"):
        fx.outlook(block(), record, free=LAW, starts=3)  # pyright: ignore
    with pytest.raises(ValueError, match="`f_neg` is an option"):
        fx.outlook(block(), record, f_neg=fx.Coulomb)  # pyright: ignore
    with pytest.raises(ValueError, match="`by` is an option for records"):
        fx.outlook(fx.Coulomb, fx.Sweep([1, 2, 3, 4], [1, 2, 3, 4]), by=fx.White())  # pyright: ignore
    with pytest.raises(KeyError, match="no parameter"):
        fx.outlook(block(), record, free=["mass.mm"])


@pytest.mark.slow
def test_a_machine_that_stands_still_with_its_start_values_is_said_to() -> None:
    stuck = fx.outlook(block(peak=1.0, F_Coulomb=20.0), recorded(RICH), free=LAW)
    assert stuck.sentences[0].startswith(
        "No free parameter of the machine changes what was measured. Probably the machine stands"
        " still"
    )
