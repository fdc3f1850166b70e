"""Machines that hold every part which Modelica text can say."""

import numpy as np

import frictax as fx
import machines


def sliding() -> fx.Mechanism:
    """A heated cart with a law for each direction on a spring; a mass between stops; a controlled
    one; a measured drive.
    """
    t = np.linspace(0.0, 1.5, 31)
    return fx.Mechanism(
        wall=fx.Fixed(s0=-0.2),
        cart=fx.Mass(m=1.2, L=0.1, v=0.3),
        spring=fx.SpringDamper("wall", "cart", c=30.0, d=0.2, s_rel0=0.1),
        guide=fx.SupportFriction(
            "cart",
            f_pos=machines.stick_slip()["friction"].f_pos,
            peak=1.2,
            f_neg=fx.Coulomb(F_Coulomb=0.5),
        ),
        drive=fx.Force("cart", fx.Sampled(t, 4 * np.sin(5 * t))),
        disc=fx.HeatCapacitor(("guide", "spring"), C=3.0, T=300.0),
        air=fx.ThermalConductor("disc", G=0.5, T_ambient=290.0),
        slide=fx.MassWithStopAndFriction(
            m=1.0,
            L=0.2,
            smin=-0.5,
            smax=0.5,
            F_prop=1.0,
            F_Coulomb=0.6,
            F_Stribeck=0.5,
            fexp=2.0,
            v=1.5,
        ),
        rod=fx.Spring("wall", "slide.flange_a", c=60.0, s_rel0=0.3),
        axis=fx.Mass(m=0.8),
        rail=fx.Brake(
            "axis",
            mu_pos=[[0, 0.3], [0.5, 0.2]],
            fn_max=3.0,
            f_normalized=fx.Step(height=1.0, startTime=0.3),
        ),
        servo=fx.PositionController(
            "axis", s_ref=fx.Ramp(height=0.2, duration=0.4), kp=6.0, kv=8.0
        ),
        cable=fx.LinearPositionDependentForce("axis", f_nominal=-0.3, slope=1.5, s0=0.1),
        ripple=fx.PeriodicPositionDependentForce("axis", f_cos=0.4, f_sin=-0.7, period=0.05),
        drag=fx.QuadraticSpeedDependentForce("slide", f_nominal=-0.6, v_nominal=0.8),
    )


def turning() -> fx.Mechanism:
    """A clutch that locks, a gear behind it, a load behind a shaft with a bearing that it breaks
    away from.
    """
    return fx.Mechanism(
        motor=fx.Inertia(J=1.0, w=6.0),
        wheel=fx.Inertia(J=0.6),
        load=fx.Inertia(J=0.4),
        clutch=fx.Clutch(
            "motor",
            "wheel",
            mu_pos=[[0, 0.4]],
            peak=1.1,
            fn_max=10.0,
            f_normalized=fx.Constant(1.0),
        ),
        gear=fx.IdealGear("wheel", "load", ratio=2.0),
        far=fx.Inertia(J=0.3),
        shaft=fx.RotationalSpringDamper("load", "far", c=20.0, d=0.3),
        bearing=fx.BearingFriction("far", tau_pos=fx.Coulomb(F_Coulomb=0.8, F_prop=0.05), peak=1.2),
        torque=fx.Torque("motor", fx.Sine(amplitude=3.0, f=0.8)),
        fan=fx.QuadraticSpeedDependentTorque("wheel", tau_nominal=-0.02),
        cogging=fx.PeriodicPositionDependentForce("motor", f_sin=0.3, period=1.05, s0=0.2),
    )
