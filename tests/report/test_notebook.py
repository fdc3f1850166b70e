"""What a notebook shows of each object, and what a terminal does."""

import dataclasses
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.engine import Result
from frictax.excitation.check import Check
from frictax.report.cards import curve, strip

LARGEST = 30_000  # bytes
TAGS = {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "svg", "path"}
HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)> & {{ 7*7 }}"
T = np.linspace(0.0, 4.0, 401)
V = 0.6 * np.sin(3.0 * T) + 0.4 * np.sin(7.1 * T)
A = 1.8 * np.cos(3.0 * T) + 2.84 * np.cos(7.1 * T)
S = -0.2 * np.cos(3.0 * T) - 0.4 / 7.1 * np.cos(7.1 * T)
LINEAR = fx.InverseDynamics(40.0, v_min=0.05, at_samples=True)
FREE = ["mass.m", "friction.f_pos"]


class Page(HTMLParser):
    """Reads a piece of HTML whose elements are all closed, in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.words: list[str] = []
        self.rows = 0
        self.looks: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        self.rows += tag == "tr"
        self.looks += [str(value) for name, value in attrs if name == "style"]
        assert not [name for name, _ in attrs if name.startswith("on") or name == "src"]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def shown(thing: Any) -> Page:
    """What a notebook shows, which is small, has no colours of text or background, and loads
    nothing.
    """
    html = thing._repr_html_()
    assert len(html.encode()) < LARGEST
    page = Page(html)
    assert page.tags <= TAGS
    assert page.rows <= 15  # with the head
    assert not re.search("background|color|font-family", " ".join(page.looks))
    return page


def machine(**friction: Any) -> fx.Mechanism:
    law = fx.Coulomb(F_Coulomb=0.5, F_prop=0.4)
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=law, **friction),
        drive=fx.Force("mass", 0.0),
    )


def record(name: str = "push", seed: int = 0) -> fx.Record:
    noise = 0.2 * np.random.default_rng(seed).standard_normal(T.size)
    force = A + 0.4 * V + 0.5 * np.sign(V) + noise
    return fx.Record(T, {"drive": force}, {"mass.s": S}, name=name)


@pytest.fixture(scope="module")
def fitted() -> fx.FoundMachine:
    return fx.fit(machine(), record(HOSTILE), free=FREE, objective=LINEAR)


def test_a_fit_shows_its_numbers_with_units_errors_intervals_and_warnings(found: Any) -> None:
    page = shown(found)
    assert "drive 1" in page.text
    for estimate in found.estimates:
        assert estimate.name in page.text
    assert "95 % interval" in page.text
    assert "mN.m" in page.text
    assert page.text.count("⚠") == min(len(found.warnings), 4)
    assert found.warnings[0][:60] in page.text


def test_a_fit_of_a_machine_shows_how_well_it_fits(fitted: fx.FoundMachine) -> None:
    page = shown(fitted)
    assert "fitted to" in page.text
    assert "by InverseDynamics" in page.text
    assert "degrees of freedom" in page.text
    assert "kg" in page.text
    assert "Intervals (Guarded)" in page.text


def test_names_of_the_user_are_text_and_never_markup(fitted: fx.FoundMachine) -> None:
    sweep = fx.Sweep([1, 2, 3, 4, 5, 6], [1.1, 1.2, 1.3, 1.4, 1.5, 1.62], name=HOSTILE)
    laws = {HOSTILE: fx.Coulomb(1.0, 0.1), "</td></table>": fx.Coulomb(1.1, 0.2)}
    study = fitted.residual_study()
    for thing in (
        fitted,
        record(HOSTILE),
        sweep,
        fx.compare(sweep, laws),
        fx.fit(fx.Coulomb, sweep),
        fx.outlook(machine(), record(HOSTILE), free=FREE, objective=LINEAR),
        study,
    ):
        page = shown(thing)
        assert "{{ 7*7 }}" in page.text or thing is study
        assert "{{" not in " ".join(page.looks)


def test_the_law_to_take_is_bold_and_the_reason_below(comparison: Any) -> None:
    page = shown(comparison)
    best = [look for look in page.looks if "bold" in look]
    assert len(best) == len(comparison.as_table()[0])
    assert comparison.reason in page.text


def test_a_record_shows_each_channel_with_its_range_unit_and_course() -> None:
    html = record()._repr_html_()
    page = shown(record())
    assert "push: 401 samples, 4 s, 100 Hz, uniform" in page.text
    assert "mass.s" in page.text
    assert re.search(r"-?[\d.]+ to [\d.]+ m", page.text)
    assert html.count("<svg") == 2


def test_a_course_is_broken_at_a_gap() -> None:
    t = np.delete(T, slice(100, 300))
    whole, broken = (fx.Record(x, {}, {"mass.s": np.sin(x)})._repr_html_() for x in (T, t))
    assert [h.split('d="')[1].split('"')[0].count("M") for h in (whole, broken)] == [1, 2]


def test_a_long_record_with_many_channels_stays_small() -> None:
    rng = np.random.default_rng(0)
    outputs = {f"body{i}.s": rng.standard_normal(50_000) for i in range(40)}
    page = shown(fx.Record(np.arange(50_000) * 1e-3, {}, outputs))
    assert "And 26 more rows" in page.text


def test_extreme_and_constant_channels_are_drawn() -> None:
    t = np.linspace(0.0, 1.0, 20)
    flat = fx.Record(t, {"a": np.full(20, 7.0)}, {"b.s": 1e-9 * t})
    assert flat._repr_html_().count("<svg") == 2
    for y in (1.7e308 * np.linspace(-1, 1, 20), np.full(20, np.nan), np.full(20, -1e308)):
        assert "nan" not in curve(t, y, "")


def test_a_run_shows_where_bodies_went_and_a_strip_of_the_modes(run: Any) -> None:
    page, html = shown(run), run._repr_html_()
    assert "201 times from 0 to 8 s" in page.text
    assert f"{int(run.events.count)} mode changes" in page.text
    assert "mass.s" in page.text
    for word in ("forward", "backward", "stuck"):
        assert re.search(rf"[\d.]+ % {word}", page.text)
    assert html.count("#0072B2") >= 2  # in the strip and in its legend


@pytest.mark.slow
def test_a_run_that_did_not_end_says_so_and_shows_what_it_reached(run: Any) -> None:
    drive = fx.Force("mass", fx.Sine(amplitude=12.0, f=0.25))
    shaken = eqx.tree_at(lambda m: m["drive"], run.system.mechanism, drive)
    with pytest.raises(fx.SimulationError) as error:
        fx.simulate(shaken, run.ts, fx.Adaptive(max_events=4))
    assert "⚠ The run did not reach its end" in shown(error.value.run).text
    assert "not to its end" in repr(error.value.run)
    # The curve ends where the strip of modes below it does.
    d = error.value.run._repr_html_().split('<path d="')[1].split('"')[0]
    right = max(int(x) for x, _ in re.findall(r"(\d+) (\d+)", d))
    reached = np.asarray(run.ts)[np.isfinite(np.asarray(error.value.run.ys[:, 0]))][-1]
    assert right == pytest.approx(16 + 296 * 8 * reached / 8.0, abs=1)


def test_the_strip_of_a_contact_that_chatters_stays_small() -> None:
    modes = [fx.Mode.FORWARD, fx.Mode.STUCK, fx.Mode.BACKWARD, fx.Mode.FREE]
    spans = [(modes[i % 4], 0.1 * i, 0.1 * (i + 1)) for i in range(5000)]
    for of in (spans, spans[:100], []):
        drawn = strip(of, (0.0, 500.0), HOSTILE)
        assert 14 * len(drawn) < LARGEST - 5000
        assert Page(drawn).tags <= TAGS
    two = strip([(fx.Mode.STUCK, 0.0, 3.0), (fx.Mode.FORWARD, 3.0, 6.0)], (0.0, 12.0), "")
    assert 'd="M0 56h600" stroke="#B4B8BE"' in two
    assert 'd="M600 56h600" stroke="#0072B2"' in two


def test_an_inaccurate_run_reached_its_end(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = dataclasses.replace(run.path, result=Result.inaccurate)
    inaccurate = dataclasses.replace(run, path=path)
    page = shown(inaccurate)
    assert "⚠ The run reached its end, but the error of a state is above 1e-3" in page.text
    assert "did not reach its end" not in page.text
    with pytest.raises(ValueError, match="`page` needs a run that is complete and accurate, got"):
        inaccurate.page(tmp_path / "page.html")
    assert "from 0 to 8 s, inaccurate: The run reached its end, but" in repr(inaccurate)
    monkeypatch.setattr("frictax.simulation.simulate_once", lambda *_: inaccurate)
    with pytest.raises(fx.SimulationError, match="^The run reached its end, but the error"):
        fx.simulate(run.system.mechanism, run.ts)


def test_of_a_batch_of_runs_its_shape_is_told(run: Any) -> None:
    runs = jax.tree.map(lambda x: jnp.stack([x, x]), run)
    assert "jax.tree.map" in shown(runs).text
    assert repr(runs) == "Trajectory(mass, friction, drive: a batch of shape (2,))"


def test_what_cannot_be_known_stands_in_the_place_of_its_interval() -> None:
    v = np.linspace(5.0, 8.0, 16)
    f = 6.0 + 0.2 * v + 0.01 * np.random.default_rng(0).standard_normal(16)
    sweep = fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")
    page = shown(fx.fit(fx.Stribeck(0.2, 6.0, 1.0, 5.0), sweep))
    assert page.text.count("not identifiable") >= 2
    assert "nan" not in page.text


def test_of_many_numbers_the_first_are_shown_and_all_are_counted() -> None:
    v = np.linspace(0.1, 10.0, 300)
    f = 6.0 + 0.2 * v + 0.01 * np.random.default_rng(0).standard_normal(300)
    sweep = fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")
    found = fx.fit(fx.Table([[x, 6.0] for x in np.linspace(0.0, 10.0, 40)]), sweep)
    assert f"And {len(found.estimates) + len(found.fixed) - 14} more rows" in shown(found).text


@pytest.mark.parametrize("count", [7, pytest.param(13, marks=pytest.mark.slow)])
def test_of_many_records_the_first_are_named_and_all_are_counted(count: int) -> None:
    records = [record(f"r{i} " + "x" * 300, i) for i in range(count)]
    few = [r.trim(0.0, 1.0) for r in records]
    found = fx.fit(machine(), few, free=FREE, own=["friction.f_pos.F_Coulomb"], objective=LINEAR)
    page = shown(found)
    assert f"and {count - 5} more by InverseDynamics" in page.text
    assert f"and {count - 4} more records" in page.text
    assert ("more rows" in page.text) == (count > 12)


def test_a_residual_study_shows_strong_findings_and_names_the_others() -> None:
    ripple = 0.4 * np.sin(2 * np.pi * S / 0.1)
    force = A + 0.4 * V + 0.5 * np.sign(V) + ripple
    noisy = force + 0.02 * np.random.default_rng(0).standard_normal(T.size)
    bumpy = fx.Record(T, {"drive": noisy}, {"mass.s": S}, name="bumpy")
    study = fx.fit(machine(), bumpy, free=FREE, objective=LINEAR).residual_study()
    page = shown(study)
    strong = [f for f in study.findings if f.strong]
    assert strong
    assert f"{len(strong)} of {len(study.findings)} findings are strong" in page.text
    assert strong[0].sentence in page.text


def test_profiles_and_accounts_of_errors_show_themselves(fitted: fx.FoundMachine) -> None:
    profile = fitted.profile("mass.m")
    assert profile.sentence in shown(profile).text
    assert "likelihood ratio over mass.m [kg]" in shown(profile).text
    account = fitted.uncertainty(fx.HAC())
    assert account.says in shown(account).text


@pytest.mark.slow
def test_a_report_shows_a_profile(fitted: fx.FoundMachine, tmp_path: Path) -> None:
    profile = fitted.profile("mass.m")
    path = fitted.report(tmp_path / "report.html", profiles=[profile])
    assert profile.sentence in path.read_text()


def test_a_posterior_shows_the_density_of_each_number(fitted: fx.FoundMachine) -> None:
    draws = fitted.x + 0.01 * np.random.default_rng(0).standard_normal((2, 100, 3))
    draws[0, 0, 0] = np.nan
    posterior = fx.Posterior(
        found=fitted, estimates=fitted.estimates, covariance=fitted.covariance, draws=draws,
        all_draws=draws, samples=100.0, level=0.95, r_hat=np.array([1.0, 1.02, np.nan]),
        ess=np.array([400.0, 10.0, np.inf]), divergences=3,
        notices=(fx.Notice("divergences", "", {"draws": 3}),),
    )  # fmt: skip
    page = shown(posterior)
    assert "2 chains of 100 draws" in page.text
    assert "R-hat" in page.text
    assert posterior.warnings[0] in page.text
    assert posterior._repr_html_().count("<svg") == 3


def test_missing_terms_show_themselves_and_are_completed(fitted: fx.FoundMachine) -> None:
    terms = tuple(
        fx.MissingTerm(name, 0.3, error, "N", period, 1e-3, 0.5, chance, chance < 0.01, True, ())
        for name, error, period, chance in (
            ("ripple on mass", 0.01, 0.1, 1e-12),
            ("drag <i>", np.inf, None, 0.4),
        )
    )
    table = fx.Missing(terms, terms[:1], 2e-3, 1e-3, "m", (), fitted)
    page = shown(table)
    assert "A term is missing: ripple on mass (period 0.1 m)" in page.text
    assert "drag <i>" in page.text
    assert table._ipython_key_completions_() == ["ripple on mass", "drag <i>"]


@pytest.mark.slow
def test_structures_show_themselves_with_the_one_to_take_in_bold() -> None:
    structures = {HOSTILE: fx.Structure(machine(), FREE), "b": fx.Structure(machine(), FREE[:1])}
    compared = fx.compare(record(), structures, objective=LINEAR)
    page = shown(compared)
    assert compared.reason[:100] in page.text
    assert compared._ipython_key_completions_() == [HOSTILE, "b"]
    assert [look for look in page.looks if "bold" in look]


def test_a_structure_says_its_parts_and_what_is_free() -> None:
    assert repr(fx.Structure(machine(), FREE)) == (
        f"Structure(Mechanism of mass, friction, drive; free: {', '.join(FREE)})"
    )
    assert repr(fx.Structure(machine())).endswith("; free: all)")
    assert repr(fx.Structure(machine(), free="mass.m")).endswith("; free: mass.m)")


@pytest.mark.slow
def test_a_design_and_its_check_show_themselves() -> None:
    made = fx.design(
        machine(),
        {"mass.v": 2e-3},
        free=["mass.m", "friction.f_pos.F_Coulomb"],
        duration=2.0,
        rate=50.0,
        limits=fx.Limits(force=3.0, band=(0.5, 3.0)),
        starts=1,
        steps=5,
    )
    page = shown(made)
    for words in (made.title, "mass.m", "chirp", *made.lines, *made.warnings):
        assert words in page.text
    assert made._repr_html_().count("<svg") == 1
    told = Check(("mass.m",), np.ones((12, 1)), np.ones(1), np.ones(1), np.ones(1), 1.0, 0.0)
    page = shown(told)
    assert "12 records fitted, 100 % of the searches converged" in page.text
    assert "spread over predicted" in page.text
    assert str(told).splitlines()[0] == told.title


def test_names_in_brackets_are_completed(run: Any, comparison: Any, fitted: Any) -> None:
    assert run._ipython_key_completions_() == ["mass", "friction", "drive"]
    assert run.system.mechanism._ipython_key_completions_() == ["mass", "friction", "drive"]
    assert comparison._ipython_key_completions_() == ["Coulomb", "a $curve$"]
    assert fitted._ipython_key_completions_() == list(fitted.names)
    assert fitted["mass.m"] is fitted.estimates[0]
    assert re.fullmatch(
        r"Estimate\(mass\.m: [\d.]+ kg, std\. error [\d.]+, [\d.]+ to [\d.]+\)",
        repr(fitted["mass.m"]),
    )
    with pytest.raises(KeyError, match=r"no fitted number 'mass.mm'. Did you mean 'mass.m'\? Fit"):
        fitted["mass.mm"]
    study = fitted.residual_study()
    assert {study[name].name for name in study._ipython_key_completions_()} == {
        finding.name for finding in study.findings
    }


def test_a_machine_and_its_parts_show_their_values_in_a_terminal() -> None:
    block = machine(peak=1.25)
    assert "m=1.0" in repr(block)
    assert "peak=1.25" in repr(block)
    assert repr(block["mass"]) == "Mass(m=1.0, s=0.0, v=0.0, L=0.0)"
    assert repr(fx.Coulomb(0.5, 0.4)) == "Coulomb(F_Coulomb=0.5, F_prop=0.4)"
    long = fx.Mechanism(mass=fx.Mass(1.0), drive=fx.Force("mass", fx.Sampled(T, V)))
    assert "f64[401]" in repr(long)
    assert len(repr(long)) < 300


def test_nothing_that_a_terminal_shows_is_a_dump_of_arrays(
    run: Any, found: Any, comparison: Any, fitted: Any
) -> None:
    forces = np.tile(found.sweep.force, (30, 1))
    many = fx.fit_many(found.model, found.sweep, forces)
    things = (
        run,
        found,
        fitted,
        comparison.best,
        many,
        found.band([1.0, 2.0]),
        found.identifiability,
        fitted.profile(("mass.m", "friction.f_pos.F_prop"), points=3),
    )
    for thing in things:
        assert not re.search(r"array\(|Layout\(", repr(thing)), type(thing)
        assert len(repr(thing)) < 2500, type(thing)
    assert repr(many).endswith(f"{int(many.converged.sum())} converged)")
    assert repr(found.band([1.0, 2.0])) == "Band(2 velocities from 1 to 2, 95 %)"


def test_a_run_may_be_printed_while_it_is_traced(run: Any) -> None:
    said = []

    @jax.jit
    def last(m: Any) -> Any:
        here = fx.simulate(eqx.tree_at(lambda b: b["mass"].m, run.system.mechanism, m), run.ts)
        said.append(repr(here) + repr(here.system.mechanism))
        return here["mass"].s[-1]

    jax.eval_shape(last, 1.0)
    assert said[0].startswith("Trajectory(mass, friction, drive: 201 times")


def test_a_notebook_shows_results_without_a_plotting_library() -> None:
    code = (
        "import sys, frictax as fx; fx.Sweep([1, 2, 3], [1, 2, 3.1])._repr_html_();"
        " assert not {'matplotlib', 'plotly', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_a_picture_shows_itself_in_a_notebook_that_knows_no_pyplot(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "matplotlib_inline.backend_inline", raising=False)
    for figure in (run.plot(width=6.0), run.system.mechanism.plot()):
        png, size = figure._repr_png_()
        wide, high = (int.from_bytes(png[k : k + 4], "big") for k in (16, 20))
        assert (wide, high) == (
            pytest.approx(2 * size["width"], abs=2),
            pytest.approx(2 * size["height"], abs=2),
        )
    monkeypatch.setitem(sys.modules, "matplotlib_inline.backend_inline", sys)
    assert run.plot()._repr_png_() is None  # drawn by those who draw all figures
