"""Objectives, priors and methods of fits to records."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import frictax as fx
from rigs import AWAY_LAW, FINE, LAW, TRUE, T, assert_recovered, block, record

FREE = ["mass.m", "friction.f_pos"]
BOTH = {**TRUE, "mass.m": 1.0}


@pytest.fixture(scope="module")
def seen() -> fx.Record:
    return record(block(), {"mass.s": 1e-4})


def test_inverse_dynamics_finds_mass_and_level_to_two_per_cent_from_a_start_twice_and_thrice_off(
    seen,
) -> None:
    found = fx.fit(
        block(m=2.0, F_Coulomb=3.0),
        seen,
        free=["mass.m", "friction.f_pos.F_Coulomb"],
        objective=fx.InverseDynamics(15.0),
    )
    assert found.converged
    assert found.values["mass.m"] == pytest.approx(1.0, rel=0.02)
    assert found.values["friction.f_pos.F_Coulomb"] == pytest.approx(1.0, rel=0.02)
    assert list(found.rms["run"]) == ["force on mass"]


def pair(F_Coulomb: float = 1.0, F_prop: float = 0.05) -> fx.Mechanism:
    """A load that a motor drags by friction alone, against a spring."""
    law = fx.Coulomb(F_Coulomb=F_Coulomb, F_prop=F_prop)
    return fx.Mechanism(
        motor=fx.Inertia(J=0.02),
        load=fx.Inertia(J=0.03),
        slip=fx.BearingFriction("load", tau_pos=law, support="motor"),
        spring=fx.RotationalSpring("load", "wall", c=2.0),
        wall=fx.Fixed(),
        drive=fx.Torque("motor", 0.0),
    )


def test_forces_at_samples_leave_out_bodies_that_move_but_hardly_slide() -> None:
    t = np.linspace(0.0, 4.0, 2001)
    phi = np.sin(3.0 * t)
    slid = np.where(t < 2.0, 0.0, 0.1 * (t - 2.0) ** 2)
    outputs = {"motor.phi": phi + slid, "load.phi": phi}
    held = fx.Record(t, {"drive": 0.0 * t}, outputs, name="run")
    weight = np.asarray(fx.InverseDynamics(20.0, at_samples=True).prepare(pair(), held).weight)
    assert not weight[t < 1.9].any()
    assert weight[(t > 2.2) & (t < 3.8)].all()


@pytest.mark.slow
def test_forces_at_samples_find_friction_between_two_bodies() -> None:
    t = np.linspace(0.0, 8.0, 4001)
    u = 3.0 * np.sin(np.pi * t) + np.sin(3.4 * np.pi * t)
    truth = eqx.tree_at(lambda m: m["drive"].tau, pair(), fx.Sampled(t, u))
    run, noise = fx.simulate(truth, t), np.random.default_rng(0)
    assert np.mean(np.asarray(run["slip"].mode) == 0) > 0.1
    seen = {
        f"{body}.phi": np.asarray(run[body].phi) + 1e-6 * noise.standard_normal(t.size)
        for body in ("motor", "load")
    }
    record = fx.Record(t, {"drive": u}, seen, name="run")
    objective = fx.InverseDynamics(at_samples=True)
    found = fx.fit(pair(0.8, 0.03), record, free="slip.tau_pos", objective=objective)
    assert found.values["slip.tau_pos.F_Coulomb"] == pytest.approx(1.0, rel=5e-3)
    assert found.values["slip.tau_pos.F_prop"] == pytest.approx(0.05, rel=5e-3)


SPRUNG = {"mass.m": 2.0, "friction.f_pos.F_Coulomb": 3.0, "friction.f_pos.F_prop": 3.0} | {
    "spring.c": 100.0
}
PLAIN = {"offset": 0.02, "drift": 0.004}
LATE = {"delay": 0.006}
GAIN, LEAD = {"gain": 1.03}, {"delay": -0.006}
FROM_MEASURED = {  # with its error, what is fitted of the sensor, and sensors
    "inverse dynamics": (fx.InverseDynamics(50.0), 0.03, PLAIN, (PLAIN, LATE)),  # smooths stops
    "one run": (fx.FreeRun(measured_start=True), 1e-6, PLAIN, (PLAIN,)),
    "windows": (fx.Windows(0.5), 2e-4, PLAIN | LATE, (PLAIN, LATE, LEAD, GAIN)),
    "windows with free starts": (fx.Windows(0.5, free_starts=True), 1e-6, PLAIN, (PLAIN,)),
}


@pytest.mark.slow
@pytest.mark.parametrize("objective", list(FROM_MEASURED))
def test_what_starts_from_a_measurement_takes_off_what_the_sensor_adds(objective: str) -> None:
    """Of a record without noise whose sensor is found with the machine, or known: its gain, which
    nothing in the record tells, and where slow samples are left out its delay, which decides on
    them.
    """
    t, (kind, error, fitted, sensors) = np.linspace(0.0, 4.0, 2001), FROM_MEASURED[objective]
    force = 14.0 * np.sin(2 * np.pi * 0.4 * t) + 7.0 * np.sin(2 * np.pi * 1.1 * t)
    machine = fx.Mechanism(
        mass=fx.Mass(m=2.0),
        wall=fx.Fixed(),
        spring=fx.Spring("wall", "mass", c=100.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=3.0, F_prop=3.0)),
        drive=fx.Force("mass", fx.Sampled(t, force)),
    )
    true = np.asarray(fx.simulate(machine, t)["mass"].s)
    for sensor in sensors:
        shown = np.asarray(fx.Instrument(**sensor)(jnp.asarray(t), jnp.asarray(true), 0.0))
        known = {name: value for name, value in sensor.items() if name not in fitted}
        found = fx.fit(
            machine,
            fx.Record(t, {"drive": force}, {"mass.s": shown}, {"mass.s": 1e-5}, name="run"),
            free=[*SPRUNG, *(f"outputs.mass.s.{name}" for name in fitted)],
            objective=kind,
            instruments={"outputs.mass.s": fx.Instrument(**known)},
            method=fx.LevenbergMarquardt(max_steps=40),
        )
        for path, value in SPRUNG.items():
            assert found.values[path] == pytest.approx(value, rel=error), (path, sensor, found)
        for name, size in fitted.items():
            value = found.values[f"outputs.mass.s.{name}"]
            assert abs(value - sensor.get(name, 0.0)) < error * size, (name, sensor, found)


@pytest.mark.slow
def test_a_gap_in_a_record_is_gone_over_in_steps_of_the_usual_length() -> None:
    """One cycle of an oscillator is missing at 200 Hz, which one step a sample would miss by a
    third of its amplitude.
    """
    t = np.arange(0.0, 3.0, 0.005)
    t = t[(t < 1.0) | (t > 2.0)]
    law = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=0.5, F_prop=0.2))
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0, s=1.0),
        wall=fx.Fixed(),
        spring=fx.Spring("wall", "mass", c=39.5),
        friction=law,
    )
    s = np.asarray(fx.simulate(machine, t, fx.Adaptive())["mass"].s) + 1e-4 * np.random.default_rng(
        0
    ).standard_normal(t.size)
    seen = fx.Record(t, outputs={"mass.s": s}, sd={"mass.s": 1e-4}, name="run")
    true = {"spring.c": 39.5, "friction.f_pos.F_Coulomb": 0.5, "friction.f_pos.F_prop": 0.2}
    for objective in (fx.FreeRun(), fx.Windows(0.25, free_starts=True)):
        found = fx.fit(machine, seen, free=list(true), objective=objective)
        assert found.noise_scale == pytest.approx(1.0, abs=0.15)
        for path, value in true.items():
            assert abs(found.values[path] - value) < 4 * found.standard_errors[path], found


@pytest.mark.parametrize(
    "objective",
    [
        pytest.param(fx.InverseDynamics(15.0), id="forces"),
        pytest.param(fx.Windows(0.7, cutoff=15.0), id="windows", marks=pytest.mark.slow),
    ],
)
def test_where_only_the_speed_is_measured_the_position_is_its_integral(objective: Any) -> None:
    machine = fx.Mechanism(
        **dict(block().named_parts()), wall=fx.Fixed(), spring=fx.Spring("wall", "mass", c=8.0)
    )
    t = np.linspace(0.0, 6.0, 1201)
    force = 3.0 * np.sin(2 * np.pi * t) + 2.0 * np.sin(2 * np.pi * 0.37 * t)
    machine = eqx.tree_at(lambda m: m["drive"].f, machine, fx.Sampled(t, force))
    v = np.asarray(fx.simulate(machine, t, FINE)["mass"].v)
    seen = fx.Record(t, {"drive": force}, {"mass.v": 1.02 * v + 0.01}, {"mass.v": 1e-4}, name="run")
    known = {"outputs.mass.v": fx.Instrument(gain=1.02, offset=0.01)}
    free = ["mass.m", "friction.f_pos.F_Coulomb", "spring.c"]
    found = fx.fit(machine, seen, free=free, instruments=known, objective=objective)
    for path, value in {"mass.m": 1.0, "friction.f_pos.F_Coulomb": 1.0, "spring.c": 8.0}.items():
        assert found.values[path] == pytest.approx(value, rel=0.02), found


@pytest.mark.slow
def test_a_body_that_the_record_moves_has_an_event_for_each_sample() -> None:
    t = np.linspace(0.0, 6.0, 1201)
    at = 0.1 * np.sin(2 * np.pi * 0.5 * t)
    machine = fx.Mechanism(
        belt=fx.Mass(m=1.0),
        mass=fx.Mass(m=1.0),
        drive=fx.Position("belt", fx.Sampled(t, at)),
        wall=fx.Fixed(),
        spring=fx.Spring("wall", "mass", c=20.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=0.7), support="belt"),
    )
    s = np.asarray(fx.simulate(machine, t, fx.OnSamples(max_events=2000))["mass"].s)
    seen = fx.Record(t, {"drive": at}, {"mass.s": s}, {"mass.s": 1e-5}, name="run")
    start = eqx.tree_at(lambda m: m["friction"].f_pos.F_Coulomb, machine, jnp.asarray(0.8))
    found = fx.fit(start, seen, free=["friction.f_pos.F_Coulomb"])
    assert found.values["friction.f_pos.F_Coulomb"] == pytest.approx(0.7, rel=1e-6)


@pytest.mark.slow
def test_a_drive_that_no_record_has_an_input_for_is_told_unless_it_is_fitted() -> None:
    t = np.linspace(0.0, 1.0, 101)
    law = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0))
    machine = fx.Mechanism(mass=fx.Mass(m=1.0, v=2.0), friction=law, drive=fx.Force("mass", 0.0))
    seen = fx.Record(
        t, outputs={"mass.v": 2.0 - t + 1e-3 * np.random.default_rng(0).standard_normal(t.size)}
    )
    found = fx.fit(machine, seen, free=["friction.f_pos.F_Coulomb"])
    assert any(w.startswith("drive is 0 all the time") for w in found.warnings), found.warnings
    pushed = fx.fit(machine, seen, free=["drive.f.k"])
    assert pushed.values["drive.f.k"] == pytest.approx(
        0.0, abs=5 * pushed.standard_errors["drive.f.k"]
    )
    assert not any("all the time" in w for w in pushed.warnings)


@pytest.mark.slow
def test_under_held_inputs_a_breakaway_is_said_to_act_in_jumps() -> None:
    t = np.linspace(0.0, 2.0, 401)
    force = 3.0 * np.sin(2 * np.pi * 0.5 * t)
    law = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0, F_prop=0.2), peak=1.3)
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0), friction=law, drive=fx.Force("mass", fx.Sampled(t, force, hold=True))
    )
    v = np.asarray(fx.simulate(machine, t)["mass"].v) + 1e-3 * np.random.default_rng(
        0
    ).standard_normal(t.size)
    found = fx.fit(
        machine,
        fx.Record(t, {"drive": force}, {"mass.v": v}, {"mass.v": 1e-3}, hold=True),
        free=["friction"],
    )
    notices = {(n.code, n.subject) for n in found.notices_at_hand}
    assert ("acts-in-jumps", "friction.peak") in notices
    assert ("no-effect", "friction.peak") not in notices


@pytest.mark.slow
def test_residuals_far_beyond_the_deviations_given_are_told() -> None:
    seen = record(block(), {"mass.v": 1e-3})
    poor, good = (
        fx.fit(block(m=1.5), seen, free=["friction.f_pos.F_Coulomb", *more], rounds=0)
        for more in ([], ["mass.m"])
    )
    assert poor.noise_scale > 3
    told = "times as large as the given standard deviations"
    assert [any(told in str(n) for n in f.notices_at_hand) for f in (poor, good)] == [True, False]


@pytest.mark.slow
def test_a_closed_loop_finds_mass_and_law_under_its_known_controller() -> None:
    controller = fx.PositionController("mass", s_ref=0.0, kp=8.0, kv=20.0)
    reference = 0.3 * np.sin(2 * np.pi * 0.5 * T) + 0.2 * np.sin(2 * np.pi * 0.37 * T)
    parts = {
        **dict(block().named_parts()),
        "drive": fx.PositionController("mass", s_ref=fx.Sampled(T, reference), kp=8.0, kv=20.0),
    }
    s = np.asarray(
        fx.simulate(fx.Mechanism(**parts), T, FINE)["mass"].s
    ) + 1e-5 * np.random.default_rng(0).standard_normal(T.size)
    run = fx.Record(T, {"drive": reference}, {"mass.s": s}, {"mass.s": 1e-5}, name="run")
    loop = fx.ClosedLoop({"drive": controller}, measured_start=False)
    found = fx.fit(block(m=1.2, **AWAY_LAW), run, free=FREE, objective=loop)
    assert_recovered(found, BOTH)
    assert isinstance(found.model["drive"], fx.Force)


@pytest.mark.slow
def test_inverse_dynamics_leaves_samples_at_hard_stops_out() -> None:
    stops = {
        "m": 1.2,
        "smin": -0.2,
        "smax": 0.2,
        "F_prop": 1.5,
        "F_Coulomb": 2.0,
        "F_Stribeck": 0.0,
        "fexp": 1.0,
    }
    t = np.linspace(0.0, 6.0, 3001)
    u = 5.2 * np.sin(2 * np.pi * 0.9 * t) + 2.0 * np.sin(2 * np.pi * 1.7 * t)
    parts = {
        "mass": fx.MassWithStopAndFriction(**stops),
        "drive": fx.Force("mass", fx.Sampled(t, u)),
    }
    s = np.asarray(fx.simulate(fx.Mechanism(**parts), t, FINE)["mass"].s)
    assert np.mean(np.abs(s) > 0.199) > 0.1
    run = fx.Record(
        t,
        {"drive": u},
        {"mass.s": s + 1e-6 * np.random.default_rng(0).standard_normal(t.size)},
        {"mass.s": 1e-6},
        name="run",
    )
    start = fx.Mechanism(
        mass=fx.MassWithStopAndFriction(**{**stops, "m": 2.0, "F_Coulomb": 1.0}),
        drive=fx.Force("mass", 0.0),
    )
    found = fx.fit(
        start,
        run,
        free=["mass.m", "mass.F_Coulomb", "mass.F_prop"],
        objective=fx.InverseDynamics(30.0),
    )
    assert found.values["mass.m"] == pytest.approx(1.2, rel=0.05), found
    assert found.values["mass.F_Coulomb"] == pytest.approx(2.0, rel=0.1)
    rest = fx.Mechanism(
        mass=fx.MassWithStopAndFriction(**{**stops, "smin": -5e-7, "smax": 5e-7}),
        drive=fx.Force("mass", 0.0),
    )
    with pytest.raises(ValueError, match="has no samples for `InverseDynamics`"):
        fx.fit(rest, run, free=["mass.m"], objective=fx.InverseDynamics(30.0))


class Pendulum(fx.AbstractAxis):
    """A driven pendulum with dry friction in its hinge, which is no part of the library."""

    friction: fx.SupportFriction
    J: fx.parameters.Scalar = fx.parameters.parameter(fx.parameters.Positive(), "kg.m2")

    def inertia(self, t, y, args):
        return self.J

    def load(self, t, y, args):
        return args["motor"] - 2.0 * jnp.sin(y[0])

    def states(self):
        return ("phi", "w")

    def start(self, t):
        return self.begin(t, [0.0, 0.0])


@pytest.mark.slow
def test_a_pendulum_of_the_users_own_gives_back_its_friction_and_inertia() -> None:
    motor = 1.5 * np.sin(2 * np.pi * 0.4 * T)

    def hinge(level):
        return fx.SupportFriction("hinge", f_pos=fx.Coulomb(F_Coulomb=level))

    system = fx.Driven(Pendulum(hinge(0.6), 0.5), motor=fx.Sampled(T, motor))
    path = fx.walk(system, *system.start(jnp.asarray(0.0)), jnp.asarray(T), options=FINE)
    assert int(jnp.sum(path.modes[:, 0] == 0)) > 10
    rng = np.random.default_rng(0)
    outputs = {
        "phi": np.asarray(path.ys[:, 0]) + 1e-3 * rng.standard_normal(T.size),
        "w": np.asarray(path.ys[:, 1]) + 1e-2 * rng.standard_normal(T.size),
    }
    run = fx.Record(T, {"motor": motor}, outputs, {"phi": 1e-3, "w": 1e-2}, name="run")
    found = fx.fit(Pendulum(hinge(0.5), 0.7), run, free=["friction.f_pos.F_Coulomb", "J"])
    assert_recovered(found, {"friction.f_pos.F_Coulomb": 0.6, "J": 0.5})


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule", [None, optax.adam(optax.cosine_decay_schedule(0.3, 1000))], ids=["lbfgs", "adam"]
)
def test_optax_and_levenberg_marquardt_end_alike_on_forces(seen, rule) -> None:
    free, objective = (
        ["mass.m", "friction.f_pos.F_Coulomb", "friction.f_pos.F_prop"],
        fx.InverseDynamics(15.0),
    )
    newton = fx.fit(block(m=2.0), seen, free=free, objective=objective)
    other = fx.fit(
        block(m=2.0),
        seen,
        free=free,
        objective=objective,
        method=fx.Optax(rule, steps=1000, rounds=10),
    )
    assert other.converged
    for path, value in newton.values.items():
        assert other.values[path] == pytest.approx(value, rel=1e-3)


def test_a_compiled_search_calls_back_to_no_host(seen) -> None:
    from frictax.fitting import FitOptions
    from frictax.fitting.build_problem import build_problem
    from frictax.fitting.search.levenberg_marquardt import begin
    from frictax.fitting.search.run import by_newton

    method = fx.LevenbergMarquardt(tolerance=1e-4)
    problem, _ = build_problem(block(), {"run": seen}, FitOptions(free=LAW, method=method))
    state = jax.eval_shape(lambda z: begin(z, problem.rows()), jnp.zeros_like(problem.x0))
    state = jax.tree_util.tree_map(lambda a: jnp.zeros(a.shape, a.dtype), state)
    one = jnp.asarray(1.0)
    lowered = eqx.filter_jit(by_newton.__wrapped__).lower(
        problem, state, jnp.asarray(5), one, 1e-4, one, one
    )
    assert "callback" not in lowered.as_text()
