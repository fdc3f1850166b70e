"""The walk on samples agrees with the error-controlled one: states to the solver's order, events
and modes one for one.
"""

from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from sampled import STRUCTURES, TS, block, drawn, draws, stopped

DRAWS = 20
EXACT = fx.Adaptive(rtol=1e-10, atol=1e-12, max_events=900)


def runs(machine: fx.Mechanism, engine: Any, many: int) -> list[np.ndarray]:
    """States, modes, event times and their sequence (part, mode before, mode after, count) of so
    many draws.
    """

    def run(scale: jax.Array) -> tuple[jax.Array, ...]:
        path = fx.simulate(drawn(machine, scale), TS, engine)
        events = path.events
        sequence = jnp.stack([events.part, events.mode_before, events.mode_after])[:, :40]
        return (
            path.ys,
            path.modes,
            events.time[:40],
            sequence,
            events.count,
            path.result == fx.Result.successful,
        )

    scales = draws(machine, many)
    # one alone is compiled sooner than many at once
    ran = jax.jit(run)(scales[0]) if many == 1 else jax.jit(jax.vmap(run))(scales)
    found = [np.asarray(a)[None] if many == 1 else np.asarray(a) for a in ran]
    assert np.all(found[-1])
    return found


CASES = [("block", False, 1), ("block", True, DRAWS)]
CASES += [(name, False, DRAWS) for name in STRUCTURES if name != "block"]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("name", "hold", "many"), CASES)
def test_states_events_and_modes_are_those_of_the_error_controlled_walk(
    name: str, hold: bool, many: int
) -> None:
    machine = STRUCTURES[name](hold)
    ys, modes, times, sequence, count, _ = runs(machine, EXACT, many)
    assert np.min(count) >= 2
    on_samples = fx.OnSamples(solver=diffrax.Tsit5())
    ys1, modes1, times1, sequence1, count1, _ = runs(machine, on_samples, many)
    assert np.array_equal(count1, count)
    assert np.array_equal(sequence1, sequence)
    happened = np.isfinite(times)
    assert np.max(np.abs(times1[happened] - times[happened])) <= 1e-7
    assert np.max(np.abs(ys1 - ys)) <= 1e-7
    # At a sample, also where a held drive jumps, the mode is the one after it.
    assert np.mean(modes1 != modes) <= 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "order"), [(diffrax.Heun(), 2), (diffrax.Bosh3(), 3)], ids=["Heun", "Bosh3"]
)
def test_the_error_falls_with_the_solvers_order_as_substeps_grow(solver: Any, order: int) -> None:
    machine = stopped()
    exact, *_ = runs(machine, fx.OnSamples(solver=diffrax.Tsit5(), substeps=2), 1)
    errors = [
        np.max(np.abs(runs(machine, fx.OnSamples(solver=solver, substeps=n), 1)[0] - exact))
        for n in (1, 4)
    ]
    assert np.log(errors[0] / errors[1]) / np.log(4) == pytest.approx(order, abs=0.25)


@pytest.mark.slow
def test_at_a_sample_at_which_a_held_drive_jumps_its_new_value_is_reported() -> None:
    ts = jnp.linspace(0.0, 1.0, 101)
    pull = jnp.where(ts >= 1.0, -3.0, jnp.where(ts >= 0.3, 3.0, 0.0))
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0)),
        drive=fx.Force("mass", fx.Sampled(ts, pull, hold=True)),
    )
    run = fx.simulate(machine, ts, fx.OnSamples())
    assert jnp.array_equal(run["drive"].f, pull)
    assert np.array_equal(run["friction"].mode, np.where(np.asarray(ts) >= ts[30], 1, 0))
    assert np.allclose(run["mass"].v, np.maximum(np.asarray(ts) - 0.3, 0.0), atol=1e-14)
    assert int(run.steps) == 100


@pytest.mark.slow
def test_substeps_keep_the_samples_and_a_run_has_as_many_steps() -> None:
    run = fx.simulate(block(), TS, fx.OnSamples(substeps=3))
    assert run.ys.shape == (201, 2)
    assert int(run.steps) == 600


@pytest.mark.slow
def test_a_record_of_one_or_two_samples_and_one_without_events() -> None:
    one = fx.simulate(block(), TS[:1], fx.OnSamples())
    assert jnp.allclose(one.ys, jnp.array([[0.1, 0.3]]))
    assert int(one.events.count) == 0
    two = fx.simulate(block(), TS[:2], fx.OnSamples())
    assert jnp.max(jnp.abs(two.ys - fx.simulate(block(), TS[:2], EXACT).ys)) <= 1e-8
    free = fx.simulate(fx.Mechanism(mass=fx.Mass(m=2.0, v=3.0)), TS, fx.OnSamples())
    assert jnp.allclose(free["mass"].s, 3.0 * TS, atol=1e-13)
    assert int(free.events.count) == 0
