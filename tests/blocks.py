"""A block pushed to and fro over friction, as a machine and as a problem file."""

from typing import Any

import frictax as fx

FREE = ["friction.f_pos.F_Coulomb"]
PROBLEM = """
title = "Blocks"

[records.first]
file = "records/b1.csv"
time = "t"
inputs.drive = { column = "F", unit = "N" }
outputs."mass.v" = { column = "v", unit = "mm/s" }

[machine.mass]
kind = "Mass"
m = 1.0

[machine.friction]
kind = "SupportFriction"
body = "mass"
f_pos = { kind = "Coulomb", F_Coulomb = 0.8 }

[machine.drive]
kind = "Force"
body = "mass"
f = 0.0

[fit]
free = ["friction.f_pos.F_Coulomb"]
"""


def block(F_Coulomb: float = 0.8, m: float = 1.0, force: Any = 0.0) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=m),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=F_Coulomb)),
        drive=fx.Force("mass", force),
    )
