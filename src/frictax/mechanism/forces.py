"""What acts between two flanges, or from outside on one."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from frictax.parameters import AtLeast, CheckedModule, Integer, Number, Real, Scalar, parameter
from frictax.signals import Drive, as_signal, check_signal


class AbstractCompliant(CheckedModule):
    """A force f [N] between the flanges `a` and `b` of two bodies, positive when it pulls them
    together.

    s_rel = s_b - s_a [m], v_rel = v_b - v_a [m/s]. A body's name alone means the flange_b of the
    first and the flange_a of the second.
    """

    rotational: ClassVar[bool]
    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)

    def elastic(self, s_rel: Number) -> Number:
        """The part of f that stores energy."""
        return jnp.zeros_like(s_rel)

    def energy(self, s_rel: Number) -> Number:
        """The energy stored [J]."""
        return jnp.zeros_like(s_rel)

    def viscous(self, v_rel: Number) -> Number:
        """The part of f that takes energy out."""
        return jnp.zeros_like(v_rel)

    def forces(self, s_rel: Number, v_rel: Number, piece: Integer) -> tuple[Array, Array]:
        """Both parts, on a piece of those that have several."""
        return self.elastic(s_rel), self.viscous(v_rel)


class _Spring(AbstractCompliant):
    """f = c*(s_rel - unstretched)."""

    c: eqx.AbstractVar[Scalar]

    @property
    def unstretched(self: Any) -> Scalar:
        """Extension without force."""
        return self.phi_rel0 if self.rotational else self.s_rel0

    def elastic(self, s_rel: Number) -> Number:
        return self.c * (s_rel - self.unstretched)

    def energy(self, s_rel: Number) -> Number:
        return 0.5 * self.c * (s_rel - self.unstretched) ** 2


class _Damper(AbstractCompliant):
    """f = d*v_rel."""

    d: eqx.AbstractVar[Scalar]

    def viscous(self, v_rel: Number) -> Number:
        return self.d * v_rel


class Spring(_Spring):
    """A linear spring, f = c*(s_rel - s_rel0): `c` >= 0 [N/m], unstretched length `s_rel0` [m].

    Half a period after it was let go, a mass is as far on the other side:

    >>> import frictax as fx, jax.numpy as jnp
    >>> swing = fx.Mechanism(
    ...     wall=fx.Fixed(),
    ...     mass=fx.Mass(m=1.0, s=0.6),
    ...     spring=fx.Spring("wall", "mass", c=4.0, s_rel0=0.5),
    ... )
    >>> round(float(fx.simulate(swing, jnp.array([0.0, jnp.pi / 2]))["mass"].s[-1]), 6)
    0.4
    """

    rotational = False
    c: Scalar = parameter(AtLeast(0.0), "N/m")
    s_rel0: Scalar = parameter(Real(), "m", fit=False, default=0.0)


class Damper(_Damper):
    """A linear damper, f = d*v_rel: `d` >= 0 [N.s/m].

    **Example:** at `SpringDamper`.
    """

    rotational = False
    d: Scalar = parameter(AtLeast(0.0), "N.s/m")


class SpringDamper(_Spring, _Damper):
    """A linear spring and a linear damper in parallel, f = c*(s_rel - s_rel0) + d*v_rel.

    Critically damped, a mass creeps back as (1 + 2*t)*exp(-2*t):

    >>> import frictax as fx, jax.numpy as jnp
    >>> door = fx.Mechanism(
    ...     frame=fx.Fixed(),
    ...     mass=fx.Mass(m=1.0, s=1.0),
    ...     closer=fx.SpringDamper("frame", "mass", c=4.0, d=4.0),
    ... )
    >>> s = fx.simulate(door, jnp.array([0.0, 1.0]))["mass"].s[-1]
    >>> round(float(s), 6), round(float(3.0 * jnp.exp(-2.0)), 6)
    (0.406006, 0.406006)
    """

    rotational = False
    c: Scalar = parameter(AtLeast(0.0), "N/m")
    d: Scalar = parameter(AtLeast(0.0), "N.s/m")
    s_rel0: Scalar = parameter(Real(), "m", fit=False, default=0.0)


class RotationalSpring(_Spring):
    """A linear torsion spring, tau = c*(phi_rel - phi_rel0): `c` >= 0 [N.m/rad], angle without
    torque `phi_rel0` [rad].

    **Example:** at `RotationalSpringDamper`.
    """

    rotational = True
    c: Scalar = parameter(AtLeast(0.0), "N.m/rad")
    phi_rel0: Scalar = parameter(Real(), "rad", fit=False, default=0.0)


class RotationalDamper(_Damper):
    """A linear rotational damper, tau = d*w_rel: `d` >= 0 [N.m.s/rad].

    **Example:** at `RotationalSpringDamper`.
    """

    rotational = True
    d: Scalar = parameter(AtLeast(0.0), "N.m.s/rad")


class RotationalSpringDamper(_Spring, _Damper):
    """A linear torsion spring and a linear damper in parallel, tau = c*(phi_rel - phi_rel0) +
    d*w_rel.

    Two discs on one shaft end up turning alike:

    >>> import frictax as fx, jax.numpy as jnp
    >>> train = fx.Mechanism(
    ...     motor=fx.Inertia(J=1.0, w=3.0),
    ...     load=fx.Inertia(J=2.0),
    ...     shaft=fx.RotationalSpringDamper("motor", "load", c=50.0, d=5.0),
    ... )
    >>> run = fx.simulate(train, jnp.array([0.0, 5.0]))
    >>> round(float(run["motor"].w[-1]), 3), round(float(run["load"].w[-1]), 3)
    (1.0, 1.0)
    """

    rotational = True
    c: Scalar = parameter(AtLeast(0.0), "N.m/rad")
    d: Scalar = parameter(AtLeast(0.0), "N.m.s/rad")
    phi_rel0: Scalar = parameter(Real(), "rad", fit=False, default=0.0)


class AbstractSource(CheckedModule):
    """A force f [N] from outside on the flange `body`, positive in the direction of s; f = driven +
    elastic.

    `dissipates`: whether the work of `driven` is not a drive's but lost, as in a damper;
    `is_smooth`: whether its slope over v is smooth too where v changes its sign.

    s [m] and v [m/s] are the position and velocity of that flange: of a body's flange_b where its
    name alone is given.
    """

    body: str = eqx.field(static=True)

    rotational: ClassVar[bool]
    dissipates: ClassVar[bool] = False
    is_smooth: ClassVar[bool] = True

    def check_rules(self) -> None:
        if (name := self.signal_name()) is not None:
            check_signal(self, name)

    def signal_name(self) -> str | None:
        """The field that holds the signal; None for a source without one."""
        return None

    def driven(self, value: Number | None, s: Number, v: Number) -> Number:
        """The part of f that has no potential; `value` is the signal's."""
        return jnp.zeros_like(s)

    def elastic(self, s: Number) -> Number:
        """The part of f that has a potential."""
        return jnp.zeros_like(s)

    def energy(self, s: Number) -> Number:
        """That potential [J]: elastic = -d(energy)/ds."""
        return jnp.zeros_like(s)


