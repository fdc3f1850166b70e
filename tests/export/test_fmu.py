"""Machines as FMUs of FMI 2.0 and 3.0, as the importer FMPy runs them."""

import functools
import importlib.util
import io
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
import machines
from frictax.export.code.machine import MachineCode
from frictax.export.fmu.description import base_units, structured_name
from frictax.export.fmu.package import find_compilers, pack_fmu, to_fmu

from .test_code import bristles, lossy_gear

T = np.linspace(0.0, 4.0, 801)
PULL = 18.0 * np.sin(2.5 * T) + 6.0 * np.sin(7.0 * T)
VERSIONS = "2.0", "3.0"
OUTPUTS = ["mass.s", "mass.v", "mass.f"]


def block(force: Any) -> fx.Mechanism:
    """A block between two stops that is pulled."""
    return fx.Mechanism(
        mass=fx.MassWithStopAndFriction(
            m=1.0, smin=-0.25, smax=0.25, F_prop=2.0, F_Coulomb=7.0, F_Stribeck=4.0, fexp=3.0
        ),
        drive=fx.Force("mass", force),
    )


class Ball(fx.AbstractHybridSystem):
    """A ball that bounces, with a parameter of a table."""

    kinds: tuple[jax.Array, ...] = (jnp.array([9.81, 0.9]),)

    def flow(self, t, y, mode, args):
        return jnp.stack([y[1], -self.kinds[0][0]])

    def guard(self, t, y, mode, args):
        return y[:1] + 1e-14

    def jump(self, t, y, mode, fired, args):
        return jnp.stack([0.0 * y[0], -self.kinds[0][1] * y[1]]), mode + 1, jnp.array(0)

    def start(self, t):
        return jnp.array([1.0, 0.0]), jnp.array([0])


STRAIGHT = block(fx.Sampled(T, PULL))
HELD = block(fx.Sampled(T, PULL, hold=True))
SINE = block(fx.Sine(amplitude=18.0, f=0.4))

needs_importer = pytest.mark.skipif(
    importlib.util.find_spec("fmpy") is None or shutil.which("cc") is None,
    reason="FMPy or a C compiler is not installed",
)
slow = pytest.mark.slow


@functools.cache
def code_of(kind: str) -> MachineCode:
    """Return the code of a machine that several tests use."""
    machine, inputs = {
        "held": (HELD, {"drive.f": "held"}),
        "linear": (STRAIGHT, {"drive.f": "linear"}),
        "sine": (SINE, {}),
        "ball": (Ball(), {}),
        "two blocks": (machines.two_blocks(), {}),
        "lossy gear": (lossy_gear(), {}),
        "LuGre": (bristles(fx.LuGre(1e4, 1e2)), {}),
    }[kind]
    return MachineCode(machine, T, fx.OnSamples(), inputs, None)


@functools.cache
def unit_file(kind: str, version: str) -> str:
    """Return the path of the FMU of a machine."""
    path = Path(tempfile.mkdtemp()) / f"{kind}.fmu"
    here = dict(list(find_compilers(None).items())[:1])
    path.write_bytes(pack_fmu(code_of(kind), version, "Machine", here))
    return str(path)


