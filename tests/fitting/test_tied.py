"""Parameters that follow from others: one number that stands in several places."""

import dataclasses
import json
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import central_differences
from frictax.analysis.friction_curve import friction_at
from frictax.fitting import FitOptions
from frictax.fitting.build_problem import build_problem
from frictax.fitting.problem.problem import residuals_and_jacobian

V = np.concatenate([np.linspace(0.5, 8.0, 16), -np.linspace(0.5, 8.0, 16)])
NOISE = 0.02 * np.random.default_rng(0).standard_normal(32)
SWEEP = fx.Sweep(V, np.sign(V) * (6.0 + 0.2 * abs(V)) + NOISE, velocity_unit="m/s", force_unit="N")


@pytest.fixture(scope="module")
def symmetric():
    return fx.fit(fx.Coulomb, SWEEP)


@pytest.fixture(scope="module")
def tied():
    return fx.fit(fx.Coulomb, SWEEP, f_neg=fx.Coulomb, tied={"f_neg": "f_pos"})


def test_two_laws_tied_to_each_other_are_fitted_as_one(symmetric, tied):
    for name in ("F_Coulomb", "F_prop"):
        for ask in ("values", "standard_errors", "degrees_of_freedom"):
            one, two = getattr(symmetric, ask)[name], getattr(tied, ask)[f"f_pos.{name}"]
            assert two == pytest.approx(one, rel=1e-6)
    assert tied.dof == symmetric.dof
    assert tied.rms_force == pytest.approx(symmetric.rms_force, rel=1e-9)
    assert len(tied.estimates) == 2


def test_what_is_tied_has_the_value_error_and_interval_of_what_it_is_equal_to(tied):
    rows = {e.path: e for e in tied.tied}
    assert set(rows) == {"f_neg.F_Coulomb", "f_neg.F_prop"}
    for e in tied.estimates:
        other = rows[e.path.replace("f_pos", "f_neg")]
        assert other.unit == e.unit
        for ask in ("value", "standard_error", "lower", "upper", "dof"):
            assert getattr(other, ask) == pytest.approx(getattr(e, ask), rel=1e-9)
    assert float(tied.model.f_neg.F_prop) == float(tied.model.f_pos.F_prop)
    assert "f_neg.F_prop = f_pos.F_prop" in str(tied)
    assert not {e.path for e in tied.fixed} & set(rows)
    told = json.loads(tied.to_json())["tied"]
    assert [t["tied"] for t in told] == ["= f_pos.F_Coulomb", "= f_pos.F_prop"]


@pytest.mark.slow
def test_draws_say_the_same_of_what_is_tied_as_of_what_it_is_equal_to(tied):
    drawn = tied.posterior(draws=200, warmup=200, chains=2)
    for e, free in zip(drawn.tied, drawn.estimates, strict=True):
        assert e.name == free.name.replace("f_pos", "f_neg")
        assert (e.value, e.lower, e.upper) == (free.value, free.lower, free.upper)
    assert "f_neg.F_prop = f_pos.F_prop" in str(drawn)


def test_what_follows_a_number_on_a_log_scale_has_its_interval():
    ties = {"f_neg.F_prop": "1.0 * f_pos.F_prop", "peak": lambda p: 10 * p["f_neg.F_prop"]}
    found = fx.fit(fx.Coulomb, SWEEP, f_neg=fx.Coulomb, tied=ties, log_scale="f_pos.F_prop")
    follows, last = found.tied
    free = found.estimates[1]
    assert follows.lower == pytest.approx(free.lower, rel=1e-9)
    assert follows.upper == pytest.approx(free.upper, rel=1e-9)
    assert follows.upper / follows.value == pytest.approx(follows.value / follows.lower)
    assert last.upper - last.value == pytest.approx(last.value - last.lower)


def test_a_profile_of_what_is_tied_names_what_to_ask_for(tied):
    with pytest.raises(KeyError, match=r"'f_neg.F_prop' was not free.* Ask for f_pos.F_prop"):
        tied.profile("f_neg.F_prop")


def test_many_fits_have_what_is_tied(tied):
    many = fx.fit_many(fx.SteadyFriction(fx.Coulomb(6.0, 0.2), fx.Coulomb(6.0, 0.2)), SWEEP,
                       SWEEP.force[None], tied={"f_neg": "f_pos"})  # fmt: skip
    assert many.names == tied.names
    assert many.values[0] == pytest.approx(tied.x, rel=1e-5)


def test_tables_are_tied_force_by_force():
    law = fx.Table([[0, 6.0], [4, 6.8], [9, 7.8]])
    found = fx.fit(fx.SteadyFriction(law, law), SWEEP, tied={"f_neg.f": "f_pos.f"})
    assert len(found.estimates) == 3
    assert [e.name for e in found.tied] == [f"f_neg.f[{i}]" for i in range(3)]
    for e, free in zip(found.tied, found.estimates, strict=True):
        assert e.standard_error == pytest.approx(free.standard_error)


