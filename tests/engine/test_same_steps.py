"""Reverse mode of `Adaptive` takes the steps of one pass, whatever the compiler rounds."""

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

from frictax.engine.phase import _SameSteps


@pytest.mark.parametrize("times", [[0.25, 0.3, 1.0], [1.0]])
def test_the_steps_end_at_the_given_times(times: list[float]) -> None:
    padded = jnp.array(times + [jnp.inf] * (4 - len(times)))
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, args: -y),
        diffrax.Tsit5(),
        0.0,
        1.0,
        None,
        jnp.ones(()),
        stepsize_controller=_SameSteps(padded),
        saveat=diffrax.SaveAt(steps=True),
        max_steps=4,
    )
    assert solution.ts is not None
    np.testing.assert_array_equal(solution.ts, padded)
