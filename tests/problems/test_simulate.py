"""`frictax simulate`: the machine of a problem beside its record, before any fit."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import frictax as fx
from frictax.analysis.replay.free_run import preview
from frictax.cli import app
from frictax.problems import read, simulate
from frictax.report.plots import motion_plots

TRUTH = ("m = 1.2", "m = 2.0"), ("F_Coulomb = 0.8", "F_Coulomb = 1.0")


def frictax(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), prog_name="frictax")


@pytest.mark.slow
def test_a_machine_with_the_values_of_the_truth_leaves_the_noise_and_its_events_are_counted(
    problem: Callable[..., Path],
) -> None:
    (made,) = simulate(read(problem(*TRUTH)))
    assert made.rms["mass.s"] < 3e-4  # 20 um of noise, and a start that is read from it
    assert made.units["mass.s"] == "m"
    block = fx.Mechanism(
        mass=fx.Mass(m=2.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
        drive=fx.Force("mass", fx.Sampled(made.record.t, made.record.inputs["drive"])),
    )
    run = fx.simulate(block, made.record.t, fx.OnSamples())
    assert abs(sum(made.events["friction"].values()) - int(run.events.count)) <= 1
    measured, simulated = made.final["mass.s"]
    assert simulated == pytest.approx(float(run["mass"].s[-1]), abs=1e-3)
    assert measured == made.record.outputs["mass.s"][-1]


def test_a_wrong_machine_is_seen_before_any_fit(problem: Callable[..., Path]) -> None:
    (made,) = simulate(read(problem()))
    assert made.rms["mass.s"] > 0.1
    assert "rms of the difference" in str(made)


@pytest.mark.slow
def test_the_command_prints_a_summary_and_writes_a_page_that_it_does_not_overwrite(
    problem: Callable[..., Path],
) -> None:
    folder = problem()
    done = frictax("simulate", str(folder))
    assert done.exit_code == 0, done.output
    page = (folder / "simulation.html").read_text(encoding="utf-8")
    assert "A block: before any fit" in page
    assert "free run of the machine with its start values" in page
    assert "mass.s: at the end" in done.stdout
    assert "stuck to forward" in done.stdout
    again = frictax("simulate", str(folder))
    assert again.exit_code == 1
    assert "simulation.html exists. Give --overwrite to replace it" in again.stderr
    assert frictax("simulate", str(folder), "-f").exit_code == 0
    (folder / "mine.html").write_text("mine")
    other = frictax("simulate", str(folder), "--out", str(folder / "mine.html"), "-f")
    assert "is not a report of frictax" in other.stderr
    assert (folder / "mine.html").read_text() == "mine"


@pytest.mark.slow
def test_a_machine_in_closed_loop_follows_its_reference() -> None:
    t = np.linspace(0.0, 2.0, 401)
    controller = fx.PositionController("mass", s_ref=0.0, kp=20.0, kv=30.0)
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
        drive=fx.Force("mass", 0.0),
    )
    reference = 0.1 * np.sin(3 * t)
    late = 0.1 * np.sin(3 * (t - 0.05))
    record = fx.Record(t, {"drive": reference}, {"mass.s": late}, units={"drive": "m"})
    made = preview(block, record, fx.ClosedLoop({"drive": controller}))
    assert made.rms["mass.s"] < 0.02


def test_a_sweep_has_nothing_to_simulate(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("v,F\n1,2\n2,2.5\n3,3\n")
    (tmp_path / "problem.toml").write_text(
        'title = "s"\n[sweep]\nfile = "s.csv"\nvelocity = "v"\nforce = "F"\n'
    )
    done = frictax("simulate", str(tmp_path))
    assert done.exit_code == 1
    assert "is a table of steady speeds, which cannot be simulated" in done.stderr


def test_a_channel_that_the_machine_lacks_is_named(problem: Callable[..., Path]) -> None:
    folder = problem(('outputs."mass.s"', 'outputs."body.s"'))
    done = frictax("simulate", str(folder))
    assert done.exit_code == 1
    assert "body" in done.stderr
    assert "Traceback" not in done.output


@pytest.mark.slow
def test_friction_of_a_slide_and_torque_of_a_bearing_have_separate_axes() -> None:
    t = np.linspace(0.0, 1.0, 101)
    machine = fx.Mechanism(
        mass=fx.Mass(m=2.0),
        rotor=fx.Inertia(J=1e-4),
        guide=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
        bearing=fx.BearingFriction("rotor", tau_pos=fx.Coulomb(F_Coulomb=1e-3)),
        push=fx.Force("mass", 0.0),
        turn=fx.Torque("rotor", 0.0),
    )
    inputs = {"push": 3 * np.sin(4 * t), "turn": 2e-3 * np.sin(5 * t)}
    seen = fx.Record(t, inputs, {"mass.v": np.sin(t), "rotor.w": np.cos(t)}, units={"turn": "N.m"})
    run = preview(machine, seen, fx.FreeRun(measured_start=True), label="run")
    _, plot = motion_plots(seen, "run", run.motion, machine=machine)[0]
    axes = {c["name"]: c["yaxis"] for c in plot["data"] if c.get("name")}
    titles = {v["title"]["text"]: k for k, v in plot["layout"].items() if k.startswith("yaxis")}
    assert axes["guide"] == axes["push"] == titles["force [N]"].replace("axis", "")
    assert axes["bearing"] == axes["turn"] == titles["torque [mN.m]"].replace("axis", "")
