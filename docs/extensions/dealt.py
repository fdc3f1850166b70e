"""Distribute pages with executed cells evenly over the processes that read pages.

Each process reads a stretch of the list of pages. Pages of one folder are neighbours in this list,
so one process would run nearly all cells.
"""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def is_run(page: Path) -> bool:
    """Return whether the cells of a page are run: its head names a kernel."""
    return page.suffix == ".md" and "\nkernelspec:" in page.read_text(encoding="utf-8")[:2000]


def deal(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    """Put the pages with executed cells at equal distances in the list."""
    run = [page for page in pages if is_run(Path(env.doc2path(page)))]
    rest = iter([page for page in pages if page not in run])
    at = {k * len(pages) // len(run): page for k, page in enumerate(run)}
    pages[:] = [at[i] if i in at else next(rest) for i in range(len(pages))]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("env-before-read-docs", deal)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