def test_errors_of_multiples_and_functions_are_those_of_the_delta_method():
    double = fx.fit(
        fx.Coulomb, SWEEP, f_neg=fx.Coulomb, tied={"f_neg.F_prop": "1.5 * f_pos.F_prop"}
    )
    (e,) = double.tied
    assert e.value == pytest.approx(1.5 * double.values["f_pos.F_prop"], rel=1e-12)
    assert e.standard_error == pytest.approx(1.5 * double.standard_errors["f_pos.F_prop"])
    bent = fx.fit(
        fx.Coulomb,
        SWEEP,
        f_neg=fx.Coulomb,
        tied={"f_neg.F_Coulomb": lambda p: p["f_pos.F_Coulomb"] ** 2 / 6.0},
    )
    (e,) = bent.tied
    value, error = bent.values["f_pos.F_Coulomb"], bent.standard_errors["f_pos.F_Coulomb"]
    assert e.value == pytest.approx(value**2 / 6.0)
    assert e.standard_error == pytest.approx(value / 3.0 * error, rel=1e-6)


def test_a_chain_of_ties_ends_at_the_number_that_is_free():
    law = fx.Stribeck(F_prop=0.2, F_Coulomb=6.0, F_Stribeck=2.0, fexp=2.0)
    sweep = fx.Sweep(
        V[:16],
        6.0 + 3.0 * np.exp(-2.0 * V[:16]) + 0.3 * V[:16] + NOISE[:16],
        velocity_unit="m/s",
        force_unit="N",
    )
    ties = {"F_Coulomb": "2 * F_Stribeck", "F_prop": lambda p: 0.05 * p["F_Coulomb"]}
    found = fx.fit(law, sweep, tied=ties)
    assert found.names == ("F_Stribeck", "fexp")
    made: Any = found.law
    assert float(made.F_Coulomb) == pytest.approx(2 * float(made.F_Stribeck))
    assert float(made.F_prop) == pytest.approx(0.1 * float(made.F_Stribeck))
    assert float(made.F_Stribeck) == pytest.approx(3.0, abs=0.1)


T = np.linspace(0.0, 3.0, 601)
PUSH = 6.0 * np.sin(4.0 * T) + 3.0 * np.sin(9.0 * T)


def rotors(J1: float, J2: float, friction: float, tau: Any = 0.0) -> fx.Mechanism:
    """Two rotors on a spring, each with dry friction."""
    bearing = fx.Coulomb(F_Coulomb=friction, F_prop=0.02)
    return fx.Mechanism(
        rotor1=fx.Inertia(J=J1),
        rotor2=fx.Inertia(J=J2),
        shaft=fx.RotationalSpringDamper("rotor1", "rotor2", c=40.0, d=0.1),
        bearing1=fx.BearingFriction("rotor1", tau_pos=bearing),
        bearing2=fx.BearingFriction("rotor2", tau_pos=bearing),
        motor=fx.Torque("rotor1", tau),
    )


FREE = ["rotor1.J", "bearing1.tau_pos.F_Coulomb"]
TIES = {"rotor2.J": "rotor1.J", "bearing2.tau_pos": "bearing1.tau_pos"}


@pytest.fixture(scope="module")
def record():
    truth = rotors(0.05, 0.05, 0.4, fx.Sampled(T, PUSH))
    w = np.asarray(fx.simulate(truth, T)["rotor2"].w)
    w = w + 0.05 * np.random.default_rng(1).standard_normal(T.size)
    kept = (T < 0.5) | (T > 0.53)
    return fx.Record(T[kept], {"motor": PUSH[kept]}, {"rotor2.w": w[kept]}, name="shake")


@pytest.fixture(scope="module")
def machine(record):
    return fx.fit(rotors(0.08, 0.02, 0.3), record, free=FREE, tied=TIES)


@pytest.mark.slow
def test_a_machine_with_two_equal_rotors_is_found_with_one_number_for_both(machine):
    assert machine.names == ("rotor1.J", "bearing1.tau_pos.F_Coulomb")
    for name, truth in zip(machine.names, (0.05, 0.4), strict=True):
        low, high = machine.intervals[name]
        assert low < truth < high
    assert float(machine.model["rotor2"].J) == float(machine.model["rotor1"].J)
    assert float(machine.model_for("shake")["rotor2"].J) == float(machine.model["rotor1"].J)


@pytest.mark.slow
def test_the_jacobian_of_tied_numbers_is_that_of_central_differences(machine):
    problem = machine.problem
    _, jacobian = residuals_and_jacobian(problem, jnp.asarray(machine.x))
    slopes = central_differences(
        lambda x: residuals_and_jacobian(problem, x)[0], jnp.asarray(machine.x), 1e-6
    )
    for column, slope in zip(np.asarray(jacobian).T, slopes.T, strict=True):
        assert np.linalg.norm(column - slope) < 1e-4 * np.linalg.norm(column)


