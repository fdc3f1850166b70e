"""Which term a machine lacks is named, and none of a right one."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter

import frictax as fx
from frictax.analysis.missing import first_look
from frictax.analysis.missing.candidates import catalogue
from frictax.analysis.missing.chances import is_even
from frictax.analysis.missing.columns import columns, ranges_of
from frictax.analysis.missing.in_series import divided
from frictax.analysis.missing.table import Missing, MissingTerm
from frictax.analysis.missing.terms import (
    WIDTHS,
    MoreFriction,
    Shapes,
    WithTerms,
    push,
    rubbed_mass,
)
from frictax.laws import AbstractLaw
from frictax.parameters import Positive, Scalar, get, parameter

T = np.arange(2000) / 200.0
FREE = ["mass.m", "spring.c", "friction.f_pos.F_Coulomb", "friction.f_pos.F_prop"]
FREQUENCY = np.array([0.3, 0.55, 0.9, 1.3, 1.9, 2.6])
SIZE = np.array([2.5, 2.2, 1.8, 1.5, 1.2, 1.0])
RIGHT = fx.Coulomb(F_Coulomb=1.0, F_prop=0.5)
LAWS = {
    "drag": WithTerms(RIGHT, jnp.array([0.1]), jnp.array(1.0), ("drag",), 1),
    "Stribeck": fx.Stribeck(F_Coulomb=1.0, F_prop=0.5, F_Stribeck=0.06, fexp=10.0),
}


def sled(law: AbstractLaw, u: np.ndarray | None = None, **more: object) -> fx.Mechanism:
    """1 kg on a spring, with friction and a drive."""
    values = {"m": 1.0, "c": 20.0, "f_neg": None, **more}
    m, c, f_neg = (values.pop(name) for name in ("m", "c", "f_neg"))
    return fx.Mechanism(
        mass=fx.Mass(m=m),
        wall=fx.Fixed(),
        spring=fx.Spring("wall", "mass", c=c),
        friction=fx.SupportFriction("mass", f_pos=law, f_neg=f_neg),
        drive=fx.Force("mass", 0.0 if u is None else fx.Sampled(T, u)),
        **values,
    )


def fitted(lacking: str, noise: str, seed: int, objective: Any = None) -> fx.FitResult:
    """A fit of the plain sled to a record of one that has more."""
    rng = np.random.default_rng(seed)
    turn = rng.uniform(0.0, 2 * np.pi, FREQUENCY.size)
    given = SIZE @ np.sin(2 * np.pi * FREQUENCY[:, None] * T + turn[:, None])
    acting, more = given, {}
    if lacking == "offset":
        acting = given + 0.01
    if lacking == "delay":
        acting = np.interp(T - 5e-4, T, given)
    if lacking == "other way":
        more["f_neg"] = fx.Coulomb(F_Coulomb=0.98, F_prop=0.5)
    if lacking == "ripple":
        zero, one = jnp.zeros(()), jnp.ones(())
        wave = jnp.array([0.1, 0.0])
        more["ripple"] = push(
            "mass", False, Shapes(jnp.zeros(0), wave, 0.05 * one, zero, zero, one, ())
        )
    truth = sled(LAWS.get(lacking, RIGHT), acting, **more)
    s = np.asarray(fx.simulate(truth, ts=jnp.asarray(T), engine=fx.OnSamples())["mass"].s)
    if noise == "steps":
        s = 1e-3 * np.round((s + 5e-5 * rng.standard_normal(T.size)) / 1e-3)
    else:
        phi = {"white": 0.0, "AR": 0.95}[noise]
        draws = np.sqrt(1 - phi**2) * rng.standard_normal(T.size + 400)
        s = s + 5e-4 * np.asarray(lfilter([1.0], [1.0, -phi], draws))[400:]
    record = fx.Record(T, {"drive": given}, {"mass.s": s}, name="run")
    guess = sled(fx.Coulomb(F_Coulomb=0.9, F_prop=0.6), m=1.1, c=18.0)
    return fx.fit(guess, record, free=FREE, objective=objective or fx.FreeRun())


NAMES = {
    "drag": "drag over v^2",
    "offset": "constant force",
    "ripple": "ripple",
    "delay": "delay of input drive",
    "other way": "differs by direction",
    "Stribeck": "Stribeck",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lacking", "noise"),
    [
        ("drag", "white"),
        ("drag", "steps"),
        ("offset", "white"),
        ("ripple", "steps"),
        ("delay", "white"),
        ("other way", "white"),
        ("Stribeck", "steps"),
    ],
)
def test_the_term_that_is_missing_is_named_first(lacking: str, noise: str) -> None:
    table = fitted(lacking, noise, 41).missing()
    assert table.found, str(table)
    first = table.found[0]
    assert any(NAMES[lacking] in name for name in (first.name, *first.alike)), str(table)
    assert table.left < 0.53e-3
    assert table.left < 0.95 * table.misfit
    if lacking == "ripple":
        assert first.period == pytest.approx(0.05, rel=2e-3)
        assert first.value == pytest.approx(0.1, rel=0.05)
    if lacking == "drag":
        assert first.value == pytest.approx(0.1, rel=0.05)
        assert len(table.found) == 1
        assert "A term is missing: drag over v^2 of friction" in str(table)


@pytest.mark.slow
def test_nothing_is_missing_in_a_right_model() -> None:
    for noise in ("white", "steps"):
        table = fitted("nothing", noise, 7).missing()
        assert not table.found, (noise, str(table))
    assert "Nothing that was tried is missing at 1 %." in str(table)
    assert any("gain of sensor mass.s" in name for name in table.untold)


def test_the_print_of_a_fit_names_a_force_that_its_drive_lacks() -> None:
    found = fitted("drag", "white", 41)
    (notice,) = [n for n in found.notices if n.code == "term-missing"]
    assert notice.subject == "a drag over v^2 of mass"
    assert float(notice.numbers["percent"]) > 50
    assert float(notice.numbers["chance"]) < 1e-6
    assert "drag over v^2 of mass" in str(found)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("objective", [None, fx.Windows(0.5, cutoff=20.0)])
def test_and_none_of_a_right_model(objective: Any) -> None:
    for noise in ("white", "AR", "steps"):
        for seed in range(300, 302):
            codes = {n.code for n in fitted("nothing", noise, seed, objective).notices}
            assert "term-missing" not in codes, (noise, seed)


@pytest.mark.slow
def test_forces_added_to_the_input_act_as_terms_of_the_machine_do() -> None:
    """The derivative by a drag: through the input along the motion, and through the law."""
    found = fitted("nothing", "white", 12)
    problem, tried = found.problem, catalogue(found)
    ranges, _ = ranges_of(problem, np.asarray(found.x))
    size = sum(one.size for one in tried)
    all_of = columns(
        problem, tried, np.asarray(found.x), np.zeros(size), {}, {"mass": 0.05}, ranges
    )
    begin = np.cumsum([0, *(one.size for one in tried)])
    x, residuals = jnp.asarray(found.x), eqx.filter_jit(lambda problem, x: problem.residuals(x))
    by_name = {one.name: all_of.tried[:, k] for one, k in zip(tried, begin, strict=False)}

    def moved(changed: Any, by: float) -> np.ndarray:
        return (np.asarray(residuals(changed, x)) - found.full_residuals) / by

    compared = 0
    for name, column in first_look._tried(found, "drive", moved):
        of_law = name.removeprefix("a ").replace("of mass", "of friction")
        for other in (of_law, name.removeprefix("a ")):
            if other in by_name and "over position" not in other and "distance" not in other:
                off = np.linalg.norm(column - by_name[other]) / np.linalg.norm(by_name[other])
                # between two samples a drive is straight, and a dip about v = 0 is not
                assert off < (0.2 if "Stribeck" in name else 0.02), (name, off)
                compared += 1
    assert compared >= 8


@pytest.mark.slow
def test_right_models_raise_hardly_an_alarm() -> None:
    """At most 1 of 12 records."""
    alarms = [
        bool(fitted("nothing", noise, 100 + k).missing().found)
        for noise, count in (("white", 5), ("AR", 2), ("steps", 5))
        for k in range(count)
    ]
    assert sum(alarms) <= 1


@pytest.mark.slow
def test_derivatives_by_coefficients_are_those_of_differences() -> None:
    found = fitted("drag", "white", 3)
    problem, tried = found.problem, catalogue(found)
    x = np.asarray(found.x)
    ranges, _ = ranges_of(problem, x)
    size = sum(one.size for one in tried)
    at = lambda c: columns(problem, tried, x, c, {}, {"mass": 0.05}, ranges)  # noqa: E731
    told = at(np.zeros(size))
    np.testing.assert_allclose(told.residuals, found.full_residuals, atol=1e-12)
    np.testing.assert_allclose(told.fitted, found.full_jacobian, rtol=1e-6, atol=1e-9)
    first = 0
    for one in tried:
        for k in range(first, first + one.size):
            norm = np.linalg.norm(told.tried[:, k])
            # delays are looked up between samples, where slopes have corners; the run begins at
            # rest, where the start speed has one; breakaway is one-sided
            if norm == 0 or "delay" in one.name or one.name == "mass.v" or one.least == 0.0:
                continue
            h = 1e-7 * np.linalg.norm(found.full_residuals) / norm
            step = np.zeros(size)
            step[k] = h
            by_difference = (at(step).residuals - at(-step).residuals) / (2 * h)
            off = np.linalg.norm(by_difference - told.tried[:, k]) / norm
            assert off < 0.01, (one.name, off)
        first += one.size


class Pendulum(fx.AbstractAxis):
    """A pendulum of one's own with a drag that is left out or not."""

    friction: fx.SupportFriction
    J: Scalar = parameter(Positive(), "kg.m2")
    mgl: float = eqx.field(static=True, default=0.48)

    def inertia(self, t, y, args):
        return self.J

    def load(self, t, y, args):
        return -self.mgl * jnp.sin(y[0])

    def states(self):
        return ("phi", "w")

    def start(self, t):
        return self.begin(t, jnp.array([2.5, 0.0]))


