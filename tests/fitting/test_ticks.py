"""Fits to ticks: errors are those of the times. Intervals are as wide as the estimates spread."""

import functools

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import frictax as fx
from frictax.fitting.problem.objectives import PreparedRecord

A, B, C, W0 = 8e-2, 4e-3, 1.2e-3, 25.0  # [N.m, ...] friction of a wheel of 1 kg.m2 that coasts
J, M = 0.02, 2.0


@functools.cache
def ticks_of(kind):
    """The counts and the exact times of the ticks, and the size of a step [SI]."""
    rate, start, step, end = {
        "coasting": (lambda t, w: -(A + B * w + C * w**2), W0, 2 * np.pi, 100.0),
        "driven": (lambda t, w: (torque(t) - 0.1 - 0.01 * w) / J, 20.0, np.pi / 4, 12.0),
        "linear": (lambda t, v: (force(t) - 3.0 - 4.0 * v) / M, 0.3, 0.01, 8.0),
    }[kind]
    run = solve_ivp(
        lambda t, y: [y[1], rate(t, y[1])],
        (0, end),
        [0.0, start],
        rtol=1e-10,
        atol=1e-10,
        dense_output=True,
        max_step=end / 200,
    )
    fine = np.linspace(0.0, end, 200001)
    x = run.sol(fine)[0]
    counts = np.arange(int(x[-1] / step))
    return counts, np.interp(step * counts, x, fine), step


def torque(t):
    return 0.3 + 0.15 * np.sin(1.1 * t)


def force(t):
    return 6.0 + 2.0 * np.sin(2 * t) + np.sin(5 * t)


def coasting(seed):
    counts, t, step = ticks_of("coasting")
    t = t + 2e-3 * np.random.default_rng(seed).standard_normal(t.size)
    wheel = fx.Mechanism(
        rotor=fx.Inertia(J=1.0, w=24.0),
        bearing=fx.BearingFriction("rotor", tau_pos=fx.Coulomb(F_Coulomb=0.1, F_prop=1e-3)),
        drag=fx.QuadraticSpeedDependentTorque("rotor", tau_nominal=-1e-3),
    )
    record = fx.Record(t - t[0], {}, {"rotor.phi": step * counts}, name="coast")
    truth = {
        "bearing.tau_pos.F_Coulomb": A,
        "bearing.tau_pos.F_prop": B,
        "drag.tau_nominal": -C,
    }
    return wheel, record, ["bearing.tau_pos", "rotor.w", "drag.tau_nominal"], truth


def driven(seed, lost=0.0):
    counts, t, step = ticks_of("driven")
    rng = np.random.default_rng(seed)
    t = t + 1e-3 * rng.standard_normal(t.size)
    kept = np.ones(t.size, bool)
    kept[1 + rng.choice(t.size - 1, int(lost * t.size), replace=False)] = False
    wheel = fx.Mechanism(
        rotor=fx.Inertia(J=0.03, w=18.0),
        bearing=fx.BearingFriction("rotor", tau_pos=fx.Coulomb(F_Coulomb=0.05, F_prop=0.02)),
        motor=fx.Torque("rotor", 0.0),
    )
    outputs = {"rotor.phi": step * counts[kept]}
    record = fx.Record(t[kept], {"motor": torque(t[kept])}, outputs, name="driven")
    truth = {"bearing.tau_pos.F_Coulomb": 0.1, "bearing.tau_pos.F_prop": 0.01, "rotor.J": J}
    return wheel, record, ["bearing.tau_pos", "rotor.w", "rotor.J"], truth


def linear(seed):
    counts, t, step = ticks_of("linear")
    t = np.round(t + 1e-3 * np.random.default_rng(seed).standard_normal(t.size), 4)
    slide = fx.Mechanism(
        slide=fx.Mass(m=1.5, v=0.4),
        friction=fx.SupportFriction("slide", f_pos=fx.Coulomb(F_Coulomb=2.0, F_prop=5.0)),
        drive=fx.Force("slide", 0.0),
    )
    outputs = {"slide.s": step * counts - 0.3}
    record = fx.Record(t + 5.0, {"drive": force(t)}, outputs, name="linear")
    truth = {"friction.f_pos.F_Coulomb": 3.0, "friction.f_pos.F_prop": 4.0, "slide.m": M}
    return slide, record, ["friction.f_pos", "slide.v", "slide.m", "slide.s"], truth


@functools.cache
def fitted(make, seed=0):
    machine, record, free, _ = make(seed)
    return fx.fit(machine, record, free=free)


@pytest.mark.slow
def test_the_misfit_of_ticks_is_a_time_and_at_the_noise():
    found = fitted(coasting)
    assert found.rms_units("coast") == {"rotor.phi": "s"}
    assert found.rms["coast"]["rotor.phi"] == pytest.approx(2e-3, rel=0.15)
    assert "rotor.phi 1.87 ms" in str(found)
    assert found.at_noise


@pytest.mark.slow
def test_a_wheel_that_coasts_gives_no_warning_but_of_its_condition():
    assert {n.code for n in fitted(coasting).notices} == {"ill-conditioned", "record-ticks"}


@pytest.mark.slow
def test_a_start_that_is_fitted_is_not_projected_out():
    found = fitted(linear)
    assert found.values["slide.s"] == pytest.approx(-0.3, abs=5 * found.standard_errors["slide.s"])
    for fit, floating in ((found, ()), (fitted(coasting), ("rotor.phi",))):
        (one,) = fit.problem.prepared
        assert isinstance(one, PreparedRecord)
        assert one.floating == floating


def test_an_error_of_positions_that_is_given_counts_in_place_of_one_of_times():
    _, record, *_ = coasting(0)
    given = fx.Record(record.t, {}, record.outputs, sd={"rotor.phi": 0.05})
    prepared = fx.FreeRun().prepare(coasting(0)[0], given)
    assert not prepared.tick_noise
    assert prepared.weight == pytest.approx(20.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "seeds", "widest"),
    [
        (coasting, 60, 1.5),
        (driven, 100, 1.5),
        (functools.partial(driven, lost=0.1), 60, 1.8),  # inputs are straight over lost ticks
        (linear, 60, 1.7),
    ],
    ids=["coasting", "driven", "lost", "linear"],
)
def test_intervals_of_ticks_are_as_wide_as_the_estimates_spread(make, seeds, widest):
    values, halves, inside = [], [], []
    for seed in range(seeds):
        machine, record, free, truth = make(seed)
        found = fx.fit(machine, record, free=free)
        intervals = [found.intervals[name] for name in truth]
        values.append([found.values[name] for name in truth])
        halves.append([(high - low) / 2 for low, high in intervals])
        inside.append(
            [low <= x <= high for (low, high), x in zip(intervals, truth.values(), strict=True)]
        )
    ratio = np.median(halves, axis=0) / 1.96 / np.std(values, axis=0, ddof=1)
    assert np.all(ratio < widest)
    assert np.all(np.mean(inside, axis=0) > 0.88)
