"""Every example that a reader may copy runs: the pages' Python blocks and the docstrings of the
source.
"""

import ast
import doctest
import importlib
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = sorted((ROOT / "src" / "frictax").rglob("*.py"))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "page", [p for p in PAGES if BLOCK.search(p.read_text(encoding="utf-8"))], ids=lambda p: p.name
)
def test_every_python_block_of_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch, request
) -> None:
    if page.name == "uncertainty.md":  # fits a hundred times
        request.getfixturevalue("optimised_fits")
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
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


# those that take longest
SLOW = {
    "frictax.analysis.errors.posterior.posterior",
    "frictax.analysis.errors.profiles.profile_of",
    "frictax.analysis.missing.missing.missing",
    "frictax.analysis.planning.outlook.outlook",
    "frictax.analysis.replay.free_run.free_run",
    "frictax.analysis.replay.validation.validate",
    "frictax.analysis.selection.structure.Structure",
    "frictax.analysis.selection.structures.compare_structures",
    "frictax.contacts.clutch.Clutch",
    "frictax.contacts.one_way_clutch.OneWayClutch",
    "frictax.engine.options.Adaptive",
    "frictax.fitting.problem.objectives.ClosedLoop",
    "frictax.fitting.problem.objectives.Windows",
    "frictax.fitting.problem.priors.Smooth",
    "frictax.fitting.result.step_error.step_error",
    "frictax.linearization.linearize",
    "frictax.mechanism.linkage.AbstractLinkage",
    "frictax.mechanism.lossy_gear.LossyGear",
    "frictax.mechanism.stiction.modes_at_rest",
    "frictax.report.trajectory_figure.draw_trajectory",
}


@pytest.mark.parametrize(
    ("name", "path", "text", "line"),
    [
        pytest.param(*d, id=d[0], marks=[pytest.mark.slow] if d[0] in SLOW else [])
        for d in _docstrings()
    ],
)
def test_every_docstring_example_gives_what_it_shows(
    name: str, path: Path, text: str, line: int, tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(
        ".__init__"
    )
    namespace = dict(vars(importlib.import_module(module)))
    example = doctest.DocTestParser().get_doctest(text, namespace, name, str(path), line)
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(
        example, out=report.append
    )
    plt.close("all")
    assert result.failed == 0, "".join(report)


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