@pytest.mark.slow
def test_of_a_machine_of_ones_own_too() -> None:
    law = fx.Coulomb(F_Coulomb=0.004, F_prop=0.0004)
    with_drag = WithTerms(law, jnp.array([1.5e-4]), jnp.array(1.0), ("drag",), 1)
    t = np.arange(1500) / 100.0
    build = lambda law: Pendulum(fx.SupportFriction("joint", f_pos=law), J=jnp.asarray(0.0067))  # noqa: E731
    truth = build(with_drag)
    path = fx.walk(truth, *truth.start(jnp.zeros(())), jnp.asarray(t), options=fx.OnSamples())
    phi = np.asarray(path.ys[:, 0]) + 1e-3 * np.random.default_rng(5).standard_normal(t.size)
    record = fx.Record(t, {}, {"phi": phi}, name="decay")
    free = ["J", "friction.f_pos.F_Coulomb", "friction.f_pos.F_prop"]
    found = fx.fit(build(law), record, free=free, objective=fx.FreeRun())
    table = found.missing()
    assert "drag" in table.found[0].name, str(table)
    assert table.found[0].value == pytest.approx(1.5e-4, rel=0.1)


def test_a_sweep_is_told_where_to_look() -> None:
    sweep = fx.Sweep([1, 2, 4, 5], [7.0, 8.0, 10.5, 11.2], velocity_unit="m/s", force_unit="N")
    found = fx.fit(fx.Coulomb(F_Coulomb=6.0, F_prop=1.0), sweep)
    with pytest.raises(ValueError, match="lack of fit"):
        found.missing()


