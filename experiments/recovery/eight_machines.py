"""The eight machines: true machine, fitted machine, and motion of each.

A run lasts 25 s at 100 Hz under a sum of two sines. Start values are wrong by 12 to 18 %.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import frictax as fx
from frictax.parameters import Positive, Real, Scalar, parameter

T = np.linspace(0.0, 25.0, 2501)
FINE = fx.OnSamples(substeps=4)  # true machines have four times finer steps than fits
ROWS = 200  # rows of the sweep, one speed each
Tone = tuple[float, float]  # amplitude and frequency [Hz] of a sine
KINDS = ("exact", "missing", "wrong")  # fitted structure right, without a term, or wrong


@dataclasses.dataclass(frozen=True)
class Taken:
    """One record: times `t` [s] (row numbers of a sweep), inputs and outputs by name."""

    t: np.ndarray
    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Case:
    """One machine of the comparison.

    - `truth`: fitted parameter -> true value; `guess`: the start machine (a law for the sweep).
    - `taken(kind, turn)`: returns the noise-free record of one of `KINDS`; `turn` (2,): phases of
      the two sines [rad].
    - `objective`: objective of the fit; None for the sweep. `noise`: standard deviation of the
      sensor noise, divided by the rms of the output. `period`: of the slow sine [s; rows].
    - `missing`, `wrong`: texts on the difference between the true and the fitted machine.
    """

    name: str
    truth: dict[str, float]
    guess: Any
    taken: Callable[[str, np.ndarray], Taken]
    objective: Any
    noise: float
    period: float
    missing: str
    wrong: str

    def data(self, taken: Taken) -> fx.Record | fx.Sweep:
        """Return the record as `fx.Record` or `fx.Sweep`."""
        if self.objective is None:
            v = taken.inputs["speed"]
            return fx.Sweep(v, taken.outputs["force"], velocity_unit="m/s", force_unit="N")
        return fx.Record(taken.t, taken.inputs, taken.outputs, hold=False, name="run")


class Axis(fx.AbstractAxis):
    """An inertia under a drive torque, gravity and a ripple with four periods per turn."""

    friction: fx.SupportFriction
    J: Scalar = parameter(Positive(), "kg.m2")
    mgl: Scalar = parameter(Real(), "N.m", default=0.0, fit=False)
    ripple: Scalar = parameter(Real(), "N.m", default=0.0, fit=False)

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return self.J

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return args["drive"] - self.mgl * jnp.sin(y[0]) - self.ripple * jnp.sin(4.0 * y[0])

    def states(self) -> tuple[str, ...]:
        return ("phi", "w")

    def start(self, t: Any) -> Any:
        return self.begin(t, [0.0, 0.0])


def sines(first: Tone, second: Tone, turn: np.ndarray, t: np.ndarray = T) -> np.ndarray:
    """Return a sum of two sines, each with amplitude, frequency [Hz] and phase `turn` [rad]."""
    both = zip((first, second), turn, strict=True)
    return np.sum([a * np.sin(2 * np.pi * f * t + p) for (a, f), p in both], axis=0)


class Drag(fx.AbstractLaw):
    """Dry friction plus terms proportional to the speed and to the square of the speed."""

    dry: float = eqx.field(static=True)
    viscous: float = eqx.field(static=True)
    square: float = eqx.field(static=True)

    def __call__(self, v: Any) -> Any:
        return self.dry + self.viscous * v + self.square * v**2

    @property
    def is_smooth(self) -> bool:
        return True


def bump(law: fx.Coulomb, size: float, fexp: float) -> fx.Stribeck:
    """Return `law` with a Stribeck term that increases friction at rest by the share `size`."""
    dry = float(law.F_Coulomb)
    return fx.Stribeck(F_Coulomb=dry, F_prop=float(law.F_prop), F_Stribeck=size * dry, fexp=fexp)


def run(machine: fx.Mechanism, outputs: tuple[str, ...]) -> dict[str, np.ndarray]:
    trajectory = fx.simulate(machine, T, FINE)
    pairs = (name.split(".") for name in outputs)
    return {f"{a}.{b}": np.asarray(getattr(trajectory[a], b)) for a, b in pairs}


def run_axis(axis: Axis, u: np.ndarray) -> Taken:
    return Taken(T, {"drive": u}, {"phi": np.asarray(_angle(axis, jnp.asarray(u)))})


@eqx.filter_jit
def _angle(axis: Axis, u: jax.Array) -> jax.Array:
    system = fx.Driven(axis, drive=fx.Sampled(T, u))
    return fx.walk(system, *system.start(jnp.asarray(0.0)), jnp.asarray(T), options=FINE).ys[:, 0]


# -- the eight


def sliding() -> Case:
    def machine(m: float, law: Any, force: Any = 0.0) -> fx.Mechanism:
        return fx.Mechanism(
            mass=fx.Mass(m=m),
            friction=fx.SupportFriction("mass", f_pos=law),
            drive=fx.Force("mass", force),
        )

    right = fx.Coulomb(F_Coulomb=1.0, F_prop=0.5)
    laws = {
        "exact": right,
        "missing": Drag(1.0, 0.5, 0.3),
        "wrong": bump(right, 0.4, 5.0),
    }

    def taken(kind: str, turn: np.ndarray) -> Taken:
        u = sines((3.0, 0.31), (2.0, 0.83), turn)
        moved = machine(1.0, laws[kind], fx.Sampled(T, u))
        return Taken(T, {"drive": u}, run(moved, ("mass.v",)))

    return Case(
        "sliding",
        {"mass.m": 1.0, "friction.f_pos.F_Coulomb": 1.0, "friction.f_pos.F_prop": 0.5},
        machine(1.15, fx.Coulomb(F_Coulomb=1.15, F_prop=0.42)),
        taken,
        fx.FreeRun(),
        0.01,
        1 / 0.31,
        "drag with the square of the speed",
        "40 % more friction at rest (Stribeck)",
    )


def turning() -> Case:
    law = fx.Coulomb(F_Coulomb=0.05, F_prop=0.01)

    def taken(kind: str, turn: np.ndarray) -> Taken:
        u = sines((0.15, 0.31), (0.20, 0.7), turn)
        other = {"f_neg": fx.Coulomb(F_Coulomb=0.065, F_prop=0.01)} if kind == "wrong" else {}
        axis = Axis(
            fx.SupportFriction("rotor", f_pos=law, **other),
            2e-3,
            ripple=0.02 * (kind == "missing"),
        )
        moved = run_axis(axis, u)
        return dataclasses.replace(moved, outputs={"rotor.phi": moved.outputs["phi"]})

    guess = fx.Mechanism(
        rotor=fx.Inertia(J=2.3e-3),
        bearing=fx.BearingFriction("rotor", tau_pos=fx.Coulomb(F_Coulomb=0.057, F_prop=0.0115)),
        drive=fx.Torque("rotor", 0.0),
    )
    return Case(
        "turning",
        {"rotor.J": 2e-3, "bearing.tau_pos.F_Coulomb": 0.05, "bearing.tau_pos.F_prop": 0.01},
        guess,
        taken,
        fx.Windows(0.5),
        1e-4,
        1 / 0.31,
        "a torque that ripples with the angle",
        "30 % more dry friction one way",
    )


def stops() -> Case:
    def machine(
        dry: float, viscous: float, m: float, force: Any = 0.0, f_neg: Any = None, spring: float = 0
    ) -> fx.Mechanism:
        cable = {"wall": fx.Fixed(), "cable": fx.Spring("wall", "mass", c=spring)}
        return fx.Mechanism(
            mass=fx.MassWithStopAndFriction(
                m=m, smin=-0.4, smax=0.4, F_prop=viscous, F_Coulomb=dry, F_Stribeck=0.0, fexp=1.0,
                f_neg=f_neg,
            ),
            drive=fx.Force("mass", force),
            **(cable if spring else {}),
        )  # fmt: skip

    def taken(kind: str, turn: np.ndarray) -> Taken:
        u = sines((2.2, 0.31), (1.6, 0.83), turn)
        one_way = fx.Coulomb(F_Coulomb=1.3, F_prop=0.5) if kind == "wrong" else None
        moved = machine(1.0, 0.5, 1.0, fx.Sampled(T, u), one_way, 0.8 * (kind == "missing"))
        return Taken(T, {"drive": u}, run(moved, ("mass.s",)))

    return Case(
        "stops",
        {"mass.m": 1.0, "mass.F_Coulomb": 1.0, "mass.F_prop": 0.5},
        machine(1.13, 0.57, 0.88),
        taken,
        fx.FreeRun(),
        0.01,
        1 / 0.31,
        "the spring of a cable",
        "30 % more dry friction one way",
    )


def clutch() -> Case:
    def machine(mu: Any, J2: float, torque: Any = 0.0, drag: float = 0.0) -> fx.Mechanism:
        bearing = fx.BearingFriction("J2", tau_pos=fx.Coulomb(F_Coulomb=0.0, F_prop=drag))
        return fx.Mechanism(
            J1=fx.Inertia(J=1.0),
            J2=fx.Inertia(J=J2),
            clutch=fx.Clutch(
                "J1", "J2", mu_pos=mu, fn_max=10.0, f_normalized=fx.Sine(0.25, f=0.23, offset=0.5)
            ),
            drive=fx.Torque("J1", torque),
            load=fx.BearingFriction("J2", tau_pos=fx.Coulomb(F_Coulomb=0.6, F_prop=0.3)),
            **({"drag": bearing} if drag else {}),
        )

    right = fx.Coulomb(F_Coulomb=0.3, F_prop=0.02)

    def taken(kind: str, turn: np.ndarray) -> Taken:
        u = sines((4.0, 0.31), (4.0, 0.83), turn)
        mu = bump(right, 0.3, 3.0) if kind == "wrong" else right
        moved = machine(mu, 0.6, fx.Sampled(T, u), 0.1 * (kind == "missing"))
        return Taken(T, {"drive": u}, run(moved, ("J2.w",)))

    return Case(
        "clutch",
        {"J2.J": 0.6, "clutch.mu_pos.F_Coulomb": 0.3, "clutch.mu_pos.F_prop": 0.02},
        machine(fx.Coulomb(F_Coulomb=0.34, F_prop=0.017), 0.7),
        taken,
        fx.FreeRun(),
        0.01,
        1 / 0.31,
        "viscous drag of the driven side",
        "30 % more friction at small slip (Stribeck)",
    )


def pendulum() -> Case:
    right = fx.Coulomb(F_Coulomb=0.02, F_prop=0.004)
    laws = {
        "exact": right,
        "missing": Drag(0.02, 0.004, 0.0006),
        "wrong": bump(right, 0.5, 1.0),
    }

    def hinge(law: Any) -> fx.SupportFriction:
        return fx.SupportFriction("joint", f_pos=law)

    def taken(kind: str, turn: np.ndarray) -> Taken:
        u = sines((0.25, 0.31), (0.15, 0.83), turn)
        return run_axis(Axis(hinge(laws[kind]), 0.0067, mgl=0.48), u)

    return Case(
        "pendulum",
        {"J": 0.0067, "friction.f_pos.F_Coulomb": 0.02, "friction.f_pos.F_prop": 0.004},
        Axis(hinge(fx.Coulomb(F_Coulomb=0.023, F_prop=0.0034)), 0.0076, mgl=0.48),
        taken,
        fx.Windows(0.5),
        1e-3,
        1 / 0.31,
        "drag with the square of the speed",
        "50 % more friction at rest (Stribeck)",
    )


def servo() -> Case:
    kp, kv = 12.0, 25.0
    laws = {
        "exact": fx.Coulomb(F_Coulomb=3.0, F_prop=4.0),
        "missing": Drag(3.0, 4.0, 8.0),
        "wrong": fx.Coulomb(F_Coulomb=3.0, F_prop=4.0),
    }

    def belt(far: float) -> dict[str, Any]:
        return {"table": fx.Mass(m=far), "belt": fx.SpringDamper("mass", "table", c=300.0, d=0.5)}

    def taken(kind: str, turn: np.ndarray) -> Taken:
        often = np.linspace(0.0, T[-1], 4 * T.size - 3)  # 400 Hz, for small corners between samples
        reference = sines((0.25, 0.31), (0.08, 0.83), turn, often)
        reference = (reference - reference[0]) * np.minimum(often, 1.0)  # starts at rest
        far = 0.6 * (kind == "wrong")  # [kg] mass behind an elastic belt
        axis = fx.Mechanism(
            mass=fx.Mass(m=2.0 - far),
            friction=fx.SupportFriction("mass", f_pos=laws[kind]),
            drive=fx.PositionController("mass", fx.Sampled(often, reference), kp=kp, kv=kv),
            **(belt(far) if far else {}),
        )
        moved = run(axis, ("mass.s", "mass.v"))
        force = kv * (kp * (reference[::4] - moved["mass.s"]) - moved["mass.v"])
        return Taken(T, {"drive": force}, {"mass.s": moved["mass.s"]})

    return Case(
        "servo",
        {"mass.m": 2.0, "friction.f_pos.F_Coulomb": 3.0, "friction.f_pos.F_prop": 4.0},
        fx.Mechanism(
            mass=fx.Mass(m=2.3),
            friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=3.4, F_prop=3.4)),
            drive=fx.Force("mass", 0.0),
        ),
        taken,
        fx.Windows(0.5),
        1e-3,
        1 / 0.31,
        "drag with the square of the speed",
        "a third of the mass behind an elastic belt",
    )


def sweep() -> Case:
    truth = {"F_prop": 2.0, "F_Coulomb": 7.0, "F_Stribeck": 4.0, "fexp": 10.0}
    law = fx.Stribeck(**truth)

    def taken(kind: str, turn: np.ndarray) -> Taken:
        most = 1.5 * (1.0 + 0.05 * turn[0])  # highest speed: 1.5 m/s, or random up to 2 m/s
        v = np.geomspace(0.01, most, ROWS // 2)
        v = np.concatenate([-v[::-1], v])
        force = np.sign(v) * np.asarray(law(jnp.abs(v)))
        if kind == "missing":
            force = force + 0.8 * np.sign(v) * v**2
        if kind == "wrong":
            force = np.where(v < 0, 1.15 * force, force)
        return Taken(np.arange(float(ROWS)), {"speed": v}, {"force": force})

    return Case(
        "sweep",
        truth,
        fx.Stribeck(F_prop=2.3, F_Coulomb=6.0, F_Stribeck=4.6, fexp=8.5),
        taken,
        None,
        0.01,
        ROWS / 5,
        "drag with the square of the speed",
        "15 % more friction one way",
    )


def gear() -> Case:
    def machine(losses: list[list[float]], J: float, torque: Any = 0.0) -> fx.Mechanism:
        return fx.Mechanism(
            Inertia1=fx.Inertia(J=1.0),
            Inertia2=fx.Inertia(J=J),
            gear=fx.LossyGear("Inertia1", "Inertia2", ratio=2.0, lossTable=losses),
            drive=fx.Torque("Inertia1", torque),
            load=fx.Torque("Inertia2", fx.Sine(amplitude=6.0, f=0.19, phase=1.0)),
        )

    losses = {
        "exact": [[0.0, 0.85, 0.85, 0.5, 0.5]],
        "missing": [[0.0, 0.85, 0.85, 0.5, 0.5], [20.0, 0.85, 0.85, 2.5, 2.5]],
        "wrong": [[0.0, 0.85, 0.7, 0.5, 0.5]],
    }

    def taken(kind: str, turn: np.ndarray) -> Taken:
        u = sines((6.0, 0.31), (8.0, 0.83), turn)
        moved = machine(losses[kind], 1.5, fx.Sampled(T, u))
        return Taken(T, {"drive": u}, run(moved, ("Inertia1.w",)))

    return Case(
        "gear",
        {"Inertia2.J": 1.5, "gear.eta_mf1": 0.85, "gear.tau_bf1": 0.5},
        machine([[0.0, 0.75, 0.85, 0.42, 0.5]], 1.7),
        taken,
        fx.FreeRun(),
        0.01,
        1 / 0.31,
        "bearing losses that grow with the speed",
        "the efficiency backward is 0.7, not 0.85",
    )


CASES: dict[str, Callable[[], Case]] = {
    build.__name__: build
    for build in (sliding, turning, stops, clutch, pendulum, servo, sweep, gear)
}
