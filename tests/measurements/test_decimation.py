"""A record with every n-th sample: what its inputs do on the way stays."""

import numpy as np
import pytest

import frictax as fx
from plain_record import UNEVEN, T, record, same


def impulse(found: fx.Record) -> np.ndarray:
    u, dt = found.inputs["drive"], np.diff(found.t)
    pieces = u[:-1] * dt if found.hold else 0.5 * (u[1:] + u[:-1]) * dt
    return np.concatenate([[0.0], np.cumsum(pieces)])


@pytest.mark.parametrize("t", [T, UNEVEN], ids=["uniform", "not uniform"])
@pytest.mark.parametrize("n", [2, 5, 7])
def test_decimation_keeps_the_impulse_of_a_held_input_at_every_kept_time(
    t: np.ndarray, n: int
) -> None:
    whole = record(t, hold=True)
    thin = whole.decimate(n)
    np.testing.assert_array_equal(thin.t, t[::n])
    np.testing.assert_array_equal(thin.outputs["mass.s"], whole.outputs["mass.s"][::n])
    np.testing.assert_allclose(impulse(thin), impulse(whole)[::n], atol=1e-13)


@pytest.mark.parametrize("t", [T, UNEVEN], ids=["uniform", "not uniform"])
@pytest.mark.parametrize("n", [2, 5, 7])
def test_decimation_of_a_joined_input_keeps_its_whole_impulse_and_moment_and_what_is_straight(
    t: np.ndarray, n: int
) -> None:
    rng = np.random.default_rng(1)
    whole = record(
        t, inputs={"drive": np.cos(3 * t) + rng.normal(size=t.size), "line": 2.0 - 3.0 * t}
    )
    thin = whole.decimate(n)
    last = thin.n * n - n
    assert impulse(thin)[-1] == pytest.approx(impulse(whole)[last], abs=1e-12)
    np.testing.assert_allclose(thin.inputs["line"], 2.0 - 3.0 * thin.t, atol=1e-10)
    # Between two kept times nothing accumulates: the impulse is never off by more than a step's
    # own.
    off = np.max(np.abs(impulse(thin) - impulse(whole)[::n][: thin.n]))
    assert off <= 2.0 * np.max(np.diff(thin.t))


def moment(t: np.ndarray, u: np.ndarray) -> float:
    fine = np.linspace(t[0], t[-1], 200001)
    return float(np.trapezoid(fine * np.interp(fine, t, u), fine))


def test_decimation_of_a_joined_input_keeps_its_moment() -> None:
    noisy = np.random.default_rng(2).normal(size=T.size)
    thin = record(inputs={"drive": noisy}).decimate(4)
    assert moment(thin.t, thin.inputs["drive"]) == pytest.approx(moment(T, noisy), abs=1e-6)


def test_decimation_by_one_changes_nothing() -> None:
    same(record().decimate(1), record())
