"""The plots of a record beside a free run: sensors, units, modes of the contacts, odd records."""

import csv
import dataclasses
import gzip
import io
from base64 import b64decode
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.analysis.replay.free_run import Motion, motion, preview
from frictax.engine import Result
from frictax.report import plots
from frictax.report.page import downloads
from frictax.report.plots import _contacts, channels, friction_plot, motion_plots
from frictax.report.trajectory_figure import draw_trajectory

# 50 Hz, with a gap of 1 s: the mean sampling rate is below 0.9 times the rate between samples.
T = np.arange(200) * 0.02 + (np.arange(200) >= 100)
PUSH = 4.0 * np.sin(2.0 * T)
SD = np.where(T < 2.0, 1e-3, 2e-3)
SENSOR = fx.Instrument(gain=2.0, offset=0.5, drift=0.1, delay=0.013)


def machine(push: Any = 0.0) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        guide=fx.SupportFriction("mass", f_pos=fx.Coulomb(1.0)),
        seal=fx.SupportFriction("mass", f_pos=fx.Coulomb(0.5, 0.1)),
        drive=fx.Force("mass", push),
    )


@pytest.fixture(scope="module")
def found() -> fx.FitResult:
    """A mass with two contacts, seen by a sensor with gain, offset, drift and delay."""
    fine = np.linspace(0.0, T[-1], 4 * round(T[-1] / 0.02) + 1)
    run = fx.simulate(machine(fx.Sampled(T, PUSH)), fine)["mass"].s
    late = np.interp(T - 0.013, fine, np.asarray(run))
    noise = SD * np.random.default_rng(0).standard_normal(T.size)
    seen = {"mass.s": 2.0 * late + 0.5 + 0.1 * T + noise}
    record = fx.Record(T, {"drive": PUSH}, seen, sd={"mass.s": SD}, name="a<b")
    sensors = {"outputs.mass.s": SENSOR}
    return fx.fit(machine(), record, free=["guide.f_pos.F_Coulomb"], instruments=sensors, rounds=0)


@pytest.fixture(scope="module")
def moved(found: fx.FitResult) -> Motion:
    return motion(found, "a<b", fx.FreeRun())


def moving(t: np.ndarray, states: Any, modes: Any = None, **more: Any) -> Motion:
    modes = {"friction": np.ones(t.size, int)} if modes is None else modes
    friction = {name: np.zeros(t.size) for name in modes}
    return Motion(t, states, modes, friction, more.get("result", Result.successful), states)


def curves(plot: dict[str, Any]) -> dict[str, np.ndarray]:
    """Title of each panel -> the values of its curves, one after the other."""
    out = {}
    for key, axis in plot["layout"].items():
        if key.startswith("yaxis"):
            of = [c["y"] for c in plot["data"] if c["yaxis"] == key.replace("axis", "")]
            out[axis["title"]["text"]] = np.array([y for c in of for y in c if y is not None])
    return out


def titles(plot: dict[str, Any]) -> list[str]:
    return [v["title"]["text"] for k, v in plot["layout"].items() if k.startswith("yaxis")]


def strips(plot: dict[str, Any], row: int = 0) -> list[dict[str, Any]]:
    shapes = plot["layout"]["shapes"]
    return [s for s in shapes if s["xref"] == "x" and row < s["y0"] < row + 1]


def test_a_record_is_compared_with_what_its_sensor_shows(
    found: fx.FitResult, moved: Motion
) -> None:
    record = found.records["a<b"]
    left = record.outputs["mass.s"] - moved.readings["mass.s"]
    assert np.sqrt(np.mean(left**2)) == pytest.approx(found.rms["a<b"]["mass.s"], rel=1e-6)
    _, plot = motion_plots(record, "a<b", moved, machine=found.model)[0]
    (residual,) = (y for name, y in curves(plot).items() if name.startswith("residual [mm]"))
    assert np.max(np.abs(residual)) < 8.0, "5 standard deviations of the noise, at most"
    speed, unit = channels(record)["mass.v"]
    assert unit == "m/s"
    apart = (speed - moved.readings["mass.v"])[20:80]
    assert np.sqrt(np.nanmean(apart**2)) < 0.1 * np.std(speed)
    assert np.nanstd(2.0 * moved.states["mass.v"] + 0.1 - moved.readings["mass.v"]) < 0.1


def test_the_file_with_the_record_has_what_its_sensor_shows(
    found: fx.FitResult, moved: Motion
) -> None:
    _, file = downloads(found, "{}", {"a<b": moved})
    content = b64decode(file["address"].partition(",")[2])
    text = gzip.decompress(content) if file["name"].endswith(".gz") else content
    rows = list(csv.DictReader(io.StringIO(text.decode())))
    seen, ran = (
        np.array([float(row[f"mass.s {kind} [m]"]) for row in rows])
        for kind in ("measured", "simulated")
    )
    assert np.max(np.abs(seen - ran)) < 0.01


