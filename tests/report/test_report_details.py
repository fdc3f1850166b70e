"""Units, digits and sentences of pages: what they say is so for the fit that they show."""

import base64
import csv
import dataclasses
import html
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import frictax as fx
from frictax.analysis import FreeRunScore, StructureComparison, Validation
from frictax.analysis.examination import Examination
from frictax.analysis.replay.free_run import Motion
from frictax.analysis.selection.cross_validation import HeldOut
from frictax.analysis.selection.structure import ComparedStructure
from frictax.engine import Result
from frictax.fitting.result.units import unit_of
from frictax.parameters import select
from frictax.report.analysis_figures import draw_held_out
from frictax.report.design_figure import draw_design
from frictax.report.machine_report import About, machine_report_text
from frictax.report.page import Section, downloads, page as page_text
from frictax.report.plotly_json import plot_panels, six_figures
from frictax.report.plots import friction_plot
from frictax.report.sliders import Sliders, sliders
from frictax.report.style import Curve, Panel
from frictax.report.sweep_text import python_text
from frictax.report.what_if import _rows
from report.browser import look, needs_browser

T = np.linspace(0.0, 4.0, 401)
V = 0.6 * np.sin(3.0 * T) + 0.4 * np.sin(7.1 * T)
A = 1.8 * np.cos(3.0 * T) + 2.84 * np.cos(7.1 * T)
S = -0.2 * np.cos(3.0 * T) - 0.4 / 7.1 * np.cos(7.1 * T)
LINEAR = fx.InverseDynamics(40.0, v_min=0.05, at_samples=True)
SPEEDS = [0.5, 1.0, 2.0, 4.0, 8.0]
FORCES = [6.12, 6.19, 6.41, 6.78, 7.61]


def fit_of(**records: fx.Record) -> fx.FoundMachine:
    law = fx.Coulomb(F_Coulomb=0.5, F_prop=0.4)
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=law),
        drive=fx.Force("mass", 0.0),
    )
    return fx.fit(block, records, free=["mass.m", "friction.f_pos"], objective=LINEAR)


def record(seed: int = 0, later: float = 0.0) -> fx.Record:
    noise = 0.2 * np.random.default_rng(seed).standard_normal(T.size)
    return fx.Record(T + later, {"drive": A + 0.4 * V + 0.5 * np.sign(V) + noise}, {"mass.s": S})


@pytest.fixture(scope="module")
def fitted() -> fx.FoundMachine:
    return fit_of(push=record())


def motion(result: Any) -> Motion:
    modes = {"friction": np.sign(V).astype(int)}
    return Motion(T, {"mass.s": S, "mass.v": V}, modes, {"friction": 0.5 * np.sign(V)}, result)


@pytest.fixture(scope="module")
def compared(fitted: fx.FoundMachine) -> StructureComparison:
    ones = np.ones(4)
    left = {
        kind: HeldOut(("a", "b"), ones[:2], ones[:2], ones, ones, 0)
        for kind in ("repeats", "records")
    }
    rows = tuple(
        ComparedStructure(name, fitted, 1.0, 1.0, 1.0, 0.0, 0.0, left, (), doubts)
        for name, doubts in (("one", ()), ("two", ("at its bound: mass.m",)))
    )
    return StructureComparison(fitted.records, rows, rows[0], "one is chosen.", 9.0, "m", "N", 20.0)


@pytest.fixture(scope="module")
def page(fitted: fx.FoundMachine, compared: StructureComparison) -> str:
    unit, rms = {"mass.s": "m"}, {"mass.s": 1e-3}
    drawn = FreeRunScore(
        "push", rms, unit, {}, {"mass.s": (1e-3, 2e-3, 3e-3)}, "draws", np.ones((9, 1)), 3
    )
    other = Validation("other", rms, rms, rms, unit, (), {})
    seen = Examination(None, {"push": motion(Result.inaccurate)}, None, ())
    found = dataclasses.replace(fitted, costs=np.array([1.0, 2.0, np.nan]))
    options = {"comparison": compared, "scores": [drawn, other]}
    text = machine_report_text(
        found, seen, About("A push"), uncertainty=fitted.uncertainty(), **options
    )
    return html.unescape(re.sub("<[^>]*>", " ", text.partition('<script type="text/plain"')[0]))


def test_a_run_that_is_inaccurate_reached_its_end(page: str) -> None:
    assert "reached its end, but the error of a state is above 1e-3 of its range." in page
    assert "ended early" not in page
    inaccurate, early = motion(Result.inaccurate), motion(Result.chatter)
    assert inaccurate.complete
    assert not inaccurate.successful
    assert not early.complete


def test_the_page_names_the_data_that_were_left_out_and_all_doubts(page: str) -> None:
    kinds = "repeats (equal parts of each record) and whole records"
    assert f"Errors of all structures on data left out of the fit: {kinds}." in page
    assert "two: at its bound: mass.m" in page


