"""A block driven through 39 mode changes, against figures found independently at tolerance 1e-10
and beyond.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
import frictax.programs.executables as executables
from machines import stick_slip

ENGINE = fx.Adaptive(rtol=1e-10, atol=1e-10)
# By an embedded Runge-Kutta 5(4) with located events, at 1e-10: x(10), v(10), and dx(10) by
# F_Coulomb, F_prop, F_Stribeck, fexp
X, V = 0.0010542292515, -0.0560716932638
DX = np.array([-0.01764442038, -0.001165522403, -0.01297444391, 2.953553867e-4])


def _end(p: jax.Array) -> jax.Array:
    return fx.simulate(stick_slip(*p), jnp.array([0.0, 10.0]), ENGINE).ys[-1]


@pytest.fixture(scope="module")
def parameters() -> jax.Array:
    return jnp.array([1.0, 0.2, 0.4, 5.0])


def test_it_has_39_mode_changes_and_the_known_end() -> None:
    run = fx.simulate(stick_slip(), jnp.linspace(0.0, 10.0, 1001), ENGINE)
    assert int(run.events.count) == 39
    assert abs(float(run["mass"].s[-1]) - X) <= 1e-8
    assert abs(float(run["mass"].v[-1]) - V) <= 1e-8
    # It alternates between sliding, sticking and sliding the other way.
    assert [int(m) for m in run.events.mode_after[:5]] == [1, 0, -1, 0, 1]


@pytest.mark.slow
def test_forward_and_reverse_mode_give_the_known_derivatives(parameters: jax.Array) -> None:
    forward, reverse = jax.jit(jax.jacfwd(_end))(parameters), jax.jit(jax.jacrev(_end))(parameters)
    assert np.max(np.abs(np.asarray(forward[0]) / DX - 1)) <= 1e-6
    assert np.max(np.abs(np.asarray(reverse[0]) / DX - 1)) <= 1e-6
    assert jnp.max(jnp.abs(forward - reverse)) <= 1e-10


@pytest.mark.slow
def test_vmap_equals_a_loop(parameters: jax.Array) -> None:
    many = parameters * (1 + 0.1 * jnp.sin(jnp.arange(20.0).reshape(5, 4)))
    both = jax.jacfwd(lambda p: (end := _end(p), end), has_aux=True)
    slopes, ends = jax.jit(jax.vmap(both))(many)
    one = jax.jit(both)
    for p, slope, end in zip(many, slopes, ends, strict=True):
        alone, there = one(p)
        assert jnp.max(jnp.abs(end - there)) <= 1e-12
        assert jnp.max(jnp.abs(slope - alone)) <= 1e-10


@pytest.mark.slow
def test_samples_do_not_change_the_run_and_sit_on_it() -> None:
    few = fx.simulate(stick_slip(), jnp.array([0.0, 0.5, 10.0]), ENGINE)
    many = fx.simulate(stick_slip(), jnp.linspace(0.0, 10.0, 20001), ENGINE)
    assert abs(float(few["mass"].s[1] - many["mass"].s[1000])) <= 1e-9
    assert int(many.events.count) == 39
    assert jnp.all(jnp.isfinite(many.ys))
    # While stuck the velocity is 0, not small.
    assert jnp.all(many["mass"].v[many["friction"].mode == int(fx.Mode.STUCK)] == 0.0)


@pytest.mark.slow
def test_no_host_callback_is_in_the_compiled_loop(parameters: jax.Array) -> None:
    lowered = jax.jit(
        jax.jacfwd(lambda p: fx.simulate(stick_slip(*p), jnp.linspace(0.0, 1.0, 11), ENGINE).ys)
    ).lower(parameters)
    assert "callback" not in lowered.as_text()


def test_a_new_parameter_value_does_not_compile_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ts = jnp.linspace(0.0, 10.0, 1001)  # as above
    fx.simulate(stick_slip(F_Coulomb=1.0), ts, ENGINE)
    monkeypatch.setattr(executables, "_lower", lambda *_: pytest.fail("compiled"))
    fx.simulate(stick_slip(F_Coulomb=1.1), ts, ENGINE)
