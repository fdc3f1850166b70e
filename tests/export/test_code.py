"""Machines as C and JavaScript: the same run as that of frictax, to rounding."""

import ctypes
import functools
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
import machines
from frictax.export.code import machine as code_of_machine
from frictax.export.code.machine import MachineCode
from frictax.export.code.texts import c_text, javascript_text, structured_text, to_c
from frictax.fitting.problem.setup import variable_at
from frictax.parameters import replace

from .structured_text import translated

T = np.linspace(0.0, 4.0, 801)
PULL = 18.0 * np.sin(2.5 * T) + 6.0 * np.sin(7.0 * T)
GCC = ["gcc", "-std=c99", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


class Run(NamedTuple):
    outputs: np.ndarray
    events: int
    failure: int


def block(force: Any = None) -> fx.Mechanism:
    """A block between two stops, pulled by a measured force."""
    return fx.Mechanism(
        mass=fx.MassWithStopAndFriction(
            m=1.0, smin=-0.25, smax=0.25, F_prop=2.0, F_Coulomb=7.0, F_Stribeck=4.0, fexp=3.0
        ),
        drive=fx.Force("mass", fx.Sampled(T, PULL) if force is None else force),
    )


def lossy_gear() -> fx.Mechanism:
    return fx.Mechanism(
        motor=fx.Inertia(J=0.1),
        load=fx.Inertia(J=2.0),
        gear=fx.LossyGear(
            "motor",
            "load",
            ratio=5.0,
            lossTable=[[0, 0.9, 0.85, 0.2, 0.25], [50, 0.92, 0.88, 0.4, 0.5]],
        ),
        drive=fx.Torque("motor", fx.Sine(amplitude=3.0, f=0.2)),
        out=fx.Torque("load", fx.Sine(amplitude=-8.0, f=0.15)),
    )


class Ball(fx.AbstractHybridSystem):
    """A ball that bounces."""

    g: float = 9.81

    def flow(self, t, y, mode, args):
        return jnp.stack([y[1], -jnp.asarray(self.g)])

    def guard(self, t, y, mode, args):
        return y[:1] + 1e-14

    def jump(self, t, y, mode, fired, args):
        return jnp.stack([0.0 * y[0], -0.9 * y[1]]), mode + 1, jnp.array(0)

    def start(self, t):
        return jnp.array([1.0, 0.0]), jnp.array([0])

    def states(self):
        return "s", "v"


def run_of_frictax(machine: Any, substeps: int, outputs: list[str]) -> Run:
    options = fx.OnSamples(tolerance=None, substeps=substeps)
    if isinstance(machine, fx.Mechanism):
        run = fx.simulate(machine, T, options)
        states = dict(zip(run.system.states(), np.asarray(run.ys).T, strict=True))
        names = [(name, *name.rpartition(".")) for name in outputs]
        columns = [
            states[name] if name in states else np.asarray(getattr(run[part], variable))
            for name, part, _, variable in names
        ]
        return Run(np.stack(columns, axis=1), int(run.path.count), 0)
    y0, mode0 = machine.start(jnp.asarray(T[0]))
    path = fx.walk(machine, y0, mode0, jnp.asarray(T), options=options)
    rows = zip(jnp.asarray(T), path.ys, path.modes, strict=True)
    columns = [[variable_at(machine, n, t, y, mode) for n in outputs] for t, y, mode in rows]
    return Run(np.asarray(columns), int(path.count), 0)


def run_in_c(
    text: str, folder: Path, columns: int, inputs: Any = None, p: np.ndarray | None = None
) -> Run:
    """Compile the text, and run it with the numbers `p`, by default those in the text."""
    source, library = folder / "machine.c", folder / "machine.so"
    source.write_text(text)
    subprocess.run([*GCC, "-fPIC", "-shared", "-o", library, source, "-lm"], check=True)
    code = ctypes.CDLL(str(library))
    given = np.zeros((T.size, 1)) if inputs is None else np.ascontiguousarray(inputs)
    out, events = np.zeros((T.size, columns)), np.zeros(1, np.int32)
    numbers = values_of(text) if p is None else p
    at = lambda array: ctypes.c_void_p(array.ctypes.data)  # noqa: E731
    failure = code.fx_run(at(numbers), T.size, at(T), at(given), at(out), at(events))
    return Run(out, int(events[0]), failure)


def values_of(text: str) -> np.ndarray:
    table = text.partition("fx_numbers[] = {")[2].partition("}")[0]
    return np.array([float(x) for x in table.split(",")])


def run_in_node(text: str, folder: Path, columns: int) -> Run:
    (folder / "machine.js").write_text(text)
    (folder / "ts.json").write_text(json.dumps(T.tolist()))
    call = (
        "const m=require('./machine.js'),ts=Float64Array.from(require('./ts.json'));"
        "const r=m.run(m.start(),ts);console.log(JSON.stringify({...r,outputs:[...r.outputs]}))"
    )
    done = subprocess.run(["node", "-e", call], cwd=folder, check=True, capture_output=True)
    r = json.loads(done.stdout)
    return Run(np.array(r["outputs"], float).reshape(T.size, columns), r["events"], r["failure"])


def run_of_text(text: str, outputs: list[str]) -> Run:
    """Run the function block of a text, one cycle for each sample."""
    cycle = translated(text)["FX_Machine"]()
    columns, out = [name.replace(".", "_") for name in outputs], {}
    rows = []
    for dt in [*np.diff(T).tolist(), 0.0]:
        out = cycle(dt=dt)
        rows.append([out[name] for name in columns])
    return Run(np.array(rows), out["events"], out["failure"])


def assert_same(run: Run, expected: Run, atol: float = 1e-11) -> None:
    assert run.failure == 0
    assert run.events == expected.events
    np.testing.assert_allclose(run.outputs, expected.outputs, rtol=0, atol=atol)


@functools.cache
def exported() -> tuple[str, Run, MachineCode]:
    code = MachineCode(block(), None, fx.OnSamples(), {}, None)
    return c_text(code), run_of_frictax(block(), code.substeps, list(code.outputs)), code


@needs_gcc
def test_c_is_the_run_of_frictax(tmp_path: Path) -> None:
    text, expected, code = exported()
    assert list(code.outputs) == ["mass.s", "mass.v", "mass.f"]
    assert list(code.outputs.values()) == ["m", "m/s", "N"]
    assert_same(run_in_c(text, tmp_path, 3), expected)
    assert code.error < 1e-5
    assert f"{code.error:.1e} of the range" in text


@needs_gcc
def test_numbers_may_be_changed_after_the_export(tmp_path: Path) -> None:
    text, _, code = exported()
    names = [number.name for number in code.numbers]
    p = values_of(text)
    p[names.index("mass.F_Coulomb")] = 5.0
    machine = replace(block(), {"mass.F_Coulomb": 5.0})
    expected = run_of_frictax(machine, code.substeps, list(code.outputs))
    assert_same(run_in_c(text, tmp_path, 3, p=p), expected)


def test_the_text_of_a_block_computes_the_run_of_frictax() -> None:
    _, expected, code = exported()
    assert_same(run_of_text(structured_text(code), list(code.outputs)), expected, 1e-12)


@needs_node
@pytest.mark.slow
def test_javascript_is_the_run_of_frictax(tmp_path: Path) -> None:
    _, expected, code = exported()
    assert_same(run_in_node(javascript_text(code), tmp_path, 3), expected)


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("how", ["held", "linear"])
def test_a_drive_from_outside_is_the_drive_inside(tmp_path: Path, how: str) -> None:
    inside = block(fx.Sampled(T, PULL, hold=how == "held"))
    code = MachineCode(inside, T, fx.OnSamples(), {"drive.f": how}, None)
    text = c_text(code)
    expected = run_of_frictax(inside, code.substeps, list(code.outputs))
    assert_same(run_in_c(text, tmp_path, 3, inputs=PULL[:, None]), expected)


class Pendulum(fx.AbstractAxis):
    """A pendulum whose joint rubs."""

    friction: fx.SupportFriction
    J: float = 0.0067
    mgl: float = 0.48

    def inertia(self, t, y, args):
        return self.J

    def load(self, t, y, args):
        return -self.mgl * jnp.sin(y[0])

    def states(self):
        return "phi", "w"

    def start(self, t):
        return self.begin(t, jnp.array([1.2, 0.0]))


def pendulum() -> Pendulum:
    law = fx.Stribeck(F_Coulomb=0.02, F_prop=0.001, F_Stribeck=0.01, fexp=2.0)
    return Pendulum(fx.SupportFriction("joint", f_pos=law, peak=1.2))


def bristles(bristle: Any) -> fx.Mechanism:
    law = fx.Stribeck(F_prop=0.2, F_Coulomb=1.0, F_Stribeck=0.4, fexp=5.0)
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=law, bristle=bristle),
        drive=fx.Force("mass", fx.Sampled(T, 0.12 * PULL)),
    )


