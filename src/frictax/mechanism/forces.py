"""Springs, dampers, external forces and prescribed motions."""

import abc
import math
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.parameters import (
    AtLeast,
    CheckedModule,
    Integer,
    Number,
    Positive,
    Real,
    Scalar,
    is_traced,
    parameter,
)
from frictax.signals import Drive, Sine, as_signal, check_signal


class AbstractCompliant(CheckedModule):
    """A spring, damper or gap: a force f [N] between the flanges `a` and `b` of two bodies,
    positive if it pulls the bodies together.

    The extension is s_rel = s_b - s_a [m], and its rate is v_rel = v_b - v_a [m/s]. If `a` or `b`
    is a body's name without flange, `a` means flange_b and `b` means flange_a of the body.
    """

    rotational: ClassVar[bool]
    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)

    def elastic(self, s_rel: Number) -> Number:
        """Return the part of f that stores energy."""
        return jnp.zeros_like(s_rel)

    def energy(self, s_rel: Number) -> Number:
        """Return the stored energy [J] at the extension `s_rel`."""
        return jnp.zeros_like(s_rel)

    def viscous(self, v_rel: Number) -> Number:
        """Return the part of f that dissipates energy."""
        return jnp.zeros_like(v_rel)

    def forces(self, s_rel: Number, v_rel: Number, piece: Integer) -> tuple[Array, Array]:
        """Return the elastic and the dissipative part of f. `piece`: segment of a gap's law."""
        return self.elastic(s_rel), self.viscous(v_rel)


class _Spring(AbstractCompliant):
    """A linear spring: f = c*(s_rel - extension_without_force)."""

    c: eqx.AbstractVar[Scalar]

    @property
    def extension_without_force(self: Any) -> Scalar:
        """The extension [m or rad] at which the force is 0."""
        return self.phi_rel0 if self.rotational else self.s_rel0

    def elastic(self, s_rel: Number) -> Number:
        return self.c * (s_rel - self.extension_without_force)

    def energy(self, s_rel: Number) -> Number:
        return 0.5 * self.c * (s_rel - self.extension_without_force) ** 2


class _Damper(AbstractCompliant):
    """A linear damper: f = d*v_rel."""

    d: eqx.AbstractVar[Scalar]

    def viscous(self, v_rel: Number) -> Number:
        return self.d * v_rel


