"""The picture of a machine: all parts are there, nothing lies on something else, nothing is cut
off.
"""

import importlib.util
import inspect
import itertools
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Affine2D, Bbox

import frictax as fx
import machines
from frictax.mechanism.layout import PARTS
from frictax.report.mechanism_figure import draw_mechanism
from frictax.report.schematic.cells import DRIVE, JOINT, LINING
from frictax.report.schematic.rows import Link, Network, Node, network, rows_of_machines
from frictax.report.style import INK

from .drawn_machines import (
    KINDS,
    A,
    B,
    C,
    M,
    crowded,
    gearbox,
    of_ones_own,
    side_by_side,
    star,
    warm,
)


@pytest.fixture(scope="module")
def benchmark_machine(root: Path) -> fx.Mechanism:
    """The machine of experiments/benchmarks/coupled.py."""
    spec = importlib.util.spec_from_file_location(
        "coupled_benchmark", root / "experiments" / "benchmarks" / "coupled.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.coupled_clutches()


SHIPPED = [
    f
    for name, f in vars(machines).items()
    if inspect.isfunction(f) and f.__module__ == machines.__name__ and name != "times"
]
MACHINES = [*SHIPPED, star, side_by_side, gearbox, crowded, warm, of_ones_own]


# -- what is measured
# ----------------------------------------------------------------------------------------------


class Drawn(NamedTuple):
    """Something in a picture, with the name of the part that it belongs to."""

    name: str
    what: str
    box: Bbox


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def drawn(figure: Figure) -> tuple[list[Drawn], list[Drawn], list[Drawn]]:
    """Texts, symbols, and the lines that join them, with their extents in pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    found: tuple[list[Drawn], list[Drawn], list[Drawn]] = ([], [], [])
    axes = figure.axes[0]
    for artist in [*axes.texts, *axes.patches, *axes.lines]:
        name = str(artist.get_label())
        what = artist.get_text() if isinstance(artist, Text) else type(artist).__name__
        kind = 0 if isinstance(artist, Text) else 2 if name == JOINT else 1
        found[kind].append(Drawn(name, what, artist.get_window_extent(canvas.get_renderer())))
    return found


def on_each_other(a: Drawn, b: Drawn, more_than: float = 0.0) -> bool:
    return (
        min(a.box.x1, b.box.x1) - max(a.box.x0, b.box.x0) > more_than
        and min(a.box.y1, b.box.y1) - max(a.box.y0, b.box.y0) > more_than
    )


def within(a: Drawn, b: Drawn) -> bool:
    return (
        b.box.x0 <= a.box.x0
        and a.box.x1 <= b.box.x1
        and b.box.y0 <= a.box.y0
        and a.box.y1 <= b.box.y1
    )


def faults(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of things that lie on each other, and what lies outside."""
    words, symbols, joints = drawn(figure)
    pairs = [(a, b) for a, b in itertools.combinations(words, 2) if on_each_other(a, b)]
    # Text may stand in a box of the same part.
    pairs += [
        (a, b)
        for a in words
        for b in symbols
        if on_each_other(a, b) and not (a.name == b.name and within(a, b))
    ]
    pairs += [(a, b) for a in words for b in joints if on_each_other(a, b)]
    # What touches shares the width of a line.
    pairs += [
        (a, b)
        for a, b in itertools.combinations(symbols, 2)
        if a.name != b.name and on_each_other(a, b, more_than=2.5)
    ]
    upright = [line for line in joints if line.box.height > 6 > line.box.width]
    pairs += [(a, b) for a in symbols for b in upright if on_each_other(a, b)]
    page = figure.bbox
    outside = [
        one
        for one in [*words, *symbols, *joints]
        if one.box.x0 < 2 or one.box.y0 < 2 or one.box.x1 > page.x1 - 2 or one.box.y1 > page.y1 - 2
    ]
    return [(f"{a.name}: {a.what}", f"{b.name}: {b.what}") for a, b in pairs] + [
        (f"{one.name}: {one.what}", "outside") for one in outside
    ]


def test_the_measure_sees_what_lies_on_something_else_and_what_is_cut_off() -> None:
    figure = draw_mechanism(star())
    assert faults(figure) == []
    axes = figure.axes[0]
    hub, spring = (next(t for t in axes.texts if t.get_text() == name) for name in ("hub", "s1"))
    home = spring.get_position()
    spring.set_position(hub.get_position())
    assert ("hub: hub", "s1: s1") in faults(figure) or ("s1: s1", "hub: hub") in faults(figure)
    spring.set_position((home[0], home[1] + 40))
    assert ("s1: s1", "outside") in faults(figure)
    spring.set_position(home)
    box = next(p for p in axes.patches if p.get_label() == "m1")
    box.set_transform(Affine2D().translate(0, -60) + box.get_transform())
    assert any(first.startswith("m") or second.startswith("m") for first, second in faults(figure))


# -- all parts are there
# -------------------------------------------------------------------------------------------


def test_the_kinds_drawn_here_are_all_that_the_package_has() -> None:
    public = [getattr(fx, name) for name in dir(fx) if not name.startswith("_")]
    assert {
        x
        for x in public
        if inspect.isclass(x) and issubclass(x, PARTS) and not inspect.isabstract(x)
    } == set(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_kind_of_part_is_drawn_by_a_symbol_of_its_own_with_its_name(kind: type) -> None:
    figure = draw_mechanism(KINDS[kind]())
    words, symbols, _ = drawn(figure)
    assert "part" in [one.what for one in words if one.name == "part"]
    assert any(one.name == "part" for one in symbols)
    assert kind.__name__ not in texts(figure), "the box of a class that is not known"
    assert faults(figure) == []


@pytest.mark.parametrize("machine", MACHINES, ids=lambda f: f.__name__)
def test_every_part_of_a_machine_is_named_and_nothing_lies_on_something_else_or_outside(
    machine: Callable[[], fx.Mechanism],
) -> None:
    built = machine()
    figure = draw_mechanism(built)
    for name in built.names:
        assert any(re.search(rf"\b{name}\b", text) for text in texts(figure)), name
    assert faults(figure) == []


def test_the_coupled_clutches_of_the_benchmark_are_one_line(
    benchmark_machine: fx.Mechanism,
) -> None:
    figure = draw_mechanism(benchmark_machine)
    assert faults(figure) == []
    assert rows(benchmark_machine) == ["J1 clutch1 J2 clutch2 J3 clutch3 J4"]
    assert figure.get_size_inches()[0] < 7.5, "fits a notebook without being made smaller"


def test_a_part_of_ones_own_is_a_box_with_the_name_of_its_class() -> None:
    shown = texts(draw_mechanism(of_ones_own()))
    counts = {"Rope": 1, "Magnet": 3, "Cam": 1, "Glue": 4, "Differential": 1}
    assert {name: shown.count(name) for name in counts} == counts
    assert "k = 3 N/m" in shown


# -- what is said
# --------------------------------------------------------------------------------------------------


def said(machine: fx.Mechanism, part: str) -> list[str]:
    return [
        text.get_text()
        for text in draw_mechanism(machine).axes[0].texts
        if text.get_label() == part
    ][1:]


def test_a_part_says_its_main_values_with_their_units() -> None:
    machine = machines.two_blocks()
    assert said(machine, "first") == ["m = 1 kg"]
    assert said(machine, "joint") == ["c = 40 N/m", "d = 0.3 N.s/m"]
    assert said(machine, "guide1") == ["Stribeck, peak = 1.1"]
    assert said(machine, "guide2") == ["Coulomb, peak = 1.2", "f_neg: Coulomb"]
    assert said(machine, "drive") == ["f: Sine"]
    assert said(machines.stop2(), "wall") == ["s0 = -1.75 m"]
    assert said(machines.stop2(), "stop2") == [
        "m = 1 kg",
        "Stribeck",
        "smin = -0.9 m",
        "smax = 0.9 m",
    ]
    assert said(machines.pulsed_brake(), "pull") == ["f = 1 N"]
    assert said(machines.coupled_clutches(), "clutch2") == [
        "Table, peak = 1.1",
        "fn_max = 20 N",
        "f_normalized: Step",
    ]


def test_a_heat_capacitor_says_what_heats_it_and_stands_apart_from_what_moves() -> None:
    assert said(warm(), "plates") == ["C = 0.5 J/K", "heated by clutch", "and oil"]
    assert {"T_ambient = 310 K", "G = 0.5 W/K"} <= set(texts(draw_mechanism(warm())))
    assert rows(warm()) == [
        "motor clutch+oil load",
        "plates seam housing web disc",
        "(housing) air air",
    ]


def test_units_of_a_drive_that_acts_on_what_slides_and_on_what_turns_are_those_of_its_body():
    sliding, turning = (
        fx.Mechanism(
            body=body, offset=fx.LinearPositionDependentForce("body", f_nominal=-4.0, slope=2.0)
        )
        for body in (M, A)
    )
    assert said(sliding, "offset") == ["f_nominal = -4 N", "slope = 2 N/m"]
    assert said(turning, "offset") == ["f_nominal = -4 N.m", "slope = 2 N.m/rad"]
    for body, unit in ((M, "m"), (A, "rad")):
        part = fx.PeriodicPositionDependentForce("body", f_sin=2.0, period=0.1)
        force = "N" if unit == "m" else "N.m"
        assert said(fx.Mechanism(body=body, part=part), "part") == [
            f"f_sin = 2 {force}",
            f"period = 0.1 {unit}",
        ]
    assert said(fx.Mechanism(a=A, b=B, given=fx.Position("a", 0.5)), "given") == ["s = 0.5 rad"]


def test_numbers_that_are_not_known_or_many_are_named_without_value() -> None:
    machine = machines.translational_friction()
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), machine)
    shapes = jax.eval_shape(lambda: machine)
    nothing, _ = eqx.partition(machine, lambda _: False)
    traced: list[fx.Mechanism] = []
    shown: list[list[str]] = []
    jax.eval_shape(lambda m: (traced.append(m), shown.append(texts(m.plot())))[0], machine)
    for figure_texts in [*shown, *(texts(m.plot()) for m in (batch, shapes, nothing))]:
        assert {"mass", "m [kg]", "spring", "c [N/m]", "smin [m]"} <= set(figure_texts)
        assert not any("=" in text for text in figure_texts)