@pytest.mark.slow
def test_a_term_that_was_not_tried_is_said_to_be_none() -> None:
    with pytest.raises(KeyError, match="no candidate 'warp'"):
        fitted("nothing", "white", 7).missing()["warp"]


def test_a_dip_of_any_width_is_one_term() -> None:
    found = fitted("nothing", "white", 7)
    (dip,) = [one for one in catalogue(found) if one.term == "Stribeck"]
    assert dip.size == 2
    v = np.linspace(0.0, 1.0, 201)
    both = np.exp(-v[:, None] / np.array(WIDTHS))
    for width in (0.04, 0.08, 0.12, 0.25):
        shape = np.exp(-v / width)
        rest = shape - both @ np.linalg.lstsq(both, shape, rcond=None)[0]
        assert np.sqrt(np.mean(rest**2)) < 0.2 * np.std(shape)


def test_friction_of_a_mass_between_stops_is_added_to_its_law() -> None:
    """A force that jumps at rest would not hold the mass; a law does."""
    mass = fx.MassWithStopAndFriction(
        m=1.0, smin=-1, smax=1, F_prop=0.5, F_Coulomb=1.0, F_Stribeck=0.0, fexp=1.0
    )
    more = MoreFriction(jnp.array([0.2]), jnp.array(1.0), ("other way",))
    law = rubbed_mass(mass, more).law
    assert float(law(1)(0.3)) == pytest.approx(1.35)
    assert float(law(-1)(0.3)) == pytest.approx(0.95)
    assert float(law(1).f0) == pytest.approx(1.2)


