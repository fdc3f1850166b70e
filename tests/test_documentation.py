"""Every example that a reader may copy runs: the pages' Python blocks and the docstrings of the
source.
"""

import ast
import doctest
import importlib
import pickle
import re
import sys
import types
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import frictax
from pickled import assert_travels, is_of_frictax

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = sorted((ROOT / "src" / "frictax").rglob("*.py"))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_first_block_of_the_first_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """All of each page are slow: here runs what a newcomer copies first."""
    block = BLOCK.search(PAGES[0].read_text(encoding="utf-8"))
    assert block is not None
    exec(compile(block[1], str(PAGES[0]), "exec"), {"__name__": "__page__"})
    assert len(capsys.readouterr().out.splitlines()) >= 3


@pytest.mark.parametrize(
    "page", [p for p in PAGES if BLOCK.search(p.read_text(encoding="utf-8"))], ids=lambda p: p.name
)
def test_every_python_block_of_a_page_is_python_of_names_that_frictax_has(page: Path) -> None:
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        for node in ast.walk(ast.parse(block[1])):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert node.value.id != "fx" or hasattr(frictax, node.attr), node.attr


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [p for p in PAGES if BLOCK.search(p.read_text(encoding="utf-8"))], ids=lambda p: p.name
)
def test_every_python_block_of_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch
) -> None:
    # A page may read the shipped data by the path a reader would type, and may write where it
    # stands.
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "__page__"}
    for block in BLOCK.finditer(text):
        line = text[: block.start(1)].count("\n")
        # leading empty lines let a traceback point at the line of the page
        exec(compile("\n" * line + block.group(1), str(page), "exec"), namespace)
    plt.close("all")


def _docstrings() -> list[tuple[str, Path, str, int]]:
    """Name, file, text and line of each docstring with an example.

    They are read from the source: the import hook wraps functions, and doctest's own search passes
    wrapped ones over.
    """
    found = []
    for path in MODULES:
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if ">>>" in source else ():
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node)
                if text and ">>>" in text:
                    name = ".".join(
                        [
                            *path.relative_to(ROOT / "src").with_suffix("").parts,
                            getattr(node, "name", ""),
                        ]
                    ).strip(".")
                    found.append((name, path, text, node.body[0].lineno - 1))
    return found


# An example that calls one of these compiles a program, which takes seconds.
COMPILES = re.compile(
    r"(?:>>>|\.\.\.) .*\b(compare|continued|design|fit|fit_many|information|kalman_filter"
    r"|limit_cycle|modes_at_rest|preview|simulate|Structure|to_\w+|walk)\("
)
# Of these the ones of `make test`: of each room one, and what costs little.
QUICK = {
    "frictax.contacts.bearing_friction.BearingFriction",
    "frictax.export.robots.joint_friction",
    "frictax.fitting.fit.fit",
    "frictax.fitting.result.fit_result.FitResult",
    "frictax.mechanism.gears.IdealGear",
    "frictax.progress.ProgressLine",
    "frictax.report.saving.fit_file.load_fit",
    "frictax.report.record_figure.draw_starts",
    "frictax.report.sweep_figure.draw_sweep",
    "frictax.simulation.simulate",
    "frictax.trajectory.Trajectory",
}


def _marks(name: str, text: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if COMPILES.search(text) and name not in QUICK else []


@pytest.mark.parametrize(
    ("name", "path", "text", "line"),
    [
        pytest.param(name, path, text, line, id=name, marks=_marks(name, text))
        for name, path, text, line in _docstrings()
    ],
)
def test_every_docstring_example_gives_what_it_shows_and_what_it_makes_can_be_pickled(
    name: str, path: Path, text: str, line: int, tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(
        ".__init__"
    )
    before, printed = vars(importlib.import_module(module)), []
    example = doctest.DocTestParser().get_doctest(text, {}, name, str(path), line)
    here = types.ModuleType("example_of_a_docstring")  # where `pickle` finds an example's classes
    monkeypatch.setitem(sys.modules, here.__name__, here)
    example.globs = vars(here)
    example.globs |= {**before, "__name__": here.__name__}
    example.globs["print"] = lambda *x, **how: (printed.extend(x), print(*x, **how))[1]
    report: list[str] = []
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.DocTestRunner(optionflags=options).run(
        example, out=report.append, clear_globs=False
    )
    plt.close("all")
    assert result.failed == 0, "".join(report)
    made = [x for name, x in example.globs.items() if before.get(name) is not x]
    for thing in filter(is_of_frictax, [*made, *printed]):
        try:
            assert_travels(thing)
        except (AttributeError, pickle.PicklingError) as error:
            # Python pickles no function without a name, of which optax's transformations are made.
            if "<lambda>" not in str(error) and "'chain.<locals>" not in str(error):
                raise


def test_links_between_the_pages_lead_somewhere() -> None:
    pages = [
        *PAGES,
        ROOT / "CONTRIBUTING.md",
        *ROOT.glob("*/README.md"),
        *ROOT.glob("*/*/README.md"),
    ]
    broken = []
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if (
                "://" not in target
                and not target.startswith("mailto:")
                and not (page.parent / target).exists()
            ):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken
