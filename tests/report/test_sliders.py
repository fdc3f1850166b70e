"""Sliders move the fitted curves as new simulations do, or to first order as far as is said."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.fitting import FitResult, Found
from frictax.fitting.problem.problem import predictions
from frictax.report import simulation, write_sweep_report
from frictax.report.page import Section, page as page_text
from frictax.report.record_figure import channels_of
from frictax.report.sliders import ranges, sliders
from report.browser import SWITCH, WIDTHS, look, needs_browser, slide

PUSH = fx.Sine(amplitude=3.0, f=0.5)


def block(*, peak: float = 1.0, **values: float) -> fx.Mechanism:
    law = fx.Coulomb(F_Coulomb=values["F_Coulomb"], F_prop=values["F_prop"])
    return fx.Mechanism(
        mass=fx.Mass(m=values["m"]),
        friction=fx.SupportFriction("mass", f_pos=law, peak=peak),
        drive=fx.Force("mass", 0.0),
    )


@pytest.fixture(scope="module")
def record() -> fx.Record:
    t = np.linspace(0.0, 3.0, 301)
    u = np.asarray([float(PUSH(x)) for x in t])
    true = block(m=2.0, F_Coulomb=1.0, F_prop=0.5)
    moved = fx.Mechanism(mass=true["mass"], friction=true["friction"], drive=fx.Force("mass", PUSH))
    v = np.asarray(fx.simulate(moved, ts=jnp.asarray(t))["mass"].v)
    noise = np.random.default_rng(0).normal(size=t.size)
    return fx.Record(t, inputs={"drive": u}, outputs={"mass.v": v + 5e-3 * noise}, name="push")


@pytest.fixture(scope="module", params=["FreeRun", pytest.param("Windows", marks=pytest.mark.slow)])
def fitted(request: pytest.FixtureRequest, record: fx.Record) -> FitResult:
    objective = {"FreeRun": fx.FreeRun(), "Windows": fx.Windows(1.0)}[request.param]
    start = block(m=1.5, F_Coulomb=0.8, F_prop=0.3)
    return fx.fit(start, record, free=["mass.m", "friction.f_pos"], objective=objective)


def anew(found: FitResult, k: int, by: float) -> np.ndarray:
    """The curve of the fit simulated with number `k` moved."""
    x = np.array(found.x)
    x[np.flatnonzero(found.shown)[k]] += by
    return np.ravel(np.asarray(predictions(found.problem, jnp.asarray(x), 0))[..., 0])


@pytest.mark.slow
def test_the_slopes_are_the_derivatives_of_the_simulated_curve(fitted: FitResult) -> None:
    (channel,) = channels_of(fitted)
    for k, e in enumerate(fitted.estimates):
        h = 1e-5 * e.value
        central = (anew(fitted, k, h) - anew(fitted, k, -h)) / (2 * h)
        size = np.max(np.abs(central))
        # where the instant of an event passes a sample, the two sides differ
        assert np.mean(np.abs(channel.slopes[:, k] - central) > 1e-3 * size) < 0.02


@pytest.mark.slow
def test_within_the_range_that_is_said_a_new_simulation_is_as_near_as_is_said(
    fitted: FitResult,
) -> None:
    (channel,) = channels = channels_of(fitted)
    allowed = max(0.5 * channel.rms(channel.residual), 0.01 * float(np.std(channel.measured)))
    for k, reach in enumerate(ranges(fitted, channels, fitted.estimates)):
        assert reach is not None
        assert reach.off <= 1.0
        assert reach.lower < -3 * reach.estimate.standard_error
        assert reach.upper > 3 * reach.estimate.standard_error
        for by in (reach.lower, 0.5 * reach.lower, 0.5 * reach.upper, reach.upper):
            straight = channel.fitted + by * channel.slopes[:, k]
            assert channel.rms(anew(fitted, k, by) - straight) <= allowed


@pytest.mark.slow
def test_a_number_that_moves_nothing_has_no_slider_and_is_named(record: fx.Record) -> None:
    start = block(m=1.5, F_Coulomb=0.8, F_prop=0.3, peak=1.1)
    free = ["mass.m", "friction.peak"]  # of moving samples none tells when it breaks away
    found = fx.fit(start, record, free=free, objective=fx.InverseDynamics())
    made = sliders(found)
    assert [row["name"] for row in made.rows] == ["mass.m"]
    assert made.still == ["friction.peak"]


@pytest.fixture(scope="module")
def page(record: fx.Record, tmp_path_factory: pytest.TempPathFactory) -> tuple[FitResult, Path]:
    start = block(m=1.5, F_Coulomb=0.8, F_prop=0.3)
    free = ["mass.m", "friction.f_pos"]
    found = fx.fit(start, record, free=free, objective=fx.FreeRun())
    return found, found.report(tmp_path_factory.mktemp("machine") / "report.html")


@needs_browser
def test_a_slider_in_a_browser_simulates_curve_strip_and_rms_and_goes_back(page: Any) -> None:
    found, path = page
    seen, console = slide(path, 1)
    assert console == []
    (channel,) = channels_of(found)
    expected = anew(found, 1, seen["by"])
    at = np.searchsorted(channel.x, np.asarray(seen["x"]) - 1e-9)
    _, curve, strip = (np.asarray(y, float) for y in seen["after"]["y"])
    np.testing.assert_allclose(curve, expected[at], rtol=0, atol=1e-9)
    scale = 1e-3  # the strip is in mm/s
    np.testing.assert_allclose(scale * strip, (channel.measured - expected)[at], rtol=0, atol=1e-9)
    rms = float(f"{np.sqrt(np.mean((channel.measured - expected) ** 2)) / scale:.3g}")
    assert seen["after"]["rms"][0].startswith(f"push: mass.v: rms {rms:g} mm/s (fit ")
    value = found.estimates[1].value + seen["by"]
    assert float(seen["after"]["value"].split()[0]) == pytest.approx(value, rel=1e-5)
    assert " N (+" in seen["after"]["value"]
    assert "std. errors" in seen["after"]["value"]
    assert seen["back"] == seen["before"]


@pytest.mark.slow
@needs_browser
def test_a_page_that_does_not_simulate_says_why_and_moves_along_the_derivative(
    page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(simulation.LONGEST, "the code of the machine", 1000)
    found, (channel,) = page[0], channels_of(page[0])
    made = sliders(found)
    assert made.script == ""
    assert "This page does not simulate: the code of the machine would need" in made.lead
    blocks, path = [Section("fit", "Fit", made.blocks())], tmp_path / "page.html"
    path.write_text(page_text("Fit", "", blocks, notes=[], plots=made.figures, moving=made))
    seen, console = slide(path, 1)
    assert console == []
    straight = channel.fitted + seen["by"] * channel.slopes[:, 1]
    at = np.searchsorted(channel.x, np.asarray(seen["x"]) - 1e-9)
    _, curve, strip = (np.asarray(y, float) for y in seen["after"]["y"])
    size = np.max(np.abs(channel.fitted))
    np.testing.assert_allclose(curve, straight[at], atol=1e-4 * size)
    scale = 1e-3  # the strip is in mm/s
    np.testing.assert_allclose(scale * strip, (channel.measured - straight)[at], atol=2e-4 * size)
    rms = np.sqrt(np.mean((channel.measured - straight) ** 2))
    assert seen["after"]["rms"][0].startswith(f"push: mass.v: rms {rms / scale:#.3g}"[:-1])
    assert seen["back"] == seen["before"]


TYPE = """
    var input = document.getElementById("move-1");
    input.focus();
    input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    var field = document.activeElement, named = field.getAttribute("aria-label");
    field.value = "%s";
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    await pause(600);
    return { named: named, back: document.activeElement.id, place: Number(input.value),
      value: document.getElementById("value-1").textContent,
      curve: Array.from(document.getElementById("plot-fit-0").data[1].y),
      x: Array.from(document.getElementById("plot-fit-0").data[0].x) };
