"""Designed experiments: within their limits, as good as they say, better than others."""

import dataclasses
import sys
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.excitation.building import DesignRequest, build_problem, prior_information
from frictax.excitation.design import error_in_words, share_within_limits
from frictax.excitation.rivals import motion_to_drive

OUTPUTS = {"mass.v": 2e-3}
FREE = ["mass.m", "friction.f_pos"]
LIMITS = fx.Limits(force=3.0, travel=0.2, band=(0.25, 3.0))
FORCED = fx.Limits(force=3.0, band=(0.25, 3.0))  # no staircases are run without a limit of travel
SMALL: dict[str, Any] = {"duration": 4.0, "rate": 50.0, "starts": 1, "steps": 12}


def _small(**more: Any) -> dict[str, Any]:
    return SMALL | more


def _block(drive=None):
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0, F_prop=0.2), peak=1.1),
        drive=fx.Force("mass", 0.0) if drive is None else drive,
    )


class _Carriage(fx.AbstractAxis):
    friction: fx.SupportFriction

    def inertia(self, t: Any, y: Any, args: Any) -> float:
        return 1.0

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return args["motor"](t)

    def states(self) -> tuple[str, ...]:
        return ("s", "v")


@pytest.fixture(scope="module")
def experiment() -> fx.Design:
    return fx.design(_block(), OUTPUTS, free=FREE, limits=LIMITS, **SMALL)


@pytest.mark.slow
def test_experiment_keeps_its_limits_and_stands_beside_a_chirp_and_a_staircase(experiment):
    assert all(amount <= limit * (1 + 1e-6) for amount, limit in experiment.asked.values())
    assert np.max(np.abs(experiment.excitation)) <= 3.0
    assert experiment.excitation[[0, -1]] == pytest.approx(0.0, abs=1e-9)
    assert [says.partition(" ")[0] for says in experiment.beside] == ["chirp,", "staircase"]


@pytest.mark.slow
def test_expected_errors_are_those_of_the_derivatives_at_the_samples(experiment):
    def speed(x):
        block = fx.parameters.replace(_block(), dict(zip(experiment.names, x, strict=True)))
        parts = dict(block.named_parts())
        parts["drive"] = fx.Force("mass", fx.Sampled(experiment.t, experiment.excitation))
        return fx.simulate(fx.Mechanism(**parts), experiment.t, fx.OnSamples())["mass"].v

    J = np.asarray(jax.jit(jax.jacfwd(speed))(jnp.asarray(experiment.values))) / 2e-3
    errors = np.sqrt(np.diag(np.linalg.inv(J.T @ J)))
    np.testing.assert_allclose(experiment.errors, errors, rtol=2e-2)


@pytest.mark.slow
def test_table_is_written_sample_by_sample(experiment, tmp_path):
    path = experiment.to_csv(tmp_path / "excitation.csv")
    head, *rows = path.read_text().splitlines()
    assert head == "time [s],drive [N]"
    table = np.array([[float(cell) for cell in row.split(",")] for row in rows])
    np.testing.assert_allclose(table[:, 0], experiment.t, atol=1e-9)
    np.testing.assert_allclose(table[:, 1], experiment.excitation, rtol=1e-8, atol=1e-12)
    with pytest.raises(ValueError, match="does not exist. Make it first"):
        experiment.to_csv(tmp_path / "none" / "excitation.csv")


@pytest.mark.slow
def test_print_says_what_is_expected_and_what_others_leave(experiment):
    text = str(experiment)
    assert "drive [N] for 4 s at 50 Hz, 201 samples" in text
    assert "friction.f_pos.F_Coulomb" in text
    assert "compared with: chirp, " in text
    assert "; staircase of speeds, held by a controller" in text
    assert "asks for travel" in text


@pytest.mark.slow
def test_simulated_record_of_it_has_its_noise(experiment):
    record = experiment.record(seed=1)
    left = record.outputs["mass.v"] - experiment.clean()["mass.v"]
    assert np.std(left) == pytest.approx(2e-3, rel=0.2)
    np.testing.assert_array_equal(record.inputs["drive"], experiment.excitation)


@pytest.mark.slow
def test_what_it_shows_is_compiled_once(experiment, caplog):
    experiment.clean()
    with jax.log_compiles():
        again = experiment.record(seed=2)
    assert "Finished XLA compilation" not in caplog.text
    assert again.outputs["mass.v"].shape == experiment.t.shape


