"""A system of the user's own under a sampled drive, walked on samples."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from sampled import PULL, TS


class Sledge(fx.AbstractHybridSystem):
    """A mass m with Coulomb friction F that `args["pull"]` moves; mode -1, 0, 1 as of a friction
    contact.
    """

    m: Any
    F: Any

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        a = (args["pull"] - mode[0] * self.F) / self.m
        return jnp.stack([y[1], jnp.where(mode[0] == 0, 0.0, a)])

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        stuck, eps = mode[0] == 0, 1e-13
        forward = jnp.where(stuck, self.F - args["pull"], mode[0] * y[1]) + eps
        return jnp.stack([forward, jnp.where(stuck, self.F + args["pull"] + eps, jnp.inf)])

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        stuck, push = mode[0] == 0, args["pull"]
        left = jnp.where(fired == 0, 1, jnp.where(fired == 1, -1, 0))
        stopped = jnp.where(push > self.F, 1, jnp.where(push < -self.F, -1, 0))
        new = jnp.where(fired < 0, mode[0], jnp.where(stuck, left, stopped))
        v = jnp.where((fired < 0) | stuck, y[1], 0.0)
        return jnp.stack([y[0], v]), mode.at[0].set(new), jnp.array(0)


def walked(m: Any, F: Any, signal: Any, ts: Any, begins: int = 0) -> Any:
    driven = fx.Driven(Sledge(jnp.asarray(m), jnp.asarray(F)), pull=signal)
    y, mode = driven.with_pieces(jnp.zeros(2), jnp.full(1, begins), ts[0])
    return fx.walk(driven, y, mode, ts, options=fx.OnSamples())


@pytest.mark.slow
@pytest.mark.parametrize("hold", [False, True])
def test_it_equals_the_same_machine_of_elements(hold: bool) -> None:
    signal = fx.Sampled(TS, PULL, hold=hold)
    path = walked(1.2, 1.5, signal, TS, begins=1)
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.2),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.5)),
        drive=fx.Force("mass", signal),
    )
    run = fx.simulate(machine, TS, fx.OnSamples())
    # It breaks away at the start, which is not on the path.
    times = run.events.time[1 : int(run.events.count)]
    changed = np.flatnonzero(
        np.any(path.before[:, :1] != path.after[:, :1], axis=1)
        & (np.arange(1000) < int(path.count))
    )
    assert len(changed) == len(times) >= 4
    assert jnp.max(jnp.abs(path.ys - run.ys)) <= 1e-12
    assert jnp.max(jnp.abs(path.times[changed] - times)) <= 1e-11
    assert jnp.array_equal(path.modes[:, 0], run["friction"].mode)


@pytest.mark.slow
def test_a_sampled_ramp_breaks_it_away_at_the_closed_form_with_its_derivatives() -> None:
    ts = jnp.linspace(0.0, 2.0, 41)

    def end(p: jax.Array) -> jax.Array:
        path = walked(p[0], p[1], fx.Sampled(ts, 2.0 * ts), ts)
        return jnp.concatenate([path.ys[-1], path.times[:1]])

    def closed(p: jax.Array) -> jax.Array:
        since = 2.0 - p[1] / 2.0  # from 2 t = F on
        return jnp.stack([since**3 / (3 * p[0]), since**2 / p[0], p[1] / 2.0])

    at = jnp.array([1.3, 1.51])
    assert np.allclose(end(at), closed(at), atol=1e-12)
    assert np.allclose(jax.jacfwd(end)(at), jax.jacfwd(closed)(at), atol=1e-10)
    assert np.allclose(jax.jacrev(end)(at), jax.jacfwd(closed)(at), atol=1e-10)


class Kicked(fx.AbstractHybridSystem):
    """A mass that every jump of its drive kicks by 1 m/s."""

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.stack([y[1], 0.0 * y[1]])

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.ones(1)

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        return y.at[1].add(1.0), mode, jnp.array(0)


@pytest.mark.slow
def test_at_a_sample_at_which_a_switch_changes_the_state_the_state_after_it_is_reported() -> None:
    ts = jnp.linspace(0.0, 1.0, 5)

    def states(start: Any) -> jax.Array:
        driven = fx.Driven(Kicked(), pull=fx.Step(startTime=start))
        y, mode = driven.with_pieces(jnp.zeros(2), jnp.zeros(1, int), ts[0])
        return fx.walk(driven, y, mode, ts, options=fx.OnSamples()).ys

    assert np.allclose(states(0.5)[:, 1], [0, 0, 1, 1, 1])
    # s = t - start from the kick on; also at the sample of the kick.
    for mode in (jax.jacfwd, jax.jacrev):
        assert np.allclose(jax.jit(mode(states))(0.5)[:, 0], [0, 0, -1, -1, -1])


class Cart(fx.AbstractAxis):
    """1 kg that a motor drives."""

    friction: fx.SupportFriction

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return 1.0

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return args["motor"]

    def states(self) -> tuple[str, ...]:
        return ("s", "v")


@pytest.mark.slow
def test_the_mode_of_the_inner_machine_is_taken_and_another_is_refused_in_one_sentence() -> None:
    cart = Cart(fx.SupportFriction("cart", f_pos=fx.Coulomb(F_Coulomb=1.0)))
    driven = fx.Driven(cart, motor=fx.Step(height=2.0, startTime=1.0))
    ts = jnp.array([0.0, 2.0])
    (y, own), whole = cart.begin(0.0, [0.0, 0.0]), driven.begin(0.0, [0.0, 0.0])[1]
    for mode in (own, whole):
        # From the step on 1 N is left of the motor's 2 N.
        np.testing.assert_allclose(fx.walk(driven, y, mode, ts).ys[-1], [0.5, 1.0], atol=1e-9)
    twice = driven.with_pieces(y, whole, ts[0])[1]
    with pytest.raises(ValueError, match=r"`mode` must hold the mode of `Cart` .*, got 3 entries"):
        fx.walk(driven, y, twice, ts)
    sledge = fx.Driven(Sledge(jnp.array(1.0), jnp.array(1.0)), pull=0.5)
    with pytest.raises(ValueError, match=r"the mode of `Sledge` .* \(pull\), got 1 entry\. Write"):
        fx.walk(sledge, y, jnp.zeros(1, int), ts)


def test_a_pulse_of_a_function_is_not_stepped_over() -> None:
    pulse = fx.Function(lambda t: 10.0 * jnp.exp(-(((t - 5.3) / 0.05) ** 2)), dtmax=0.02)
    driven = fx.Driven(Sledge(jnp.array(1.0), jnp.array(1.0)), pull=pulse)
    y, mode = driven.with_pieces(jnp.zeros(2), jnp.zeros(1, int), jnp.array(0.0))
    path = fx.walk(driven, y, mode, jnp.array([0.0, 10.0]))
    assert int(path.count) >= 2  # It breaks away and stops again.
    assert float(path.ys[-1, 0]) == pytest.approx(0.31286, abs=1e-5)
