"""Bristles by themselves, and what contacts ask of them."""

import dataclasses
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.bristles.bristle import fading_damping
from rubbing import F_S, SIGMA_0, SIGMA_1, STANDARD, lugre

ONE = jnp.array(1.0)
DAHL: dict[str, Any] = {"bristle": fx.Dahl(1.0)}


def over_a_way(bristle: Any, x: float, force: float, least: float) -> tuple[float, float]:
    """Force after the way `x`, and its mean, by many steps of the rate at speed 1 under g = 1."""
    n, v = 4000, jnp.sign(jnp.array(x))
    d = abs(x) / n

    def step(f: Any, _: Any) -> Any:
        rate = lambda f: bristle.rate(v, f, ONE, jnp.array(least))  # noqa: E731
        a = rate(f)
        b = rate(f + 0.5 * d * a)
        c = rate(f + 0.5 * d * b)
        return f + d * (a + 2 * b + 2 * c + rate(f + d * c)) / 6, f + 0.5 * d * b

    end, middle = jax.jit(lambda f: jax.lax.scan(step, f, length=n))(jnp.array(force))
    return float(end), float(jnp.mean(middle))


@pytest.mark.slow
@pytest.mark.parametrize(
    "bristle",
    [
        fx.Dahl(1e5),
        fx.ElastoPlastic(1e5, z_ba=0.75),
        *(fx.Dahl(1e5, exponent=e) for e in (0.7, 1.5, 2.0, 3.0)),
    ],
    ids=repr,
)
def test_the_force_over_a_way_is_the_integral_of_its_rate(bristle: Any) -> None:
    for force in (-0.95, 0.0, 0.5, 0.97, 1.3):
        for x in (-4e-5, -2e-6, 1e-8, 6e-6, 5e-5):
            end, mean = bristle.moved(jnp.array(x), jnp.array(force), ONE, jnp.array(0.8))
            known = over_a_way(bristle, x, force, 0.8)
            assert (float(end), float(mean)) == pytest.approx(known, abs=1e-5)


def test_dahl_s_loop_has_the_force_and_the_energy_of_the_closed_form() -> None:
    bristle, a, force, energy = fx.Dahl(SIGMA_0), 1e-5, jnp.array(0.0), 0.0
    for k in range(80):
        x = jnp.array(2 * a * (-1) ** k if k else a)
        force, mean = bristle.moved(x, force, ONE, ONE)
        energy = energy + float(mean * x) if k >= 78 else 0.0
    assert abs(float(force)) == pytest.approx(np.tanh(SIGMA_0 * a), rel=1e-10)
    assert abs(float(force)) == pytest.approx(0.761594, abs=1e-6)
    assert energy == pytest.approx(4 * a - 4 / SIGMA_0 * np.tanh(SIGMA_0 * a), rel=1e-10)
    assert energy == pytest.approx(9.536234e-6, rel=1e-6)


def test_dahl_s_exponent_of_one_is_the_limit_of_those_beside_it() -> None:
    def both(exponent: Any, x: float, force: float) -> np.ndarray:
        bristle = fx.Dahl(SIGMA_0, exponent=exponent)
        return np.array(bristle.moved(jnp.array(x), jnp.array(force), ONE, ONE))

    for x in (-3e-5, 1e-9, 2e-5):
        for force in (-0.9, 0.3, 1.0):
            for exponent in (jnp.array(1.0), 1.0 + 1e-7, 1.0 - 2e-6):
                near = pytest.approx(both(1.0, x, force), abs=1e-5)
                assert both(exponent, x, force) == near
    slope = jax.grad(lambda e: fx.Dahl(SIGMA_0, exponent=e).moved(ONE * 2e-5, 0 * ONE, ONE, ONE)[0])
    low, high = (both(1.0 + d, 2e-5, 0.0)[0] for d in (-1e-3, 1e-3))
    assert float(slope(ONE)) == pytest.approx((high - low) / 2e-3, rel=1e-4)


def test_dahl_with_a_small_exponent_slides_after_a_finite_way() -> None:
    bristle = fx.Dahl(SIGMA_0, exponent=0.25)
    whole = 1 / (0.75 * SIGMA_0)  # from rest to the limit
    for x in (0.5 * whole, 0.99 * whole, 1.01 * whole, 5 * whole):
        end, mean = bristle.moved(jnp.array(x), 0 * ONE, ONE, ONE)
        u = max(1 - x / whole, 0.0) ** (1 / 0.75)
        assert float(end) == pytest.approx(1 - u, rel=1e-12)
        assert float(mean) == pytest.approx(1 - (1 - u**1.75) / (1.75 * SIGMA_0 * x), rel=1e-10)
    steps = jax.grad(lambda x: bristle.moved(x, 0 * ONE, ONE, ONE)[0])
    assert float(steps(jnp.array(2 * whole))) == 0.0


