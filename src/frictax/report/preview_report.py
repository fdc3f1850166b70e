"""The page of a machine beside its records before any fit."""

from collections.abc import Iterable
from typing import Any

from .interactive.motion import motion_plots
from .interactive.plotly_json import as_json, script
from .page import page


def preview_text(
    previews: Iterable[Any], *, title: str, notes: Iterable[str] = (), command: str | None = None
) -> str:
    """One self-contained HTML page: each record and the run of the machine as it stands.

    **Arguments:** `previews`: as of `frictax.analysis.replay.motion`; `title`, `notes` of the
    page; `command` that makes it again.
    """
    plots, shown, previews = dict[str, Any](), [], list(previews)
    for i, one in enumerate(previews):
        what = "machine with its start values"
        for j, (caption, figure) in enumerate(
            motion_plots(one.record, one.label, one.motion, what, len(previews))
        ):
            plots[name := f"motion-{i}-{j}"] = figure
            shown.append((name, caption))
    return page(
        None,
        ["motion", "again"] if command else ["motion"],
        title=title,
        lead="The machine as the problem describes it, before any fit, under the record's inputs.",
        notes=notes,
        motions=shown,
        command=command,
        library=script(),
        plots=as_json(plots),
    )
