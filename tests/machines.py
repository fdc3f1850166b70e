"""The machines of the reference trajectories and of NUMERICS-style problems, as frictax writes
them.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

import frictax as fx

TIGHT = fx.Adaptive(rtol=1e-12, atol=1e-13)
REFERENCE = fx.Adaptive(rtol=1e-10, atol=1e-12)


def stick_slip(
    F_Coulomb: Any = 1.0, F_prop: Any = 0.2, F_Stribeck: Any = 0.4, fexp: Any = 5.0, peak: Any = 1.0
) -> fx.Mechanism:
    """A block of 1 kg driven by 2 sin(2 pi t) N through 39 mode changes in 10 s."""
    law = fx.Stribeck(F_Coulomb=F_Coulomb, F_prop=F_prop, F_Stribeck=F_Stribeck, fexp=fexp)
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=law, peak=peak),
        drive=fx.Force("mass", fx.Sine(amplitude=2.0, f=1.0)),
    )


def stop1() -> fx.Mechanism:
    return fx.Mechanism(
        stop1=fx.MassWithStopAndFriction(
            m=1.0, L=1.0, smin=-25, smax=25, F_prop=1.0, F_Coulomb=5.0, F_Stribeck=10.0, fexp=2.0
        ),
        drive=fx.Force("stop1.flange_a", fx.Sine(amplitude=25.0, f=0.25)),
    )


def stop2() -> fx.Mechanism:
    return fx.Mechanism(
        wall=fx.Fixed(s0=-1.75),
        spring=fx.Spring("wall", "stop2", c=500.0, s_rel0=1.0),
        stop2=fx.MassWithStopAndFriction(
            m=1.0,
            L=1.0,
            smin=-0.9,
            smax=0.9,
            F_prop=1.0,
            F_Coulomb=3.0,
            F_Stribeck=5.0,
            fexp=2.0,
            s=0.0,
            v=-5.0,
        ),
    )


def supported_mass(peak: float = 1.0) -> fx.Mechanism:
    v = np.linspace(0.0, 12.0, 50)
    table = np.stack([v, 5.0 + v + 10.0 * np.exp(-2.0 * v)], axis=1)
    return fx.Mechanism(
        mass=fx.Mass(m=1.0, L=1.0),
        supportFriction=fx.SupportFriction("mass", f_pos=table, peak=peak),
        drive=fx.Force("mass", fx.Sine(amplitude=25.0, f=0.25)),
    )


def translational_friction() -> fx.Mechanism:
    """The three separate systems of Modelica.Mechanics.Translational.Examples.Friction
    in one run.
    """
    first, second, third = stop1(), stop2(), supported_mass()
    return fx.Mechanism(
        stop1=first["stop1"],
        drive1=first["drive"],
        wall=second["wall"],
        spring=second["spring"],
        stop2=second["stop2"],
        mass=third["mass"],
        supportFriction=third["supportFriction"],
        drive=third["drive"],
    )


def brake(peak: float = 1.0) -> fx.Mechanism:
    """Modelica.Mechanics.Translational.Examples.Brake: one brake grounded, one on a
    fixed flange.
    """
    step = fx.Step(height=2.0, startTime=0.1)
    return fx.Mechanism(
        mass1=fx.Mass(m=1.0, v=1.0),
        brake=fx.Brake("mass1", fn_max=1.0, f_normalized=step, peak=peak),
        fixed=fx.Fixed(),
        mass2=fx.Mass(m=1.0, v=1.0),
        brake1=fx.Brake("mass2", fn_max=1.0, f_normalized=step, support="fixed", peak=peak),
    )


def spring_pendulum(fricScale: float = 20.0, smax: float = 25.0) -> fx.Mechanism:
    k = fricScale
    return fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.MassWithStopAndFriction(
            m=1.0,
            L=0.0,
            smin=-25,
            smax=smax,
            F_prop=1 / k,
            F_Coulomb=5 / k,
            F_Stribeck=10 / k,
            fexp=2.0,
            s=0.5,
        ),
        spring=fx.Spring("wall", "mass", c=10.0, s_rel0=1.0),
    )


def two_blocks() -> fx.Mechanism:
    """A driven block that drags another through a spring and a damper, each with its own
    friction.
    """
    return fx.Mechanism(
        first=fx.Mass(m=1.0),
        second=fx.Mass(m=0.5),
        joint=fx.SpringDamper("first", "second", c=40.0, d=0.3),
        guide1=fx.SupportFriction(
            "first",
            f_pos=fx.Stribeck(F_prop=0.3, F_Coulomb=1.0, F_Stribeck=0.5, fexp=4.0),
            peak=1.1,
        ),
        guide2=fx.SupportFriction(
            "second",
            f_pos=fx.Coulomb(F_Coulomb=0.6, F_prop=0.1),
            f_neg=fx.Coulomb(F_Coulomb=0.9),
            peak=1.2,
        ),
        drive=fx.Force("first", fx.Sine(amplitude=4.0, f=0.7)),
    )


def braked_twice() -> fx.Mechanism:
    """Two masses braked by one step, which stop at different times."""
    return fx.parameters.replace(
        brake(peak=1.05), {"mass2.v": 2.0, "brake1.f_normalized.startTime": 0.15}
    )


def pulsed_brake() -> fx.Mechanism:
    """A block on a spring under a constant pull, braked by pulses whose force rises and falls in
    ramps.
    """
    return fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.Mass(m=0.8, s=0.3),
        spring=fx.Spring("wall", "mass", c=25.0),
        pull=fx.Force("mass", fx.Constant(1.0)),
        brake=fx.Brake(
            "mass",
            mu_pos=[[0, 0.5], [0.5, 0.4], [1.5, 0.38]],
            peak=1.15,
            fn_max=8.0,
            f_normalized=fx.Trapezoid(
                amplitude=1.0, rising=0.1, width=0.3, falling=0.1, period=0.9, startTime=0.2
            ),
        ),
    )


def times(machine: fx.Mechanism, ts: Any, engine: fx.Adaptive = REFERENCE) -> np.ndarray:
    """The times of the mode changes of a run."""
    events = fx.simulate(machine, jnp.asarray(ts), engine).events
    return np.asarray(events.time[: int(events.count)])


def coupled_clutches(mu: Any = 0.5, peak: Any = 1.1, fn_max: Any = 20.0) -> fx.Mechanism:
    """Modelica.Mechanics.Rotational.Examples.CoupledClutches."""

    def clutch(a: str, b: str, f_normalized: Any) -> fx.Clutch:
        return fx.Clutch(
            a, b, mu_pos=jnp.array([[0.0, mu]]), peak=peak, fn_max=fn_max, f_normalized=f_normalized
        )

    return fx.Mechanism(
        J1=fx.Inertia(J=1.0, w=10.0),
        J2=fx.Inertia(J=1.0),
        J3=fx.Inertia(J=1.0),
        J4=fx.Inertia(J=1.0),
        clutch1=clutch("J1", "J2", fx.Sine(1.0, f=0.2, phase=jnp.pi / 2)),
        clutch2=clutch("J2", "J3", fx.Step(1.0, startTime=0.4)),
        clutch3=clutch("J3", "J4", fx.Step(1.0, startTime=0.9)),
        torque=fx.Torque("J1", fx.Sine(10.0, f=5.0)),
    )


def sprung_clutches() -> fx.Mechanism:
    """Four wheels that start at four speeds, three clutches that lock and each break away again
    within 3 s, a spring to the housing.
    """

    def clutch(a: str, b: str, f_normalized: Any) -> fx.Clutch:
        return fx.Clutch(
            a, b, mu_pos=[[0.0, 0.5]], peak=1.1, fn_max=20.0, f_normalized=f_normalized
        )

    return fx.Mechanism(
        J1=fx.Inertia(J=1.0, w=10.0),
        J2=fx.Inertia(J=1.0, w=6.0),
        J3=fx.Inertia(J=1.0, w=3.0),
        J4=fx.Inertia(J=1.0, w=2.5),
        clutch1=clutch("J1", "J2", fx.Constant(1.0)),
        clutch2=clutch("J2", "J3", fx.Sine(0.15, f=0.8, phase=-jnp.pi / 2, offset=0.5)),
        clutch3=clutch("J3", "J4", fx.Sine(0.3, f=0.7, offset=0.4)),
        housing=fx.Fixed(),
        shaft=fx.RotationalSpringDamper("J4", "housing", c=8.0, d=1.0),
        torque=fx.Torque("J1", fx.Sine(18.0, f=0.6)),
    )


def rotational_friction() -> fx.Mechanism:
    """Modelica.Mechanics.Rotational.Examples.Friction."""
    return fx.Mechanism(
        inertia3=fx.Inertia(J=1.0, w=100.0),
        inertia2=fx.Inertia(J=0.05, w=90.0),
        inertia1=fx.Inertia(J=1.0, w=90.0),
        clutch=fx.Clutch("inertia3", "inertia2", fn_max=160.0, f_normalized=1.0),
        spring=fx.RotationalSpringDamper("inertia2", "inertia1", c=160.0, d=1.0),
        brake=fx.Brake("inertia1", fn_max=1600.0, f_normalized=fx.Step(1.0, startTime=0.5)),
        # 200*sin(100 t) until 0.5 s: from there on a second torque takes it back.
        torque=fx.Torque("inertia3", fx.Sine(200.0, f=50 / jnp.pi)),
        until=fx.Torque("inertia3", fx.Sine(-200.0, f=50 / jnp.pi, phase=50.0, startTime=0.5)),
    )


def four_rotational_elements() -> fx.Mechanism:
    """The first three of the four set-ups of ModelicaTest.Rotational.TestFriction in one run."""
    torque = fx.Sine(10.0, f=1.0)
    press = fx.Step(100.0, startTime=0.5)
    return fx.Mechanism(
        inertia=fx.Inertia(J=1.0),
        bearingFriction=fx.BearingFriction("inertia"),
        torque=fx.Torque("inertia", torque),
        inertia1=fx.Inertia(J=1.0),
        brake=fx.Brake("inertia1", fn_max=1.0, f_normalized=press),
        torque1=fx.Torque("inertia1", torque),
        inertia2=fx.Inertia(J=1.0),
        inertia3=fx.Inertia(J=1.0),
        clutch=fx.Clutch("inertia2", "inertia3", fn_max=1.0, f_normalized=press),
        torque2=fx.Torque("inertia2", torque),
    )


def freewheel() -> fx.Mechanism:
    """The fourth set-up of ModelicaTest.Rotational.TestFriction."""
    return fx.Mechanism(
        inertia4=fx.Inertia(J=1.0),
        inertia5=fx.Inertia(J=1.0),
        oneWayClutch=fx.OneWayClutch(
            "inertia5", "inertia4", fn_max=1.0, f_normalized=fx.Step(100.0, startTime=0.5)
        ),
        torque3=fx.Torque("inertia4", fx.Sine(10.0, f=1.0)),
    )


def one_way_clutch() -> fx.Mechanism:
    """Modelica.Mechanics.Rotational.Examples.OneWayClutch."""
    press = fx.Pulse(amplitude=1.0, width=50.0, period=1.3, startTime=0.3)
    return fx.Mechanism(
        inertiaIn=fx.Inertia(J=1.0, w=-0.5),
        inertiaOut=fx.Inertia(J=1.0),
        oneWayClutch=fx.OneWayClutch(
            "inertiaIn", "inertiaOut", peak=25.0, fn_max=3.0, f_normalized=press
        ),
        torque=fx.Torque("inertiaIn", fx.Sine(10.0, f=3.0)),
    )


def lossy_gear(bearing: bool = False) -> fx.Mechanism:
    """Modelica.Mechanics.Rotational.Examples.LossyGearDemo1, and LossyGearDemo2 with a bearing."""
    parts: dict[str, Any] = {
        "Inertia1": fx.Inertia(J=1.0),
        "Inertia2": fx.Inertia(J=1.5),
        "gear": fx.LossyGear("Inertia1", "Inertia2", ratio=2.0, lossTable=[[0, 0.5, 0.5, 0, 0]]),
        "torque1": fx.Torque("Inertia1", fx.Sine(10.0, f=1.0)),
        "torque2": fx.Torque("Inertia2", fx.Ramp(height=5.0, duration=2.0, offset=-10.0)),
    }
    if bearing:
        parts["bearingFriction"] = fx.BearingFriction("Inertia1", tau_pos=[[0, 0.5], [1, 1]])
    return fx.Mechanism(**parts)


def two_brakes_on_one_mass() -> fx.Mechanism:
    """A mass that two elements hold together, driven until both let go."""
    return fx.Mechanism(
        mass=fx.Mass(m=1.5),
        guide=fx.SupportFriction(
            "mass", f_pos=fx.Stribeck(F_prop=0.3, F_Coulomb=2.0, F_Stribeck=1.0, fexp=3.0), peak=1.2
        ),
        brake=fx.Brake(
            "mass",
            mu_pos=[[0, 0.4]],
            peak=1.3,
            fn_max=5.0,
            f_normalized=fx.Sine(amplitude=0.3, f=0.4, offset=1.0),
        ),
        drive=fx.Force("mass", fx.Sine(amplitude=9.0, f=0.5)),
    )


def mass_on_a_belt() -> fx.Mechanism:
    """The stick-slip of a mass on a belt, held by a spring, with a guide of its own; the belt's
    speed changes.
    """
    law = fx.Stribeck(F_prop=0.1, F_Coulomb=4.0, F_Stribeck=2.0, fexp=3.0)
    return fx.Mechanism(
        wall=fx.Fixed(),
        belt=fx.Mass(m=10.0),
        mass=fx.Mass(m=1.0),
        drive=fx.Position("belt", fx.Sine(amplitude=2.0, f=0.11)),
        spring=fx.SpringDamper("wall", "mass", c=20.0, d=0.1),
        friction=fx.SupportFriction("mass", f_pos=law, peak=1.1, support="belt"),
        guide=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=0.5), peak=1.1),
    )


def planetary_gearbox() -> fx.Mechanism:
    """A planetary gear whose ring a brake catches, with friction in the bearing of its carrier and
    a spring to a load.
    """
    return fx.Mechanism(
        sun=fx.Inertia(J=0.2),
        carrier=fx.Inertia(J=0.5),
        ring=fx.Inertia(J=0.3),
        load=fx.Inertia(J=1.0),
        planetary=fx.IdealPlanetary(sun="sun", carrier="carrier", ring="ring", ratio=2.0),
        shaft=fx.RotationalSpringDamper("carrier", "load", c=50.0, d=0.5),
        bearing=fx.BearingFriction(
            "load", tau_pos=fx.Coulomb(F_Coulomb=0.6, F_prop=0.05), peak=1.2
        ),
        brake=fx.Brake(
            "ring",
            mu_pos=[[0, 0.3]],
            peak=1.1,
            fn_max=20.0,
            f_normalized=fx.Ramp(height=1.0, duration=0.5, startTime=0.3),
        ),
        torque=fx.Torque("sun", fx.Sine(amplitude=2.5, f=0.5, offset=0.5)),
    )
