"""Quantities that follow from fitted numbers, draw by draw."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frictax.annotations import Checked
from frictax.fitting import Estimate, Knowledge
from frictax.programs import interruptible_jit

from ..errors.posterior import Posterior
from .derived import EXACT, Derived, asked_for


def of_draws(
    drawn: Posterior,
    function: Any = None,
    *,
    name: str | Sequence[str] | None = None,
    unit: str | Sequence[str] = "",
    label: Checked[str] | None = None,
) -> Derived:
    """Quantities that follow from the fitted numbers, over the draws of a posterior: medians,
    standard deviations and intervals of equal tails, however bent they are.

    Arguments as of `FitResult.derived`. Its `draws` are what each draw makes of them; print it, or
    draw it by `plot()`.
    """
    found = drawn.found
    record = None if label is None else found.number(label)
    of, names, units, scalar = asked_for(found, function, name, unit, record)
    # the fit among the draws, so that one program does
    x = jnp.vstack([found.x, drawn.all_draws.reshape(-1, drawn.all_draws.shape[-1])])
    at = interruptible_jit(jax.vmap(lambda x: of(found.problem.setup_at(x, record))))
    made = np.asarray(at(x), float)
    fitted, values = made[0], made[1:]
    tail = 0.5 * (1.0 - drawn.level)
    low, middle, high = np.quantile(values, (tail, 0.5, 1.0 - tail), axis=0)
    covariance = np.atleast_2d(np.cov(values, rowvar=False))
    error, estimates = np.sqrt(np.diag(covariance)), []
    for i, (title, si) in enumerate(zip(names, units, strict=True)):
        number, sd, *ends = (float(a[i]) for a in (middle, error, low, high))
        known = Knowledge.KNOWN if sd > EXACT * abs(number) else Knowledge.FIXED
        shown = found.declared(si, "", record, number) if si else None
        estimates.append(
            Estimate(title, title, number, sd, ends[0], ends[1], si, known, np.nan, shown)
        )
    return Derived(
        tuple(estimates),
        covariance,
        np.zeros((len(names), 0)),
        drawn.level,
        scalar,
        draws=values.reshape(*drawn.all_draws.shape[:-1], len(names)),
        fitted=fitted,
    )
