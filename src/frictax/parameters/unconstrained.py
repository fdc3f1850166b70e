"""Transform between physical values and unconstrained values, which a fit can change freely."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .checks import check
from .declaration import is_traced
from .domains import AbstractDomain
from .paths import Parameter, replace, select

Model = TypeVar("Model", bound=eqx.Module)


def to_unconstrained(
    model: eqx.Module, free: str | Iterable[str] | None = None
) -> dict[str, Array]:
    """Return a dict from path to unconstrained value, for the parameters that `free` selects.

    Raise `ValueError` if a value is outside its domain or at a bound of its domain.

    >>> import frictax as fx
    >>> fx.to_unconstrained(
    ...     fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=5.0)), free="peak"
    ... )
    Traceback (most recent call last):
    ...
    ValueError: `SupportFriction.peak` = 1 lies on the edge of its domain (>= 1), which a
    fit cannot leave. Start at 1.05, say.
    """
    result = {}
    check(model)
    for p in select(model, free):
        name = f"{p.owner}.{p.path.rsplit('.', 1)[-1]}"
        check_not_on_edge(name, p.value, p.declaration.domain)
        result[p.path] = p.declaration.domain.to_unconstrained(jnp.asarray(p.value))
    return result


def on_edge_unasked(chosen: Sequence[Parameter], asked: Iterable[Any]) -> list[Parameter]:
    """Return the scalar parameters of `chosen` that are at a bound of their domain and whose own
    path is not in `asked`. A fit does not change such parameters.
    """
    named = set(asked)
    return [
        p
        for p in chosen
        if p.path not in named
        and np.ndim(p.value) == 0
        and not is_traced(p.value)
        and p.declaration.domain.on_edge(np.asarray(p.value))
    ]


def check_not_on_edge(name: str, value: Any, domain: AbstractDomain) -> None:
    """Raise `ValueError` if `value` is at a bound of `domain`, where a fit cannot start."""
    if not is_traced(value) and domain.on_edge(np.asarray(value)):
        shown = np.array2string(np.asarray(value), formatter={"float_kind": lambda x: f"{x:g}"})
        raise ValueError(
            f"`{name}` = {shown} lies on the edge of its domain ({domain.rule()}), which a fit"
            f" cannot leave. Start at {domain.suggestion()}, say."
        )


def from_unconstrained(model: Model, z: Mapping[str, Array]) -> Model:
    """Return a copy of `model` with new parameter values. `z`: dict from path to unconstrained
    value, which is converted to the physical value.

    For any change of `z`, the physical value stays in its domain:

    >>> import frictax as fx
    >>> law = fx.Coulomb(F_Coulomb=5.0)
    >>> z = fx.to_unconstrained(law, free="F_Coulomb")
    >>> round(float(fx.from_unconstrained(law, {"F_Coulomb": z["F_Coulomb"] - 100.0}).F_Coulomb), 6)
    0.0
    """
    chosen = select(model, list(z))
    return replace(
        model, {p.path: p.declaration.domain.from_unconstrained(z[p.path]) for p in chosen}
    )
