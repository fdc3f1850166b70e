"""Quantities that follow from fitted numbers, with errors."""

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.analysis.derived.derived import common, common_estimates, expression
from pushed_block import fitted_apart

V = np.linspace(5.0, 8.0, 16)  # far from rest, so that intercept and slope go together


def line(seed: int, sigma: float | None = None) -> fx.Sweep:
    noise = 0.05 * np.random.default_rng(seed).standard_normal(V.size)
    more = {} if sigma is None else {"sigma": np.full(V.size, sigma), "sigma_known": True}
    return fx.Sweep(V, 6.0 + 0.2 * V + noise, velocity_unit="m/s", force_unit="N", **more)


@pytest.fixture(scope="module")
def found():
    return fx.fit(fx.Coulomb, line(0))


def test_a_fitted_number_derived_from_itself_has_its_own_error_and_interval(found):
    for e in found.estimates:
        made = found.derived(lambda p, path=e.path: p[path], name="same", unit=e.unit)
        (same,) = made.estimates
        assert made.value == e.value
        assert made.standard_error == pytest.approx(e.standard_error, rel=1e-9)
        assert made.interval == pytest.approx((e.lower, e.upper), rel=1e-9)
        assert same.dof == e.dof


def test_errors_that_go_together_count_so(found):
    sd, (rho,) = np.sqrt(np.diag(found.covariance)), found.correlation[:1, 1]
    assert rho < -0.95
    a, b = (found.values[n] for n in ("F_Coulomb", "F_prop"))
    made = found.derived(
        lambda p: [p["F_Coulomb"] * p["F_prop"], p["F_Coulomb"] / p["F_prop"]],
        name=["product", "ratio"],
        unit=["N2.s/m", "m/s"],
    )
    relative = sd / [a, b]
    for e, sign in zip(made.estimates, (1.0, -1.0), strict=True):
        error = np.sqrt(relative @ relative + 2 * sign * rho * np.prod(relative))
        assert e.standard_error / abs(e.value) == pytest.approx(error, rel=1e-9)
    assert made.covariance.shape == (2, 2)
    assert np.sqrt(np.diag(made.covariance)) == pytest.approx(made.standard_error)
    # the force at the middle of the rows is known far better than what it is made of
    middle = found.derived("F_Coulomb + 6.5 * F_prop", unit="N")
    assert middle.standard_error == pytest.approx(0.05 / np.sqrt(16), rel=0.3)
    assert middle.standard_error < 0.15 * sd[0]


def test_a_force_at_a_speed_is_the_band_of_the_curve(found):
    band = found.band([5.5])
    made = found.derived("F_Coulomb + 5.5 * F_prop", unit="N")
    assert made.interval == pytest.approx((band.lower[0], band.upper[0]), rel=1e-9)
    white = found.derived("F_Coulomb + 5.5 * F_prop", unit="N", by=fx.White())
    told = found.derived("F_Coulomb + 5.5 * F_prop", unit="N", by=found.uncertainty(fx.White()))
    assert white.standard_error == told.standard_error


@pytest.mark.slow
def test_intervals_of_a_product_of_numbers_that_go_together_hold_the_truth_in_95_percent():
    inside = []
    for seed in range(200):
        fitted = fx.fit(fx.Coulomb, line(seed, 0.05))
        made = fitted.derived(
            lambda p: jnp.stack([p["F_Coulomb"] * p["F_prop"], p["F_Coulomb"] + 6.5 * p["F_prop"]]),
            by=fx.White(),
        )
        low, high = made.interval.T
        inside.append((low < [1.2, 7.3]) & ([1.2, 7.3] < high))
    share = np.mean(inside, axis=0)
    assert np.all(share > 0.91)
    assert np.all(share < 0.985)


