"""A parameter's domain and unit, declared on the field that holds it.

Physical values live in the model; only a fit leaves them for unconstrained space, through
`to_unconstrained` and `from_unconstrained`. A fit may move what its user names by path, such as
``"friction.peak"``.
"""

import abc
import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_KEY = "frictax_parameter"

# What a parameter's field holds. A type checker, which does not run the field's converter, lets numbers and lists pass.
if TYPE_CHECKING:
    Scalar = Any
    Vector = Any
else:
    Scalar = Float[Array, ""]
    Vector = Float[Array, " n"]


class AbstractDomain(abc.ABC):
    """The set of values a parameter may take, with a smooth map onto it from the whole real line."""

    @abc.abstractmethod
    def rule(self) -> str:
        """The rule in words, as in ``">= 1"``; an error says "must be" before it."""

    @abc.abstractmethod
    def remedy(self) -> str:
        """What to write instead of a value that breaks the rule, as a sentence; empty where the rule says all."""

    @abc.abstractmethod
    def contains(self, value: np.ndarray) -> bool:
        """Whether every entry of `value` satisfies the rule."""

    @abc.abstractmethod
    def on_edge(self, value: np.ndarray) -> bool:
        """Whether an entry lies where `to_unconstrained` is infinite, so that a fit could not leave it."""

    @abc.abstractmethod
    def suggestion(self) -> str:
        """Where a fit may start instead of on the edge."""

    @abc.abstractmethod
    def to_unconstrained(self, value: Array) -> Array: ...

    @abc.abstractmethod
    def from_unconstrained(self, z: Array) -> Array: ...


@dataclasses.dataclass(frozen=True)
class Real(AbstractDomain):
    """Any finite number."""

    def rule(self) -> str:
        return "finite"

    def remedy(self) -> str:
        return ""

    def contains(self, value: np.ndarray) -> bool:
        return bool(np.all(np.isfinite(value)))

    def on_edge(self, value: np.ndarray) -> bool:
        return False

    def suggestion(self) -> str:
        return "any finite number"

    def to_unconstrained(self, value: Array) -> Array:
        return value

    def from_unconstrained(self, z: Array) -> Array:
        return z


@dataclasses.dataclass(frozen=True)
class Positive(AbstractDomain):
    """A number > 0, moved on a logarithmic scale."""

    def rule(self) -> str:
        return "> 0"

    def remedy(self) -> str:
        return "Give a positive number."

    def contains(self, value: np.ndarray) -> bool:
        return bool(np.all(np.isfinite(value)) and np.all(value > 0))

    def on_edge(self, value: np.ndarray) -> bool:
        return bool(np.any(value <= 0))

    def suggestion(self) -> str:
        return "a positive number"

    def to_unconstrained(self, value: Array) -> Array:
        return jnp.log(value)

    def from_unconstrained(self, z: Array) -> Array:
        return jnp.exp(z)


@dataclasses.dataclass(frozen=True)
class AtLeast(AbstractDomain):
    """A number >= `lower`: lower + log(1 + exp(z)).

    The bound itself is a valid value (`peak = 1`, `F_Stribeck = 0`) but not a place to start a fit.
    """

    lower: float

    def rule(self) -> str:
        return f">= {self.lower:g}"

    def remedy(self) -> str:
        return f"Give {self.lower:g} or more." if self.lower else "Give its size, without a sign."

    def contains(self, value: np.ndarray) -> bool:
        return bool(np.all(np.isfinite(value)) and np.all(value >= self.lower))

    def on_edge(self, value: np.ndarray) -> bool:
        return bool(np.any(value <= self.lower))

    def suggestion(self) -> str:
        if self.lower:
            return f"{self.lower + 0.05 * abs(self.lower):g}"
        return "a tenth of the size that you expect"

    def to_unconstrained(self, value: Array) -> Array:
        x = value - self.lower
        # log(exp(x) - 1), written so that neither end overflows
        return x + jnp.log(-jnp.expm1(-x))

    def from_unconstrained(self, z: Array) -> Array:
        return self.lower + jax.nn.softplus(z)


@dataclasses.dataclass(frozen=True)
class Increasing(AbstractDomain):
    """A vector whose entries strictly increase: the first, and the logarithms of the gaps."""

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

    def to_unconstrained(self, value: Array) -> Array:
        return jnp.concatenate([value[:1], jnp.log(jnp.diff(value))])

    def from_unconstrained(self, z: Array) -> Array:
        return jnp.cumsum(jnp.concatenate([z[:1], jnp.exp(z[1:])]))


