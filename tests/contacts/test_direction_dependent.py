"""A law of its own for motion backward: named, replaced, shown, differentiated and energy-balanced
like any other part.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import assert_derivatives_agree, flat, outcome, rebuilt
from machines import REFERENCE, TIGHT, times

STUCK, FORWARD, BACKWARD = int(fx.Mode.STUCK), int(fx.Mode.FORWARD), int(fx.Mode.BACKWARD)
TIMES = jnp.linspace(0.0, 3.0, 61)

STRIBECK = fx.Stribeck(F_Coulomb=1.0, F_prop=0.2, F_Stribeck=0.4, fexp=5.0)
GAUSSIAN = fx.Stribeck(F_Coulomb=1.4, F_prop=0.1, F_Stribeck=0.6, fexp=3.0, exponent=2.0)
TABLE = [[0, 1.6], [0.2, 1.1], [0.8, 1.3]]


def block(
    f_pos: Any = STRIBECK, f_neg: Any = GAUSSIAN, peak: Any = 1.15, amplitude: Any = 3.0
) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=f_pos, f_neg=f_neg, peak=peak),
        drive=fx.Force("mass", fx.Sine(amplitude=amplitude, f=0.7)),
    )


def stopped() -> fx.Mechanism:
    mass = fx.MassWithStopAndFriction(
        m=1.0,
        smin=-0.2,
        smax=0.2,
        F_prop=0.3,
        F_Coulomb=1.0,
        F_Stribeck=0.4,
        fexp=5.0,
        f_neg=fx.Coulomb(F_Coulomb=1.7, F_prop=0.1),
    )
    return fx.Mechanism(mass=mass, drive=fx.Force("mass", fx.Sine(amplitude=4.0, f=0.7)))


def braked() -> fx.Mechanism:
    brake = fx.Brake(
        "mass",
        mu_pos=fx.Coulomb(F_Coulomb=0.5),
        mu_neg=fx.Coulomb(F_Coulomb=0.8, F_prop=0.1),
        peak=1.1,
        fn_max=2.0,
        f_normalized=fx.Ramp(offset=0.8, height=0.4, duration=3.0),
    )
    return fx.Mechanism(
        mass=fx.Mass(m=1.0), brake=brake, drive=fx.Force("mass", fx.Sine(amplitude=3.0, f=0.7))
    )


@pytest.mark.parametrize(
    ("machine", "path", "names"),
    [
        (block(), "friction.f_pos", ["F_prop", "F_Coulomb", "F_Stribeck", "fexp"]),
        (block(), "friction.f_neg", ["F_prop", "F_Coulomb", "F_Stribeck", "fexp"]),
        (block(f_neg=TABLE), "friction.f_neg", ["f"]),
        (stopped(), "mass.f_neg", ["F_Coulomb", "F_prop"]),
        (braked(), "brake.mu_neg", ["F_Coulomb", "F_prop"]),
    ],
)
def test_each_laws_parameters_are_chosen_by_path_together_or_alone(
    machine: fx.Mechanism, path: str, names: list[str]
) -> None:
    expected = {f"{path}.{name}" for name in names}
    assert expected <= {p.path for p in fx.parameters.select(machine, path)}
    assert expected <= {p.path for p in fx.parameters.select(machine)}
    for one in expected:
        assert [p.path for p in fx.parameters.select(machine, one)] == [one]
    with pytest.raises(KeyError, match="no parameter 'friction.f_neg.F_Coulomb'"):
        fx.parameters.select(block(f_neg=None), "friction.f_neg.F_Coulomb")


@pytest.mark.slow
def test_replacing_a_parameter_of_one_law_leaves_the_other_as_it_was() -> None:
    changed = fx.parameters.replace(block(), {"friction.f_neg.F_Coulomb": 9.0})
    assert float(changed["friction"].f_neg.F_Coulomb) == 9.0
    assert float(changed["friction"].f_pos.F_Coulomb) == 1.0
    before, after = (
        fx.simulate(machine, TIMES, REFERENCE, energy=True) for machine in (block(), changed)
    )
    forward = np.asarray(TIMES) < 0.5 / 0.7  # the drive's first half wave pushes forward
    assert np.allclose(after["mass"].s[forward], before["mass"].s[forward], atol=1e-9)
    assert BACKWARD in before["friction"].mode
    assert BACKWARD not in after["friction"].mode


@pytest.mark.slow
def test_a_run_shows_the_law_of_the_direction_of_motion_and_at_rest_that_of_the_load() -> None:
    run = fx.simulate(block(amplitude=2.5), TIMES, REFERENCE, energy=True)
    f = run["friction"]
    assert {STUCK, FORWARD, BACKWARD} == set(np.asarray(f.mode).tolist())
    towards = np.where(f.locked, run["drive"].f >= 0, np.asarray(f.mode) == FORWARD)
    assert set(towards[np.asarray(f.locked)].tolist()) == {True, False}
    assert np.allclose(f.f0, np.where(towards, 1.4, 2.0))
    assert np.allclose(f.f0_max, 1.15 * np.where(towards, 1.4, 2.0))
    speed = jnp.abs(run["mass"].v)
    sliding = np.where(f.mode == FORWARD, STRIBECK(speed), -np.asarray(GAUSSIAN(speed)))
    assert np.allclose(f.f[~f.locked], sliding[~f.locked], atol=1e-12)
    assert np.all(f.lossPower >= 0)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("rate", [1.0, -1.0])
@pytest.mark.parametrize("kind", range(3), ids=["support", "brake", "between stops"])
def test_a_ramp_breaks_each_kind_of_contact_away_at_the_f0_max_of_its_direction(
    kind: int, rate: float
) -> None:
    ramp = fx.Force("mass", fx.Ramp(height=10 * rate, duration=10.0))
    supported = fx.Mechanism(mass=fx.Mass(m=1.0), friction=block()["friction"], drive=ramp)
    pressed = fx.parameters.replace(
        braked(), {"brake.f_normalized.height": 0.0, "brake.f_normalized.offset": 1.0}
    )
    pressed = fx.Mechanism(mass=fx.Mass(m=1.0), brake=pressed["brake"], drive=ramp)
    between = fx.Mechanism(mass=stopped()["mass"], drive=ramp)
    most = {
        1.0: [(supported, 1.15 * 1.4), (pressed, 1.1 * 0.5 * 2.0), (between, 1.001 * 1.4)],
        -1.0: [(supported, 1.15 * 2.0), (pressed, 1.1 * 0.8 * 2.0), (between, 1.001 * 1.7)],
    }
    machine, f0_max = most[rate][kind]
    assert times(machine, [0.0, 2.5])[0] == pytest.approx(f0_max, rel=1e-11)


@pytest.mark.slow
def test_the_same_law_twice_equals_one_law() -> None:
    once, twice = (fx.simulate(block(TABLE, f_neg), TIMES, REFERENCE) for f_neg in (None, TABLE))
    assert np.allclose(once.ys, twice.ys, atol=1e-10)
    assert np.array_equal(once["friction"].mode, twice["friction"].mode)


DIFFERENT: dict[str, tuple[fx.Mechanism, list[str]]] = {
    "two Stribeck laws": (
        block(),
        [
            *[f"friction.f_pos.{p}" for p in ("F_Coulomb", "F_prop", "F_Stribeck", "fexp")],
            *[f"friction.f_neg.{p}" for p in ("F_Coulomb", "F_prop", "F_Stribeck", "fexp")],
            "friction.peak",
            "mass.m",
            "drive.f.amplitude",
        ],
    ),
    "between stops": (
        stopped(),
        [
            "mass.F_Coulomb",
            "mass.F_prop",
            "mass.F_Stribeck",
            "mass.f_neg.F_Coulomb",
            "mass.f_neg.F_prop",
            "mass.m",
        ],
    ),
    "a brake": (
        braked(),
        [
            "brake.mu_pos.F_Coulomb",
            "brake.mu_neg.F_Coulomb",
            "brake.mu_neg.F_prop",
            "brake.peak",
            "brake.fn_max",
        ],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DIFFERENT)
def test_the_energy_balance_closes_and_derivatives_by_the_parameters_of_both_laws_equal_differences(
    name: str,
) -> None:
    machine, paths = DIFFERENT[name]
    run = fx.simulate(machine, TIMES, REFERENCE, energy=True)
    assert np.max(np.abs(run.energy.balance)) <= 1e-8
    assert np.all(np.diff(run.energy.friction) >= -1e-12)
    ts = jnp.array([0.0, 0.5, 1.3, 1.9])
    count = int(np.sum(np.asarray(run.events.time) <= 1.9))
    assert {FORWARD, BACKWARD} <= set(np.asarray(run.events.mode_after[:count]).tolist())
    f = lambda x: outcome(rebuilt(machine, paths, x), ts, TIGHT, count)  # noqa: E731
    slopes = assert_derivatives_agree(
        f, flat(machine, paths), step=1e-4, reverse=name == "between stops"
    )
    assert np.all(np.max(np.abs(slopes), axis=0)[: len(paths)] > 0)  # each has its influence
