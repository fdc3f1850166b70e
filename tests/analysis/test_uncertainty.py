"""Errors where residuals are not white, and intervals at a bound. The seeds were chosen once."""

import numpy as np
import pytest

import frictax as fx
from coloured import LAW, SLIDING, STICKING, T, X, clean, coloured, holds, resting, white_fit
from frictax.analysis.errors.linearization import Samples, long_run_covariance
from pushed_block import fitted
from rigs import NOISE, TRUE, TRUE_LAW, block, motion


@pytest.mark.slow
def test_white_errors_are_those_of_the_fit() -> None:
    found = resting([X])
    u = found.uncertainty(fx.White())
    white = np.sqrt(np.diag(found.full_covariance))
    assert list(u.standard_errors.values()) == pytest.approx(white, rel=1e-12)
    assert [e.dof for e in u.estimates] == [found.dof] * len(white)
    assert found.values["outputs.mass.s.offset"] == pytest.approx(X.mean(), abs=1e-6)


def test_jackknife_over_equal_parts_is_the_error_of_their_mean() -> None:
    u = resting([X]).uncertainty(fx.Jackknife(6))
    parts = X.reshape(6, 200).mean(axis=1)
    (error,) = u.standard_errors.values()
    assert error == pytest.approx(np.std(parts, ddof=1) / np.sqrt(6), rel=1e-3)
    low, high = u.intervals["outputs.mass.s.offset"]
    # Student's t, 5 degrees of freedom
    assert (high - low) / 2 == pytest.approx(2.570582 * error, rel=1e-5)


@pytest.mark.slow
def test_jackknife_over_records_leaves_out_one_after_the_other() -> None:
    parts = [X[:300], X[300:600], X[600:900], X[900:]]
    u = resting(parts).uncertainty(fx.Jackknife())
    assert u.standard_errors["outputs.mass.s.offset"] == pytest.approx(
        np.std([p.mean() for p in parts], ddof=1) / 2, rel=1e-3
    )


@pytest.mark.slow
def test_block_bootstrap_has_the_spread_of_means_of_blocks() -> None:
    u = resting([X]).uncertainty(fx.BlockBootstrap(length=0.3, draws=2000))
    blocks = X.reshape(40, 30).mean(axis=1)
    # The blocks drawn are as many as there are, so that the estimate is their mean: a standard
    # error known to 1/sqrt(2*2000).
    assert u.standard_errors["outputs.mass.s.offset"] == pytest.approx(
        np.std(blocks) / np.sqrt(40), rel=0.06
    )
    assert u.draws is not None
    assert u.draws.shape == (2000, 1)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_hac_knows_how_much_an_autoregression_lengthens_the_error() -> None:
    errors = [
        resting([coloured(np.random.default_rng(seed), 4000, 0.8, 1.0)])
        .uncertainty(fx.HAC())
        .ratio["outputs.mass.s.offset"]
        for seed in range(12)
    ]
    assert np.median(errors) == pytest.approx(np.sqrt(1.8 / 0.2), rel=0.1)
    white = [
        resting([np.random.default_rng(seed).standard_normal(4000)])
        .uncertainty(fx.HAC())
        .ratio["outputs.mass.s.offset"]
        for seed in range(12)
    ]
    assert np.median(white) == pytest.approx(1.0, rel=0.05)


