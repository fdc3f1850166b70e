"""A residual study finds what was planted, in its unit, and nothing where nothing is."""

import importlib.util
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter

import frictax as fx
from frictax.analysis.residuals.patterns import Columns, ripple
from frictax.analysis.residuals.series import Series
from frictax.parameters import Positive, Scalar, parameter

T = np.arange(0.0, 20.0, 0.005)
# Two tones: position, speed and acceleration do not follow from each other.
TONES = ((0.6, 2 * np.pi * 0.21, 0.3), (0.25, 2 * np.pi * 0.53, 1.0))
S = np.sum([a * np.sin(w * T + p) for a, w, p in TONES], axis=0)
V = np.sum([a * w * np.cos(w * T + p) for a, w, p in TONES], axis=0)
A = np.sum([-a * w**2 * np.sin(w * T + p) for a, w, p in TONES], axis=0)
FREE = ["mass.m", "friction.f_pos"]


def sledge() -> fx.Mechanism:
    law = fx.Coulomb(F_Coulomb=1.5, F_prop=0.5)
    return fx.Mechanism(
        mass=fx.Mass(m=1.5),
        friction=fx.SupportFriction("mass", f_pos=law),
        drive=fx.Force("mass", 0.0),
    )


def coloured(seed: int, rho: float = 0.9, sd: float = 0.05) -> np.ndarray:
    """An autoregression of order 1 [N]."""
    return np.asarray(
        lfilter(
            [sd * np.sqrt(1 - rho**2)],
            [1.0, -rho],
            np.random.default_rng(seed).standard_normal(T.size),
        )
    )


def run(planted: Any = 0.0, *, seed: int = 0, rho: float = 0.9, name: str = "run") -> fx.Record:
    """A mass of 2 kg with Coulomb and viscous friction; `planted` [N]: a force on it of which the
    model does not know.
    """
    pull = 2.0 * A + 2.0 * np.sign(V) + 1.0 * V - planted + coloured(seed, rho)
    return fx.Record(T, {"drive": pull}, {"mass.s": S}, name=name)


def fitted(records: Any, at_samples: bool = False) -> fx.FoundMachine:
    objective = fx.InverseDynamics(20.0, at_samples=at_samples)
    return fx.fit(sledge(), records, free=FREE, objective=objective)


def strong(study: fx.ResidualStudy) -> set[str]:
    return {finding.name for finding in study.findings if finding.strong} - {"whiteness"}


def test_a_ripple_is_found_with_its_period_and_its_amplitude() -> None:
    study = fitted(run(0.3 * np.sin(2 * np.pi * S / 0.05))).residual_study()
    ripple = study["ripple"]
    assert strong(study) == {"ripple"}
    assert ripple.numbers["period"] == pytest.approx(0.05, rel=0.005)
    assert abs(ripple.numbers["period"] - 0.05) < 4 * ripple.numbers["period error"]
    for way in ("forward", "backward"):
        assert ripple.numbers[way] == pytest.approx(0.3, rel=0.05)
    assert ripple.unit == "N"
    assert "mm" in ripple.sentence


@pytest.mark.slow
def test_residuals_without_a_pattern_refer_to_missing() -> None:
    t = np.linspace(0.0, 3.0, 301)
    force = 3.0 * np.sin(4.0 * t)

    def block(F_Coulomb: float, drive: Any = 0.0) -> fx.Mechanism:
        friction = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=F_Coulomb))
        return fx.Mechanism(mass=fx.Mass(m=1.0), friction=friction, drive=fx.Force("mass", drive))

    right = np.asarray(fx.simulate(block(1.0, fx.Sampled(t, force)), t)["mass"].v)
    white = 0.01 * np.random.default_rng(0).standard_normal(t.size)
    for noise, told in ((np.asarray(lfilter([1], [1, -0.8], white)), True), (white, False)):
        record = fx.Record(t, {"drive": force}, {"mass.v": right + noise})
        found = fx.fit(block(0.9), record, free=["friction.f_pos.F_Coulomb"], rounds=0)
        study = found.residual_study()
        assert any(n.code == "no-pattern-found" for n in study.notices) is told


def test_filters_make_residuals_of_a_right_model_that_are_not_white() -> None:
    study = fitted(run(0.0 * S), at_samples=True).residual_study()
    assert study["whiteness"].strong
    assert "no-pattern-found" not in [n.code for n in study.notices]


