"""Limit cycles against closed forms, long simulations, and differences of the return map."""

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


def returned(machine: Servo, y: Any, mode: Any) -> np.ndarray:
    """The state when it next comes to rest from sliding forward, by a plain run."""
    path = run(machine, jnp.asarray(y), jnp.asarray(mode), jnp.linspace(0.0, 9.0, 5))
    n = int(path.count)
    stops = (np.asarray(path.before[:n, 0]) == 1) & (np.asarray(path.after[:n, 0]) != 1)
    at = path.times[:n][np.argmax(stops)]
    ts = jnp.array([0.0, 0.25 * at, 0.5 * at, at, 9.0])
    return np.asarray(run(machine, jnp.asarray(y), jnp.asarray(mode), ts).ys[3])


# -- closed forms
# --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("values", [(100.0, 1.5, 0.1, 1.0), (730.0, 1.1, 0.03, 2.2)])
def test_a_mass_on_a_belt_sticks_and_slips_as_the_closed_form_says(values: Any) -> None:
    c, peak, speed, m = values
    cycle = fx.limit_cycle(belt(*values), within=40.0)
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
    cycle = fx.limit_cycle(belt(*values), within=40.0)
    by = cycle.derivatives(["spring.c", "friction.peak", "mass.m"])
    for path, i in (("spring.c", 0), ("friction.peak", 1), ("mass.m", 3)):
        h = 1e-5 * values[i] * np.eye(4)[i]
        more, less = (np.array(of_the_belt(*(values + s * h))) for s in (1, -1))
        exact = (more - less) / (2 * h[i])
        got = [by[path].period, by[path].amplitude[0]]
        np.testing.assert_allclose(got, exact, rtol=1e-7)


@pytest.mark.slow
def test_a_relay_of_ones_own_switches_with_the_period_of_the_closed_form() -> None:
    cycle = fx.limit_cycle(Relay(jnp.array(0.3)), within=30.0)
    assert cycle.period == pytest.approx(2 * np.log(1.3 / 0.7), rel=1e-9)
    np.testing.assert_allclose([cycle.low, cycle.high], [[-0.3], [0.3]], rtol=1e-9)
    assert cycle.multipliers.size == 0
    assert cycle.stable
    assert str(cycle.events[-1]) == "mode 0: -1 to 1"


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
    one, half = hunting(), fx.limit_cycle(servo(), 60.0, symmetric=True)
    assert half.period == pytest.approx(one.period, rel=1e-9)
    np.testing.assert_allclose(half.amplitude, one.amplitude, rtol=1e-9)
    np.testing.assert_allclose(half.multipliers, one.multipliers, atol=1e-9)
    np.testing.assert_allclose(half.monodromy, one.monodromy, atol=1e-8)
    assert [str(e) for e in half.events] == [str(e) for e in one.events]


def sided(f_pos: float, f_neg: float) -> Servo:
    forward, backward = (fx.Coulomb(F_Coulomb=f) for f in (f_pos, f_neg))
    return Servo(fx.SupportFriction("arm", f_pos=forward, f_neg=backward, peak=1.5))


@pytest.mark.slow
def test_half_of_a_cycle_of_a_machine_that_is_not_symmetric_is_refused() -> None:
    half = fx.limit_cycle(sided(0.05, 0.05), 60.0, symmetric=True)
    for machine, near in ((sided(0.05, 0.10), None), (sided(0.05, 0.051), half)):
        with pytest.raises(fx.CycleError, match="not symmetric about 0"):
            fx.limit_cycle(machine, 60.0, symmetric=True, near=near)
    with pytest.raises(fx.CycleError, match="not symmetric about 0"):
        fx.continued(half, "friction.f_pos.F_Coulomb", to=0.051, longest_step=1.0)

    def period(f_pos: Any, f_neg: Any) -> Any:
        values = {"friction.f_pos.F_Coulomb": f_pos, "friction.f_neg.F_Coulomb": f_neg}
        return half.follow(fx.parameters.replace(half.machine, values)).period

    for follow in (period, jax.jit(period)):
        assert np.isnan(follow(0.05, 0.051))
        assert np.isfinite(follow(0.051, 0.051))


@pytest.mark.slow
def test_half_of_a_cycle_has_the_derivatives_by_what_makes_it_unsymmetric() -> None:
    whole, half = (fx.limit_cycle(sided(0.05, 0.05), 60.0, symmetric=x) for x in (False, True))
    by, halved = (c.derivatives("friction.f_pos.F_Coulomb") for c in (whole, half))
    for path, expected in by.items():
        for name in ("low", "high", "start"):
            got = getattr(halved[path], name)
            np.testing.assert_allclose(got, getattr(expected, name), rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_half_of_the_cycle_of_a_relay_has_the_events_of_the_whole() -> None:
    cycle = fx.limit_cycle(Relay(jnp.array(0.3)), within=30.0, symmetric=True)
    assert cycle.period == pytest.approx(2 * np.log(1.3 / 0.7), rel=1e-9)
    assert [str(e) for e in cycle.events] == ["mode 0: 1 to -1", "mode 0: -1 to 1"]


# -- what follows from a cycle
# --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_derivatives_are_those_of_cycles_solved_for_anew() -> None:
    cycle = hunting()
    paths = ["ki", "kd", "friction.peak", "friction.f_pos.F_Coulomb", "leak"]
    by = cycle.derivatives(paths)
    for path in paths:
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
    assert slopes[1] == pytest.approx(cycle.derivatives("friction.peak")["friction.peak"].period)
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
    one, half = hunting(), fx.limit_cycle(servo(), 60.0, symmetric=True)
    stronger = fx.parameters.replace(one.machine, {"friction.peak": 1.6})
    whole, there = one.follow(stronger), half.follow(stronger)
    inside = jax.jit(lambda: half.follow(stronger))()
    for numbers in (there, inside):
        assert numbers.period == pytest.approx(float(whole.period), rel=1e-9)
        np.testing.assert_allclose(numbers.amplitude, whole.amplitude, rtol=1e-9)
    by, halved = (c.derivatives(["ki", "leak"]) for c in (one, half))
    for path in by:
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
    class Pushed(Servo):
        def load(self, t: Any, y: Any, args: Any) -> Any:
            return super().load(t, y, args) + 1e-3 * jnp.sin(0.9 * t)

    pushed = Pushed(servo().friction)
    with pytest.raises(fx.CycleError, match="Drives and references must be constant"):
        fx.limit_cycle(pushed, 60.0)


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