@dataclasses.dataclass(frozen=True)
class Declaration:
    """What a field says of its parameter.

    - `domain`: the values allowed.
    - `unit`: SI unit of the translational element (see `rotational_unit`).
    - `fit`: whether a fit that is given the parent's path (``"friction"``) moves this parameter;
      named by its own path, it always may be moved.
    - `ndim`: 0 for a number, 1 for a vector; `optional`: whether None may stand in its place.
    """

    domain: AbstractDomain
    unit: str = "1"
    fit: bool = True
    ndim: int = 0
    optional: bool = False


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a model: where it stands, its value and its declaration."""

    path: str
    owner: str
    value: Any
    declaration: Declaration


def is_traced(value: Any) -> bool:
    """Whether `value` stands for a number that JAX does not know yet: such values cannot be checked."""
    return isinstance(value, jax.core.Tracer)


def as_array(value: Any) -> Any:
    """A number or nested list as a float array; a traced value, an array or None as it is."""
    if value is None or is_traced(value) or isinstance(value, str):
        return value
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jnp.floating):
        return value
    try:
        return jnp.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return value  # `check` names the field and the value


def parameter(domain: AbstractDomain | None = None, unit: str = "1", *, fit: bool = True, ndim: int = 0, **kwargs: Any) -> Any:
    """Declare a field that holds a parameter: ``peak: Array = parameter(AtLeast(1.0), "1", default=1.0)``."""
    declaration = Declaration(Real() if domain is None else domain, unit, fit, ndim, kwargs.get("default", 0) is None)
    return eqx.field(converter=kwargs.pop("converter", as_array), metadata={_KEY: declaration}, **kwargs)


def children(model: Any) -> Iterator[tuple[str, Any, Declaration | None]]:
    """The named fields below `model` that may hold parameters, with the field's declaration if it has one."""
    named = getattr(model, "named_parts", None)
    if named is not None:
        for name, child in named():
            yield name, child, None
    elif isinstance(model, eqx.Module):
        for field in dataclasses.fields(model):
            if not field.metadata.get("static", False):
                yield field.name, getattr(model, field.name, None), field.metadata.get(_KEY)


def parameters(model: Any) -> list[Parameter]:
    """Every parameter of `model`, in the order written.

    >>> import frictax as fx
    >>> [p.path for p in fx.parameters.parameters(fx.Coulomb(F_Coulomb=5.0, F_prop=1.0))]
    ['F_Coulomb', 'F_prop']
    """
    return list(_walk(model, ""))


def _walk(model: Any, prefix: str) -> Iterator[Parameter]:
    for name, child, declaration in children(model):
        path = f"{prefix}{name}"
        if declaration is not None:
            if eqx.is_array(child) or not isinstance(child, eqx.Module):
                if child is not None:
                    yield Parameter(path, type(model).__name__, child, declaration)
                continue
        if isinstance(child, eqx.Module):
            yield from _walk(child, path + ".")


def check(model: Any) -> None:
    """Raise `ValueError` for the first parameter outside its domain, and for values that do not go together.

    The latter is what a class says in a method ``check_rules()``. `eqx.tree_at` bypasses a class's own checks, so `simulate`
    and `fit` call this at their entry. Traced values cannot be looked at and are passed over.
    """
    for name, child, declaration in children(model):
        if declaration is not None and not isinstance(child, eqx.Module):
            check_value(f"{type(model).__name__}.{name}", child, declaration)
        elif isinstance(child, eqx.Module):
            check(child)
    getattr(model, "check_rules", lambda: None)()


