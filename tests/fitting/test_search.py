"""The search arrives: from far off, along free decays of a wrong period, from many starts."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.fitting.search.multistart import _Run

T = np.linspace(0.0, 10.0, 2001)
FORCE = 3.0 * np.sin(2 * np.pi * T) + 3.0 * np.sin(2 * np.pi * 0.37 * T)
NAMES = ("F_Coulomb", "F_prop", "F_Stribeck", "fexp")
LAW = np.array([1.0, 0.2, 0.4, 5.0])
CORNERS = 3.0 ** np.array(list(itertools.product((-1, 1), repeat=4)))  # three times off


def driven_block(law: np.ndarray) -> fx.Mechanism:
    """The block of experiments/benchmarks/p4.py."""
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction(
            "mass", f_pos=fx.Stribeck(**dict(zip(NAMES, law.tolist(), strict=True))), peak=1.0
        ),
        drive=fx.Force("mass", fx.Sampled(jnp.asarray(T), jnp.asarray(FORCE))),
    )


@pytest.fixture(scope="module")
def speeds() -> fx.Record:
    v = np.array(fx.simulate(driven_block(LAW), T)["mass"].v)
    v[1:] += 0.002 * np.random.default_rng(0).standard_normal(len(v) - 1)
    return fx.Record(T, {"drive": FORCE}, {"mass.v": v})


def test_starts_three_times_off_each_way_arrive_in_few_steps(speeds: fx.Record) -> None:
    fits = [fx.fit(driven_block(LAW * far), speeds, free=["friction.f_pos"]) for far in CORNERS]
    least = min(found.noise_scale for found in fits)
    assert all(found.noise_scale < least * (1 + 1e-6) for found in fits)
    assert np.median([found.iterations for found in fits]) <= 15


def test_64_starts_share_their_work(speeds: fx.Record, monkeypatch: pytest.MonkeyPatch) -> None:
    taken, advanced = [], _Run.advanced

    def counted(self, state, until, noise):
        end = advanced(self, state, until, noise)
        taken.append(int(end.steps) - int(state.steps))
        return end

    monkeypatch.setattr(_Run, "advanced", counted)
    found = fx.fit(driven_block(LAW * CORNERS[5]), speeds, free=["friction.f_pos"], starts=64)
    assert len(found.costs) == 64
    assert sum(taken) <= 300
    for name, true in zip(NAMES, LAW, strict=True):
        path = f"friction.f_pos.{name}"
        assert abs(found.values[path] - true) < 4 * found.standard_errors[path]


def decaying(c: float, F_Coulomb: float, F_prop: float, s: float) -> fx.Mechanism:
    law = fx.Stribeck(F_Coulomb=F_Coulomb, F_prop=F_prop, F_Stribeck=0.0, fexp=1.0)
    return fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.Mass(m=1.0, s=s),
        spring=fx.Spring("wall", "mass", c=c),
        friction=fx.SupportFriction("mass", f_pos=law, peak=1.0),
    )


def test_a_free_decay_is_found_from_a_start_that_is_periods_late() -> None:
    """35 periods; stiffness and angle 10 % off, friction twice or half."""
    t, rng = np.linspace(0.0, 40.0, 2001), np.random.default_rng(3)
    truth = {"c": 30.0, "F_Coulomb": 0.05, "F_prop": 0.03, "s": 1.5}
    s = np.asarray(fx.simulate(decaying(**truth), t, fx.OnSamples())["mass"].s)
    paths = ("spring.c", "friction.f_pos.F_Coulomb", "friction.f_pos.F_prop", "mass.s")
    for signs in ((1, 1, -1, -1), (-1, -1, 1, 1), (1, -1, -1, 1)):
        far = np.exp([0.1, 0.7, 0.7, 0.1] * np.array(signs))
        start = decaying(*(np.array(list(truth.values())) * far).tolist())
        run = fx.Record(t, {}, {"mass.s": s + 1e-3 * rng.standard_normal(t.size)})
        found = fx.fit(start, run, free=paths)
        assert found.converged
        for path, true in zip(paths, truth.values(), strict=True):
            assert abs(found.values[path] - true) < 4 * found.standard_errors[path], found