def backlash() -> fx.Mechanism:
    """A load that a motor turns through a gear with backlash."""
    return fx.Mechanism(
        motor=fx.Inertia(J=0.5),
        load=fx.Inertia(J=2.0),
        teeth=fx.ElastoBacklash("motor", "load", c=400.0, d=2.0, backlash=0.05),
        bearing=fx.BearingFriction("load", tau_pos=fx.Coulomb(F_Coulomb=1.0)),
        drive=fx.Torque("motor", fx.Sampled(T, 0.5 * PULL)),
    )


def pressed_brake() -> fx.Mechanism:
    """A brake with a measured normal force."""
    press = 0.6 + np.sin(2 * np.pi * 0.9 * T + 0.5)
    return fx.Mechanism(
        wheel=fx.Inertia(J=1.0, w=5.0),
        brake=fx.Brake(
            "wheel", mu_pos=[[0, 0.5]], peak=1.1, fn_max=20.0, f_normalized=fx.Sampled(T, press)
        ),
        drive=fx.Torque("wheel", fx.Sampled(T, 0.5 * PULL)),
    )


def heated() -> fx.Mechanism:
    """A block whose friction heats its guide."""
    return fx.Mechanism(
        **{name: block()[name] for name in ("mass", "drive")},
        guide=fx.HeatCapacitor("mass", C=3.0, T=300.0),
        air=fx.ThermalConductor("guide", G=0.5, T_ambient=290.0),
    )


