"""What the sensors show while an excitation is played."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.engine import Result, walk

from .plan import Plan


def replayed(
    plan: Plan, u: Float[np.ndarray, " n"], x: Float[np.ndarray, " p"] | None = None
) -> dict[str, Float[np.ndarray, " n"]]:
    """Each output at each sample, without noise, of the machine with values `x`; raises
    `RuntimeError` where its run fails.
    """
    under_test = dataclasses.replace(
        plan.under_test, inputs={**plan.under_test.inputs, plan.drive: jnp.asarray(u)}
    )
    t = jnp.asarray(plan.t)

    def outputs(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        system = under_test.system(x)
        path = walk(system, *system.start(t[0]), t, options=plan.engine)
        shown = jax.vmap(lambda t, y, mode: under_test.shown(x, t, y, mode))
        return shown(t, path.ys, path.modes), path.result == Result.successful

    values, well = jax.jit(outputs)(under_test.values() if x is None else jnp.asarray(x))
    if not bool(well):
        raise RuntimeError("The machine cannot be simulated under its excitation.")
    return dict(zip(under_test.outputs, np.asarray(values).T, strict=True))