def test_gears_with_unknown_ratios_are_drawn() -> None:
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), machines.lossy_gear())
    assert "ratio" in texts(draw_mechanism(batch))
    assert faults(draw_mechanism(batch)) == []


# -- the order of the drive line
# -----------------------------------------------------------------------------------


def rows(machine: fx.Mechanism) -> list[str]:
    """The rows in words: parallel parts joined by +, references in brackets."""
    found = []
    for row in (row for some in rows_of_machines(network(machine)) for row in some):
        nodes = [f"({n.name})" if n in row.references else n.name for n in row.nodes]
        joints = ["+".join(link.name for link in joint) for joint in row.joints]
        found.append(" ".join(w for pair in zip(nodes, [*joints, ""], strict=True) for w in pair))
    return [text.strip() for text in found]


def test_a_chain_runs_from_left_to_right_in_whatever_order_it_is_written() -> None:
    wheels = {name: fx.Inertia(J=1.0) for name in ("c", "a", "d", "b")}
    chain = fx.Mechanism(
        **wheels,
        cd=fx.Clutch("c", "d"),
        ab=fx.RotationalSpring("a", "b", c=1.0),
        bc=fx.IdealGear("b", "c", ratio=2.0),
    )
    assert rows(chain) == ["a ab b bc c cd d"]
    words, _, _ = drawn(draw_mechanism(chain))
    at = {one.what: one.box.x0 + one.box.x1 for one in words}
    assert at["a"] < at["ab"] < at["b"] < at["bc"] < at["c"] < at["cd"] < at["d"]


