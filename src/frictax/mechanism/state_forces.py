"""External forces that follow from a flange's position or speed alone."""

from typing import Any, ClassVar

import jax.numpy as jnp

from frictax.parameters import Number, Positive, Real, Scalar, parameter

from .forces import AbstractSource


class LinearPositionDependentForce(AbstractSource):
    """An external force that changes in a straight line with position: f = f_nominal + slope*(s -
    s0), positive in the direction of s.

    Measured guides and screw axes have one, from a cable chain, a counterweight or a guide out of
    level; with slope = 0 it is a machine's constant offset. A slope < 0 pulls back to where f is 0,
    one > 0 drives away from there.

    Its energy is the potential -(f_nominal*(s - s0) + slope/2*(s - s0)^2), 0 at s0 and of either
    sign; it counts in `run.energy.elastic`, so that no work of it goes into `run.energy.drive`.

    **Arguments:** `body`: name of the body it acts on, with ``.flange_a`` if not its flange_b;
    `f_nominal` [N], the force at `s0` [m], and `slope` [N/m], any numbers. `s0` is not fitted
    unless asked for: f_nominal - slope*s0 is all that shows.

    **Raises:** `ValueError` for a value that is not finite.

    **Source:** the position's counterpart of
    Modelica.Mechanics.Translational.Sources.LinearSpeedDependentForce.

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
    """An external force that repeats itself over position: f = f_cos*cos(2*pi*(s - s0)/period) +
    f_sin*sin(2*pi*(s - s0)/period), positive in the direction of s.

    The cogging of a motor, the ripple of a lead screw or a gear, the seat of a detent: its size is
    sqrt(f_cos^2 + f_sin^2), and it is the same forward and backward. On a body that turns it is a
    torque. It holds a body in its valleys, the places where f falls through 0: about one of them a
    free mass swings by w = sqrt(2*pi/period*size/m).

    Its energy is the potential period/(2*pi)*(f_sin*cos(...) - f_cos*sin(...)), of mean 0 over a
    period; it counts in `run.energy.elastic`, so that no work of it goes into `run.energy.drive`.

    Steps must resolve it: those of `Adaptive` do so by themselves, of a record several samples have
    to lie in each period.

    **Arguments:** `body`: name of the body it acts on, with ``.flange_a`` if not its flange_b;
    `f_cos`, `f_sin` [N; N.m on what turns], any numbers; `period` > 0 [m; rad]: a screw's pitch, a
    turn over the number of poles or teeth; `s0` [m; rad]: the position at which f is f_cos, which
    shifts only the phase. Neither of the latter two is fitted unless asked for. A wrong period fits
    about as badly as any other, so that a search finds its way only from one that is right within
    half a wave over the whole travel: `found.missing()` and `found.residual_study()` look for such
    a one among all. Where it is fitted, have s0 in the middle of the travel, or an error of the
    period turns the phase as well.

    **Raises:** `ValueError` for a value that is not finite and a period that is not positive.

    **Source:** the lowest harmonic of a cogging force: D. C. Hanselman, Brushless Permanent Magnet
    Motor Design, 2006. Modelica has no counterpart.

    A mass in a valley swings once in 2*pi/sqrt(2*pi/0.01*4.0/0.5) = 0.0886 s:

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
    """f = f_nominal*(v/v_nominal)*|v/v_nominal|."""

    dissipates: ClassVar[bool] = True
    is_smooth: ClassVar[bool] = False

    def nominal(self: Any) -> tuple[Scalar, Scalar]:
        """The force at the nominal speed, and this."""
        if self.rotational:
            return self.tau_nominal, self.w_nominal
        return self.f_nominal, self.v_nominal

    def driven(self, value: Number | None, s: Number, v: Number) -> Number:
        f_nominal, v_nominal = self.nominal()
        # the slope of v*|v|, 2*|v|, has no jump at v = 0
        return f_nominal * (v / v_nominal) * jnp.abs(v / v_nominal)


class QuadraticSpeedDependentForce(_QuadraticSpeedDependent):
    """An external force over the square of the speed: f = f_nominal*(v/v_nominal)*|v/v_nominal|.

    With f_nominal < 0 it opposes the motion both ways: the drag of air or of a liquid,
    f = -1/2*rho*cw*A*v*|v| having f_nominal = -1/2*rho*cw*A at the v_nominal of 1 m/s. With
    f_nominal > 0 it pushes in the direction of motion. A body at rest feels none of it.

    What it takes counts in `run.energy.damper`, as of a damper; what one with f_nominal > 0 brings
    in counts there with the other sign.

    **Arguments:** `body`: name of the body it acts on; `f_nominal` [N], any number, the force at
    `v_nominal` > 0 [m/s]. The latter is not fitted unless asked for, as f_nominal/v_nominal^2 is
    all that shows; at 1 m/s, unless given, -f_nominal is the coefficient of drag [N.s2/m2].

    **Raises:** `ValueError` for a value that is not finite and a v_nominal that is not positive.

    **Source:** Modelica.Mechanics.Translational.Sources.QuadraticSpeedDependentForce with
    ForceDirection = false, its force being of the sign of the speed; the other one, of one sign
    both ways, is not here.

    A ball falls ever more slowly than v = sqrt(m*g/0.02) = 7.0 m/s:

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
    """An external torque over the square of the speed, such as of a fan: tau =
    tau_nominal*(w/w_nominal)*|w/w_nominal|.

    With `tau_nominal` < 0 [N.m] it opposes the motion both ways; `w_nominal` > 0 [rad/s], 1 unless
    given. All else is as of `QuadraticSpeedDependentForce`.

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