def test_a_ripple_near_the_cutoff_is_as_large_as_it_is() -> None:
    # 0.9 m/s over 0.05 m are 18 Hz: a filter of 20 Hz takes a third of it.
    study = fitted(run(0.3 * np.sin(2 * np.pi * S / 0.05))).residual_study(cutoff=12.0)
    assert study["ripple"].effect == pytest.approx(0.3, rel=0.05)


def test_a_drift_alike_both_ways_is_that_of_an_offset() -> None:
    drift = fitted(run(0.02 * (T - 10.0))).residual_study()["time"]
    assert drift.strong
    assert drift.effect == pytest.approx(0.4, rel=0.1)
    assert drift.numbers["alike"] == pytest.approx(0.02, rel=0.1)
    assert "an offset drifts" in drift.sentence


def test_friction_that_falls_is_told_from_an_offset_that_drifts() -> None:
    drift = fitted(run(0.02 * (T - 10.0) * np.sign(V))).residual_study()["time"]
    assert drift.strong
    assert drift.numbers["with the motion"] == pytest.approx(0.02, rel=0.1)
    assert "friction falls" in drift.sentence


def test_a_stribeck_term_that_the_law_lacks_is_found_over_speed() -> None:
    study = fitted(run(-0.8 * np.sign(V) * np.exp(-2 * np.abs(V)))).residual_study()
    assert strong(study) == {"speed"}
    assert "another friction law" in study["speed"].sentence


def test_friction_that_differs_by_direction_is_found_as_a_mean() -> None:
    study = fitted(run(np.where(V > 0, -0.4, -0.2))).residual_study()
    assert "direction" in strong(study)
    assert study["direction"].numbers["alike"] == pytest.approx(-0.3, abs=0.03)
    assert "differs by direction" in study["direction"].sentence


def test_a_slope_over_position_is_found_in_newtons_a_metre() -> None:
    # The mass is known: else it takes up a part, for the acceleration is largely the position
    # turned round.
    machine = fx.parameters.replace(sledge(), {"mass.m": 2.0})
    found = fx.fit(
        machine, run(-0.5 * S), free=["friction.f_pos"], objective=fx.InverseDynamics(20.0)
    )
    position = found.residual_study()["position"]
    assert position.strong
    assert position.numbers["slope"] == pytest.approx(-0.5, abs=4 * position.numbers["slope error"])
    assert "which indicates a spring" in position.sentence


def test_the_error_of_a_curve_over_position_is_not_that_of_its_slope() -> None:
    machine = fx.parameters.replace(sledge(), {"mass.m": 2.0})
    record = run(0.6 * np.abs(S))
    found = fx.fit(machine, record, free=["friction.f_pos"], objective=fx.InverseDynamics(20.0))
    position = found.residual_study()["position"]
    assert position.strong
    # Between seeds the effect scatters by 0.02 N; the error of the slope is 0.15 N over the travel.
    assert position.effect == pytest.approx(0.6 * np.ptp(np.abs(S)), rel=0.15)
    assert 0.005 < position.error < 0.04


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.9, 0.99])
def test_a_right_model_with_coloured_noise_raises_at_most_one_false_alarm_of_a_kind_in_20_records(
    rho: float,
) -> None:
    alarms: Counter[str] = Counter()
    whiteness = 0
    for seed in range(20):
        # The weak form has a residual for each spline; the autocorrelation is that of samples.
        study = fitted(run(seed=seed, rho=rho), at_samples=True).residual_study()
        alarms.update(strong(study))
        whiteness += study["whiteness"].strong
    assert max(alarms.values(), default=0) <= 1, alarms
    assert whiteness <= 1 if rho == 0 else whiteness == 20


def test_an_autoregression_has_its_correlation_time_and_its_number_of_independent_samples() -> None:
    numbers = fitted(run(rho=0.9), at_samples=True).residual_study()["whiteness"].numbers
    assert numbers["first"] == pytest.approx(0.9, abs=0.02)
    assert numbers["independent samples"] == pytest.approx(T.size * 0.1 / 1.9, rel=0.25)
    assert numbers["correlation time"] == pytest.approx(0.5 * 0.005 * 1.9 / 0.1, rel=0.25)


@pytest.mark.slow
def test_each_record_is_studied_by_itself() -> None:
    found = fitted([run(0.3 * np.sin(2 * np.pi * S / 0.05), name="worn"), run(seed=1, name="new")])
    study = found.residual_study()
    assert {(f.record, f.name) for f in study.findings if f.strong and f.name != "whiteness"} == {
        ("worn", "ripple")
    }
    assert study["ripple"].record == "worn"
    assert "worn: Residual force" in str(study)
    assert not strong(found.residual_study("new"))
    with pytest.raises(KeyError, match="There is no record 'old' in this fit. It has: worn, new."):
        found.residual_study("old")
    with pytest.raises(
        KeyError, match="There is no finding 'speeed' in this study. It has: whiteness, speed"
    ):
        study["speeed"]  # pyright: ignore[reportArgumentType]