def carriage(soft: bool, u: np.ndarray | None = None) -> fx.Mechanism:
    """On a spring, driven and seen at one end of a belt."""
    far = "far" if soft else "mass"
    belt = {"far": fx.Mass(m=0.6), "belt": fx.SpringDamper("mass", "far", c=3000.0, d=0.7)}
    return fx.Mechanism(
        mass=fx.Mass(m=0.4 if soft else 1.1),
        wall=fx.Fixed(),
        spring=fx.Spring("wall", far, c=20.0),
        friction=fx.SupportFriction(far, f_pos=RIGHT),
        drive=fx.Force("mass", 0.0 if u is None else fx.Sampled(T, u)),
        **(belt if soft else {}),
    )


def test_a_body_in_two_keeps_its_drive_and_its_sensor() -> None:
    machine = divided(carriage(False), "mass", 3000.0)
    assert machine["friction"].body == machine["spring"].b == "beyond_mass"
    assert machine["drive"].body == "mass"
    assert float(machine["mass"].m) + float(machine["beyond_mass"].m) == pytest.approx(1.1)
    swing = 2 * np.pi * 0.5
    still = carriage(False, 2.0 * np.sin(swing * T))
    rigid, soft = (
        np.asarray(fx.simulate(m, jnp.asarray(T), fx.OnSamples())["mass"].s)
        for m in (still, divided(still, "mass", 3000.0))
    )
    assert 1e-4 < np.max(np.abs(rigid - soft)) < 3e-3  # 2 N over the stiffness


@pytest.mark.slow
def test_a_stiffness_in_series_is_found_by_the_machine_with_a_body_in_two() -> None:
    rng = np.random.default_rng(5)
    turn = rng.uniform(0.0, 2 * np.pi, FREQUENCY.size)
    given = SIZE @ np.sin(2 * np.pi * FREQUENCY[:, None] * T + turn[:, None])
    s = np.asarray(
        fx.simulate(carriage(True, given), jnp.asarray(T), fx.OnSamples(substeps=4))["mass"].s
    )
    s = s + 5e-4 * rng.standard_normal(T.size)
    record = fx.Record(T, {"drive": given}, {"mass.s": s}, name="run")
    table = fx.fit(carriage(False), record, free=FREE, objective=fx.FreeRun()).missing()
    assert table.found[0].name == "stiffness in series with mass", str(table)
    assert table.found[0].value == pytest.approx(3000.0, rel=0.4)
    assert table.left < 0.75 * table.misfit


@pytest.mark.slow
def test_a_stiffness_behind_a_motor_with_noise_of_a_memory_is_named_on_windows() -> None:
    """Windows name a ripple there: they start each half second where a filter saw the near body,
    and what swings behind it remembers more.
    """
    t = np.arange(2000) / 200.0
    rng = np.random.default_rng(10)
    turn = rng.uniform(0.0, 2 * np.pi, FREQUENCY.size)
    u = 0.06 * SIZE @ np.sin(2 * np.pi * FREQUENCY[:, None] * t + turn[:, None])

    def motor(torque: Any, far: str = "rotor", J: float = 2e-3, **more: Any) -> fx.Mechanism:
        law = fx.Coulomb(F_Coulomb=0.05, F_prop=0.01)
        return fx.Mechanism(
            rotor=fx.Inertia(J=J),
            bearing=fx.BearingFriction(far, tau_pos=law),
            drive=fx.Torque("rotor", torque),
            **more,
        )

    shaft = fx.RotationalSpringDamper("rotor", "load", c=60.0, d=0.006)
    more = {"load": fx.Inertia(J=1.2e-3), "shaft": shaft}
    truth = motor(fx.Sampled(t, u), far="load", J=0.8e-3, **more)
    run = fx.simulate(truth, jnp.asarray(t), fx.OnSamples(substeps=4))
    draws = np.sqrt(1 - 0.9**2) * rng.standard_normal(t.size + 400)
    noise = 1.5e-3 * np.asarray(lfilter([1.0], [1.0, -0.9], draws))[400:]
    record = fx.Record(
        t, {"drive": u}, {"rotor.phi": np.asarray(run["rotor"].phi) + noise}, name="run"
    )
    free = ["rotor.J", "bearing.tau_pos.F_Coulomb", "bearing.tau_pos.F_prop"]
    found = fx.fit(motor(0.0, J=2.3e-3), record, free=free, objective=fx.Windows(0.5, cutoff=20.0))
    table = found.missing()
    assert table.found[0].name == "stiffness in series with rotor", str(table)
    assert table.found[0].value == pytest.approx(60.0, rel=0.2)
    assert len(table.found) == 1
    assert "stiffness in series with rotor" in table.structures()


