"""Each kind of machine that `frictax init` proposes: a simulated record of it goes through init and
check to an identification that finds the truth.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner, Result

import frictax as fx
from frictax.cli import app
from frictax.problems import check, identify, read

T = np.linspace(0.0, 8.0, 1001)
U = np.sin(2 * np.pi * 0.9 * T) + 0.7 * np.sin(2 * np.pi * 0.31 * T + 0.5)
NOISE = np.random.default_rng(7).standard_normal(T.size)


def frictax(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), prog_name="frictax")


def put(path: Path, **columns: np.ndarray) -> Path:
    """A CSV with these columns, whose names stand in it with __ for [ and ]."""
    names = [name.replace("__", "[") + ("]" if "__" in name else "") for name in columns]
    text = np.column_stack(list(columns.values()))
    np.savetxt(path, text, fmt="%.9g", delimiter=",", header=",".join(names), comments="")
    return path


def rotor(**extra: Any) -> fx.Mechanism:
    return fx.Mechanism(
        rotor=fx.Inertia(J=2e-4),
        bearing=fx.BearingFriction("rotor", tau_pos=fx.Coulomb(F_Coulomb=0.01, F_prop=1e-4)),
        **extra,
    )


BEARING = {"bearing.tau_pos.F_Coulomb": 0.01, "bearing.tau_pos.F_prop": 1e-4}


def a_rotor(path: Path) -> dict[str, float]:
    drive = fx.Torque("rotor", fx.Sampled(T, 0.05 * U))
    phi = fx.simulate(rotor(drive=drive), T)["rotor"].phi
    degrees = np.degrees(np.asarray(phi)) + 0.05 * NOISE
    put(path, t__ms=1e3 * T, iq__A=U, angle__deg=degrees)
    return {"rotor.J": 2e-4, **BEARING}


def an_axis(path: Path) -> dict[str, float]:
    axis = fx.Mechanism(
        mass=fx.Mass(m=12.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=9.0, F_prop=30.0)),
        drive=fx.Force("mass", fx.Sampled(T, 40.0 * U)),
    )
    s = 1e3 * np.asarray(fx.simulate(axis, T)["mass"].s) + 0.02 * NOISE
    put(path, t__s=T, force__N=40.0 * U, position__mm=s)
    return {"mass.m": 12.0, "friction.f_pos.F_Coulomb": 9.0, "friction.f_pos.F_prop": 30.0}


def a_gear(path: Path) -> dict[str, float]:
    machine = rotor(
        load=fx.Inertia(J=0.05),
        gear=fx.IdealGear("rotor", "load", ratio=20.0),
        drive=fx.Torque("rotor", fx.Sampled(T, 0.05 * U)),
    )
    phi = np.asarray(fx.simulate(machine, T)["rotor"].phi) + 1e-3 * NOISE
    put(path, t__s=T, torque__Nm=0.05 * U, angle__rad=phi)
    return {"load.J": 0.05, **BEARING}


def a_servo(path: Path) -> dict[str, float]:
    reference = 3.0 * U
    machine = rotor(
        drive=fx.PositionController("rotor", fx.Sampled(T, reference), kp=12.0, kv=0.02)
    )
    phi = np.asarray(fx.simulate(machine, T)["rotor"].phi) + 1e-3 * NOISE
    put(path, t__s=T, setpoint__rad=reference, angle__rad=phi)
    return {"rotor.J": 2e-4, **BEARING}


def a_brake(path: Path) -> dict[str, float]:
    pressed = np.clip(200.0 * np.sin(2 * np.pi * 0.5 * T), 0.0, None)
    law = fx.Coulomb(F_Coulomb=0.25, F_prop=5e-4)
    brake = {"cgeo": 0.06, "fn_max": 1.0, "f_normalized": fx.Sampled(T, pressed)}
    machine = fx.Mechanism(
        wheel=fx.Inertia(J=0.1, w=120.0), brake=fx.Brake("wheel", mu_pos=law, **brake)
    )
    w = np.asarray(fx.simulate(machine, T)["wheel"].w) + 0.02 * NOISE
    put(path, t__s=T, clamping__N=pressed, speed__rpm=w * 30 / np.pi)
    return {"brake.mu_pos.F_Coulomb": 0.25, "brake.mu_pos.F_prop": 5e-4}


class Pendulum(fx.AbstractAxis):
    """The truth of the pendulum's records."""

    friction: fx.SupportFriction

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return jnp.asarray(0.02)

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return (args or {}).get("drive", 0.0) - 0.5 * jnp.sin(y[0])

    def states(self) -> tuple[str, ...]:
        return ("phi", "w")

    def start(self, t: Any) -> Any:
        return self.begin(t, [1.2, 0.0])