@pytest.mark.slow
def test_the_report_sees_what_is_tied_and_the_gap_of_the_record(machine, tmp_path):
    page = machine.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "rotor2.J = rotor1.J" in page
    assert "where inputs are interpolated linearly" in page


@pytest.mark.slow
def test_tables_and_exports_see_what_is_tied(machine):
    assert "rotor2.J = rotor1.J" in str(machine)
    text = machine.to_modelica()
    J = float(machine.model["rotor1"].J)
    assert text.count(f"J = {J!r}") == 2 or text.count(f"J={J!r}") == 2
    parameters = {p["name"]: p for p in json.loads(machine.to_json())["parameters"]}
    assert parameters["rotor2.J"]["tied"] == "= rotor1.J"


@pytest.mark.slow
def test_accounts_of_errors_profiles_and_scores_see_what_is_tied(machine):
    assert "rotor2.J = rotor1.J" in str(machine.uncertainty(fx.White()))
    profile = machine.profile("rotor1.J")
    assert profile.lower < 0.05 < profile.upper
    assert machine.score("shake", fx.FreeRun())["rotor2.w"] < 0.06


@pytest.mark.slow
def test_structures_are_compared_with_what_is_tied_in_them(record):
    structures = {
        "equal": fx.Structure(rotors(0.06, 0.06, 0.3), free=FREE, tied=TIES),
        "each": fx.Structure(
            rotors(0.06, 0.06, 0.3), free=[*FREE, "rotor2.J", "bearing2.tau_pos.F_Coulomb"]
        ),
    }
    made = fx.compare(record, structures, objective=fx.FreeRun(), repeats=2, bands=2)
    equal = next(row for row in made.rows if row.name == "equal")
    assert equal.numbers == 2
    assert float(equal.found.model["rotor2"].J) == float(equal.found.model["rotor1"].J)


@pytest.mark.slow
def test_what_follows_a_number_of_each_record_is_told_record_by_record():
    def slide(force, dry, f=0.0):
        law = fx.Coulomb(F_Coulomb=dry)
        return fx.Mechanism(
            mass=fx.Mass(m=1.0),
            friction=fx.SupportFriction("mass", f_pos=law, f_neg=law),
            drive=fx.Force("mass", force),
        )

    t = np.linspace(0.0, 3.0, 301)
    records = []
    for name, dry in (("cold", 1.4), ("warm", 0.9)):
        force = 3.0 * np.sin(4.0 * t)
        v = np.asarray(fx.simulate(slide(fx.Sampled(t, force), dry), t)["mass"].v)
        v = v + 0.01 * np.random.default_rng(2).standard_normal(t.size)
        records.append(fx.Record(t, {"drive": force}, {"mass.v": v}, name=name))
    found = fx.fit(
        slide(0.0, 1.1),
        records,
        free=["mass.m"],
        own=["friction.f_pos.F_Coulomb"],
        tied={"friction.f_neg.F_Coulomb": "friction.f_pos.F_Coulomb"},
    )
    told = {e.name: e for e in found.tied}
    assert set(told) == {"friction.f_neg.F_Coulomb@cold", "friction.f_neg.F_Coulomb@warm"}
    for label, dry in (("cold", 1.4), ("warm", 0.9)):
        e = told[f"friction.f_neg.F_Coulomb@{label}"]
        assert e.value == found.values[f"friction.f_pos.F_Coulomb@{label}"]
        assert abs(e.value - dry) < 4 * e.standard_error


