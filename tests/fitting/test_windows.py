"""Fits on windows: starts that are measured or free, gaps, and windows that go on."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.fitting import FitOptions
from frictax.fitting.build_problem import build_problem
from frictax.fitting.problem import simulations
from rigs import AWAY_LAW, TRUE, T, U, block, record

FREE = ["mass.m", "friction.f_pos"]


BOTH = {**TRUE, "mass.m": 1.0}


@pytest.fixture(scope="module")
def seen() -> fx.Record:
    return record(block(), {"mass.s": 1e-4})


@pytest.mark.slow
def test_windows_from_measured_starts_find_mass_and_law_to_a_few_per_cent(seen) -> None:
    """It may end at a kink, where a window's start goes over from stuck to sliding."""
    found = fx.fit(
        block(m=1.2, **AWAY_LAW), seen, free=FREE, objective=fx.Windows(0.7, cutoff=15.0)
    )
    assert found.converged or "search-kink" in {n.code for n in found.notices}
    for path, true in BOTH.items():
        assert found.values[path] == pytest.approx(
            true, rel=0.25 if path.endswith("fexp") else 0.05
        ), found
    assert found.predicted("run").shape == (8, 71, 1)


@pytest.mark.slow
def test_windows_with_free_starts_find_them_within_their_errors(seen) -> None:
    """It may end at a kink, where a window's start goes over from stuck to sliding."""
    found = fx.fit(
        block(m=1.2, **AWAY_LAW),
        seen,
        free=FREE,
        objective=fx.Windows(0.7, cutoff=15.0, free_starts=True),
    )
    for path, true in BOTH.items():
        assert abs(found.values[path] - true) < 4 * found.standard_errors[path], found
    assert found.rms["run"]["mass.s"] == pytest.approx(1e-4, rel=0.15)


def _problem(seen: fx.Record, objective: Any) -> Any:
    options = FitOptions(free=FREE, objective=objective)
    problem, _ = build_problem(block(m=1.2), {"run": seen}, options)
    # With error control the steps depend on the range of the run so far, which is 0 at each window.
    return dataclasses.replace(problem, engine=fx.OnSamples(tolerance=None))


def _left(problem: Any, goes_on: bool = False) -> Any:
    """What is left of a record, a row a sample without the first, as a function of the values."""
    (prepared,) = problem.prepared
    size = None if prepared.rows is None else prepared.rows.shape[1]
    if goes_on:
        prepared = dataclasses.replace(prepared, goes_on=np.arange(prepared.measured.shape[0]) > 0)
    prepared = jax.tree_util.tree_map(jnp.asarray, prepared)  # as where it is compiled
    problem = dataclasses.replace(problem, prepared=(prepared,))

    def left(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        r = problem.residuals(x)
        r = jnp.ravel(r[1:] if size is None else jnp.reshape(r, (-1, size))[:, 1:])[:560]
        return r, r

    return left


def _and_derivatives(problem: Any, goes_on: bool = False) -> tuple[np.ndarray, np.ndarray]:
    slope, value = jax.jit(jax.jacfwd(_left(problem, goes_on), has_aux=True))(
        jnp.asarray(problem.x0)
    )
    return np.asarray(value), np.asarray(slope)


@pytest.mark.slow
def test_windows_that_go_on_are_the_free_run_to_rounding_with_its_derivatives(
    seen, monkeypatch
) -> None:
    windows = _problem(seen, fx.Windows(0.7, cutoff=15.0))
    run = _problem(seen, fx.FreeRun(measured_start=True, cutoff=15.0))
    joined, whole = _and_derivatives(windows, goes_on=True), _and_derivatives(run)
    for one, other in zip(joined, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8 * np.abs(other).max())
    weights = np.sin(np.arange(560.0))
    left = _left(windows, goes_on=True)
    back = jax.jit(jax.grad(lambda x: weights @ left(x)[0]))(jnp.asarray(windows.x0))
    np.testing.assert_allclose(back, weights @ joined[1], rtol=1e-8)
    # One after the other is side by side, and not the run in one piece.
    in_turn = _and_derivatives(windows)
    monkeypatch.setattr(simulations, "in_turn", lambda: False)
    for one, other, far in zip(in_turn, _and_derivatives(windows), joined, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12 * np.abs(other).max())
        assert np.abs(one - far).max() > 1e-3 * np.abs(far).max()


@pytest.mark.slow
def test_windows_say_how_much_of_a_record_with_gaps_they_leave_out(seen) -> None:
    keep = np.ones(T.size, bool)
    keep[[100, 101, 300, 301, 450, 451]] = False
    gaps = fx.Record(T[keep], {"drive": U[keep]}, {"mass.s": seen.outputs["mass.s"][keep]})
    options = FitOptions(free=["mass.m"], objective=fx.Windows(2.0))
    told, none = (
        " ".join(map(str, build_problem(block(), {"run": record}, options)[1]))
        for record in (gaps, seen)
    )
    assert "% of the samples of record 'run' are not used" in told
    assert "Shorter windows" in told
    assert "are not used" not in none


@pytest.mark.slow
def test_a_start_whose_windows_fail_is_refused_with_the_reason_though_a_free_run_would_not_fail():
    """From the model's own start the spring is relaxed and nothing moves; from the measured starts
    it swings.
    """
    parts = {"wall": fx.Fixed(), "spring": fx.Spring("wall", "mass", c=400.0)}
    quiet = np.zeros_like(T)
    seen = record(block(s=0.1, parts=parts), {"mass.s": 1e-5}, u=quiet)
    with pytest.raises(ValueError, match="`fit` cannot start: .* record 'run' fails.*max_events"):
        fx.fit(
            block(parts=parts),
            seen,
            free=["friction.f_pos"],
            objective=fx.Windows(2.0),
            engine=fx.OnSamples(max_events=1),
        )