def arm() -> fx.Mechanism:
    law = fx.Coulomb(F_Coulomb=1.5, F_prop=0.5)
    return fx.Mechanism(
        arm=fx.Inertia(J=1.5),
        friction=fx.BearingFriction("arm", tau_pos=law),
        drive=fx.Torque("arm", 0.0),
    )


@pytest.mark.slow
def test_the_ripple_of_a_motor_is_told_in_newton_metres_and_how_often_it_comes_in_a_turn() -> None:
    pull = 2 * 6 * A + 2 * np.sign(V) + 6 * V - 0.3 * np.sin(12 * 6 * S) + coloured(0)
    record = fx.Record(T, {"drive": pull}, {"arm.phi": 6 * S}, name="run")
    found = fx.fit(
        arm(), record, free=["arm.J", "friction.tau_pos"], objective=fx.InverseDynamics(20.0)
    )
    ripple = found.residual_study(cutoff=40.0)["ripple"]
    assert ripple.strong
    assert ripple.unit == "N.m"
    assert ripple.numbers["per turn"] == pytest.approx(12.0, rel=0.005)
    assert ripple.effect == pytest.approx(0.3, rel=0.1)
    assert "Residual torque on arm" in ripple.sentence
    assert "times a turn" in ripple.sentence


@pytest.mark.slow
def test_the_force_is_told_where_only_the_speed_is_measured() -> None:
    pull = 2.0 * A + 2.0 * np.sign(V) + 1.0 * V - 0.3 * np.sin(2 * np.pi * S / 0.2) + coloured(0)
    record = fx.Record(T, {"drive": pull}, {"mass.v": V}, name="run").decimate(4)
    study = fx.fit(sledge(), record, free=FREE, rounds=0).residual_study(cutoff=20.0)
    assert study["ripple"].strong
    assert study["ripple"].numbers["period"] == pytest.approx(0.2, rel=0.005)
    assert not study.notes


class Pendulum(fx.AbstractAxis):
    friction: fx.SupportFriction
    J: Scalar = parameter(Positive(), "kg.m2")

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return self.J

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return args["motor"] - 3.0 * jnp.sin(y[0])

    def states(self) -> tuple[str, ...]:
        return ("phi", "w")

    def start(self, t: Any) -> Any:
        return self.begin(t, [S[0], V[0]])


@pytest.mark.slow
def test_a_machine_of_the_users_own_with_dry_friction_tells_its_force_too() -> None:
    axis = Pendulum(fx.SupportFriction("joint", f_pos=fx.Coulomb(F_Coulomb=2.0)), J=jnp.array(2.0))
    pull = (
        2.0 * A
        + 3.0 * np.sin(S)
        + 2.0 * np.sign(V)
        - 0.3 * np.sin(2 * np.pi * S / 0.2)
        + coloured(0)
    )
    record = fx.Record(T, {"motor": pull}, {"phi": S}, name="run").decimate(4)
    found = fx.fit(axis, record, free=["J", "friction.f_pos.F_Coulomb"], rounds=0)
    study = found.residual_study(cutoff=20.0)
    assert not study.notes
    assert study["ripple"].strong
    assert study["ripple"].numbers["forward"] == pytest.approx(0.3, rel=0.06)


@pytest.mark.slow
def test_where_no_force_can_be_told_residuals_of_the_objective_are_studied_and_the_study_says_so():
    t = 0.05 * np.arange(400)
    two = fx.Mechanism(
        motor=fx.Inertia(J=1.0),
        shaft=fx.RotationalSpringDamper("motor", "load", c=50.0, d=1.0),
        load=fx.Inertia(J=1.0),
        friction=fx.BearingFriction("load", tau_pos=fx.Coulomb(F_Coulomb=0.5)),
        drive=fx.Torque("motor", fx.Sampled(t, np.sin(t))),
    )
    w = np.asarray(fx.simulate(two, t, fx.OnSamples())["motor"].w) + coloured(0, sd=0.01)[:400]
    study = fx.fit(
        two,
        fx.Record(t, {"drive": np.sin(t)}, {"motor.w": w}, name="run"),
        free=["friction.tau_pos.F_Coulomb"],
        rounds=0,
    ).residual_study()
    note = next(note for note in study.notes if "residuals of FreeRun are studied" in note)
    assert "neither load.phi nor load.w" in note
    assert study["speed"].unit == "rad/s"
    assert "Residual of motor.w" in study["speed"].sentence
    assert "does not contain the position" in study["ripple"].sentence
    assert not strong(study)