def test_a_branch_or_a_loop_is_a_row_of_its_own_and_parallel_parts_share_a_joint() -> None:
    assert rows(star()) == ["wall anchor hub s1 m1", *(f"(hub) s{i} m{i}" for i in range(2, 5))]
    assert rows(side_by_side()) == ["wall s0+d0 a s1+d1+slide b s2+d2 c", "(a) over (c)"]
    words, _, _ = drawn(draw_mechanism(side_by_side()))
    height = {one.what: one.box.y0 for one in words}
    assert height["s1"] < height["d1"] < height["slide"]


def test_the_other_ports_of_a_gear_name_the_bodies_that_other_rows_show() -> None:
    assert rows(machines.planetary_gearbox()) == ["sun planetary carrier shaft load", "ring"]
    assert texts(draw_mechanism(machines.planetary_gearbox())).count("ring") == 2


def test_a_wall_begins_the_line_and_a_fixed_support_is_a_ground_under_its_body() -> None:
    assert rows(machines.mass_on_a_belt())[0].startswith("wall ")
    net = network(side_by_side())
    assert [node for node in net.nodes if node.name == "wall"] == [Node("wall", "a")]
    assert net.attached["c"] == ("stop",)
    assert said(side_by_side(), "stop") == ["Table, support: wall"]


