"""Tied parameters: they are computed from other parameters, and therefore are not free."""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from frictax.parameters import (
    AbstractDomain,
    AtLeast,
    Between,
    Parameter,
    Positive,
    UnknownName,
    get,
    is_traced,
    parameters,
    replace,
)

Tied = Mapping[str, str | Callable[[Mapping[str, Any]], Any]]
_PRODUCT = re.compile(r"\s*(?:(?P<factor>[-+]?[0-9.][-+0-9.eE]*)\s*\*\s*)?(?P<path>[^\s*]+)\s*")


@dataclasses.dataclass(frozen=True)
class Tie:
    """A rule for the parameter `path`: it is `factor` times the parameter `source`, or the result
    of a `function` of all parameters by path.
    """

    path: str
    source: str = ""
    factor: float = 1.0
    function: Callable[[Mapping[str, Any]], Any] | None = None

    @property
    def says(self) -> str:
        """The rule of the tie as text, such as ``= 2 * rotor.J``."""
        if self.function is not None:
            return "tied by a function"
        return f"= {self.source}" if self.factor == 1.0 else f"= {self.factor:g} * {self.source}"

    def value(self, by: Mapping[str, Any]) -> Any:
        """Return the tied value, computed from the values of the other parameters (by path)."""
        return self.factor * by[self.source] if self.function is None else self.function(by)


class ByPath(Mapping[str, Any]):
    """A mapping from path to the value of each parameter of a setup. The values of tied parameters
    are computed from other parameters.
    """

    def __init__(self, setup: Any, ties: Sequence[Tie] = ()) -> None:
        self._setup, self._ties = setup, {tie.path: tie for tie in ties}
        self._known: dict[str, Any] = {}
        self._asked: list[str] = []

    def __getitem__(self, path: str) -> Any:
        if path in self._known:
            return self._known[path]
        if path in self._asked:
            circle = " -> ".join([*self._asked[self._asked.index(path) :], path])
            raise ValueError(f"`tied` goes in a circle, {circle}. Leave one of them untied.")
        if path in self._ties:
            self._asked.append(path)
            value = self._ties[path].value(self)
            self._asked.pop()
        else:
            value = get(self._setup, path)
        if isinstance(value, eqx.Module | tuple) or value is None:
            below = [p.path for p in parameters(self._setup) if p.path.startswith(f"{path}.")]
            names = ", ".join(below) or "them"
            raise UnknownName(f"{path!r} is not a number. Name one of {names}.")
        self._known[path] = value
        return value

    def __iter__(self) -> Iterator[str]:
        return (p.path for p in parameters(self._setup))

    def __len__(self) -> int:
        return len(parameters(self._setup))


def apply_ties(setup: Any, ties: Sequence[Tie]) -> Any:
    """Return `setup` with its tied parameters computed from other parameters."""
    if not ties:
        return setup
    by = ByPath(setup, ties)
    return replace(setup, {tie.path: by[tie.path] for tie in ties})


def ties_of(
    setup: Any, tied: Any, named: Mapping[str, Sequence[str]], unit: Callable[[Parameter], str]
) -> tuple[Tie, ...]:
    """Return one `Tie` for each parameter that the option `tied` names. If a part or law is tied,
    all its parameters that are fitted by default are tied. Raise `ValueError` for an impossible tie
    and `KeyError` for a path that does not exist. `named`: option -> paths that must not be tied;
    `unit`: function that returns a parameter's unit.
    """
    if not tied:
        return ()
    if not isinstance(tied, Mapping):
        raise ValueError(
            f"`tied` must be a dict of path -> path, 'factor * path' or function, got {tied!r}."
            " Write tied={'rotor2.J': 'rotor1.J'}."
        )
    here = {p.path: p for p in parameters(setup)}
    ties: dict[str, Tie] = {}
    for path, to in tied.items():
        for tie in _each(setup, here, path, to):
            if tie.path in ties:
                raise ValueError(f"`tied` names {tie.path!r} twice. Say once what it is equal to.")
            ties[tie.path] = tie
    for option, paths in named.items():
        for path in paths:
            if path in ties:
                raise ValueError(
                    f"{path!r} is in `{option}` and in `tied`: either it is free, or it follows"
                    f" ({ties[path].says}). Name it in one of the two."
                )
    by = ByPath(setup, tuple(ties.values()))
    for tie in ties.values():
        shape = np.shape(here[tie.path].value)
        value = by[tie.path]
        if isinstance(value, str) or np.shape(value) != shape:
            kind = "a number" if shape == () else f"numbers of shape {shape}"
            raise ValueError(f"`tied` must give {tie.path!r} {kind}, got {value!r}.")
        domain = here[tie.path].declaration.domain
        if not is_traced(value) and not domain.contains(np.asarray(value)):
            raise ValueError(
                f"`tied` must give {tie.path!r} a number that is {domain.rule()}, got {value} from"
                " the start values."
            )
        if tie.source and tie.factor == 1.0:
            units = unit(here[tie.path]), unit(here[tie.source])
            if units[0] != units[1]:
                raise ValueError(
                    f"`tied` cannot make {tie.path!r} [{units[0]}] equal to {tie.source!r}"
                    f" [{units[1]}]: their units differ. Write 'factor * {tie.source}' for the"
                    " factor that converts one to the other."
                )
    for tie in ties.values():
        differentiable(lambda s, tie=tie: tie.value(ByPath(s)), setup, f"`tied` of {tie.path!r}")
    return tuple(ties.values())


