"""Draws from the posterior density, against closed forms."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.signal import lfilter

import frictax as fx
from frictax.analysis.errors.posterior import Frame, _Chain
from pushed_block import SETTINGS, SLIDING, S, T, block, fitted, fitted_apart, pushed


def students(found: fx.FoundMachine, samples: float, count: int = 400_000) -> np.ndarray:
    """Draws of the closed form without bounds: S(x)**(-n/2) of a linear model is a multivariate
    Student's t with n - p degrees.
    """
    dof = samples - len(found.x)
    j = found.jacobian[: len(found.full_residuals)]
    # beyond a bound, where the fit ended at one
    best = np.asarray(found.x) - np.linalg.solve(j.T @ j, j.T @ found.full_residuals)
    left = found.full_residuals + j @ (best - np.asarray(found.x))
    scale = left @ left / dof * np.linalg.inv(j.T @ j)
    multivariate: Any = stats.multivariate_t  # whose types know whole numbers alone
    return multivariate(best, scale, dof, seed=1).rvs(count)


def assert_alike(
    drawn: fx.Posterior, expected: np.ndarray, weights: np.ndarray | None = None
) -> None:
    weights = np.ones(len(expected)) if weights is None else weights
    for i, name in enumerate(drawn.names):
        mine, order = drawn.draws[..., i].ravel(), np.argsort(expected[:, i])
        share = np.cumsum(weights[order]) / weights.sum()
        mean = np.average(expected[:, i], weights=weights)
        sd = np.sqrt(np.average((expected[:, i] - mean) ** 2, weights=weights))
        error = 4.0 / np.sqrt(drawn.ess[i])
        assert np.mean(mine) == pytest.approx(mean, abs=error * sd), name
        assert np.std(mine) == pytest.approx(sd, rel=max(1.5 * error, 0.1)), name
        for q in (0.05, 0.25, 0.5, 0.75, 0.95):
            at = expected[order, i][np.searchsorted(share, q)]
            assert np.mean(mine <= at) == pytest.approx(q, abs=0.5 * error), (name, q)


@pytest.fixture(scope="module")
def plain() -> fx.Posterior:
    return fitted().posterior(samples=30, **SETTINGS)


@pytest.mark.slow
def test_of_a_linear_model_it_is_students_t(plain: fx.Posterior) -> None:
    assert_alike(plain, students(plain.found, 30))
    assert np.all(plain.r_hat < 1.02)
    assert plain.warnings == () or "Ask for more" in plain.warnings[0]
    white = plain.found.uncertainty(fx.White())
    np.testing.assert_allclose(plain.correlation, white.correlation, atol=0.12)


@pytest.mark.slow
def test_what_is_derived_and_tied_is_told_draw_by_draw(plain: fx.Posterior) -> None:
    first, second = plain.names[:2]
    made = plain.derived(lambda p: p[first] * p[second], name="product")
    values = plain.draws[..., 0].ravel() * plain.draws[..., 1].ravel()
    assert made.interval == pytest.approx(tuple(np.quantile(values, (0.025, 0.975))))
    assert made.standard_error == pytest.approx(np.std(values, ddof=1))
    assert plain.tied == ()
    assert made.draws is not None
    np.testing.assert_allclose(made.draws, plain.draws[..., :1] * plain.draws[..., 1:2])


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_no_chain_begins_beyond_an_edge_where_nothing_moves_and_all_is_flat() -> None:
    t = np.arange(0.0, 4.0, 0.02)
    push = 9.0 * np.sin(np.pi * t)
    free = [f"friction.f_pos.{name}" for name in ("F_prop", "F_Coulomb", "F_Stribeck")]

    def pushed_to_and_fro(law: fx.Stribeck, peak: float) -> fx.Mechanism:
        return fx.Mechanism(
            mass=fx.Mass(m=2.0),
            friction=fx.SupportFriction("mass", f_pos=law, peak=peak),
            drive=fx.Force("mass", fx.Sampled(t, push)),
        )

    truth = pushed_to_and_fro(fx.Stribeck(3.0, 4.0, 1.5, 15.0), 1.15)
    v = np.asarray(fx.simulate(truth, t)["mass"].v)
    v = v + 0.05 * np.random.default_rng(0).standard_normal(t.size)
    found = fx.fit(
        pushed_to_and_fro(fx.Stribeck(2.0, 3.0, 1.0, 15.0), 1.1),
        fx.Record(t, {"drive": push}, {"mass.v": v}, name="run"),
        free=[*free, "friction.peak"],
    )
    drawn = found.posterior(draws=100, warmup=100, chains=4, samples=t.size)
    assert np.max(drawn.draws) < 9.0  # 9 N move it in all draws


@pytest.mark.slow
def test_unless_given_residuals_count_as_what_they_are_worth() -> None:
    found = fitted(1)
    one = found.posterior(draws=100, warmup=100, chains=2)
    assert 0.3 * found.dof < one.samples < 1.05 * found.dof  # white noise, filtered a little
    assert f"have {one.samples:.3g} effective samples" in str(one)


@pytest.mark.slow
def test_unless_samples_are_given_it_is_as_wide_as_the_errors_that_the_fit_prints() -> None:
    """Of a force whose error remembers: one number of samples would not be right for all."""
    rng = np.random.default_rng(4)
    error = np.zeros(T.size)
    for i, kick in enumerate(rng.standard_normal(T.size)):
        error[i] = 0.95 * error[i - 1] + 0.03 * kick
    clean = pushed(0, noise=0.0)
    force = np.asarray(clean.inputs["drive"]) + error
    record = fx.Record(T, {"drive": force}, {"mass.s": S}, name="push")
    objective = fx.InverseDynamics(40.0, v_min=0.05, at_samples=True)
    found = fx.fit(block(), record, free=SLIDING, objective=objective)
    drawn = found.posterior(draws=1000, warmup=400, chains=2)
    # the draws are Student's t
    dof = drawn.samples - len(found.x)
    tails = np.sqrt(dof / (dof - 2))
    for e in drawn.estimates:
        printed = found.standard_errors[e.name]
        assert e.standard_error == pytest.approx(tails * printed, rel=0.15), e.name
        assert e.value == pytest.approx(found.values[e.name], abs=0.3 * printed)


@pytest.mark.slow
def test_a_bound_cuts_it_off() -> None:
    """No Coulomb friction: half of the fits end at the bound, where they give no interval."""
    found = fitted(3, F_Coulomb=0.0)
    assert found.values["friction.f_pos.F_Coulomb"] < 0.02
    drawn = found.posterior(samples=40, **SETTINGS)
    expected = students(found, 40)
    assert_alike(drawn, expected[np.all(expected > 0, axis=1)])
    assert 0 < drawn.intervals["friction.f_pos.F_Coulomb"][0]
    assert "at its bound" in str(found) or found.values["friction.f_pos.F_Coulomb"] > 0
    assert "at its bound" not in str(drawn)


@pytest.mark.slow
def test_a_prior_weighs_it() -> None:
    prior = fx.Normal("mass.m", 1.05, 0.02)
    found = fitted(0, priors=[prior])
    drawn = found.posterior(samples=30, **SETTINGS)
    expected = students(fitted(0), 30)
    m = expected[:, drawn.names.index("mass.m")]
    assert_alike(drawn, expected, np.exp(-0.5 * ((m - 1.05) / 0.02) ** 2))


@pytest.mark.slow
def test_between_bounds_that_the_data_say_nothing_of_it_is_even() -> None:
    """A block that never rests tells nothing of its breakaway force."""
    found = fx.fit(
        block(peak=1.4),
        pushed(0),
        free=["mass.m", "friction.peak"],
        bounds={"friction.peak": (1.0, 2.0)},
        objective=fx.InverseDynamics(40.0, v_min=0.05, at_samples=True),
    )
    drawn = found.posterior(samples=100, **SETTINGS)
    peak = drawn.draws[..., drawn.names.index("friction.peak")].ravel()
    assert np.all((peak > 1.0) & (peak < 2.0))
    assert_alike(
        drawn, np.stack([students_of(found, drawn), np.linspace(1.0, 2.0, 400_000)], axis=1)
    )


def students_of(found: fx.FoundMachine, drawn: fx.Posterior) -> np.ndarray:
    j, dof = found.jacobian[: len(found.full_residuals), :1], drawn.samples - 1
    scale = np.sqrt(found.full_residuals @ found.full_residuals / dof / np.sum(j**2))
    return stats.t(dof, found.x[0], scale).rvs(400_000, random_state=2)


@pytest.mark.slow
def test_intervals_of_90_per_cent_hold_the_truth_in_80_per_cent_or_more_of_16_records() -> None:
    true, hits = {"mass.m": 1.0, "friction.f_pos.F_Coulomb": 0.5, "friction.f_pos.F_prop": 0.4}, []
    for seed in range(16):
        found = fitted(100 + seed)
        drawn = found.posterior(
            draws=200, warmup=100, chains=2, samples=float(found.dof + 3), level=0.9, seed=seed
        )
        hits += [low <= true[name] <= high for name, (low, high) in drawn.intervals.items()]
    assert np.mean(hits) >= 0.8  # of 48, which have a standard deviation of 4.3 % or more


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_through_stick_and_slip_it_is_skew_where_the_symmetric_interval_is_not() -> None:
    t = np.linspace(0.0, 4.0, 201)
    push = 3 * np.sin(5 * t) + 1.5 * np.sin(2.3 * t)
    law = fx.Stribeck(F_Coulomb=0.8, F_prop=0.3, F_Stribeck=0.4, fexp=5.0)
    friction, drive = fx.SupportFriction("mass", f_pos=law), fx.Force("mass", fx.Sampled(t, push))
    truth = fx.Mechanism(mass=fx.Mass(m=1.0), friction=friction, drive=drive)
    v = np.asarray(fx.simulate(truth, t, fx.OnSamples())["mass"].v) + 0.02 * np.random.default_rng(
        0
    ).standard_normal(201)
    found = fx.fit(
        truth,
        fx.Record(t, {"drive": push}, {"mass.v": v}, name="run"),
        free=["friction.f_pos.F_Stribeck", "friction.f_pos.fexp"],
    )
    drawn = found.posterior(draws=500, warmup=300, chains=2)
    fexp = drawn.draws[..., 1].ravel()
    assert stats.skew(fexp) > 0.2
    low, high = drawn.intervals["friction.f_pos.fexp"]
    middle = drawn.values["friction.f_pos.fexp"]
    assert high - middle > 1.1 * (middle - low)
    for path, true in (("friction.f_pos.F_Stribeck", 0.4), ("friction.f_pos.fexp", 5.0)):
        assert drawn.intervals[path][0] < true < drawn.intervals[path][1]


@pytest.mark.slow
def test_it_is_the_same_again_with_the_same_seed_and_another_with_another() -> None:
    found = fitted()
    one, again, other = (
        found.posterior(draws=100, warmup=100, chains=2, samples=30, seed=s) for s in (5, 5, 6)
    )
    np.testing.assert_array_equal(one.draws, again.draws)
    assert not np.array_equal(one.draws, other.draws)


def test_it_prints_a_table_gives_a_band_and_draws_itself(plain: fx.Posterior) -> None:
    text = str(plain)
    assert text.startswith(
        "Posterior: 2 chains of 1000 draws by NUTS; the residuals have 30 effective samples"
    )
    assert "friction.f_pos.F_Coulomb" in text
    band = plain.friction("friction", [-0.5, 0.5])
    np.testing.assert_allclose(band.force, [-0.7, 0.7], atol=0.1)
    assert np.all(band.lower < band.force)
    assert np.all(band.force < band.upper)
    figure = plain.plot()
    assert len(figure.axes) == 9
    assert len(plain.plot(names=["mass.m", "friction.f_pos.F_prop"]).axes) == 4
    made = plain.derived(
        lambda p: jnp.stack([p["mass.m"], 2.0 * p["mass.m"]]), name=["one", "two"], unit="kg"
    )
    assert len(made.plot().axes) == 4
    assert made.fitted == pytest.approx(np.array([1.0, 2.0]) * plain.found.values["mass.m"])
    with pytest.raises(ValueError, match="needs draws, and those of a fit have none"):
        plain.found.derived("mass.m").plot()
    with pytest.raises(
        KeyError, match=r"There is no fitted number 'mass\.w' to draw\. There are: mass\.m, "
    ):
        plain.plot(names=["mass.w"])
    with pytest.raises(KeyError, match="There is no contact 'mass'"):
        plain.friction("mass", 0.1)


def test_draws_are_the_same_to_the_last_bit_however_they_are_told_and_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, lines = fitted(), []
    asked: dict[str, Any] = {"samples": 30, "draws": 110, "warmup": 110, "chains": 2}
    plain = found.posterior(**asked)
    told = found.posterior(**asked, progress=lines.append)
    monkeypatch.setattr(
        "frictax.analysis.errors.posterior._SECONDS", 0.0
    )  # each draw in its own call
    cut = found.posterior(**asked, progress=lines.append)
    np.testing.assert_array_equal(told.all_draws, plain.all_draws)
    np.testing.assert_array_equal(cut.all_draws, plain.all_draws)
    assert told.divergences == plain.divergences == cut.divergences
    assert re.fullmatch(r"chain [12]: 1 of 220 draws, 1 %", lines[0])
    assert re.fullmatch(r"chain [12]: 220 of 220 draws, 100 %", lines[-1])
    shares = [line.share for line in lines]
    half = shares.index(1.0) + 1
    assert shares[:half] == sorted(shares[:half])
    assert len(shares) - half == 2 * (75 + 75 + 110)  # whole blocks of 25 in the warm-up


@pytest.mark.slow
def test_of_records_with_values_of_their_own_the_friction_is_that_of_one() -> None:
    drawn = fitted_apart().posterior(draws=100, warmup=100, chains=2, samples=100)
    made = drawn.derived()
    assert made.names[:2] == ("friction: breakaway@one", "friction: breakaway@two")
    np.testing.assert_allclose(made.value[:2], [e.value for e in drawn.estimates[1:]])
    with pytest.raises(ValueError, match="Name the record"):
        drawn.derived("friction: breakaway")
    for label, expected in (("one", 0.5), ("two", 1.0)):
        band = drawn.friction("friction", 1e-9, label)
        assert band.force[0] == pytest.approx(expected, abs=0.1)
        assert band.upper[0] > band.lower[0]
    with pytest.raises(ValueError, match="has values of each record's own: name the record"):
        drawn.friction("friction", 0.1)
    with pytest.raises(KeyError, match="There is no record 'three'"):
        drawn.friction("friction", 0.1, "three")


def test_the_posterior_of_another_record_compiles_nothing(caplog: pytest.LogCaptureFixture) -> None:
    few: dict[str, Any] = {"draws": 100, "warmup": 100, "chains": 2, "samples": 401.0}
    first, second = fitted(0), fitted(1)
    first.posterior(**few)
    with jax.log_compiles():
        second.posterior(**few)
    assert "Finished XLA compilation" not in caplog.text


@pytest.mark.parametrize("known", [True, False])
def test_of_a_sweep_it_is_as_wide_as_the_errors_by_known_sigma_or_a_prior(known: bool) -> None:
    v, sigma = np.linspace(0.5, 8.0, 200), None
    noise = 0.02 * np.random.default_rng(1).standard_normal(v.size)
    priors = []
    if known:
        sigma = np.full(v.size, 0.1)
    else:  # autocorrelated residuals, and a prior that is narrower than the information of the data
        noise = lfilter([1.0], [1.0, -0.9], noise)
        priors = [fx.Normal("F_prop", mean=0.2, sd=2e-4)]
    sweep = fx.Sweep(v, 6.0 + 0.2 * v + noise, sigma, sigma_known=known)
    found = fx.fit(fx.Coulomb, sweep, priors=priors)
    drawn = found.posterior(draws=400, warmup=400, chains=2)
    for name, error in found.standard_errors.items():
        assert drawn.standard_errors[name] == pytest.approx(error, rel=0.15), name
    assert np.all(drawn.r_hat < 1.03)


def test_a_chain_of_a_sweep_begins_with_the_density_of_its_first_place() -> None:
    v = np.linspace(0.5, 8.0, 20)
    found = fx.fit(fx.Coulomb, fx.Sweep(v, 6.0 + 0.2 * v + 0.1 * np.cos(9.0 * v)))
    chain = _Chain(found.problem, found.method, np.float64(20.0), 100, 100, {})
    x, none = np.array(found.x), np.full(2, -np.inf)
    frame = Frame(none, -none, np.ones(2), x, np.eye(2))
    for u in (np.zeros(2), np.array([1.0, -0.1])):
        state = chain.evaluate_state(u, frame)
        assert state is not None
        r = found.full_residuals + found.full_jacobian @ u
        assert float(state[1]) == pytest.approx(-10.0 * np.log(r @ r))
