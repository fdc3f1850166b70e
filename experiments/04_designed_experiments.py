"""How much more accurate are estimates from a designed experiment, and is the prediction right?

For three machines an excitation is designed within their limits. Its predicted errors are compared
with those of the best chirp and of the best staircase of speeds within the same limits. Then 200
records of the design are simulated with noise and fitted:

* a block under a force, with measured speed;
* a rotor behind a gear, with Stribeck friction and measured angle;
* a slide under a position controller, with designed reference, measured position and force.

EMPS, a ball-screw axis under its controller, and XL330, a servo with a pendulum, have real records.
How much smaller are the errors of designs with the same duration, travel, speed, force and noise?

Run: python experiments/04_designed_experiments.py
(some minutes; prints the tables. `--draws 0` omits the fits. `--over 0.15` designs for machines
whose parameters scatter by 15 %. EMPS needs its record: `frictax data fetch emps`.)
"""

import argparse
import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import frictax as fx
from frictax.parameters import Positive, Real, Scalar, parameter


def block() -> dict[str, Any]:
    law = fx.Stribeck(F_prop=0.2, F_Coulomb=1.0, F_Stribeck=0.4, fexp=5.0)
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=law, peak=1.1),
        drive=fx.Force("mass", 0.0),
    )
    return {
        "machine": machine,
        "outputs": {"mass.v": 2e-3},
        "free": ["mass.m", "friction.f_pos", "friction.peak"],
        "duration": 10.0,
        "rate": 200.0,
        "limits": fx.Limits(force=3.0, travel=0.2, band=(0.1, 3.0)),
    }


def rotor() -> dict[str, Any]:
    law = fx.Stribeck(F_prop=0.02, F_Coulomb=0.05, F_Stribeck=0.02, fexp=2.0)
    machine = fx.Mechanism(
        motor=fx.Inertia(J=4e-5),
        wheel=fx.Inertia(J=2e-2),
        gear=fx.IdealGear("motor", "wheel", ratio=20.0),
        bearing=fx.BearingFriction("wheel", tau_pos=law, peak=1.15),
        drive=fx.Torque("motor", 0.0),
    )
    return {
        "machine": machine,
        "outputs": {"wheel.phi": 5e-4},
        "free": ["wheel.J", "bearing.tau_pos", "bearing.peak"],
        "duration": 10.0,
        "rate": 200.0,
        "limits": fx.Limits(force=0.015, travel=2.0, band=(0.1, 3.0), body="wheel"),
    }


def slide() -> dict[str, Any]:
    machine = fx.Mechanism(
        mass=fx.Mass(m=2.0),
        friction=fx.SupportFriction(
            "mass",
            f_pos=fx.Stribeck(F_prop=4.0, F_Coulomb=3.0, F_Stribeck=1.5, fexp=20.0),
            peak=1.05,
        ),
        drive=fx.PositionController("mass", 0.0, kp=30.0, kv=80.0),
    )
    return {
        "machine": machine,
        "outputs": {"mass.s": 5e-5, "drive.f": 0.1},
        "free": ["mass.m", "friction.f_pos", "friction.peak"],
        "duration": 10.0,
        "rate": 250.0,
        "limits": fx.Limits(travel=0.1, speed=0.3, force=30.0, band=(0.1, 4.0)),
    }


def emps() -> tuple[dict[str, Any], fx.Record] | None:
    """Return arguments of `fx.design` for the identified EMPS, and its record (None if missing)."""
    try:
        folder = fx.data.path("emps")
    except OSError:
        return None
    recorded = fx.Record.from_mat(
        folder / "DATA_EMPS.mat",
        time="t",
        inputs={"drive": fx.Column("qg", unit="m")},
        outputs={"mass.s": fx.Column("qm", unit="m")},
    )
    recorded = recorded.decimate(4)
    machine = fx.Mechanism(
        mass=fx.Mass(m=93.3),
        friction=fx.SupportFriction(
            "mass",
            f_pos=fx.Coulomb(F_Coulomb=21.11, F_prop=157.48),
            f_neg=fx.Coulomb(F_Coulomb=21.60, F_prop=231.88),
        ),
        drive=fx.PositionController("mass", 0.0, kp=160.18, kv=243.45, k=35.15065),
    )
    motion = fx.Mechanism(
        **{
            **dict(machine.named_parts()),
            "drive": fx.PositionController(
                "mass", fx.Sampled(recorded.t, recorded.inputs["drive"]), 160.18, 243.45, 35.15065
            ),
        }
    )
    run = fx.simulate(motion, recorded.t)
    limits = fx.Limits(
        travel=float(np.ptp(run["mass"].s)),
        speed=float(np.max(np.abs(run["mass"].v))),
        force=float(np.max(np.abs(run["drive"].f))),
        band=(0.05, 3.0),
    )
    asked = {
        "machine": machine,
        "outputs": {"drive.f": 2.2},  # N, rms of the residuals of a fit
        "free": ["mass.m", "friction.f_pos", "friction.f_neg"],
        "duration": float(recorded.duration),
        "rate": float(recorded.rate),
        "limits": limits,
        "beside": recorded,
    }
    return asked, recorded


