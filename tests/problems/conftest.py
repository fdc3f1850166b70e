"""A small problem: a block pushed to and fro over dry friction; the record of a motor; a user at
the terminal.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.cli import init_command
from motor_records import current, moved

PROBLEM = """
title = "A block"
citation = "nobody, 2026"

[records.run]
file = "run.csv"
time = "t"
inputs.drive = { column = "F", unit = "N" }
outputs."mass.s" = { column = "s", unit = "mm" }

[machine.mass]
kind = "Mass"
m = 1.2

[machine.friction]
kind = "SupportFriction"
body = "mass"
f_pos = { kind = "Coulomb", F_Coulomb = 0.8 }
peak = 1.0

[machine.drive]
kind = "Force"
body = "mass"
f = 0.0

[fit]
free = ["mass.m", "friction.f_pos.F_Coulomb"]
objective = { kind = "InverseDynamics", cutoff = 20.0 }

[uncertainty]
errors = "HAC"

[validation]
scores = [{ kind = "FreeRun", measured_start = true }]
"""


@pytest.fixture(scope="session")
def run_csv() -> str:
    """Two kilograms and 1 N of friction, with noise, as a table of t [s], F [N], s [mm]."""
    t = np.linspace(0.0, 4.0, 401)
    force = 3.0 * np.sin(2.2 * t)
    block = fx.Mechanism(
        mass=fx.Mass(m=2.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
        drive=fx.Force("mass", fx.Sampled(jnp.asarray(t), jnp.asarray(force))),
    )
    s = 1e3 * np.asarray(
        fx.simulate(block, jnp.asarray(t))["mass"].s
    ) + 0.02 * np.random.default_rng(1).standard_normal(t.size)
    rows = [f"{a:.6f},{b:.8f},{c:.6f}" for a, b, c in zip(t, force, s, strict=True)]
    return "\n".join(["t,F,s", *rows]) + "\n"


@pytest.fixture
def problem(tmp_path: Path, run_csv: str) -> Callable[..., Path]:
    """Writes the problem, with texts replaced, into a folder of its own and returns the folder."""

    def write(*changes: tuple[str, str], text: str = PROBLEM) -> Path:
        folder = tmp_path / "machine"
        folder.mkdir(exist_ok=True)
        (folder / "run.csv").write_text(run_csv)
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        (folder / "problem.toml").write_text(text)
        return folder

    return write


SHAPES = Path(__file__).parents[1] / "measurements" / "shapes"


@pytest.fixture
def shapes(tmp_path: Path) -> Path:
    """The files of many shapes, all of one motion, in a folder to work in."""
    shutil.copytree(SHAPES, tmp_path / "shapes")
    return tmp_path / "shapes"


@pytest.fixture
def somebody(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Somebody sits at the terminal; returns the questions that were asked."""
    monkeypatch.setattr(init_command, "_can_ask", lambda: True)
    asked, prompt = list[str](), init_command.typer.prompt

    def told(text: str, **options):
        asked.append(text)
        return prompt(text, **options)

    monkeypatch.setattr(init_command.typer, "prompt", told)
    return asked


@pytest.fixture(scope="session")
def motor() -> dict[str, np.ndarray]:
    """The run of a motor: t [s], q [rad], v [rad/s], i [A]; 0.061 N.m/A."""
    t, q, v = moved(
        6.0, 200.0, 6.5e-5, lambda v: 8e-3 + 2.2e-5 * v, lambda t, q: 0.061 * current(t)
    )
    noise = np.random.default_rng(0).standard_normal((2, t.size))
    return {"t": t, "q": q + 1e-4 * noise[0], "v": v + 1e-2 * noise[1], "i": current(t)}
