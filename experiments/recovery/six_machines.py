"""Six machines, each with one term that the fitted machine lacks.

A run lasts 10 s at 200 Hz under six sines with random phases. Each term is so large that, without
noise, the residuals of the best fit without the term are about the standard deviation of the
sensor's noise. On windows, this best fit has a free initial state in each window.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from imperfections import coloured

import frictax as fx
from frictax.mechanism.forces import AbstractSource

T = np.arange(2001) / 200.0
FINE = fx.OnSamples(substeps=4)  # true machines have four times finer steps than fits
FREQUENCY = np.array([0.3, 0.55, 0.9, 1.3, 1.9, 2.6])
SIZE = np.array([2.5, 2.2, 1.8, 1.5, 1.2, 1.0])
TERMS = ("drag", "offset", "ripple", "delay", "other way", "Stribeck", "series stiffness")
NOISES = ("white", "steps", "AR .9")
FAR = 0.6  # share of a body's mass behind a stiffness in series
CARRIAGE = 0.9  # the same share for the carriage between stops
PERIOD = 1 / 7.3  # period of a ripple, divided by the travel
PHASE = 0.7  # [rad] phase of a ripple


@dataclasses.dataclass(frozen=True)
class Has:
    """Terms of the true machine that the fitted machine lacks. Defaults add no term."""

    drag: float = 0.0
    ripple: tuple[float, float] = (0.0, 1.0)  # amplitude and period
    soft: float = 0.0  # inverse of a stiffness in series
    law: Any = None  # friction law instead of `Rig.law`
    f_neg: Any = None  # law for backward motion


@dataclasses.dataclass(frozen=True)
class Rig:
    """One machine.

    - `sizes`: term -> size; "Stribeck" and "other way" are relative to the dry friction.
    - `law`: true friction; `vmax`: approximate highest speed; `travel`: approximate travel.
    - `moved(has, u)`: returns the output under the drive `u`; `guess`: the start machine.
    - `body`, `drive`, `output`: names. `noise`: sd of the sensor. `scale`: amplitude of the drive.
    """

    name: str
    sizes: dict[str, float]
    law: fx.Coulomb
    vmax: float
    travel: float
    moved: Callable[[Has, np.ndarray], np.ndarray]
    guess: Any
    free: tuple[str, ...]
    body: str
    drive: str
    output: str
    noise: float
    scale: float
    objective: Any
    other: Any


def _pull(body: str, has: Has, rotational: bool = False) -> dict[str, Any]:
    """Return parts for the drag and the ripple of `has`, which act on `body`."""
    size, period = has.ripple
    parts: dict[str, Any] = {}
    if has.drag and rotational:
        parts["drag"] = fx.QuadraticSpeedDependentTorque(body, -has.drag)
    elif has.drag:
        parts["drag"] = fx.QuadraticSpeedDependentForce(body, -has.drag)
    if size:
        f_cos, f_sin = size * np.sin(PHASE), size * np.cos(PHASE)
        parts["ripple"] = fx.PeriodicPositionDependentForce(body, f_cos, f_sin, period=period)
    return parts


def _output(machine: fx.Mechanism, name: str) -> np.ndarray:
    body, _, variable = name.partition(".")
    return np.asarray(getattr(fx.simulate(machine, T, FINE)[body], variable))


def _body(
    name: str, inertia: float, has: Has, rotational: bool = False
) -> tuple[dict[str, Any], str]:
    """Return one body, or two with a stiffness in series, and the name of the one with friction."""
    one: Any = fx.Inertia if rotational else fx.Mass
    if not has.soft:
        return {name: one(inertia)}, name
    c = 1.0 / has.soft
    d = 0.04 * np.sqrt(c * inertia * FAR * (1 - FAR))
    joint = fx.RotationalSpringDamper if rotational else fx.SpringDamper
    near, far = one((1 - FAR) * inertia), one(FAR * inertia)
    return {name: near, "far": far, "shaft": joint(name, "far", c=c, d=d)}, "far"


def sled() -> Rig:
    """A mass on a spring."""

    def machine(m: float, c: float, law: Any, force: Any = 0.0, has: Has | None = None) -> Any:
        has = has or Has()
        bodies, rubs = _body("mass", m, has)
        return fx.Mechanism(
            **bodies,
            wall=fx.Fixed(),
            spring=fx.Spring("wall", rubs, c=c),
            friction=fx.SupportFriction(rubs, f_pos=law, f_neg=has.f_neg),
            drive=fx.Force("mass", force),
            **_pull("mass", has),
        )

    right = fx.Coulomb(F_Coulomb=1.0, F_prop=0.5)
    return Rig(
        "sled",
        {
            "drag": 0.033, "offset": 0.01, "ripple": 0.03, "delay": 9e-4, "other way": 0.021,
            "Stribeck": 0.07, "series stiffness": 2e-4,
        },
        right,
        1.5,
        0.8,
        lambda has, u: _output(
            machine(1.0, 20.0, has.law or right, fx.Sampled(T, u), has), "mass.s"
        ),
        machine(1.1, 18.0, fx.Coulomb(F_Coulomb=0.9, F_prop=0.6)),
        ("mass.m", "spring.c", "friction.f_pos.F_Coulomb", "friction.f_pos.F_prop"),
        "mass",
        "drive",
        "mass.s",
        5e-4,
        1.0,
        fx.FreeRun(),
        fx.Windows(0.5, cutoff=20.0),
    )  # fmt: skip


def rotor() -> Rig:
    """A motor with its bearing."""

    def machine(J: float, law: Any, torque: Any = 0.0, has: Has | None = None) -> Any:
        has = has or Has()
        bodies, rubs = _body("rotor", J, has, rotational=True)
        return fx.Mechanism(
            **bodies,
            bearing=fx.BearingFriction(rubs, tau_pos=law, tau_neg=has.f_neg),
            drive=fx.Torque("rotor", torque),
            **_pull("rotor", has, rotational=True),
        )

    right = fx.Coulomb(F_Coulomb=0.05, F_prop=0.01)
    return Rig(
        "rotor",
        {
            "drag": 6.7e-6, "offset": 3.2e-4, "ripple": 9.3e-4, "delay": 6.5e-4, "other way": 0.014,
            "Stribeck": 0.057, "series stiffness": 0.016,
        },
        right,
        25.0,
        19.0,
        lambda has, u: _output(machine(2e-3, has.law or right, fx.Sampled(T, u), has), "rotor.phi"),
        machine(2.3e-3, fx.Coulomb(F_Coulomb=0.057, F_prop=0.0085)),
        ("rotor.J", "bearing.tau_pos.F_Coulomb", "bearing.tau_pos.F_prop"),
        "rotor",
        "drive",
        "rotor.phi",
        1.5e-3,
        0.06,
        fx.Windows(0.5, cutoff=20.0),
        fx.FreeRun(),
    )  # fmt: skip


def pendulum() -> Rig:
    """An arm with a user-defined part, its weight."""

    def machine(J: float, law: Any, torque: Any = 0.0, has: Has | None = None) -> Any:
        has = has or Has()
        bodies, rubs = _body("arm", J, has, rotational=True)
        return fx.Mechanism(
            **bodies,
            joint=fx.BearingFriction(rubs, tau_pos=law, tau_neg=has.f_neg),
            drive=fx.Torque("arm", torque),
            weight=_Weight(rubs, 0.48),
            **_pull("arm", has, rotational=True),
        )

    right = fx.Coulomb(F_Coulomb=0.02, F_prop=0.004)
    return Rig(
        "pendulum",
        {
            "drag": 5e-4, "offset": 6.2e-4, "ripple": 2.6e-3, "delay": 1.8e-3, "other way": 0.063,
            "Stribeck": 0.32, "series stiffness": 0.02,
        },
        right,
        7.0,
        2.1,
        lambda has, u: _output(
            machine(0.0067, has.law or right, fx.Sampled(T, u), has), "arm.phi"
        ),
        machine(0.0076, fx.Coulomb(F_Coulomb=0.023, F_prop=0.0034)),
        ("arm.J", "joint.tau_pos.F_Coulomb", "joint.tau_pos.F_prop"),
        "arm",
        "drive",
        "arm.phi",
        1e-3,
        0.03,
        fx.Windows(0.5, cutoff=20.0),
        fx.FreeRun(),
    )  # fmt: skip


class _Weight(AbstractSource):
    """The torque of gravity."""

    rotational: ClassVar[bool] = True
    mgl: float = eqx.field(static=True)

    def elastic(self, s: Any) -> Any:
        return -self.mgl * jnp.sin(s)

    def energy(self, s: Any) -> Any:
        return -self.mgl * jnp.cos(s)


def stops() -> Rig:
    """A carriage between hard stops."""

    def machine(
        m: float, dry: float, viscous: float, force: Any = 0.0, has: Has | None = None
    ) -> Any:
        has = has or Has()
        law = has.law or fx.Stribeck(F_Coulomb=dry, F_prop=viscous, F_Stribeck=0.0, fexp=1.0)
        parts: dict[str, Any] = {
            "mass": fx.MassWithStopAndFriction(
                m=m * (CARRIAGE if has.soft else 1.0), smin=-0.4, smax=0.4,
                F_prop=float(law.F_prop), F_Coulomb=float(law.F_Coulomb),
                F_Stribeck=float(getattr(law, "F_Stribeck", 0.0)),
                fexp=float(getattr(law, "fexp", 1.0)), f_neg=has.f_neg,
            )
        }  # fmt: skip
        if has.soft:  # a belt drives the carriage with its stops
            c = 1.0 / has.soft
            d = 0.04 * np.sqrt(c * m * CARRIAGE * (1 - CARRIAGE))
            light = fx.Mass(m=(1 - CARRIAGE) * m)
            parts = {"mass": light, "far": parts["mass"]}
            parts["belt"] = fx.SpringDamper("mass", "far", c=c, d=d)
        return fx.Mechanism(**parts, drive=fx.Force("mass", force), **_pull("mass", has))

    return Rig(
        "stops",
        {
            "drag": 0.8, "offset": 0.014, "ripple": 0.035, "delay": 3e-3, "other way": 0.015,
            "Stribeck": 0.12, "series stiffness": 2.5e-5,
        },
        fx.Coulomb(F_Coulomb=1.0, F_prop=0.5),
        1.5,
        0.8,
        lambda has, u: _output(machine(1.0, 1.0, 0.5, fx.Sampled(T, u), has), "mass.s"),
        machine(1.1, 0.9, 0.57),
        ("mass.m", "mass.F_Coulomb", "mass.F_prop"),
        "mass",
        "drive",
        "mass.s",
        2e-3,
        0.6,
        fx.FreeRun(),
        fx.Windows(0.5, cutoff=20.0),
    )  # fmt: skip


def servo() -> Rig:
    """An axis with a position controller. The recorded input is the reference."""

    def machine(m: float, law: Any, reference: Any = 0.0, has: Has | None = None) -> Any:
        has = has or Has()
        bodies, rubs = _body("mass", m, has)
        return fx.Mechanism(
            **bodies,
            friction=fx.SupportFriction(rubs, f_pos=law, f_neg=has.f_neg),
            drive=fx.PositionController("mass", reference, kp=12.0, kv=25.0),
            **_pull("mass", has),
        )

    right = fx.Coulomb(F_Coulomb=3.0, F_prop=4.0)
    return Rig(
        "servo",
        {
            "drag": 0.3, "offset": 3e-4, "ripple": 0.4, "delay": 7e-4, "other way": 0.06,
            "Stribeck": 0.5, "series stiffness": 6e-5,
        },
        right,
        0.8,
        0.5,
        lambda has, u: _output(machine(2.0, has.law or right, fx.Sampled(T, u), has), "mass.s"),
        machine(2.3, fx.Coulomb(F_Coulomb=3.4, F_prop=3.4)),
        ("mass.m", "friction.f_pos.F_Coulomb", "friction.f_pos.F_prop"),
        "mass",
        "drive",
        "mass.s",
        3e-4,
        0.07,
        fx.FreeRun(),
        fx.Windows(0.5, cutoff=20.0),
    )  # fmt: skip


def gear() -> Rig:
    """A motor that turns a load through a gear. Friction acts on the load."""

    def machine(J: float, law: Any, torque: Any = 0.0, has: Has | None = None) -> Any:
        has = has or Has()
        motor, drives = _body("motor", 1.0, has, rotational=True)
        return fx.Mechanism(
            **motor,
            load=fx.Inertia(J=J),
            gear=fx.IdealGear(drives, "load", ratio=3.0),
            bearing=fx.BearingFriction("load", tau_pos=law, tau_neg=has.f_neg),
            drive=fx.Torque("motor", torque),
            **_pull("load", has, rotational=True),
        )

    right = fx.Coulomb(F_Coulomb=4.0, F_prop=3.0)
    return Rig(
        "gear",
        {
            "drag": 1.2, "offset": 0.018, "ripple": 0.15, "delay": 3e-3, "other way": 0.014,
            "Stribeck": 0.15, "series stiffness": 8e-4,
        },
        right,
        1.5,
        2.0,
        lambda has, u: _output(machine(4.0, has.law or right, fx.Sampled(T, u), has), "motor.phi"),
        machine(4.6, fx.Coulomb(F_Coulomb=4.6, F_prop=2.6)),
        ("load.J", "bearing.tau_pos.F_Coulomb", "bearing.tau_pos.F_prop"),
        "load",
        "drive",
        "motor.phi",
        5e-3,
        2.0,
        fx.FreeRun(),
        fx.Windows(0.5, cutoff=20.0),
    )  # fmt: skip


RIGS: dict[str, Callable[[], Rig]] = {
    build.__name__: build for build in (sled, rotor, pendulum, stops, servo, gear)
}


def with_term(rig: Rig, term: str, rng: np.random.Generator, size: float) -> Has:
    """Return the additional `term`. A Stribeck term has a random width, 4 to 25 % of `vmax`."""
    dry, viscous = float(rig.law.F_Coulomb), float(rig.law.F_prop)
    width = rig.vmax * np.exp(rng.uniform(np.log(0.04), np.log(0.25)))
    if term == "drag":
        return Has(drag=size)
    if term == "ripple":
        return Has(ripple=(size, PERIOD * rig.travel))
    if term == "other way":
        return Has(f_neg=fx.Coulomb(F_Coulomb=(1 - size) * dry, F_prop=viscous))
    if term == "Stribeck":
        dip = {"F_Stribeck": size * dry, "fexp": 1.0 / width}
        return Has(law=fx.Stribeck(F_Coulomb=dry, F_prop=viscous, **dip))
    return Has(soft=size * (term == "series stiffness"))


def recorded(rig: Rig, term: str, noise: str, seed: int, size: float | None = None) -> fx.Record:
    """Return the record of a run with an additional `term` and `noise`; "" means none."""
    rng = np.random.default_rng([seed, len(rig.name), *map(ord, rig.name + term)])
    size = rig.sizes.get(term, 0.0) if size is None else size
    turn = rng.uniform(0.0, 2 * np.pi, FREQUENCY.size)
    u = rig.scale * SIZE @ np.sin(2 * np.pi * FREQUENCY[:, None] * T + turn[:, None])
    if rig.name == "servo":  # The reference starts at the axis' position.
        u = (u - u[0]) * np.minimum(T, 1.0)
    has = with_term(rig, term, rng, size)
    acting = np.interp(T - size, T, u) if term == "delay" else u
    acting = acting + size if term == "offset" else acting
    y = rig.moved(has, acting)
    rng = np.random.default_rng([seed, *map(ord, rig.name + noise)])
    if noise == "steps":
        step = rig.noise * np.sqrt(12.0) / 2
        y = step * np.round((y + 0.05 * step * rng.standard_normal(T.size)) / step)
    elif noise == "white":
        y = y + rig.noise * rng.standard_normal(T.size)
    elif noise:
        y = y + rig.noise * coloured(T.size, np.array([1.0, -0.9]), rng)
    return fx.Record(T, {rig.drive: u}, {rig.output: y}, hold=False, name="run")


def fitted(rig: Rig, record: fx.Record, other: bool = False) -> fx.FitResult:
    """Fit the machine without an additional term; `other`: with the objective `rig.other`."""
    objective = rig.other if other else rig.objective
    return fx.fit(rig.guess, record, free=list(rig.free), objective=objective)