MACHINES = {
    "pendulum": pendulum,
    "LuGre": lambda: bristles(fx.LuGre(1e4, 1e2)),
    "Maxwell-slip": lambda: bristles(fx.MaxwellSlip([3e3, 1e4, 3e4], [0.2, 0.3, 0.5])),
    "backlash": backlash,
    "brake": pressed_brake,
    "heat": heated,
    "two blocks": machines.two_blocks,
    "coupled clutches": machines.coupled_clutches,
    "lossy gear": lossy_gear,
    "planetary gearbox": machines.planetary_gearbox,
    "one-way clutch": machines.one_way_clutch,
    "pulsed brake": machines.pulsed_brake,
    "belt": machines.mass_on_a_belt,
    "ball": Ball,
}


# Time steps between two samples, where the export finds more than one. Its search needs three more
# programs, so only the block and the pendulum, with 2 steps, are exported with a search.
STEPS = {"LuGre": 64, "Maxwell-slip": 64, "backlash": 3}
IN_STRUCTURED_TEXT = ["two blocks", "lossy gear", "pendulum"]


@needs_gcc
@needs_node
@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_other_machines_are_the_run_of_frictax(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name != "pendulum":
        found = STEPS.get(name, 1), 0.0, np.ones(1)
        monkeypatch.setattr(code_of_machine, "_steps", lambda *_: found)
    machine = MACHINES[name]()
    code = MachineCode(machine, T, fx.OnSamples(), {}, None)
    outputs = list(code.outputs)
    expected = run_of_frictax(machine, code.substeps, outputs)
    assert_same(run_in_c(c_text(code), tmp_path, len(outputs)), expected)
    assert_same(run_in_node(javascript_text(code), tmp_path, len(outputs)), expected)
    text = structured_text(code)
    assert "FUNCTION_BLOCK FX_Machine" in text
    if name in IN_STRUCTURED_TEXT:
        assert_same(run_of_text(text, outputs), expected, 1e-12)


def test_a_machine_without_a_measured_drive_must_be_given_times() -> None:
    with pytest.raises(ValueError, match=r"no measured drive .* Give them as `ts`"):
        to_c(block(fx.Sine(amplitude=5.0, f=1.0)))


def test_an_input_must_say_how_it_goes_between_samples() -> None:
    with pytest.raises(ValueError, match="must be one of held, linear, got 'cubic'"):
        to_c(block(), inputs={"drive.f": "cubic"})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"outputs": ["mas.s"]}, "names 'mas.s', which is no variable of the machine. Did you"),
        ({"outputs": "mass.s"}, r"`outputs` must be a list of names, got 'mass.s'"),
        ({"inputs": ["drive.f"]}, r"must be a dict such as \{\"drive.f\": \"held\"\}, got \["),
        ({"inputs": {"drive.q": "held"}}, "'drive.q' must name a part with a signal"),
        ({"engine": fx.Adaptive()}, "must be an `OnSamples`, whose steps the code takes, got Ada"),
        ({"ts": "now"}, r"`ts` must be times \[s\], got 'now'"),
        ({"ts": [0.0]}, r"at least two times \[s\] that increase, got an array of shape \(1,\)"),
    ],
)
def test_wrong_options_of_an_export_get_a_sentence(options: dict[str, Any], says: str) -> None:
    with pytest.raises((ValueError, LookupError), match=says):
        to_c(block(), **options)
