"""Priors: knowledge about parameters that does not come from the data, as additional residuals."""

import abc
from collections.abc import Mapping

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.arguments import is_finite_number
from frictax.parameters import Numbers
from frictax.pytree import Pickled
from frictax.text import brief


class AbstractPrior(Pickled, eqx.Module):
    """Prior knowledge of one parameter, as residuals in units of their standard deviation."""

    path: eqx.AbstractVar[str]

    @abc.abstractmethod
    def residuals(self, values: Mapping[str, Numbers | float]) -> Float[Array, " r"]:
        """Return the residuals divided by their standard deviations; `values`: path -> value."""


class Normal(AbstractPrior):
    """A normal prior of the parameter `path` with `mean` and standard deviation `sd` > 0, in the
    parameter's unit. Such a prior suits a weighed mass or an inertia from a data sheet.

    >>> import frictax as fx
    >>> fx.Normal("mass.m", mean=95.0, sd=0.5).residuals({"mass.m": 96.0}).tolist()
    [2.0]
    """

    path: str = eqx.field(static=True)
    mean: float = eqx.field(static=True)
    sd: float = eqx.field(static=True)

    def __check_init__(self) -> None:
        _check_sd(self, self.sd)
        if not is_finite_number(self.mean):
            raise ValueError(
                f"`Normal.mean` of {self.path!r} must be a finite number, got {self.mean!r}. Give"
                " it in the parameter's unit."
            )

    def residuals(self, values: Mapping[str, Numbers | float]) -> Float[Array, " r"]:
        return jnp.ravel((jnp.asarray(values[self.path]) - self.mean) / self.sd)


class Smooth(AbstractPrior):
    """A prior that the forces of a `Table` are smooth: their second differences are 0 with standard
    deviation `sd` [N]. An example of `path` is ``"friction.f_pos.f"``.

    Without this prior, the force of a fitted table with many nodes jumps at speeds that are
    frequent in the record. If the speeds of the table are not evenly spaced, the second differences
    are the second derivatives times the square of the mean spacing.

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 6.0, 601)
    >>> v = np.sin(1.3 * t) + np.sin(3.1 * t)

    >>> a = 1.3 * np.cos(1.3 * t) + 3.1 * np.cos(3.1 * t)
    >>> noise = 0.5 * np.random.default_rng(0).standard_normal(601)
    >>> record = fx.Record(t, {"drive": a + np.sign(v) * (1.0 + 0.2 * v**2) + noise}, {"mass.v": v})
    >>> nodes = np.linspace(0.0, 2.0, 11)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=np.stack([nodes, np.ones(11)], axis=1)),
    ...     drive=fx.Force("mass", 0.0),
    ... )
    >>> for priors in ([], [fx.Smooth("friction.f_pos.f", sd=0.02)]):
    ...     found = fx.fit(
    ...         block, record, free="friction.f_pos", priors=priors, objective=fx.InverseDynamics()
    ...     )
    ...     bends = np.diff(found.model["friction"].f_pos.f, 2)
    ...     print(f"{np.sqrt(np.mean(bends**2)):.3f} N")
    0.145 N
    0.011 N
    """

    path: str = eqx.field(static=True)
    sd: float = eqx.field(static=True)

    def __check_init__(self) -> None:
        _check_sd(self, self.sd)

    def residuals(self, values: Mapping[str, Numbers | float]) -> Float[Array, " r"]:
        """Return the second differences / sd. Without the speeds of the table in `values` (path
        -> value), the speeds are taken as evenly spaced.
        """
        f = jnp.ravel(jnp.asarray(values[self.path]))
        v = values.get(f"{self.path.rpartition('.')[0]}.v".removeprefix("."))
        steps = jnp.ones(f.size - 1) if v is None else jnp.diff(jnp.asarray(v))
        steps = steps / jnp.mean(steps)
        return 2.0 * jnp.diff(jnp.diff(f) / steps) / (steps[1:] + steps[:-1]) / self.sd


def _check_sd(prior: AbstractPrior, sd: float) -> None:
    if not isinstance(prior.path, str):
        raise ValueError(
            f"`{type(prior).__name__}.path` must be the path of a parameter, got {prior.path!r}."
            " Write 'mass.m', say."
        )
    if not (is_finite_number(sd) and 0 < sd * sd < np.inf):
        raise ValueError(
            f"`{type(prior).__name__}.sd` of {prior.path!r} must be > 0, got {brief(sd)}. Leave the"
            " prior out where nothing is known."
        )
