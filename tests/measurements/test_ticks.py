"""Records of ticks: one sample for each step of a position, at uneven times."""

import numpy as np
import pytest

import frictax as fx
from frictax.measurements.noise import find_ticks

TURN = 2 * np.pi
COUNTS = np.arange(400)
SLOWING = 60.0 * (1.0 - np.sqrt(1.0 - COUNTS / 420.0))  # [s] times of a wheel that coasts
NOISE = 2e-3 * np.random.default_rng(0).standard_normal(COUNTS.size)


def record(t, x, **more):
    return fx.Record(t, {}, {"rotor.phi": x}, **more)


def codes(one):
    return [n.code for n in one.notices]


@pytest.mark.parametrize("sign", [1, -1])
def test_the_speed_and_the_noise_of_ticks_are_read_from_their_times(sign):
    ticks = find_ticks(SLOWING + NOISE, sign * TURN * COUNTS)
    assert ticks is not None
    speed = TURN / np.gradient(SLOWING, COUNTS)
    assert ticks.step == pytest.approx(TURN)
    assert ticks.noise == pytest.approx(2e-3, rel=0.1)
    assert ticks.speed[:-3] == pytest.approx(speed[:-3], rel=0.05)


def test_a_wheel_that_slows_down_has_no_gaps_and_no_doubtful_clock():
    assert codes(record(10 * (SLOWING + NOISE), TURN * COUNTS)) == ["record-ticks"]


def test_ticks_that_are_lost_are_counted_and_many_of_them_are_a_gap():
    kept = np.random.default_rng(1).uniform(size=COUNTS.size) > 0.1
    kept[[0, 198, 213]], kept[199:213] = True, False
    one = record((SLOWING + NOISE)[kept], TURN * COUNTS[kept])
    assert one.ticks["rotor.phi"].counts.sum() == COUNTS[kept][-1]
    assert one.ticks["rotor.phi"].noise == pytest.approx(2e-3, rel=0.15)
    assert codes(one) == ["record-gaps", "record-ticks"]
    assert one.t[one.gaps] == pytest.approx((SLOWING + NOISE)[198:199])


T = 0.01 * np.arange(2000)
JITTERED = T + 0.004 * np.random.default_rng(2).uniform(size=T.size)


@pytest.mark.parametrize("t", [T, JITTERED], ids=["even", "jittered"])
@pytest.mark.parametrize("speed", [0.3, 0.97, 1.1, 3.3])  # steps in a sample
@pytest.mark.parametrize("course", [lambda t: t, lambda t: t + 0.5 * np.sin(t)])
def test_an_encoder_that_is_sampled_has_no_ticks(t, speed, course):
    x = 1e-3 * np.floor(speed * course(t) / 0.01)
    assert find_ticks(t, x) is None


def test_commanded_positions_of_a_step_motor_and_dropped_samples_are_no_ticks():
    even, kept = 1e-3 * np.arange(2000), np.random.default_rng(3).uniform(size=2000) > 0.2
    assert find_ticks(T, even) is None
    assert find_ticks(T[kept], even[kept]) is None


def test_ticks_of_a_motion_that_turns_back_are_named():
    path = np.concatenate([COUNTS[:200], COUNTS[198::-1]])
    one = record((SLOWING + NOISE)[: path.size], TURN * path)
    assert "record-ticks-turn" in codes(one)
    assert not one.ticks


@pytest.mark.parametrize("objective", [fx.Windows(), fx.InverseDynamics()])
def test_objectives_that_need_a_clock_refuse_ticks(objective):
    rotor = fx.Mechanism(
        rotor=fx.Inertia(J=1.0, w=25.0),
        bearing=fx.BearingFriction("rotor", tau_pos=fx.Coulomb(F_Coulomb=0.02)),
    )
    one = record(SLOWING + NOISE, TURN * COUNTS)
    with pytest.raises(ValueError, match="one sample for each step of a position"):
        fx.fit(rotor, one, free=["bearing.tau_pos"], objective=objective)
