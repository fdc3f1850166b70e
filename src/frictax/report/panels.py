"""Curves in panels over one axis, as data. `style.draw_panels` draws them by matplotlib and
`plotly_json.plot_panels` by plotly.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Curve:
    """y over x. A curve without a name is not in the legend; nan breaks a line.

    `width`: of a line, or the diameter of points [pt].
    """

    x: np.ndarray
    y: np.ndarray
    colour: str
    name: str = ""
    width: float = 1.5
    kind: Literal["line", "points", "steps", "line and points"] = "line"


@dataclasses.dataclass(frozen=True, eq=False)
class Panel:
    """Curves over one another.

    - `label` of the vertical axis; `title` above the panel, which plotly does not show.
    - `height`: relative to the other panels.
    - `band`: half the width of a grey band around zero, None for no band.
    - `layout`: further settings of plotly's vertical axis.
    """

    label: str
    curves: Sequence[Curve]
    title: str = ""
    height: float = 1.0
    band: float | None = None
    colour: str | None = None
    layout: dict[str, Any] = dataclasses.field(default_factory=dict)
