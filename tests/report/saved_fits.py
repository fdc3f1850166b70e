"""Fits of several kinds, to be saved.

`saved/axis.fit` was written by the first version that could: what is saved stays readable. Before
0.1.0 is released it may be written anew: ``python tests/report/saved_fits.py``.
"""

from pathlib import Path
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import frictax as fx
from frictax.parameters import AtLeast, CheckedModule, Positive, Real, Scalar, parameter

T = np.linspace(0.0, 2.0, 201)
U = 3.0 * np.sin(3.0 * T) + 1.5 * np.sin(2.3 * T)
NOISE = 0.01 * np.random.default_rng(0).standard_normal((4, T.size))
DYNAMICS = fx.InverseDynamics(cutoff=10.0, v_min=0.05)  # simulates nothing, so compiles little
SAVED = Path(__file__).with_name("saved") / "axis.fit"


class Drag(CheckedModule, fx.AbstractLaw):
    F: Scalar = parameter(AtLeast(0.0), "N")
    c: Scalar = parameter(AtLeast(0.0), "N.s2/m2")

    def __call__(self, v: Any) -> Any:
        return self.F + self.c * v**2


class Pendulum(fx.AbstractAxis):
    friction: fx.SupportFriction
    J: Scalar = parameter(Positive(), "kg.m2")
    phi: Scalar = parameter(Real(), "rad", default=0.0)

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return self.J

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return -0.48 * jnp.sin(y[0])

    def states(self) -> Any:
        return ("phi", "w")

    def start(self, t: Any) -> Any:
        return self.begin(t, jnp.stack([self.phi, 0.0]))


def pull(t: Any) -> Any:
    return 0.3 * jnp.cos(2.0 * t)


def block(law: Any = None, **parts: Any) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(1.0, 0.2) if law is None else law),
        drive=fx.Force("mass", fx.Sampled(T, U)),
        **parts,
    )


def record(machine: Any, outputs: str = "mass.v", i: int = 0, **options: Any) -> fx.Record:
    run = fx.simulate(machine, T)
    part, _, variable = outputs.partition(".")
    size = 1e3 if options.get("units") else 1.0  # in millimetres
    seen = {outputs: size * (np.asarray(getattr(run[part], variable)) + NOISE[i])}
    return fx.Record(T, {"drive": U}, seen, **options)


def huber_sweep() -> Any:
    v = np.concatenate([np.linspace(-8.0, -0.5, 9), np.linspace(0.5, 8.0, 9), [0.0, 0.0]])
    f = np.sign(v) * (6.0 + 0.2 * np.abs(v)) + NOISE[0, : v.size] - 0.3
    f[-2:] = 7.0, -7.5
    sweep = fx.Sweep(
        v * 1e3, f, breakaway=v == 0, velocity_unit="mm/s", force_unit="N", citation="§ 3, “me”"
    )
    found = fx.fit(
        fx.Coulomb, sweep, f_neg=fx.Coulomb, offset=0.0, peak=1.1, loss=fx.Huber(), level=0.9
    )
    return found, ()


def own_law_and_functions() -> Any:
    """Two records, each with its own speed at the start; a law, a function and a lambda."""
    own = {"law": Drag(F=1.0, c=0.3), "wind": fx.Force("mass", pull)}
    truth = block(own["law"], wind=own["wind"], tide=fx.Force("mass", lambda t: -0.2 * t))
    runs = {"a/b": record(truth, name="first"), "..": record(truth, i=1, units={"mass.v": "mm/s"})}
    found = fx.fit(
        truth, runs, free=["friction.f_pos", "inputs.drive.offset"], own={"mass.v": [0.1, 0.2]}
    )
    return found, [Drag, truth, pull]


def own_code_without_runs() -> fx.FitResult:
    """The same law, function and lambda, by the forces of a motion that is written down."""
    law, v = Drag(F=1.0, c=0.3), np.sin(3.0 * T)
    machine = block(law, wind=fx.Force("mass", pull), tide=fx.Force("mass", lambda t: -0.2 * t))
    needed = 3.0 * np.cos(3.0 * T) + np.sign(v) * (1.0 + 0.3 * v**2) + NOISE[0]
    given = needed - np.asarray(pull(T)) + 0.2 * T
    seen = fx.Record(T, {"drive": given}, {"mass.v": v}, name="first")
    return fx.fit(machine, seen, free=["friction.f_pos"], objective=DYNAMICS)


def windows_with_priors() -> Any:
    truth, free = block(fx.Table([[0, 1.0], [1, 1.2], [3, 1.9]])), ["mass.m", "friction.f_pos"]
    seen = record(block(), "mass.s", sd={"mass.s": 0.01}, hold=True)
    priors = [fx.Normal("mass.m", 1.0, 0.1), fx.Smooth("friction.f_pos.f", 0.5)]
    windows = fx.Windows(length=0.4, free_starts=True)
    return fx.fit(
        truth, seen, free=free, objective=windows, priors=priors, bounds={"mass.m": (0.5, 2.0)}
    ), ()


