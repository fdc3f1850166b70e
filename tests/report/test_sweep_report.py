"""The HTML report: one file, whole, safe, and never in the place of something else."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import frictax as fx
from frictax.analysis import Comparison
from frictax.fitting import Found, fit
from frictax.measurements import Sweep
from frictax.report import sweep_report, write_sweep_report
from frictax.trajectory import Trajectory
from report.browser import needs_browser, slide

EVIL = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>"
VOID = {"meta", "source", "img", "br", "link", "hr", "input"}


class Page(HTMLParser):
    """Tags with their attributes, text by section, and whether every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: dict[str, str] = {}
        self.section = ""
        self.feed(text)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "section":
            self.section = dict(attrs)["id"] or ""
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text[self.section] = self.text.get(self.section, "") + data

    @property
    def addresses(self) -> list[str]:
        names = ("src", "srcset", "href", "data", "action", "poster", "background")
        return [
            value
            for _, attributes in self.tags
            for name, value in attributes.items()
            if name in names and value
        ]


@pytest.fixture(scope="module")
def page(
    found: Found, comparison: Comparison, run: Trajectory, tmp_path_factory: pytest.TempPathFactory
) -> Page:
    path = tmp_path_factory.mktemp("report") / "report.html"
    written = write_sweep_report(
        found,
        path,
        comparison,
        run,
        title="A drive",
        notes=["A note."],
        command="frictax fit sweep.csv",
    )
    assert written == path
    return Page(path.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_report_has_all_its_sections(page: Page) -> None:
    sections = [attributes["id"] for tag, attributes in page.tags if tag == "section"]
    assert sections == [
        "measured",
        "picture",
        "parameters",
        "fit",
        "comparison",
        "motion",
        "correlation",
        "modelica",
        "rows",
        "downloads",
        "again",
    ]


def test_no_section_has_a_name_that_the_script_of_a_page_uses() -> None:
    folder = Path(sweep_report.__file__).parent
    script = (folder / "templates" / "report.js").read_text(encoding="utf-8")
    packed = script.partition("var packed = [")[2].partition("]")[0]
    # A browser makes an element with an id a property of `window`, too.
    used = re.findall(r'(?:element\(|window\.)"?([\w-]+)', script)
    used += re.findall(r'"([\w-]+)"', packed)
    assert {"library", "simulation", "theme"} <= set(used)
    sections = [
        name
        for path in folder.parent.rglob("*.py")
        for name in re.findall(r'Section\(\s*"(\w+)"', path.read_text(encoding="utf-8"))
    ]
    assert "motion" in sections
    assert not set(used) & set(sections)


@pytest.mark.slow
@needs_browser
def test_a_report_with_a_motion_draws_the_curves_of_its_sliders(
    found: Found, run: Trajectory, tmp_path: Path
) -> None:
    path = write_sweep_report(found, tmp_path / "report.html", simulation=run)
    seen, console = slide(path, 0)
    assert console == []
    assert len(seen["before"]["y"]) > 1


def test_the_report_states_each_estimate_with_unit_error_and_interval(page: Page) -> None:
    text = page.text["parameters"]
    for words in (
        "f_pos.F_Coulomb",
        "2.147",
        "mN.m",
        "0.041",
        "2.049 to 2.246",
        "95 % interval",
        "f_neg.fexp",
    ):
        assert words in text
    assert "The data contain no breakaway rows" in text


def test_the_report_holds_what_makes_it_again(page: Page, found: Found) -> None:
    assert "frictax fit sweep.csv" in page.text["again"]
    assert f"frictax {fx.__version__}" in page.text["again"]
    assert found.to_modelica() in page.text["modelica"]


def test_the_report_loads_nothing_from_elsewhere(page: Page) -> None:
    inside = [address for address in page.addresses if address.startswith("#")]
    assert inside == [f"#{a['id']}" for tag, a in page.tags if tag == "section"]
    assert all(address.startswith("data:") for address in page.addresses if address not in inside)
    assert not {"link", "iframe", "object"} & {tag for tag, _ in page.tags}
    assert not any("src" in attributes for tag, attributes in page.tags if tag == "script")
    policies = [
        a.get("content") or ""
        for tag, a in page.tags
        if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies[0].startswith("default-src 'none'")


def test_each_picture_has_a_text_for_those_who_do_not_see_it(page: Page) -> None:
    assert all(attributes["alt"] for tag, attributes in page.tags if tag == "img")


def test_the_report_says_which_rows_a_prediction_leaves_out(page: Page) -> None:
    """The errors of neighbouring rows of this sweep are autocorrelated."""
    says = "predicted by a fit without this row and its neighbours; AICc"
    assert says in page.text["comparison"]


def test_the_report_shows_the_mode_changes_of_the_run(page: Page, run: Trajectory) -> None:
    text = page.text["motion"]
    assert f"{int(run.events.count)} mode changes" in text
    assert f"{float(run.events.time[0]):.6f}" in text


@pytest.mark.slow
def test_the_same_fit_gives_the_same_file_and_a_link_to_a_report_stays_a_link(
    found: Found, tmp_path: Path
) -> None:
    one, link, real = (tmp_path / name for name in ("one.html", "latest.html", "real.html"))
    link.symlink_to(real)
    for path in (one, link):
        write_sweep_report(found, path)
    assert link.is_symlink()
    assert one.read_bytes() == real.read_bytes()


def test_names_and_titles_are_text_and_never_markup(tmp_path: Path) -> None:
    sweep = Sweep(
        [1, 2, 3, 4],
        [7.1, 7.9, 9.1, 9.9],
        velocity_unit="m/s",
        force_unit="N",
        name=EVIL,
        citation=EVIL,
    )
    found = fit(fx.Coulomb, sweep)
    path = found.report(tmp_path / "report.html", title=EVIL, notes=[EVIL], command=EVIL)
    page = Page(path.read_text(encoding="utf-8"))
    # the library, and what draws with it
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert not any("onerror" in attributes for _, attributes in page.tags)
    assert EVIL in page.text["downloads"]
    assert EVIL in page.text["measured"]


@pytest.mark.slow
def test_a_name_in_another_script_or_with_a_broken_character_is_no_obstacle(tmp_path: Path) -> None:
    sweep = Sweep(
        [1, 2, 3, 4],
        [7.1, 7.9, 9.1, 9.9],
        velocity_unit="m/s",
        force_unit="N",
        name="\u6469\u64e6 $\udcff",
    )
    path = fit(fx.Coulomb, sweep).report(tmp_path / "report.html")
    assert "\u6469\u64e6 $" in path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_sweep_of_many_rows_has_a_report_of_bounded_size(tmp_path: Path) -> None:
    v = np.linspace(0.1, 10.0, 3000)
    sweep = Sweep(v, 2.0 + 0.1 * v + 0.01 * np.sin(40 * v), velocity_unit="m/s", force_unit="N")
    path = fit(fx.Coulomb, sweep).report(tmp_path / "report.html")
    assert path.stat().st_size < 3_000_000
    assert "too many to print" in path.read_text(encoding="utf-8")


def test_the_python_of_the_report_makes_the_fit_again(
    found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    from frictax.report.sweep_text import python_text

    namespace: dict = {}
    exec(python_text(found), namespace)
    np.testing.assert_array_equal(namespace["sweep"].force, found.sweep.force)
    assert float(namespace["model"].f_neg.fexp) == float(found.model.f_neg.fexp)
    for path, value in found.values.items():
        assert namespace["found"].values[path] == pytest.approx(value, rel=1e-6)


@pytest.mark.slow
def test_the_python_of_a_table_or_a_robust_fit_makes_the_same_fit_again() -> None:
    from frictax.report.sweep_text import python_text

    sweep = fx.Sweep([1, 2, 3, 4, 5], [7.1, 7.9, 9.4, 9.9, 11.2])
    for made in (
        fx.fit(fx.Table([[0, 6], [4, 10], [5, 11]]), sweep),
        fx.fit(fx.Coulomb, sweep, loss=fx.Huber(0.7)),
    ):
        namespace: dict = {}
        exec(python_text(made), namespace)
        for path, value in made.values.items():
            np.testing.assert_allclose(namespace["found"].values[path], value, rtol=1e-6)


def test_a_former_report_is_replaced_and_another_file_is_not(found: Found, tmp_path: Path) -> None:
    report, precious = tmp_path / "report.html", tmp_path / "sweep.csv"
    write_sweep_report(found, report, title="first")
    write_sweep_report(found, report, title="second")
    assert "<title>second</title>" in report.read_text(encoding="utf-8")
    precious.write_text("omega,torque\n1,2\n", encoding="utf-8")
    with pytest.raises(FileExistsError, match="is not a report of frictax"):
        write_sweep_report(found, precious)
    assert precious.read_text(encoding="utf-8") == "omega,torque\n1,2\n"
    with pytest.raises(FileExistsError, match="exists"):
        write_sweep_report(found, report, overwrite=False)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("fails", ["draw", "replace"])
def test_a_report_that_was_there_survives_a_failure(
    fails: str, found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_sweep_report(found, tmp_path / "report.html")
    before = path.read_bytes()

    def broken(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(
        *{"replace": (os, "replace"), "draw": (sweep_report, "draw_sweep")}[fails], broken
    )  # pyright: ignore
    with pytest.raises(OSError, match="No space left"):
        write_sweep_report(found, path, title="new")
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_place_that_cannot_be_written_is_refused_in_one_sentence(
    found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"There is no folder .*missing for the report\. Make it first"
    ):
        write_sweep_report(found, tmp_path / "missing" / "report.html")
    with pytest.raises(IsADirectoryError, match="is a folder. Name a file in it"):
        write_sweep_report(found, tmp_path)
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(NotADirectoryError, match="is a file"):
        write_sweep_report(found, tmp_path / "file" / "report.html")
    with pytest.raises(FileExistsError, match="no ordinary file"):
        write_sweep_report(found, "/dev/null")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="may not be written to. Choose another one"):
        write_sweep_report(found, tmp_path / "report.html")
