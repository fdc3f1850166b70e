"""`Sensitive`: a hybrid system whose state includes derivatives with respect to parameters."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from frictax.parameters import Integer, Modes, Number, State, Values

from .implicit import rosenbrock2
from .reused import Reused, model_of
from .system import DEADLINE, AbstractHybridSystem


def jvp_columns(
    function: Callable[..., Any], at: tuple[Any, ...], along: tuple[Any, ...]
) -> tuple[Any, Any]:
    """Return the value of `function` at the point `at`, and its derivatives in several directions.
    The last axis of the arrays in `along` and of the derivatives is the direction."""
    one = lambda *along: jax.jvp(function, at, along)  # noqa: E731
    return jax.vmap(one, in_axes=-1, out_axes=(None, -1))(*along)


class AbstractFamily(eqx.Module):
    """A function from parameter values to a hybrid system with these values."""

    @abc.abstractmethod
    def system(self, x: Float[Array, " p"]) -> AbstractHybridSystem:
        """Return the system with the parameter values `x`."""

    def staying(self, mode: Modes, args: PyTree) -> "AbstractFamily":
        """Return the family of all `system(x).staying(mode, args)`; by default this family
        itself."""
        return self


class Sensitive(AbstractHybridSystem):
    """A hybrid system that also integrates S (n, p), the derivatives of its n states with respect
    to p parameters.

    Within a mode with y' = f (`flow`), the derivatives satisfy ``S' = (df/dy) S + df/dx``. At an
    event the event function h falls to 0, or a deadline is reached. A parameter shifts the time of
    the event by ``dtau = -(dh/dy S + dh/dx)/(dh/dy f + dh/dt)``. After the event, the derivatives
    are ``S+ = dg(dtau, S + f dtau, dx) - f+ dtau`` (saltation matrix). Here dg is the derivative of
    `jump` with respect to time, state and parameters, and f+ is f after the event. Because S is
    part of the state vector, a first derivative of a run is a second derivative of the original
    system.

    The state vector contains the system's state (n,), S row by row (n, p), dtau of the last event
    (p,), and the time of this event. A second event at the same time, such as a breakaway at a
    switch, has the same shift dtau.

    **Source:** M. A. Aizerman, F. R. Gantmacher, Quarterly Journal of Mechanics and Applied
    Mathematics 11(4), 1958.
    """

    family: AbstractFamily
    x: Float[Array, " p"]
    n: int = eqx.field(static=True)

    @property
    def size(self) -> int:
        """The length of this system's state vector."""
        return self.n + (self.n + 1) * self.x.shape[0] + 1

    def parts(self, y: Float[Array, " m"]) -> tuple[State, Float[Array, "n p"]]:
        """Return the state of the original system (n,), and its derivatives S (n, p)."""
        n, p = self.n, self.x.shape[0]
        return y[:n], y[n : n + n * p].reshape(n, p)

    def jvp_by_parameters(
        self, function: Callable[..., Any], S: Float[Array, "n p"], *at: Any, dt: Any = None
    ) -> tuple[Any, Any]:
        """Return `function(system, t, y)` and its derivatives with respect to the parameters (last
        axis). `at`: time t and state y. `S`, `dt`: derivatives of y and t with respect to the
        parameters; dt = None means 0."""
        still = jnp.zeros(S.shape[1], S.dtype) if dt is None else dt
        of = lambda t, y, x: function(self.family.system(x), t, y)  # noqa: E731
        return jvp_columns(of, (*at, self.x), (still, S, jnp.eye(S.shape[1], dtype=S.dtype)))

    def flow(self, t: Number, y: State, mode: Modes, args: PyTree) -> State:
        own, S = self.parts(y)
        rate, d_rate = self.jvp_by_parameters(
            lambda system, *at: system.flow(*at, mode, args), S, t, own
        )
        return jnp.concatenate([rate, jnp.ravel(d_rate), jnp.zeros(S.shape[1] + 1, y.dtype)])

    def guard(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " g"]:
        return self._now.guard(t, y[: self.n], mode, args)

    def jump(
        self, t: Number, y: State, mode: Modes, fired: Integer, args: PyTree
    ) -> tuple[State, Modes, Integer]:
        (own, S), shift = self.parts(y), self._shift(t, y, mode, fired, args)
        before = self._now.flow(t, own, mode, args)
        jumped = lambda system, *at: system.jump(*at, mode, fired, args)  # noqa: E731
        _, new_mode, status = jumped(self._now, t, own)
        after, d_after = self.jvp_by_parameters(
            lambda *at: jumped(*at)[0], S + before[:, None] * shift, t, own, dt=shift
        )
        S = d_after - self._now.flow(t, after, new_mode, args)[:, None] * shift
        return jnp.concatenate([after, jnp.ravel(S), shift, t[None]]), new_mode, status

    def _shift(self, t: Number, y: State, mode: Modes, fired: Integer, args: PyTree) -> Values:
        """Return the derivative (p,) of the event time `t` with respect to each parameter."""
        own, S = self.parts(y)
        last, at = y[-1 - self.x.shape[0] : -1], y[-1]

        def margin(system: AbstractHybridSystem, t: Number, y: State) -> Number:
            g = system.guard(t, y, mode, args)
            return jnp.sum(jnp.where(jnp.arange(g.shape[0]) == fired, g, 0.0))

        g, d_g = self.jvp_by_parameters(margin, S, t, own)
        along = (jnp.ones_like(t), self._now.flow(t, own, mode, args))
        rate = jax.jvp(lambda *at: margin(self._now, *at), (t, own), along)[1]
        falls = rate < 0
        own_shift = -d_g / jnp.where(falls, rate, -1.0)
        # `reached` is false if the event function was already negative after the last event. Events
        # whose times differ by less than `simultaneous` [s] count as simultaneous.
        simultaneous = 1e-9 * (1.0 + jnp.abs(t))
        reached = -g / jnp.where(falls, rate, -1.0) >= -simultaneous
        follows = (t - at <= simultaneous) & ~(falls & reached)
        deadline = lambda system, t, y: system.deadline(mode, args).astype(y.dtype)  # noqa: E731
        _, d_deadline = self.jvp_by_parameters(deadline, S, t, own)
        shift = jnp.where(follows, last, jnp.where(falls, own_shift, 0.0))
        return jnp.where(fired == DEADLINE, d_deadline, shift)

    def deadline(self, mode: Modes, args: PyTree) -> Number:
        return self._now.deadline(mode, args)

    def is_smooth(self, args: PyTree) -> bool:
        return self._now.is_smooth(args)

    def judged_states(self, args: PyTree) -> int | None:
        return self.n

    def staying(self, mode: Modes, args: PyTree) -> "Sensitive":
        return Sensitive(self.family.staying(mode, args), self.x, self.n)

    def known_switches(self, args: PyTree, on_samples: bool) -> int:
        return self._now.known_switches(args, on_samples)

    def longest_step_at(self, t: Number, mode: Modes, span: Number, args: PyTree) -> Number | None:
        return self._now.longest_step_at(t, mode, span, args)

    def tick(self, t: Number, mode: Modes, args: PyTree) -> Modes:
        return self._now.tick(t, mode, args)

    def start(self, t: Number) -> tuple[State, Modes]:
        own, mode = self._now.start(t)
        _, S = self.jvp_by_parameters(
            lambda system, t, _: system.start(t)[0], jnp.zeros((self.n, self.x.shape[0])), t, own
        )
        nothing = jnp.zeros(self.x.shape[0])
        return jnp.concatenate([own, jnp.ravel(S), nothing, t[None] - 1.0]), mode

    # The following methods are for stiff motions, where S results from differentiating each step.

    def is_stiff(self, args: PyTree) -> bool:
        return self._now.is_stiff(args)

    def swings(self, args: PyTree) -> bool:
        return self._now.swings(args)

    def implicit_step(
        self, t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree
    ) -> State | None:
        def step(system: AbstractHybridSystem, t: Number, y: State) -> State:
            return rosenbrock2(Reused(model_of(system, args)), mode, t, t1, y)

        return self._step_with_derivatives(step, t0, y0)

    def sound(
        self, t0: Number, y0: State, t1: Number, y1: State, mode: Modes, args: PyTree
    ) -> Bool[Array, ""]:
        return self._now.sound(t0, y0[: self.n], t1, y1[: self.n], mode, args)

    def safe_step(self, t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree) -> State:
        return self._step_with_derivatives(
            lambda system, t, y: system.safe_step(t, t1, y, mode, args), t0, y0
        )

    def _step_with_derivatives(self, step: Callable[..., Any], t0: Number, y0: State) -> State:
        own, S = self.parts(y0)
        after, d_after = self.jvp_by_parameters(step, S, t0, own)
        return jnp.concatenate([after, jnp.ravel(d_after), y0[self.n * (1 + S.shape[1]) :]])

    @property
    def _now(self) -> AbstractHybridSystem:
        return self.family.system(self.x)
