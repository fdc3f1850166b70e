"""What a field says of the parameter that it holds."""

import dataclasses
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.jax_internals import Tracer

from .domains import AbstractDomain, Real

_KEY = "frictax_parameter"


# What a parameter's field holds. A type checker, which does not run the field's converter, lets
# numbers and lists pass.
if TYPE_CHECKING:
    Scalar = Any
    Vector = Any
else:
    Scalar = Float[Array, ""]
    Vector = Float[Array, " n"]


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


def parameter(
    domain: AbstractDomain | None = None,
    unit: str = "1",
    *,
    fit: bool = True,
    ndim: int = 0,
    **kwargs: Any,
) -> Any:
    """Declare a field that holds a parameter: ``peak: Array = parameter(AtLeast(1.0), "1",
    default=1.0)``.

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
        converter=kwargs.pop("converter", as_array), metadata={_KEY: declaration}, **kwargs
    )


def declared(field: Any) -> Declaration | None:
    """What a dataclass field says of its parameter; None where it holds none."""
    return field.metadata.get(_KEY)


def as_array(value: Any) -> Any:
    """A number or nested list as a float array; a traced value, an array or None as it is."""
    if value is None or is_traced(value) or isinstance(value, str | bool):
        return value
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jnp.floating):
        return value
    try:
        # numpy converts faster than JAX, which compiles a program for each shape
        if isinstance(value, int | float | np.ndarray):
            return jax.device_put(np.array(value, dtype=jax.dtypes.canonicalize_dtype(float)))
        return jnp.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        return value  # `check` names the field and the value


def is_traced(value: Any) -> bool:
    """Whether `value` stands for a number that JAX does not know yet: such values cannot be
    checked.
    """
    return isinstance(value, Tracer)


def rotational_unit(unit: str) -> str:
    """The unit of the same parameter in a rotational element: N -> N.m, m -> rad."""
    special = {
        "N": "N.m",
        "N.s/m": "N.m.s/rad",
        "s/m": "s/rad",
        "m/s": "rad/s",
        "m": "rad",
        "N/m": "N.m/rad",
        "N/s": "N.m/s",
        "1/m": "1/rad",
        "kg": "kg.m2",
    }
    return special.get(unit, unit)
