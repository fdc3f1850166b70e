"""Friction between bodies that always turn alike: it can hold no motion and does nothing."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from machines import TIGHT

TS = jnp.linspace(0.0, 1.0, 11)
ENGINES = pytest.mark.parametrize(
    "engine", [TIGHT, fx.OnSamples(substeps=100)], ids=["adaptive", "on_samples"]
)


def shafts(ratio: float, **contacts: Any) -> fx.Mechanism:
    """Three shafts of which the first and the last turn alike, whatever `ratio` is."""
    return fx.Mechanism(
        J1=fx.Inertia(J=1.0, w=1.0),
        J2=fx.Inertia(J=2.0),
        J3=fx.Inertia(J=0.5),
        gear=fx.IdealGear("J1", "J2", ratio=ratio),
        back=fx.IdealGear("J2", "J3", ratio=1 / ratio),
        torque=fx.Torque("J1", fx.Sine(10.0, f=1.0)),
        **contacts,
    )


def clutch(kind: Any = fx.Clutch, f_normalized: Any = 1.0) -> Any:
    return kind("J1", "J3", mu_pos=[[0, 0.5]], peak=1.1, fn_max=20.0, f_normalized=f_normalized)


def bearing(body: str, support: str | None = None) -> fx.BearingFriction:
    return fx.BearingFriction(body, tau_pos=fx.Coulomb(F_Coulomb=3.0, F_prop=0.1), support=support)


def assert_idle(run: Any, name: str) -> None:
    contact = run[name]
    assert np.all(contact.tau == 0.0)
    assert np.all(contact.lossPower == 0.0)


@pytest.mark.slow
@ENGINES
def test_a_clutch_across_gears_of_total_ratio_1_does_nothing(engine: Any) -> None:
    """w = w0 + 10 (1 - cos(2 pi t))/(2 pi J), with J = 1 + 2/0.7**2 + 0.5."""
    run = fx.simulate(shafts(0.7, clutch=clutch()), TS, engine)
    w = 1.0 + 10.0 * (1 - np.cos(2 * np.pi * TS)) / (2 * np.pi * (1.5 + 2.0 / 0.49))
    np.testing.assert_allclose(run["J1"].w, w, rtol=0, atol=1e-6)
    assert np.all(run["clutch"].mode == fx.Mode.STUCK)
    assert_idle(run, "clutch")


@pytest.mark.slow
@ENGINES
@pytest.mark.parametrize("ratio", [1.0, -0.3])
def test_beside_friction_that_acts_any_other_that_cannot_changes_nothing(
    engine: Any, ratio: float
) -> None:
    acts = {"bearing": bearing("J2"), "brake": fx.Brake("J1", mu_pos=[[0, 0.5]], fn_max=4.0)}
    idle = {
        "clutch": clutch(f_normalized=fx.Sine(1.0, f=1.5)),
        "freewheel": clutch(fx.OneWayClutch),
        "between": bearing("J3", "J1"),
    }
    alone = fx.simulate(shafts(ratio, **acts), TS, engine)
    run = fx.simulate(shafts(ratio, **acts, **idle), TS, engine)
    for name in ("J1", "J2", "J3"):
        np.testing.assert_allclose(run[name].w, alone[name].w, rtol=0, atol=1e-8)
    for name in acts:
        np.testing.assert_allclose(run[name].tau, alone[name].tau, rtol=0, atol=1e-6)
    for name in idle:
        assert_idle(run, name)


@pytest.mark.slow
@ENGINES
def test_a_clutch_across_a_lossy_gear_of_ratio_1_does_nothing(engine: Any) -> None:
    def geared(**contacts: Any) -> Any:
        machine = fx.Mechanism(
            J1=fx.Inertia(J=1.0, w=1.0),
            J2=fx.Inertia(J=2.0),
            gear=fx.LossyGear("J1", "J2", ratio=1.0, lossTable=[[0, 0.5, 0.5, 0, 0]]),
            torque=fx.Torque("J1", fx.Sine(3.0, f=1.0, offset=10.0)),
            **contacts,
        )
        return fx.simulate(machine, TS, engine)

    run = geared(clutch=fx.Clutch("J1", "J2", mu_pos=[[0, 0.5]], fn_max=20.0))
    np.testing.assert_allclose(run["J2"].w, geared()["J2"].w, rtol=0, atol=1e-8)
    assert_idle(run, "clutch")


@pytest.mark.slow
@ENGINES
def test_derivatives_beside_a_clutch_that_does_nothing_are_those_without_it(engine: Any) -> None:
    """phi at 1 s is w0 + height/(2 pi J), as the torque's mean is 0."""

    def end(x: Any) -> Any:
        machine = shafts(0.7, clutch=clutch())
        machine = fx.parameters.replace(machine, {"J1.w": x[0], "torque.tau.amplitude": x[1]})
        return jnp.stack([fx.simulate(machine, TS, engine)["J1"].phi[-1]])

    exact = [[1.0, 1 / (2 * np.pi * (1.5 + 2.0 / 0.49))]]
    for mode in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(mode(end)(jnp.array([1.0, 10.0])), exact, rtol=0, atol=1e-5)