def windows_read_from_a_filter() -> Any:
    truth = block()
    return fx.fit(
        truth, record(truth, "mass.s"), free=["friction.f_pos"], objective=fx.Windows(length=0.5)
    ), ()


def inverse_dynamics() -> Any:
    """Speed and force are given as they are: another objective, and nothing is simulated."""
    truth = block()
    return fx.fit(
        truth, record(truth), free=["mass.m", "friction.f_pos"], objective=DYNAMICS, level=0.99
    ), ()


def clutch_and_brake() -> Any:
    """Torques of a motion that is written down."""
    machine = fx.Mechanism(
        J1=fx.Inertia(J=1.0),
        J2=fx.Inertia(J=1.0),
        clutch=fx.Clutch("J1", "J2", mu_pos=[[0, 0.5]], fn_max=20.0, f_normalized=fx.Sine(f=0.2)),
        held=fx.Brake("J2", fn_max=2.0, f_normalized=fx.Step(height=0.1, startTime=0.7)),
        drive=fx.Torque("J1", 0.0),
        load=fx.Torque("J2", 0.0),
    )
    w1, w2 = np.sin(5.0 * T), 0.5 * np.sin(3.0 * T)
    slip = 10.0 * np.sin(0.4 * np.pi * T) * np.sign(w1 - w2)
    rub = 0.1 * np.sign(w2) * (T >= 0.7)
    torques = {"drive": 5.0 * np.cos(5.0 * T) + slip, "load": 1.5 * np.cos(3.0 * T) - slip + rub}
    speeds = fx.Record(T, torques, {"J1.w": w1 + 0.01 * NOISE[0], "J2.w": w2 + 0.01 * NOISE[1]})
    free = ["clutch.mu_pos.f", "held.mu_pos.f"]
    return fx.fit(machine, speeds, free=free, objective=DYNAMICS), ()


def closed_loop() -> Any:
    servo = fx.PositionController("mass", fx.Sampled(T, U), kp=20.0, kv=40.0)
    machine = eqx.tree_at(lambda m: m.parts, block(), (*block().parts[:2], servo))
    loop = fx.ClosedLoop({"drive": fx.PositionController("mass", 0.0, kp=20.0, kv=40.0)})
    return fx.fit(
        block(), record(machine, "mass.s"), free=["friction.f_pos.F_Coulomb"], objective=loop
    ), ()


def machine_of_ones_own() -> Any:
    friction = fx.SupportFriction("joint", f_pos=fx.Coulomb(F_Coulomb=0.02), peak=1.3)
    pendulum = Pendulum(friction, J=0.0067, phi=0.6)
    phi = fx.walk(pendulum, *pendulum.start(0.0), ts=jnp.asarray(T)).ys[:, 0]
    seen = fx.Record(T, outputs={"phi": phi + 0.1 * NOISE[0]})
    return fx.fit(pendulum, seen, free=["friction.f_pos.F_Coulomb", "phi"]), [Pendulum]


def other_engine_and_method() -> Any:
    engine, method = fx.Adaptive(solver=diffrax.Dopri5()), fx.Optax(optax.adam(0.01), steps=5)
    how: Any = {"engine": engine, "method": method, "objective": DYNAMICS}
    return fx.fit(block(), record(block()), free=["mass.m"], **how), [method]


def tied_and_known_by_factors() -> tuple[fx.FitResult, Any]:
    twice = block(second=fx.SupportFriction("mass", f_pos=fx.Coulomb(1.0, 0.2)))
    tied: Any = {"second.f_pos.F_Coulomb": "friction.f_pos.F_Coulomb"}
    tied["second.f_pos.F_prop"] = "0.5 * friction.f_pos.F_prop"
    free = ["mass.m", "friction.f_pos"]
    more = {"tied": tied, "log_scale": ["friction.f_pos.F_prop"]}
    return fx.fit(twice, record(block()), free=free, objective=DYNAMICS, **more), ()


KINDS = [
    huber_sweep,
    tied_and_known_by_factors,
    own_law_and_functions,
    windows_with_priors,
    windows_read_from_a_filter,
    inverse_dynamics,
    clutch_and_brake,
    closed_loop,
    machine_of_ones_own,
    other_engine_and_method,
]


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    t = np.linspace(0.0, 1.0, 41)
    axis = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(1.0)),
        drive=fx.Force("mass", 3.0),
    )
    seen = fx.Record(t, outputs={"mass.v": 2.0 * t + 0.01 * np.sin(40.0 * t)}, name="axis")
    SAVED.parent.mkdir(exist_ok=True)
    found = fx.fit(axis, seen, free=["friction.f_pos.F_Coulomb"])
    print(found.save(SAVED, overwrite=True), found.values, found.intervals)