def test_long_run_covariance_of_white_noise_is_its_covariance_and_of_a_sum_with_its_past_known():
    e = np.random.default_rng(0).standard_normal((60000, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    white, _ = long_run_covariance(e)
    np.testing.assert_allclose(white, [[1.0, 0.6], [0.6, 1.0]], atol=0.05)
    # (1 + 0.5)**2 times; an autoregression that is none leaves 10 %
    moved, _ = long_run_covariance(e[1:] + 0.5 * e[:-1])
    np.testing.assert_allclose(moved, 2.25 * np.array([[1.0, 0.6], [0.6, 1.0]]), atol=0.25)


@pytest.mark.slow
def test_hac_takes_what_a_prior_says_as_known() -> None:
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0), friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0))
    )
    x = np.random.default_rng(0).standard_normal(400)
    record = fx.Record(0.01 * np.arange(400), outputs={"mass.s": x}, sd={"mass.s": 1.0})
    prior = fx.Normal("outputs.mass.s.offset", 0.0, 0.05)  # as much as 400 samples say
    found = fx.fit(machine, record, free=["outputs.mass.s.offset"], priors=[prior])
    assert found.standard_errors["outputs.mass.s.offset"] == pytest.approx(
        1 / np.sqrt(800), rel=0.1
    )
    assert found.uncertainty(fx.HAC()).ratio["outputs.mass.s.offset"] == pytest.approx(1.0, abs=0.1)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_coloured_residuals_hac_holds_the_truth_in_86_per_cent_of_150_where_white_fails():
    machine, random = block(peak=1.0), np.random.default_rng(1)
    v = clean(SLIDING, machine)
    white, hac, usual = np.zeros(4), np.zeros(4), np.zeros(4)
    for _ in range(150):
        found = fx.fit(
            machine,
            fx.Record(T, {"drive": SLIDING}, {"mass.v": v + coloured(random, T.size)}),
            free=LAW,
            rounds=0,  # residuals with a memory exceed the noise of the samples
        )
        white += holds(found.uncertainty(fx.White()).intervals, TRUE)
        usual += holds(found.intervals, TRUE)
        hac += holds(found.uncertainty(fx.HAC()).intervals, TRUE)
    assert np.all(white / 150 < 0.5), white / 150
    # 95 % of 150 have a standard deviation of 1.8 %
    assert np.all(usual / 150 >= 0.9), usual / 150
    assert np.all(hac / 150 >= 0.86), hac / 150


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_coloured_residuals_block_bootstrap_holds_the_truth_as_well() -> None:
    machine, random = block(peak=1.0), np.random.default_rng(2)
    v, hits, curve = clean(SLIDING, machine), np.zeros(4), 0
    for k in range(40):
        found = fx.fit(
            machine,
            fx.Record(T, {"drive": SLIDING}, {"mass.v": v + coloured(random, T.size)}),
            free=LAW,
            rounds=0,  # residuals with a memory exceed the noise of the samples
        )
        u = found.uncertainty(fx.BlockBootstrap(draws=60, seed=k))
        hits += holds(u.intervals, TRUE)
        band = u.friction("friction", [0.7])
        curve += band.lower[0] <= 1.0 + 0.2 * 0.7 + 0.4 * np.exp(-5.0 * 0.7) <= band.upper[0]
    assert np.all(hits / 40 >= 0.82), hits / 40  # 95 % of 40 have a standard deviation of 3.4 %
    assert curve / 40 >= 0.82


@pytest.fixture(scope="module")
def sticking() -> fx.FoundMachine:
    return white_fit()


@pytest.mark.slow
def test_bands_of_friction_and_motion_are_the_delta_method(sticking: fx.FoundMachine) -> None:
    u = sticking.uncertainty(fx.White())
    names = [f"friction.f_pos.{name}" for name in TRUE_LAW]
    x = np.array([sticking.values[name] for name in names])

    def friction(x: np.ndarray, v: float) -> float:
        return x[0] * v + x[1] + x[2] * np.exp(-x[3] * v)

    band = u.friction("friction", [0.4, -0.4])
    order = [sticking.names.index(name) for name in names]
    g = np.array([(friction(x + h, 0.4) - friction(x - h, 0.4)) / 2e-6 for h in 1e-6 * np.eye(4)])
    sd = np.sqrt(g @ u.covariance[np.ix_(order, order)] @ g)
    assert band.force == pytest.approx([friction(x, 0.4), -friction(x, 0.4)], rel=1e-12)
    assert (band.upper - band.force) == pytest.approx([1.9611 * sd] * 2, rel=1e-3)

    low, high = u.motion("run")
    moved = fx.parameters.replace(sticking.model, {"friction.f_pos.F_Coulomb": x[1] + 1e-5})
    parts = {**dict(moved.named_parts()), "drive": fx.Force("mass", fx.Sampled(T, STICKING))}
    column = (
        np.asarray(fx.simulate(fx.Mechanism(**parts), T, fx.OnSamples())["mass"].v)
        - sticking.predicted("run")[:, 0]
    ) / 1e-5
    np.testing.assert_allclose(
        sticking.jacobian[:, sticking.names.index(names[1])],
        column,
        atol=2e-3 * np.max(np.abs(column)),
    )
    inside = (low <= clean(STICKING, block())[:, None]) & (
        clean(STICKING, block())[:, None] <= high
    )
    assert np.mean(inside) > 0.8
    assert np.mean(high - low) < NOISE


@pytest.mark.slow
def test_windows_have_an_order_in_time_too() -> None:
    position = np.asarray(motion(block(), T, STICKING)["mass"].s) + coloured(
        np.random.default_rng(0), T.size, sd=1e-4
    )
    record = fx.Record(T, {"drive": STICKING}, {"mass.s": position}, name="run")
    found = fx.fit(block(peak=1.1), record, free=LAW, objective=fx.Windows(0.5))
    samples = Samples(found.problem)
    counted = samples.sample[samples.counted]
    # each sample once, but for the first
    assert np.array_equal(np.sort(counted), np.arange(1, 2001))
    assert np.array_equal(counted, np.sort(counted))
    u = found.uncertainty(fx.HAC())
    assert all(1.0 < ratio < 12.0 for ratio in u.ratio.values())
    jackknife = found.uncertainty(fx.Jackknife(5))
    assert all(np.isfinite(list(jackknife.standard_errors.values())))


