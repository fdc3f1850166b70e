"""Runs beside each other under vmap are the runs alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from machines import TIGHT, stop2


@pytest.mark.slow
def test_a_run_beside_others_is_the_run_alone_also_where_its_steps_run_out_at_a_rejected_one():
    # With samples a phase is cut after 64 steps; these have some 180, and with 60 lanes some are
    # cut while another meets its event.
    ts = jnp.array([0.0, 0.5, 1.2])

    def outcome(c: jax.Array) -> jax.Array:
        run = fx.simulate(fx.parameters.replace(stop2(), {"spring.c": c}), ts, TIGHT)
        return jnp.concatenate([jnp.ravel(run.ys[1:]), run.events.time[:8]])

    stiffness = jnp.linspace(498.0, 502.0, 60)
    beside = np.asarray(jax.jit(jax.vmap(outcome))(stiffness))
    alone = np.asarray(jax.jit(lambda c: jax.lax.map(outcome, c))(stiffness))
    assert np.max(np.abs(beside - alone)) <= 1e-10
