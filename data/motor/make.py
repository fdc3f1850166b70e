"""Simulate the record of a DC motor with a disc, which `frictax init --example motor` copies. The
true values of its parameters are known.

The record contains the current. The torque is the current times a known torque constant.
"""

import argparse
from pathlib import Path

import jax
import numpy as np

import frictax as fx

HERE = Path(__file__).resolve().parent
SHIPPED = HERE.parents[1] / "src/frictax/problems/starting/bundled/motor/motor.csv"
SEED = 1

TORQUE_CONSTANT = 0.0525  # N.m/A, known from the data sheet
TRUTH = {
    "rotor.J": 2.4e-5,  # kg.m2, rotor and disc
    "bearing.tau_pos.F_Coulomb": 3.6e-3,  # N.m
    "bearing.tau_pos.F_prop": 1.1e-5,  # N.m.s/rad
}
T = 2.5e-3 * np.arange(4001)  # s: 10 s at 400 Hz
STEP = 360.0 / 4096  # deg, of the encoder
NOISE = 2e-3  # A, standard deviation of the recorded current
DIGIT = 1e-4  # A, to which it is written


def current() -> np.ndarray:
    """Return the true current [A]: 0 for 0.2 s, then two sines that turn the rotor many times."""
    t = np.maximum(T - 0.2, 0.0)
    return 0.17 * np.sin(2 * np.pi * 1.3 * t) + 0.12 * np.sin(2 * np.pi * 0.37 * t)


def angle(flows: np.ndarray) -> np.ndarray:
    """Return the angle of the rotor with the current `flows` [deg]."""
    motor = fx.Mechanism(
        rotor=fx.Inertia(J=TRUTH["rotor.J"]),
        bearing=fx.BearingFriction(
            "rotor",
            tau_pos=fx.Coulomb(
                F_Coulomb=TRUTH["bearing.tau_pos.F_Coulomb"],
                F_prop=TRUTH["bearing.tau_pos.F_prop"],
            ),
        ),
        motor=fx.Torque("rotor", fx.Sampled(T, TORQUE_CONSTANT * flows)),
    )
    return np.degrees(np.asarray(fx.simulate(motor, T, fx.OnSamples(substeps=4))["rotor"].phi))


def record(seed: int, flows: np.ndarray, turned: np.ndarray) -> str:
    """Return the file of the test bench: times in ms, noisy current in A, encoder steps in deg."""
    rng = np.random.default_rng(seed)
    seen = flows + NOISE * rng.standard_normal(T.size)
    steps = np.floor(turned / STEP + rng.uniform())
    rows = zip(1e3 * T, DIGIT * np.round(seen / DIGIT) + 0.0, STEP * steps + 0.0, strict=True)
    lines = [f"{ms:.1f},{i:.4f},{deg:.3f}" for ms, i, deg in rows]
    return "\n".join(["t [ms],current [A],angle [deg]", *lines]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=SHIPPED, help="where to write the CSV")
    parser.add_argument("--seed", type=int, default=SEED, help="of noise and encoder zero")
    asked = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    flows = current()
    asked.to.write_text(record(asked.seed, flows, angle(flows)), encoding="utf-8", newline="\n")
    print(f"Written: {asked.to}")


if __name__ == "__main__":
    main()
