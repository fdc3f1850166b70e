"""Curves are data: matplotlib and plotly draw the same panels."""

import matplotlib
import numpy as np

from frictax.report.plotly_json import plot_panels
from frictax.report.style import Curve, Panel, draw_panels, style

X = np.linspace(0.0, 1.0, 5)
PANELS = [
    Panel(
        "force [N]",
        [Curve(X, X**2, "#0072B2", "measured"), Curve(X, X, "#D55E00", "$x_$", 4.0, "points")],
        "above",
    ),
    Panel("residual [N]", [Curve(X, -X, "#1B1B1B")], height=0.5, band=0.2),
]


def test_both_renderers_draw_the_same_curves_labels_and_heights() -> None:
    with style():
        figure, axes = draw_panels(PANELS, "time [s]", width=5.0, inches=1.0, around=0.5)
    plot = plot_panels(PANELS, "time [s]", 300)
    lines = [line for one in axes for line in one.lines]
    for line, trace in zip(lines, plot["data"], strict=True):
        np.testing.assert_allclose(np.asarray(line.get_xdata(), dtype=float), trace["x"])
        np.testing.assert_allclose(np.asarray(line.get_ydata(), dtype=float), trace["y"])
        assert line.get_color() == trace["line"]["color"]
    layout = plot["layout"]
    labels = [layout[name]["title"]["text"] for name in ("yaxis", "yaxis2")]
    assert [one.get_ylabel() for one in axes] == labels == ["force [N]", "residual [N]"]
    assert axes[-1].get_xlabel() == layout["xaxis"]["title"]["text"] == "time [s]"
    (upper, lower) = (np.ptp(layout[name]["domain"]) for name in ("yaxis", "yaxis2"))
    assert upper == 2 * lower
    assert figure.get_size_inches().tolist() == [5.0, 2.0]


def test_a_name_is_one_entry_of_the_legend_and_a_curve_without_a_name_is_none() -> None:
    plot = plot_panels([PANELS[0], PANELS[0], PANELS[1]], "time [s]", 300)
    assert [trace["showlegend"] for trace in plot["data"]] == [True, True, False, False, False]
    with matplotlib.rc_context():
        _, axes = draw_panels(PANELS, "time [s]", width=5.0, inches=1.0, around=0.5)
    assert axes[0].get_legend_handles_labels()[1] == ["measured", r"\$x_\$"]
    assert axes[1].get_legend_handles_labels()[1] == []


def test_a_band_around_zero_belongs_to_its_panel() -> None:
    (band,) = plot_panels(PANELS, "time [s]", 300)["layout"]["shapes"]
    assert (band["yref"], band["y0"], band["y1"]) == ("y2", -0.2, 0.2)