def check_value(name: str, value: Any, declaration: Declaration) -> None:
    """Raise `ValueError` where `value` is not a number (or a vector of them) or breaks the rule of its domain."""
    if is_traced(value) or (value is None and declaration.optional):
        return
    kind = "a number" if declaration.ndim == 0 else "a list of numbers"
    try:
        array = np.asarray(value if isinstance(value, str | None) else np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype != float:
        raise ValueError(f"`{name}` must be {kind}, got {value!r}. {'Give it a value' if value is None else 'Convert it first'}.")
    if array.ndim != declaration.ndim:
        raise ValueError(f"`{name}` must be {kind}, got an array of shape {array.shape}. Many machines at once: `jax.vmap`.")
    if not declaration.domain.contains(array):
        shown = _shown(array, "" if declaration.unit == "1" else f" {declaration.unit}", declaration.domain)
        raise ValueError(f"`{name}` must be {declaration.domain.rule()}, got {shown}.{_remedy(name, array, declaration)}")


def _shown(array: np.ndarray, unit: str, domain: AbstractDomain) -> str:
    if array.ndim == 0:
        return f"{float(array):g}{unit}"
    if array.size <= 12:
        return np.array2string(array) + unit
    for i in range(array.size):  # the first that is wrong by itself, or after the one before
        if not domain.contains(array[i : i + 1]):
            return f"{array[i]:g}{unit} in row {i}, counted from 0"
        if not domain.contains(array[i - 1 : i + 1]) and i:
            return f"{array[i]:g}{unit} after {array[i - 1]:g}{unit} in row {i}, counted from 0"
    return np.array2string(array, threshold=12) + unit


def _remedy(name: str, array: np.ndarray, declaration: Declaration) -> str:
    if not np.all(np.isfinite(array)):
        return " Look where it comes from: a missing value, or a division by 0."
    remedies = {
        "peak": "Breakaway cannot lie below sliding friction.",
        "m": "A mass that is not moved by forces is written as `Fixed`.",
        "fn_max": "A brake cannot pull its linings apart: swap the sign of `f_normalized` instead.",
    }
    sentence = remedies.get(name.rsplit(".", 1)[-1], declaration.domain.remedy())
    return f" {sentence}" if sentence else ""


def get(model: Any, path: str) -> Any:
    """The part, law or value that stands at `path`: ``get(block, "friction.peak")``."""
    node = model
    for step in path.split("."):
        known = {name: child for name, child, _ in children(node)}
        if step not in known:
            raise _unknown(model, path)
        node = known[step]
    return node


def _unknown(model: Any, path: str) -> KeyError:
    known = [p.path for p in parameters(model)]
    near = difflib.get_close_matches(path, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return UnknownName(f"There is no parameter {path!r} in this {type(model).__name__}.{hint} It has: {', '.join(known)}.")


class UnknownName(KeyError):
    """No part or parameter of that name: a `KeyError` whose text is printed as written, not quoted."""

    def __str__(self) -> str:
        return str(self.args[0])


def select(model: Any, free: str | Iterable[str] | None = None) -> list[Parameter]:
    """The parameters that a fit may move.

    `free` names them by path; a path that ends at a part or law takes all of its parameters that are declared
    to be fitted (a table's forces, not its speeds). None takes all of the model's.

    Raises `KeyError` for a path that does not exist, naming the nearest one.
    """
    everything = parameters(model)
    if free is None:
        return [p for p in everything if p.declaration.fit]
    chosen: dict[str, Parameter] = {}
    for path in [free] if isinstance(free, str) else free:
        exact = [p for p in everything if p.path == path]
        below = [p for p in everything if p.path.startswith(path + ".") and p.declaration.fit]
        if not exact and not below:
            raise _unknown(model, path)
        chosen.update({p.path: p for p in exact + below})
    return [p for p in everything if p.path in chosen]


def to_unconstrained(model: Any, free: str | Iterable[str] | None = None) -> dict[str, Array]:
    """The chosen parameters as unconstrained arrays, by path.

    Raises `ValueError` where a start lies outside its domain or on its edge.

    >>> import frictax as fx
    >>> fx.to_unconstrained(fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=5.0)), free="peak")
    Traceback (most recent call last):
    ...
    ValueError: `SupportFriction.peak` = 1 lies on the edge of its domain (>= 1), which a fit cannot leave. Start at 1.05, say.
    """
    result = {}
    for p in select(model, free):
        name = f"{p.owner}.{p.path.rsplit('.', 1)[-1]}"
        check_value(name, p.value, p.declaration)
        domain = p.declaration.domain
        if not is_traced(p.value) and domain.on_edge(np.asarray(p.value)):
            value = np.array2string(np.asarray(p.value), formatter={"float_kind": lambda x: f"{x:g}"})
            raise ValueError(
                f"`{name}` = {value} lies on the edge of its domain ({domain.rule()}), which a fit cannot leave. "
                f"Start at {domain.suggestion()}, say."
            )
        result[p.path] = domain.to_unconstrained(jnp.asarray(p.value))
    return result


def from_unconstrained(model: Any, z: Mapping[str, Array]) -> Any:
    """`model` with the parameters named by `z` replaced by the physical values of those unconstrained arrays."""
    chosen = select(model, list(z))
    return replace(model, {p.path: p.declaration.domain.from_unconstrained(z[p.path]) for p in chosen})


def replace(model: Any, values: Mapping[str, Float[Array, "..."] | float]) -> Any:
    """`model` with the parameters named by path replaced: ``replace(block, {"friction.peak": 1.2})``."""
    paths = list(values)
    for path in paths:
        get(model, path)
    if not paths:
        return model
    return eqx.tree_at(
        lambda m: [get(m, path) for path in paths], model, [as_array(values[path]) for path in paths], is_leaf=lambda x: x is None
    )


def rotational_unit(unit: str) -> str:
    """The unit of the same parameter in a rotational element: N -> N.m, m -> rad."""
    special = {"N": "N.m", "N.s/m": "N.m.s/rad", "s/m": "s/rad", "m/s": "rad/s", "m": "rad", "N/m": "N.m/rad", "kg": "kg.m2"}
    return special.get(unit, unit)
