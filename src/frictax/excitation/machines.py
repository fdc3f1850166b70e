"""Machines with uncertain parameters for an experiment, and the information known before it."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.analysis import Posterior
from frictax.fitting import AbstractPrior, FitResult

from .information import MachineUnderTest

Over = float | Mapping[str, float] | FitResult | Posterior


def draw_machines(
    over: Over | None,
    under_test: MachineUnderTest,
    names: tuple[str, ...],
    lower: Float[np.ndarray, " p"],
    count: int,
    seed: int,
) -> list[np.ndarray]:
    """Return the values (p,) of the given machine, and of `count` machines drawn from `over`."""
    x = np.asarray(under_test.values())
    if over is None:
        return [x]
    draws = np.random.default_rng(seed)
    if isinstance(over, FitResult):
        mine, theirs = _common_indices(names, over.names)
        values = np.asarray([np.ravel(e.value)[0] for e in over.estimates])[theirs]
        root = np.linalg.cholesky(
            over.covariance[np.ix_(theirs, theirs)] + 1e-30 * np.eye(len(theirs))
        )
        drawn = values + draws.standard_normal((count, len(theirs))) @ root.T
    elif isinstance(over, Posterior):
        mine, theirs = _common_indices(names, over.names)
        rows = np.reshape(over.draws, (-1, len(over.names)))
        drawn = rows[draws.choice(len(rows), count, replace=len(rows) < count)][:, theirs]
    else:
        base = np.where(np.isfinite(lower) & (x > lower), np.nan_to_num(lower, neginf=0.0), 0.0)
        scatter = _scatter(over, names)
        drawn = base + (x - base) * np.exp(scatter * draws.standard_normal((count, x.size)))
        mine = list(range(x.size))
    out = [x]
    for row in drawn:
        other = x.copy()
        other[mine] = np.where(row > lower[mine], row, x[mine])
        out.append(other)
    return out


def prior_information(
    names: tuple[str, ...], size: np.ndarray, after: FitResult | None, priors: Any, x: np.ndarray
) -> Float[np.ndarray, "p p"]:
    """Return the relative information (p, p) of an earlier fit and of priors."""
    known = np.zeros((len(names), len(names)))
    if after is not None:
        mine, theirs = _common_indices(names, after.names)
        covariance = after.covariance[np.ix_(theirs, theirs)]
        usable = np.all(np.isfinite(covariance), axis=0) & (np.diag(covariance) > 0)
        mine, covariance = np.asarray(mine)[usable], covariance[np.ix_(usable, usable)]
        known[np.ix_(mine, mine)] += np.linalg.inv(covariance)
    for prior in priors:
        known += _information_of_prior(prior, names, x)
    return known * np.outer(size, size)


def _information_of_prior(
    prior: AbstractPrior, names: tuple[str, ...], x: np.ndarray
) -> np.ndarray:
    mine = [i for i, name in enumerate(names) if name.partition("[")[0] == prior.path]
    if not mine:
        raise ValueError(
            f"`priors` names {prior.path!r}, which is not free. Free are: {', '.join(names)}."
        )

    def residuals(x: jax.Array) -> jax.Array:
        own = x[np.asarray(mine)]
        return prior.residuals({prior.path: own[0] if len(mine) == 1 else own})

    J = np.asarray(jax.jacfwd(residuals)(jnp.asarray(x)))
    return J.T @ J


def _common_indices(names: tuple[str, ...], others: tuple[str, ...]) -> tuple[list[int], list[int]]:
    both = [name for name in names if name in others]
    if not both:
        raise ValueError(
            f"`design` was given a fit of {', '.join(others)}, none of which is free here:"
            f" {', '.join(names)}. Name them in `free`."
        )
    return [names.index(n) for n in both], [others.index(n) for n in both]


def _scatter(over: float | Mapping[str, float], names: tuple[str, ...]) -> np.ndarray:
    if isinstance(over, Mapping):
        unknown = [p for p in over if not any(n == p or n.startswith(f"{p}.") for n in names)]
        if unknown:
            raise ValueError(
                f"`over` names {unknown[0]!r}, which is not free. Free are: {', '.join(names)}."
            )
        scatter = [
            next((s for p, s in over.items() if n == p or n.startswith(f"{p}.")), 0.0)
            for n in names
        ]
    else:
        scatter = [over] * len(names)
    bad = [s for s in scatter if not (np.isfinite(s) and 0 <= s < 3)]
    if bad:
        raise ValueError(
            f"`over` must be a relative scatter between 0 and 3, got {bad[0]!r}. Write 0.15 for"
            " machines that differ by 15 %."
        )
    return np.asarray(scatter, dtype=float)
