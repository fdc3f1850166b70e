"""Machines to draw: one around each kind of part, others that are crowded or stand apart, and one
of parts of one's own.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp

import frictax as fx
import machines
from frictax.contacts import AbstractContact
from frictax.mechanism.bodies import AbstractBody
from frictax.mechanism.forces import AbstractCompliant, AbstractMotion, AbstractSource
from frictax.mechanism.gears import AbstractGear
from frictax.parameters import Positive, Scalar, parameter

A, B, C = (fx.Inertia(J=1.0) for _ in range(3))
M, N = fx.Mass(m=1.0), fx.Mass(m=2.0)
# A machine around each kind of part, which is called `part`.
KINDS: dict[type, Callable[[], fx.Mechanism]] = {
    fx.Mass: lambda: fx.Mechanism(part=M),
    fx.Inertia: lambda: fx.Mechanism(part=A),
    fx.Fixed: lambda: fx.Mechanism(m=M, part=fx.Fixed(s0=2.0), s=fx.Spring("part", "m", c=1.0)),
    fx.MassWithStopAndFriction: lambda: fx.Mechanism(part=machines.stop1()["stop1"]),
    fx.Spring: lambda: fx.Mechanism(m=M, n=N, part=fx.Spring("m", "n", c=1.0)),
    fx.Damper: lambda: fx.Mechanism(m=M, n=N, part=fx.Damper("m", "n", d=1.0)),
    fx.SpringDamper: lambda: fx.Mechanism(m=M, n=N, part=fx.SpringDamper("m", "n", c=1.0, d=1.0)),
    fx.RotationalSpring: lambda: fx.Mechanism(a=A, b=B, part=fx.RotationalSpring("a", "b", c=1.0)),
    fx.RotationalDamper: lambda: fx.Mechanism(a=A, b=B, part=fx.RotationalDamper("a", "b", d=1.0)),
    fx.RotationalSpringDamper: lambda: fx.Mechanism(
        a=A, b=B, part=fx.RotationalSpringDamper("a", "b", c=1.0, d=1.0)
    ),
    fx.ElastoGap: lambda: fx.Mechanism(m=M, n=N, part=fx.ElastoGap("m", "n", c=1.0, d=1.0)),
    fx.ElastoBacklash: lambda: fx.Mechanism(
        a=A, b=B, part=fx.ElastoBacklash("a", "b", c=1.0, d=1.0, backlash=0.1)
    ),
    fx.Force: lambda: fx.Mechanism(m=M, part=fx.Force("m", 1.0)),
    fx.Torque: lambda: fx.Mechanism(a=A, part=fx.Torque("a", 1.0)),
    fx.LinearPositionDependentForce: lambda: fx.Mechanism(
        m=M, part=fx.LinearPositionDependentForce("m", slope=1.0)
    ),
    fx.PeriodicPositionDependentForce: lambda: fx.Mechanism(
        a=A, part=fx.PeriodicPositionDependentForce("a", f_cos=1.0, f_sin=0.5, period=0.1)
    ),
    fx.QuadraticSpeedDependentForce: lambda: fx.Mechanism(
        m=M, part=fx.QuadraticSpeedDependentForce("m", f_nominal=-1.0)
    ),
    fx.QuadraticSpeedDependentTorque: lambda: fx.Mechanism(
        a=A, part=fx.QuadraticSpeedDependentTorque("a", tau_nominal=-1.0)
    ),
    fx.PositionController: lambda: fx.Mechanism(
        m=M, part=fx.PositionController("m", 0.5, kp=1.0, kv=2.0)
    ),
    fx.Position: lambda: fx.Mechanism(m=M, n=N, part=fx.Position("m", 0.5)),
    fx.SupportFriction: lambda: fx.Mechanism(m=M, part=fx.SupportFriction("m")),
    fx.BearingFriction: lambda: fx.Mechanism(a=A, part=fx.BearingFriction("a")),
    fx.Brake: lambda: fx.Mechanism(a=A, part=fx.Brake("a")),
    fx.Clutch: lambda: fx.Mechanism(a=A, b=B, part=fx.Clutch("a", "b")),
    fx.OneWayClutch: lambda: fx.Mechanism(a=A, b=B, part=fx.OneWayClutch("a", "b")),
    fx.IdealGear: lambda: fx.Mechanism(a=A, b=B, part=fx.IdealGear("a", "b", ratio=2.0)),
    fx.LossyGear: lambda: fx.Mechanism(a=A, b=B, part=fx.LossyGear("a", "b", ratio=2.0)),
    fx.HeatCapacitor: lambda: fx.Mechanism(
        a=A, b=B, clutch=fx.Clutch("a", "b"), part=fx.HeatCapacitor("clutch", C=2.0)
    ),
    fx.ThermalConductor: lambda: fx.Mechanism(
        a=A,
        clutch=fx.Brake("a"),
        c=fx.HeatCapacitor("clutch", C=2.0),
        part=fx.ThermalConductor("c"),
    ),
    fx.IdealPlanetary: lambda: fx.Mechanism(
        a=A, b=B, c=C, part=fx.IdealPlanetary("a", "b", "c", ratio=2.0)
    ),
}


def star() -> fx.Mechanism:
    """Four masses with springs on one, which is anchored."""
    outer = {f"m{i}": fx.Mass(m=float(i)) for i in range(1, 5)}
    springs = {f"s{i}": fx.Spring("hub", f"m{i}", c=100.0 * i) for i in range(1, 5)}
    return fx.Mechanism(
        hub=fx.Mass(m=2.0),
        wall=fx.Fixed(),
        **outer,
        **springs,
        anchor=fx.SpringDamper("wall", "hub", c=1e5, d=3.0),
    )


def side_by_side() -> fx.Mechanism:
    """Springs, dampers and friction between the same bodies and over others; all drives on bodies
    that are joined on both sides.
    """
    return fx.Mechanism(
        wall=fx.Fixed(),
        a=fx.Mass(m=1.0),
        b=fx.Mass(m=2.0),
        c=fx.Mass(m=3.0),
        s0=fx.Spring("wall", "a", c=10.0),
        d0=fx.Damper("wall", "a", d=1.0),
        s1=fx.Spring("a", "b", c=10.0),
        d1=fx.Damper("a", "b", d=1.0),
        slide=fx.SupportFriction("a", support="b"),
        s2=fx.Spring("b", "c", c=10.0),
        d2=fx.Damper("b", "c", d=1.0),
        over=fx.Spring("a", "c", c=1.0),
        guide=fx.SupportFriction("a"),
        brake=fx.Brake("a"),
        stop=fx.Brake("c", support="wall"),
        push=fx.Force("b", 2.0),
        law=fx.Force("b", lambda t: t),
        controller=fx.PositionController("b", 0.5, kp=5.0, kv=20.0),
        offset=fx.LinearPositionDependentForce("a", f_nominal=-4.0),
    )


def gearbox() -> fx.Mechanism:
    """A planetary gear with a brake, clutches between its own bodies, and a line behind it that
    goes back.
    """
    return fx.Mechanism(
        motor=fx.Inertia(J=0.1),
        sun=fx.Inertia(J=0.2),
        carrier=fx.Inertia(J=0.5),
        ring=fx.Inertia(J=0.3),
        out=fx.Inertia(J=1.0),
        drum=fx.Inertia(J=1.0),
        housing=fx.Fixed(),
        input=fx.RotationalSpring("motor", "sun", c=100.0),
        planetary=fx.IdealPlanetary(sun="sun", carrier="carrier", ring="ring", ratio=2.0),
        lockup=fx.Clutch("sun", "carrier"),
        tie=fx.Clutch("carrier", "ring"),
        final=fx.IdealGear("carrier", "out", ratio=-3.5),
        hub=fx.OneWayClutch("out", "drum"),
        brake=fx.Brake("ring", fn_max=100.0, f_normalized=fx.Step()),
        band=fx.Brake("ring", support="sun"),
        pawl=fx.Clutch("housing", "drum"),
        torque=fx.Torque("motor", 3.0),
        weight=fx.LinearPositionDependentForce("drum", f_nominal=-4.0),
        servo=fx.PositionController("motor", 0.5, kp=5.0, kv=20.0),
        bearing=fx.BearingFriction("carrier"),
        race=fx.BearingFriction("drum", support="carrier"),
    )


def crowded() -> fx.Mechanism:
    """Many contacts and drives on one body that turns, and on one that slides between stops."""
    return fx.Mechanism(
        rotor=A,
        slide=machines.stop1()["stop1"],
        **{f"bearing{i}": fx.BearingFriction("rotor") for i in range(3)},
        **{f"brake{i}": fx.Brake("rotor", fn_max=10.0) for i in range(2)},
        **{f"torque{i}": fx.Torque("rotor", 1.0) for i in range(2)},
        **{
            f"guide_of_the_slide{i}": fx.SupportFriction(
                "slide", f_pos=fx.Coulomb(F_Coulomb=1.0), peak=1.5
            )
            for i in range(3)
        },
        **{f"force{i}": fx.Force("slide", 1.0) for i in range(4)},
        press=fx.Brake("slide"),
    )


def warm() -> fx.Mechanism:
    """A clutch, a brake and a damper that heat what they are made of; the heat flows to the housing
    and away.
    """
    return fx.Mechanism(
        motor=A,
        load=B,
        clutch=fx.Clutch(
            "motor", "load", mu_pos=fx.TemperatureDependent(fx.Coulomb(F_Coulomb=0.3), beta=0.01)
        ),
        brake=fx.Brake("load", fn_max=10.0),
        oil=fx.RotationalDamper("motor", "load", d=1.0),
        plates=fx.HeatCapacitor(["clutch", "oil"], C=0.5, T=300.0),
        disc=fx.HeatCapacitor("brake", C=2.0),
        housing=fx.HeatCapacitor([], C=20.0),
        seam=fx.ThermalConductor("plates", "housing", G=4.0),
        web=fx.ThermalConductor("disc", "housing", G=2.0),
        air=fx.ThermalConductor("housing", G=0.5, T_ambient=310.0),
    )


class Rope(AbstractCompliant):
    rotational: ClassVar[bool] = False
    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    k: Scalar = parameter(Positive(), "N/m")


class Magnet(AbstractSource):
    body: str = eqx.field(static=True)
    B: Scalar = parameter(Positive(), "T")


class Cam(AbstractMotion):
    body: str = eqx.field(static=True)
    s: fx.AbstractSignal

    def signal_name(self) -> str:
        return "s"


class Slug(AbstractBody):
    rotational: ClassVar[bool] = False
    volume: Scalar = parameter(Positive(), "m3")

    def inertia(self) -> Any:
        return self.volume

    def at_start(self) -> Any:
        return jnp.array(0.0), jnp.array(0.0)


class Glue(AbstractContact):
    body: str = eqx.field(static=True)
    support: str | None = eqx.field(static=True, default=None)

    def between(self) -> tuple[str, str | None]:
        return self.body, self.support

    def law(self, direction: int) -> fx.AbstractLaw:
        return fx.Coulomb(F_Coulomb=1.0)

    def breakaway(self) -> Any:
        return jnp.array(1.0)


class Differential(AbstractGear):
    case: str = eqx.field(static=True)
    left: str = eqx.field(static=True)
    third: str = eqx.field(static=True)
    right: str = eqx.field(static=True)

    def joined_bodies(self) -> tuple[str, ...]:
        return self.case, self.left, self.third, self.right

    def factors(self) -> tuple[Any, ...]:
        return 3.0, -1.0, -1.0, -1.0


def of_ones_own() -> fx.Mechanism:
    """Parts that the package does not know."""
    wheels = {name: fx.Inertia(J=1.0) for name in ("case", "left", "third", "right")}
    return fx.Mechanism(
        slug=Slug(volume=1.0),
        mass=fx.Mass(m=2.0),
        housing=fx.Fixed(),
        rope=Rope("slug", "mass", k=3.0),
        above=Magnet("mass", B=2.0),
        beside=Magnet("slug", B=2.0),
        cam=Cam("slug", fx.Sine()),
        on_floor=Glue("mass"),
        on_housing=Glue("mass", "housing"),
        between=Glue("mass", "slug"),
        **wheels,
        differential=Differential("case", "left", "third", "right"),
        around=Magnet("case", B=1.0),
        on_shaft=Glue("left"),
        bridge=fx.RotationalSpring("left", "right", c=2.0),
    )
