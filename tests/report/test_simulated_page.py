"""A page simulates as frictax does: the same curves at any place of its sliders."""

import base64
import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.export.code.lowering import CannotBeWritten
from frictax.fitting.build_problem import build_problem
from frictax.fitting.options import FitOptions
from frictax.fitting.problem.problem import Problem, predictions
from frictax.parameters import replace
from frictax.report import simulation
from report.browser import WIDTHS, look, needs_browser
from report.saved_fits import Pendulum

T = np.linspace(0.0, 2.0, 161)
PUSH = 3.0 * np.sin(3.0 * T) + 1.5 * np.sin(7.3 * T)

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def block(**parts: Any) -> fx.Mechanism:
    friction = fx.SupportFriction("mass", f_pos=fx.Coulomb(1.0, 0.2), peak=1.1)
    usual = {"mass": fx.Mass(m=1.0), "friction": friction, "drive": fx.Force("mass", 0.0)}
    return fx.Mechanism(**{**usual, **parts})


def record(**options: Any) -> fx.Record:
    """A record of a made-up motion: what a page simulates does not depend on what was measured."""
    name = options.pop("output", "mass.v")
    seen = 0.5 * np.sin(3.0 * options.pop("times", T)[: T.size] - 0.8)
    inputs = options.pop("inputs", {"drive": PUSH})
    return fx.Record(T, inputs, {name: seen}, **options)


def problem_of(machine: Any, records: dict[str, fx.Record], **options: Any) -> Problem:
    return build_problem(machine, records, FitOptions(**options))[0]


def runs_in_node(script: str, xs: list[np.ndarray], folder: Path) -> list[Any]:
    """The columns of each record that the script simulates, for each of the values `xs`."""
    call = f"console.log(JSON.stringify({json.dumps([x.tolist() for x in xs])}.map(function (x) {{"
    call += " return simulation.run(x).map(function (r) {"
    call += " return r.now.outputs.map(function (o) { return Array.from(o); }); }); })));"
    (folder / "page.js").write_text(script + call)
    done = subprocess.run(["node", "page.js"], cwd=folder, check=True, capture_output=True)
    return json.loads(done.stdout)


def assert_same_curves(problem: Problem, folder: Path, factor: float = 1.07) -> None:
    xs = [problem.x0, factor * problem.x0 + 1e-3]
    # The starts of windows are no sliders.
    hidden = np.concatenate([np.full(u.size, u.hidden) for u in problem.unknowns])
    xs[1] = np.where(hidden, xs[0], xs[1])
    ran = runs_in_node(simulation.simulate_records(problem, xs[0]), xs, folder)
    for x, records in zip(xs, ran, strict=True):
        for i, columns in enumerate(records):
            expected = np.asarray(predictions(problem, jnp.asarray(x), i))
            got = np.array(columns, float).T.reshape(expected.shape)
            assert np.isfinite(expected).all()
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9)


class Turned(Pendulum):
    """A pendulum with a motor."""

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return args["u"] - 0.48 * jnp.sin(y[0])


FREE = ["mass.m", "friction.f_pos"]


@pytest.mark.slow
@needs_node
def test_a_free_run_with_all_effects_of_sensors(tmp_path: Path) -> None:
    sensors = {
        "outputs.mass.v": fx.Instrument(gain=1.1, offset=0.02, drift=0.01, delay=0.013),
        "inputs.drive": fx.Instrument(gain=0.9, offset=0.1, delay=-0.004),
    }
    free = [*FREE, "outputs.mass.v.gain", "outputs.mass.v.delay", "inputs.drive.offset"]
    problem = problem_of(block(), {"a": record()}, free=free, instruments=sensors)
    assert_same_curves(problem, tmp_path)


@needs_node
@pytest.mark.slow
def test_two_records_each_with_its_own_start(tmp_path: Path) -> None:
    own = {"mass.v": [0.1, -0.2]}
    records = {"a": record(), "b": record(inputs={"drive": 1.2 * PUSH})}
    problem = problem_of(block(), records, free=FREE, own=own)
    assert_same_curves(problem, tmp_path)


@needs_node
@pytest.mark.slow
@pytest.mark.parametrize("objective", [fx.Windows(0.4), fx.Windows(0.4, free_starts=True)])
def test_windows_that_start_as_measured(objective: fx.Windows, tmp_path: Path) -> None:
    sensors = {"outputs.mass.v": fx.Instrument(gain=1.1, offset=0.02, delay=0.013)}
    problem = problem_of(
        block(), {"a": record()}, free=FREE, objective=objective, instruments=sensors
    )
    assert np.shape(problem.prepared[0].weight)[0] > 3
    assert_same_curves(problem, tmp_path)


