"""What every bristle offers to a contact."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from frictax.laws import AbstractLaw
from frictax.parameters import CheckedModule, Number, Positive, Scalar, Values
from frictax.parameters.arrays import larger

_ROOT_2E = 2.3316439815971242  # sqrt(2*e)


class AbstractBristle(CheckedModule):
    """The elastic film between two faces: it bends before they slide, and slides at its limit.

    With the relative velocity v [m/s], its deflection z [m] and what the law says but for its
    viscous part, g(abs(v)), the friction is

        f = sigma_0*z + sigma_1*dz/dt + viscous_slope*v

    and steady sliding that of the law, whatever the bristle. The state of a run is the force
    sigma_0*z [N], so that tolerances mean newtons. `LuGre`, `Dahl`, `ElastoPlastic` and, of several
    states, `MaxwellSlip` are bristles; give one to the field `bristle` of a `SupportFriction`,
    `BearingFriction`, `Brake` or `Clutch`.

    **Example:** at `LuGre`.

    A class of one's own has the fields `sigma_0` and `z`, and says how its force changes and where
    it gets to at a constant speed.
    """

    sigma_0: eqx.AbstractVar[Scalar]
    # names that `__new__` answers, which a problem file is to leave to it
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
        """Of how many elements it is made that stick and slip each by itself, with a force and a
        mode each; 0 where it has one force and no mode.
        """
        return 0

    @abc.abstractmethod
    def rate(self, v: Number, force: Number, g: Number, least: Number) -> Number:
        """How fast the force in the bristle changes [N/s] at velocity `v`, where the law says
        `g` > 0 and nowhere less than `least`.

        Continuous in v, also where that changes its sign.
        """

    @abc.abstractmethod
    def moved(self, x: Number, force: Number, g: Number, least: Number) -> tuple[Number, Number]:
        """The force in the bristle after the faces moved by `x` [m], at constant speed, and its
        mean on the way.
        """

    def damping(self, speed: Values, law: AbstractLaw) -> Values:
        """sigma_1 at this speed >= 0 [N.s/m]: the friction by the rate of z."""
        return jnp.zeros_like(speed)

    def energy(self, force: Number) -> Number:
        """What is stored in it [J]."""
        return force**2 / (2 * self.sigma_0)

    def start(self: Any) -> Number:
        """The force in it at the start [N], of a deflection `z`."""
        return self.sigma_0 * self.z


class Fading(Positive):
    """A speed over which something fades, inf where it never does."""

    def rule(self) -> str:
        return "> 0, inf for a constant sigma_1"

    def contains(self, value: np.ndarray) -> bool:
        return bool(np.all(value > 0))


def faded(sigma_1: Number, v_d: Number | None, speed: Values, law: AbstractLaw) -> Values:
    """sigma_1*exp(-(speed/v_d)**2), with `fading` for 1/v_d."""
    return sigma_1 * jnp.exp(-((speed * fading(sigma_1, v_d, law)) ** 2))


def fading(sigma_1: Number, v_d: Number | None, law: AbstractLaw) -> Number:
    """1/v_d [s/m]; where `v_d` is None, of the greatest for which the contact never gives energy,
    and no more than the speed over which the law falls.

    It is sqrt(2*e)*F_S**2/(sigma_1*(F_S - F_C)), F_S the law at rest and F_C where it is least;
    with 4*F_C in the place of F_S**2/(F_S - F_C) where F_S > 2*F_C.
    """
    if v_d is not None:
        return 1 / v_d
    if law.stribeck_dip is None:
        return jnp.zeros_like(sigma_1)
    least, inverse = law.stribeck_dip
    lost, most = law.f0 - least, law.f0
    least = larger(least, 1e-6 * most)  # a law without a dry part falls to 0
    # The inverse of that speed, which may be 0 but never infinite.
    by_law = jnp.where(most > 2 * least, 1 / (4 * least), lost / most**2)
    return larger(inverse, sigma_1 * by_law / _ROOT_2E)


def size_of(v: Any) -> Any:
    """abs(v), with the slope of v >= 0 at rest."""
    return jnp.where(v < 0, -v, v)
