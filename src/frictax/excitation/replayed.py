"""What the sensors show while an excitation is played."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .plan import Plan


def replayed(
    plan: Plan, u: Float[np.ndarray, " n"], x: Float[np.ndarray, " p"] | None = None
) -> dict[str, Float[np.ndarray, " n"]]:
    """Each output at each sample, without noise, of the machine with values `x`; raises
    `RuntimeError` where its run fails.
    """
    at = plan.under_test.values() if x is None else jnp.asarray(x)
    values, well = plan.shown(jnp.asarray(u), at)
    if not bool(well):
        raise RuntimeError("The machine cannot be simulated under its excitation.")
    return dict(zip(plan.under_test.outputs, np.asarray(values).T, strict=True))
