"""A normal force that is measured: noise takes it through 0 and back again and again."""

import numpy as np
import pytest

import frictax as fx


def dry(f: float) -> fx.Coulomb:
    return fx.Coulomb(F_Coulomb=f, F_prop=0.0)


def braked(J: float, fn_max: float, press: object, drive: object) -> fx.Mechanism:
    return fx.Mechanism(
        wheel=fx.Inertia(J=J),
        brake=fx.Brake("wheel", mu_pos=dry(0.35), fn_max=fn_max, f_normalized=press),
        drive=fx.Torque("wheel", drive),
    )


def clutched(J: float, fn_max: float, press: object, drive: object) -> fx.Mechanism:
    return fx.Mechanism(
        wheel=fx.Inertia(J=J),
        load=fx.Inertia(J=J / 3),
        clutch=fx.Clutch("wheel", "load", mu_pos=dry(0.35), fn_max=fn_max, f_normalized=press),
        drive=fx.Torque("wheel", drive),
    )


@pytest.mark.slow
def test_a_brake_is_free_where_noise_makes_its_normal_force_negative() -> None:
    """Events at its zeros, each once, though it falls by 500 a second there."""
    t = np.arange(401) / 100.0
    press = 1.5 * np.random.default_rng(0).standard_normal(t.size)
    drive = np.full(t.size, 3.0)
    run = fx.simulate(braked(0.5, 1.0, fx.Sampled(t, press), fx.Sampled(t, drive)), t)
    after = np.asarray(run.events.mode_after)[: int(run.events.count)]
    crossings = np.sum(np.diff(np.sign(press)) != 0)
    assert abs(len(after) - crossings) <= 4
    # one-sided noise brakes on average: .35 of its mean positive part
    fine = np.linspace(0.0, t[-1], 40 * t.size)
    taken = 0.35 * np.trapezoid(np.maximum(np.interp(fine, t, press), 0.0), fine)
    assert float(np.asarray(run["wheel"].w)[-1]) == pytest.approx((3.0 * t[-1] - taken) / 0.5, 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("build", [braked, clutched])
def test_noise_of_any_size_at_any_time_ends_no_run(build) -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        dt, n = 10.0 ** rng.uniform(-4, -1), 300
        t = rng.choice([0.0, 1e3 * dt * n]) + dt * np.arange(n)
        size, fn_max = 10.0 ** rng.uniform(-3, 4), 10.0 ** rng.uniform(-2, 3)
        press = size * rng.standard_normal(n) * (rng.random(n) < 0.8)
        drive = 0.3 * fn_max * size * np.sin(6 * np.pi * np.arange(n) / n)
        J = fn_max * size * (dt * n / 10) ** 2 / 10
        machine = build(J, fn_max, fx.Sampled(t, press), fx.Sampled(t, drive))
        for engine in (fx.OnSamples(), fx.Adaptive()):
            fx.simulate(machine, t, engine)  # raises where it does not come to its end