def test_a_small_way_loses_no_digits() -> None:
    for x in (1e-16, 1e-9, 9.9e-8, 1.01e-7):
        end, mean = fx.Dahl(SIGMA_0).moved(jnp.array(x), jnp.array(0.0), ONE, ONE)
        q = SIGMA_0 * x
        assert float(end) == pytest.approx(-np.expm1(-q), rel=1e-14)
        assert float(mean) == pytest.approx(q / 2 - q**2 / 6 + q**3 / 24 - q**4 / 120, rel=1e-9)


@pytest.mark.parametrize(("exponent", "w"), [(1.0001, 9.9e-3), (0.5, 2.8e-3), (2.0, 1.6e-3)])
def test_with_an_exponent_a_small_way_loses_no_digits(exponent: float, w: float) -> None:
    p, term, mean = 1 - exponent, 1.0, 0.0
    for k in range(1, 12):  # the series of (1 - p*w)**(1/p), integrated term by term
        term *= -(1 - (k - 1) * p) / k * w
        mean -= term / (k + 1)
    found = fx.Dahl(1.0, exponent=exponent).moved(jnp.array(w), 0 * ONE, ONE, ONE)[1]
    assert float(found) == pytest.approx(mean, rel=1e-12)


def test_the_damping_fades_over_the_greatest_speed_that_gives_no_energy() -> None:
    steep = fx.Stribeck(F_prop=0.4, F_Coulomb=1.0, F_Stribeck=0.5, fexp=0.0, exponent=2.0)
    v_d = np.sqrt(2 * np.e) * F_S**2 / (SIGMA_1 * 0.5)
    at = lambda law, speed: float(fading_damping(jnp.array(SIGMA_1), None, jnp.array(speed), law))  # noqa: E731
    assert at(steep, v_d) == pytest.approx(SIGMA_1 / np.e, rel=1e-12)
    assert v_d == pytest.approx(0.0332, abs=5e-5)
    assert at(STANDARD, 1e-3) == pytest.approx(SIGMA_1 / np.e, rel=1e-12)  # 1/fexp is less
    deep = fx.Stribeck(F_prop=0.0, F_Coulomb=1.0, F_Stribeck=4.0, fexp=0.0)
    assert at(deep, np.sqrt(2 * np.e) * 4 / SIGMA_1) == pytest.approx(SIGMA_1 / np.e, rel=1e-12)
    assert at(fx.Coulomb(F_Coulomb=1.0), 9.0) == SIGMA_1
    assert at(fx.Table([[0, 1], [1, 2]]), 9.0) == SIGMA_1  # it does not fall
    falls = fx.Table([[0, 1.5], [1, 1.0], [2, 3.0]])
    assert at(falls, v_d) == pytest.approx(SIGMA_1 / np.e, rel=1e-12)
    hot: Any = fx.TemperatureDependent(STANDARD, beta=0.02).at_temperature(jnp.array(350.0))
    assert float(hot.viscous_slope) / float(STANDARD.viscous_slope) == pytest.approx(
        float(hot.stribeck_dip[0]) / float(STANDARD.F_Coulomb)
    )


@pytest.mark.parametrize("v_d", [0.001, 0.033, None])
def test_a_damping_that_fades_in_time_is_not_warned_of(v_d: float | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fx.SupportFriction("mass", f_pos=STANDARD, bristle=lugre(v_d=v_d))
        fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0), bristle=lugre())
        fx.SupportFriction("mass", f_pos=STANDARD, bristle=fx.Dahl(SIGMA_0))


def test_a_damping_that_gives_energy_is_warned_of_with_the_speed() -> None:
    with pytest.warns(UserWarning, match=r"sigma_1 = 316.228 gives energy from 0.0143 m/s on"):
        fx.SupportFriction("mass", f_pos=STANDARD, bristle=lugre())
    with pytest.warns(UserWarning, match=r"rad/s on"):
        fx.BearingFriction("rotor", tau_pos=STANDARD, bristle=lugre(v_d=0.035))


@pytest.mark.slow
@pytest.mark.parametrize("z", [F_S / SIGMA_0, -F_S / SIGMA_0])
@pytest.mark.filterwarnings("ignore:.*gives energy")
def test_the_dissipated_power_has_the_sign_that_the_formula_says(z: float) -> None:
    def least(v_d: float, speeds: Any) -> float:
        def lost(v: Any) -> Any:
            machine = fx.Mechanism(
                mass=fx.Mass(m=1.0, v=v),
                friction=fx.SupportFriction("mass", f_pos=STANDARD, bristle=lugre(v_d=v_d, z=z)),
            )
            return fx.simulate(machine, jnp.array([0.0]))["friction"].lossPower[0]

        return float(jnp.min(jax.vmap(lost)(jnp.asarray(speeds))))

    speeds = np.concatenate([np.geomspace(1e-6, 1e2, 400), -np.geomspace(1e-6, 1e2, 400)])
    assert least(0.033, speeds) >= 0.0
    s = np.sign(z)
    assert least(np.inf, [0.0143 * s]) < 0 < least(np.inf, [0.0142 * s])
    assert least(0.035, speeds) < 0  # so that the test can fail