class Unit:
    """An FMU in FMPy, with the same methods for both versions of FMI."""

    def __init__(self, kind: str, version: str, cosimulates: bool) -> None:
        fmpy, fmi2, fmi3 = map(pytest.importorskip, ("fmpy", "fmpy.fmi2", "fmpy.fmi3"))
        self.folder = fmpy.extract(unit_file(kind, version))
        model = fmpy.read_model_description(unit_file(kind, version))
        self.variables = {v.name: v for v in model.modelVariables}
        self.is_2 = version == "2.0"
        kinds: Any = (
            (fmi2.FMU2Model, fmi2.FMU2Slave) if self.is_2 else (fmi3.FMU3Model, fmi3.FMU3Slave)
        )
        self.fmu = kinds[cosimulates](
            guid=model.guid, unzipDirectory=self.folder, modelIdentifier="Machine", instanceName="a"
        )
        self.fmu.instantiate()
        if self.is_2:
            self.fmu.setupExperiment(startTime=0.0)
        self.fmu.enterInitializationMode()

    def __enter__(self) -> "Unit":
        return self

    def __exit__(self, *_: object) -> None:
        self.fmu.terminate()
        self.fmu.freeInstance()
        shutil.rmtree(self.folder, ignore_errors=True)

    def begin(self, values: Mapping[str, float], integrates: bool = False) -> None:
        for name, x in values.items():
            self.set(name, x)
        self.fmu.exitInitializationMode()
        if integrates:
            self.fmu.newDiscreteStates() if self.is_2 else self.fmu.updateDiscreteStates()
            self.fmu.enterContinuousTimeMode()

    def references(self, *names: str) -> list[int]:
        return [self.variables[name].valueReference for name in names]

    def get(self, *names: str) -> np.ndarray:
        get = self.fmu.getReal if self.is_2 else self.fmu.getFloat64
        return np.array(get(self.references(*names)))

    def count(self, name: str) -> int:
        get = self.fmu.getInteger if self.is_2 else self.fmu.getInt32
        return int(get(self.references(name))[0])

    def set(self, name: str, value: float) -> None:
        put = self.fmu.setReal if self.is_2 else self.fmu.setFloat64
        put(self.references(name), [float(value)])

    def step(self, i: int) -> None:
        self.fmu.doStep(currentCommunicationPoint=T[i], communicationStepSize=T[i + 1] - T[i])

    def derivatives(self, unknown: list[str], known: str) -> np.ndarray:
        ask = self.fmu.getDirectionalDerivative
        return np.array(ask(self.references(*unknown), self.references(known), [1.0]))


@needs_importer
@slow
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["held", "linear", "sine", "ball"])
def test_the_importer_has_no_finding(kind: str, version: str) -> None:
    validation = pytest.importorskip("fmpy.validation")
    assert validation.validate_fmu(unit_file(kind, version)) == []


def run_on_samples(machine: fx.Mechanism, substeps: int) -> tuple[np.ndarray, int]:
    run = fx.simulate(machine, jnp.asarray(T), fx.OnSamples(tolerance=None, substeps=substeps))
    columns = [getattr(run["mass"], name.removeprefix("mass.")) for name in OUTPUTS]
    return np.stack(columns, axis=1), int(run.events.count)


def cosimulate(kind: str, version: str, parameters: Mapping[str, float]) -> tuple[np.ndarray, int]:
    with Unit(kind, version, cosimulates=True) as unit:
        unit.begin(parameters)
        rows = list[np.ndarray]()
        for i in range(T.size):
            if kind != "sine":
                unit.set("drive.f", PULL[i])
            if kind == "linear" and i + 1 < T.size:
                unit.set("der(drive.f)", (PULL[i + 1] - PULL[i]) / (T[i + 1] - T[i]))
            rows.append(unit.get(*OUTPUTS))
            if i + 1 < T.size:
                unit.step(i)
        return np.array(rows), unit.count("events")


@needs_importer
@slow
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["held", "linear"])
def test_cosimulation_is_the_run_on_samples(kind: str, version: str) -> None:
    machine = HELD if kind == "held" else STRAIGHT
    expected, count = run_on_samples(machine, code_of(kind).substeps)
    outputs, events = cosimulate(kind, version, {})
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-10)
    assert events == count > 0


@needs_importer
@slow
def test_parameters_and_the_start_may_be_changed() -> None:
    changes = {"mass.F_Coulomb": 5.0, "mass.s": 0.1}
    machine = fx.parameters.replace(HELD, changes)
    expected, _ = run_on_samples(machine, code_of("held").substeps)
    outputs, _ = cosimulate("held", "2.0", {"mass.F_Coulomb": 5.0, "mass.s.start": 0.1})
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-10)