class Pendulum(fx.AbstractAxis):
    """A pendulum on a servo: J*dw/dt = motor - mgl*sin(phi) - friction."""

    friction: fx.SupportFriction
    J: Scalar = parameter(Positive(), "kg.m2", default=6.952e-3)
    mgl: Scalar = parameter(Positive(), "N.m", fit=False, default=0.4807)
    phi: Scalar = parameter(Real(), "rad", fit=False, default=0.0)

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return self.J

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return args["motor"] - self.mgl * jnp.sin(y[0])

    def states(self) -> tuple[str, ...]:
        return ("phi", "w")

    def start(self, t: Any) -> Any:
        return self.begin(t, jnp.stack([self.phi, 0.0 * self.phi]))


def xl330() -> tuple[dict[str, Any], np.ndarray]:
    """Return arguments of `fx.design` for the servo of identification/xl330_pendulum, and relative
    standard errors of J, F_Coulomb and F_prop from three decays.
    """
    friction = fx.SupportFriction("joint", f_pos=fx.Coulomb(F_Coulomb=14.01e-3, F_prop=5.25e-3))
    machine, rate, sd = Pendulum(friction), 285.0, 6e-3
    free = ["J", "friction.f_pos"]
    t = np.arange(1138) / rate

    def decay(phi: float) -> np.ndarray:
        let_go = fx.parameters.replace(machine, {"phi": phi})
        return np.asarray(
            fx.information(let_go, t, {"phi": sd}, free=free, inputs={"motor": np.zeros(t.size)})
        )

    told = sum(decay(phi) for phi in (-0.342, -0.591, -0.657))
    values = np.array([6.952e-3, 14.01e-3, 5.25e-3])
    asked = {
        "machine": machine,
        "outputs": {"phi": sd},
        "drive": "motor",
        "free": free,
        "duration": 12.0,
        "rate": rate,
        "limits": fx.Limits(travel=2 * 0.657, force=0.3, band=(0.1, 4.0)),
    }
    order = [p.path for p in fx.parameters.select(machine, free)]
    values = np.array([float(fx.parameters.get(machine, path)) for path in order])
    return asked, np.sqrt(np.diag(np.linalg.inv(told))) / values


@dataclasses.dataclass
class Row:
    name: str
    design: fx.Design
    check: Any
    seconds: float

    def __str__(self) -> str:
        others = "  ".join(
            f"{says.split(',')[0]}: {100 * self.design.worst(says):.3g} %"
            for says in self.design.beside
        )
        line = f"{self.name}: worst error {100 * self.design.worst():.2g} %  ({others})"
        line += f"  {self.seconds:.0f} s"
        if self.check is None:
            return line
        spread, covered = self.check.spread, 100 * self.check.covered
        return (
            f"{line}\n  {self.check.draws} fits: {self.check.ended}; spread"
            f" over predicted {spread.min():.2f} to {spread.max():.2f}; intervals hold in"
            f" {covered.mean():.1f} % ({covered.min():.0f} to {covered.max():.0f} %)"
        )


def designed(name: str, asked: dict[str, Any], draws: int, **options: Any) -> Row:
    began = time.perf_counter()
    given = {**asked, **options}
    machine, outputs = given.pop("machine"), given.pop("outputs")
    design = fx.design(machine, outputs, **given)
    seconds = time.perf_counter() - began
    return Row(name, design, design.check(draws) if draws else None, seconds)


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--draws", type=int, default=200, help="records that are fitted, or 0")
    parser.add_argument("--steps", type=int, default=600, help="of the search")
    parser.add_argument("--starts", type=int, default=8)
    parser.add_argument("--only", nargs="*", default=["block", "rotor", "slide", "emps", "xl330"])
    parser.add_argument("--over", type=float, help="relative scatter of the machines to be served")
    given = parser.parse_args(arguments)
    search = {"steps": given.steps, "starts": given.starts, "over": given.over}
    rows = []
    for made in (block, rotor, slide):
        if made.__name__ in given.only:
            rows.append(designed(made.__name__, made(), given.draws, **search))
            print(rows[-1], rows[-1].design, sep="\n", flush=True)
    if "emps" in given.only:
        found = emps()
        if found is None:
            print("EMPS: not here; `frictax data fetch emps` brings it.")
        else:
            rows.append(designed("EMPS", found[0], 0, **search))
            print(rows[-1], rows[-1].design, sep="\n", flush=True)
    if "xl330" in given.only:
        asked, recorded = xl330()
        rows.append(designed("XL330", asked, 0, **search))
        print(rows[-1], rows[-1].design, sep="\n")
        print("three decays of 4 s:", ", ".join(f"{100 * e:.3g} %" for e in recorded))
    return rows


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    fx.fast_loops()
    main()