def test_a_bent_bristle_that_meets_a_high_speed_pushes_on_where_sigma_1_is_constant() -> None:
    def f(v_d: float) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machine = fx.Mechanism(
                mass=fx.Mass(m=1.0, v=1.0),
                friction=fx.SupportFriction(
                    "mass", f_pos=STANDARD, bristle=lugre(v_d=v_d, z=F_S / SIGMA_0)
                ),
            )
        return float(fx.simulate(machine, jnp.array([0.0]))["friction"].f[0])

    assert f(np.inf) == pytest.approx(1.5 - 0.5 * SIGMA_1 + 0.4, abs=1e-3)  # -156 N
    assert f(0.001) == pytest.approx(1.9, abs=1e-9)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: fx.LuGre(-1.0), "`LuGre.sigma_0` must be > 0"),
        (lambda: fx.LuGre(1.0, -1.0), "`LuGre.sigma_1` must be >= 0"),
        (lambda: fx.LuGre(1.0, v_d=0.0), "`LuGre.v_d` must be > 0, inf for a constant sigma_1"),
        (lambda: fx.LuGre(1.0, **{"sigma_2": 0.4}), "it is `F_prop` of the contact's law"),
        (lambda: fx.Dahl(1.0, exponent=0.0), "`Dahl.exponent` must be > 0"),
        (lambda: fx.ElastoPlastic(1.0, z_ba=1.5), "`ElastoPlastic.z_ba` must be between 0 and 1"),
        (
            lambda: fx.SupportFriction("mass", peak=1.1, bristle=fx.Dahl(1.0)),
            "Write it as F_Stribeck",
        ),
        (
            lambda: fx.SupportFriction("mass", f_pos=[[0, 0], [1, 1]], bristle=fx.Dahl(1.0)),
            "must have a law > 0 at rest with a bristle",
        ),
        (
            lambda: fx.BearingFriction("rotor", bristle=fx.Dahl(1.0, z=-1.1)),
            "`BearingFriction.bristle.z` must lie within breakaway",
        ),
        (
            lambda: fx.Clutch("a", "b", bristle=fx.Dahl(1.0, z=0.6)),
            "`Clutch.bristle.z` must lie within breakaway",
        ),
        (
            lambda: fx.MassWithStopAndFriction(1.0, -1.0, 1.0, 0.0, 1.0, 0.0, 0.0, **DAHL),
            "Only `SupportFriction`, `BearingFriction`, `Brake` and `Clutch` have one",
        ),
    ],
)
def test_what_does_not_go_together_is_told_in_a_sentence(wrong: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        wrong()


@pytest.mark.parametrize("contact", [fx.SupportFriction("a"), fx.Brake("a"), fx.Clutch("a", "b")])
def test_a_fit_of_a_whole_contact_moves_peak_unless_it_has_a_bristle(contact: Any) -> None:
    assert "peak" in [p.path for p in fx.parameters.select(contact)]
    bent = dataclasses.replace(contact, bristle=fx.Dahl(1e3))
    parts = (fx.Mass(m=1.0), bent)
    moved = [p.path for p in fx.parameters.select(parts, ["1"])]
    assert "1.bristle.sigma_0" in moved
    assert "1.peak" not in moved
    assert "1.peak" in [p.path for p in fx.parameters.parameters(parts)]
    with pytest.raises(ValueError, match=r"Start at 1\.05 and without a bristle"):
        fx.to_unconstrained(bent, "peak")


def test_parameters_of_a_bristle_are_named_and_have_the_units_of_their_element() -> None:
    rotor = fx.BearingFriction("rotor", bristle=fx.LuGre(1e3, 2.0, v_d=0.1))
    found = {p.path: p.declaration for p in fx.parameters.parameters(rotor)}
    assert {"bristle.sigma_0", "bristle.sigma_1", "bristle.v_d", "bristle.z"} <= set(found)
    units = [
        fx.parameters.rotational_unit(found[f"bristle.{n}"].unit)
        for n in ("sigma_0", "sigma_1", "v_d", "z")
    ]
    assert units == ["N.m/rad", "N.m.s/rad", "rad/s", "rad"]
    assert [p.path for p in fx.parameters.select(rotor, ["bristle"])] == [
        "bristle.sigma_0",
        "bristle.sigma_1",
    ]
    assert float(fx.parameters.replace(rotor, {"bristle.sigma_0": 5.0}).bristle.sigma_0) == 5.0