def test_what_cannot_be_designed_is_refused_in_a_sentence():
    t = np.linspace(0.0, 1.0, 51)
    short = fx.Record(t, {"drive": t}, {"mass.v": t**2}, name="short")
    wrong = [
        ({"outputs": {}}, r"`outputs` must be a dict of variable"),
        ({"outputs": {"mass.v": 0.0}}, r"a number > 0, got 0.0"),
        ({"outputs": {"mass.w": 1.0}}, r"which is no variable of the machine"),
        ({"limits": fx.Limits(travel=0.2)}, r"`Limits.force` must say how much 'drive' may give"),
        ({"limits": fx.Limits(force=3.0, body="drive")}, r"travel|no position|must name a body"),
        ({"duration": -1.0}, r"`duration` must be a number > 0 \[s\], got -1.0"),
        ({"rate": 1.0}, r"must give 20 to 1 000 000 samples, got 4"),
        ({"drive": "mass"}, r"signal"),
        ({"free": ["mass.s"]}, r"'mass.s' is 0"),
        ({"wanted": "clutch"}, r"`wanted` names 'clutch', which is not free"),
        ({"size": {"mass.q": 1.0}}, r"`size` names 'mass.q', which is not free"),
        ({"over": {"mass.q": 0.1}}, r"`over` names 'mass.q', which is not free"),
        ({"over": -0.1}, r"relative scatter between 0 and 3, got -0.1"),
        ({"criterion": "F"}, r"`criterion` must be one of E, minimax, A, D, got 'F'"),
        ({"shape": fx.Staircase()}, r"`Staircase` is for the reference of a position"),
        ({"objective": fx.InverseDynamics()}, r"`objective` must be FreeRun\(\)"),
        ({"memory": {"mass.v": -1.0}}, r"must be a time \[s\] > 0, got -1.0"),
        ({"steps": 0}, r"`steps` must be a whole number >= 1, got 0"),
        ({"limits": fx.Limits(force=3.0, band=(1.0, 40.0))}, r"must end below half of `rate`, 25"),
        ({"priors": [fx.Normal("friction.peak", 1.0, 0.1)]}, r"which is not free"),
        ({"outputs": {"mass.v": np.inf}}, r"a number > 0, got inf"),
        ({"memory": {"mass.s": 0.1}}, r"`memory` names 'mass.s', which is not in `outputs`"),
        ({"instruments": {"mass.v": fx.Instrument()}}, r"Did you mean 'outputs.mass.v'"),
        ({"inputs": {"drive": np.zeros(7)}}, r"must name other driven parts, got 'drive'"),
        ({"size": {"mass.m": -1.0}}, r"a size > 0, and that of 'mass.m' is -1.0"),
        ({"wanted": []}, r"`wanted` must name at least one"),
        ({"free": ["mass.m", "drive.f.k"]}, r"'drive.f.k', which has no effect"),
        ({"beside": short}, r"must last as long as the design, 4 s, got 1 s in record 'short'"),
    ]
    for options, says in wrong:
        given: dict[str, Any] = (
            {"free": FREE, "limits": LIMITS, "outputs": OUTPUTS} | SMALL | options
        )
        if "body" in str(options.get("limits")) and "drive" in str(options["limits"]):
            given["limits"] = fx.Limits(force=3.0, travel=0.2, body="drive")
        with pytest.raises((ValueError, KeyError), match=says):
            fx.design(_block(), **given)
    with pytest.raises(ValueError, match="`drive` must name the part that excites the machine"):
        fx.design(fx.Mechanism(mass=fx.Mass(m=1.0)), OUTPUTS, free="mass.m", limits=LIMITS, **SMALL)
    options = _small(limits=fx.Limits(force=3.0, body="mass"), drive="motor")
    with pytest.raises(ValueError, match="`Limits.body` names a body of a `Mechanism`"):
        fx.design(_Carriage(_block()["friction"]), {"v": 1e-3}, **options)


def _free(**parts: Any) -> fx.Mechanism:
    """A mass without friction, which compiles fast."""
    return fx.Mechanism(**{"mass": fx.Mass(m=1.0), "drive": fx.Force("mass", 2.0)} | parts)