@pytest.mark.slow
def test_a_ripple_that_a_motor_with_noise_of_a_memory_has_is_named_on_windows() -> None:
    """Its period is no part of a turn."""
    t = np.arange(2000) / 200.0
    rng = np.random.default_rng(3)
    turn = rng.uniform(0.0, 2 * np.pi, FREQUENCY.size)
    u = 0.06 * SIZE @ np.sin(2 * np.pi * FREQUENCY[:, None] * t + turn[:, None])
    zero, one = jnp.zeros(()), jnp.ones(())
    wave = Shapes(jnp.zeros(0), jnp.array([9e-4, 0.0]), 2.6 * one, zero, zero, one, ())

    def motor(torque: Any, **more: Any) -> fx.Mechanism:
        law = fx.Coulomb(F_Coulomb=0.05, F_prop=0.01)
        return fx.Mechanism(
            rotor=fx.Inertia(J=2e-3),
            bearing=fx.BearingFriction("rotor", tau_pos=law),
            drive=fx.Torque("rotor", torque),
            **more,
        )

    truth = motor(fx.Sampled(t, u), ripple=push("rotor", True, wave))
    phi = np.asarray(fx.simulate(truth, jnp.asarray(t), fx.OnSamples())["rotor"].phi)
    draws = np.sqrt(1 - 0.9**2) * rng.standard_normal(t.size + 400)
    phi = phi + 1.5e-3 * np.asarray(lfilter([1.0], [1.0, -0.9], draws))[400:]
    record = fx.Record(t, {"drive": u}, {"rotor.phi": phi}, name="run")
    free = ["rotor.J", "bearing.tau_pos.F_Coulomb", "bearing.tau_pos.F_prop"]
    found = fx.fit(motor(0.0), record, free=free, objective=fx.Windows(0.5, cutoff=20.0))
    table = found.missing()
    assert "ripple on rotor" in table.found[0].name, str(table)
    assert table.found[0].period == pytest.approx(2.6, rel=0.02)
    machine = table.structures()["ripple on rotor"].model
    assert isinstance(machine, fx.Mechanism)
    made = machine["ripple"]
    assert made.body == "rotor"
    assert float(jnp.hypot(made.f_cos, made.f_sin)) == pytest.approx(9e-4, rel=0.2)