class _External(AbstractSource):
    """f is its signal."""

    def driven(self, value: Number | None, s: Number, v: Number) -> Number:
        return jnp.asarray(value)


class Force(_External):
    """An external force on a flange: `f` [N] is a signal, a function of time or a number, positive
    in the direction of s.

    **Example:** at `Mechanism`.
    """

    rotational = False
    f: Drive = eqx.field(converter=as_signal)

    def signal_name(self) -> str | None:
        return "f"


class Torque(_External):
    """An external torque on a body: `tau` [N.m] is a signal, a function of time or a number,
    positive in the direction of phi.

    >>> import frictax as fx, jax.numpy as jnp
    >>> rotor = fx.Mechanism(wheel=fx.Inertia(J=0.5), motor=fx.Torque("wheel", lambda t: 3.0 * t))
    >>> round(float(fx.simulate(rotor, jnp.array([0.0, 2.0]))["wheel"].w[-1]), 6)
    12.0
    """

    rotational = True
    tau: Drive = eqx.field(converter=as_signal)

    def signal_name(self) -> str | None:
        return "tau"


class PositionController(AbstractSource):
    """A drive under position control, a speed loop inside a position loop: f = k*kv*(kp*(s_ref(t) -
    s) - v).

    The controller itself is not identified but known, so none of its gains is fitted unless named.
    Its work counts in `run.energy.drive`. A body that friction holds does not move: there f follows
    s_ref alone.

    A controller on a computer works at sampling times, holds its output between them and takes the
    speed from differences of position. This one acts at all times on the speed itself. What is lost
    by that is the delay: a speed that is T [s] old pushes with k*kv*T*a more, so that the real
    machine responds as if it were lighter by k*kv*T [kg]. Give a recorded reference as `Sampled`
    joined by lines: with ``hold=True`` the force would jump at every sample.

    **Arguments:**

    - `body`: name of the body it acts on, with ``.flange_a`` if not its flange_b; s and v are that
      flange's.
    - `s_ref`: position that is asked for [m]: a signal, a function of time or a number.
    - `kp` >= 0 [1/s]: gain of the position loop, the speed asked for over the error of position.
    - `kv` >= 0: gain of the speed loop, the controller's output over the error of speed; [N.s/m]
      where that output is a force.
    - `k` >= 0: the drive's force over the controller's output, such as N/V; 1 unless given.

    **Raises:** `ValueError` for a value outside its domain and for a reference that is no signal.

    **Source:** A. Janot, M. Gautier, M. Brunot, Data set and reference models of EMPS, Workshop on
    Nonlinear System Identification Benchmarks, 2019. Its controller has kp = 160.18 1/s, kv =
    243.45 V.s/m, k = 35.15 N/V, no feed-forward, and T = 1 ms: its speed is (s[n] - s[n-2])/2 over
    a sampling time of 1 ms.

    >>> import frictax as fx, jax.numpy as jnp
    >>> axis = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0), drive=fx.PositionController("mass", s_ref=0.5, kp=5.0, kv=20.0)
    ... )
    >>> round(float(fx.simulate(axis, ts=jnp.array([0.0, 9.0]))["mass"].s[-1]), 6)
    0.5
    """

    s_ref: Drive = eqx.field(converter=as_signal)
    kp: Scalar = parameter(AtLeast(0.0), "1/s", fit=False)
    kv: Scalar = parameter(AtLeast(0.0), "N.s/m", fit=False)
    k: Scalar = parameter(AtLeast(0.0), "1", fit=False, default=1.0)

    def signal_name(self) -> str | None:
        return "s_ref"

    def driven(self, value: Number | None, s: Number, v: Number) -> Number:
        return self.k * self.kv * (self.kp * (jnp.asarray(value) - s) - v)


