"""Modes that end where they begin, for a margin is down already: derivatives by a closed form."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import value_and_jacobian
from frictax.parameters import Positive, Scalar, parameter
from machines import TIGHT


class Pushed(fx.AbstractAxis):
    """A mass of 1 kg under a load that grows: `push` + 3*t [N]."""

    friction: fx.SupportFriction
    push: Scalar = parameter(Positive(), "N", default=2.0)

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return 1.0

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return self.push + 3.0 * t

    def states(self) -> tuple[str, ...]:
        return ("s", "v")


class Handed(fx.AbstractHybridSystem):
    """Falls with speed 1 from y = `high` until it is 0, then its margin is far down: the mode that
    follows lasts no time, and the third rises with speed 5.
    """

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.stack([jnp.array([-1.0, -2.0, 5.0])[mode[0]]])

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.stack([jnp.stack([y[0], y[0] - 1.0, jnp.ones(())])[mode[0]]])

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        return y, mode + 1, jnp.array(0)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [fx.OnSamples(), TIGHT], ids=["on_samples", "adaptive"])
def test_a_load_too_great_for_a_start_at_rest_releases_it_at_the_start_whatever_it_holds(
    engine: Any,
) -> None:
    ts = jnp.linspace(0.0, 1.0, 11)

    def outcome(x: Any) -> Any:
        F, peak, push = x
        contact = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=F), peak=peak)
        axis = Pushed(contact, push=push)
        path = fx.walk(axis, *axis.begin(0.0, [0.0, 0.0]), ts, options=engine)
        return jnp.append(path.ys[-1], path.times[0])

    x = jnp.array([1.0, 1.5, 2.0])
    value, slopes = value_and_jacobian(outcome)(x)
    np.testing.assert_allclose(value, [1.0, 2.5, 0.0], atol=1e-12)
    exact = [[-0.5, 0.0, 0.5], [-1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(slopes, exact, atol=1e-10)
    if engine is TIGHT:
        np.testing.assert_allclose(jax.jit(jax.jacrev(outcome))(x), exact, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [TIGHT, fx.OnSamples()], ids=["adaptive", "on_samples"])
def test_a_mode_of_no_length_ends_with_the_event_that_led_to_it(engine: Any) -> None:
    ts = jnp.linspace(0.0, 1.0, 11)

    def outcome(high: Any) -> Any:
        path = fx.walk(Handed(), high, jnp.array([0]), ts, options=engine)
        return jnp.append(path.times[:2], path.ys[-1])

    value, slopes = value_and_jacobian(outcome)(jnp.array([0.37]))
    np.testing.assert_allclose(value, [0.37, 0.37, 5 * 0.63], rtol=1e-12)
    np.testing.assert_allclose(slopes[:, 0], [1.0, 1.0, -5.0], rtol=1e-10)