@pytest.mark.slow
def test_huber_errors_by_hac_are_near_its_own_for_white_noise() -> None:
    v = clean(STICKING, block())
    found = fx.fit(
        block(),
        fx.Record(
            T,
            {"drive": STICKING},
            {"mass.v": v + NOISE * np.random.default_rng(0).standard_normal(T.size)},
        ),
        free=LAW,
        loss=fx.Huber(),
    )
    assert list(found.uncertainty(fx.HAC()).ratio.values()) == pytest.approx([1.0] * 4, abs=0.2)


@pytest.mark.slow
def test_values_of_a_record_of_its_own_have_a_band_and_repeats_are_counted_in_each_record():
    records = []
    for k, level in enumerate((1.0, 1.3)):
        v = clean(STICKING, block(F_Coulomb=level))
        noise = NOISE * np.random.default_rng(k).standard_normal(T.size)
        records.append(
            fx.Record(
                T, {"drive": STICKING}, {"mass.v": v + noise}, {"mass.v": NOISE}, name=f"run{k}"
            )
        )
    found = fx.fit(
        block(), records, free=["friction.f_pos.F_prop"], own=["friction.f_pos.F_Coulomb"]
    )
    u = found.uncertainty(fx.Jackknife(5))
    assert u.dof == 4
    with pytest.raises(ValueError, match="name the record"):
        u.friction("friction", [0.5])
    for k, level in enumerate((1.0, 1.3)):
        band = u.friction("friction", [0.5], label=f"run{k}")
        assert band.force[0] == pytest.approx(level + 0.1 + 0.4 * np.exp(-2.5), abs=0.02)
        assert band.upper[0] > band.lower[0]
    with pytest.raises(KeyError, match="no record 'run7'"):
        u.motion("run7")


@pytest.mark.slow
def test_a_number_that_one_sample_tells_has_the_error_of_a_sample() -> None:
    u = 0.3 * np.sin(2 * np.pi * T)  # holds the mass but for its start
    v = np.asarray(motion(block(v=0.0), T, u)["mass"].v) + NOISE * np.random.default_rng(
        0
    ).standard_normal(T.size)
    found = fx.fit(block(v=0.001), fx.Record(T, {"drive": u}, {"mass.v": v}), free=["mass.v"])
    assert found.standard_errors["mass.v"] > 0.5 * NOISE
    assert found.uncertainty(fx.HAC()).ratio["mass.v"] == pytest.approx(1.0, abs=0.5)


def test_wrong_questions_get_a_sentence() -> None:
    found = fitted()
    for build, word in (
        (lambda: fx.HAC(bandwidth=-1.0), "bandwidth"),
        (lambda: fx.BlockBootstrap(draws=3), "draws"),
        (lambda: fx.BlockBootstrap(length=0.0), "length"),
        (lambda: fx.Jackknife(1), "repeats"),
        (lambda: found.uncertainty("hac"), "takes Guarded"),  # pyright: ignore
        (lambda: found.uncertainty(fx.Jackknife()), "there is one"),
        (lambda: found.uncertainty(fx.BlockBootstrap(length=9.0)), "at least 4 blocks"),
        (lambda: found.profile("mass.m", level=0.4), "between 0.5 and 1"),
        (lambda: found.profile(("mass.m", "mass.m")), "two different"),
    ):
        with pytest.raises(ValueError, match=word):
            build()
    with pytest.raises(KeyError, match="was not fitted"):
        found.profile("friction.peak")


def test_errors_do_not_need_a_long_section_without_a_gap() -> None:
    """A logger that loses 3 rows of 8: means of six rows would leave out every row."""
    t = np.arange(3200)[np.arange(3200) % 8 < 5] * 1e-3
    clean = 3.0 * np.exp(-t)
    y = clean + 0.01 * np.random.default_rng(0).standard_normal(t.size)
    mass = fx.Mechanism(
        mass=fx.Mass(m=1.0, v=3.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=0.0, F_prop=1.0)),
    )
    found = fx.fit(mass, fx.Record(t, outputs={"mass.v": y}), free=["mass.v"], rounds=0)
    white, errors = (found.uncertainty(by) for by in (fx.White(), fx.Autoregression()))
    assert errors["mass.v"].standard_error == pytest.approx(white["mass.v"].standard_error, rel=0.2)


def test_repeats_are_refused_for_a_sweep() -> None:
    v = np.linspace(0.5, 8.0, 12)
    found = fx.fit(fx.Coulomb, fx.Sweep(v, 6.0 + 0.2 * v + 0.01 * np.cos(9 * v)))
    with pytest.raises(ValueError, match=r"Jackknife\(4\)` needs repeats in each record"):
        found.uncertainty(fx.Jackknife(4))
