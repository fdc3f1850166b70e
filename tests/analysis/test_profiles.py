"""Profiles of the misfit: their ends, at bounds and with errors of any account."""

import dataclasses

import numpy as np
import pytest

import frictax as fx
from coloured import STICKING, T, X, clean, coloured, resting, white_fit
from frictax.analysis.errors.input_noise import without_intervals
from frictax.analysis.errors.profiles import interval_end
from rigs import NOISE, block


@pytest.mark.slow
def test_profile_where_the_misfit_is_a_parabola_is_the_linearised_interval() -> None:
    found = resting([X])
    p = found.profile("outputs.mass.s.offset")
    assert (p.lower, p.upper) == pytest.approx(found.intervals["outputs.mass.s.offset"], rel=2e-3)
    assert not p.one_sided
    np.testing.assert_allclose(
        p.ratio,
        ((p.values - p.best) / found.standard_errors["outputs.mass.s.offset"]) ** 2,
        rtol=1e-4,
        atol=1e-6,
    )
    p = found.profile("outputs.mass.s.offset", by=fx.White())
    wider = found.profile("outputs.mass.s.offset", by=fx.HAC())
    ratio = found.uncertainty(fx.HAC()).ratio["outputs.mass.s.offset"]
    assert wider.upper - wider.best == pytest.approx(ratio * (p.upper - p.best), rel=3e-3)


@pytest.mark.slow
@pytest.mark.slow_after(1)
@pytest.mark.usefixtures("optimised_fits")
@pytest.mark.parametrize(
    ("path", "start", "free", "true"),
    [
        (
            "friction.f_pos.F_Stribeck",
            {"F_Stribeck": 0.1},
            ["F_prop", "F_Coulomb", "F_Stribeck"],
            {"F_Stribeck": 0.0},
        ),
        (
            "friction.peak",
            {"peak": 1.1},
            ["F_prop", "F_Coulomb", "F_Stribeck", "fexp", "peak"],
            {"peak": 1.0},
        ),
    ],
    ids=["F_Stribeck", "peak"],
)
def test_at_a_bound_the_profile_is_one_sided_and_holds_it_in_87_per_cent_of_80_records(
    path, start, free, true
) -> None:
    v, random = clean(STICKING, block(**{"peak": 1.0, **true}))[::2], np.random.default_rng(0)
    machine, (bound,) = block(**{"peak": 1.0, **start}), true.values()
    paths = ["friction.peak" if name == "peak" else f"friction.f_pos.{name}" for name in free]
    hits, one_sided = 0, 0
    for _ in range(80):
        seen = {"mass.v": v + NOISE * random.standard_normal(v.size)}
        record = fx.Record(T[::2], {"drive": STICKING[::2]}, seen)
        found = fx.fit(machine, record, free=paths, rounds=0)
        p = found.profile(path, by=fx.White())
        hits += p.lower <= bound <= p.upper
        one_sided += p.one_sided
        assert p.threshold == pytest.approx(2.71 if p.one_sided else 3.85, abs=0.01)
        assert bound <= p.lower <= p.best <= p.upper
    assert hits / 80 >= 0.87, hits / 80  # 95 % of 80 have a standard deviation of 2.4 %
    # the bound lies in the interval where it is not ruled out, and only there
    assert one_sided == hits


@pytest.fixture(scope="module")
def sticking() -> fx.FoundMachine:
    return white_fit()


