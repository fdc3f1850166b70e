"""Derivatives of a measured signal."""

import jaxtyping
import numpy as np
import pytest

from frictax.measurements.filters import smooth

W = 2 * np.pi  # rad/s, of a sine of 1 Hz


def sine(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.sin(W * t + 0.3), W * np.cos(W * t + 0.3), -(W**2) * np.sin(W * t + 0.3)


def inside(t: np.ndarray, margin: float) -> np.ndarray:
    return (t > t[0] + margin) & (t < t[-1] - margin)


def uneven(rate: float, duration: float) -> np.ndarray:
    steps = 1.0 + 0.3 * np.sin(np.arange(int(rate * duration)))
    return np.concatenate([[0.0], np.cumsum(steps)]) * duration / steps.sum()


@pytest.mark.parametrize(
    "t", [np.linspace(0.0, 4.0, 4001), 5.0 + uneven(1000.0, 4.0)], ids=["uniform", "not uniform"]
)
def test_a_sine_below_the_cutoff_keeps_amplitude_and_phase_in_both_derivatives(
    t: np.ndarray,
) -> None:
    found, (x, v, a) = smooth(t, sine(t)[0], cutoff=15.0), sine(t)
    # The claim holds a few periods of the cutoff away from the ends.
    middle = inside(t, 3 / 15.0)
    for got, due in ((found.x, x), (found.v, v), (found.a, a)):
        assert np.max(np.abs(got - due)[middle]) <= 1e-3 * np.max(np.abs(due))


def test_at_the_ends_a_sine_is_met_less_well_but_not_wildly() -> None:
    t = np.linspace(0.0, 4.0, 4001)
    found, (x, v, a) = smooth(t, sine(t)[0], cutoff=15.0), sine(t)
    for got, due, bound in ((found.x, x, 0.01), (found.v, v, 0.1), (found.a, a, 1.0)):
        assert np.max(np.abs(got - due)) <= bound * np.max(np.abs(due))


def test_the_gain_at_the_cutoff_is_one_half_and_the_shift_none() -> None:
    t = np.linspace(0.0, 20.0, 20001)
    x = np.sin(W * t)
    middle = (t >= 5.0) & (t < 15.0)
    found = smooth(t, x, cutoff=1.0).x[middle]
    in_phase, across = (2 * np.mean(found * wave(W * t[middle])) for wave in (np.sin, np.cos))
    assert in_phase == pytest.approx(0.5, abs=1e-3)
    assert across == pytest.approx(0.0, abs=1e-3)


def test_noise_above_the_cutoff_goes_and_the_motion_stays() -> None:
    t = np.linspace(0.0, 4.0, 4001)
    x, v, _ = sine(t)
    found = smooth(t, x + 0.01 * np.sin(2 * np.pi * 300.0 * t), cutoff=15.0)
    middle = inside(t, 0.3)
    # a plain difference would be off by 0.01*2*pi*300 = 18.8
    assert np.max(np.abs(found.v - v)[middle]) <= 1e-3 * W


def test_a_straight_line_has_its_slope_up_to_the_ends() -> None:
    t = np.linspace(0.0, 1.0, 201)
    found = smooth(t, 3.0 * t - 1.0, cutoff=20.0)
    np.testing.assert_allclose(found.v, 3.0, rtol=1e-6)
    np.testing.assert_allclose(found.a, 0.0, atol=1e-3)


GOOD = np.linspace(0.0, 1.0, 101)
WRONG = {
    "cutoff above half the rate": (GOOD, GOOD, 60.0, 4, ["cutoff", "50 Hz", "60 Hz", "a tenth"]),
    "cutoff at half the rate": (
        GOOD,
        GOOD,
        50.0,
        4,
        ["cutoff", "below half the sampling rate", "50 Hz"],
    ),
    "cutoff below 1/duration": (
        GOOD,
        GOOD,
        0.5,
        4,
        ["cutoff", "1/duration", "0.5 Hz", "removes the whole motion"],
    ),
    "cutoff 0": (GOOD, GOOD, 0.0, 4, ["cutoff", "> 0", "0.0", "several times"]),
    "cutoff NaN": (GOOD, GOOD, float("nan"), 4, ["cutoff", "> 0", "nan", "several times"]),
    "cutoff as text": (GOOD, GOOD, "10 Hz", 4, ["cutoff", "'10 Hz'", "in hertz"]),
    "order 0": (GOOD, GOOD, 10.0, 0, ["order", "1 to 12", "0", "Leave it out"]),
    "order 2.5": (GOOD, GOOD, 10.0, 2.5, ["order", "whole number", "2.5", "Leave it out"]),
    "lengths": (GOOD, GOOD[:-1], 10.0, 4, ["`smooth` x", "101", "100", "Drop the rows"]),
    "a hole": (
        GOOD,
        np.where(GOOD == 0.5, np.nan, GOOD),
        10.0,
        4,
        ["`smooth` x", "nan", "row 50", "0.5 s", "Delete"],
    ),
    "times that fall": (
        GOOD[::-1],
        GOOD,
        10.0,
        4,
        ["must increase", "0.99 s after 1 s", "Reverse"],
    ),
    "three samples": (GOOD[:3], GOOD[:3], 10.0, 4, ["at least 4 samples", "3", "longer part"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_told_with_its_remedy(name: str) -> None:
    t, x, cutoff, order, pieces = WRONG[name]
    jaxtyping.config.update("jaxtyping_disable", True)  # as a user runs it
    try:
        with pytest.raises(ValueError, match=".") as error:
            smooth(t, x, cutoff, order)
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
    message = str(error.value)
    assert [piece for piece in pieces if piece not in message] == [], message
    assert "\n" not in message
    assert message.endswith(".")


@pytest.mark.parametrize("cutoff", [10.0, 20.0, 50.0])
def test_a_motion_that_begins_bent_has_its_velocity_and_acceleration_at_the_ends_too(
    cutoff: float,
) -> None:
    t = np.linspace(0.0, 4.0, 1601)
    found = smooth(t, t - 0.9 * t**2 + 0.1 * t**3, cutoff)
    np.testing.assert_allclose(found.v, 1.0 - 1.8 * t + 0.3 * t**2, atol=1e-5)
    np.testing.assert_allclose(found.a[1:-1], -1.8 + 0.6 * t[1:-1], atol=1e-4)
    # 1 rad/s^2 off the straight at once: 0.37 rad/s at 10 Hz by reflection alone
    released = smooth(t, np.cos(6.0 * t), cutoff)
    assert abs(released.v[0]) < 0.3 / cutoff