def test_a_clutch_drawn_backward_is_mirrored() -> None:
    def tip(machine: fx.Mechanism) -> float:
        """How far right of its middle a freewheel points."""
        patches = [p for p in draw_mechanism(machine).axes[0].patches if p.get_label() == "hub"]
        triangle = next(p for p in patches if to_hex(p.get_facecolor()) == LINING.lower())
        x = np.asarray(triangle.get_path().vertices)[:3, 0]
        return float(x[2] - x[0])

    forward = fx.Mechanism(a=A, b=B, hub=fx.OneWayClutch("a", "b"))
    backward = fx.Mechanism(
        a=A,
        b=B,
        c=C,
        s=fx.RotationalSpring("a", "b", c=1.0),
        more=fx.RotationalSpring("a", "b", c=1.0),
        hub=fx.OneWayClutch("c", "b"),
    )
    assert tip(forward) > 0 > tip(backward)


@pytest.mark.slow
@given(
    n=st.integers(1, 7),
    turns=st.booleans(),
    links=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 3)), max_size=9),
    gear=st.none() | st.permutations(range(4)),
    drives=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), max_size=4),
)
@settings(max_examples=25)
def test_nothing_lies_on_something_else_however_the_bodies_are_joined(
    n: int, turns: bool, links: Any, gear: Any, drives: Any
) -> None:
    bodies = [f"b{i}" for i in range(n)]
    ends = [*bodies, "wall"]
    parts: dict[str, Any] = dict.fromkeys(bodies, A if turns else M) | {"wall": fx.Fixed(s0=1.5)}
    if turns:
        joining = [
            lambda a, b: fx.Clutch(a, b, fn_max=20.0),
            fx.OneWayClutch,
            lambda a, b: fx.RotationalSpring(a, b, c=1.0),
        ]
        joining.append(lambda a, b: fx.RotationalSpringDamper(a, b, c=1e5, d=1.0))
        acting = [
            lambda a: fx.Torque(a, 1.0),
            fx.BearingFriction,
            fx.Brake,
            lambda a: fx.LinearPositionDependentForce(a, f_nominal=1.0),
        ]
    else:
        joining = [
            lambda a, b: fx.Damper(a, b, d=20.0),
            lambda a, b: fx.SupportFriction(a, support=b),
            lambda a, b: fx.Spring(a, b, c=1.0),
        ]
        joining.append(lambda a, b: fx.SpringDamper(a, b, c=1e5, d=1.0))
        acting = [
            lambda a: fx.Force(a, 1.0),
            fx.SupportFriction,
            fx.Brake,
            lambda a: fx.LinearPositionDependentForce(a, f_nominal=1.0),
        ]
    for k, (i, j, kind) in enumerate(links):
        a, b = ends[i % len(ends)], ends[j % len(ends)]
        if a != b and (a != "wall" or kind > 1 or turns):
            parts[f"link{k}"] = joining[kind](a, b)
    if turns and gear is not None and n >= 4:
        parts["gear"] = fx.IdealPlanetary(*(bodies[i] for i in gear[:3]), ratio=2.0)
    for k, (i, kind) in enumerate(drives):
        parts[f"act{k}"] = acting[kind](bodies[i % n])
    assert faults(draw_mechanism(fx.Mechanism(**parts))) == []