def test_breakaway_and_stribeck_velocity_of_a_sweep_are_told_by_name():
    v = np.concatenate([np.zeros(6), np.linspace(0.05, 4.0, 30)])
    f = np.where(v == 0, 1.2 * 9.0, 6.0 + 0.2 * v + 3.0 * np.exp(-2.0 * v))
    f = f + 0.02 * np.random.default_rng(3).standard_normal(v.size)
    rows = {"breakaway": v == 0, "velocity_unit": "m/s", "force_unit": "N"}
    fitted = fx.fit(fx.Stribeck, fx.Sweep(v, f, **rows))
    made = fitted.derived()
    assert made.names == ("Stribeck: breakaway", "Stribeck: Stribeck velocity")
    for e, truth in zip(made.estimates, (10.8, 0.5), strict=True):
        assert e.lower < truth < e.upper
    # peak and friction at rest go together: the force that was measured is known better than either
    peak = fitted.estimates[-1]
    assert peak.name == "peak"
    breakaway = made.estimates[0]
    assert breakaway.standard_error / breakaway.value < peak.standard_error / peak.value
    one = fitted.derived("Stribeck: Stribeck velocity")
    assert one.value == pytest.approx(1.0 / fitted.values["f_pos.fexp"])
    assert one.estimates[0].unit == "m/s"


def near_its_bound(seed: int, peak: float) -> fx.FitResult:
    """A breakaway hardly above sliding friction, of which noise hides how much."""
    v = np.concatenate([np.zeros(4), np.linspace(0.05, 2.0, 20)])
    f = np.where(v == 0, 6.0 * peak, 6.0 + 0.2 * v)
    f = f + 0.3 * np.random.default_rng(seed).standard_normal(v.size)
    sweep = fx.Sweep(v, f, breakaway=v == 0, velocity_unit="m/s", force_unit="N")
    return fx.fit(fx.Coulomb, sweep)


def test_an_interval_of_what_follows_from_a_number_at_its_bound_reaches_to_one_side():
    fitted = near_its_bound(2, 1.02)
    assert fitted.values["peak"] == 1.0  # its bound
    for made in (fitted.derived("peak"), fitted.derived("1 / peak"), fitted.derived("2 * peak")):
        low, high = made.interval
        assert min(low, high) < max(low, high)
        assert made.value in (low, high)
        assert made.estimates[0].knowledge is fx.Knowledge.KNOWN
    low, high = fitted.derived("peak").interval
    assert (low, 1.02 < high < 1.2) == (1.0, True)
    (breakaway,) = fitted.derived().estimates
    assert breakaway.lower < 6.12 < breakaway.upper
    # friction at rest alone is known less well upwards with a peak that may be larger
    assert breakaway.upper - breakaway.value > breakaway.value - breakaway.lower
    far = fitted.derived("f_pos.F_Coulomb + 0 * peak")
    assert far.interval == pytest.approx(
        (fitted.estimates[0].lower, fitted.estimates[0].upper), rel=1e-9
    )


def test_an_interval_of_what_follows_from_a_number_near_its_bound_has_no_impossible_value():
    fitted = near_its_bound(1, 1.02)
    assert 1.0 < fitted.values["peak"] < 1.05
    made = fitted.derived("peak - 1")
    assert 0.0 <= made.interval[0] < made.value < made.interval[1]
    slow = fitted.derived("1 / f_pos.F_prop")  # whose interval is bent
    low, high = slow.interval
    assert 0.0 < low < slow.value < high
    assert high - slow.value > 2 * (slow.value - low)


@pytest.mark.slow
def test_intervals_of_a_breakaway_near_its_bound_hold_the_truth_in_95_percent():
    for peak in (1.0, 1.02, 1.08):
        ends = np.array([near_its_bound(seed, peak).derived().interval[0] for seed in range(80)])
        held = (ends[:, 0] <= 6.0 * peak) & (6.0 * peak <= ends[:, 1])
        assert held.sum() >= 72, peak


