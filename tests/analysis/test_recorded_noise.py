"""Noise of a recorded input, integrated by the motion and multiplied by stops, is in the errors."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.analysis.errors import guarded, input_noise
from frictax.analysis.errors.input_noise import InputNoise, _rounding_covariance
from frictax.measurements.noise import noise_of
from rigs import FINE

T = np.linspace(0.0, 25.0, 2501)
FORCE = 2.2 * np.sin(2 * np.pi * 0.31 * T) + 1.6 * np.sin(2 * np.pi * 0.83 * T)
TRUE = {"mass.m": 1.0, "mass.F_Coulomb": 1.0, "mass.F_prop": 0.5}


def between_stops(m: float, dry: float, viscous: float, force: object = 0.0) -> fx.Mechanism:
    law = {"F_Coulomb": dry, "F_prop": viscous, "F_Stribeck": 0.0, "fexp": 1.0}
    mass = fx.MassWithStopAndFriction(m=m, smin=-0.4, smax=0.4, **law)
    return fx.Mechanism(mass=mass, drive=fx.Force("mass", force))


@pytest.fixture(scope="module")
def clean() -> np.ndarray:
    run = fx.simulate(between_stops(*TRUE.values(), force=fx.Sampled(T, FORCE)), T, FINE)
    return np.asarray(run["mass"].s)


def fitted(clean: np.ndarray, seed: int, *start: float, **options) -> fx.FitResult:
    """By a free run: an encoder of 2000 steps, and noise of 5 % in the recorded force."""
    rng, step = np.random.default_rng(seed), np.ptp(clean) / 2000
    noisy = FORCE + 0.05 * np.sqrt(np.mean(FORCE**2)) * rng.standard_normal(T.size)
    seen = step * np.round(clean / step + rng.uniform())
    record = fx.Record(T, {"drive": noisy}, {"mass.s": seen}, hold=False, name="run")
    return fx.fit(between_stops(*start), record, free=list(TRUE), **options)


def errors(found: fx.FitResult) -> np.ndarray:
    return np.array([found.values[path] - true for path, true in TRUE.items()])


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_a_run_between_stops_does_not_end_at_a_misfit_that_misses_hits(clean) -> None:
    """Seen as a whole from its start it ends 14 % off, at 6 times the misfit."""
    for seed in range(4):
        found = fitted(clean, seed, 1.13, 0.88, 0.57)
        assert np.all(np.abs(errors(found)) < (0.06, 0.12, 0.15)), seed


@pytest.fixture(scope="module")
def pushed() -> fx.FitResult:
    """A block without stops, by a force with noise."""
    t = np.linspace(0.0, 8.0, 401)
    rng = np.random.default_rng(2)
    force = 3.0 * np.sin(7.0 * t)
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=0.5, F_prop=0.4)),
        drive=fx.Force("mass", fx.Sampled(t, force)),
    )
    v = np.asarray(fx.simulate(block, t, FINE)["mass"].v)
    noisy = force + 0.2 * rng.standard_normal(t.size)
    record = fx.Record(t, {"drive": noisy}, {"mass.v": v}, hold=False, name="run")
    return fx.fit(block, record, free=["mass.m", "friction.f_pos.F_prop"], rounds=0)


@pytest.mark.slow
def test_a_fit_says_that_the_noise_of_the_inputs_is_in_its_errors(pushed) -> None:
    assert "noise of the inputs" in pushed.uncertainty().says  # as it is printed: test_guarded.py


@pytest.mark.slow
def test_draws_of_the_inputs_noise_have_the_spread_that_its_derivatives_give(pushed) -> None:
    found, noisy = pushed, pushed.records["run"].inputs["drive"]
    problem = jax.tree.map(jnp.asarray, found.problem)

    def residuals(u: jax.Array) -> jax.Array:
        changed = eqx.tree_at(lambda p: p.prepared[0].inputs["drive"], problem, u)
        return changed.residuals_of(jnp.asarray(found.x), 0)

    passed = np.asarray(jax.jit(jax.jacfwd(residuals))(jnp.asarray(noisy)))
    moved = np.linalg.pinv(found.jacobian) @ passed
    exact = noise_of(noisy) * np.linalg.norm(moved, axis=1)
    drawn = np.sqrt(np.diag(InputNoise().spread(found).covariance))
    np.testing.assert_allclose(drawn, exact, rtol=0.25)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_intervals_of_a_run_between_stops_with_a_noisy_force_hold_the_truth(clean) -> None:
    """By the memory of its residual alone they hold it in 60 to 83 %."""
    off, half = [], []
    for seed in range(100, 150):
        # From the truth the first search ends where all rounds end.
        found = fitted(clean, seed, *TRUE.values(), rounds=0)
        off.append(errors(found))
        by_name = {e.name: e for e in found.estimates}
        half.append([(by_name[n].upper - by_name[n].lower) / 2 for n in TRUE])
    held = np.mean(np.abs(off) <= np.array(half), axis=0)
    assert np.all(held >= 0.86), held  # 95 % of 50 have a standard deviation of 3.1 %
    width = np.median(half, axis=0) / 1.96 / np.std(off, axis=0)
    assert np.all((width > 0.7) & (width < 1.5)), width


def test_errors_are_unknown_if_no_simulation_of_the_inputs_noise_succeeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    t = np.linspace(0.0, 2.0, 201)
    v = 0.5 * np.sin(7.0 * t) + 1e-3 * np.random.default_rng(0).standard_normal(t.size)
    block = fx.Mechanism(mass=fx.Mass(m=1.0), drive=fx.Force("mass", 0.0))
    record = fx.Record(t, {"drive": 3.5 * np.cos(7.0 * t)}, {"mass.v": v}, name="run")
    fails = lambda found: np.zeros((0, found.full_residuals.size))  # noqa: E731
    monkeypatch.setattr(input_noise, "simulate_input_noise", fails)
    monkeypatch.setattr(guarded, "input_noise_exceeds_sensors", lambda found: True)
    found = fx.fit(block, record, free=["mass.m"], rounds=0)
    (mass,) = found.estimates
    assert mass.value == pytest.approx(1.0, rel=0.01)
    assert np.isnan([mass.standard_error, mass.lower, mass.upper]).all()
    assert "simulated 0 times" in str(found)
    assert np.isnan(found.derived("2 * mass.m").standard_error)


# -- steps of an encoder
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.25])
def test_the_covariance_rounding_covariance_is_that_of_many_zeros(noise: float) -> None:
    """Of a motion that comes back to the same places, where neighbours say nothing of it."""
    rng, n, step = np.random.default_rng(0), 400, 0.3
    s = 2.0 * np.sin(np.linspace(0.0, 12.0 * np.pi, n)) + 0.02 * np.linspace(0.0, 1.0, n)
    g = np.stack([np.ones(n), np.sin(np.linspace(0.0, 3.0, n)), s])
    zero = step * rng.uniform(size=(20_000, 1))
    seen = s + noise * step * rng.standard_normal((20_000, n))
    off = step * np.round((seen + zero) / step) - zero - s
    drawn = np.cov(g @ off.T)
    size = np.sqrt(np.diag(drawn))
    made = _rounding_covariance(g.T, s, step, noise * step)
    np.testing.assert_allclose(made / size / size[:, None], drawn / size / size[:, None], atol=0.05)
    white = np.diag(g @ g.T) * (step**2 / 12 + (noise * step) ** 2)
    assert np.max(size / np.sqrt(white)) > (1.5 if noise < 0.2 else 0.95)


@pytest.mark.slow
@pytest.mark.parametrize(("step", "noise"), [(1e-3, 0.0), (1e-3, 2e-3), (0.0, 1e-3)])
def test_where_steps_are_all_that_is_left_they_alone_are_the_account(step, noise) -> None:
    t = np.linspace(0.0, 3.0, 601)
    u = 2.0 * np.sin(5.0 * t) + np.sin(13.0 * t)
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=0.8, F_prop=0.3)),
        drive=fx.Force("mass", fx.Sampled(t, u)),
    )
    s = np.asarray(fx.simulate(block, t, FINE)["mass"].s)
    s = s + noise * np.random.default_rng(0).standard_normal(s.size)
    seen = step * np.round(s / step) if step else s
    record = fx.Record(t, {"drive": u}, {"mass.s": seen}, hold=False)
    found = fx.fit(block, record, free=["friction.f_pos.F_Coulomb"], rounds=0)
    alone = "rounding to the steps of the sensors" in found.uncertainty().says
    assert alone == (step > 0 and noise < step)
