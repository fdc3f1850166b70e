"""What the two pictures show."""

import dataclasses

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

import frictax as fx
from frictax.analysis import Comparison
from frictax.fitting import Found, fit
from frictax.measurements import Sweep
from frictax.report import draw_starts, draw_sweep, draw_trajectory
from frictax.report.modes import BACKWARD, FORWARD, STUCK, mode_spans
from frictax.report.style import literal_text
from frictax.text import prefix_unit
from frictax.trajectory import Trajectory


def legend(figure: Figure) -> list[str]:
    return [
        text.get_text()
        for box in [*figure.legends, *(a.get_legend() for a in figure.axes)]
        if box
        for text in box.get_texts()
    ]


def panel(figure: Figure, label: str) -> Axes:
    (axes,) = [a for a in figure.axes if a.get_ylabel().startswith(label)]
    return axes


def line(axes: Axes, label: str) -> np.ndarray:
    (y,) = [np.asarray(li.get_ydata(), dtype=float) for li in axes.lines if li.get_label() == label]
    return y


def test_the_breakaway_force_of_hot_friction_falls_as_the_run_says() -> None:
    law = fx.TemperatureDependent(fx.Coulomb(F_Coulomb=5.0), beta=0.1, T_ref=300.0)
    machine = fx.Mechanism(
        mass=fx.Mass(m=2.0, v=10.0),
        brake=fx.SupportFriction("mass", f_pos=law),
        disc=fx.HeatCapacitor("brake", C=4.0, T=300.0),
    )
    run = fx.simulate(machine, np.linspace(0.0, 2.0, 21))
    forces = panel(draw_trajectory(run), "force")
    _, size = prefix_unit("N", np.array([5.0]))
    both = [np.asarray(li.get_ydata()) for li in forces.lines if li.get_label() == "±f0_max"]
    most, least = both
    np.testing.assert_allclose(most, run["brake"].f0_max / size)
    np.testing.assert_allclose(least, -run["brake"].f0_max / size)
    assert most[-1] < 0.9 * most[0]


def test_a_run_is_drawn_as_position_velocity_force_and_a_strip_of_modes(run: Trajectory) -> None:
    figure = run.plot()
    assert [a.get_ylabel() for a in figure.axes] == [
        "position [m]",
        "velocity [m/s]",
        "force [N]",
        "",
    ]
    assert figure.axes[-1].get_xlabel() == "time [s]"
    assert {"friction", "±f0_max", "drive", "backward", "stuck", "forward"} <= set(legend(figure))


def test_the_bands_of_the_strip_lie_between_the_events(run: Trajectory) -> None:
    strip = draw_trajectory(run).axes[-1]
    bands = [
        (box.get_paths()[0].get_extents(), to_hex(np.asarray(box.get_facecolor())[0]))
        for box in strip.collections
    ]
    edges = np.concatenate([[0.0], np.asarray(run.events.time)[: int(run.events.count)], [8.0]])
    np.testing.assert_allclose([b.x0 for b, _ in bands], edges[:-1])
    np.testing.assert_allclose([b.x1 for b, _ in bands], edges[1:])
    colours = {fx.Mode.STUCK: STUCK, fx.Mode.FORWARD: FORWARD, fx.Mode.BACKWARD: BACKWARD}
    assert [c for _, c in bands] == [
        colours[mode].lower() for mode, _, _ in mode_spans(run, "friction")
    ]


def test_a_thin_line_marks_each_event_in_each_panel(run: Trajectory) -> None:
    times = np.asarray(run.events.time)[: int(run.events.count)]
    for axes in draw_trajectory(run).axes[:3]:
        (lines,) = [c for c in axes.collections if c.get_label() == "_events"]
        np.testing.assert_allclose(
            sorted(float(np.asarray(path.vertices)[0, 0]) for path in lines.get_paths()), times
        )


def test_the_breakaway_force_is_drawn_for_each_direction(run: Trajectory) -> None:
    forces = panel(draw_trajectory(run), "force")
    limits = [
        np.asarray(li.get_ydata(), dtype=float)[0]
        for li in forces.lines
        if li.get_label() == "±f0_max"
    ]
    assert limits == pytest.approx([5.5, -7.7])
    np.testing.assert_allclose(line(forces, "friction"), run["friction"].f)