def test_what_is_free_moves_only_where_what_follows_it_may_be():
    law = fx.Stribeck(F_prop=0.2, F_Coulomb=6.0, F_Stribeck=2.0, fexp=2.0)
    friction = fx.SteadyFriction(law, peak=2.0)
    found = fx.fit(friction, SWEEP, free=["f_pos.F_prop", "f_pos.F_Coulomb", "f_pos.F_Stribeck"],
                   tied={"peak": "0.2 * f_pos.F_Coulomb"})  # fmt: skip
    (u,) = [u for u in found.problem.unknowns if u.path == "f_pos.F_Coulomb"]
    assert u.declaration.domain.bound() == pytest.approx(5.0)  # peak must be >= 1


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"tied": {"f_neg.F_prp": "f_pos.F_prop"}}, KeyError, r"Did you mean 'f_neg\.F_prop'"),
        ({"tied": {"f_neg.F_prop": "f_pos.F_prp"}}, KeyError, r"Did you mean 'f_pos\.F_prop'"),
        ({"tied": {"f_neg.F_prop": lambda p: p["f_pos.F"]}}, KeyError, "no parameter 'f_pos.F'"),
        ({"tied": {"f_neg.F_prop": lambda p: p["f_pos"]}}, KeyError, "'f_pos' is not a number"),
        ({"tied": {"f_neg.F_prop": lambda p: "much"}}, ValueError, "a number, got 'much'"),
        (
            {"tied": {"f_neg.F_prop": "f_pos.F_prop"}, "free": ["f_pos", "f_neg.F_prop"]},
            ValueError,
            "is in `free` and in `tied`",
        ),
        (
            {"tied": {"f_neg.F_prop": "f_pos.F_prop", "f_pos.F_prop": "2 * f_neg.F_prop"}},
            ValueError,
            r"goes in a circle, f_neg\.F_prop -> f_pos\.F_prop -> f_neg\.F_prop",
        ),
        ({"tied": {"f_neg.F_prop": "f_neg.F_prop"}}, ValueError, "goes in a circle"),
        ({"tied": {"f_neg.F_prop": "f_pos.F_Coulomb"}}, ValueError, r"\[N.s/m\] equal to .*\[N\]"),
        ({"tied": {"f_neg.F_prop": "-1 * f_pos.F_prop"}}, ValueError, "a number that is >= 0"),
        ({"tied": {"f_neg.F_prop": "a * f_pos.F_prop"}}, ValueError, "'factor [*] path', got"),
        ({"tied": {"f_neg.F_prop": 3.0}}, ValueError, r"got 'f_neg.F_prop': 3\.0"),
        ({"tied": {"f_neg": "f_pos.F_prop"}}, ValueError, "have not the same parameters"),
        (
            {"tied": {"f_neg.F_prop": lambda p: float(p["f_pos.F_prop"])}},
            ValueError,
            "`tied` of 'f_neg.F_prop' must be made of operations that JAX differentiates",
        ),
        ({"tied": {"f_neg": lambda p: 1.0}}, ValueError, "which is not a number"),
        ({"tied": ["f_neg.F_prop"]}, ValueError, "must be a dict"),
        (
            {"tied": {"f_neg": "f_pos", "f_neg.F_prop": "f_pos.F_prop"}},
            ValueError,
            "names 'f_neg.F_prop' twice",
        ),
        (
            {"tied": {"f_neg.F_prop": "f_pos.F_prop"}, "bounds": {"f_neg.F_prop": (0.1, 0.3)}},
            ValueError,
            "Bound 'f_pos.F_prop' instead",
        ),
        ({"tied": {"f_neg": "f_pos"}, "free": ["peak"]}, ValueError, "Nothing is left to fit"),
    ],
)
def test_ties_that_cannot_be_are_refused_in_one_sentence(options, error, says):
    with pytest.raises(error, match=says) as caught:
        fx.fit(fx.Coulomb, SWEEP, f_neg=fx.Coulomb, **options)
    assert "\n" not in str(caught.value)


def test_bounds_that_leave_a_tied_number_no_value_are_refused():
    friction = fx.SteadyFriction(fx.Coulomb(F_Coulomb=12.0, F_prop=0.2), peak=1.2)
    with pytest.raises(ValueError, match="allows no value of 'f_pos.F_Coulomb'"):
        fx.fit(
            friction,
            SWEEP,
            free=["f_pos.F_Coulomb"],
            bounds={"f_pos.F_Coulomb": (5.0, 7.0)},
            tied={"peak": "0.1 * f_pos.F_Coulomb"},
        )


def test_a_contact_tied_to_what_differs_by_record_has_the_friction_of_one_record():
    law, t = fx.Coulomb(F_Coulomb=1.0, F_prop=0.5), np.linspace(0.0, 1.0, 51)
    slide = fx.Mechanism(
        mass=fx.Mass(m=1.0, v=3.0),
        friction=fx.SupportFriction("mass", f_pos=law),
        seal=fx.SupportFriction("mass", f_pos=law),
    )
    records = {n: fx.Record(t, outputs={"mass.v": 3.0 - t}, name=n) for n in ("cold", "warm")}
    tied = {"seal.f_pos.F_Coulomb": lambda p: p["friction.f_pos.F_Coulomb"] / 2}
    free, own = ["friction.f_pos.F_prop"], ["friction.f_pos.F_Coulomb"]
    options = FitOptions(free=free, own=own, tied=tied)
    problem, _ = build_problem(slide, records, options)
    of = lambda contact: friction_at(problem, contact, np.ones(1), None, list(records))  # noqa: E731
    with pytest.raises(ValueError, match="'seal' has values of each record's own: name the record"):
        of("seal")
    tied = {"seal.f_pos.F_prop": "friction.f_pos.F_prop"}
    problem, _ = build_problem(slide, records, dataclasses.replace(options, tied=tied))
    assert of("seal")(problem.x0)[0] == pytest.approx(1.5)
