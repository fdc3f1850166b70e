"""No event is lost: while nothing moves, at many events at one time, at drives that only just break
a contact away.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from machines import REFERENCE

END = jnp.array([0.0, 200.0])
BARELY = 11.0 * 1.001  # 0.1 % above the 11 N at which the block breaks away
RECORD = np.linspace(0.0, 200.0, 2001)


def block(drive: Any) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=10.0), peak=1.1),
        drive=fx.Force("mass", drive),
    )


def changes(run: fx.Trajectory) -> np.ndarray:
    """Rows of time and new mode."""
    n = int(run.events.count)
    return np.stack(
        [np.asarray(run.events.time[:n]), np.asarray(run.events.mode_after[:n])], axis=1
    )


def expected(first: float) -> list[tuple[float, int]]:
    """Breakaways of the block in each half wave of 10 s, to and fro."""
    return [(10.0 * k + first, (-1) ** k) for k in range(20)]


DRIVES = {
    "sine": (fx.Sine(amplitude=BARELY, f=0.05), 1e-7),
    "function": (fx.Function(lambda t: BARELY * jnp.sin(jnp.pi * t / 10), dtmax=0.25), 1e-7),
    "function with its default": (
        fx.Function(lambda t: 1.02 * BARELY * jnp.sin(jnp.pi * t / 10)),
        0.3,
    ),
    "record joined by lines": (fx.Sampled(RECORD, BARELY * np.sin(np.pi * RECORD / 10)), 0.06),
    "record held": (fx.Sampled(RECORD, BARELY * np.sin(np.pi * RECORD / 10), hold=True), 0.15),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", DRIVES)
def test_every_breakaway_by_0_1_percent_is_found_over_200_s(name: str) -> None:
    drive, within = DRIVES[name]
    run = fx.simulate(block(drive), END, fx.Adaptive(rtol=1e-9, atol=1e-11, max_events=3000))
    found = changes(run)
    breakaways = found[found[:, 1] != 0]
    first = 10 / np.pi * np.arcsin(1 / 1.001)
    assert len(found) == 40
    assert np.array_equal(found[1::2, 1], np.zeros(20))
    if "default" in name:
        first = 10 / np.pi * np.arcsin(1 / (1.02 * 1.001))
    assert np.allclose(breakaways, np.array(expected(first)), atol=within)


def test_a_block_that_just_does_not_break_away_has_no_event() -> None:
    run = fx.simulate(
        block(fx.Sine(amplitude=11.0 * 0.999, f=0.05)),
        END,
        fx.Adaptive(rtol=1e-9, atol=1e-11, max_events=3000),
    )
    assert int(run.events.count) == 0
    assert float(run["mass"].s[-1]) == 0.0


SUM = np.linspace(0.0, 5.0, 500001)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("phase", "rate"),
    # a hump between two extrema of the sine; a hump and a hollow between them
    [(0.0, -0.32), (np.pi / 2, 0.32)],
)
def test_a_breakaway_by_the_sum_of_two_drives_is_found_between_the_extrema_of_each(
    phase: float, rate: float
) -> None:
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
        wave=fx.Force("mass", fx.Sine(amplitude=1.6, f=0.1, phase=phase)),
        ramp=fx.Force("mass", fx.Ramp(height=5 * rate, duration=5.0)),
    )
    load = 1.6 * np.sin(0.2 * np.pi * SUM + phase) + rate * SUM
    hump = np.max(load[:200001])
    for above in (0.99, 0.9999):
        held = fx.parameters.replace(machine, {"friction.f_pos.F_Coulomb": above * hump})
        first = SUM[np.argmax(load > above * hump)]
        found = changes(fx.simulate(held, jnp.array([0.0, 4.0])))
        assert np.allclose(found[0], [first, 1], atol=2e-5)
        assert found[1, 1] == 0


def twins(n: int) -> fx.Mechanism:
    """Equal machines side by side: whatever happens, happens to all of them at one time."""
    parts: dict[str, Any] = {}
    for i in range(n):
        parts[f"mass{i}"] = fx.Mass(m=1.0)
        parts[f"friction{i}"] = fx.SupportFriction(
            f"mass{i}", f_pos=fx.Coulomb(F_Coulomb=5.0), peak=1.1
        )
        parts[f"drive{i}"] = fx.Force(
            f"mass{i}", fx.Pulse(amplitude=8.0, width=50.0, period=0.5, offset=-1.0)
        )
    return fx.Mechanism(**parts)


@pytest.mark.slow
def test_three_equal_machines_do_the_same_at_the_same_times() -> None:
    run = fx.simulate(twins(3), jnp.linspace(0.0, 3.0, 7), REFERENCE)
    # 2 m/s2 for 0.25 s, then -6 m/s2: at rest after another 1/12 s.
    times = np.sort(np.concatenate([0.5 * np.arange(6) + 1 / 3, 0.5 * np.arange(7)]))
    assert int(run.events.count) == 39
    assert np.allclose(run.events.time[:39], np.repeat(times, 3), atol=1e-11)
    assert np.allclose(run.ys[:, :3], np.asarray(TRAVEL)[:, None], atol=1e-11)


TRAVEL = np.arange(7) / 12


@pytest.mark.slow
def test_drives_that_switch_at_one_time_all_switch() -> None:
    signals = [
        fx.Step(height=3.0, startTime=1.0),
        fx.Ramp(height=1.5, duration=0.0, startTime=1.0),
        fx.Pulse(amplitude=1.5, width=50.0, period=2.0, startTime=1.0),
        fx.Sampled([0.0, 1.0], [0.0, 1.0], hold=True),
    ]
    drives = {f"drive{i}": fx.Force("mass", signal) for i, signal in enumerate(signals)}
    friction = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=6.0), peak=1.1)
    brake = fx.Brake(
        "second", fn_max=4.0, f_normalized=fx.Step(height=1.0, startTime=1.0), peak=1.1
    )
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0), second=fx.Mass(m=1.0, v=1.0), friction=friction, brake=brake, **drives
    )
    run = fx.simulate(machine, jnp.array([0.0, 1.5]), REFERENCE)
    # 7 N together, against 6.6 N; none of them alone, nor all but the smallest, would do.
    own = changes(run)[
        np.asarray(run.events.part[: int(run.events.count)]) == run.events.names.index("friction")
    ]
    assert np.allclose(own, [[1.0, 1.0]])
    assert float(run["mass"].s[-1]) == pytest.approx(0.5 * 1.0 * 0.25, rel=1e-10)
    assert float(run["second"].s[-1]) == pytest.approx(1.0 + 0.25, rel=1e-9)


class Curtain(fx.AbstractHybridSystem):
    """Forty lamps that are switched on by one deadline, one after the other without time
    passing.
    """

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.sum(mode) + 0.0 * y

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.ones(1)

    def deadline(self, mode: Any, args: Any) -> Any:
        return jnp.where(jnp.all(mode == 1), jnp.inf, 1.0)

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        return y, mode.at[jnp.argmin(mode)].set(1), jnp.array(0)


def test_forty_switches_at_one_time_are_no_chatter() -> None:
    path = fx.walk(Curtain(), jnp.zeros(1), jnp.zeros(40, int), jnp.array([0.0, 2.0]))
    assert bool(path.result == fx.Result.successful)
    assert float(path.ys[-1, 0]) == pytest.approx(40.0, rel=1e-12)


def planetary(speed: Any, **options: Any) -> fx.Trajectory:
    machine = fx.Mechanism(
        sun=fx.Inertia(J=1.0),
        carrier=fx.Inertia(J=2.0),
        ring=fx.Inertia(J=1.0),
        gear=fx.IdealPlanetary(sun="sun", carrier="carrier", ring="ring", ratio=2.0),
        drive=fx.Position("ring", speed),
    )
    return fx.simulate(machine, jnp.linspace(0.0, 2.0, 11), **options)


def test_a_planetary_gear_passes_the_jump_of_a_given_speed_on_to_its_free_body() -> None:
    # J_sun dw_sun = -x J_carrier dw_carrier with w_carrier = (w_sun + 2 w_ring)/3, x = 1/3.
    for engine in (fx.Adaptive(), fx.OnSamples()):
        ramp = fx.Ramp(height=10.0, duration=10.0, startTime=0.5)
        run = planetary(ramp, engine=engine, energy=True)
        assert float(run["sun"].w[-1]) == pytest.approx(-4 / 11, rel=1e-9)
        assert float(jnp.max(jnp.abs(run.energy.balance))) < 1e-12


@pytest.mark.slow
def test_the_jump_of_a_given_speed_has_a_derivative_and_samples_of_it_are_close() -> None:
    def angle(start: Any) -> Any:
        return planetary(fx.Ramp(height=10.0, duration=10.0, startTime=start))["sun"].phi[-1]

    assert float(jax.grad(angle)(0.5)) == pytest.approx(4 / 11, rel=1e-9)
    times = np.linspace(0.0, 2.5, 501)
    sampled = float(planetary(fx.Sampled(times, np.sin(3 * times)))["sun"].w[-1])
    assert sampled == pytest.approx(-4 / 11 * (3 * np.cos(6) - 3), rel=0.1)


def test_a_pulse_of_a_function_is_not_stepped_over_on_a_free_body() -> None:
    def end(**options: Any) -> Any:
        pulse = fx.Function(lambda t: 100 * jnp.exp(-(((t - 5.03) / 0.01) ** 2)), **options)
        machine = fx.Mechanism(mass=fx.Mass(m=1.0), hammer=fx.Force("mass", pulse))
        return fx.simulate(machine, jnp.linspace(0.0, 10.0, 101))["mass"].s[-1]

    exact = np.sqrt(np.pi) * (10.0 - 5.03)
    assert float(end(dtmax=0.002)) == pytest.approx(exact, rel=1e-6)
    assert float(end()) == pytest.approx(exact, rel=1e-6)


def test_a_normal_force_that_depends_on_time_releases_a_stuck_contact() -> None:
    def end(normal: Any) -> float:
        machine = fx.Mechanism(
            mass=fx.Mass(m=1.0),
            load=fx.Force("mass", 6.0),
            brake=fx.Brake("mass", mu_pos=[[0, 0.5]], fn_max=20.0, f_normalized=normal),
        )
        return float(fx.simulate(machine, jnp.array([0.0, 2.0]))["mass"].s[-1])

    given = fx.MotionDependent(lambda t, s, v: 1 + 0.9 * jnp.sin(2 * jnp.pi * 5 * t))
    assert end(given) == pytest.approx(end(fx.Sine(amplitude=0.9, f=5.0, offset=1.0)), abs=1e-7)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("speed", "time", "events", "starts_at"),
    [(0.05, 10.0, 3, None), (1.0, 2.0, 159, None), (1.0, 10.0, 799, 30.0)],
)
def test_a_belt_does_not_carry_a_mass_over_the_teeth_of_a_periodic_force(
    speed: float, time: float, events: int, starts_at: float | None
) -> None:
    start = starts_at or 0.0  # The belt rests until 1 s before such a start.
    ramp = fx.Ramp(height=2 * speed * time, duration=2 * time)
    later = lambda t: speed * jnp.maximum(t - start + 1.0, 0.0)  # noqa: E731
    machine = fx.Mechanism(
        belt=fx.Mass(m=1.0),
        mass=fx.Mass(m=1.0, v=speed),
        drive=fx.Position("belt", later if starts_at else ramp),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0), support="belt"),
        cogging=fx.PeriodicPositionDependentForce("mass", f_sin=3.0, period=0.05),
    )
    run = fx.simulate(machine, jnp.array([start, start + time]))
    assert int(run.events.count) == events  # as with steps of a thousandth of the time


@pytest.mark.parametrize(
    "signal",
    [
        fx.Step(height=1.0),
        fx.Pulse(),
        fx.Trapezoid(),
        fx.Ramp(duration=0.0),
        fx.Sampled([0.0, 1.0], [0.0, 1.0], hold=True),
    ],
    ids=lambda signal: type(signal).__name__,
)
def test_a_position_that_jumps_is_refused(signal: Any) -> None:
    with pytest.raises(ValueError, match=r"`Position.s` must not jump"):
        fx.Position("belt", signal)


def test_a_sine_that_begins_with_a_jump_inside_of_the_run_is_refused() -> None:
    def run(first: float, **of: Any) -> fx.Trajectory:
        wave = fx.Sine(amplitude=1e-2, startTime=0.5, **of)
        machine = fx.Mechanism(
            belt=fx.Mass(m=1.0), mass=fx.Mass(m=1.0), drive=fx.Position("belt", wave)
        )
        return fx.simulate(machine, jnp.array([first, 1.0]))

    with pytest.raises(ValueError, match=r"`Position.s` must not jump.*by 0.01 at its startTime"):
        run(0.0, phase=jnp.pi / 2)
    assert float(run(0.5, phase=jnp.pi / 2)["belt"].s[0]) == pytest.approx(1e-2)
    assert float(run(0.0, phase=3 * jnp.pi)["belt"].s[0]) == 0.0


def test_all_events_of_two_contacts_are_listed() -> None:
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        first=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
        second=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0)),
        drive=fx.Force("mass", fx.Sine(amplitude=5.0, f=1.0)),
    )
    events = fx.simulate(machine, jnp.array([0.0, 2.0]), fx.Adaptive(max_events=9)).events
    assert int(events.count) == int(np.sum(np.isfinite(events.time))) == 14


def test_variables_of_a_batch_of_runs_are_refused_with_the_remedy() -> None:
    def run(m: Any) -> fx.Trajectory:
        return fx.simulate(fx.Mechanism(mass=fx.Mass(m=m)), jnp.array([0.0, 1.0]))

    runs = jax.vmap(run)(jnp.array([1.0, 2.0]))
    for read in (lambda: runs["mass"], lambda: runs.events):
        with pytest.raises(ValueError, match="batch of runs of shape"):
            read()