def test_the_picture_has_a_panel_a_finding_with_its_sentence_and_an_svg_of_it_is_small(
    tmp_path: Path,
) -> None:
    study = fitted(run(0.3 * np.sin(2 * np.pi * S / 0.05))).residual_study()
    figure = study.plot()
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert len(panels) == 6
    text = " ".join(t.get_text().replace("\n", " ") for axes in figure.axes for t in axes.texts)
    assert all(finding.sentence in text for finding in study.findings)
    figure.savefig(tmp_path / "residuals.svg")
    assert (tmp_path / "residuals.svg").stat().st_size < 4e5


@pytest.fixture
def identify(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    folder = root / "identification" / "emps"
    monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location("identify_emps", folder / "identify.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module  # pyright: ignore[reportReturnType]


@pytest.mark.slow
def test_the_screw_of_the_emps_axis_has_a_pitch_of_two_and_a_half_millimetres_and_its_offset_drifts(
    identify: Any, data_folder: Path
) -> None:
    study = identify.inverse_dynamics(
        identify.read("identification", data_folder / "emps")
    ).residual_study()
    ripple, drift = study["ripple"], study["time"]
    assert ripple.strong
    assert ripple.numbers["period"] == pytest.approx(2.5e-3, rel=0.002)
    assert ripple.numbers["forward"] == pytest.approx(0.87, rel=0.15)
    assert drift.strong
    assert drift.effect / 2 == pytest.approx(0.25, abs=0.07)
    assert "an offset drifts" in drift.sentence


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seeds", [5, 40])
def test_no_ripple_has_a_period_beyond_half_of_the_travel(seeds: int) -> None:
    """What changes slowly along the way does not repeat itself."""
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        period = np.ptp(S) * random.uniform(0.6, 1.6)
        left = 0.3 * np.sin(2 * np.pi * S / period + random.uniform(0, 6)) * np.sign(
            V
        ) + 0.1 * random.standard_normal(T.size)
        keep = np.abs(V) > 0.05 * np.max(np.abs(V))
        x = Series("run", "mass", "N", True, T[keep], left[keep], S[keep], V[keep], "m", 20.0)
        assert ripple(x, Columns.from_series(x), 0.005)[0].numbers["period"] <= 0.5001 * np.ptp(
            S[keep]
        ), seed


# -- sweeps
# -------------------------------------------------------------------------------------------------


def rows_of(dip: float, seed: int, directions: int = 2) -> fx.Sweep:
    """Rows in the order of their speeds, with 1 % noise."""
    v = np.repeat(np.geomspace(0.05, 4.0, 20), 2 if directions == 2 else 1)
    v = np.where(np.arange(v.size) % 2, -v, v) if directions == 2 else v
    law = fx.Stribeck(F_prop=1.0, F_Coulomb=4.0, F_Stribeck=dip, fexp=4.0)
    force = np.sign(v) * np.asarray(law(jnp.abs(v)))
    noise = 0.05 * np.random.default_rng(seed).standard_normal(v.size)
    return fx.Sweep(v, force + noise, velocity_unit="m/s", force_unit="N")


@pytest.mark.parametrize("directions", [1, 2])
def test_what_a_law_of_a_sweep_lacks_is_seen_over_the_speed(directions: int) -> None:
    found = fx.fit(fx.Coulomb(3.0, 1.0), rows_of(1.0, 0, directions))
    study = found.residual_study()
    assert study["speed"].strong
    assert study["speed"].p < 1e-4
    assert "another friction law" in str(study)
    assert [f.name for f in study.findings] == ["speed", "direction"][:directions]
    study.plot()


def test_of_thirty_sweeps_of_the_right_law_at_most_one_seems_to_lack_something() -> None:
    studies = [
        fx.fit(fx.Coulomb(3.0, 1.0), rows_of(0.0, seed)).residual_study() for seed in range(30)
    ]
    assert sum(any(f.strong for f in study.findings) for study in studies) <= 1


def test_a_force_that_is_added_to_both_directions_is_told_as_such() -> None:
    sweep = rows_of(0.0, 3)
    shifted = fx.Sweep(sweep.velocity, sweep.force + 0.4, velocity_unit="m/s", force_unit="N")
    finding = fx.fit(fx.Coulomb(3.0, 1.0), shifted).residual_study()["direction"]
    assert finding.strong
    assert finding.numbers["alike"] == pytest.approx(0.4, abs=0.05)
