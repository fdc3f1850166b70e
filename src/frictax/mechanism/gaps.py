"""Springs that act only beyond a limit of the extension: gaps and backlash."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.annotations import ScalarLike
from frictax.parameters import AtLeast, Integer, Number, Real, Scalar, parameter
from frictax.parameters.arrays import larger

from .forces import AbstractCompliant

# Segments of the force law of a gap (spring force f_c, damper force f_d). At the side of smaller
# s_rel, the segment number is negative. TOUCHES: f_d is inside its limits -f_c and f_c.
# LIFTED: f_d = -f_c, so the normal force is 0. DOUBLED: f_d = f_c, so the normal force is 2*f_c.
OPEN, TOUCHES, LIFTED, DOUBLED = 0, 1, 2, 3


class AbstractGap(AbstractCompliant):
    """A spring and a damper that act only while two surfaces touch: the depth of contact is x > 0.

    The normal force is f_c + f_d, where f_c = c*x^n. The damper force f_d = d*dx/dt is limited to
    the range -f_c ... f_c. Therefore the normal force never pulls, and it is continuous when the
    contact begins. Events: contact begins or ends, and the damper force reaches or leaves a limit.
    """

    c: eqx.AbstractVar[Scalar]
    d: eqx.AbstractVar[Scalar]
    sides: ClassVar[tuple[int, ...]]
    is_smooth: ClassVar[bool]  # whether the slope of the force is smooth where contact begins

    @abc.abstractmethod
    def depth(self, s_rel: Number, side: ScalarLike) -> Number:
        """Return the depth [m] of contact at `side` (+1 or -1); it is negative in a gap."""

    @abc.abstractmethod
    def exponent(self) -> ScalarLike:
        """Return the exponent n of the spring force c*x^n."""

    def energy(self, s_rel: Number) -> Number:
        deep = [self.depth(s_rel, side) for side in self.sides]
        return sum(
            (jnp.where(x > 0, self._spring(x) * x / (self.exponent() + 1), 0.0) for x in deep),
            jnp.zeros_like(s_rel),
        )

    def forces(self, s_rel: Number, v_rel: Number, piece: Integer) -> tuple[Array, Array]:
        side, kind = jnp.where(piece < 0, -1, 1), jnp.abs(piece)
        spring, damper = self._spring(self.depth(s_rel, side)), self.d * side * v_rel
        damper = jnp.where(kind == TOUCHES, damper, jnp.where(kind == LIFTED, -spring, spring))
        touches = piece != OPEN
        return jnp.where(touches, side * spring, 0.0), jnp.where(touches, side * damper, 0.0)

    def margins(
        self, s_rel: Number, v_rel: Number, piece: Integer, rounding: Array
    ) -> tuple[Array, Array]:
        """Return two event functions, which are positive while the gap is on segment `piece`. A
        multiple of `rounding` [m], the rounding error of s_rel, is added to each event function.

        Both event functions are depths, also at the limits of the damper force. For n > 1 the force
        c*x^n reaches 0 with slope 0, and such a zero is located inaccurately.
        """
        side, kind = jnp.where(piece < 0, -1, 1), jnp.abs(piece)
        x, borne = self.depth(s_rel, side), self._depth_under(self.d * side * v_rel)
        slack = rounding * (1 + jax.lax.stop_gradient(jnp.abs(borne)))
        # Add only half of the rounding error: with a backlash of 0, surfaces that separate at one
        # side must touch at the other side at once.
        away = [0.5 * slack - self.depth(s_rel, which) for which in self.sides] + [
            jnp.full_like(s_rel, jnp.inf)
        ]
        bound = jnp.where(
            kind == TOUCHES, x - borne, jnp.where(kind == LIFTED, -x - borne, borne - x)
        )
        first = jnp.where(kind == OPEN, away[0], jnp.where(kind == TOUCHES, x + borne, x) + slack)
        return first, jnp.where(kind == OPEN, away[1], bound + slack)

    def following(
        self, s_rel: Array, v_rel: Array, piece: Integer, first: Array, second: Array
    ) -> Integer:
        """Return the segment after an event. `first`, `second`: True if the first or the second
        event function of `margins` fell to 0."""
        side, kind = jnp.where(piece < 0, -1, 1), jnp.abs(piece)
        touched = jnp.where(first, self.sides[0], self.sides[-1])
        begun = touched * jnp.where(self.d * touched * v_rel > 0, DOUBLED, TOUCHES)
        left = jnp.where((kind == TOUCHES) & (self.depth(s_rel, side) > 0), side * LIFTED, OPEN)
        moved = jnp.where(first, left, side * jnp.where(kind == TOUCHES, DOUBLED, TOUCHES))
        return jnp.where(first | second, jnp.where(kind == OPEN, begun, moved), piece)

    def piece_at(self, s_rel: Number, v_rel: Number) -> Integer:
        """Return the segment of the force law at the start of a run."""
        piece = jnp.zeros(jnp.shape(s_rel), jnp.int32)
        for side in self.sides:
            x, damper = self.depth(s_rel, side), self.d * side * v_rel
            kind = jnp.where(
                damper > self._spring(x),
                DOUBLED,
                jnp.where(damper < -self._spring(x), LIFTED, TOUCHES),
            )
            piece = jnp.where(x > 0, side * kind, piece)
        return piece

    def _spring(self, x: Array) -> Array:
        """Return c*x^n for x >= 0, and -c*(-x)^n for x < 0."""
        # At x = 0 the derivative of x^n with respect to n is not finite, so 1 replaces x = 0.
        size = jnp.where(x == 0, 1.0, jnp.abs(x))
        return jnp.where(x == 0, 0.0, self.c * x * size ** (self.exponent() - 1))

    def _depth_under(self, f: Array) -> Array:
        """Return the depth at which the spring force is `f`; a very large depth if c is 0."""
        x = f / larger(self.c, float(jnp.finfo(f.dtype).tiny) ** 0.5)
        return x * jnp.where(x == 0, 1.0, jnp.abs(x)) ** (1 / self.exponent() - 1)


class ElastoGap(AbstractGap):
    """An elastic stop: a spring and a damper between two bodies that touch if s_rel < s_rel0.

    While x = s_rel0 - s_rel > 0, the force f_c + f_d pushes the bodies apart. The spring force is
    f_c = c*x^n. The damper force is f_d = -d*v_rel, limited to the range -f_c ... f_c. For x <= 0
    the force is 0.

    **Arguments:** `a`, `b`: the flanges, as for a `Spring`; `c` >= 0 [N/m^n], `d` >= 0 [N.s/m],
    `s_rel0` [m]: extension at which contact begins; `n` >= 1 (1.5 for Hertz's contact of spheres).

    **Raises:** `ValueError` for a value outside its domain.

    **Source:** Modelica Standard Library 4.1.0.

    A ball of 1 kg hits a spring of 100 N/m at 1 m/s and leaves it after half a period:

    >>> import frictax as fx, jax.numpy as jnp
    >>> machine = fx.Mechanism(
    ...     floor=fx.Fixed(),
    ...     ball=fx.Mass(m=1.0, s=0.5, v=-1.0),
    ...     ground=fx.ElastoGap("floor", "ball", c=100.0, d=0.0),
    ... )
    >>> run = fx.simulate(machine, jnp.array([0.0, 0.5 + jnp.pi / 10 + 0.2]))
    >>> round(float(run["ball"].s[-1]), 6), round(float(run["ball"].v[-1]), 6)
    (0.2, 1.0)
    """

    rotational = False
    sides = (-1,)
    is_smooth = False  # For n < 2 the force law is not smooth where contact begins.
    c: Scalar = parameter(AtLeast(0.0), "N/m")
    d: Scalar = parameter(AtLeast(0.0), "N.s/m")
    s_rel0: Scalar = parameter(Real(), "m", fit=False, default=0.0)
    n: Scalar = parameter(AtLeast(1.0), "1", fit=False, default=1.0)

    def depth(self, s_rel: Number, side: ScalarLike) -> Number:
        return side * (s_rel - self.s_rel0)

    def exponent(self) -> ScalarLike:
        return self.n


class ElastoBacklash(AbstractGap):
    """A shaft with backlash between two turning bodies: a spring and a damper, which act only while
    |phi_rel - phi_rel0| > backlash/2.

    Let x = |phi_rel - phi_rel0| - backlash/2. While x > 0, the torque tau_c + tau_d pushes the
    bodies toward the middle of the gap. The spring torque is tau_c = c*x. The damper torque is
    tau_d = d*dx/dt, limited to the range -tau_c ... tau_c. In the gap the torque is 0.

    **Arguments:** `a`, `b`: the bodies, as for a `RotationalSpring`; `c` >= 0 [N.m/rad]; `d` >= 0
    [N.m.s/rad]; `backlash` >= 0 [rad]: the total backlash, Modelica's b; `phi_rel0` [rad].

    **Raises:** `ValueError` for a value outside its domain.

    **Source:** Modelica Standard Library 4.1.0, Rotational.Components.ElastoBacklash.

    >>> import frictax as fx
    >>> float(fx.ElastoBacklash("motor", "load", c=1e4, d=1.0, backlash=0.02).backlash)
    0.02
    """

    rotational = True
    sides = (1, -1)
    is_smooth = True
    c: Scalar = parameter(AtLeast(0.0), "N.m/rad")
    d: Scalar = parameter(AtLeast(0.0), "N.m.s/rad")
    backlash: Scalar = parameter(AtLeast(0.0), "rad")
    phi_rel0: Scalar = parameter(Real(), "rad", fit=False, default=0.0)

    def exponent(self) -> ScalarLike:
        return 1.0

    def depth(self, s_rel: Number, side: ScalarLike) -> Number:
        return side * (s_rel - self.phi_rel0) - 0.5 * self.backlash
