"""A fit as C and JavaScript: its own predictions, sensors and intervals included."""

import copy
import dataclasses
import functools
from pathlib import Path

import numpy as np
import pytest

import frictax as fx
from frictax.export.code.machine import MachineCode, NumberTree, _machine_of
from frictax.export.code.texts import c_text, javascript_text, structured_text, to_c
from frictax.fitting.problem.problem import predictions
from frictax.laws import Coulomb

from .structured_text import translated
from .test_code import needs_gcc, needs_node, run_in_c, run_in_node, values_of

T = np.linspace(0.0, 4.0, 801)  # the times at which `run_in_c` runs
PULL = 9.0 * np.sin(2.5 * T) + 3.0 * np.sin(7.0 * T)


def cart(force: fx.AbstractSignal) -> fx.Mechanism:
    return with_law(Coulomb(F_Coulomb=4.0, F_prop=1.5), force)


def with_law(law: fx.AbstractLaw, force: fx.AbstractSignal) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=2.0),
        friction=fx.SupportFriction("mass", f_pos=law),
        drive=fx.Force("mass", force),
    )


@functools.cache
def fitted() -> fx.FitResult:
    """A fit whose sensors have gain, offset, drift and delay; the input has a gain and a delay."""
    run = fx.simulate(cart(fx.Sampled(T, PULL)), ts=T)
    noise = np.random.default_rng(3).normal(0.0, 1e-4, T.size)
    record = fx.Record(
        T, {"drive.f": PULL / 1.1}, {"mass.s": 1.2 * np.asarray(run["mass"].s) + noise}
    )
    instruments = {
        "inputs.drive.f": fx.Instrument(gain=1.1, offset=0.01, drift=-0.001, delay=0.0023),
        "outputs.mass.s": fx.Instrument(gain=1.2, offset=0.03, drift=0.002, delay=0.0041),
    }
    return fx.fit(
        cart(fx.Constant(0.0)), record, free=["friction.f_pos.F_Coulomb"], instruments=instruments
    )


@functools.cache
def code_of(**inputs: str) -> MachineCode:
    return MachineCode(
        fitted(),
        None,
        fx.OnSamples(),
        {n.replace("_", "."): h for n, h in inputs.items()},
        ["mass.s"],
    )


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("given", [{}, {"drive_f": "linear"}])
def test_c_of_a_fit_is_its_prediction(tmp_path: Path, given: dict[str, str]) -> None:
    found, code = fitted(), code_of(**given)
    expected = np.asarray(predictions(found.problem, found.x, 0))[:, 0]
    text = c_text(code)
    inputs = np.asarray(found.records["record"].inputs["drive.f"])[:, None] if given else None
    run = run_in_c(text, tmp_path, 1, inputs=inputs)
    late = np.round(0.0041 / (T[1] - T[0]))
    # The fit has the measured values where the sensor shows times before the run.
    np.testing.assert_allclose(
        run.outputs[int(late) + 1 :, 0], expected[int(late) + 1 :], rtol=0, atol=1e-6
    )
    assert run.failure == 0


@pytest.mark.slow
def test_intervals_of_a_fit_are_min_and_max() -> None:
    found, code = fitted(), code_of()
    estimate = found["friction.f_pos.F_Coulomb"]
    number = next(n for n in code.numbers if n.name == estimate.path)
    assert (number.lower, number.upper) == (estimate.lower, estimate.upper)
    assert f', "{estimate.path}", "N", ' in c_text(code)
    assert values_of(c_text(code)).size == len(code.numbers)


def with_delay(code: MachineCode, channel: str, delay: float) -> MachineCode:
    """The same machine with another delay of a sensor [s]."""
    changed, at = copy.copy(code), code.instruments[channel] + 3
    changed.numbers = list(code.numbers)
    changed.numbers[at] = dataclasses.replace(code.numbers[at], value=delay)
    return changed


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("given", [{}, {"drive_f": "linear"}, {"drive_f": "held"}])
def test_structured_text_of_a_fit_is_its_c(tmp_path: Path, given: dict[str, str]) -> None:
    code = code_of(**given)
    for delay in (0.0041, 0.0327):  # less than a sample, and several samples
        code = with_delay(code, "outputs.mass.s", delay)
        u = np.asarray(fitted().records["record"].inputs["drive.f"]) if given else np.zeros(T.size)
        run = run_in_c(c_text(code), tmp_path, 1, inputs=u[:, None])
        cycle = translated(structured_text(code))["FX_Machine"]()
        for i, dt in enumerate([*np.diff(T).tolist(), 0.0]):
            words = {"drive_f": u[i]} if given else {}
            if "linear" in given.values():
                words["drive_f_end"] = u[min(i + 1, T.size - 1)]
            shown = cycle(dt=dt, **words)["mass_s"]
            assert shown == pytest.approx(run.outputs[i, 0], rel=0, abs=1e-11), i