def test_the_page_counts_only_the_starts_and_simulations_that_it_shows(page: str) -> None:
    assert (
        "Final costs of 2 of 3 starts, divided by the least cost. The other starts failed." in page
    )
    assert re.search(r"draws: failed simulations\s+3 of 9", page)
    assert "other: measured start" in page
    assert "SHA-256" not in page


def test_a_caption_explains_points_only_if_they_are_drawn(page: str, fitted: Any) -> None:
    assert "Band: pointwise 95 % interval." in page
    assert "Points:" not in page
    plot = friction_plot(fitted, fitted.uncertainty(), fitted.residual_study())
    assert plot is not None
    assert plot["data"][0]["name"] == "from the measured motion"


def test_errors_of_an_objective_of_forces_are_forces(compared: StructureComparison) -> None:
    labels = [axes.get_xlabel() for axes in draw_held_out(compared).axes]
    assert labels == ["error of\nInverseDynamics [N]", "error of\nforce [N]"]


@pytest.mark.parametrize("start", [0.0, 3600.0, 1.7e9])
def test_each_time_and_each_small_motion_is_drawn_and_written(start: float, fitted: Any) -> None:
    t = start + 1e-3 * np.arange(2000)
    assert len(set(six_figures(t))) == t.size
    assert len(set(six_figures(-t))) == t.size
    late = dataclasses.replace(fitted, records={"push": record(later=start)})
    (_, file) = downloads(late, "{}", {"push": motion(Result.successful)})
    text = base64.b64decode(file["address"].partition("base64,")[2]).decode()
    rows = list(csv.DictReader(text.splitlines()))
    np.testing.assert_allclose([float(row["time [s]"]) - start for row in rows], T, atol=1e-5)


def test_six_digits_are_enough_from_0_and_no_number_is_lost() -> None:
    assert six_figures([0.0, 1 / 3, np.nan, -np.inf]) == [0.0, 0.333333, None, None]
    assert six_figures([]) == []
    assert six_figures([2 / 3, 2 / 3]) == [0.666667, 0.666667]
    assert six_figures([1.7e308, -1.7e308, 5e-324]) == [1.7e308, -1.7e308, 5e-324]


def test_a_slider_of_a_ratio_has_no_unit() -> None:
    v = np.array([0.0, 0.0, 0.0, *SPEEDS])
    f = np.array([7.3, 7.2, 7.25, *FORCES])
    found = fx.fit(
        fx.Coulomb, fx.Sweep(v, f, breakaway=v == 0, velocity_unit="m/s", force_unit="N")
    )
    (peak,) = [row for row in sliders(found).rows if row["name"] == "peak"]
    assert peak["unit"] == ""
    assert re.fullmatch(r"[\d.]+ ± [\d.]+", peak["found"])
    assert re.fullmatch(r"valid [\d.]+ to [\d.]+", peak["holds"])
    warm = fx.TemperatureDependent(fx.Coulomb(5.0), beta=0.02)
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0), friction=fx.SupportFriction("mass", f_pos=warm, peak=1.1)
    )
    chosen = select(block, ["friction.f_pos.beta", "friction.peak"])
    assert [row["unit"] for row in _rows(chosen, unit_of({}, block))[0]] == ["1/K", ""]


def test_the_curve_of_a_pressed_contact_is_the_force_that_was_fitted() -> None:
    """A sweep of a brake, whose law is a coefficient, beside a record of the same machine."""
    braked = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        drive=fx.Force("mass", 0.0),
        brake=fx.Brake("mass", mu_pos=fx.Coulomb(0.25), fn_max=100.0, f_normalized=1.0),
    )
    rng = np.random.default_rng(0)
    drive = A + 20.0 * np.sign(V) + 0.2 * rng.standard_normal(T.size)
    run = fx.Record(T, {"drive": drive}, {"mass.s": S})
    v, sigma = np.linspace(0.1, 1.0, 10), np.full(10, 0.1)
    force = 20 + 0.1 * rng.standard_normal(10)
    sweep = fx.Sweep(v, force, sigma, velocity_unit="m/s", force_unit="N")
    free = ["brake.mu_pos.F_Coulomb"]
    found = fx.fit(braked, {"brake": sweep, "run": run}, free=free, objective=LINEAR)
    made = sliders(found)
    points, curve = made.figures["fit-0"]["data"][:2]
    np.testing.assert_allclose(curve["y"], found.predicted("brake")[0, 0], rtol=1e-5)
    np.testing.assert_allclose(points["y"], force, rtol=1e-5)
    step, (move,) = made.data["sliders"][0]["step"], made.data["moves"][0]["slopes"]
    np.testing.assert_allclose(move, 100.0 * step * Sliders.steps, rtol=1e-3)


def test_a_page_says_how_many_of_many_records_it_draws() -> None:
    records = {f"r{i}": record(i).trim(0.0, 1.0) for i in range(7)}
    captions = [caption for _, caption in sliders(fit_of(**records)).captions]
    assert captions[-1].endswith("The page draws the first 6 of 7 records.")
    assert not any("The page draws" in caption for caption in captions[:-1])