def test_a_varying_standard_deviation_and_names_are_in_the_captions(
    found: fx.FitResult, moved: Motion
) -> None:
    record = found.records["a<b"]
    whole, detail = (caption for caption, _ in motion_plots(record, "a<b", moved))
    assert "Grey band: twice the median standard deviation of the noise" in whole
    assert detail.startswith("a<b: around the ")
    odd = moving(T, {"mass.s": T}, {"a<b": np.sign(T - 3.0).astype(int)})
    *_, (caption, plot) = motion_plots(record, "run", odd)
    assert "that a<b sticks" in caption, "the template of the page escapes the name"
    assert "a&lt;b" in [c["name"] for c in plot["data"]]


def test_each_contact_has_a_named_row_in_the_strip_of_modes(
    found: fx.FitResult, moved: Motion
) -> None:
    _, plot = motion_plots(found.records["a<b"], "a<b", moved)[0]
    (axis,) = (v for k, v in plot["layout"].items() if k.startswith("yaxis") and "ticktext" in v)
    assert axis["ticktext"] == ["guide", "seal"]
    assert axis["tickvals"] == [0.5, 1.5]


def test_strips_of_many_modes_reach_the_end_of_the_record_and_the_caption_says_what_lacks() -> None:
    t = np.linspace(0.0, 60.0, 6001)
    record, flip = fx.Record(t, outputs={"mass.v": np.sin(t)}), np.arange(t.size) // 10 % 2
    run = moving(t, {"mass.v": np.sin(t)}, {"a": flip, "b": flip})
    (caption, plot), *_ = motion_plots(record, "run", run, beside=10)
    for row in (0, 1):
        assert 30 < len(strips(plot, row)) <= 160
        assert max(s["x1"] for s in strips(plot, row)) == 60.0
    assert "does not show all short modes" in caption
    (caption, plot), *_ = motion_plots(record, "run", run)
    assert len(strips(plot)) == pytest.approx(600, abs=1)
    assert "short modes" not in caption


def test_modes_after_an_early_end_are_not_drawn() -> None:
    t = np.linspace(0.0, 60.0, 601)
    v = np.where(t < 30.0, np.sin(t), np.nan)
    modes = {"a": np.where(t < 10.0, 1, 0)}
    run = moving(t, {"mass.v": v}, modes, result=Result.nonfinite)
    shown = motion_plots(fx.Record(t, outputs={"mass.v": np.sin(t)}), "run", run)
    for _, plot in shown:
        assert max(s["x1"] for s in strips(plot)) <= 29.9 + 1e-9
    assert "first change of mode of a" in shown[1][0]


def test_rates_have_the_unit_of_their_position() -> None:
    t = np.linspace(0.0, 2.0, 401)
    angles = {"phi1": np.sin(3 * t), "rotor.s": np.cos(3 * t)}
    record = fx.Record(t, outputs=angles, units={"rotor.s": "rad"})
    found = channels(record)
    assert {name: unit for name, (_, unit) in found.items()} == {
        "phi1": "rad",
        "w1": "rad/s",
        "rotor.s": "rad",
        "rotor.v": "rad/s",
    }
    _, plot = motion_plots(record, "arm", moving(t, {"w1": 3 * np.cos(3 * t)}))[0]
    assert {"w1 [rad/s]", "rotor.v [rad/s]"} <= set(titles(plot))


@pytest.mark.parametrize("n", [4, 5, 12, 1001])
def test_short_records_are_drawn(n: int) -> None:
    t = np.linspace(0.0, 0.01, n)
    record = fx.Record(t, outputs={"mass.s": np.sin(300 * t)})
    _, plot = motion_plots(record, "hit", moving(t, {"mass.s": record.outputs["mass.s"]}))[0]
    assert any(title.startswith("mass.v [") for title in titles(plot))
    if n == 1001:
        speed, _ = channels(record)["mass.v"]
        np.testing.assert_allclose(speed, 300 * np.cos(300 * t), atol=15.0)


def test_many_contacts_and_many_records_are_drawn() -> None:
    t = np.linspace(0.0, 1.0, 101)
    record = fx.Record(t, outputs={"mass.v": np.sin(t)})
    many = {f"c{i}": np.ones(t.size, int) for i in range(30)}
    _, plot = motion_plots(record, "run", moving(t, {"mass.v": np.sin(t)}, many), beside=900)[0]
    assert set(many) <= {c["name"] for c in plot["data"]}
    assert all(strips(plot, row) for row in range(30))


