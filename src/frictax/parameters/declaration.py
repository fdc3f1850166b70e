"""Declaration of a parameter at its field: domain, unit, and whether a fit changes it."""

import dataclasses
import re
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.jax_internals import Tracer

from .domains import AbstractDomain, Real

_KEY = "frictax_parameter"


# Types of the fields of parameters. A type checker does not know that the converter of a field also
# accepts numbers and lists. With the type `Any`, the checker accepts them.
if TYPE_CHECKING:
    Scalar = Any
    Vector = Any
else:
    Scalar = Float[Array, ""]
    Vector = Float[Array, " n"]


@dataclasses.dataclass(frozen=True)
class Declaration:
    """The declaration of a parameter at its field.

    - `domain`: the allowed values.
    - `unit`: the SI unit in a translational element (see `rotational_unit`).
    - `fit`: whether a fit changes this parameter if the user names only its owner (``"friction"``).
      If the user names the path of the parameter itself, a fit always changes it.
    - `ndim`: 0 for a number, 1 for a vector; `optional`: whether the value may be None.
    """

    domain: AbstractDomain
    unit: str = "1"
    fit: bool = True
    ndim: int = 0
    optional: bool = False


def parameter(
    domain: AbstractDomain | None = None,
    unit: str = "1",
    *,
    fit: bool = True,
    ndim: int = 0,
    **kwargs: Any,
) -> Any:
    """Declare a field for a parameter with its domain, its unit and its number of axes `ndim`. A
    `default` of None makes the parameter optional.

    >>> import frictax as fx
    >>> from frictax.parameters import AtLeast, CheckedModule, Scalar, parameter
    >>> class Drag(CheckedModule):
    ...     c: Scalar = parameter(AtLeast(0.0), "N.s2/m2")
    >>> [(p.path, p.declaration.unit) for p in fx.parameters.parameters(Drag(0.5))]
    [('c', 'N.s2/m2')]
    >>> try:
    ...     Drag(-0.5)
    ... except ValueError as error:
    ...     print(error)
    `Drag.c` must be >= 0, got -0.5 N.s2/m2. Give its size, without a sign.
    """
    declaration = Declaration(
        Real() if domain is None else domain, unit, fit, ndim, kwargs.get("default", 0) is None
    )
    return eqx.field(
        converter=kwargs.pop("converter", as_seconds if unit == "s" else as_array),
        metadata={_KEY: declaration},
        **kwargs,
    )


def declaration_of(field: Any) -> Declaration | None:
    """Return the declaration of a dataclass field; None for a field that is not a parameter."""
    return field.metadata.get(_KEY)


def as_array(value: Any) -> Any:
    """Convert a number or a nested list to a float array. Return other values unchanged: traced
    values, float arrays of JAX, None, and values that cannot be converted.
    """
    if value is None or is_traced(value) or isinstance(value, str | bool) or is_not_numeric(value):
        return value
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jnp.floating):
        return value
    try:
        # Numpy converts faster than JAX, because JAX compiles a program for each shape.
        if isinstance(value, int | float | np.ndarray):
            return jax.device_put(np.array(value, dtype=jax.dtypes.canonicalize_dtype(float)))
        return jnp.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        # The value is returned unchanged, and `check` then reports the field and the value.
        return value


def as_seconds(value: Any) -> Any:
    """Convert durations to a float array [s], and other values as `as_array` does."""
    if _kind(value) != "m" or np.ma.is_masked(value):
        return as_array(value)
    return as_array(np.asarray(value) / np.timedelta64(1, "s"))


def is_not_numeric(value: Any) -> bool:
    """Return whether `value` has dates, durations, complex numbers or masked entries. Numpy changes
    these to other numbers without an error.
    """
    each = value if isinstance(value, list | tuple) else [value]
    return any(_kind(x) in ("m", "M", "c") or np.ma.is_masked(x) for x in each)


def _kind(value: Any) -> str:
    return getattr(getattr(value, "dtype", None), "kind", "")


def is_traced(value: Any) -> bool:
    """Return whether `value` is a tracer of JAX, whose number is unknown and cannot be checked."""
    return isinstance(value, Tracer)


def rotational_unit(unit: str) -> str:
    """Return the rotational unit for a translational unit, as "N.m.s/rad" for "N.s/m", "kg.m2" for
    "kg". Return a rotational unit unchanged.
    """
    if re.search(r"rad|N\.m|kg\.m2", unit):
        return unit
    turned = {"N": "N.m", "kg": "kg.m2", "m": "rad"}
    return re.sub("[A-Za-z]+", lambda name: turned.get(name[0], name[0]), unit)