def _problem(**options: Any) -> Any:
    given: dict[str, Any] = {"machine": _free(), "outputs": OUTPUTS, "limits": LIMITS}
    given |= {"duration": 4.0, "rate": 50.0, **options}
    return build_problem(DesignRequest(**given))


def test_a_constant_that_the_designed_input_replaces_is_not_free():
    assert _problem().names == ("mass.m",)
    problem = _problem(drive="drive.f")
    force_of = motion_to_drive(problem)
    assert force_of is not None
    force = force_of(np.zeros(problem.t.size))
    assert force is not None
    np.testing.assert_allclose(force, 0.0, atol=1e-9)


class _Own(_Carriage):
    names: tuple[str, ...] = eqx.field(static=True)

    def states(self) -> tuple[str, ...]:
        return self.names

    def start(self, t: Any) -> Any:
        return self.begin(t, jnp.zeros(2))


TURNS = {"rotor": fx.Inertia(J=1.0)}
LOOP = fx.PositionController("rotor", 0.0, 20.0, 40.0)
SLIDE_LOOP = fx.PositionController("mass", 0.0, 20.0, 40.0)


@pytest.mark.parametrize(
    ("machine", "output", "units"),
    [
        (fx.Mechanism(motor=LOOP, **TURNS), "rotor.phi", ["rad", "rad"]),
        (fx.Mechanism(motor=fx.Torque("rotor", 0.0), **TURNS), "rotor.a", ["N.m", "rad/s2"]),
        (fx.Mechanism(mass=fx.Mass(m=1.0), motor=SLIDE_LOOP), "mass.v", ["m", "m/s"]),
        (_Own(_block()["friction"], ("phi", "w")), "w", ["N.m", "rad/s"]),
        (_Own(_block()["friction"], ("s", "v")), "v", ["N", "m/s"]),
    ],
)
def test_a_designed_record_states_the_units_of_its_machine(
    machine: Any, output: str, units: list[str]
) -> None:
    limits, outputs = fx.Limits(force=3.0, travel=0.5, band=(0.25, 3.0)), {output: 1e-3}
    problem = _problem(machine=machine, outputs=outputs, limits=limits, drive="motor")
    u = np.sin(problem.t)
    bare: Any = SimpleNamespace(problem=problem, excitation=u, outputs=outputs)
    bare.clean = lambda: {output: u}
    record = fx.Design.record(bare)
    assert [record.units[name].name for name in ("motor", output)] == units
    assert record.declared == {"motor"} | ({output} - {"v"})  # "v" may also be in rad/s
    assert problem.unit == units[0]


@pytest.mark.slow
def test_a_parameter_without_effect_is_named():
    options = _small(free=["mass.m", "other.m"], limits=LIMITS)
    with pytest.raises(ValueError, match="'other.m' must have an effect on the outputs"):
        fx.design(_free(other=fx.Mass(m=1.0)), OUTPUTS, **options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"instruments": {"outputs.mass.v": fx.Instrument(delay=0.2)}}, "has `instruments`"),
        ({"priors": [fx.Normal("mass.m", 1.0, 1e-4)]}, "has `priors` or `after`"),
        ({"memory": {"mass.v": 0.1}}, "has `memory`"),
    ],
)
def test_check_refuses_what_it_does_not_fit(options: dict[str, Any], says: str) -> None:
    made, problem = object.__new__(fx.Design), _problem(**options)
    made.__dict__.update(problem=problem, outputs=OUTPUTS)
    with pytest.raises(ValueError, match=says):
        made.check(10)
    if "instruments" in options:  # the outputs are delayed, as a fit expects them
        u, bare = np.sin(problem.t), _problem().outputs(np.sin(problem.t))["mass.v"]
        late = np.interp(problem.t - 0.2, problem.t, bare)
        np.testing.assert_allclose(problem.outputs(u)["mass.v"], late, atol=1e-12)


def test_a_reference_is_scaled_by_the_gear_to_the_limited_body():
    arm = fx.Mechanism(
        motor=fx.Inertia(J=1e-4, phi=1.0),
        arm=fx.Inertia(J=1.0),
        gear=fx.IdealGear("motor", "arm", ratio=50.0),
        drive=fx.PositionController("motor", 0.0, kp=20.0, kv=0.01),
    )
    limits = fx.Limits(travel=0.2, body="arm", band=(0.25, 3.0))
    problem = _problem(machine=arm, outputs={"arm.w": 1e-3}, free=["arm.J"], limits=limits)
    assert (problem.centre, problem.scale) == pytest.approx((1.0, 5.0))