def test_a_long_line_is_ordered_without_running_out_of_stack() -> None:
    nodes = tuple(Node(f"b{i}") for i in range(120))
    links = tuple(Link(f"s{i}", (nodes[i], nodes[i + 1])) for i in range(119))
    ((row,),) = rows_of_machines(Network(nodes, links, {}))
    assert row.nodes == nodes


# -- size and colours
# ----------------------------------------------------------------------------------------------


def test_the_size_grows_with_the_machine_and_letters_stay() -> None:
    def chain(n: int) -> Figure:
        springs = {f"s{i}": fx.Spring(f"m{i}", f"m{i + 1}", c=1.0) for i in range(n - 1)}
        return draw_mechanism(fx.Mechanism(**{f"m{i}": M for i in range(n)}, **springs))

    widths = [float(chain(n).get_size_inches()[0]) for n in (2, 3, 4)]
    assert widths[2] - widths[1] == pytest.approx(widths[1] - widths[0])
    assert widths[1] - widths[0] > 1.0
    assert {text.get_fontsize() for n in (2, 4) for text in chain(n).axes[0].texts} == {9.5, 8.5}


def test_machines_that_are_not_joined_stand_side_by_side_up_to_the_width() -> None:
    machine = machines.translational_friction()
    wide, narrow = (draw_mechanism(machine, width=width).get_size_inches() for width in (20.0, 1.0))
    assert wide[0] > 2 * narrow[0]
    assert narrow[1] > 2 * wide[1]
    assert faults(draw_mechanism(machine, width=1.0)) == []


def test_friction_is_orange_and_drives_are_green() -> None:
    def colours(machine: fx.Mechanism, part: str) -> set[str]:
        axes = draw_mechanism(machine).axes[0]
        shapes = {to_hex(p.get_facecolor()) for p in axes.patches if p.get_label() == part}
        return shapes | {
            to_hex(li.get_color())
            for li in axes.lines
            if isinstance(li, Line2D) and li.get_label() == part
        }

    for kind in (
        fx.SupportFriction,
        fx.BearingFriction,
        fx.Brake,
        fx.Clutch,
        fx.OneWayClutch,
        fx.LossyGear,
        fx.MassWithStopAndFriction,
    ):
        assert LINING.lower() in colours(KINDS[kind](), "part"), kind
    for kind in (
        fx.Force,
        fx.Torque,
        fx.Position,
        fx.PositionController,
        fx.LinearPositionDependentForce,
        fx.PeriodicPositionDependentForce,
        fx.QuadraticSpeedDependentForce,
        fx.QuadraticSpeedDependentTorque,
    ):
        assert DRIVE.lower() in colours(KINDS[kind](), "part"), kind
    assert colours(KINDS[fx.Spring](), "part") == {INK}


def test_drawing_leaves_the_settings_of_matplotlib_as_they_were() -> None:
    before = dict(matplotlib.rcParams)
    machines.two_blocks()._repr_svg_()
    assert dict(matplotlib.rcParams) == before


# -- in a notebook
# -------------------------------------------------------------------------------------------------


def test_a_notebook_shows_a_machine_as_svg_the_same_each_time_and_its_text_stays() -> None:
    machine = machines.planetary_gearbox()
    svg = machine._repr_svg_()
    picture = ET.fromstring(svg)
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    width, height = machine.plot().get_size_inches() * 72
    assert [float(x) for x in picture.attrib["viewBox"].split()] == pytest.approx(
        [0, 0, width, height], abs=1e-3
    )
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}path"))) > 50
    assert svg == machines.planetary_gearbox()._repr_svg_()
    assert repr(machine).startswith("Mechanism(")


def test_importing_and_building_a_machine_loads_no_matplotlib_until_it_is_drawn() -> None:
    code = """if True:
        import sys, frictax as fx
        block = fx.Mechanism(mass=fx.Mass(m=1.0), guide=fx.SupportFriction("mass"))
        repr(block)
        assert "matplotlib" not in sys.modules
        block.plot()
        assert "matplotlib" in sys.modules and "matplotlib.pyplot" not in sys.modules
    """
    subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True
    )