def closed_loop() -> Problem:
    loop = fx.ClosedLoop({"drive": fx.PositionController("mass", 0.0, kp=20.0, kv=40.0)})
    seen = record(output="mass.s", inputs={"drive": 0.1 * PUSH})
    return problem_of(block(), {"a": seen}, free=FREE, objective=loop)


def lugre() -> Problem:
    bristle = fx.LuGre(sigma_0=1e4, sigma_1=20.0)
    friction = fx.SupportFriction("mass", f_pos=fx.Coulomb(1.0, 0.2), bristle=bristle)
    return problem_of(block(friction=friction), {"a": record()}, free=FREE)


def own_machine() -> Problem:
    friction = fx.SupportFriction("joint", f_pos=fx.Coulomb(F_Coulomb=0.02), peak=1.3)
    pendulum = Pendulum(friction, J=0.0067, phi=0.6)
    seen = record(output="phi", inputs={})
    return problem_of(pendulum, {"a": seen}, free=["friction.f_pos.F_Coulomb", "phi"])


def held_with_ties() -> Problem:
    second = fx.SupportFriction("mass", f_pos=fx.Coulomb(1.0, 0.2))
    tied: Any = {"second.f_pos.F_Coulomb": "0.5 * friction.f_pos.F_Coulomb"}
    return problem_of(block(second=second), {"a": record(hold=True)}, free=FREE, tied=tied)


def no_error_control() -> Problem:
    engine = fx.OnSamples(tolerance=None, substeps=3)
    return problem_of(block(), {"a": record()}, free=FREE, engine=engine)


def coarse_steps_with_stops() -> Problem:
    stops = {"smin": -0.2, "smax": 0.2, "F_Coulomb": 0.5, "F_prop": 0.2, "F_Stribeck": 0.4}
    mass = fx.MassWithStopAndFriction(m=0.2, fexp=5.0, **stops)
    machine = fx.Mechanism(mass=mass, drive=fx.Force("mass", 0.0))
    coarse = fx.Record(T[::8], {"drive": PUSH[::8]}, {"mass.v": 0.1 * T[::8]})
    return problem_of(machine, {"a": coarse}, free=["mass.m", "mass.F_Coulomb"])


def driven_position() -> Problem:
    machine = fx.Mechanism(
        base=fx.Mass(m=1.0),
        mass=fx.Mass(m=0.5),
        spring=fx.Spring("base", "mass", c=40.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(0.4, 0.2)),
        drive=fx.Position("base", lambda t: 0.0 * t),
    )
    seen = record(inputs={"drive": 0.1 * PUSH}, units={"drive": "m"})
    return problem_of(machine, {"a": seen}, free=["mass.m", "friction.f_pos"])


def own_machine_with_input() -> Problem:
    friction = fx.SupportFriction("joint", f_pos=fx.Coulomb(F_Coulomb=0.02), peak=1.3)
    pendulum = Turned(friction, J=0.0067)
    seen = record(output="phi", inputs={"u": 0.1 * PUSH}, units={"u": "N.m"})
    free = ["friction.f_pos.F_Coulomb", "J"]
    return problem_of(pendulum, {"a": seen}, free=free, objective=fx.Windows(0.4))


def measured_start_with_gap() -> Problem:
    rows = np.r_[0:60, 75:161]
    seen = {"mass.s": 0.2 * np.sin(3.0 * T[rows])}
    gap = fx.Record(T[rows], {"drive": PUSH[rows]}, seen)
    engine = fx.OnSamples(tolerance=None)
    objective = fx.FreeRun(measured_start=True, cutoff=20.0)
    return problem_of(block(), {"a": gap}, free=FREE, objective=objective, engine=engine)


@needs_node
@pytest.mark.slow
@pytest.mark.parametrize(
    "build",
    [
        closed_loop,
        lugre,
        own_machine,
        held_with_ties,
        no_error_control,
        coarse_steps_with_stops,
        measured_start_with_gap,
        driven_position,
        own_machine_with_input,
    ],
)
def test_other_problems(build: Any, tmp_path: Path) -> None:
    assert_same_curves(build(), tmp_path)