"""


@needs_browser
def test_a_number_is_typed_at_a_slider_by_keyboard(page: Any) -> None:
    found, path = page
    by = 4.0 - found.estimates[1].value
    seen, console = look(path, TYPE % "4.0")
    assert console == []
    assert seen["named"] == "friction.f_pos.F_Coulomb [N]"
    assert seen["back"] == "move-1"
    assert seen["value"].startswith("4 N")
    (channel,) = channels_of(found)
    at = np.searchsorted(channel.x, np.asarray(seen["x"]) - 1e-9)
    np.testing.assert_allclose(seen["curve"], anew(found, 1, by)[at], rtol=0, atol=1e-9)


@needs_browser
@pytest.mark.parametrize(("width", "dark"), [(1300, False), (390, True)])
def test_no_table_is_wider_than_the_page_and_the_console_is_silent(
    width: int, dark: bool, page: Any
) -> None:
    seen, console = look(page[1], WIDTHS, width=width, dark=dark)
    assert console == []
    assert seen == {"wide": [], "page": width, "room": width}


@pytest.mark.slow
@needs_browser
def test_the_switch_turns_page_and_pictures_dark(page: Any) -> None:
    (light, dark), console = look(page[1], SWITCH)
    assert console == []
    assert light == ["rgb(255, 255, 255)", "rgb(34, 34, 34)"]
    assert dark == ["rgb(20, 20, 20)", "rgb(228, 230, 234)"]


@pytest.mark.slow
@needs_browser
def test_a_slider_moves_the_law_of_a_sweep(found: Found, tmp_path: Path) -> None:
    path = write_sweep_report(found, tmp_path / "report.html")
    seen, console = slide(path, found.names.index("f_pos.F_Coulomb"))
    assert console == []
    by = seen["by"]
    before, after = (np.asarray(seen[when]["y"][1], float) for when in ("before", "after"))
    forward = np.arange(before.size) > np.flatnonzero(np.isnan(before))[0]
    # a change of the dry part moves one direction by as much, and leaves the other as it is
    np.testing.assert_allclose((after - before)[forward], by, rtol=1e-3)
    assert np.nanmax(np.abs((after - before)[~forward])) == 0.0


def test_a_report_is_smaller_than_3_mb_and_holds_its_data(page: Any) -> None:
    found, path = page
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_size < 3_000_000
    for name in ("result.json", "push.csv"):
        assert f'download="{name}"' in text