@needs_importer
@slow
@pytest.mark.parametrize("version", VERSIONS)
def test_model_exchange_has_the_accurate_run_and_its_events(version: str) -> None:
    fmpy = pytest.importorskip("fmpy")
    run = fx.simulate(SINE, jnp.asarray(T), fx.Adaptive(rtol=1e-11, atol=1e-13))
    expected = np.stack([getattr(run["mass"], name[5:]) for name in OUTPUTS], axis=1)
    found = fmpy.simulate_fmu(
        unit_file("sine", version), fmi_type="ModelExchange", solver="CVode",
        relative_tolerance=1e-8, output_interval=0.005, stop_time=4.0,
        output=[*OUTPUTS, "mass.mode"],
    )  # fmt: skip
    at_samples = np.searchsorted(found["time"], T + 1e-9) - 1
    outputs = np.stack([found[name][at_samples] for name in OUTPUTS], axis=1)
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-6)
    changes = np.flatnonzero(np.diff(found["mass.mode"]))
    events = np.asarray(run.events.time[: int(run.events.count)])
    np.testing.assert_allclose(found["time"][changes + 1], events, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(
        found["mass.mode"][changes + 1], np.asarray(run.events.mode_after[: events.size]).ravel()
    )


@needs_importer
@slow
@pytest.mark.parametrize(
    ("kind", "tolerance"), [("two blocks", 1e-8), ("lossy gear", 1e-8), ("LuGre", 1e-10)]
)
def test_other_machines_have_the_accurate_run_within_the_tolerance_of_the_solver(
    kind: str, tolerance: float
) -> None:
    """The error of CVode itself is about 100 tolerances, for a fast bristle 10000."""
    fmpy = pytest.importorskip("fmpy")
    machine = code_of(kind).machine
    assert isinstance(machine, fx.Mechanism)
    run = fx.simulate(machine, jnp.asarray(T), fx.Adaptive(rtol=1e-11, atol=1e-13))
    file = unit_file(kind, "2.0")
    rates = [v.name for v in fmpy.read_model_description(file).modelVariables]
    states = [name[4:-1] for name in rates if name.startswith("der(")]
    found = fmpy.simulate_fmu(
        file, fmi_type="ModelExchange", solver="CVode", relative_tolerance=tolerance,
        output_interval=0.005, stop_time=4.0, output=states,
    )  # fmt: skip
    at_samples = np.searchsorted(found["time"], T + 1e-9) - 1
    outputs = np.stack([found[name][at_samples] for name in states], axis=1)
    errors = np.max(np.abs(outputs - run.ys), axis=0) / np.ptp(run.ys, axis=0)
    assert np.all(errors < 1e-6), dict(zip(states, errors, strict=True))


@needs_importer
@slow
@pytest.mark.parametrize("speed", [0.4, -0.4])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["held", "linear"])
def test_derivatives_are_central_differences(kind: str, version: str, speed: float) -> None:
    unknown = ["der(mass.s)", "der(mass.v)", "mass.f"]
    with Unit(kind, version, cosimulates=False) as unit:
        unit.begin({"drive.f": 15.0, "mass.v.start": speed}, integrates=True)
        known = [n for n, v in unit.variables.items() if v.variability == "tunable"]
        assert {"mass.m", "mass.F_Coulomb", "mass.fexp"} <= set(known)
        for name in [*known, "drive.f", "mass.s", "mass.v"]:
            x = unit.get(name)[0]
            h, ends = 1e-5 * max(abs(x), 0.1), list[np.ndarray]()
            for sign in (1, -1):
                unit.set(name, x + sign * h)
                ends.append(unit.get(*unknown))
            unit.set(name, x)
            differences = (ends[0] - ends[1]) / (2 * h)
            exact = unit.derivatives(unknown, name)
            np.testing.assert_allclose(exact, differences, rtol=1e-6, atol=1e-8, err_msg=name)


@needs_importer
@slow
@pytest.mark.parametrize("kind", ["two blocks", "lossy gear", "LuGre"])
def test_derivatives_of_other_machines_are_central_differences(kind: str) -> None:
    """By every parameter and state, while all bodies move."""
    draws = np.random.default_rng(0)
    with Unit(kind, "2.0", cosimulates=False) as unit:
        unit.begin({}, integrates=True)
        states = [name[4:-1] for name in unit.variables if name.startswith("der(")]
        unknown = [f"der({name})" for name in states]
        known = [n for n, v in unit.variables.items() if v.variability == "tunable"]
        for name in states:
            unit.set(name, unit.get(name)[0] + 0.3 * draws.standard_normal())
        unit.fmu.enterEventMode()
        unit.fmu.newDiscreteStates()
        unit.fmu.enterContinuousTimeMode()
        for name in [*known, *states]:
            x, exact, errors = (
                unit.get(name)[0],
                unit.derivatives(unknown, name),
                list[np.ndarray](),
            )
            for step in (1e-4, 1e-5, 1e-6):
                h, ends = step * max(abs(x), 0.1), list[np.ndarray]()
                for sign in (1, -1):
                    unit.set(name, x + sign * h)
                    ends.append(unit.get(*unknown))
                unit.set(name, x)
                errors.append(np.abs(exact - (ends[0] - ends[1]) / (2 * h)))
            scale = np.abs(exact) + 1e-2 * np.max(np.abs(exact)) + 1e-6
            assert np.all(np.min(errors, axis=0) <= 1e-6 * scale), name