def test_a_caption_says_whether_a_band_is_a_median_of_the_noise() -> None:
    for sigma, what in (([0.1] * 5, "standard"), ([0.1, 0.1, 0.1, 0.2, 0.3], "median standard")):
        found = fx.fit(fx.Coulomb(F_Coulomb=5.0, F_prop=0.2), fx.Sweep(SPEEDS, FORCES, sigma))
        assert f"band: two {what} deviations of the noise" in sliders(found).captions[0][1]


FURTHER = {
    "priors": {"priors": [fx.Normal("F_Coulomb", 5.0, 0.01)]},
    "bounds": {"bounds": {"F_prop": (0.0, 0.15)}},
    "log_scale": {"log_scale": "F_prop"},
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", FURTHER)
def test_printed_python_repeats_a_fit_or_says_that_it_does_not(name: str) -> None:
    sweep = fx.Sweep(SPEEDS, FORCES, velocity_unit="m/s", force_unit="N")
    text = python_text(fx.fit(fx.Coulomb(6.0, 0.1), sweep, **FURTHER[name]))
    assert "fx.fit" not in text
    assert text.endswith("# The fit has options or a law that this code does not repeat.")


def test_printed_python_does_not_fit_a_peak_that_was_fixed() -> None:
    v = [0.0, 0.0, *SPEEDS]
    sweep = fx.Sweep(v, [7.3, 7.2, *FORCES], breakaway=np.equal(v, 0.0))
    steady = fx.SteadyFriction(fx.Coulomb(6.0, 0.1), peak=1.1)
    assert "fx.fit" not in python_text(fx.fit(steady, sweep, free=["f_pos"]))


def test_an_axis_of_a_design_has_the_unit_of_its_body_and_no_invented_error() -> None:
    t = np.linspace(0.0, 1.0, 11)
    rotor = fx.Mechanism(rotor=fx.Inertia(J=1.0), motor=fx.Torque("rotor", 0.0))
    bare: Any = object.__new__(fx.Design)
    problem = SimpleNamespace(t=t, drive="motor", unit="N.m", machine=rotor, names=tuple("abc"))
    vars(bare).update({"problem": problem, "excitation": t, "clean": lambda: {"rotor.a": t}})
    vars(bare).update({"relative": np.array([0.1, np.inf, 40.0])})
    rivals = {f"rival {k}": np.array([0.2, 80.0, 0.3]) for k in range(6)}  # more than colours
    vars(bare).update({"beside": rivals, "worst": lambda says=None: 0.1})
    axes = draw_design(bare).axes
    assert axes[1].get_ylabel() == "rotor.a [rad/s2]"
    assert axes[-1].get_xlabel() == "relative error [%]; unknown errors are not drawn"
    np.testing.assert_array_equal(axes[-1].lines[-1].get_xdata(), [10.0, np.nan, 4000.0])


def test_a_posterior_with_a_tied_parameter_has_a_card() -> None:
    v = np.array([*SPEEDS, *(-x for x in SPEEDS)])
    f = np.sign(v) * np.array([*FORCES, *FORCES]) + 0.1 * (v < 0)
    sweep = fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")
    tied = {"f_neg.F_prop": "f_pos.F_prop"}
    found = fx.fit(fx.Coulomb, sweep, f_neg=fx.Coulomb, tied=tied)
    draws = found.x + 0.01 * np.random.default_rng(0).standard_normal((2, 50, 3))
    ones = np.ones(3)
    posterior = fx.Posterior(
        found, found.estimates, found.covariance, draws, draws, 9.0, 0.95, ones, ones, 0, ()
    )
    card = posterior._repr_html_()
    assert card.count("<tr>") == 1 + 4
    assert card.count("<svg") == 3


@needs_browser
def test_a_dark_page_without_sliders_is_drawn_and_keeps_the_names_of_curves(tmp_path: Path) -> None:
    x, names = np.arange(3.0), ["white", "constructor"]
    plot = plot_panels([Panel("", [Curve(x, x, "#222222", name) for name in names])], "t", 200)
    rms = [{"says": "a", "unit": "N", "n": 3, "squares": 1.0, "cross": [], "gram": []}]
    data = {"steps": Sliders.steps, "sliders": [], "moves": [], "rms": rms}
    still = Sliders({"fit-0": plot}, [("fit-0", "")], [], data, ["mass.m"], "")
    path, blocks = tmp_path / "page.html", [Section("fit", "Fit", still.blocks())]
    path.write_text(page_text("Fit", "", blocks, notes=[], plots=still.figures, moving=still))
    probe = "var all = document.getElementById('plot-fit-0').data;"
    probe += "return all.map(function (one) { return [one.name, one.line.color]; });"
    seen, console = look(path, probe, dark=True)
    assert console == []
    assert seen == [[name, "#e4e6ea"] for name in names]
