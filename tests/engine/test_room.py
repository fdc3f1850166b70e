"""Room for events: the samples of drives take none of it from mode changes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.engine.walk import with_room
from frictax.mechanism import Driven, MechanicalSystem

T = np.linspace(0.0, 3.0, 1501)


def pulled(F_Coulomb: Any = 0.5) -> fx.Mechanism:
    """A block under two sampled forces, one of them held."""
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=F_Coulomb)),
        pull=fx.Force("mass", fx.Sampled(T, 2.0 * np.sin(7.0 * T))),
        ripple=fx.Force("mass", fx.Sampled(T, 0.1 * np.sin(7.0 * T), hold=True)),
    )


def carried() -> fx.Mechanism:
    """A mass on a spring behind a slide that moves as it was recorded."""
    return fx.Mechanism(
        slide=fx.Mass(m=1.0),
        mass=fx.Mass(m=1.0),
        spring=fx.Spring("slide", "mass", c=30.0),
        pull=fx.Force("mass", fx.Sampled(T, 2.0 * np.sin(7.0 * T))),
        moved=fx.Position("slide", fx.Sampled(T, 0.1 * np.sin(7.0 * T))),
    )


def test_room_is_made_for_the_samples_of_all_drives_and_a_given_limit_stays() -> None:
    system = MechanicalSystem(pulled())
    assert with_room(fx.Adaptive(), system).max_events == 1000 + 2 * T.size
    assert with_room(fx.Adaptive(max_events=7), system).max_events == 7
    # A run on samples meets no event at a sample of a force, and has one where a motion turns.
    assert with_room(fx.OnSamples(), system).max_events is None
    assert with_room(fx.OnSamples(), MechanicalSystem(carried())).max_events == 1000 + T.size
    driven = Driven(system, load=fx.Sampled(T, T))
    assert with_room(fx.Adaptive(), driven).max_events == 1000 + 3 * T.size
    assert with_room(fx.OnSamples(), driven).max_events is None


@pytest.mark.slow
def test_many_samples_of_drives_do_not_fill_the_room_for_events_under_jit() -> None:
    def end(F: Any, engine: Any) -> Any:
        ts = T if isinstance(engine, fx.OnSamples) else T[[0, -1]]
        run = fx.simulate(pulled(F), ts, engine)
        return run["mass"].s[-1], (run.result, run.path.count)

    value, (result, count) = jax.jit(lambda F: end(F, fx.Adaptive()))(0.5)
    assert bool(result == fx.Result.successful)
    assert int(count) > T.size  # Both drives switch in the same events.
    assert abs(float(value) - float(end(0.5, fx.OnSamples())[0])) <= 1e-5
    slope, _ = jax.jit(jax.jacfwd(lambda F: end(F, fx.Adaptive()), has_aux=True))(0.5)
    assert jnp.isfinite(slope)


@pytest.mark.slow
def test_a_sampled_motion_of_many_samples_does_not_fill_the_room_of_a_run_on_samples() -> None:
    run = jax.jit(lambda: fx.simulate(carried(), T, fx.OnSamples()))()
    assert bool(run.result == fx.Result.successful)
    assert jnp.all(jnp.isfinite(run.ys))