@needs_importer
@slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_state_that_was_kept_gives_the_same_run_again(version: str) -> None:
    with Unit("sine", version, cosimulates=True) as unit:
        unit.begin({})
        get, put = (
            (unit.fmu.getFMUstate, unit.fmu.setFMUstate)
            if unit.is_2
            else (unit.fmu.getFMUState, unit.fmu.setFMUState)
        )
        for i in range(200):
            unit.step(i)
        kept = get()
        runs = list[np.ndarray]()
        for _ in range(2):
            put(kept)
            for i in range(200, 400):
                unit.step(i)
            runs.append(unit.get(*OUTPUTS))
        np.testing.assert_array_equal(runs[0], runs[1])
        assert np.all(np.isfinite(runs[0]))


@needs_importer
@slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_failure_has_its_reason(version: str, capfd: pytest.CaptureFixture[str]) -> None:
    with Unit("sine", version, cosimulates=True) as unit:
        unit.begin({})
        unit.set("mass.F_Coulomb", np.nan)
        with pytest.raises(Exception, match="failed with status"):
            unit.step(0)
    assert "The state or its derivative is not finite" in capfd.readouterr().out


class Odd(Ball):
    """A machine with an operation that C does not have."""

    def flow(self, t, y, mode, args):
        return super().flow(t, y, mode, args) + 0.0 * jax.scipy.special.gammaln(y[0] + 2.0)


@slow
def test_an_operation_that_c_does_not_have_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="The machine uses `lgamma` of JAX, for which frictax has"):
        to_fmu(Odd(), tmp_path / "odd.fmu", T, platforms=())
    assert not any(tmp_path.iterdir())


@slow
def test_the_file_is_the_same_again_and_contains_its_sources() -> None:
    first, second = (pack_fmu(code_of("ball"), "3.0", "Ball", {}) for _ in range(2))
    assert first == second
    with zipfile.ZipFile(io.BytesIO(first)) as zipped:
        assert zipped.namelist() == [
            "modelDescription.xml", "sources/Ball.c", "sources/buildDescription.xml"
        ]  # fmt: skip


def test_names_and_units_are_those_of_fmi() -> None:
    assert structured_name("guide.mu_pos[0, 1]") == "guide.mu_pos[1,2]"
    assert structured_name("my part.block") == "my_u0020part.block_"
    assert base_units("N.m.s/rad") == {"kg": "1", "m": "2", "s": "-1", "rad": "-1"}


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`version` must be '2.0' or '3.0', got '1.0'"):
        to_fmu(HELD, tmp_path / "a.fmu", version="1.0")
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        to_fmu(HELD, tmp_path / "missing" / "a.fmu")
    (tmp_path / "a.fmu").write_text("mine")
    with pytest.raises(FileExistsError, match="Give overwrite=True to replace it"):
        to_fmu(HELD, tmp_path / "a.fmu")
    with pytest.raises(ValueError, match="`platforms` must be of .*, got 'amiga'"):
        to_fmu(HELD, tmp_path / "b.fmu", platforms=["amiga"])
    with pytest.raises(ValueError, match="must be one of held, linear, got 'cubic'"):
        to_fmu(HELD, tmp_path / "b.fmu", inputs={"drive.f": "cubic"})
    with pytest.raises(KeyError, match="This mechanism has no part 'motor'"):
        to_fmu(HELD, tmp_path / "b.fmu", inputs={"motor.f": "held"})
    with pytest.raises(TypeError, match="has no option 'platform'. Did you mean"):
        to_fmu(HELD, tmp_path / "b.fmu", platform=[])  # type: ignore[call-arg]
    assert [path.name for path in tmp_path.iterdir()] == ["a.fmu"]


def test_without_a_compiler_there_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.warns(
        UserWarning, match="No C compiler was found, so the FMU contains its sources"
    ):
        assert find_compilers(None) == {}
    with pytest.raises(ValueError, match="No compiler was found for the platform 'x86_64-windows'"):
        find_compilers(["x86_64-windows"])