@pytest.mark.slow
def test_structured_text_of_a_fit_says_what_it_leaves_out() -> None:
    text = structured_text(with_delay(code_of(), "outputs.mass.s", -0.0041))
    assert "a delay of -0.0041 s in outputs.mass.s, which this code leaves out" in text


@needs_gcc
@needs_node
@pytest.mark.slow
def test_javascript_of_a_fit_is_its_c(tmp_path: Path) -> None:
    code = code_of()
    run = run_in_node(javascript_text(code), tmp_path, 1)
    np.testing.assert_allclose(
        run.outputs, run_in_c(c_text(code), tmp_path, 1).outputs, rtol=0, atol=1e-12
    )


@needs_gcc
@pytest.mark.slow
def test_an_input_keeps_its_sensor_under_both_of_its_names(tmp_path: Path) -> None:
    """The gain was dropped without a message where the record calls the input "drive"."""
    run = fx.simulate(cart(fx.Sampled(T, PULL)), ts=T)
    record = fx.Record(T, {"drive": PULL / 1.1}, {"mass.s": np.asarray(run["mass"].s)})
    found = fx.fit(
        cart(fx.Constant(0.0)),
        record,
        free=["friction.f_pos.F_Coulomb"],
        instruments={"inputs.drive": fx.Instrument(gain=1.1, offset=0.01)},
        objective=fx.InverseDynamics(20.0),
    )
    runs = []
    for name in ("", "drive", "drive.f"):
        inputs = {name: "linear"} if name else {}
        code = MachineCode(found, None, fx.OnSamples(), inputs, ["mass.s"])
        folder = tmp_path / f"as {name}"  # a library is loaded once for each path
        folder.mkdir()
        given = (PULL / 1.1)[:, None] if name else None
        runs.append(run_in_c(c_text(code), folder, 1, inputs=given).outputs)
    for run in runs[1:]:
        np.testing.assert_allclose(run, runs[0], rtol=0, atol=1e-11)


def test_intervals_of_table_entries_and_of_separate_values_are_min_and_max() -> None:
    t, records = T[:101], []
    for name, force in (("cold", 4.0), ("warm", 3.0)):
        law = fx.Table([[0.0, force], [3.0, force + 1.0]])
        machine = with_law(law, fx.Sampled(t, 2 * PULL[:101]))
        v = np.asarray(fx.simulate(machine, t, fx.OnSamples())["mass"].v)
        noise = np.random.default_rng(0).normal(0.0, 1e-4, t.size)
        records.append(fx.Record(t, {"drive.f": 2 * PULL[:101]}, {"mass.v": v + noise}, name=name))
    model = with_law(fx.Table([[0.0, 3.5], [3.0, 4.5]]), fx.Constant(0.0))
    by_force = fx.InverseDynamics(20.0, at_samples=True)
    found = fx.fit(model, records, free=["mass.m"], own=["friction.f_pos.f"], objective=by_force)
    expected = {
        e.name.removesuffix("@cold"): (e.lower, e.upper)
        for e in found.estimates
        if not e.name.endswith("@warm")
    }
    intervals = _machine_of(found, None).intervals
    assert set(expected) == {"mass.m", "friction.f_pos.f[0]", "friction.f_pos.f[1]"}
    assert {name: intervals[name] for name in expected} == expected
    names = [number.name for number in NumberTree(_machine_of(found, None).machine).numbers]
    assert set(expected) <= set(names)


def test_a_sweep_is_no_machine() -> None:
    v = np.linspace(0.1, 1.0, 12)
    found = fx.fit(Coulomb(F_Coulomb=1.0), fx.Sweep(v, 2.0 + v))
    with pytest.raises(ValueError, match=r"is a law and not a machine. .*to_feedforward"):
        to_c(found)