@pytest.mark.parametrize(("memory", "is_one"), [(0.0, True), (0.5, False)])
def test_even_noise_is_told_from_noise_that_is_not(memory: float, is_one: bool) -> None:
    rng, block = np.random.default_rng(1), np.repeat(np.arange(16), 125)
    draws = [lfilter([1.0], [1.0, -memory], rng.standard_normal(2000)) for _ in range(200)]
    share = np.mean([is_even(np.asarray(x), block) for x in draws])
    assert share > 0.98 if is_one else share < 0.2
    louder = np.where(block < 4, 2.0, 1.0)
    assert not is_even(louder * rng.standard_normal(2000), block)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lacking", "freed_too", "part"),
    [
        ("Stribeck", "friction.f_pos.fexp", fx.Stribeck),
        ("other way", "friction.f_neg.F_Coulomb", fx.Coulomb),
    ],
)
def test_a_law_that_is_missing_becomes_a_structure(
    lacking: str, freed_too: str, part: type
) -> None:
    structures = fitted(lacking, "white", 41).missing().structures()
    assert list(structures["as fitted"].free or ()) == FREE
    (made,) = [made for name, made in structures.items() if NAMES[lacking] in name]
    assert freed_too in (made.free or ())
    assert isinstance(get(made.model, freed_too.rpartition(".")[0]), part)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lacking", "freed_too", "part"),
    [
        ("drag", "drag.f_nominal", fx.QuadraticSpeedDependentForce),
        ("ripple", "ripple.period", fx.PeriodicPositionDependentForce),
    ],
)
def test_compare_takes_what_is_missing_as_structures(
    lacking: str, freed_too: str, part: type
) -> None:
    found = fitted(lacking, "white", 41)
    structures = found.missing().structures()
    assert list(structures["as fitted"].free or ()) == FREE
    (name,) = [n for n in structures if NAMES[lacking] in n]
    made = structures[name]
    assert freed_too in (made.free or ())
    assert isinstance(get(made.model, freed_too.rpartition(".")[0]), part)
    few = {n: structures[n] for n in ("as fitted", name)}
    compared = fx.compare(found.records, few, objective=fx.FreeRun())
    assert compared.best.name == name
    assert compared[name].mean_square < 0.9 * compared["as fitted"].mean_square
    intervals = compared.best.found.intervals
    if lacking == "drag":
        low, high = intervals["drag.f_nominal"]
        assert low < -0.1 < high < -0.08
    if lacking == "ripple":
        low, high = intervals["ripple.period"]
        assert low < 0.05 < high < 0.051
        turn = 2 * np.pi * float(get(made.model, "ripple.s0")) / 0.05
        for path, true in (("f_cos", 0.1 * np.cos(turn)), ("f_sin", -0.1 * np.sin(turn))):
            low, high = intervals[f"ripple.{path}"]
            assert low < true < high, path
            assert high - low < 0.02


def test_drag_ripple_and_spring_become_parts_of_the_size_that_was_found() -> None:
    found = fitted("nothing", "white", 7)
    names = "drag over v^2 of friction", "ripple on mass", "spring on mass"
    sized = (names[0], 0.3, None, None), (names[1], 0.2, 0.05, 1.9), (names[2], 4.0, None, None)
    terms = [
        MissingTerm(name, value, 0.1, "N", period, 1.0, 1.0, 0.0, True, True, (), phase)
        for name, value, period, phase in sized
    ]
    made = Missing(tuple(terms), (), 1.0, 1.0, "", (), found).structures()
    assert list(made) == ["as fitted", *names]
    models: dict[str, Any] = {name: made[name].model for name in names}
    parts = {name: dict(model.named_parts()) for name, model in models.items()}
    drag, ripple = parts[names[0]]["drag"], parts[names[1]]["ripple"]
    assert float(drag.driven(None, jnp.zeros(()), jnp.array(-2.0))) == pytest.approx(0.3 * 4.0)
    s = jnp.linspace(-0.1, 0.1, 50)
    assert np.allclose(
        jax.vmap(ripple.elastic)(s), 0.2 * np.cos(2 * np.pi * s / 0.05 - 1.9), atol=1e-12
    )
    assert float(parts[names[2]]["guide"].slope) == -4.0
    fields = ["drag.f_nominal"], ["ripple.f_cos", "ripple.f_sin", "ripple.period"], ["guide.slope"]
    for name, more in zip(names, fields, strict=True):
        assert list(made[name].free or ()) == [*FREE, *more]
        # the law keeps its numbers
        assert isinstance(parts[name]["friction"].f_pos, fx.Coulomb)


def test_a_number_that_was_held_and_a_stiffness_become_structures() -> None:
    found = fitted("nothing", "white", 7)
    held = [one for one in catalogue(found) if one.name == "offset of sensor mass.s"]
    mass = [one for one in catalogue(found) if one.of == "mass.m"]
    assert not mass  # it is fitted
    terms = [
        MissingTerm(name, value, 0.1, "", None, 1.0, 1.0, 0.0, True, True, ())
        for name, value in ((held[0].name, 0.01), ("stiffness in series with mass", 4000.0))
    ]
    table = Missing(tuple(terms), (), 1.0, 1.0, "", (), found)
    made = table.structures()
    assert list(made) == ["as fitted", *(term.name for term in terms)]
    assert list(made[terms[0].name].free or ()) == [*FREE, "outputs.mass.s.offset"]
    beyond: Any = made[terms[1].name].model
    assert beyond.names[:2] == ("mass", "beyond_mass")
    assert {"series_mass.c", "beyond_mass.m"} < set(made[terms[1].name].free or ())
