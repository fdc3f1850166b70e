"""Which term a sled lacks is named and becomes a structure, and none of a right one."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter

import frictax as fx
from frictax.analysis.missing import missing as trials, screening
from frictax.analysis.missing.candidates import WIDTHS, MoreFriction, catalogue, rubbed_mass
from frictax.analysis.missing.score_test import is_even
from frictax.analysis.missing.sensitivities import (
    Point,
    _residuals,
    operating_range,
    sensitivities,
)
from frictax.analysis.missing.structures import split_body
from frictax.analysis.missing.table import Missing, MissingTerm
from frictax.parameters import get
from lacking import FREE, FREQUENCY, NAMES, RIGHT, SIZE, T, fitted, sled

# With this seed and those from 536, each fit has the candidate "smooth inputs" (`bends`), so that
# the searches share one program.
SEED = 47


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
@pytest.mark.parametrize(
    ("lacking", "noise"),
    [
        *((lacking, "white") for lacking in ("drag", "offset", "delay", "other way")),
        *((lacking, "steps") for lacking in ("drag", "ripple", "Stribeck")),
    ],
)
def test_the_term_that_is_missing_is_named_first(lacking: str, noise: str) -> None:
    table = fitted(lacking, noise, SEED).missing()
    assert table.found, str(table)
    first = table.found[0]
    assert any(NAMES[lacking] in name for name in (first.name, *first.alike)), str(table)
    assert table.left < 0.37e-3
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
    found = fitted("drag", "white", SEED)
    (notice,) = [n for n in found.notices if n.code == "term-missing"]
    assert notice.subject == "drag over v^2 of friction"
    assert float(notice.numbers["percent"]) > 50
    assert float(notice.numbers["chance"]) < 1e-6
    assert "drag over v^2 of friction" in str(found)
    assert found.missing() is found.missing()
    assert found.missing().found[0].name == notice.subject


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_and_none_of_a_right_model() -> None:
    for noise in ("white", "AR", "steps"):
        for seed in range(300, 302):
            codes = {n.code for n in fitted("nothing", noise, seed).notices}
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
    found = fitted("drag", "white", SEED)
    problem, tried = found.problem, catalogue(found)
    x = np.asarray(found.x)
    ranges, _ = operating_range(problem, x)
    at = Point(x, np.zeros(sum(one.size for one in tried)), {}, {"mass": 0.05})
    told = sensitivities(problem, tried, at, ranges)
    # The steps of the machine with all candidates are divided otherwise than those without.
    np.testing.assert_allclose(told.residuals, found.full_residuals, atol=1e-9)
    off = np.linalg.norm(told.fitted - found.full_jacobian, axis=0)
    assert np.all(off < 1e-4 * np.linalg.norm(found.full_jacobian, axis=0)), off
    norm = np.linalg.norm(told.tried, axis=0)
    # Delays are looked up between samples, where slopes have corners. The run begins at rest, where
    # the start speed has a corner. A breakaway is one-sided.
    names = [
        "" if "delay" in one.name or one.name == "mass.v" or one.least == 0.0 else one.name
        for one in tried
        for _ in range(one.size)
    ]
    compared = [k for k, name in enumerate(names) if name and norm[k] > 0]
    assert len(compared) >= 12
    h = 1e-7 * np.linalg.norm(found.full_residuals) / norm[compared]
    steps = jnp.asarray(h[:, None] * np.eye(len(names))[compared])

    def residuals(c: Any) -> Any:
        values = eqx.tree_at(lambda v: v.c, at.of_record(0), c)
        return _residuals(problem, tried, values, jnp.zeros(0), ranges, 0)

    ends = jax.jit(lambda c: jax.lax.map(residuals, c))(jnp.concatenate([steps, -steps]))
    up, down = np.split(np.asarray(ends), 2)
    for k, slope in zip(compared, (up - down) / (2 * h[:, None]), strict=True):
        off = np.linalg.norm(slope - told.tried[:, k]) / norm[k]
        assert off < 0.01, (names[k], off)


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
        found = fitted(lacking, "white", 536 + k)
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


# -- a stiffness in series, by the machine with a body in two
# --------------------------------------------------------------------------------------------------


def with_belt(u: np.ndarray) -> fx.Mechanism:
    """A sled that is driven and seen at one end of a belt."""
    return fx.Mechanism(
        mass=fx.Mass(m=0.4),
        far=fx.Mass(m=0.6),
        wall=fx.Fixed(),
        belt=fx.SpringDamper("mass", "far", c=3000.0, d=0.7),
        spring=fx.Spring("wall", "far", c=20.0),
        friction=fx.SupportFriction("far", f_pos=RIGHT),
        drive=fx.Force("mass", fx.Sampled(T, u)),
    )


@pytest.mark.slow
def test_a_body_in_two_keeps_its_drive_and_its_sensor() -> None:
    still = sled(1.1, 20.0, fx.Sampled(T, 2.0 * np.sin(np.pi * T)), RIGHT)
    machine = split_body(still, "mass", 3000.0)
    assert machine["friction"].body == machine["spring"].b == "beyond_mass"
    assert machine["drive"].body == "mass"
    assert float(machine["mass"].m) + float(machine["beyond_mass"].m) == pytest.approx(1.1)
    rigid, soft = (
        np.asarray(fx.simulate(m, jnp.asarray(T), fx.OnSamples())["mass"].s)
        for m in (still, machine)
    )
    assert 1e-4 < np.max(np.abs(rigid - soft)) < 3e-3  # 2 N over the stiffness


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_a_stiffness_in_series_is_found_by_the_machine_with_a_body_in_two() -> None:
    rng = np.random.default_rng(5)
    turn = rng.uniform(0.0, 2 * np.pi, FREQUENCY.size)
    given = SIZE @ np.sin(2 * np.pi * FREQUENCY[:, None] * T + turn[:, None])
    s = np.asarray(fx.simulate(with_belt(given), T, fx.OnSamples(substeps=4))["mass"].s)
    s = s + 3.5e-4 * rng.standard_normal(T.size)
    record = fx.Record(T, {"drive": given}, {"mass.s": s}, name="run")
    table = fx.fit(sled(1.1, 20.0, 0.0, RIGHT), record, free=FREE, rounds=0).missing()
    assert table.found[0].name == "stiffness in series with mass", str(table)
    assert table.found[0].value == pytest.approx(3000.0, rel=0.4)
    assert table.left < 0.75 * table.misfit
    assert "stiffness in series with mass" in table.structures()


# -- structures that are compared
# --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_a_law_that_is_missing_becomes_a_structure() -> None:
    for lacking, freed_too, part in (
        ("Stribeck", "friction.f_pos.fexp", fx.Stribeck),
        ("other way", "friction.f_neg.F_Coulomb", fx.Coulomb),
    ):
        structures = fitted(lacking, "white", SEED).missing().structures()
        assert list(structures["as fitted"].free or ()) == FREE, lacking
        (made,) = [made for name, made in structures.items() if NAMES[lacking] in name]
        assert freed_too in (made.free or ()), lacking
        assert isinstance(get(made.model, freed_too.rpartition(".")[0]), part), lacking


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
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
    found = fitted(lacking, "white", SEED if lacking == "drag" else 41)
    structures = found.missing().structures()
    assert list(structures["as fitted"].free or ()) == FREE
    (name,) = [n for n in structures if NAMES[lacking] in n]
    made = structures[name]
    assert freed_too in (made.free or ())
    assert isinstance(get(made.model, freed_too.rpartition(".")[0]), part)
    few = {n: structures[n] for n in ("as fitted", name)}
    compared = fx.compare(found.records, few, objective=fx.FreeRun(), repeats=2, bands=2)
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
            assert abs(true - (low + high) / 2) < 0.75 * (high - low) < 0.015, path  # 3 errors


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
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


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
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
