"""Of machines and laws that contain each other, the larger is never worse, by random ones."""

import dataclasses

import numpy as np
import optax
import pytest

import frictax as fx
from frictax.analysis.selection.nested import from_contained
from frictax.analysis.selection.selection_rule import UNENDED, implausible
from frictax.fitting.fit import misfit

T = np.linspace(0.0, 4.0, 401)
BOTH = ["friction.f_pos", "friction.f_neg"]


def block(f_pos, f_neg=None, force=None) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=f_pos, f_neg=f_neg),
        drive=fx.Force("mass", 0.0 if force is None else fx.Sampled(T, force)),
    )


def near(rng: np.random.Generator, size: float, spread: float) -> float:
    return size * float(np.exp(spread * rng.standard_normal()))


def stribeck(rng: np.random.Generator, **options: float) -> fx.Stribeck:
    """A start that may be far off."""
    return fx.Stribeck(
        F_Coulomb=near(rng, 1.0, 0.7),
        F_prop=near(rng, 0.2, 0.7),
        F_Stribeck=near(rng, 0.3, 1.5),
        fexp=near(rng, 5.0, 1.5),
        **options,
    )


def coulomb(rng: np.random.Generator) -> fx.Coulomb:
    return fx.Coulomb(near(rng, 1.0, 0.7), near(rng, 0.2, 0.7))


def slide(seed: int) -> fx.Record:
    """A record of a block whose friction may differ by direction, or dip."""
    rng = np.random.default_rng(seed)
    force = sum(
        rng.uniform(1, 3) * np.sin(2 * np.pi * f * T + rng.uniform(0, 6))
        for f in rng.uniform(0.2, 2.0, 3)
    )
    laws = [
        fx.Stribeck(
            F_Coulomb=rng.uniform(0.3, 1.2),
            F_prop=rng.uniform(0.05, 0.5),
            F_Stribeck=rng.uniform(0, 0.5) * (rng.random() < 0.6),
            fexp=rng.uniform(1, 10),
        )
        for _ in range(2)
    ]
    f_neg = laws[1] if rng.random() < 0.5 else None
    v = np.array(fx.simulate(block(laws[0], f_neg, force), T, fx.OnSamples())["mass"].v)
    v[1:] += 0.002 * rng.standard_normal(T.size - 1)
    return fx.Record(T, {"drive": force}, {"mass.v": v}, sd={"mass.v": 0.002})


@pytest.mark.slow
def test_a_machine_never_fits_worse_than_one_that_it_contains() -> None:
    worse = 0
    for seed in range(10, 18):
        record, rng = slide(seed), np.random.default_rng(1000 + seed)
        table = fx.Table(np.column_stack([np.linspace(0.0, 3.0, 4), np.full(4, 1.0)]))
        machines = {
            "one dip": (block(stribeck(rng)), BOTH[:1]),
            "two lines": (block(coulomb(rng), coulomb(rng)), BOTH),
            "one line": (block(coulomb(rng)), BOTH[:1]),
            "two dips": (block(stribeck(rng), stribeck(rng)), BOTH),
            "table": (block(table), BOTH[:1]),
        }
        alone = {
            name: fx.fit(m, record, free=free, rounds=0) for name, (m, free) in machines.items()
        }
        fits = from_contained(alone)
        assert list(fits) == list(machines)
        for larger, smaller in (
            ("one dip", "one line"),
            ("two lines", "one line"),
            ("table", "one line"),
            ("two dips", "one dip"),
            ("two dips", "two lines"),
        ):
            worse += misfit(alone[larger]) > misfit(alone[smaller])
            assert misfit(fits[larger]) <= misfit(fits[smaller]) * (1 + 1e-6)
        for name, found in fits.items():
            assert misfit(found) <= misfit(alone[name]) * (1 + 1e-5)
    assert worse > 0  # there was something to mend


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("sweeps", [1, 4])
def test_a_law_never_fits_worse_than_one_that_it_contains(sweeps: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(sweeps):
        v = np.sort(rng.uniform(0.02, 3.0, 14))
        v = np.concatenate([v, -v])
        f = np.sign(v) * (1.0 + 0.3 * np.abs(v) + rng.uniform(0, 1) * np.exp(-5 * np.abs(v)))
        f += 0.05 * rng.standard_normal(v.size)
        sweep = fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")
        laws = {
            "dip": stribeck(rng),
            "line": coulomb(rng),
            "two dips": fx.SteadyFriction(stribeck(rng), stribeck(rng)),
        }
        fits = from_contained({name: fx.fit(law, sweep) for name, law in laws.items()})
        assert misfit(fits["dip"]) <= misfit(fits["line"]) * (1 + 1e-6)
        assert misfit(fits["two dips"]) <= misfit(fits["dip"]) * (1 + 1e-6)


@pytest.mark.slow
def test_a_search_that_did_not_end_is_not_ranked() -> None:
    v = np.linspace(0.1, 3.0, 20)
    f = 1.0 + 0.3 * v + 0.8 * np.exp(-5 * v) + 1e-3 * np.sin(40 * v)
    sweep = fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")
    far = {"line": fx.Coulomb(9.0, 9.0), "dip": stribeck(np.random.default_rng(0))}
    short = fx.compare(sweep, far, method=fx.Optax(optax.adam(1e-3), steps=3))
    assert [row.found.converged for row in short.rows] == [True, False]
    assert short["dip"].remark == UNENDED
    assert short.best.name == "line"
    assert "dip" not in short.reason


@pytest.mark.slow
def test_a_search_on_a_record_that_did_not_end_speaks_against_its_structure() -> None:
    found = fx.fit(block(fx.Coulomb(1.0, 0.2)), slide(0), free=BOTH[:1])
    for converged in (True, False):
        said = implausible(dataclasses.replace(found, converged=converged), 50.0)
        assert (UNENDED in said) == (not converged)
