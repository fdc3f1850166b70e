"""Glitches: single samples far off their neighbours."""

import numpy as np
import pytest

import frictax as fx
from frictax.measurements.noise import find_glitches

T = np.linspace(0.0, 8.0, 1601)


def noisy(seed, t=T):
    motion = 0.3 * np.sin(2.0 * t) + 0.05 * np.abs(np.sin(5.0 * t))
    return motion + 0.01 * np.random.default_rng(seed).standard_normal(t.size)


@pytest.mark.parametrize("dropped", [0.0, 0.1])
def test_nearly_all_glitches_are_found_and_nothing_beside_them(dropped):
    found, made, wrong = 0, 0, 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        t = T[rng.uniform(size=T.size) >= dropped]
        x = noisy(seed, t)
        glitches = rng.choice(np.arange(3, t.size - 3), 16, replace=False)
        x[glitches] += 0.15 * rng.choice([-1, 1], 16)
        at, shown = find_glitches(t, x)
        found += np.isin(at, glitches).sum()
        wrong += (~np.isin(at, glitches)).sum()
        made += 16
        assert shown == pytest.approx(noisy(seed, t)[at], abs=0.08)
    assert wrong == 0
    assert found > 0.85 * made


@pytest.mark.parametrize(
    "x",
    [
        np.sign(np.sin(3.0 * T)),
        np.round(np.sin(T), 2),
        np.abs(np.sin(8.0 * T)),
        np.where(T > 4.0, 1.0, 0.0),
        np.exp(-T),
        np.floor(3.0 * T),
        np.random.default_rng(0).standard_normal(T.size),
    ],
    ids=["square", "rounded", "bounces", "step", "decay", "stairs", "noise"],
)
def test_motions_without_glitches_have_none(x):
    assert find_glitches(T, x)[0].size == 0
    assert (
        find_glitches(T, x + 1e-4 * np.random.default_rng(1).standard_normal(T.size))[0].size == 0
    )


def test_a_record_names_the_times_of_its_glitches_and_windows_do_not_start_from_them():
    v, clean = noisy(0), noisy(0)
    rows = np.array([100, 500, 900])
    v[rows] += 0.15
    record = fx.Record(T, outputs={"mass.v": v})
    (notice,) = [n for n in record.notices if n.code == "record-lone-samples"]
    assert all(f"{t:.6g} s" in str(notice) for t in T[rows])
    block = fx.Mechanism(mass=fx.Mass(m=1.0))
    windows = fx.Windows(length=0.5, cutoff=50.0)
    starts, right = (
        windows.prepare(block, fx.Record(T, outputs={"mass.v": x})).start["mass.v"]
        for x in (v, clean)
    )
    assert starts == pytest.approx(right, abs=0.02)