@pytest.mark.slow
def test_a_contact_without_normal_force_is_drawn_as_free() -> None:
    brake = fx.Brake("mass", fn_max=1.0, f_normalized=fx.Step(height=1.0, startTime=0.5))
    run = fx.simulate(
        fx.Mechanism(mass=fx.Mass(m=1.0, v=1.0), brake=brake), ts=np.linspace(0.0, 1.0, 11)
    )
    figure = draw_trajectory(run)
    assert [(mode, begin) for mode, begin, _ in mode_spans(run, "brake")] == [
        (fx.Mode.FREE, 0.0),
        (fx.Mode.FORWARD, pytest.approx(0.5)),
    ]
    assert "free" in legend(figure)


def test_only_the_parts_asked_for_are_drawn(run: Trajectory) -> None:
    assert [a.get_ylabel() for a in draw_trajectory(run, "mass").axes] == [
        "position [m]",
        "velocity [m/s]",
    ]
    assert [a.get_ylabel() for a in draw_trajectory(run, ["drive"]).axes] == ["force [N]"]
    with pytest.raises(KeyError, match="wheel"):
        draw_trajectory(run, ["wheel"])


def test_a_run_of_angles_has_their_units(run: Trajectory) -> None:
    assert [a.get_ylabel() for a in draw_trajectory(run, rotational=True).axes[:3]] == [
        "position [rad]",
        "velocity [rad/s]",
        "torque [N.m]",
    ]


def test_several_runs_at_once_are_refused(run: Trajectory) -> None:
    import jax
    import jax.numpy as jnp

    with pytest.raises(ValueError, match="draws one run, got a batch"):
        draw_trajectory(jax.tree.map(lambda x: jnp.stack([x, x]), run))


def test_a_sweep_is_drawn_with_points_curve_band_and_residuals_in_handy_units(found: Found) -> None:
    figure = draw_sweep(found)
    backward, forward, below_backward, below_forward = figure.axes
    assert backward.get_ylabel() == "torque against motion [mN.m]"
    assert below_backward.get_ylabel() == "residual [mN.m]"
    for axes, rows in ((forward, found.sweep.direction > 0), (backward, found.sweep.direction < 0)):
        (points,) = [c for c in axes.containers if isinstance(c, ErrorbarContainer)]
        x, y = points.lines[0].get_data()
        np.testing.assert_allclose(np.asarray(x), found.sweep.velocity[rows])
        np.testing.assert_allclose(np.asarray(y), 1e3 * np.abs(found.sweep.force[rows]))
        (bars,) = points.lines[2]
        heights = [np.ptp(segment[:, 1]) / 2 for segment in bars.get_segments()]
        np.testing.assert_allclose(heights, 1e3 * found.noise_scale)
        assert axes.collections[0].get_paths(), "the band"
    (points,) = [c for c in below_forward.containers if isinstance(c, ErrorbarContainer)]
    np.testing.assert_allclose(
        np.asarray(points.lines[0].get_ydata()), 1e3 * found.residuals[found.sweep.direction > 0]
    )
    assert any(np.ptp(np.asarray(li.get_ydata())) == 0 for li in below_forward.lines), (
        "the zero line"
    )


def test_the_picture_says_what_its_bars_are(found: Found) -> None:
    (box,) = draw_sweep(found).legends
    said = " ".join(box.get_title().get_text().split())
    noise = "1 standard deviation of the noise, 0.024 mN.m, estimated from the residuals"
    assert said == f"Bars: {noise}."


def test_bars_of_rows_with_a_known_sigma_are_that_sigma() -> None:
    sweep = Sweep(
        [1, 2, 3, 4, 5],
        [2.1, 2.9, 4.1, 5.0, 6.1],
        [0.1, 0.2, 0.1, 0.2, 0.1],
        sigma_known=True,
        velocity_unit="m/s",
        force_unit="N",
    )
    figure = draw_sweep(fit(fx.Coulomb, sweep))
    (points,) = [c for c in figure.axes[0].containers if isinstance(c, ErrorbarContainer)]
    heights = [np.ptp(segment[:, 1]) / 2 for segment in points.lines[2][0].get_segments()]
    np.testing.assert_allclose(heights, [0.1, 0.2, 0.1, 0.2, 0.1])
    assert "as given with the data" in figure.legends[0].get_title().get_text()


