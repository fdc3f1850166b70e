"""Which term a machine lacks is named, and none of a right one."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter

import frictax as fx
from frictax.analysis.missing import missing as trials, screening
from frictax.analysis.missing.candidates import (
    WIDTHS,
    MoreFriction,
    Shapes,
    WithTerms,
    catalogue,
    push,
    rubbed_mass,
)
from frictax.analysis.missing.score_test import is_even
from frictax.analysis.missing.sensitivities import (
    Point,
    Sensitivities,
    operating_range,
    sensitivities,
)
from frictax.analysis.missing.table import Missing, MissingTerm
from frictax.parameters import Positive, Scalar, parameter
from lacking import FREQUENCY, NAMES, SIZE, fitted


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
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
@pytest.mark.usefixtures("optimised_fits")
def test_nothing_is_missing_in_a_right_model() -> None:
    for noise in ("white", "steps"):
        table = fitted("nothing", noise, 7).missing()
        assert not table.found, (noise, str(table))
    assert "No candidate is missing at the 1 % level." in str(table)
    assert any("gain of sensor mass.s" in name for name in table.untold)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_the_print_of_a_fit_names_the_first_term_of_the_table() -> None:
    found = fitted("drag", "white", 41)
    (notice,) = [n for n in found.notices if n.code == "term-missing"]
    assert notice.subject == "drag over v^2 of friction"
    assert float(notice.numbers["percent"]) > 50
    assert float(notice.numbers["chance"]) < 1e-6
    assert "drag over v^2 of friction" in str(found)
    assert found.missing() is found.missing()
    assert found.missing().found[0].name == notice.subject


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
@pytest.mark.parametrize("objective", [None, fx.Windows(0.5, cutoff=20.0)])
def test_and_none_of_a_right_model(objective: Any) -> None:
    for noise in ("white", "AR", "steps"):
        for seed in range(300, 302):
            codes = {n.code for n in fitted("nothing", noise, seed, objective).notices}
            assert "term-missing" not in codes, (noise, seed)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_forces_added_to_the_input_act_as_terms_of_the_machine_do() -> None:
    """The derivative by a drag: through the input along the motion, and through the law."""
    found = fitted("nothing", "white", 12)
    problem, tried = found.problem, catalogue(found)
    ranges, _ = operating_range(problem, np.asarray(found.x))
    size = sum(one.size for one in tried)
    at = Point(np.asarray(found.x), np.zeros(size), {}, {"mass": 0.05})
    all_of = sensitivities(problem, tried, at, ranges)
    begin = np.cumsum([0, *(one.size for one in tried)])
    x, residuals = jnp.asarray(found.x), eqx.filter_jit(lambda problem, x: problem.residuals(x))
    by_name = {one.name: all_of.tried[:, k] for one, k in zip(tried, begin, strict=False)}

    def moved(changed: Any, by: float) -> np.ndarray:
        return (np.asarray(residuals(changed, x)) - found.full_residuals) / by

    compared = 0
    for name, column in screening._force_columns(found, "drive", moved):
        of_law = name.replace("of mass", "of friction")
        for other in (of_law, name):
            if other in by_name and "over position" not in other and "distance" not in other:
                off = np.linalg.norm(column - by_name[other]) / np.linalg.norm(by_name[other])
                # between two samples a drive is straight, and a dip about v = 0 is not
                assert off < (0.2 if "Stribeck" in name else 0.02), (name, off)
                compared += 1
    assert compared >= 8


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_right_models_raise_hardly_an_alarm() -> None:
    """At most 1 of 12 records."""
    alarms = [
        bool(fitted("nothing", noise, 100 + k).missing().found)
        for noise, count in (("white", 5), ("AR", 2), ("steps", 5))
        for k in range(count)
    ]
    assert sum(alarms) <= 1


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_derivatives_by_coefficients_are_those_of_differences() -> None:
    found = fitted("drag", "white", 3)
    problem, tried = found.problem, catalogue(found)
    x = np.asarray(found.x)
    ranges, _ = operating_range(problem, x)
    size = sum(one.size for one in tried)

    def at(c: np.ndarray) -> Sensitivities:
        return sensitivities(problem, tried, Point(x, c, {}, {"mass": 0.05}), ranges)

    told = at(np.zeros(size))
    # The steps of the machine with all candidates are divided otherwise than those without.
    np.testing.assert_allclose(told.residuals, found.full_residuals, atol=1e-9)
    off = np.linalg.norm(told.fitted - found.full_jacobian, axis=0)
    assert np.all(off < 1e-4 * np.linalg.norm(found.full_jacobian, axis=0)), off
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
@pytest.mark.usefixtures("optimised_fits")
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
    with pytest.raises(ValueError, match="lack-of-fit"):
        found.missing()


def test_a_misfit_far_above_the_noise_is_not_called_nothing() -> None:
    sweep = fx.Sweep([1, 2, 4, 5], [7.0, 8.0, 10.5, 11.2], velocity_unit="m/s", force_unit="N")
    of = fx.fit(fx.Coulomb(F_Coulomb=6.0, F_prop=1.0), sweep)
    one = MissingTerm("spring", 3.0, 0.1, "N/m", None, 1e-3, 1.0, 0.0, True, True, ())
    (said,) = Missing((), (), 2e-3, 2e-3, "m", (), of, 37.2).sentences
    assert said == "The misfit is 37.2 times the noise, and none of the candidates explains it."
    _, said = Missing((one,), (one,), 2e-3, 1e-3, "m", (), of, 37.2).sentences
    assert said.startswith("The misfit is then 18.6 times the noise")
    (said,) = Missing((one,), (one,), 2e-3, 1e-4, "m", (), of, 37.2).sentences
    assert said.startswith("A term is missing: spring")
    (said,) = Missing((), (), 2e-3, 2e-3, "m", (), of).sentences
    assert said == "No candidate is missing at the 1 % level."


def test_noise_that_differs_between_records_has_no_unit() -> None:
    t, rng = np.linspace(0.0, 1.0, 41), np.random.default_rng(0)
    machine = fx.Mechanism(mass=fx.Mass(m=0.9), drive=fx.Force("mass", 0.0))
    search = object.__new__(trials._Search)
    for fine, unit in ((1e-3, ""), (1e-1, "m/s")):
        records = [
            fx.Record(t, {"drive": t}, {"mass.v": v}, sd={"mass.v": sd}, name=f"{sd} {k}")
            for k, sd in enumerate((fine, 1e-1))
            for v in [t**2 / 2 + sd * rng.standard_normal(41)]
        ]
        found = fx.fit(machine, records, free=["mass.m"], rounds=0)
        search.found, search.problem = found, found.problem
        assert search.unit == unit
        assert search.in_units(1.0) == pytest.approx(0.1 if unit else 1.0)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_the_print_and_the_table_name_the_same_term_and_none_of_a_right_machine() -> None:
    """Of 10 right records none has a term; of 12 that lack one at least 10 have the right one."""
    right = 0
    for k in range(22):
        lacking = "nothing" if k < 10 else list(NAMES)[k % len(NAMES)]
        found = fitted(lacking, "white", 500 + k)
        table = found.missing()
        said = [n.subject for n in found.notices if n.code == "term-missing"]
        assert not said or said == [table.found[0].name], (k, lacking)
        for term in table.found:
            assert term.is_significant, str(table)
            assert abs(term.value) > 2.5 * term.standard_error or "stiffness" in term.name
        if lacking == "nothing":
            assert not table.found, (k, str(table))
        elif table.found:
            names = table.found[0].name, *table.found[0].alike
            right += any(NAMES[lacking] in name for name in names)
    assert right >= 10


@pytest.mark.slow
def test_a_term_that_was_not_tried_is_said_to_be_none() -> None:
    with pytest.raises(KeyError, match="no candidate 'warp'"):
        fitted("nothing", "white", 7).missing()["warp"]


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
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
def test_a_ripple_whose_period_cannot_be_moved_is_fitted_with_it_held(monkeypatch) -> None:
    """A run that comes to no end with another period has no derivative by that."""
    found = fitted("nothing", "white", 7)
    search = trials.Trials(found)
    wave = next(i for i, one in enumerate(search.tried) if one.kind == "wave")
    at = dataclasses.replace(search.point, periods={"mass": 0.05})
    real = trials.sensitivities

    def ends(*args: Any) -> Any:
        made = real(*args)
        moved = args[2].periods["mass"] != 0.05
        return dataclasses.replace(made, residuals=made.residuals * (np.nan if moved else 1.0))

    monkeypatch.setattr(trials, "sensitivities", ends)
    seen = search.at_values(at, wave)
    assert np.all(seen.by_wave == 0.0)
    assert np.all(np.isfinite(search.with_accepted(seen).fitted))
