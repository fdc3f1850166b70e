"""Derivatives of states and event times where contacts lock against each other: forward = reverse =
central differences.
"""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import assert_derivatives_agree, flat, outcome, rebuilt
from machines import (
    TIGHT,
    lossy_gear,
    mass_on_a_belt,
    one_way_clutch,
    planetary_gearbox,
    sprung_clutches,
    two_brakes_on_one_mass,
)

WHEELS, CLUTCHES = ("J1", "J2", "J3", "J4"), ("clutch1", "clutch2", "clutch3")
PATHS = [
    *(f"{clutch}.{name}" for clutch in CLUTCHES for name in ("mu_pos.f", "peak", "fn_max")),
    *(f"{wheel}.{name}" for wheel in WHEELS for name in ("J", "phi", "w")),
    "shaft.c",
    "shaft.d",
    "torque.tau.amplitude",
    "clutch2.f_normalized.f",
]
AWAY = (("clutch3", 1), ("clutch2", 4), ("clutch1", 5))  # which breaks away at which event


@pytest.mark.slow
def test_coupled_clutches_by_every_mu_peak_fn_max_inertia_stiffness_and_start() -> None:
    machine, ts = sprung_clutches(), jnp.array([0.0, 3.0])
    f = lambda x: outcome(rebuilt(machine, PATHS, x), ts, TIGHT, 8)  # noqa: E731
    jacobian = assert_derivatives_agree(f, flat(machine, PATHS), step=1e-4, reverse=False)
    times = jacobian[8:]
    for clutch, e in AWAY:
        assert abs(times[e, PATHS.index(f"{clutch}.peak")]) > 0.01
    assert np.all(np.max(np.abs(jacobian), axis=0) > 1e-3)


# machines that run beside each other in one program, end of the run, number of events, parameters
CASES = {
    "two brakes hold one mass": (
        (two_brakes_on_one_mass(),),
        2.5,
        8,
        [
            "mass.m",
            "guide.f_pos.F_Coulomb",
            "guide.f_pos.F_Stribeck",
            "guide.peak",
            "brake.mu_pos.f",
            "brake.peak",
            "brake.fn_max",
        ],
    ),
    "belt and planetary gear": (
        (mass_on_a_belt(), planetary_gearbox()),
        6.0,
        13,
        [
            "mass.m",
            "friction.f_pos.F_Coulomb",
            "friction.peak",
            "guide.f_pos.F_Coulomb",
            "spring.c",
            "drive.s.amplitude",
            "drive.s.f",
            "sun.J",
            "carrier.J",
            "ring.J",
            "planetary.ratio",
            "shaft.c",
            "brake.mu_pos.f",
            "brake.f_normalized.startTime",
        ],
    ),
    "lossy gear and freewheel": (
        (lossy_gear(), one_way_clutch()),
        1.4,
        12,
        [
            "Inertia1.J",
            "Inertia2.J",
            "gear.ratio",
            "gear.eta_mf1",
            "gear.eta_mf2",
            "torque1.tau.amplitude",
            "inertiaIn.J",
            "inertiaOut.J",
            "oneWayClutch.mu_pos.f",
            "oneWayClutch.fn_max",
            "torque.tau.amplitude",
        ],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_by_the_parameters_of_belts_gears_and_freewheels(name: str) -> None:
    machines, end, events, paths = CASES[name]
    machine = fx.Mechanism(**{part: m[part] for m in machines for part in m.names})
    ts, reverse = jnp.array([0.0, end]), name == "two brakes hold one mass"
    f = lambda x: outcome(rebuilt(machine, paths, x), ts, TIGHT, events)  # noqa: E731
    assert_derivatives_agree(f, flat(machine, paths), step=1e-4, reverse=reverse)


@pytest.mark.slow
def test_blocks_that_break_away_at_one_moment_keep_their_own_event_times() -> None:
    """Two equal blocks on one drive; the friction of the first does not move the second."""

    def pair(F: jax.Array) -> fx.Mechanism:
        drive = fx.Sine(amplitude=3.0, f=0.5)
        return fx.Mechanism(
            a=fx.Mass(m=1.0),
            b=fx.Mass(m=1.0),
            on_a=fx.SupportFriction("a", f_pos=fx.Coulomb(F_Coulomb=F[0]), peak=1.1),
            on_b=fx.SupportFriction("b", f_pos=fx.Coulomb(F_Coulomb=F[1]), peak=1.1),
            force_a=fx.Force("a", drive),
            force_b=fx.Force("b", drive),
        )

    def motion(F: jax.Array, engine: fx.Adaptive = TIGHT) -> jax.Array:
        run = fx.simulate(pair(F), jnp.array([0.0, 0.8]), engine)
        return jnp.concatenate([run.ys[-1], run.events.time[:2]])

    equal = jnp.array([1.0, 1.0])
    jacobian = jax.jit(jax.jacfwd(motion))(equal)
    alone = fx.Adaptive(rtol=TIGHT.rtol, atol=TIGHT.atol, adjoint=diffrax.ForwardMode())
    forward = jax.jit(jax.jacfwd(lambda F: motion(F, alone)))(equal)
    assert np.max(np.abs(np.asarray(forward - jacobian))) <= 1e-12
    position_a, position_b, speed_a, speed_b, leaves_a, leaves_b = jacobian
    # 3 sin(pi t) = 1.1 F, and from there on a = 3 sin(pi t) - F
    slope = 1.1 / (3 * np.pi * np.sqrt(1 - (1.1 / 3) ** 2))
    of_speed = np.arcsin(1.1 / 3) / np.pi - 0.8 - 0.1 * slope
    assert speed_a == pytest.approx([of_speed, 0.0], abs=1e-8)
    assert speed_b == pytest.approx([0.0, of_speed], abs=1e-8)
    assert leaves_a == pytest.approx([slope, 0.0], abs=1e-7)
    assert leaves_b == pytest.approx([0.0, slope], abs=1e-7)
    assert abs(float(position_a[1])) <= 1e-12
    assert abs(float(position_b[0])) <= 1e-12
    assert float(position_a[0]) == pytest.approx(float(position_b[1]), rel=1e-7)