@pytest.mark.slow
def test_check_finds_errors_as_predicted(monkeypatch):
    longer = fx.design(
        _block(), OUTPUTS, free=FREE, limits=LIMITS, duration=6.0, rate=200.0, starts=2, steps=60
    )
    assert longer.worst() < min(longer.worst(says) for says in longer.beside)
    check = longer.check(60, seed=3)
    assert check.converged >= 0.9
    assert check.astray == 0.0
    assert "of the searches converged" in str(check)
    assert np.all((check.spread > 0.75) & (check.spread < 1.3))
    assert np.all(check.covered > 0.85)
    assert "in another minimum" not in str(check)

    def astray(*arguments: Any, **options: Any) -> fx.Replicates:
        many = fx.fit_many(*arguments, **options)
        fitted.append(len(many.cost))
        first = np.arange(len(many.cost)) == (7 if len(fitted) < 3 else 0)
        return dataclasses.replace(many, cost=many.cost * np.where(first, worse, 1.0))

    monkeypatch.setattr("frictax.excitation.check.fit_many", astray)
    fitted, worse = [], 1.5
    made = longer.check(20, seed=3)
    assert fitted[:2] == [20, 20]  # from two starts, and what is above the noise from two more
    assert len(fitted) == 4
    assert max(fitted[2:]) < 5
    assert made.astray == 1 / 20

    def at_a_bound(*arguments: Any, **options: Any) -> fx.Replicates:
        many = fx.fit_many(*arguments, **options)
        fitted.append(len(many.cost))
        values = many.values.copy()
        if len(values) == 20:
            values[4, -1] = 0.0
        return dataclasses.replace(many, values=values)

    monkeypatch.setattr("frictax.excitation.check.fit_many", at_a_bound)
    fitted = []
    longer.check(20, seed=3)
    assert len(fitted) > 2  # what lost a parameter at its bound is fitted again, too
    assert ", 5 % in another minimum" in str(made)
    with pytest.raises(ValueError, match=">= 10, got 3"):
        longer.check(3)


@pytest.mark.slow
def test_reference_of_a_controller_is_designed_within_its_travel():
    servo = _block(fx.PositionController("mass", 0.0, kp=30.0, kv=60.0))
    limits = fx.Limits(travel=0.2, speed=0.6, force=20.0, band=(0.25, 3.0))
    made = fx.design(servo, {"drive.f": 0.05}, free=FREE, limits=limits, **_small(steps=40))
    assert made.unit == "m"
    assert np.ptp(made.excitation) <= 0.2
    assert all(amount <= limit * (1 + 1e-6) for amount, limit in made.asked.values())
    # a short search, by the worst combination of parameters
    assert made.worst() < 1.05 * min(made.worst(says) for says in made.beside)
    assert not any("identifies the worst parameter better" in text for text in made.warnings)
    weaker = dataclasses.replace(made.run, sampled=made.run.sampled / 4)
    shorter = dataclasses.replace(made, run=weaker)
    assert any("identifies the worst parameter better" in text for text in shorter.warnings)


@pytest.mark.slow
def test_excitation_over_many_machines_keeps_limits_for_nearly_all(experiment, monkeypatch):
    # `over` changes which machines are run, and the programs of `experiment` run them.
    module = sys.modules[fx.Design.__module__]
    monkeypatch.setattr(module, "build_problem", lambda _: experiment.problem)
    made = fx.design(
        _block(), OUTPUTS, free=FREE, limits=LIMITS, over=0.15, machines=3, **_small(steps=30)
    )
    assert made.kept >= 0.97
    assert len(made.drawn) == 200
    told = made.worst_of_drawn()
    x = made.drawn[7]
    seen = made.problem.run_repeatedly(made.excitation, x)
    np.testing.assert_allclose(told[7], np.sqrt(np.max(np.diag(_relative(made, seen)))))
    for rival in made.rivals:  # they are held to the same limits
        assert share_within_limits(rival.drawn_runs) >= 0.97
        assert made.worst_of_drawn(rival.description).shape == (200,)
    assert made.worst_of_most() == np.percentile(told, 90)
    line = next(line for line in str(made).splitlines() if "machines drawn" in line)
    assert error_in_words(made.worst_of_most()) in line


