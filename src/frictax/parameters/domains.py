"""Domains of parameters. Each domain has a smooth map from the real line to its values."""

import abc
import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

# Arrays of JAX or numpy. Outside of compiled programs numpy is used, because JAX compiles each
# operation.
Numbers = Array | np.ndarray


def _finite_exp(z: Array) -> Array:
    """Return exp(z), limited to 1e-100 ... 1e100, so that a parameter stays finite."""
    most = 230.0  # e^230 = 1e100
    return jnp.exp(jnp.clip(z, -most, most))


class AbstractDomain(abc.ABC):
    """The allowed values of a parameter, with a smooth map from the real line to these values."""

    # True if the map transforms each entry of an array independently of the others.
    entry_by_entry: ClassVar[bool] = True

    @abc.abstractmethod
    def rule(self) -> str:
        """Return the rule in words, as in ``">= 1"``, for an error message "must be >= 1"."""

    def remedy(self) -> str:
        """Return the sentence of an error message that explains what to write instead; empty if the
        rule itself is clear enough.
        """
        return ""

    def contains(self, value: np.ndarray) -> bool:
        """Return whether every entry of `value` satisfies the rule."""
        inside = (value >= self.bound()) & (value <= self.upper())
        return bool(np.all(inside & np.isfinite(value)))

    def on_edge(self, value: np.ndarray) -> bool:
        """Return whether an entry is at or beyond a bound of the domain. At a bound the
        unconstrained value is infinite, so a fit cannot move the value away from the bound.
        """
        return bool(np.any((value <= self.bound()) | (value >= self.upper())))

    def bound(self) -> float:
        """Return the lower bound of the entries; -inf without a bound."""
        return -np.inf

    def upper(self) -> float:
        """Return the upper bound of the entries; inf without a bound."""
        return np.inf

    def interval(self, value: float, half: float) -> tuple[float, float]:
        """Return the ends of a confidence interval around `value`, limited to the domain. `half`:
        half-width of the interval, from the linearised standard error.
        """
        return max(value - half, self.bound()), min(value + half, self.upper())

    @abc.abstractmethod
    def suggestion(self) -> str:
        """Return text that suggests a start value inside the domain, for an error message."""

    @abc.abstractmethod
    def to_unconstrained(self, value: Numbers) -> Numbers | np.floating:
        """Return the unconstrained value; it is a numpy array if `value` is a numpy array."""

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
    """A number > 0. A fit uses the logarithm of the number as the unknown.

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
        return _finite_exp(z)


@dataclasses.dataclass(frozen=True)
class LogScale(Positive):
    """A number > 0 with a confidence interval from value/k to value*k, k = exp(half-width/value). A
    fit uses the logarithm as the unknown, as for any `Positive`.

    `fit(log_scale=[...])` uses this domain for the parameters that it names.

    >>> from frictax.parameters import LogScale, Positive
    >>> [round(end, 3) for end in LogScale().interval(1.0, 0.8)]
    [0.449, 2.226]
    >>> Positive().interval(1.0, 0.8)
    (0.19999999999999996, 1.8)
    """

    def interval(self, value: float, half: float) -> tuple[float, float]:
        if not (value > 0 and half >= 0):
            return np.nan, np.nan
        # If half > 20 value, the factor `exp(half/value)` exceeds exp(20) = 4.9e8, so the record
        # does not identify the value.
        if half > 20.0 * value:
            return 0.0, np.inf
        factor = float(np.exp(half / value))
        return value / factor, value * factor


@dataclasses.dataclass(frozen=True)
class AtLeast(AbstractDomain):
    """A number >= `lower`. A fit uses the unknown z in value = lower + log(1 + exp(z)).

    The bound itself is a valid value (`peak = 1`, `F_Stribeck = 0`), but a fit cannot start there.

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
        # The result log(exp(x) - 1) is computed in a form that does not overflow.
        return x + xp.log(-xp.expm1(-x))

    def from_unconstrained(self, z: Array) -> Array:
        return self.lower + jax.nn.softplus(z)


@dataclasses.dataclass(frozen=True)
class Between(AbstractDomain):
    """A number between `lower` and `most`, for a parameter whose range is known. A fit uses the
    unknown z in value = lower + (most - lower)/(1 + exp(-z)).

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
    """A vector with strictly increasing entries. The unknowns of a fit are the first entry and the
    logarithms of the differences between entries.

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
        return jnp.cumsum(jnp.concatenate([z[:1], _finite_exp(z[1:])]))
