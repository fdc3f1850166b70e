"""What acts between two flanges, or on one."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from frictax.parameters import AtLeast, Real, Scalar, check, parameter
from frictax.signals import Drive, as_signal, check_signal


class AbstractCompliant(eqx.Module):
    """A force f [N] between the flanges `a` and `b` of two bodies, positive when it pulls them together.

    s_rel = s_b - s_a [m], v_rel = v_b - v_a [m/s]. A body's name alone means the flange_b of the first and the flange_a of the second.
    """

    a: eqx.AbstractVar[str]
    b: eqx.AbstractVar[str]

    def elastic(self, s_rel: Float[Array, ""]) -> Float[Array, ""]:
        """The part of f that stores energy."""
        return jnp.zeros_like(s_rel)

    def energy(self, s_rel: Float[Array, ""]) -> Float[Array, ""]:
        """The energy stored [J]."""
        return jnp.zeros_like(s_rel)

    def viscous(self, v_rel: Float[Array, ""]) -> Float[Array, ""]:
        """The part of f that takes energy out."""
        return jnp.zeros_like(v_rel)


class Spring(AbstractCompliant):
    """A linear spring, f = c*(s_rel - s_rel0): `c` >= 0 [N/m], unstretched length `s_rel0` [m]."""

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    c: Scalar = parameter(AtLeast(0.0), "N/m")
    s_rel0: Scalar = parameter(Real(), "m", fit=False, default=0.0)

    def __check_init__(self) -> None:
        check(self)

    def elastic(self, s_rel: Float[Array, ""]) -> Float[Array, ""]:
        return self.c * (s_rel - self.s_rel0)

    def energy(self, s_rel: Float[Array, ""]) -> Float[Array, ""]:
        return 0.5 * self.c * (s_rel - self.s_rel0) ** 2


class Damper(AbstractCompliant):
    """A linear damper, f = d*v_rel: `d` >= 0 [N.s/m]."""

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    d: Scalar = parameter(AtLeast(0.0), "N.s/m")

    def __check_init__(self) -> None:
        check(self)

    def viscous(self, v_rel: Float[Array, ""]) -> Float[Array, ""]:
        return self.d * v_rel


class SpringDamper(AbstractCompliant):
    """A linear spring and a linear damper in parallel, f = c*(s_rel - s_rel0) + d*v_rel."""

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    c: Scalar = parameter(AtLeast(0.0), "N/m")
    d: Scalar = parameter(AtLeast(0.0), "N.s/m")
    s_rel0: Scalar = parameter(Real(), "m", fit=False, default=0.0)

    def __check_init__(self) -> None:
        check(self)

    def elastic(self, s_rel: Float[Array, ""]) -> Float[Array, ""]:
        return self.c * (s_rel - self.s_rel0)

    def energy(self, s_rel: Float[Array, ""]) -> Float[Array, ""]:
        return 0.5 * self.c * (s_rel - self.s_rel0) ** 2

    def viscous(self, v_rel: Float[Array, ""]) -> Float[Array, ""]:
        return self.d * v_rel


class Force(eqx.Module):
    """An external force on a flange: `f` [N] is a signal, a function of time or a number, positive in the direction of s."""

    body: str = eqx.field(static=True)
    f: Drive = eqx.field(converter=as_signal)

    def __check_init__(self) -> None:
        self.check_rules()

    def check_rules(self) -> None:
        """Raise `ValueError` for a signal that is none."""
        check_signal(self, "f")