@pytest.mark.slow
def test_the_rows_of_a_table_are_parameters_like_others():
    table = fx.Table([[0.0, 1.0], [0.1, 0.9], [3.0, 1.2]])
    parts = dict(_block().named_parts()) | {"friction": fx.SupportFriction("mass", f_pos=table)}
    block = fx.Mechanism(**parts)
    options = _small(limits=FORCED, free=FREE)
    over = {"friction.f_pos.f": 0.1, "friction": 0.0}
    made = fx.design(block, OUTPUTS, over=over, machines=2, **options)
    assert made.names[1:] == tuple(f"friction.f_pos.f[{i}]" for i in range(3))
    assert np.all(np.std(np.array(made.drawn)[:, 1:], axis=0) > 0.05)
    assert np.all(np.array(made.drawn)[:, 0] == 1.0)
    other = made.model(2.0 * made.values)
    np.testing.assert_allclose(other["friction"].f_pos.f, [2.0, 1.8, 2.4])
    check = made.check(10, seed=0)
    assert check.converged > 0.5
    with pytest.raises(ValueError, match=r"'friction.f_pos.g', which is not free. Did you mean"):
        fx.design(block, OUTPUTS, over={"friction.f_pos.g": 0.1}, **options)


def _relative(made, seen):
    plan = made.problem
    return np.linalg.inv(
        np.asarray(seen.sampled) * np.outer(plan.size, plan.size) + 1e-4 * np.eye(plan.size.size)
    )


@pytest.mark.slow
def test_more_that_is_known_makes_errors_smaller(experiment):
    found = fx.fit(_block(), experiment.record(), free=FREE, rounds=0)
    order = [found.names.index(name) for name in experiment.names]
    known = found.covariance[np.ix_(order, order)]
    both = dataclasses.replace(
        experiment, problem=_problem(machine=_block(), free=FREE, after=found)
    )
    total = np.asarray(experiment.run.sampled) + np.linalg.inv(known)
    np.testing.assert_allclose(both.errors, np.sqrt(np.diag(np.linalg.inv(total))), rtol=1e-4)
    weighed = [fx.Normal("mass.m", 1.0, 1e-5)]
    options = _small(limits=FORCED, after=found, priors=weighed)
    held = fx.design(_block(), OUTPUTS, free=FREE, **options)
    assert np.all(held.errors <= 1.001 * np.sqrt(np.diag(known)))
    assert held.errors[held.names.index("mass.m")] <= 1e-5


@pytest.mark.slow
def test_windows_tell_less_than_one_run_and_memory_less_than_white_noise(experiment):
    u, white = experiment.excitation, experiment.run
    given: dict[str, Any] = {"free": FREE, "inputs": {"drive": u}, "windows": 0.5}
    cut = jax.jit(lambda: fx.information(_block(), experiment.t, OUTPUTS, **given))()
    assert np.linalg.det(cut) < np.linalg.det(white.information)
    problem = _problem(machine=_block(), free=FREE, memory={"mass.v": 0.1})
    kept = problem.run_repeatedly(u, experiment.values)
    remembered = dataclasses.replace(experiment, problem=problem, run=kept)
    rho = np.exp(-0.02 / 0.1)
    wider = np.sqrt((1 + rho) / (1 - rho))
    np.testing.assert_allclose(remembered.errors / experiment.errors, wider, rtol=1e-3)


def test_a_smooth_prior_takes_the_speeds_of_the_table() -> None:
    v = np.array([0.0, 0.1, 0.4, 1.0])
    table = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=np.stack([v, np.full(4, 5.0)], axis=1)),
    )
    names = tuple(f"friction.f_pos.f[{i}]" for i in range(4))
    priors, x = [fx.Smooth("friction.f_pos.f", sd=0.5)], np.full(4, 5.0)
    known = prior_information(table, names, np.ones(4), None, priors, x)
    # A line over the speeds satisfies the prior, also where the speeds are not evenly spaced.
    assert np.allclose(known @ (1.0 + 2.0 * v), 0.0, atol=1e-9)
    assert np.abs(known @ np.arange(4.0)).max() > 1.0