class Sledges(fx.AbstractLinkage):
    """Two sledges that are joined by a rod."""

    frictions: tuple[fx.SupportFriction, ...]

    def mass_matrix(self, q: Any) -> Any:
        return jnp.array([[2.0]])

    def force(self, t: Any, q: Any, u: Any, args: Any) -> Any:
        return jnp.array([6.0])

    def jacobian(self, q: Any) -> Any:
        return jnp.array([[1.0], [1.0]])

    def states(self) -> tuple[str, ...]:
        return ("s", "v")

    def start(self, t: Any) -> Any:
        return self.begin(t, jnp.zeros(2))


class Silent(fx.AbstractHybridSystem):
    """A falling mass, which does not state a friction."""

    def states(self) -> tuple[str, ...]:
        return ("s", "v")

    def start(self, t: Any) -> Any:
        return jnp.zeros(2), jnp.zeros(1, int)

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.stack([y[1], -9.81])

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.ones(1)

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        return y, mode, jnp.array(0)


@pytest.mark.slow
def test_a_linkage_has_the_friction_of_each_contact_and_another_machine_has_no_curve() -> None:
    t = np.linspace(0.0, 1.0, 51)
    record = fx.Record(t, outputs={"s": t**2}, name="run")
    sledges = Sledges(
        tuple(fx.SupportFriction("sledge", f_pos=fx.Coulomb(F_Coulomb=F)) for F in (1.0, 0.5))
    )
    run = preview(sledges, record, fx.FreeRun()).motion
    assert list(run.modes) == ["frictions.0", "frictions.1"]
    ends = {name: float(f[-1]) for name, f in run.friction.items()}
    assert ends == pytest.approx({"frictions.0": 1.0, "frictions.1": 0.5})
    assert preview(Silent(), record, fx.FreeRun()).motion.friction == {}


def test_a_turning_brake_is_drawn_over_an_angular_velocity_without_a_residual_study(
    found: fx.FitResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    t = np.linspace(0.0, 2.0, 201)
    brakes = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        rotor=fx.Inertia(J=1.0),
        brake=fx.Brake("rotor", mu_pos=fx.Coulomb(F_Coulomb=0.2), fn_max=1.0),
    )
    outputs = {"mass.v": 9.0 + t, "rotor.phi": 2.0 * t}
    record = fx.Record(t, outputs=outputs)
    monkeypatch.setattr(plots, "example_machine", lambda found: (brakes, None))
    braked = dataclasses.replace(found, records={"run": record})
    for study in (None, SimpleNamespace(series=[SimpleNamespace(v=t, place="m")])):
        units, contacts, top = _contacts(braked, study)
        assert units == ("", "rad/s")
        assert list(contacts) == ["brake"]
        assert top == pytest.approx(2.0)


def test_friction_is_drawn_up_to_the_highest_speed(found: fx.FitResult) -> None:
    plot = friction_plot(found, found.uncertainty(fx.White()), None)
    assert plot is not None
    assert plot["layout"]["xaxis"]["title"]["text"] == "velocity [m/s]"
    speed, _ = channels(found.records["a<b"])["mass.v"]
    top = max(x for c in plot["data"] for x in c["x"])
    assert top == pytest.approx(np.max(np.abs(speed)), rel=1e-3)


def test_a_mass_and_a_rotor_are_drawn_in_separate_panels() -> None:
    both = fx.Mechanism(
        mass=fx.Mass(m=1.0, v=0.3),
        guide=fx.SupportFriction("mass", f_pos=fx.Coulomb(0.1)),
        rotor=fx.Inertia(J=0.1, w=5.0),
        brake=fx.Brake("rotor", mu_pos=fx.Coulomb(0.1)),
    )
    run = fx.simulate(both, np.linspace(0.0, 1.0, 11))
    drawn = draw_trajectory(run).axes
    units = ["position [m]", "velocity [m/s]", "position [rad]", "velocity [rad/s]"]
    assert [axes.get_ylabel() for axes in drawn] == [*units, "force [N]", "torque [N.m]", ""]
    names = [[line.get_label() for line in axes.lines[1:]] for axes in drawn[:6]]
    assert names[:4] == [["mass"], ["mass"], ["rotor"], ["rotor"]]
    assert names[4][0] == "guide"
    assert names[5][0] == "brake"
    assert len(draw_trajectory(run, rotational=False).axes) == 4


def test_the_residuals_of_a_record_with_a_gap_are_studied(found: fx.FitResult) -> None:
    study = found.residual_study()
    assert not [note for note in study.notes if "`smooth` cutoff" in note]
    assert study.series[0].of == "mass"