def test_a_common_quantity_without_a_finite_value_is_left_out():
    v = np.concatenate([np.zeros(4), np.linspace(0.05, 2.0, 20)])
    law = fx.Stribeck(F_prop=0.2, F_Coulomb=6.0, F_Stribeck=0.0, fexp=0.0)
    sweep = fx.Sweep(v, 6.0 + 0.2 * v, breakaway=v == 0, velocity_unit="m/s", force_unit="N")
    fitted = fx.fit(law, sweep, free=["f_pos.F_Coulomb", "f_pos.F_prop"])
    assert fitted.derived().names == ("Stribeck: breakaway",)


def rig(law: fx.Coulomb | fx.Stribeck, **more) -> fx.Mechanism:
    return fx.Mechanism(
        rotor=fx.Inertia(J=2e-4, w=40.0),
        bearing=fx.BearingFriction("rotor", tau_pos=law, peak=1.5, **more),
    )


@pytest.mark.slow
def test_a_machine_has_breakaway_torque_and_time_constant_in_units_of_its_record():
    t = np.linspace(0.0, 1.0, 401)
    truth = rig(fx.Coulomb(F_Coulomb=4e-3, F_prop=1e-4))
    w = np.asarray(fx.simulate(truth, t)["rotor"].w)
    w = w + 0.05 * np.random.default_rng(4).standard_normal(t.size)
    record = fx.Record(
        t, outputs={"rotor.w": w * 30 / np.pi}, units={"rotor.w": "rpm"}, name="coast"
    )
    fitted = fx.fit(truth, record, free=["bearing.tau_pos"])
    made = fitted.derived()
    assert made.names == ("bearing: breakaway", "rotor: time constant")
    breakaway, constant = made.estimates
    assert breakaway.unit == "N.m"
    assert breakaway.value == pytest.approx(1.5 * fitted.values["bearing.tau_pos.F_Coulomb"])
    assert constant.value == pytest.approx(2e-4 / fitted.values["bearing.tau_pos.F_prop"])
    assert constant.lower < 2.0 < constant.upper
    assert "mN.m" in str(made)
    slow = fitted.derived("rotor.w * 0.5 * bearing.tau_pos.F_prop / bearing.tau_pos.F_prop",
                          name="half speed", unit="rad/s")  # fmt: skip
    assert slow.estimates[0].cells[1:3] == ("190.986", "rpm")
    assert slow.estimates[0].knowledge is fx.Knowledge.FIXED


def test_common_quantities_are_those_that_are_well_defined():
    coast = rig(fx.Stribeck(F_prop=1e-4, F_Coulomb=4e-3, F_Stribeck=1e-3, fexp=0.1))
    names = [title for title, *_ in common(coast)]
    assert names == [
        "bearing: breakaway",
        "bearing.tau_pos: Stribeck velocity",
        "rotor: time constant",
    ]
    assert [title for title, *_ in common(rig(fx.Coulomb(F_Coulomb=4e-3)))] == names[:1]
    shaft = fx.Mechanism(
        rotor=fx.Inertia(J=1.0),
        disc=fx.Inertia(J=1.0),
        bearing=fx.BearingFriction("rotor", tau_pos=fx.Coulomb(F_Coulomb=1.0, F_prop=0.1)),
        shaft=fx.RotationalSpring("rotor", "disc", c=10.0),
        brake=fx.Brake("disc", mu_pos=[[0, 0.5]], peak=1.2, cgeo=0.1, fn_max=20.0),
    )
    told = {title: (of, unit) for title, of, unit in common(shaft)}
    assert list(told) == ["bearing: breakaway", "brake: breakaway at fn_max"]
    of, unit = told["brake: breakaway at fn_max"]
    assert (float(of(shaft)), unit) == (pytest.approx(1.2), "N.m")
    each = rig(fx.Coulomb(4e-3, 1e-4), tau_neg=fx.Coulomb(5e-3, 1e-4))
    assert [title for title, *_ in common(each)][2:] == [
        "bearing: breakaway backward",
        "rotor: time constant backward",
    ]