def test_a_force_at_which_motion_began_is_drawn_at_rest_with_what_was_fitted() -> None:
    force = [5.1, 6.0, 6.9, 8.1, 4.8, 4.9]
    sweep = Sweep(
        [1, 2, 3, 4, 0, 0], force, breakaway=[0, 0, 0, 0, 1, 1], velocity_unit="m/s", force_unit="N"
    )
    found = fit(fx.Coulomb, sweep)
    assert isinstance(found.model, fx.SteadyFriction)
    axes = draw_sweep(found).axes[0]
    assert line(axes, "fitted peak·f0") == pytest.approx([float(found.model.peak * found.law.f0)])
    assert "motion began" in legend(axes.figure)  # pyright: ignore[reportArgumentType]


def test_compared_laws_are_drawn_under_their_names_letter_for_letter(
    found: Found, comparison: Comparison
) -> None:
    figure = draw_sweep(found, comparison)
    assert "Coulomb" in legend(figure)
    assert r"a \$curve\$" not in legend(figure), "the fitted law itself is drawn once"
    assert not {"Coulomb"} & {li.get_label() for li in figure.axes[0].lines}, (
        "it was compared on forward rows only"
    )


def test_drawing_leaves_the_settings_of_matplotlib_as_they_were(
    found: Found, run: Trajectory
) -> None:
    before = dict(matplotlib.rcParams)
    draw_sweep(found)
    draw_trajectory(run)
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("name", ["_hidden", "$x$", "a$b", r"\$", "<b>", "µ"])
def test_a_name_is_shown_letter_for_letter(name: str, run: Trajectory) -> None:
    with matplotlib.rc_context():
        figure = Figure()
        axes = figure.add_subplot()
        axes.plot([0, 1], label=literal_text(name))
        axes.legend()
        figure.canvas.draw()
        assert len(axes.get_legend_handles_labels()[1]) == 1


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0.0, ("m", 1.0)),
        (2.0, ("m", 1.0)),
        (3e-3, ("mm", 1e-3)),
        (5e4, ("km", 1e3)),
        (2e-8, ("nm", 1e-9)),
    ],
)
def test_a_prefix_gives_handy_numbers(size: float, expected: tuple[str, float]) -> None:
    assert prefix_unit("m", [size, -size / 2, np.nan]) == expected


def test_the_starts_of_a_search_are_drawn_sorted_over_the_least(sweep: Sweep) -> None:
    forward = sweep.positive()
    found = fit(fx.Stribeck(1e-4, 2e-3, 5e-4, 0.2), forward, starts=6, spread=1.0)
    axes = draw_starts(found).axes[0]
    assert axes.get_ylabel() == "misfit over the least"
    drawn = line(axes, "at the least misfit")
    ratio = np.sort(found.costs) / found.costs.min()
    np.testing.assert_allclose(drawn, ratio[: drawn.size])
    assert np.all(ratio[drawn.size :] > 1 + 1e-4)


def test_starts_that_failed_are_counted_and_two_minima_are_told_apart(sweep: Sweep) -> None:
    found = fit(fx.Coulomb(1e-3, 1e-4), sweep.positive(), starts=2)
    costs = np.array([3.0, np.nan, 1.0, 1.0 + 1e-9, np.inf, 2.0])
    figure = draw_starts(dataclasses.replace(found, costs=costs))
    suptitle = figure.get_suptitle()
    assert suptitle == "2 of 6 starts reach the least misfit; 2 failed"
    assert line(figure.axes[0], "above it").tolist() == [2.0, 3.0]
    assert figure.axes[0].get_yscale() == "log"


def test_of_a_single_start_there_is_no_waterfall(sweep: Sweep) -> None:
    found = fit(fx.Coulomb(1e-3, 1e-4), sweep.positive())
    one = dataclasses.replace(found, costs=found.costs[:1])
    with pytest.raises(ValueError, match=r"^`draw_starts` .* has 1\. Search from more: fx\.fit"):
        draw_starts(one)
