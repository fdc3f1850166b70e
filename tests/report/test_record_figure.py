"""What the picture of a record shows."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

import frictax as fx
from frictax.report import draw_record
from frictax.report.record_figure import INPUT, OUTPUT

T = np.linspace(0.0, 1.0, 101)


def record(t: np.ndarray = T, **options) -> fx.Record:
    given = {
        "inputs": {"drive": np.sin(9 * t)},
        "outputs": {"mass.s": t**2, "mass.v": 2 * t},
        "units": {"mass.s": "mm", "mass.v": "mm/s"},
    }
    return fx.Record(t, **{**given, "sd": {"mass.s": 0.1}, **options})


def test_each_channel_has_a_panel_with_its_quantity_and_its_declared_unit() -> None:
    figure = record().plot()
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "force [N]",
        "position [mm]",
        "velocity [mm/s]",
    ]
    assert figure.axes[-1].get_xlabel() == "time [s]"
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "input drive",
        "output mass.s, sd 0.1 mm",
        "output mass.v, sd not known",
    ]
    np.testing.assert_allclose(np.asarray(figure.axes[1].lines[0].get_ydata(), dtype=float), T**2)


def test_inputs_and_outputs_differ_in_colour_and_held_inputs_are_steps() -> None:
    figure = draw_record(record(hold=True))
    assert [to_hex(axes.lines[0].get_color()) for axes in figure.axes] == [
        INPUT.lower(),
        OUTPUT.lower(),
        OUTPUT.lower(),
    ]
    assert [axes.lines[0].get_drawstyle() for axes in figure.axes] == [
        "steps-post",
        "default",
        "default",
    ]
    assert figure.axes[0].get_title(loc="left") == "input drive, held between samples"


def test_a_gap_is_shaded_and_no_line_leads_over_it() -> None:
    t = np.delete(T, slice(40, 60))
    figure = draw_record(record(t))
    for axes in figure.axes:
        y = np.asarray(axes.lines[0].get_ydata(), dtype=float)
        assert np.flatnonzero(np.isnan(y)).tolist() == [40]
        (box,) = [patch for patch in axes.patches if patch.get_label() == "_gap"]
        assert isinstance(box, Rectangle)
        assert (box.get_x(), box.get_x() + box.get_width()) == pytest.approx((0.39, 0.6))


def test_warnings_stand_below_as_a_note_and_a_sound_record_has_none() -> None:
    rough = draw_record(record(np.delete(T, slice(40, 60))))
    assert "The time has a gap of 0.21 s after 0.39 s" in " ".join(rough.get_supxlabel().split())
    assert draw_record(record()).get_supxlabel() == ""


def test_names_with_dollars_are_shown_letter_for_letter(tmp_path: Path) -> None:
    odd = record(inputs={"a$b$": np.sin(T)}, name="$x_")
    draw_record(odd).savefig(tmp_path / "odd.png")
    assert (tmp_path / "odd.png").stat().st_size > 0


def test_a_measured_record_is_drawn(data_folder: Path, tmp_path: Path) -> None:
    force = fx.Column("vir", unit="V", gain=35.15065, to="N")
    emps = fx.Record.from_mat(
        data_folder / "emps" / "DATA_EMPS.mat",
        time="t",
        inputs={"drive": force},
        outputs={"mass.s": "qm"},
        hold=True,
    )
    figure = emps.plot()
    figure.savefig(tmp_path / "emps.png")
    assert [axes.get_ylabel() for axes in figure.axes] == ["force [N]", "position [m]"]
