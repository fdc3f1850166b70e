"""The sets of values a parameter may take."""

import abc
import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

# of either kind: before a compiled search numpy's, which compile nothing
Numbers = Array | np.ndarray


class AbstractDomain(abc.ABC):
    """The set of values a parameter may take, with a smooth map onto it from the whole
    real line.
    """

    # whether the map takes each entry by itself, whatever the shape
    entry_by_entry: ClassVar[bool] = True

    @abc.abstractmethod
    def rule(self) -> str:
        """The rule in words, as in ``">= 1"``; an error says "must be" before it."""

    def remedy(self) -> str:
        """What to write instead of a value that breaks the rule, as a sentence; empty where the
        rule says all.
        """
        return ""

    def contains(self, value: np.ndarray) -> bool:
        """Whether every entry of `value` satisfies the rule."""
        inside = (value >= self.bound()) & (value <= self.upper())
        return bool(np.all(inside & np.isfinite(value)))

    def on_edge(self, value: np.ndarray) -> bool:
        """Whether an entry lies where `to_unconstrained` is infinite, so that a fit could not leave
        it.
        """
        return bool(np.any((value <= self.bound()) | (value >= self.upper())))

    def bound(self) -> float:
        """What no entry lies below; -inf where there is no such number."""
        return -np.inf

    def upper(self) -> float:
        """What no entry lies above; inf where there is no such number."""
        return np.inf

    def interval(self, value: float, half: float) -> tuple[float, float]:
        """The ends of an interval about `value`, half as wide as `half` to first order, as far as
        the domain goes.
        """
        return max(value - half, self.bound()), min(value + half, self.upper())

    @abc.abstractmethod
    def suggestion(self) -> str:
        """Where a fit may start instead of on the edge."""

    @abc.abstractmethod
    def to_unconstrained(self, value: Numbers) -> Numbers | np.floating:
        """In numpy where `value` is numpy's."""

    @abc.abstractmethod
    def from_unconstrained(self, z: Array) -> Array: ...


@dataclasses.dataclass(frozen=True)
class Real(AbstractDomain):
    """Any finite number.

    **Example:** at `parameters.parameter`.
    """

    def rule(self) -> str:
        return "finite"

    def suggestion(self) -> str:
        return "any finite number"

    def to_unconstrained(self, value: Numbers) -> Numbers | np.floating:
        return value

    def from_unconstrained(self, z: Array) -> Array:
        return z


@dataclasses.dataclass(frozen=True)
class Positive(AbstractDomain):
    """A number > 0, moved on a logarithmic scale.

    **Example:** at `parameters.parameter`.
    """

    def rule(self) -> str:
        return "> 0"

    def remedy(self) -> str:
        return "Give a positive number."

    def contains(self, value: np.ndarray) -> bool:
        return bool(np.all((value > 0) & (value < np.inf)))

    def bound(self) -> float:
        return 0.0

    def suggestion(self) -> str:
        return "a positive number"

    def to_unconstrained(self, value: Numbers) -> Numbers | np.floating:
        return value.__array_namespace__().log(value)

    def from_unconstrained(self, z: Array) -> Array:
        return jnp.exp(z)


@dataclasses.dataclass(frozen=True)
class LogScale(Positive):
    """A number > 0 that is known by factors: moved on a logarithmic scale as any `Positive`, with
    intervals that are symmetric on that scale, from value/k to value*k, and never reach 0.

    What `fit(log_scale=[...])` gives the parameters that it names.

    >>> from frictax.parameters import LogScale, Positive
    >>> [round(end, 3) for end in LogScale().interval(1.0, 0.8)]
    [0.449, 2.226]
    >>> Positive().interval(1.0, 0.8)
    (0.19999999999999996, 1.8)
    """

    def interval(self, value: float, half: float) -> tuple[float, float]:
        if not (value > 0 and half >= 0):
            return np.nan, np.nan
        if half > 20.0 * value:  # a factor of 5e8: its size is not known at all
            return 0.0, np.inf
        factor = float(np.exp(half / value))
        return value / factor, value * factor


@dataclasses.dataclass(frozen=True)
class AtLeast(AbstractDomain):
    """A number >= `lower`: lower + log(1 + exp(z)).

    The bound itself is a valid value (`peak = 1`, `F_Stribeck = 0`) but not a place to start a fit.

    **Example:** at `parameters.parameter`.
    """

    lower: float

    def rule(self) -> str:
        return f">= {self.lower:g}"

    def remedy(self) -> str:
        return f"Give {self.lower:g} or more." if self.lower else "Give its size, without a sign."

    def bound(self) -> float:
        return self.lower

    def suggestion(self) -> str:
        if self.lower:
            return f"{self.lower + 0.05 * abs(self.lower):g}"
        return "a tenth of the size that you expect"

    def to_unconstrained(self, value: Numbers) -> Numbers | np.floating:
        xp, x = value.__array_namespace__(), value - self.lower
        # log(exp(x) - 1), written so that neither end overflows
        return x + xp.log(-xp.expm1(-x))

    def from_unconstrained(self, z: Array) -> Array:
        return self.lower + jax.nn.softplus(z)


@dataclasses.dataclass(frozen=True)
class Between(AbstractDomain):
    """A number between `lower` and `most`, moved on a logistic scale: what a user knows of one
    machine.

    >>> import jax.numpy as jnp
    >>> from frictax.parameters import Between
    >>> share = Between(0.0, 1.0)
    >>> z = share.to_unconstrained(jnp.array(0.25))
    >>> round(float(share.from_unconstrained(z)), 6), float(share.from_unconstrained(z + 99.0))
    (0.25, 1.0)
    """

    lower: float
    most: float

    def rule(self) -> str:
        return f"between {self.lower:g} and {self.most:g}"

    def remedy(self) -> str:
        return "Give a number inside."

    def bound(self) -> float:
        return self.lower

    def upper(self) -> float:
        return self.most

    def suggestion(self) -> str:
        return f"{0.5 * (self.lower + self.most):g}"

    def to_unconstrained(self, value: Numbers) -> Numbers | np.floating:
        return value.__array_namespace__().log((value - self.lower) / (self.most - value))

    def from_unconstrained(self, z: Array) -> Array:
        return self.lower + (self.most - self.lower) * jax.nn.sigmoid(z)


@dataclasses.dataclass(frozen=True)
class Increasing(AbstractDomain):
    """A vector whose entries strictly increase: the first, and the logarithms of the gaps.

    **Example:** at `parameters.parameter`.
    """

    entry_by_entry = False

    def rule(self) -> str:
        return "finite and strictly increasing"

    def remedy(self) -> str:
        return "Sort the rows and drop repeated ones."

    def contains(self, value: np.ndarray) -> bool:
        return bool(np.all(np.isfinite(value)) and np.all(np.diff(value) > 0))

    def on_edge(self, value: np.ndarray) -> bool:
        return bool(np.any(np.diff(value) <= 0))

    def suggestion(self) -> str:
        return "distinct values"

    def to_unconstrained(self, value: Numbers) -> Numbers | np.floating:
        xp = value.__array_namespace__()
        return xp.concat([value[:1], xp.log(xp.diff(value))])

    def from_unconstrained(self, z: Array) -> Array:
        return jnp.cumsum(jnp.concatenate([z[:1], jnp.exp(z[1:])]))
