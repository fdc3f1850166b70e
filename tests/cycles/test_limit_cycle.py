"""Limit cycles and branches of them, against closed forms, long simulations, and differences of the
return map.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from hunters import Relay, Servo, belt, of_the_belt, run, servo, settled


@functools.cache
def hunting() -> fx.LimitCycle:
    return fx.limit_cycle(servo(), within=60.0)


@functools.cache
def half_hunting() -> fx.LimitCycle:
    return fx.limit_cycle(servo(), 60.0, symmetric=True)


@functools.cache
def sticking(c: float, peak: float, speed: float, m: float) -> fx.LimitCycle:
    return fx.limit_cycle(belt(c, peak, speed, m), within=40.0)


PATHS = ["ki", "kd", "friction.peak", "friction.f_pos.F_Coulomb", "leak"]


@functools.cache
def sensitivities(half: bool) -> dict[str, Any]:
    """The derivatives of `hunting`, or of `half_hunting`: one program for all tests."""
    return (half_hunting() if half else hunting()).derivatives(PATHS)


@functools.cache
def follow_half() -> Any:
    return jax.jit(half_hunting().follow)


def returned(machine: Servo, y: Any, mode: Any) -> np.ndarray:
    """The state when it next comes to rest from sliding forward, by a plain run."""
    path = run(machine, jnp.asarray(y), jnp.asarray(mode), jnp.linspace(0.0, 9.0, 5))
    n = int(path.count)
    stops = (np.asarray(path.before)[:n, 0] == 1) & (np.asarray(path.after)[:n, 0] != 1)
    at = np.asarray(path.times)[np.argmax(stops)]
    ts = jnp.array([0.0, 0.25 * at, 0.5 * at, at, 9.0])
    return np.asarray(run(machine, jnp.asarray(y), jnp.asarray(mode), ts).ys[3])


# -- closed forms
# --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("values", [(100.0, 1.5, 0.1, 1.0), (730.0, 1.1, 0.03, 2.2)])
def test_a_mass_on_a_belt_sticks_and_slips_as_the_closed_form_says(values: Any) -> None:
    c, peak, speed, m = values
    cycle = sticking(*values)
    period, amplitude = of_the_belt(*values)
    assert cycle.period == pytest.approx(period, rel=1e-9)
    assert cycle.amplitude[0] == pytest.approx(amplitude, rel=1e-8)
    np.testing.assert_allclose(0.5 * (cycle.low[0] + cycle.high[0]), 4.0 / c, rtol=1e-8)
    assert cycle.high[1] == pytest.approx(speed, rel=1e-9)
    assert cycle.states == ("mass.s", "mass.v")
    assert [e.contact for e in cycle.events] == ["friction"] * 2
    assert [(e.before, e.after) for e in cycle.events] == [(0, -1), (-1, 0)]
    # a stick forgets all
    assert cycle.multipliers.tolist() == [0.0]
    np.testing.assert_allclose(cycle.return_map, 0.0, atol=1e-8)


@pytest.mark.slow
def test_the_derivatives_of_a_mass_on_a_belt_are_those_of_the_closed_form() -> None:
    values = np.array([100.0, 1.5, 0.1, 1.0])
    by = sticking(*values).derivatives(["spring.c", "friction.peak", "mass.m"])
    for path, i in (("spring.c", 0), ("friction.peak", 1), ("mass.m", 3)):
        h = 1e-5 * values[i] * np.eye(4)[i]
        more, less = (np.array(of_the_belt(*(values + s * h))) for s in (1, -1))
        exact = (more - less) / (2 * h[i])
        got = [by[path].period, by[path].amplitude[0]]
        np.testing.assert_allclose(got, exact, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("symmetric", [False, True])
def test_a_relay_of_ones_own_switches_with_the_period_of_the_closed_form(symmetric: bool) -> None:
    cycle = fx.limit_cycle(Relay(jnp.array(0.3)), within=30.0, symmetric=symmetric)
    assert cycle.period == pytest.approx(2 * np.log(1.3 / 0.7), rel=1e-9)
    np.testing.assert_allclose([cycle.low, cycle.high], [[-0.3], [0.3]], rtol=1e-9)
    assert cycle.multipliers.size == 0
    assert cycle.stable
    assert [str(e) for e in cycle.events] == ["mode 0: 1 to -1", "mode 0: -1 to 1"]
    if symmetric:  # The machine is a constant of compiled code.
        inside = jax.jit(lambda: cycle.follow(Relay(jnp.array(0.4))))()
        assert inside.period == pytest.approx(2 * np.log(1.4 / 0.6), rel=1e-9)
        np.testing.assert_allclose(inside.amplitude, [0.4], rtol=1e-9)


# -- long simulations
# --------------------------------------------------------------------------------------------------


def drawn(seed: int) -> Servo:
    """A servo drawn at random, that hunts as far as its integral is not slow."""
    rng = np.random.default_rng(seed)
    J, w, damping = 10 ** rng.uniform(-3, 0), rng.uniform(10, 40), rng.uniform(0.5, 1.2)
    kp, kd = J * w**2, 2 * damping * J * w
    ki = rng.uniform(0.2, 0.7) * kp * kd / J
    F = rng.uniform(0.005, 0.03) * kp
    return servo(
        peak=rng.uniform(1.3, 2.5),
        F=F,
        J=J,
        kp=kp,
        kd=kd,
        ki=ki,
        leak=rng.uniform(0.0, 0.02),
        phi=10 * F / kp,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_period_and_amplitudes_are_those_of_a_long_simulation(seed: int) -> None:
    machine = drawn(seed)
    period, low, high = settled(machine, 60.0)
    assert period > 0
    cycle = fx.limit_cycle(machine, within=20.0)
    assert cycle.residual < 1e-9
    assert cycle.stable
    assert cycle.period == pytest.approx(period, rel=1e-6)
    np.testing.assert_allclose(cycle.amplitude, 0.5 * (high - low), rtol=1e-6)
    np.testing.assert_allclose(cycle.high, high, rtol=1e-6)


@pytest.mark.slow
def test_multipliers_are_those_of_differences_of_the_return_map() -> None:
    cycle = hunting()
    y, h = cycle.start, 1e-6
    columns = []
    for i in (0, 2):  # a rest has no speed
        more, less = (
            returned(cycle.machine, y + s * h * np.eye(3)[i], cycle.mode) for s in (1, -1)
        )
        columns.append((more - less)[[0, 2]] / (2 * h))
    differences = np.stack(columns, axis=1)
    np.testing.assert_allclose(cycle.return_map[np.ix_([0, 2], [0, 2])], differences, atol=1e-6)
    # the second remembers nothing of what the integral was
    assert cycle.multipliers[0] == pytest.approx(np.max(np.linalg.eigvals(differences)), abs=1e-6)
    assert cycle.multipliers[1] == 0.0


@pytest.mark.slow
def test_the_monodromy_matrix_has_the_multipliers_and_1_along_the_cycle() -> None:
    cycle = hunting()
    flow = np.array([0.0, 0.0, -cycle.start[0] - 0.5 * cycle.start[2]])
    np.testing.assert_allclose(cycle.monodromy @ flow, flow, atol=1e-12)
    values = np.sort(np.abs(np.linalg.eigvals(cycle.monodromy)))
    np.testing.assert_allclose(values, [0.0, cycle.multipliers[0], 1.0], atol=1e-9)


@pytest.mark.slow
def test_a_rest_and_a_breakaway_begin_the_same_cycle() -> None:
    one, other = hunting(), fx.limit_cycle(servo(), 60.0, "friction", "breakaway")
    assert other.period == pytest.approx(one.period, rel=1e-8)
    np.testing.assert_allclose(other.amplitude, one.amplitude, rtol=1e-8)
    assert other.multipliers[0] == pytest.approx(one.multipliers[0], abs=1e-8)
    assert other.events[-1].before == fx.Mode.STUCK


@pytest.mark.slow
def test_half_of_a_symmetric_cycle_is_enough() -> None:
    one, half = hunting(), half_hunting()
    assert half.period == pytest.approx(one.period, rel=1e-9)
    np.testing.assert_allclose(half.amplitude, one.amplitude, rtol=1e-9)
    np.testing.assert_allclose(half.multipliers, one.multipliers, atol=1e-9)
    np.testing.assert_allclose(half.monodromy, one.monodromy, atol=1e-8)
    assert [str(e) for e in half.events] == [str(e) for e in one.events]


@pytest.mark.slow
def test_half_of_a_cycle_of_a_machine_that_is_not_symmetric_is_refused() -> None:
    half = half_hunting()
    for machine, near in ((servo(F_neg=0.10), None), (servo(F_neg=0.051), half)):
        with pytest.raises(fx.CycleError, match="not symmetric about 0"):
            fx.limit_cycle(machine, 60.0, symmetric=True, near=near)
    with pytest.raises(fx.CycleError, match="not symmetric about 0"):
        fx.continued(half, "friction.f_pos.F_Coulomb", to=0.051, longest_step=1.0)
    for follow in (half.follow, follow_half()):
        assert np.isnan(follow(servo(F_neg=0.051)).period)
        assert np.isfinite(follow(servo(F=0.051)).period)


@pytest.mark.slow
def test_half_of_a_cycle_has_the_derivatives_by_what_makes_it_unsymmetric() -> None:
    by, halved = (sensitivities(half)["friction.f_pos.F_Coulomb"] for half in (False, True))
    for name in ("low", "high", "start"):
        got = getattr(halved, name)
        np.testing.assert_allclose(got, getattr(by, name), rtol=1e-6, atol=1e-9)


# -- what follows from a cycle
# --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_derivatives_are_those_of_cycles_solved_for_anew() -> None:
    cycle = hunting()
    by = sensitivities(False)
    for path in PATHS:
        x = float(fx.parameters.get(cycle.machine, path))
        ends = []
        for s in (1, -1):
            moved = fx.parameters.replace(cycle.machine, {path: x * (1 + 3e-4 * s)})
            again = fx.limit_cycle(moved, 60.0, near=cycle)
            ends.append(np.concatenate([[again.period], again.amplitude, again.start]))
        differences = (ends[0] - ends[1]) / (6e-4 * x)
        exact = np.concatenate([[by[path].period], by[path].amplitude, by[path].start])
        size = np.concatenate([[cycle.period], cycle.amplitude, cycle.amplitude]) / x
        np.testing.assert_allclose(exact / size, differences / size, atol=2e-5)


@pytest.mark.slow
def test_it_is_followed_inside_of_compiled_batched_and_differentiated_code() -> None:
    cycle = hunting()

    def period(peak: Any) -> Any:
        return cycle.follow(fx.parameters.replace(cycle.machine, {"friction.peak": peak})).period

    peaks = jnp.array([1.4, 1.5, 1.05])
    values, slopes = jax.jit(jax.vmap(lambda p: jax.jvp(period, (p,), (jnp.ones_like(p),))))(peaks)
    assert values[1] == pytest.approx(cycle.period, rel=1e-9)
    assert slopes[1] == pytest.approx(sensitivities(False)["friction.peak"].period)
    again = fx.limit_cycle(
        fx.parameters.replace(cycle.machine, {"friction.peak": 1.4}), 60.0, near=cycle
    )
    assert values[0] == pytest.approx(again.period, rel=1e-9)
    assert np.isnan(values[2])  # there it comes to rest for good


@pytest.mark.slow
def test_numbers_are_followed_by_the_programs_that_found_the_cycle(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cycle = hunting()
    stronger, weaker = (
        fx.parameters.replace(cycle.machine, {"friction.peak": peak}) for peak in (1.6, 1.05)
    )
    again = fx.limit_cycle(stronger, 60.0, near=cycle)
    with jax.log_compiles():
        there, lost = cycle.follow(stronger), cycle.follow(weaker)
    assert "compilation of jit(solve_cycle)" not in caplog.text
    assert "compilation of jit(follow_cycle)" not in caplog.text
    assert there.period == pytest.approx(again.period, rel=1e-12)
    np.testing.assert_allclose(there.amplitude, again.amplitude, rtol=1e-12)
    np.testing.assert_allclose(there.start, again.start, rtol=1e-12)
    assert np.isnan(lost.period)  # there it comes to rest for good
    assert np.all(np.isnan(lost.amplitude))


@pytest.mark.slow
def test_half_of_a_symmetric_cycle_is_followed_and_has_the_derivatives_of_the_whole() -> None:
    stronger = servo(peak=1.6)
    whole = hunting().follow(stronger)
    for numbers in (half_hunting().follow(stronger), follow_half()(stronger)):
        assert numbers.period == pytest.approx(float(whole.period), rel=1e-9)
        np.testing.assert_allclose(numbers.amplitude, whole.amplitude, rtol=1e-9)
    by, halved = sensitivities(False), sensitivities(True)
    for path in ("ki", "leak"):
        assert halved[path].period == pytest.approx(float(by[path].period), rel=1e-6)
        np.testing.assert_allclose(halved[path].amplitude, by[path].amplitude, rtol=1e-6)


@pytest.mark.slow
def test_a_cycle_is_printed_and_sampled() -> None:
    cycle = hunting()
    lines = str(cycle).splitlines()
    assert lines[0].startswith("Limit cycle of 2.32112 s, stable: multipliers 0.1159, 0")
    assert lines[1].split() == ["state", "lowest", "highest", "amplitude"]
    assert lines[-1].split(maxsplit=1) == ["2.32112", "friction comes to rest"]
    ts, ys, modes = cycle.sampled(101, periods=2.0)
    assert ts[-1] == pytest.approx(2 * cycle.period)
    np.testing.assert_allclose(ys[0], ys[-1], atol=1e-9)
    np.testing.assert_allclose(ys[:51], ys[50:], atol=1e-9)
    assert set(np.unique(modes)) == {-1, 0, 1}


@pytest.mark.slow
def test_the_extremes_of_fast_oscillations_within_a_phase_are_those_of_samples() -> None:
    w, m = 2 * np.pi * 80.0, 0.02
    machine = fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.Mass(m=1.0),
        spring=fx.Spring("wall", "mass", c=100.0),
        tip=fx.Mass(m=m),
        arm=fx.SpringDamper("mass", "tip", c=m * w**2, d=0.004 * w * m),
        belt=fx.Mass(m=1.0),
        drive=fx.Position("belt", lambda t: 0.1 * t),
        friction=fx.SupportFriction(
            "mass", f_pos=fx.Coulomb(F_Coulomb=4.0), peak=1.5, support="belt"
        ),
    )
    cycle = fx.limit_cycle(machine, within=12.0)
    _, ys, _ = cycle.sampled(20_001)
    half = 0.5 * np.ptp(np.asarray(ys), axis=0)
    np.testing.assert_allclose(cycle.amplitude, half, rtol=1e-4)
    np.testing.assert_allclose(cycle.follow(machine).amplitude, half, rtol=1e-4)


@pytest.mark.slow
def test_a_machine_with_a_parameter_outside_its_domain_is_not_followed() -> None:
    with pytest.raises(ValueError, match="`Servo.J` must be > 0"):
        hunting().follow(fx.parameters.replace(hunting().machine, {"J": -1.0}))


# -- where there is none
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"peak": 1.01}, r"friction comes to rest at .* s and not again within 60 s"),
        ({"phi": 0.0}, r"friction never changes its mode within 60 s"),
    ],
)
def test_a_machine_that_comes_to_rest_is_told(values: Any, sentence: str) -> None:
    with pytest.raises(fx.CycleError, match=sentence):
        fx.limit_cycle(servo(**values), within=60.0)


def test_a_machine_without_a_contact_is_told() -> None:
    swing = fx.Mechanism(
        wall=fx.Fixed(), mass=fx.Mass(m=1.0, v=1.0), spring=fx.Spring("wall", "mass", c=100.0)
    )
    with pytest.raises(fx.CycleError, match=r"no event occurs.*Add a contact"):
        fx.limit_cycle(swing, within=5.0)


@pytest.mark.slow
def test_a_run_that_fails_is_told_with_its_reason() -> None:
    engine = dataclasses.replace(hunting().engine, max_events=5)
    with pytest.raises(fx.CycleError, match=r"the run stopped at .* s of 60 s.*max_events"):
        fx.limit_cycle(servo(), within=60.0, engine=engine)


@pytest.mark.slow
def test_a_start_from_which_it_does_not_come_back_is_told() -> None:
    with pytest.raises(fx.CycleError, match="state does not return within 60 s"):
        fx.limit_cycle(servo(peak=1.01), 60.0, near=hunting())


@pytest.mark.slow
def test_what_changes_over_time_is_told() -> None:
    with pytest.raises(fx.CycleError, match="Drives and references must be constant"):
        fx.limit_cycle(Relay(jnp.array(0.3), 1e-3), 30.0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"within": -1.0}, "`within` must be a time > 0"),
        ({"within": 9.0, "contact": "fricton"}, "Did you mean 'friction'"),
        ({"within": 9.0, "contact": 7}, "`contact` must be one of friction"),
        ({"within": 9.0, "event": "stop"}, "`event` must be one of 'rest'"),
        ({"within": 9.0, "returns": 0}, "`returns` must be a whole number >= 1"),
        ({"within": 9.0, "engine": fx.OnSamples()}, "`engine` must be an `Adaptive`"),
    ],
)
def test_arguments_that_do_not_fit_are_told(arguments: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        fx.limit_cycle(servo(), **arguments)


# -- branches
# --------------------------------------------------------------------------------------------------


@functools.cache
def branch(path: str, to: float) -> fx.Branch:
    return fx.continued(hunting(), path, to, longest_step=0.5)


def goes_on(machine: Servo, start: Any, end: float = 300.0) -> tuple[bool, float]:
    """Whether it still moves after a long time, begun at rest, and how far from the middle it was
    on the way.
    """
    path = run(machine, jnp.asarray(start), jnp.array([0]), jnp.linspace(0.0, end, 5))
    n = int(path.count)
    before, after = (np.asarray(x)[:n, 0] for x in (path.before, path.after))
    moved = np.asarray(path.times)[:n][before != after]
    last = moved[-1] if moved.size else 0.0
    return bool(last > 0.8 * end), float(np.max(np.abs(np.asarray(path.ys)[-2:, 0])))


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
    cycle = sticking(100.0, 1.5, 0.1, 1.0)
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
def test_arguments_of_a_branch_that_do_not_fit_are_told(
    arguments: Any, error: Any, sentence: str
) -> None:
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
