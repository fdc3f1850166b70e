"""The friction of one contact as a function of what is fitted."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.contacts import AbstractContact
from frictax.contacts.contact import law_value
from frictax.fitting.problem.problem import Problem
from frictax.parameters import UnknownName


def friction_at(
    problem: Problem, contact: str, velocity: Float[np.ndarray, " n"], label: str | None, labels: Sequence[str]
) -> Callable[[Any], Any]:
    """From all fitted numbers to the friction of `contact` at each velocity, in the record `label`, one of `labels`.

    Raises `KeyError` where there is no such contact or record; `ValueError` where each record has values of its own and none is named.
    """
    if label is None and any(u.record is not None and u.path.startswith(f"{contact}.") for u in problem.unknowns):
        raise ValueError(f"{contact!r} has values of each record's own: name the record, friction(..., label={labels[0]!r}).")
    if label is not None and label not in labels:
        raise UnknownName(f"There is no record {label!r} in this fit. It has: {', '.join(labels)}.")
    record = None if label is None else labels.index(label)
    ways, sizes = jnp.where(jnp.asarray(velocity) < 0, -1, 1), jnp.abs(jnp.asarray(velocity))

    def at(x: Any) -> Any:
        part: Any = problem.bench_at(x, record).machine
        for name in contact.split("."):
            part = part[name] if hasattr(part, "named_parts") else getattr(part, name, None)
        if not isinstance(part, AbstractContact):
            raise UnknownName(f"There is no contact {contact!r} in this machine. Name one with friction, such as 'friction'.")
        return jax.vmap(lambda way, size: way * law_value(part, way, size, None))(ways, sizes)

    return at


def law_values(law: Any, velocity: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """A law at many speeds >= 0 [m/s or rad/s], (n,): its friction [N or N.m], or the coefficient of a contact that is pressed [1].

    Compiled once for all laws of a kind.
    """
    return np.asarray(_law_values(law, jnp.asarray(velocity)))


@eqx.filter_jit
def _law_values(law: Any, v: Any) -> Any:
    return jax.vmap(law)(v)
