"""Friction over speed as a function of the fitted parameters, for a law or a contact."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from frictax.contacts import AbstractContact
from frictax.contacts.contact import law_value
from frictax.fitting import Band, FitResult
from frictax.fitting.problem.problem import Problem
from frictax.fitting.problem.steady import as_steady
from frictax.fitting.result.spread import CovarianceEstimate
from frictax.parameters import UnknownName, get
from frictax.programs import interruptible_jit


def predict(
    found: FitResult, velocity: Any, contact: str | None = None, label: str | None = None
) -> Float[np.ndarray, " n"]:
    """Return the sliding friction [N or N.m] at each velocity [m/s or rad/s]. At velocity 0, the
    result is the limit for slow forward motion.

    If a constant force was fitted to a sweep, the result includes this force. `contact`: name of a
    contact of a machine; `label`: name of a record, if parameters differ by record. For a contact
    under a normal force, the result is the friction coefficient.
    """
    v = np.asarray(velocity, dtype=float)
    at = friction_at(found.problem, contact, np.ravel(v), label, list(found.records))
    return np.asarray(at(jnp.asarray(found.x))).reshape(v.shape)


def band(
    found: FitResult,
    velocity: Any,
    level: float | None = None,
    contact: str | None = None,
    label: str | None = None,
) -> Band:
    """Return the friction (see `predict`) with its confidence band at each velocity (delta method).

    **Source:** G. A. F. Seber, C. J. Wild, *Nonlinear Regression* (1989), section 5.1.
    """
    level = found.level if level is None else level
    return friction_band(found, velocity, contact, label, found.spread, level)


def friction_band(
    found: FitResult,
    velocity: Any,
    contact: str | None,
    label: str | None,
    spread: CovarianceEstimate,
    level: float,
) -> Band:
    """Return the friction with its confidence band, for the parameter covariance `spread`."""
    v = np.atleast_1d(np.asarray(velocity, dtype=float))
    at = friction_at(found.problem, contact, v, label, list(found.records))
    f, g = (
        np.asarray(a)
        for a in interruptible_jit(lambda x: (at(x), jax.jacfwd(at)(x)))(jnp.asarray(found.x))
    )
    half = spread.half_width(level, g)
    return Band(v, f, f - half, f + half, level)


def friction_at(
    problem: Problem,
    contact: str | None,
    velocity: Float[np.ndarray, " n"],
    label: str | None,
    labels: Sequence[str],
) -> Callable[[Any], Any]:
    """Return a function that computes, from all fitted parameters, the friction of `contact` at
    each velocity. `label`: the record (one of `labels`) whose parameters are used.

    **Raises:** `KeyError` for an unknown contact or record; `ValueError` if parameters of the
    contact differ by record and no record is named.
    """
    if label is not None and label not in labels:
        raise UnknownName(f"There is no record {label!r} in this fit. It has: {', '.join(labels)}.")
    if problem.is_steady:
        if contact is not None:
            raise UnknownName(
                f"`contact` must be None for a law that was fitted to a sweep, got {contact!r}."
                " Leave it out."
            )
        return lambda x: as_steady(problem.setup_at(x, None).machine).predict(jnp.asarray(velocity))
    if contact is None:
        raise ValueError(
            "A machine's friction is that of a contact: name it, contact='friction', say."
        )
    mine = f"{contact}."
    own = any(u.record is not None and u.path.startswith(mine) for u in problem.unknowns)
    for path in [tie.path for tie in problem.ties if tie.path.startswith(mine)]:
        tied = lambda setup, path=path: jnp.ravel(jnp.asarray(get(setup, path)))  # noqa: E731
        own = own or bool(differs_by_record(problem, problem.x0, tied).any())
    if label is None and own:
        raise ValueError(
            f"{contact!r} has values of each record's own: name the record, friction(...,"
            f" label={labels[0]!r})."
        )
    record = None if label is None else labels.index(label)
    ways, sizes = jnp.where(jnp.asarray(velocity) < 0, -1, 1), jnp.abs(jnp.asarray(velocity))

    def at(x: Any) -> Any:
        part: Any = problem.setup_at(x, record).machine
        for name in contact.split("."):
            part = part[name] if hasattr(part, "named_parts") else getattr(part, name, None)
        if not isinstance(part, AbstractContact):
            raise UnknownName(
                f"There is no contact {contact!r} in this machine. Name one with friction, such as"
                " 'friction'."
            )
        return jax.vmap(lambda way, size: way * law_value(part, way, size, None))(ways, sizes)

    return at


def differs_by_record(
    problem: Problem, x: Float[np.ndarray, " q"], of: Callable[[Any], Any]
) -> Bool[np.ndarray, " k"]:
    """Return a mask of the values `of(setup)` (k,) that depend on parameters with a separate value
    for each record. `x`: all fitted parameters."""
    own = [u for u in problem.unknowns if u.record is not None and not u.hidden]
    at, mine = jnp.asarray(x), np.concatenate([np.arange(0), *(np.r_[u.place] for u in own)])
    shared = np.asarray(of(problem.setup_at(at, None)))
    out = np.zeros(shared.size, bool)
    for i in dict.fromkeys(u.record for u in own):
        slopes = jax.jacfwd(lambda x, i=i: of(problem.setup_at(x, i)))(at)[:, mine]
        value = np.asarray(of(problem.setup_at(at, i)))
        out |= np.any(np.nan_to_num(slopes) != 0, axis=1)
        out |= ~np.isclose(value, shared, rtol=0.0, atol=0.0, equal_nan=True)
    return out


def law_values(law: Any, velocity: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the friction, or friction coefficient [1], of a law at speeds >= 0 [m/s or rad/s]. One
    program is compiled for all laws of the same type.
    """
    return np.asarray(_law_values(law, jnp.asarray(velocity)))


_law_values = interruptible_jit(lambda law, v: jax.vmap(law)(v))