class AbstractMotion(CheckedModule):
    """A body whose position over time is given, whatever force that takes."""

    body: str = eqx.field(static=True)

    def check_rules(self) -> None:
        check_signal(self, self.signal_name())

    @abc.abstractmethod
    def signal_name(self) -> str:
        """The field that holds the position over time."""


class Position(AbstractMotion):
    """The position of a body over time: `s` [m], or [rad] of a body that turns, is a signal, a
    function of time or a number.

    The body's own start values do not matter. Where the signal has a corner the body's velocity
    jumps; give a signal that is smooth between its switches. So a belt under a mass is a heavy body
    with ``fx.Position("belt", fx.Ramp(height=v*T, duration=T))``.

    **Raises:** `ValueError` for a signal that is none.

    **Source:** Modelica.Mechanics.Translational.Sources.Position and Rotational.Sources.Position
    with exact = true.

    A mass on a belt of 1 m/s:

    >>> import frictax as fx, jax.numpy as jnp
    >>> line = fx.Mechanism(
    ...     belt=fx.Mass(m=1.0),
    ...     mass=fx.Mass(m=1.0),
    ...     drive=fx.Position("belt", lambda t: t),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0), support="belt"),
    ... )
    >>> run = fx.simulate(line, ts=jnp.array([0.0, 1.0]))
    >>> round(float(run.events.time[0]), 9), round(float(run["mass"].s[-1]), 9)
    (0.5, 0.75)
    """

    s: Drive = eqx.field(converter=as_signal)

    def signal_name(self) -> str:
        return "s"