def test_what_the_data_do_not_tell_is_not_told_of_what_follows_but_where_it_cancels():
    law = fx.Stribeck(F_prop=0.2, F_Coulomb=6.0, F_Stribeck=1.0, fexp=5.0)
    unknown = fx.fit(law, line(5))
    assert unknown.derived("1 / fexp", unit="m/s").estimates[0].knowledge is fx.Knowledge.UNKNOWN
    known = unknown.derived("F_Coulomb + 6.5 * F_prop", unit="N").estimates[0]
    assert known.knowledge is fx.Knowledge.KNOWN
    assert known.standard_error < 0.05


def test_arithmetic_written_as_text_means_what_it_says():
    by = {"a.b": 3.0, "c": 2.0, "t.f": np.array([5.0, 7.0])}
    for text, value in (
        ("-a.b ** c", -9.0),
        ("2 * (a.b + c) / 4 - 1e-1", 2.4),
        ("t.f[1] - t.f[0]", 2.0),
        ("+ a.b", 3.0),
    ):
        assert float(expression(text)(by)) == pytest.approx(value)


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ("__import__('os').getcwd()", ValueError, "is none of these"),
        ("(lambda: 1)()", ValueError, "is none of these"),
        ("F_Coulomb if 1 else 2", ValueError, "is none of these"),
        ("[F_Coulomb for x in y]", ValueError, "is none of these"),
        ("F_Coulomb; import os", ValueError, "no arithmetic"),
        ("F_Coulomb +", ValueError, "no arithmetic"),
        ("F_Coulom", KeyError, "Did you mean 'F_Coulomb'"),
        ("Coulomb: breakaway", ValueError, "no common quantity"),
        ("F_Coulomb / (F_prop - F_prop)", ValueError, "finite number"),
        (3.0, ValueError, "takes a function"),
        (lambda p: np.sqrt(p["F_prop"]), ValueError, "operations that JAX differentiates"),
        (lambda p: 1.0 if p["F_prop"] > 0 else 2.0, ValueError, "jnp.where"),
        (lambda p: p["F_prop"] ** p["x"], KeyError, "no parameter 'x'"),
    ],
)
def test_what_cannot_be_derived_is_refused_in_one_sentence(found, asked, error, says):
    with pytest.raises(error, match=says) as caught:
        found.derived(asked)
    assert "\n" not in str(caught.value)


def test_names_and_units_are_as_many_as_the_numbers(found):
    made = found.derived(lambda p: [p["F_prop"], 2 * p["F_prop"]], name="slope", unit="N.s/m")
    assert made.names == ("slope[0]", "slope[1]")
    assert made.value[1] == 2 * made.value[0]
    with pytest.raises(ValueError, match="gives 2 numbers, so that `name`"):
        found.derived(lambda p: [p["F_prop"], p["F_Coulomb"]], name=["slope"])
    with pytest.raises(ValueError, match="no common quantity that is well defined"):
        found.derived()


def test_what_differs_by_record_is_derived_for_each_record():
    found, level = fitted_apart(), "friction.f_pos.F_Coulomb"
    made = found.derived()
    apart = ("friction: breakaway@one", "friction: breakaway@two")
    assert made.names == (*apart, "mass: time constant")
    assert tuple(e.name for e in common_estimates(found)) == made.names
    for label, e in zip(("one", "two"), made.estimates, strict=False):
        assert e.value == pytest.approx(found.values[f"{level}@{label}"])
        assert e.standard_error == pytest.approx(found.standard_errors[f"{level}@{label}"])
        assert found.derived("friction: breakaway", label=label).value == pytest.approx(e.value)
        ratio = found.derived(f"{level} / mass.m", label=label)
        assert ratio.value == pytest.approx(e.value / found.values["mass.m"])
    assert found.derived("2 * mass.m").value == pytest.approx(2 * found.values["mass.m"])
    for asked in ("friction: breakaway", f"{level} / mass.m", lambda p: p[level] ** 2):
        with pytest.raises(ValueError, match=r"Name the record, derived\(\.\.\., label='one'\)"):
            found.derived(asked)
