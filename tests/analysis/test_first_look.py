"""What a fit prints of a force that it lacks: without a drive, beneath white noise, and beside
noise of the inputs.
"""

from typing import Any

import numpy as np
import pytest

import frictax as fx
from frictax.analysis.missing.candidates import catalogue
from frictax.analysis.missing.score_test import has_peak, p_of_slow_changes
from rigs import FINE

# -- a spring that is let go: no drive acts
# --------------------------------------------------------------------------------------------------

DECAY = np.arange(2001) / 1000.0
OF_DECAY = ["spring.c", "friction.f_pos.F_Coulomb", "friction.f_pos.F_prop", "mass.s"]


def let_go(c: float, dry: float, viscous: float, s: float, **more: Any) -> fx.Mechanism:
    law = fx.Coulomb(F_Coulomb=dry, F_prop=viscous)
    return fx.Mechanism(
        mass=fx.Mass(m=1.0, s=s),
        wall=fx.Fixed(),
        spring=fx.Spring("wall", "mass", c=c),
        friction=fx.SupportFriction("mass", f_pos=law),
        **more,
    )


def decayed(drag: float, seed: int) -> fx.FitResult:
    """By a model without drag: it moves the speed by a fifth of the noise, and F_prop by half of
    what it is found to be.
    """
    air = fx.QuadraticSpeedDependentForce("mass", -drag)
    v = np.asarray(fx.simulate(let_go(2500.0, 0.6, 1.0, 0.004, air=air), DECAY, FINE)["mass"].v)
    v = v + 2e-3 * np.random.default_rng([88, seed]).standard_normal(v.size)
    start = let_go(2100.0, 0.7, 0.85, 0.0046)
    return fx.fit(start, fx.Record(DECAY, {}, {"mass.v": v}, name="ring"), free=OF_DECAY)


@pytest.mark.slow
def test_a_free_decay_names_the_drag_that_hides_in_its_numbers_and_beneath_the_noise() -> None:
    found = decayed(32.0, 0)
    assert abs(found.values["friction.f_pos.F_prop"] - 1.0) > 4.0
    (notice,) = [n for n in found.notices if n.code == "term-missing"]
    assert notice.subject == found.missing().found[0].name == "drag over v^2 of friction"
    assert "drag over v^2 of friction" in str(found)


@pytest.mark.slow
def test_a_free_decay_of_a_right_model_names_nothing() -> None:
    for seed in range(20):
        assert not any(n.code == "term-missing" for n in decayed(0.0, seed).notices), seed


def test_white_noise_has_peaks_as_seldom_as_said_and_a_faint_swing_is_one() -> None:
    rng, count = np.random.default_rng(0), 1000
    assert sum(has_peak(rng.standard_normal(500)) for _ in range(count)) < 20
    swing = 0.3 * np.sin(0.37 * np.arange(2000))  # 4 % of the squares
    assert all(has_peak(swing + rng.standard_normal(2000)) for _ in range(20))


def test_numbers_that_waver_are_as_seldom_as_said_in_white_noise() -> None:
    t = np.linspace(0.0, 1.0, 400)
    fitted = np.column_stack([np.exp(-3.0 * t) * np.sin(60.0 * t), t, t**2, 1e3 * t**2])
    rng = np.random.default_rng(0)
    chances = [p_of_slow_changes(rng.standard_normal(t.size), fitted) for _ in range(400)]
    assert 2 <= sum(x < 0.02 for x in chances) <= 20
    drifts = np.sin(60.0 * t) * t * np.exp(-3.0 * t)
    noise = rng.standard_normal(t.size)
    assert p_of_slow_changes(10.0 * drifts + noise, fitted) < 1e-6
    assert p_of_slow_changes(10.0 * fitted[:, 0] + noise, fitted) > 1e-3


# -- a torque that is recorded with noise, which a flywheel adds up, and nothing for 1.5 s
# --------------------------------------------------------------------------------------------------

RUN = np.arange(2001) / 100.0
RUN = RUN[(RUN < 8.0) | (RUN > 9.5)]
OF_WHEEL = {"wheel.J": 0.8, "bearing.tau_pos.F_Coulomb": 0.9, "bearing.tau_pos.F_prop": 0.06}


def wheel(J: float, dry: float, viscous: float, torque: object = 0.0) -> fx.Mechanism:
    law = fx.Coulomb(F_Coulomb=dry, F_prop=viscous)
    return fx.Mechanism(
        wheel=fx.Inertia(J=J, w=20.0),
        bearing=fx.BearingFriction("wheel", tau_pos=law),
        drive=fx.Torque("wheel", torque),
    )


def turned(seed: int, late: float = 0.0) -> fx.FitResult:
    rng = np.random.default_rng([22, seed])
    f, phase = np.array([0.13, 0.47, 1.2]), rng.uniform(0.0, 2.0 * np.pi, 3)
    u = 1.6 + np.array([4.0, 3.0, 2.0]) @ np.sin(2 * np.pi * f[:, None] * RUN + phase[:, None])
    acting = np.interp(RUN - late, RUN, u)
    machine = wheel(*OF_WHEEL.values(), torque=fx.Sampled(RUN, acting))
    w = np.asarray(fx.simulate(machine, RUN, FINE)["wheel"].w)
    w = w + 0.15 * rng.standard_normal(w.size)
    noisy = u + 0.05 * np.sqrt(np.mean(u**2)) * rng.standard_normal(u.size)
    record = fx.Record(RUN, {"drive": noisy}, {"wheel.w": w}, name="wheel")
    return fx.fit(wheel(0.92, 0.75, 0.07), record, free=list(OF_WHEEL), rounds=0)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_noise_of_a_torque_that_steps_over_a_gap_is_taken_for_no_term() -> None:
    """One such record in four named a delay or a friction before."""
    for seed in range(16):
        found = turned(seed)
        assert not any(n.code == "term-missing" for n in found.notices), seed
        if seed == 0:
            assert not found.missing().found


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_and_a_delay_beside_it_is_named() -> None:
    """With other noise it is not always named: the torque in the gap may explain as much."""
    found = turned(0, late=0.03).missing().found
    assert "delay" in found[0].name


# -- a brake, which turns or slides as its body does
# --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_terms_of_a_brake_are_those_of_a_coefficient_over_the_speed_of_its_body() -> None:
    t = np.arange(201) / 100.0
    w = 20.0 - 3.0 * t + 0.02 * np.random.default_rng(0).standard_normal(t.size)
    braked = fx.Mechanism(
        wheel=fx.Inertia(J=0.5, w=20.0),
        brake=fx.Brake("wheel", mu_pos=[[0.0, 0.35]], cgeo=0.1, f_normalized=0.0),
    )
    record = fx.Record(t, {"brake": np.full(t.size, 42.0)}, {"wheel.w": w}, name="wheel")
    found = fx.fit(
        braked, record, free=["brake.mu_pos.f"], objective=fx.InverseDynamics(20.0, at_samples=True)
    )
    units = {one.name: one.unit for one in catalogue(found)}
    (drag, dip) = (one for one in catalogue(found) if one.term in ("drag", "Stribeck"))
    assert drag.is_possible(np.array([0.1]))
    assert not drag.is_possible(np.array([-0.1]))  # friction brakes
    assert dip.is_possible(np.array([-0.1, 0.2]))
    assert not dip.is_possible(np.array([-0.3, 0.2]))
    assert units["drag over v^2 of brake"] == "s2/rad2"
    assert units["Stribeck friction of brake"] == "1"
    assert units["constant force on wheel"] == "N.m"