class Spring(_Spring):
    """A linear spring, f = c*(s_rel - s_rel0): `c` >= 0 [N/m], unstretched length `s_rel0` [m].

    Half a period after its release, a mass is on the opposite side of its equilibrium:

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

    The position of a critically damped mass decreases as s(t) = (1 + 2*t)*exp(-2*t):

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
    """A linear torsion spring, tau = c*(phi_rel - phi_rel0): `c` >= 0 [N.m/rad]. The torque is 0 at
    the relative angle `phi_rel0` [rad].

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
    """A torsion spring and a damper in parallel, tau = c*(phi_rel - phi_rel0) + d*w_rel.

    Two discs on one shaft reach the same speed:

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
    """An external force f [N] on the flange `body`, positive in the direction of s. f is the sum of
    the results of the two methods `driven` and `elastic`.

    `dissipates`: True if the work of `driven` counts as a loss, like that of a damper; False if it
    counts as work of a drive. `is_smooth`: whether df/dv is a smooth function, also at v = 0.

    s [m] and v [m/s] are position and velocity of the flange. If `body` is a body's name without
    flange, its flange_b is used.
    """

    body: str = eqx.field(static=True)

    rotational: ClassVar[bool]
    # A class without `rotational` can act on a mass or an inertia, so errors do not print units.
    unit_of_owner: ClassVar[bool] = True
    dissipates: ClassVar[bool] = False
    is_smooth: ClassVar[bool] = True

    def check_rules(self) -> None:
        # Call the method of the class, because `self.signal_name` makes equinox build a module,
        # which takes 20 us for each source and fit.
        if (name := type(self).signal_name(self)) is not None:
            check_signal(self, name)

    def signal_name(self) -> str | None:
        """Return the name of the field with the signal; None for a source without a signal."""
        return None

    def driven(self, value: Number | None, s: Number, v: Number) -> Number:
        """Return the part of f without potential energy. `value`: present value of the signal."""
        return jnp.zeros_like(s)

    def elastic(self, s: Number) -> Number:
        """Return the part of f that has a potential energy."""
        return jnp.zeros_like(s)

    def energy(self, s: Number) -> Number:
        """Return the potential energy [J], for which elastic = -d(energy)/ds."""
        return jnp.zeros_like(s)


class _External(AbstractSource):
    """A source whose force equals the value of its signal."""

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
    """A motor drive with position control, and with a speed loop inside the position loop: f =
    k*kv*(kp*(s_ref(t) - s) - v).

    The gains are usually known. Therefore a fit changes a gain only if the user names it as a
    parameter. The work of the drive counts in `run.energy.drive`. While the body sticks, only s_ref
    can change f.

    A digital controller holds its output between two sampling times, and computes the speed from
    differences of position. This model uses the true speed at every time and neglects the delay T
    [s] of the measured speed. In a real drive, this delay increases the force by k*kv*T*a, where a
    is the acceleration. The real machine therefore responds like a machine that is lighter by
    k*kv*T [kg]. Give a recorded reference as `Sampled` with linear interpolation. With
    ``hold=True`` the force would jump at every sample.

    **Arguments:**

    - `body`: name of the body that the drive acts on, with ``.flange_a`` if it does not act at
      flange_b. s and v are position and velocity of this flange.
    - `s_ref`: reference position [m]: a signal, a function of time or a number.
    - `kp` >= 0 [1/s]: gain of the position loop, from s_ref - s to the reference speed.
    - `kv` >= 0: gain of the speed loop, from the speed deviation to the controller's output;
      [N.s/m] if the output is a force.
    - `k` >= 0: force of the drive per unit of controller output, such as N/V; default 1.

    **Raises:** `ValueError` for a value outside its domain, and if `s_ref` is not a signal.

    **Source:** A. Janot, M. Gautier, M. Brunot, Data set and reference models of EMPS, Workshop on
    Nonlinear System Identification Benchmarks, 2019. The controller of EMPS has kp = 160.18 1/s, kv
    = 243.45 V.s/m, k = 35.15 N/V, no feed-forward, and T = 1 ms: with the sampling time h = 1 ms,
    it computes the speed as (s[n] - s[n-2])/(2*h).

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
    """A prescribed motion: the position of `body` over time does not depend on the forces."""

    body: str = eqx.field(static=True)

    def check_rules(self) -> None:
        name = self.signal_name()
        check_signal(self, name)
        if (signal := getattr(self, name)).jumps():
            raise ValueError(
                f"`{type(self).__name__}.{name}` must not jump, because a body cannot jump, got a"
                f" {type(signal).__name__} that jumps. Use a `Ramp` with a"
                " duration, or `Sampled` without hold=True."
            )

    def check_run(self, ts: Array) -> None:
        """Raise `ValueError` if a `Sine` begins with a jump after ts[0], up to ts[-1] [s]."""
        name = self.signal_name()
        sine = getattr(self, name)
        if not isinstance(sine, Sine) or any(map(is_traced, [ts, *jax.tree.leaves(sine)])):
            return
        start, amplitude, phase = map(float, (sine.startTime, sine.amplitude, sine.phase))
        height = amplitude * math.sin(phase)
        rounding = 8 * jnp.finfo(ts.dtype).eps * max(1.0, abs(phase)) * abs(amplitude)
        if abs(height) > rounding and ts[0] < start <= ts[-1]:
            raise ValueError(
                f"`{type(self).__name__}.{name}` must not jump, because a body cannot jump, got a"
                f" Sine that jumps by {height:g} at its startTime {start:g} s. Begin the run at"
                " that time, or use a phase of 0."
            )

    @abc.abstractmethod
    def signal_name(self) -> str:
        """Return the name of the field with the position signal."""


