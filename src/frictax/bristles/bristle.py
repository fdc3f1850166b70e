"""`AbstractBristle`: the interface of every bristle, and damping that decreases with speed."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from frictax.laws import AbstractLaw
from frictax.parameters import CheckedModule, Number, Positive, Scalar, Values
from frictax.parameters.arrays import larger


class AbstractBristle(CheckedModule):
    """An elastic layer between two faces. It bends before the faces slide, and slips at its limit.

    The relative velocity is v [m/s], and the deflection of the bristle is z [m]. g(abs(v)) [N] is
    the law of the contact without its viscous part. The friction is

        f = sigma_0*z + sigma_1*dz/dt + viscous_slope*v

    In steady sliding, friction equals the law for any bristle. The state variable of a simulation
    is the force sigma_0*z [N], so its absolute tolerance is a force. The bristles are `LuGre`,
    `Dahl`, `ElastoPlastic` and `MaxwellSlip` (with several states). Give one of these bristles to
    the field `bristle` of a `SupportFriction`, `BearingFriction`, `Brake` or `Clutch`.

    **Example:** at `LuGre`.

    A user's subclass needs the fields `sigma_0` and `z` and the methods `rate` and `moved`.
    """

    sigma_0: eqx.AbstractVar[Scalar]
    unit_of_owner: ClassVar[bool] = True  # error messages omit units
    # `__new__` rejects these arguments with advice. Problem files report the same error.
    refused: ClassVar[tuple[str, ...]] = ("sigma_2",)

    def __new__(cls, *args: Any, **fields: Any) -> "AbstractBristle":
        if "sigma_2" in fields:
            raise ValueError(
                f"`{cls.__name__}` must be given no sigma_2, got {fields['sigma_2']!r}: it is"
                " `F_prop` of the contact's law. Write it there."
            )
        return super().__new__(cls)

    @property
    def elements(self) -> int:
        """The number of elements that stick and slip independently. Each element has a force and a
        mode. If the number is 0, the bristle has one force and no mode.
        """
        return 0

    @abc.abstractmethod
    def rate(self, v: Number, force: Number, g: Number, least: Number) -> Number:
        """Return the rate of the force in the bristle [N/s] at velocity `v`.

        `g` > 0 is the force limit at this velocity, and `least` is the smallest limit over all
        speeds. The rate must be continuous in v, also at v = 0.
        """

    @abc.abstractmethod
    def moved(self, x: Number, force: Number, g: Number, least: Number) -> tuple[Number, Number]:
        """Return the force in the bristle after the faces moved by `x` [m] at constant speed, and
        the mean force over this distance. `force` is the force before this motion.
        """

    def damping(self, speed: Values, law: AbstractLaw) -> Values:
        """Return the damping sigma_1 [N.s/m] at `speed` >= 0, the factor of dz/dt in friction."""
        return jnp.zeros_like(speed)

    def energy(self, force: Number) -> Number:
        """Return the energy stored in the bristle [J]."""
        return force**2 / (2 * self.sigma_0)

    def start(self: Any) -> Number:
        """Return the force in the bristle at the start of a run [N], from the deflection `z`."""
        return self.sigma_0 * self.z


class Fading(Positive):
    """The domain of `v_d`, the speed over which damping decreases; inf for constant damping."""

    def rule(self) -> str:
        return "> 0, inf for a constant sigma_1"

    def contains(self, value: np.ndarray) -> bool:
        return bool(np.all(value > 0))


def fading_damping(sigma_1: Number, v_d: Number | None, speed: Values, law: AbstractLaw) -> Values:
    """Return sigma_1*exp(-(speed/v_d)**2), with 1/v_d from `inverse_fading_speed`."""
    return sigma_1 * jnp.exp(-((speed * inverse_fading_speed(sigma_1, v_d, law)) ** 2))


def inverse_fading_speed(sigma_1: Number, v_d: Number | None, law: AbstractLaw) -> Number:
    """Return 1/v_d [s/m], for the given `v_d` or for a default.

    The default v_d is sqrt(2*e)*F_S**2/(sigma_1*(F_S - F_C)), the largest value for which the
    contact never generates energy. F_S is the law at rest, F_C its minimum without the viscous
    part, and e Euler's number. For F_S > 2*F_C, 4*F_C replaces F_S**2/(F_S - F_C). If 1/fexp of a
    `Stribeck` law is lower than this speed, 1/fexp is the default.
    """
    if v_d is not None:
        return 1 / v_d
    if law.stribeck_dip is None:
        return jnp.zeros_like(sigma_1)
    least, inverse = law.stribeck_dip
    lost, most = law.f0 - least, law.f0
    # A law without a dry part has the minimum 0. The lower bound makes 1/(4*least) finite.
    least = larger(least, 1e-6 * most)
    # The result 1/v_d may be 0, but it must be finite.
    by_law = jnp.where(most > 2 * least, 1 / (4 * least), lost / most**2)
    return larger(inverse, sigma_1 * by_law / 2.3316439815971242)  # the divisor: sqrt(2*e)


def absolute_speed(v: Any) -> Any:
    """Return abs(v), with the derivative 1 at v = 0."""
    return jnp.where(v < 0, -v, v)
