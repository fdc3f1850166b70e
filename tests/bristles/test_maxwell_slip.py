"""Elements that stick and slip each by itself: their closed forms, alone and in runs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.parameters import get, parameters, replace
from rubbing import STANDARD, moved, rubbing

K, SHARE, LIMIT = [4e4, 2e4, 1e4], [1 / 3] * 3, 1.2
THREE = fx.MaxwellSlip(K)
BRISTLE: dict[str, Any] = {"bristle": THREE}
LAW = fx.Coulomb(F_Coulomb=LIMIT)
ENGINES = [fx.OnSamples(), fx.Adaptive(rtol=1e-9, atol=1e-12)]


def virgin(x: float) -> float:
    """The force after the first way x."""
    return sum(min(k * abs(x), 0.4) for k in K) * float(np.sign(x))


def along(bristle: Any, turns: Any, g: float = LIMIT) -> tuple[np.ndarray, float]:
    """The forces at the turning points of a path from 0, and the work of the last two ways."""
    force, forces, works = bristle.start(), [], []
    for before, after in zip([0.0, *turns], turns, strict=False):
        way = jnp.array(after - before)
        force, mean = bristle.moved(way, force, jnp.array(g), jnp.array(g))
        forces.append(float(jnp.sum(force)))
        works.append(float(jnp.sum(mean) * way))
    return np.array(forces), sum(works[-2:])


def run_along(bristle: Any, turns: Any, engine: Any, law: Any = LAW) -> fx.Trajectory:
    """The same by a run, one second from turn to turn, with 8 samples each."""
    t, x = np.arange(len(turns) + 1.0), np.array([0.0, *turns])
    ts = np.linspace(0.0, t[-1], 8 * len(turns) + 1)
    path = fx.Sampled(t, x)
    return fx.simulate(moved(bristle, path, law), ts, engine, energy=True)


def test_the_first_way_is_the_sum_of_springs_and_sliders() -> None:
    for x in (1e-6, 9e-6, -15e-6, 3e-5, 5e-5, -1e-3):
        assert along(THREE, [x])[0][0] == pytest.approx(virgin(x), rel=1e-12)


def test_the_loop_is_that_of_masing_and_its_energy_that_of_the_sliders() -> None:
    a = 3e-5
    forces, energy = along(THREE, [a, -a, a, -a, a])
    assert forces == pytest.approx([1.1, -1.1, 1.1, -1.1, 1.1], rel=1e-12)
    assert energy == pytest.approx(4.8e-5, rel=1e-12)  # 4*(.4*2e-5 + .4*1e-5)
    for x in np.linspace(-a, a, 31):
        branch = 1.1 - 2 * virgin((a - x) / 2)
        assert along(THREE, [a, x])[0][-1] == pytest.approx(branch, abs=1e-12)


def test_a_small_loop_closes_and_the_large_one_goes_on_as_if_there_were_none() -> None:
    a, b, c = 5e-5, -1e-5, 1e-5
    outer = along(THREE, [a, -3e-5])[0]
    inner = along(THREE, [a, b, c, b, c, b, -3e-5])[0]
    assert inner[1] == pytest.approx(inner[3], abs=1e-12)
    assert inner[2] == pytest.approx(inner[4], abs=1e-12)
    assert inner[-1] == pytest.approx(outer[-1], abs=1e-12)
    # Dahl's, which has one force, does neither
    local = fx.Dahl(7e4)
    assert abs(np.diff(along(local, [a, b, c, b])[0][[1, 3]])[0]) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES, ids=type)
def test_a_run_along_a_path_goes_the_same_ways(engine: Any) -> None:
    a, b, c = 3e-5, -1e-5, 1e-5
    turns = [a, -a, a, -a, a, b, c, b, -4e-5, 6e-5]
    run = run_along(THREE, turns, engine)
    f = np.asarray(run["friction"].f)
    assert f[8::8] == pytest.approx(along(THREE, turns)[0], abs=1e-10)
    # between the turns, too
    finer = np.interp(np.asarray(run.ts), np.arange(len(turns) + 1.0), [0.0, *turns])
    assert f[1:] == pytest.approx(along(THREE, finer[1:])[0], abs=1e-10)
    energy = run.energy
    lost = np.asarray(energy.friction)
    assert lost[24] - lost[8] == pytest.approx(4.8e-5, abs=1e-12)
    assert np.max(np.abs(energy.balance)) < 1e-13
    held = np.asarray(run.ys)[:, :3] ** 2 / (2 * np.array(K))
    assert np.asarray(energy.elastic) == pytest.approx(held.sum(1), abs=1e-18)
    assert np.asarray(run["friction"].z) * sum(K) == pytest.approx(run["friction"].f_z)
    assert run["friction"].mode[-1] == fx.Mode.FORWARD
    assert set(np.asarray(run["friction"].mode)) == {fx.Mode.STUCK, fx.Mode.FORWARD}


@pytest.mark.slow
def test_elements_alike_slip_at_the_same_instant() -> None:
    alike, one = fx.MaxwellSlip([2e4] * 3), fx.MaxwellSlip([6e4])
    turns = ([5e-5, -2e-5, 4e-5] * 4)[:10]  # as many as above, for the same programs
    for engine in ENGINES:
        run = run_along(alike, turns, engine)
        finer = np.interp(np.asarray(run.ts), np.arange(len(turns) + 1.0), [0.0, *turns])
        assert np.asarray(run["friction"].f[1:]) == pytest.approx(
            along(one, finer[1:])[0], abs=1e-9
        )


@pytest.mark.slow
@pytest.mark.parametrize("C", [None, 50.0])
def test_at_constant_speed_friction_is_the_law(C: float | None) -> None:
    bristle = fx.MaxwellSlip([4e4, 2e4, 1e4, 5e3], [1, 2, 3, 4], C=C)

    @jax.jit
    def f(v: Any) -> Any:
        # all slip after a way of 1.2e-4 m; and a time of 25 g/C
        last = 2e-4 / v + (0.0 if C is None else 25 * 1.5 / C)
        ts = jnp.linspace(0.0, 1.0, 1001) * last
        machine = moved(bristle, fx.Ramp(height=2 * last * v, duration=2 * last))
        return fx.simulate(machine, ts, fx.OnSamples())["friction"].f[-1]

    for v in np.geomspace(1e-4, 1.0, 10):
        assert float(f(jnp.array(v))) == pytest.approx(float(STANDARD(jnp.array(v))), rel=1e-9)


@pytest.mark.slow
def test_the_generalized_model_follows_the_law_over_time() -> None:
    # From rest to 0.1 m/s, where g is less by 0.5 N: F = g + (f0 - g)*exp(-C*t/g) on from there
    law = fx.Stribeck(F_prop=0.0, F_Coulomb=1.0, F_Stribeck=0.5, fexp=1e4, exponent=2.0)
    run = run_along(fx.MaxwellSlip([1e5, 5e4], C=3.0), [0.1], fx.OnSamples(substeps=200), law)
    f = np.asarray(run["friction"].f)
    assert f[2:] - 1.0 == pytest.approx(
        (f[1] - 1.0) * np.exp(-3.0 * (run.ts[2:] - run.ts[1])), 1e-5
    )


@pytest.mark.slow
def test_it_starts_bent_and_is_linear_about_its_state() -> None:
    bristle = fx.MaxwellSlip([2e3, 1e3], share=[1.0, 3.0], z=[1e-4, -2e-4])
    machine = rubbing(bristle, fx.Coulomb(F_Coulomb=1.0, F_prop=0.3))
    run = fx.simulate(machine, np.array([0.0, 1e-6]))
    assert float(run["friction"].f_z[0]) == pytest.approx(0.2 - 0.2, abs=1e-15)
    assert run.ys[0, 2:].tolist() == pytest.approx([0.2, -0.2])
    assert run.system.states() == ("mass.s", "mass.v", "friction.f_z[0]", "friction.f_z[1]")
    A = np.asarray(fx.linearize(machine, 0.0, run.ys[0], run.modes[0]).A)
    expected = [[0, 1, 0, 0], [0, -0.3, -1, -1], [0, 2e3, 0, 0], [0, 1e3, 0, 0]]
    assert pytest.approx(np.array(expected)) == A


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: fx.MaxwellSlip([1.0, -1.0]), "`MaxwellSlip.k` must be > 0"),
        (lambda: fx.MaxwellSlip([]), "must have a stiffness at least"),
        (
            lambda: fx.MaxwellSlip(4.0),
            r"`MaxwellSlip.k` must be a list of numbers, got 4. Write \[4\]",
        ),
        (lambda: fx.MaxwellSlip([1.0, 1.0], [0.0, 1.0]), "`MaxwellSlip.share` must be a list of"),
        (lambda: fx.MaxwellSlip([1.0, 1.0], 0.5), "`MaxwellSlip.share` must be a list of"),
        (lambda: fx.MaxwellSlip([1.0, 1.0], [1.0, 1.0, 1.0]), "`MaxwellSlip.share` must have an"),
        (lambda: fx.MaxwellSlip([1.0, 2.0], [0.5]), "`MaxwellSlip.share` must have an entry"),
        (lambda: fx.MaxwellSlip([1.0, 1.0], z=[1.0]), "`MaxwellSlip.z` must have an entry for"),
        (lambda: fx.MaxwellSlip([1.0, 1.0], C=0.0), "`MaxwellSlip.C` must be > 0"),
        (
            lambda: fx.SupportFriction("m", bristle=fx.MaxwellSlip([1e3, 1e3], z=[0.0, 6e-4])),
            "`SupportFriction.bristle.z` must lie within breakaway",
        ),
    ],
)
def test_what_does_not_go_together_is_told_in_a_sentence(wrong: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        wrong()


def test_the_shares_sum_to_one_whatever_a_fit_moves_them_to() -> None:
    bearing: Any = fx.BearingFriction("rotor", bristle=fx.MaxwellSlip(K, [1.0, 2.0, 5.0], C=9.0))
    found = {p.path: p.declaration for p in parameters(bearing)}
    assert found["bristle.ratio"].fit is False
    units = [fx.parameters.rotational_unit(found[f"bristle.{n}"].unit) for n in ("k", "C")]
    assert units == ["N.m/rad", "N.m/s"]
    assert bearing.bristle.share.tolist() == pytest.approx([0.125, 0.25, 0.625])
    after = replace(bearing, {"bristle.ratio": np.array([7.0, 0.5])})
    assert float(jnp.sum(get(after, "bristle").share)) == pytest.approx(1.0)


def test_the_rate_without_modes_is_that_of_the_way() -> None:
    bristle, g = fx.MaxwellSlip(K, [3.0, 2.0, 1.0]), jnp.array(0.8)
    force = jnp.array([0.3, -0.2, 0.1])
    for v in (1e-3, -1e-3):
        end, mean = bristle.moved(jnp.array(v * 1e-4), force, g, g)
        rate = np.asarray(bristle.rate(jnp.array(v), force, g, g))
        assert np.asarray(end - force) == pytest.approx(rate * 1e-4, rel=1e-9)
        assert np.asarray(mean - force) == pytest.approx(rate * 0.5e-4, rel=1e-9)
    beyond = bristle.rate(jnp.array(1.0), bristle.share * g, g, g)
    assert beyond.tolist() == [0.0, 0.0, 0.0]