def swing(drive: Any = None) -> np.ndarray:
    law = fx.Coulomb(F_Coulomb=0.015, F_prop=4e-3)
    arm = Pendulum(friction=fx.SupportFriction("arm", f_pos=law))
    system: Any = arm if drive is None else fx.Driven(arm, drive=fx.Sampled(T, drive))
    y0, mode0 = system.start(jnp.asarray(0.0))
    return np.asarray(fx.walk(system, y0, mode0, jnp.asarray(T)).ys[:, 0])


FRICTION = {"friction.f_pos.F_Coulomb": 0.015, "friction.f_pos.F_prop": 4e-3}


def a_pendulum(path: Path) -> dict[str, float]:
    put(path, t__s=T, angle__deg=np.degrees(swing()) + 0.05 * NOISE)
    return {"J": 0.02, **FRICTION}


def a_driven_pendulum(path: Path) -> dict[str, float]:
    u = 0.2 * U
    put(path, t__s=T, torque__Nm=u, angle__deg=np.degrees(swing(u)) + 0.05 * NOISE)
    return {"J": 0.02, "mgl": 0.5, **FRICTION}


def a_sweep(path: Path) -> dict[str, float]:
    rpm = np.geomspace(5.0, 2000.0, 30)
    w = rpm * np.pi / 30
    torque = 12.0 + 0.05 * w + 0.02 * NOISE[:30]
    put(path, speed__rpm=rpm, torque__mNm=torque)
    return {"F_Coulomb": 0.012, "F_prop": 5e-5}


TRUTHS: dict[str, tuple[Callable[[Path], dict[str, float]], tuple[str, ...]]] = {
    "rotor": (a_rotor, ("--torque-constant", "0.05")),
    "axis": (an_axis, ()),
    "gear": (a_gear, ("--ratio", "20", "--inertia", "2e-4")),
    "servo": (a_servo, ("--kp", "12", "--kv", "0.02")),
    "brake": (a_brake, ("--inertia", "0.1", "--radius", "0.06")),
    "pendulum": (a_pendulum, ("--machine", "pendulum", "--mgl", "0.5")),
    "driven pendulum": (a_driven_pendulum, ("--machine", "pendulum")),
    "sweep": (a_sweep, ()),
}


def begun(kind: str, tmp_path: Path) -> tuple[Path, dict[str, float]]:
    """The problem of a simulated record, as init writes it without a question; its truth."""
    make, flags = TRUTHS[kind]
    truth = make(tmp_path / "run.csv")
    done = frictax("init", str(tmp_path / "run.csv"), *flags)
    assert done.exit_code == 0, done.output
    assert f"is read as {kind.rpartition(' ')[2]}:" in done.stdout
    return tmp_path / "run", truth


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("kind", TRUTHS)
def test_a_record_of_this_kind_gives_a_problem_that_passes_the_check(
    kind: str, tmp_path: Path
) -> None:
    folder, _ = begun(kind, tmp_path)
    problem = read(folder, allow_code=True)
    check(problem)
    text = (folder / "problem.toml").read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert "frictax identify run" in text.splitlines()[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", TRUTHS)
def test_its_identification_finds_the_truth(kind: str, tmp_path: Path) -> None:
    folder, truth = begun(kind, tmp_path)
    if kind not in ("driven pendulum", "sweep"):
        # what `identify` does but for the study of what is left
        problem = read(folder, allow_code=True)
        assert isinstance(problem.data, dict)
        found = fx.fit(problem.machine, problem.data, **problem.settings())
    else:
        found = identify(folder, allow_code=True).found
    assert found.converged
    for name, value in truth.items():
        low, high = found.intervals[name]
        assert low < value < high or found.values[name] == pytest.approx(value, rel=0.02), name
        assert high - low < 3 * value, name  # viscous friction of an arm is told least
    first = next(iter(truth))
    assert found.values[first] == pytest.approx(truth[first], rel=0.03)
