"""Which law fits the sweep of a lead-screw drive, and how does a block with this law move?

Run from anywhere:  python identification/screw_drive_1/identify.py
"""

from pathlib import Path

import jax
import jax.numpy as jnp

import frictax as fx

jax.config.update("jax_enable_x64", True)
HERE = Path(__file__).resolve().parent

# The sweep has the measured steady torque at 16 speeds in each direction. A payload of 0.096 kg
# hangs from the screw.
sweep = fx.Sweep.from_csv(
    HERE.parents[1] / "data" / "screw_drives" / "sweep.csv",
    velocity="omega",
    force="torque",
    velocity_unit="rad/s",
    force_unit="N.m",
    where={"drive": 1},
    name="screw drive 1",
    citation=(
        "A. Mablekos-Alexiou, L. da Cruz, C. Bergeles, IEEE Transactions on Robotics 37(4), 2021"
    ),
)

# Choose the kind of the law for each direction.
forward, backward = fx.compare(sweep.positive()), fx.compare(sweep.negative())
print(f"Forward\n{forward}\n\nBackward\n{backward}\n")

# Fit both laws. The sweep cannot separate the weight of the payload from a Coulomb friction that
# differs between the directions. A notice of the fit reports this.
found = fx.fit(forward.best.found.law, sweep, f_neg=backward.best.found.law)
print(f"{found}\n\nFor Modelica:\n{found.to_modelica()}\n")

# Simulate a block with this friction under an alternating force. A mass of 1e-4 kg under a force
# has the equation of an inertia of 1e-4 kg.m2 under a torque, so the fitted numbers are valid.
block = fx.Mechanism(
    mass=fx.Mass(m=1e-4),
    friction=fx.SupportFriction("mass", f_pos=found.model.f_pos, f_neg=found.model.f_neg, peak=1.0),
    drive=fx.Force("mass", fx.Sine(amplitude=4.5e-3, f=0.25)),
)
run = fx.simulate(block, ts=jnp.linspace(0.0, 12.0, 1201))
print(
    f"The block sticks and slides: {int(run.events.count)} changes of mode in"
    f" {float(run.ts[-1]):g} s."
)

report = found.report(HERE / "report.html", comparison=[forward, backward], simulation=run)
print(f"The report is {report}")
