"""Branches of limit cycles: where they end and turn, against long simulations and closed forms."""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from hunters import Servo, belt, of_the_belt, run, servo, settled


@functools.cache
def hunting() -> fx.LimitCycle:
    return fx.limit_cycle(servo(), within=60.0)


@functools.cache
def branch(path: str, to: float) -> fx.Branch:
    return fx.continued(hunting(), path, to, longest_step=0.5)


def goes_on(machine: Servo, start: Any, end: float = 300.0) -> tuple[bool, float]:
    """Whether it still moves after a long time, begun at rest, and how far from the middle it was
    on the way.
    """
    path = run(machine, jnp.asarray(start), jnp.array([0]), jnp.linspace(0.0, end, 5))
    n = int(path.count)
    moved = np.asarray(path.times)[:n][np.asarray(path.before[:n, 0] != path.after[:n, 0])]
    last = moved[-1] if moved.size else 0.0
    return bool(last > 0.8 * end), float(jnp.max(jnp.abs(path.ys[-2:, 0])))


@pytest.mark.parametrize(("path", "to"), [("ki", 10.0), ("friction.peak", 1.0)], ids=["ki", "peak"])
@pytest.mark.slow
def test_the_least_value_that_hunts_is_that_of_a_scan_of_long_simulations(
    path: str, to: float
) -> None:
    along = branch(path, to)
    assert "the state does not return within 60 s" in along.ended
    assert along.folds == ()
    edge, last = along.values[-1], along.cycles[-1]
    assert edge == np.min(along.values)
    scan = edge * np.array([0.99, 0.998, 1.002, 1.01])
    # close to the edge there is little room around the cycle from which it is come to
    starts = [size * last.start for size in (0.99, 1.0, 1.01, 1.02, 1.05)]
    hunts = [
        any(goes_on(fx.parameters.replace(last.machine, {path: value}), y)[0] for y in starts)
        for value in scan
    ]
    assert hunts == [False, False, True, True]
    # there the torque that the integral ends with is the one that breaks it away
    m = last.machine
    torque = (m.kp + m.ki / m.leak) * abs(last.start[0])
    assert float(torque) == pytest.approx(float(0.05 * m.friction.peak), rel=1e-6)


@pytest.mark.slow
def test_the_greatest_ki_that_hunts_is_where_the_branch_turns_and_beyond_it_runs_away() -> None:
    along = branch("ki", 250.0)
    (fold,) = along.folds
    top = int(np.argmax(along.values))
    assert along.values[top] == pytest.approx(fold, rel=1e-12)
    assert np.all(along.stable[:top])
    assert not np.any(along.stable[top + 1 :])
    at = along.cycles[top - 1]
    for value, stays in ((0.998 * fold, True), (1.002 * fold, False)):
        moved = fx.parameters.replace(at.machine, {"ki": value})
        on, size = goes_on(moved, at.start, end=40.0)
        assert on
        assert (size < 2 * along.amplitude[top, 0]) == stays
    # the other cycles grow without bound towards where the linear loop is no longer stable
    m = at.machine
    s, damping, c = float(m.leak), float(m.kd / m.J), float(m.kp / m.J)
    limit = float(m.J) * ((s + damping) * (c + s * damping) - s * c)
    assert "It grows without bound" in along.ended
    assert along.values[-1] == pytest.approx(limit, rel=5e-3)


@pytest.mark.slow
def test_a_fold_does_not_depend_on_the_steps_that_come_to_it() -> None:
    finer = fx.continued(hunting(), "ki", 250.0, longest_step=0.2)
    assert finer.folds[0] == pytest.approx(branch("ki", 250.0).folds[0], rel=1e-7)


@pytest.mark.slow
def test_a_cycle_that_is_not_stable_comes_back_to_itself_all_the_same() -> None:
    along = branch("ki", 250.0)
    cycle = next(c for c, stable in zip(along.cycles, along.stable, strict=True) if not stable)
    assert cycle.multipliers[0] > 1
    ts = jnp.linspace(0.0, cycle.period, 5)
    path = run(cycle.machine, jnp.asarray(cycle.start), jnp.asarray(cycle.mode), ts)
    np.testing.assert_allclose(path.ys[-1], cycle.start, atol=1e-7 * cycle.amplitude[0])


@pytest.mark.slow
def test_each_cycle_of_a_branch_is_that_of_a_long_simulation() -> None:
    along = branch("friction.peak", 1.0)
    for cycle in along.cycles[1:9:3]:
        period, low, high = settled(cycle.machine, 60.0)
        assert cycle.period == pytest.approx(period, rel=1e-6)
        np.testing.assert_allclose(cycle.amplitude, 0.5 * (high - low), rtol=1e-6)


@pytest.mark.slow
def test_a_branch_of_the_belt_is_the_closed_form_to_its_end() -> None:
    cycle = fx.limit_cycle(belt(), within=20.0)
    along = fx.continued(cycle, "friction.peak", to=1.2, longest_step=0.5)
    assert along.values[-1] == 1.2
    assert along.ended == "It reached friction.peak = 1.2."
    for value, one in zip(along.values, along.cycles, strict=True):
        exact = of_the_belt(100.0, value, 0.1, 1.0)
        np.testing.assert_allclose([one.period, one.amplitude[0]], exact, rtol=1e-8)
    lines = str(along).splitlines()
    assert lines[0].split() == ["friction.peak", "period", "[s]", "mass.s", "mass.v", "multiplier"]
    assert len(lines) == len(along.cycles) + 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        (("kii", 9.0), KeyError, "Did you mean 'ki'"),
        (("friction", 9.0), ValueError, "must be a parameter of one number"),
        (("ki", 40.0), ValueError, "`to` must be a value other than 40"),
        (("ki", np.inf), ValueError, "`to` must be a value other than 40"),
        (("J", -1.0), ValueError, "`Servo.J` must be > 0"),
        (("friction.f_pos.F_prop", -0.5), ValueError, "`Coulomb.F_prop` must be >= 0"),
    ],
)
def test_arguments_that_do_not_fit_are_told(arguments: Any, error: Any, sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        fx.continued(hunting(), *arguments)


@pytest.mark.slow
@pytest.mark.parametrize("longest_step", [0.0, -0.05, np.nan, np.inf])
def test_a_step_that_is_not_above_0_is_refused(longest_step: float) -> None:
    with pytest.raises(ValueError, match="`longest_step` must be a number > 0"):
        fx.continued(hunting(), "ki", 10.0, longest_step=longest_step)


@pytest.mark.slow
def test_a_branch_may_end_at_the_bound_of_a_domain() -> None:
    along = fx.continued(hunting(), "leak", to=0.0, longest_step=1.0)
    assert along.ended == "It reached leak = 0."
    assert along.values[-1] == 0.0