class Position(AbstractMotion):
    """A prescribed position of a body over time. `s` [m; rad for a body that turns] is a signal, a
    function of time or a number.

    The start values of the body are not used. At a corner of the signal, the velocity of the body
    jumps. A corner is allowed only where a segment of the signal ends. At the last sample of a
    `Sampled`, the body still has the speed of the last line. A belt that moves with the speed v for
    the time T is a body with ``fx.Position("belt", fx.Ramp(height=v*T, duration=T))``.

    **Raises:** `ValueError` if `s` is not a signal, or if its value jumps. `simulate` raises it for
    a `Sine` that begins with a jump inside the run.

    **Source:** Modelica.Mechanics.Translational.Sources.Position and Rotational.Sources.Position
    with exact = true.

    A mass on a belt that moves at 1 m/s:

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


class LinearPositionDependentForce(AbstractSource):
    """An external force that depends linearly on position: f = f_nominal + slope*(s - s0), positive
    in the direction of s.

    On guides and screw axes, this force comes from a cable chain, a counterweight or a guide that
    is not level. With slope = 0 the force is a constant offset. With slope < 0 the force pulls
    towards the position of zero force, with slope > 0 it pushes away.

    The potential energy is -(f_nominal*(s - s0) + slope/2*(s - s0)^2), which is 0 at s0 and may be
    negative. The potential energy counts in `run.energy.elastic`, so the work of this force is not
    in `run.energy.drive`.

    **Arguments:** `body`: name of the body that the force acts on, with ``.flange_a`` if it does
    not act at flange_b; `f_nominal`: force at `s0` [N]; `slope` [N/m]; `s0` [m]. A fit changes `s0`
    only if the user names it, because a record identifies only f_nominal - slope*s0.

    **Raises:** `ValueError` for a value that is not finite.

    **Source:** Modelica.Mechanics.Translational.Sources.LinearSpeedDependentForce, with the
    position in place of the speed.

    >>> import frictax as fx, jax.numpy as jnp
    >>> axis = fx.Mechanism(
    ...     mass=fx.Mass(m=2.0), offset=fx.LinearPositionDependentForce("mass", f_nominal=-4.0)
    ... )
    >>> round(float(fx.simulate(axis, ts=jnp.array([0.0, 1.0]))["mass"].s[-1]), 6)
    -1.0
    """

    f_nominal: Scalar = parameter(Real(), "N", default=0.0)
    slope: Scalar = parameter(Real(), "N/m", default=0.0)
    s0: Scalar = parameter(Real(), "m", fit=False, default=0.0)

    def elastic(self, s: Number) -> Number:
        return self.f_nominal + self.slope * (s - self.s0)

    def energy(self, s: Number) -> Number:
        return -(self.f_nominal + 0.5 * self.slope * (s - self.s0)) * (s - self.s0)


class PeriodicPositionDependentForce(AbstractSource):
    """An external force that is periodic in position: f = f_cos*cos(2*pi*(s - s0)/period) +
    f_sin*sin(2*pi*(s - s0)/period), positive in the direction of s.

    Examples are the cogging of a motor, the ripple of a lead screw or a gear, and a detent. The
    amplitude is sqrt(f_cos^2 + f_sin^2). The force is the same for both directions of motion. On a
    body that turns, f is a torque. The force pulls the body to stable positions, where f changes
    from positive to negative as s increases. A free mass oscillates about a stable position with
    the angular frequency sqrt(2*pi/period*amplitude/m).

    The potential energy is period/(2*pi)*(f_sin*cos(...) - f_cos*sin(...)), with mean 0 over a
    period. The potential energy counts in `run.energy.elastic`, so the work of this force is not in
    `run.energy.drive`.

    A record needs several samples in each period. `Adaptive` chooses steps that resolve the period.

    **Arguments:** `body`: name of the body that the force acts on, with ``.flange_a`` if it does
    not act at flange_b; `f_cos`, `f_sin` [N; N.m on a body that turns]; `period` > 0 [m; rad]: the
    pitch of a screw, or one turn divided by the number of poles or teeth; `s0` [m; rad]: the
    position at which f is f_cos; a change of `s0` only shifts the phase.

    A fit changes `period` and `s0` only if the user names them as parameters. The fit finds the
    period only if the start value is accurate: over the whole travel, the phase error must be below
    half a period. The methods `missing` and `residual_study` of the result of a fit search for the
    period. If the period is fitted, set `s0` to the middle of the travel. With another `s0`, a
    deviation of the period also changes the phase in the middle of the travel.

    **Raises:** `ValueError` for a value that is not finite or a period that is not positive.

    **Source:** the lowest harmonic of a cogging force: D. C. Hanselman, Brushless Permanent Magnet
    Motor Design, 2006. Modelica does not have such a component.

    A mass at a stable position oscillates with the period 2*pi/sqrt(2*pi/0.01*4.0/0.5) = 0.0886 s:

    >>> import frictax as fx, jax.numpy as jnp
    >>> axis = fx.Mechanism(
    ...     mass=fx.Mass(m=0.5, s=1e-6),
    ...     cogging=fx.PeriodicPositionDependentForce("mass", f_sin=-4.0, period=0.01),
    ... )
    >>> run = fx.simulate(axis, ts=jnp.array([0.0, 0.08862]), engine=fx.Adaptive(atol=1e-12))
    >>> round(float(run["mass"].s[-1]), 9)
    1e-06
    """

    f_cos: Scalar = parameter(Real(), "N", default=0.0)
    f_sin: Scalar = parameter(Real(), "N", default=0.0)
    period: Scalar = parameter(Positive(), "m", fit=False, kw_only=True)
    s0: Scalar = parameter(Real(), "m", fit=False, default=0.0)

    def _turn(self, s: Number) -> Number:
        return 2 * jnp.pi * (s - self.s0) / self.period

    def elastic(self, s: Number) -> Number:
        turn = self._turn(s)
        return self.f_cos * jnp.cos(turn) + self.f_sin * jnp.sin(turn)

    def energy(self, s: Number) -> Number:
        turn = self._turn(s)
        waves = self.f_sin * jnp.cos(turn) - self.f_cos * jnp.sin(turn)
        return self.period / (2 * jnp.pi) * waves


class _QuadraticSpeedDependent(AbstractSource):
    """A source with f = f_nominal*(v/v_nominal)*|v/v_nominal|."""

    dissipates: ClassVar[bool] = True
    is_smooth: ClassVar[bool] = False

    def nominal(self: Any) -> tuple[Scalar, Scalar]:
        """Return the nominal force and the nominal speed."""
        if self.rotational:
            return self.tau_nominal, self.w_nominal
        return self.f_nominal, self.v_nominal

    def driven(self, value: Number | None, s: Number, v: Number) -> Number:
        f_nominal, v_nominal = self.nominal()
        # The slope 2*|v| of v*|v| is continuous at v = 0, although the slope of |v| is not.
        return f_nominal * (v / v_nominal) * jnp.abs(v / v_nominal)


class QuadraticSpeedDependentForce(_QuadraticSpeedDependent):
    """An external force quadratic in the speed: f = f_nominal*(v/v_nominal)*|v/v_nominal|.

    With f_nominal < 0 the force opposes the motion in both directions, like the drag in air or in a
    liquid: f = -1/2*rho*cw*A*v*|v| has f_nominal = -1/2*rho*cw*A at v_nominal = 1 m/s. With
    f_nominal > 0 the force pushes in the direction of motion.

    The work of the force counts in `run.energy.damper`, like the loss of a damper: positive for
    f_nominal < 0, negative for f_nominal > 0.

    **Arguments:** `body`: name of the body that the force acts on; `f_nominal` [N]: the force at
    `v_nominal` > 0 [m/s]. A fit changes `v_nominal` only if the user names it, because a record
    identifies only f_nominal/v_nominal^2. With v_nominal = 1 m/s, -f_nominal is the factor k
    [N.s2/m2] in f = -k*v*|v|.

    **Raises:** `ValueError` for a value that is not finite or a v_nominal that is not positive.

    **Source:** Modelica.Mechanics.Translational.Sources.QuadraticSpeedDependentForce with
    ForceDirection = false: the force has the sign of the speed.

    A ball falls with a speed that approaches v = sqrt(m*g/0.02) = 7.0 m/s:

    >>> import frictax as fx, jax.numpy as jnp
    >>> ball = fx.Mechanism(
    ...     ball=fx.Mass(m=0.1),
    ...     weight=fx.Force("ball", 0.1 * 9.81),
    ...     drag=fx.QuadraticSpeedDependentForce("ball", f_nominal=-0.02),
    ... )
    >>> round(float(fx.simulate(ball, ts=jnp.array([0.0, 9.0]))["ball"].v[-1]), 4)
    7.0036
    """

    rotational = False
    f_nominal: Scalar = parameter(Real(), "N", default=0.0)
    v_nominal: Scalar = parameter(Positive(), "m/s", fit=False, default=1.0)


class QuadraticSpeedDependentTorque(_QuadraticSpeedDependent):
    """An external torque quadratic in the speed, such as the load of a fan: tau =
    tau_nominal*(w/w_nominal)*|w/w_nominal|.

    With `tau_nominal` < 0 [N.m] the torque opposes the motion in both directions; `w_nominal` > 0
    [rad/s], default 1. For energy and fitting, see `QuadraticSpeedDependentForce`.

    **Source:** Modelica.Mechanics.Rotational.Sources.QuadraticSpeedDependentTorque with
    TorqueDirection = false.

    A motor of 0.5 N.m turns its fan at w = sqrt(0.5/2e-4) = 50 rad/s:

    >>> import frictax as fx, jax.numpy as jnp
    >>> fan = fx.Mechanism(
    ...     rotor=fx.Inertia(J=1e-3),
    ...     motor=fx.Torque("rotor", 0.5),
    ...     fan=fx.QuadraticSpeedDependentTorque("rotor", tau_nominal=-2e-4),
    ... )
    >>> round(float(fx.simulate(fan, ts=jnp.array([0.0, 2.0]))["rotor"].w[-1]), 3)
    50.0
    """

    rotational = True
    tau_nominal: Scalar = parameter(Real(), "N.m", default=0.0)
    w_nominal: Scalar = parameter(Positive(), "rad/s", fit=False, default=1.0)