@pytest.mark.slow
def test_a_profile_fits_all_others_anew(sticking: fx.FoundMachine) -> None:
    p = sticking.profile("friction.f_pos.F_Coulomb", by=fx.White())
    i = sticking.names.index("friction.f_pos.F_Coulomb")
    k = int(np.argmax(p.ratio))
    held = fx.parameters.replace(sticking.model, {"friction.f_pos.F_Coulomb": p.values[k]})
    others = [name for name in sticking.names if name != sticking.names[i]]
    again = fx.fit(held, sticking.records["run"], free=others)
    np.testing.assert_allclose(
        [again.values[name] for name in others], np.delete(p.others[k], i), rtol=1e-5
    )
    cost = np.sum(again.full_residuals**2) / np.sum(sticking.full_residuals**2) - 1
    assert p.ratio[k] == pytest.approx(cost * sticking.dof, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("points", [11, 21])
def test_the_region_of_a_pair_has_the_size_of_its_ellipse(
    sticking: fx.FoundMachine, points: int
) -> None:
    pair = sticking.profile(
        ("friction.f_pos.F_Stribeck", "friction.peak"), points=points, by=fx.White()
    )
    i, j = (sticking.names.index(name) for name in pair.names)
    covariance = sticking.uncertainty(fx.White()).covariance[np.ix_([i, j], [i, j])]
    cell = (pair.first[1] - pair.first[0]) * (pair.second[1] - pair.second[0])
    area = np.sum(pair.ratio <= pair.threshold) * cell
    assert area == pytest.approx(
        np.pi * pair.threshold * np.sqrt(np.linalg.det(covariance)), rel=0.25
    )
    assert np.min(pair.ratio) == pytest.approx(0.0, abs=0.3)


def test_an_end_that_is_not_there_is_said_to_be_open() -> None:
    def saturates(x: list[float]) -> float:
        return 3.0 * (1.0 - np.exp(-abs(x[0])))

    assert interval_end(saturates, 0.0, 1.0, np.inf, 3.84) == np.inf
    assert interval_end(saturates, 0.0, -1.0, -2.0, 3.84) == -2.0
    assert saturates([interval_end(saturates, 0.0, 1.0, np.inf, 2.7)]) == pytest.approx(
        2.7, rel=3e-3
    )


@pytest.mark.slow
def test_at_a_bound_coloured_residuals_widen_the_profile_too() -> None:
    v = clean(STICKING, block(peak=1.0, F_Stribeck=0.0))
    free = ["friction.f_pos.F_prop", "friction.f_pos.F_Coulomb", "friction.f_pos.F_Stribeck"]
    for seed in range(12):
        noise = coloured(np.random.default_rng(seed), T.size)
        found = fx.fit(
            block(peak=1.0, F_Stribeck=0.1),
            fx.Record(T, {"drive": STICKING}, {"mass.v": v + noise}),
            free=free,
            rounds=0,  # residuals with a memory exceed the noise of the samples
        )
        if np.isnan(found.standard_errors[free[2]]):
            break
    else:
        pytest.fail("no estimate at the bound")
    assert (
        found.profile(free[2], by=fx.HAC()).upper
        > 2.0 * found.profile(free[2], by=fx.White()).upper
    )


@pytest.mark.slow
def test_a_number_that_does_nothing_has_no_profile() -> None:
    found = resting([X], "mass.m")
    with pytest.raises(ValueError, match="do not identify mass.m"):
        found.profile("mass.m")


@pytest.mark.slow
def test_a_profile_takes_errors_that_are_known_already_with_their_degrees_of_freedom() -> None:
    found = resting([X[:400], X[400:800], X[800:]])
    name = "outputs.mass.s.offset"
    hac = found.uncertainty(fx.HAC())
    assert found.profile(name, by=hac).upper == found.profile(name, by=fx.HAC()).upper
    assert str(found.profile(name, by=hac)).endswith("(95 %, profile likelihood, HAC)")
    repeats = found.uncertainty(fx.Jackknife())
    assert repeats.dof == 2
    profiled = found.profile(name, by=repeats)
    assert (profiled.lower, profiled.upper) == pytest.approx(repeats.intervals[name], rel=3e-3)


@pytest.mark.parametrize("sigma", [0.002, 0.05])
def test_a_profile_uses_the_standard_deviations_that_are_known(sigma: float) -> None:
    v = np.linspace(0.5, 8.0, 40)
    f = 6.0 + 0.2 * v + 0.01 * np.random.default_rng(0).standard_normal(40)
    known = {"sigma": np.full(40, sigma), "sigma_known": True}
    found = fx.fit(fx.Coulomb, fx.Sweep(v, f, velocity_unit="m/s", force_unit="N", **known))
    for by in (None, fx.White()):
        p = found.profile("F_Coulomb", by=by)
        assert (p.lower, p.upper) == pytest.approx(found.intervals["F_Coulomb"], rel=1e-5)
    pair = found.profile(("F_Coulomb", "F_prop"), points=2)
    away = found.jacobian @ (np.array([pair.first[0], pair.second[0]]) - found.x)
    assert pair.ratio[0, 0] == pytest.approx(away @ away, rel=1e-6)
    assert pair.threshold == pytest.approx(5.991, abs=1e-3)
    errors = found.uncertainty()
    start = dataclasses.replace(errors, spread=without_intervals(found, 0.5))
    with pytest.raises(ValueError, match="interval of F_Coulomb by Guarded is infinite"):
        found.profile("F_Coulomb", by=start)