@pytest.mark.slow
def test_what_cannot_be_simulated_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def reason(problem: Problem) -> str:
        with pytest.raises(CannotBeWritten) as error:
            simulation.simulate_records(problem, problem.x0)
        return str(error.value)

    records = {"a": record()}
    dynamics = fx.InverseDynamics(cutoff=10.0, v_min=0.05)
    assert "InverseDynamics" in reason(problem_of(block(), records, free=FREE, objective=dynamics))
    assert "diffrax" in reason(problem_of(block(), records, free=FREE, engine=fx.Adaptive()))
    monkeypatch.setitem(simulation.LONGEST, "the measurements", 1000)
    assert "the measurements" in reason(problem_of(block(), records, free=FREE))


def test_the_script_of_a_block_has_at_most_10_kb_compressed() -> None:
    problem = problem_of(block(), {"a": record()}, free=FREE)
    script = simulation.simulate_records(problem, problem.x0)
    code = script[script.index("codes = [") : script.index("], page =")]
    assert len(gzip.compress(code.encode(), 9)) < 10_000


# -- a machine without records


@pytest.fixture(scope="module")
def run() -> fx.Trajectory:
    """A block with a drive on its own samples, between those of the run."""
    drives = {"drive": fx.Force("mass", fx.Sine(amplitude=3.0, f=0.5))}
    drives["gust"] = fx.Force("mass", fx.Sampled([0.0, 0.503, 1.7], [0.0, 1.0, 0.0]))
    return fx.simulate(block(**drives), T)


@pytest.fixture(scope="module")
def what_if(run: fx.Trajectory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run.page(tmp_path_factory.mktemp("what_if") / "what_if.html")


@pytest.mark.slow
@needs_node
def test_a_page_of_a_run_simulates_the_changed_machine(
    run: fx.Trajectory, what_if: Path, tmp_path: Path
) -> None:
    text = what_if.read_text(encoding="utf-8")
    packed = re.search(r'id="simulation">([^<]*)<', text)
    moving = re.search(r"moving: (\{.*\}) \};\n", text)
    assert packed is not None
    assert moving is not None
    script = gzip.decompress(base64.b64decode(packed[1])).decode()
    names = re.findall(r'<label for="move-\d+">([^<]*)</label>', text)
    x = np.array(json.loads(moving[1])["x"])
    x[names.index("friction.f_pos.F_Coulomb")] = 1.4
    x[names.index("drive.f.f")] = 0.7
    changed = {"friction.f_pos.F_Coulomb": 1.4, "drive.f.f": 0.7}
    machine = replace(run.system.mechanism, changed)
    grid = np.unique([*T, 0.503])
    expected = fx.simulate(machine, grid, fx.OnSamples())
    ((s, v, f),) = runs_in_node(script, [x], tmp_path)[0]
    for got, part, name in ((s, "mass", "s"), (v, "mass", "v"), (f, "friction", "f")):
        np.testing.assert_allclose(got, getattr(expected[part], name), rtol=0, atol=1e-9)


@pytest.mark.slow
@needs_browser
def test_a_dark_page_of_a_run_fits_a_narrow_screen(what_if: Path) -> None:
    move = "var i = document.getElementById('move-1'); i.value = 200;"
    move += "i.dispatchEvent(new Event('input')); await pause(600);"
    seen, console = look(what_if, move + WIDTHS, width=390, dark=True)
    assert console == []
    assert seen == {"wide": [], "page": 390, "room": 390}


@pytest.mark.slow
@needs_browser
def test_a_page_of_a_run_begins_near_the_run_says_where_a_simulation_ends_and_fits_the_screen(
    what_if: Path,
) -> None:
    probe = """
        var spans = document.querySelectorAll(".now span");
        function all() { return Array.from(spans, function (one) { return one.textContent; }); }
        var before = all(), input = document.getElementById("move-0");
        input.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
        document.activeElement.value = "0";
        document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
        await pause(600);
        return [before, all(), (function () { WIDTHS })()];
    """
    (before, after, seen), console = look(what_if, probe.replace("WIDTHS", WIDTHS))
    assert console == []
    assert seen == {"wide": [], "page": 1300, "room": 1300}
    first, number, unit = before[0].rpartition("run ")[0], *before[0].split()[-2:]
    assert first == "mass.s: rms difference from this "
    assert (unit, float(number) < 1e-6) == ("m", True)
    assert "With these values a simulation ends early, at 0" in after[-1]


def test_a_run_without_a_page_is_refused(run: fx.Trajectory, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    batch = jax.tree.map(lambda x: jnp.stack([x, x]) if eqx.is_array(x) else x, run)
    with pytest.raises(ValueError, match="`page` needs one run, got a batch of shape"):
        batch.page(path)
    with pytest.raises(KeyError, match="mass.M"):
        run.page(path, free=["mass.M"])
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="is not a report of frictax"):
        run.page(path)
    assert path.read_text() == "mine"
