"""Fits drawn at random: what a print says of one thing agrees with what it says of another. Every
fit of the tests is asked this by `conftest.py`.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter

import frictax as fx
from excluded_notices import OF_A_FIT, OF_A_SUBJECT, contradictions
from frictax.notice import TEXTS, Notice

T = np.linspace(0.0, 4.0, 401)
OBJECTIVES = (fx.FreeRun(), fx.Windows(), fx.Windows(free_starts=True), fx.InverseDynamics())
FREE = (["friction.f_pos"], ["friction.f_pos", "mass.m"], ["friction", "mass.m"])


def block(law: fx.Coulomb | fx.Stribeck, m: float, peak: float, force: object) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=m),
        friction=fx.SupportFriction("mass", f_pos=law, peak=peak),
        drive=fx.Force("mass", force),
    )


def law_of(rng: np.random.Generator) -> fx.Coulomb | fx.Stribeck:
    F_Coulomb, F_prop = rng.uniform(0.3, 1.5), rng.uniform(0.0, 0.5)
    if rng.random() < 0.5:
        return fx.Coulomb(F_Coulomb=F_Coulomb, F_prop=F_prop)
    dip, fexp = rng.uniform(0.05, 0.8), rng.uniform(1.0, 20.0)
    return fx.Stribeck(F_Coulomb=F_Coulomb, F_prop=F_prop, F_Stribeck=dip, fexp=fexp)


def spoilt(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """With noise of one of six kinds, at a level between a thousandth and a third."""
    size = float(np.std(x)) * 10 ** rng.uniform(-3.0, -0.5) + 1e-9
    white = rng.standard_normal(x.size)
    kind = rng.integers(6)
    if kind == 1:
        return x + size * np.asarray(lfilter([np.sqrt(1 - 0.9**2)], [1, -0.9], white))
    if kind == 2:
        return size * np.round(x / size)
    if kind == 3:
        return np.clip(x + size * white, -0.7 * np.abs(x).max(), 0.7 * np.abs(x).max())
    if kind == 4:
        return x + size * white + 15 * size * (rng.random(x.size) < 0.01)
    if kind == 5:
        return x + size * white + size * np.cumsum(white) / 5
    return x + size * white


def fitted_at_random(seed: int) -> fx.FitResult:
    """A block with its own friction, noise, missing term and start values. Five seeds share the
    fitted kind of law, the free parameters, the objective and the output: one compiled program.
    """
    rng, shared = np.random.default_rng(seed), np.random.default_rng(seed // 5)
    w = rng.uniform(1.0, 12.0, 3)
    force = 2.0 * np.sin(w[0] * T) + np.sin(w[1] * T) + 0.5 * np.sin(w[2] * T)
    lacks = float(rng.choice([0.0, 0.0, 0.3])) * np.sin(3.0 * T)
    truth = block(
        law_of(rng), rng.uniform(0.5, 2.0), rng.choice([1.0, 1.3]), fx.Sampled(T, force + lacks)
    )
    run = fx.simulate(truth, T, fx.OnSamples())["mass"]
    outputs = {"mass.v": spoilt(np.asarray(run.v), rng)}
    if shared.random() < 0.5:
        outputs = {"mass.s": spoilt(np.asarray(run.s), rng)}
    inputs = {"drive": spoilt(force, rng) if rng.random() < 0.3 else force}
    away = rng.choice([1.0, 1.3, 3.0, 300.0])
    guess = fx.Stribeck(F_Coulomb=0.8 * away, F_prop=0.2, F_Stribeck=0.3, fexp=5.0)
    if shared.random() < 0.5:
        guess = fx.Coulomb(F_Coulomb=0.8 * away, F_prop=0.2)
    return fx.fit(
        block(guess, 1.0, rng.choice([1.0, 1.2]), 0.0),
        fx.Record(T, inputs, outputs, name="run"),
        free=list(FREE[shared.integers(3)]),
        objective=OBJECTIVES[seed // 5],
    )


def swept_at_random(seed: int) -> fx.FitResult:
    """Rows one way or both ways, with an offset or without, white or autocorrelated."""
    rng = np.random.default_rng(seed)
    n, still = rng.choice([8, 12, 20, 40]), rng.integers(3)  # each n has its compiled programs
    v = np.sort(rng.uniform(0.02, 3.0, n - still))
    v = np.concatenate([np.zeros(still), v * rng.choice([-1, 1], v.size) ** rng.integers(2)])
    f = np.asarray(law_of(rng)(jnp.abs(v))) * np.where(v < 0, -1, 1) + rng.choice([0.0, 0.1])
    noise = 10 ** rng.uniform(-3.0, -0.5) * rng.standard_normal(v.size)
    noise = np.asarray(lfilter([1], [1, -rng.choice([0.0, 0.8])], noise))
    sweep = fx.Sweep(v, f + noise, breakaway=v == 0, velocity_unit="m/s", force_unit="N")
    return fx.fit(fx.Coulomb if rng.random() < 0.5 else fx.Stribeck, sweep)


def test_a_contradiction_is_found():
    at = [Notice("near-bound", "m", {"bound": 0.0}), Notice("no-effect", "m")]
    assert contradictions(at) == ["[('m', '', 'near-bound'), ('m', '', 'no-effect')]"]
    assert not contradictions([at[0], Notice("no-effect", "c")])
    assert len(contradictions([Notice("search-flat"), Notice("search-kink")])) == 1
    for group in (*OF_A_FIT, *OF_A_SUBJECT):
        assert group <= set(TEXTS)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "seeds"), [(swept_at_random, 100), (fitted_at_random, 20)])
def test_notices_of_random_fits_agree_with_each_other(make, seeds):
    for seed in range(seeds):
        found = make(seed)
        assert not contradictions(found.notices), f"{seed}: {found}"
        assert str(found)
