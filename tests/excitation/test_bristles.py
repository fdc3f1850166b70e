"""What a record tells of machines with a bristle: against sums over samples, and differences."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import central_differences
from frictax.engine.implicit import take_step
from frictax.engine.reused import Reused, model_of
from frictax.excitation.information import (
    MachineUnderTest,
    build_information_system,
    checked_setup,
)

T = np.linspace(0.0, 1.0, 1001)
U = 1.3 * np.sin(2 * np.pi * 2.1 * T) + 0.7 * np.sin(2 * np.pi * 5.3 * T)
BRISTLES = {
    "LuGre": lambda s: fx.LuGre(sigma_0=s, sigma_1=30.0),
    "ElastoPlastic": lambda s: fx.ElastoPlastic(sigma_0=s, sigma_1=30.0),
    "MaxwellSlip": lambda s: fx.MaxwellSlip(k=s * jnp.array([0.6, 0.4])),
}
FREE = ["mass.m", "friction.f_pos.F_Coulomb"]


def block(x: Any, bristle: Any, drive: Any) -> fx.Mechanism:
    law = fx.Coulomb(F_Coulomb=x[1], F_prop=0.2)
    return fx.Mechanism(
        mass=fx.Mass(m=x[0]),
        friction=fx.SupportFriction("mass", f_pos=law, bristle=bristle),
        drive=fx.Force("mass", drive),
    )


def run_by_steps(under_test: MachineUnderTest, engine: fx.OnSamples) -> Any:
    """The information of a run without events, in a program with one step in place of a dozen."""
    system = build_information_system(under_test, under_test.values(), [1e7], np.zeros(0))
    reused, fine = Reused(model_of(system, None)), jnp.linspace(0.0, 1.0, 4001)

    def step(k: Any, carry: Any) -> Any:
        mode = reused.tick(fine[k], carry[1])
        return take_step(reused, engine, mode, fine[k], fine[k + 1], carry[0]), mode

    return system.matrix(jax.lax.fori_loop(0, 4000, step, system.start(fine[0]))[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", list(BRISTLES))
def test_information_is_the_sum_over_samples_and_its_slope_that_of_differences(name: str) -> None:
    bristle = BRISTLES[name](2e3)
    x, sd = jnp.array([1.0, 1.0]), {"mass.v": 1e-2}
    machine = block(x, bristle, 0.0)
    # With error control, the number of parts of a step changes with `s`, and the run jumps there.
    # Differences need a fixed number of parts.
    engine = fx.OnSamples(tolerance=None, substeps=4)

    @jax.jit
    def speed(x: Any) -> Any:
        run = fx.simulate(block(x, bristle, fx.Sampled(T, U)), T, engine)
        return run["mass"].v

    def drive(s: Any) -> dict[str, Any]:
        return {"drive": jnp.asarray(U) + s * jnp.sin(2 * jnp.pi * 3.7 * T)}

    def informed(s: Any) -> Any:
        return fx.information(machine, T, sd, free=FREE, inputs=drive(s), engine=engine)

    def stepped(s: Any) -> Any:
        setup = checked_setup("test", machine, T, drive(s), sd, {})
        return run_by_steps(
            MachineUnderTest(setup, T, drive(s), tuple(FREE), tuple(sd), False), engine
        )

    # The slope of a whole run takes minutes to compile for this bristle, which has no events.
    run = stepped if name == "ElastoPlastic" else informed
    both = jax.jit(lambda s: jax.jvp(run, (s,), (jnp.ones(()),)))
    told, slope = both(0.0)
    if run is stepped:
        np.testing.assert_allclose(told, jax.jit(informed)(0.0), rtol=1e-9)
    J, h = central_differences(speed, x) / 1e-2, 1e-4
    np.testing.assert_allclose(told, J.T @ J, rtol=5e-3)
    sides = [both(k * h)[0] for k in (-2, -1, 1, 2)]
    expected = (sides[0] - 8 * sides[1] + 8 * sides[2] - sides[3]) / (12 * h)
    np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-4 * np.max(np.abs(expected)))


@pytest.mark.slow
def test_a_force_is_designed_that_tells_the_stiffness_of_a_bristle() -> None:
    machine = block([1.0, 1.0], fx.LuGre(sigma_0=2e3, sigma_1=30.0), 0.0)
    design = fx.design(
        machine,
        {"mass.s": 1e-5},
        free=[*FREE, "friction.bristle.sigma_0"],
        duration=1.0,
        rate=500.0,
        limits=fx.Limits(force=1.5, band=(1.0, 15.0)),  # without travel, no staircase is simulated
        steps=20,
        starts=2,
    )
    (chirp,) = design.beside
    assert design.worst() < 0.5 * design.worst(chirp)
    assert design.worst() < 1e-3
