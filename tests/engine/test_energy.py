"""Drive work = kinetic + elastic + friction loss + damper loss + impact loss, over
random machines.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from machines import (
    pulsed_brake,
    stick_slip,
    stop2,
    supported_mass,
    translational_friction,
    two_blocks,
)

ENGINE = fx.Adaptive(rtol=1e-10, atol=1e-12, max_events=400)
DRAWS = 200

STRUCTURES: dict[str, tuple[Callable[[], fx.Mechanism], float]] = {
    "block through stick and slip": (stick_slip, 3.0),
    "mass that meets its stop": (stop2, 0.8),
    "support friction by table": (supported_mass, 1.5),
    "two blocks dragged": (two_blocks, 2.0),
    "brake pressed by ramps": (pulsed_brake, 1.5),
    "three machines at once": (translational_friction, 0.7),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_energy_balance_closes_to_1e_8_for_200_draws(name: str) -> None:
    build, end = STRUCTURES[name]
    machine = build()
    names = [
        p.path
        for p in fx.parameters.parameters(machine)
        if p.declaration.fit and np.ndim(p.value) == 0
    ]
    scales = 1 + 0.15 * np.random.default_rng(1).uniform(-1, 1, (DRAWS, len(names)))

    @jax.jit
    @jax.vmap
    def run(scale: jax.Array) -> tuple[jax.Array, ...]:
        values = {}
        for path, factor in zip(names, scale, strict=True):
            value = fx.parameters.get(machine, path) * factor
            values[path] = jnp.maximum(value, 1.0) if path.endswith("peak") else value
        trajectory = fx.simulate(
            fx.parameters.replace(machine, values), jnp.array([0.0, end]), ENGINE, energy=True
        )
        e = trajectory.energy
        turned_over = (
            jnp.abs(e.drive[-1])
            + e.friction[-1]
            + e.damper[-1]
            + e.impact[-1]
            + e.kinetic[-1]
            + e.elastic[-1]
            + e.kinetic[0]
        )
        return (
            e.balance[-1] / (turned_over + e.elastic[0]),
            trajectory.ys[-1],
            trajectory.result == fx.Result.successful,
            e.impact[-1],
        )

    balance, end_states, finished, impact = run(jnp.asarray(scales))
    assert jnp.all(finished)
    assert jnp.all(jnp.isfinite(end_states))
    assert jnp.max(jnp.abs(balance)) <= 1e-8
    if "stop" in name:
        assert jnp.max(impact) > 0


@pytest.mark.slow
def test_energy_is_kept_only_when_asked_for() -> None:
    run = fx.simulate(stick_slip(), jnp.array([0.0, 0.5]))
    with pytest.raises(ValueError, match="energy=True"):
        _ = run.energy
    assert eqx.is_array(fx.simulate(stick_slip(), jnp.array([0.0, 0.5]), energy=True).energy.drive)
