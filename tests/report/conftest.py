"""A fitted sweep, a comparison and a run, made once."""

from pathlib import Path

import jax.numpy as jnp
import pytest

import frictax as fx
from frictax.analysis import Comparison, compare
from frictax.fitting import Found, fit, starting_law
from frictax.measurements import Sweep
from frictax.trajectory import Trajectory


@pytest.fixture(scope="session")
def sweep(root: Path) -> Sweep:
    return Sweep.from_csv(
        root / "data" / "screw_drives" / "sweep.csv",
        velocity="omega",
        force="torque",
        where={"drive": 1},
        name="drive 1",
    )


@pytest.fixture(scope="session")
def found(sweep: Sweep) -> Found:
    """Drive 1, each direction with its own law."""
    forward = starting_law(fx.Stribeck, sweep.positive(), exponent=2.0)
    return fit(forward, sweep, f_neg=starting_law(fx.Stribeck, sweep.negative(), exponent=1.0))


@pytest.fixture(scope="session")
def comparison(sweep: Sweep) -> Comparison:
    forward = sweep.positive()
    return compare(
        forward,
        {
            "Coulomb": starting_law(fx.Coulomb, forward),
            "a $curve$": starting_law(fx.Stribeck, forward, exponent=2.0),
        },
    )


@pytest.fixture(scope="session")
def run() -> Trajectory:
    """A block that sticks, slides forward, sticks, slides backward, ..."""
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction(
            "mass", f_pos=fx.Coulomb(F_Coulomb=5.0), f_neg=fx.Coulomb(F_Coulomb=7.0), peak=1.1
        ),
        drive=fx.Force("mass", fx.Sine(amplitude=12.0, f=0.25)),
    )
    return fx.simulate(block, ts=jnp.linspace(0.0, 8.0, 201))