def differentiable(function: Callable[[Any], Any], setup: Any, what: str) -> Any:
    """Return the shape and type of `function(setup)`. Raise `ValueError` if JAX cannot trace it."""
    try:
        return eqx.filter_eval_shape(function, setup)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        raise ValueError(
            f"{what} must be made of operations that JAX differentiates, without `float`, `if` and"
            " numpy's functions. Write jnp.sqrt(...) for np.sqrt(...), say, and jnp.where(...) for"
            " `if`."
        ) from error


def _each(setup: Any, here: Mapping[str, Parameter], path: Any, to: Any) -> list[Tie]:
    if not isinstance(path, str) or not (isinstance(to, str) or callable(to)):
        raise ValueError(
            f"`tied` must say of a path what it is equal to, a path, 'factor * path' or a function"
            f" of all parameters by path, got {path!r}: {to!r}."
        )
    get(setup, path)  # raises `KeyError` if the name does not exist
    if callable(to):
        if path not in here:
            raise ValueError(
                f"`tied` has a function for {path!r}, which is not a number. Name one."
            )
        return [Tie(path, function=to)]
    found: Any = _PRODUCT.fullmatch(to)
    try:
        factor, source = float(found["factor"] or 1.0), found["path"]
    except (TypeError, ValueError):  # no match, or the factor is not a number
        factor, source = np.nan, ""
    if not np.isfinite(factor):
        raise ValueError(
            f"`tied` of {path!r} must be a path or 'factor * path', got {to!r}. Write '0.5 *"
            " rotor.J', say, or a function."
        )
    get(setup, source)
    if path in here and source in here:
        return [Tie(path, source, factor)]
    below = {
        p.path.removeprefix(f"{path}."): p
        for p in here.values()
        if p.path.startswith(f"{path}.") and p.declaration.fit
    }
    missing = [rest for rest in below if f"{source}.{rest}" not in here]
    if not below or missing:
        raise ValueError(
            f"`tied` cannot make {path!r} equal to {source!r}: they have not the same parameters"
            f"{f', {missing[0]!r} in the first alone' if missing else ''}. Tie numbers one by one."
        )
    return [Tie(f"{path}.{rest}", f"{source}.{rest}", factor) for rest in below]


def tied_domain(
    ties: Sequence[Tie], path: str, domain: AbstractDomain, of: Callable[[str], AbstractDomain]
) -> AbstractDomain:
    """Return the subset of `domain` (the domain of `path`) for which all parameters tied to `path`
    stay in their own domains. `of`: function that returns the domain of a path.
    """
    if not domain.entry_by_entry:
        return domain
    low, high, factors = domain.bound(), domain.upper(), {path: 1.0}
    for _ in ties:  # each pass adds parameters tied to those of the previous pass
        factors |= {t.path: t.factor * factors[t.source] for t in ties if t.source in factors}
    ends, is_open = [], isinstance(domain, Positive)
    for other, factor in factors.items():
        theirs = of(other)
        if other == path or factor == 0.0 or not theirs.entry_by_entry:
            continue
        ends.append((other, theirs, sorted((theirs.bound() / factor, theirs.upper() / factor))))
    for other, theirs, (least, most) in ends:
        is_open |= least > low or (least == low and isinstance(theirs, Positive))
        low, high = max(low, least), min(high, most)
        if not low < high:
            raise ValueError(
                f"`tied` allows no value of {path!r}: it must be {domain.rule()}, and {other!r},"
                f" which follows it, {theirs.rule()}. Change the bounds of one."
            )
    if (low, high) == (domain.bound(), domain.upper()) and is_open == isinstance(domain, Positive):
        return domain
    if np.isfinite(high):
        return Between(low, high) if np.isfinite(low) else domain
    return Positive() if low == 0.0 and is_open else AtLeast(low) if np.isfinite(low) else domain


def tied_again(ties: Sequence[Tie]) -> dict[str, Any]:
    """Convert `ties` to a value of the option `tied`, for another fit with the same ties."""
    return {
        t.path: t.function or (t.source if t.factor == 1.0 else f"{t.factor!r} * {t.source}")
        for t in ties
    }
