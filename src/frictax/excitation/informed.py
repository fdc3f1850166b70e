"""What a run tells of parameters, as a state of the run."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from frictax.engine.sensitive import AbstractFamily, Sensitive, jvp_columns
from frictax.engine.system import DEADLINE
from frictax.fitting.problem.setup import Setup, driven, signal_at, variable_at
from frictax.mechanism import AbstractHybridSystem
from frictax.parameters import Integer, Modes, Number, Numbers, State, get, replace
from frictax.signals import AbstractSignal


class UnderTest(AbstractFamily):
    """A machine on its test setup under given inputs, tables or signals, by the parameters at
    `paths`.
    """

    setup: Setup
    t: Numbers
    inputs: Mapping[str, Any]
    paths: tuple[str, ...] = eqx.field(static=True)
    outputs: tuple[str, ...] = eqx.field(static=True)
    hold: bool = eqx.field(static=True)

    def values(self) -> Float[Array, " p"]:
        """What the setup has at the paths, entry by entry."""
        return jnp.concatenate(
            [jnp.ravel(jnp.asarray(get(self.setup, path), dtype=float)) for path in self.paths]
        )

    def with_values(self, x: Float[Array, " p"]) -> Setup:
        """The setup with these values at the paths."""
        values, first = {}, 0
        for path in self.paths:
            shape = jnp.shape(get(self.setup, path))
            size = int(np.prod(shape))
            values[path] = jnp.reshape(x[first : first + size], shape)
            first += size
        return replace(self.setup, values)

    def system(self, x: Float[Array, " p"]) -> AbstractHybridSystem:
        setup = self.with_values(x)
        t = jnp.asarray(self.t)
        acting = {
            name: u
            if isinstance(u, AbstractSignal)
            else setup.inputs.at(name)(t, u, t[0], self._late("inputs", name))
            for name, u in self.inputs.items()
        }
        return driven(setup.machine, self.t, acting, self.hold)

    def staying(self, mode: Modes, args: PyTree) -> "UnderTest":
        if any(path.startswith("inputs.") for path in self.paths):
            return self  # what acts is to be differentiated by the parameters
        system = self.system(self.values()).staying(mode, args)
        acting = {name: signal_at(system, name) for name in self.inputs}
        return dataclasses.replace(self, inputs=acting)

    def _late(self, kind: str, name: str) -> bool:
        return f"{kind}.{name}.delay" in self.paths

    def shown(self, x: Float[Array, " p"], t: Number, y: State, mode: Modes) -> Float[Array, " c"]:
        """What the sensors show at one moment."""
        system, setup = self.system(x), self.with_values(x)
        rate = None
        shown = []
        for name in self.outputs:
            value = variable_at(system, name, t, y, mode)
            sensor = setup.outputs.at(name)
            if self._late("outputs", name):
                if rate is None:
                    rate = system.flow(t, y, mode, None)
                _, speed = jax.jvp(
                    lambda t, y, name=name: variable_at(system, name, t, y, mode),
                    (t, y),
                    (jnp.ones_like(t), rate),
                )
                value = value - speed * (sensor.delay - jax.lax.stop_gradient(sensor.delay))
            shown.append(sensor.gain * value + sensor.offset + sensor.drift * (t - self.t[0]))
        return jnp.stack(shown)


class Informed(AbstractHybridSystem):
    """A `Sensitive` system with the Fisher information of what its sensors show: ``F' = sum over
    the outputs of w S_o S_o'``, S_o the derivatives of an output by the parameters.

    `weight` (c,): what one second of an output tells where its derivative is 1, rate/sd**2.
    `restarts` (k,): times at which runs begin anew from where the machine is, as the windows of a
    record do: S is 0 there.

    State: that of `Sensitive`, then the lower triangle of F, row by row.
    """

    sensitive: Sensitive
    weight: Float[Array, " c"]
    restarts: Float[Array, " k"]

    @property
    def _under_test(self) -> UnderTest:
        return self.sensitive.family  # pyright: ignore[reportReturnType]

    def matrix(self, y: State) -> Float[Array, "p p"]:
        """F of a state."""
        p = self.sensitive.x.shape[0]
        lower = jnp.zeros((p, p), y.dtype).at[np.tril_indices(p)].set(y[self.sensitive.size :])
        return lower + jnp.tril(lower, -1).T

    def _own(self, mode: Int[Array, " k"]) -> tuple[Modes, Integer | None]:
        return (mode[:-1], mode[-1]) if self.restarts.shape[0] else (mode, None)

    def _restart(self, k: Integer | None) -> Number:
        times = jnp.concatenate([self.restarts, jnp.full(1, jnp.inf)])
        return jnp.asarray(jnp.inf) if k is None else times[k]

    def flow(self, t: Number, y: State, mode: Modes, args: PyTree) -> State:
        sensitive, (own, _) = self.sensitive, self._own(mode)
        state = y[: sensitive.size]
        return jnp.concatenate([sensitive.flow(t, state, own, args), self.gains(t, state, own)])

    def gains(self, t: Number, state: State, own: Modes) -> Float[Array, " k"]:
        """The rates of the lower triangle of F, by the state and mode of the `sensitive` system."""
        sensitive = self.sensitive
        now, S = sensitive.parts(state)
        family, x = self._under_test, sensitive.x
        shown = lambda y, x: family.shown(x, t, y, own)  # noqa: E731
        _, told = jvp_columns(shown, (now, x), (S, jnp.eye(x.shape[0], dtype=state.dtype)))
        rate = jnp.einsum("c,ci,cj->ij", self.weight, told, told)
        return rate[np.tril_indices(x.shape[0])]

    def known_switches(self, args: PyTree, on_samples: bool) -> int:
        return self.sensitive.known_switches(args, on_samples) + self.restarts.shape[0]

    def guard(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " g"]:
        return self.sensitive.guard(t, y[: self.sensitive.size], self._own(mode)[0], args)

    def jump(
        self, t: Number, y: State, mode: Modes, fired: Integer, args: PyTree
    ) -> tuple[State, Modes, Integer]:
        sensitive, (own, k) = self.sensitive, self._own(mode)
        state = y[: sensitive.size]
        after, new, status = sensitive.jump(t, state, own, fired, args)
        if k is not None:
            n, end = sensitive.n, sensitive.size - 1
            anew = (fired == DEADLINE) & (self._restart(k) <= sensitive.deadline(own, args))
            fresh = jnp.concatenate([state[:n], jnp.zeros(end - n, y.dtype), t[None]])
            after = jnp.where(anew, fresh, after)
            new = jnp.concatenate(
                [jnp.where(anew, own, new), (k + anew.astype(k.dtype))[None]]
            ).astype(jnp.int32)
            status = jnp.where(anew, 0, status)
        return jnp.concatenate([after, y[sensitive.size :]]), new, status

    def deadline(self, mode: Modes, args: PyTree) -> Number:
        own, k = self._own(mode)
        return jnp.minimum(self.sensitive.deadline(own, args), self._restart(k))

    def is_smooth(self, args: PyTree) -> bool:
        return self.sensitive.is_smooth(args)

    def is_stiff(self, args: PyTree) -> bool:
        return self.sensitive.is_stiff(args)

    def swings(self, args: PyTree) -> bool:
        return self.sensitive.swings(args)

    def implicit_step(
        self, t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree
    ) -> State | None:
        return self._stepped(self.sensitive.implicit_step, t0, t1, y0, mode, args)

    def sound(
        self, t0: Number, y0: State, t1: Number, y1: State, mode: Modes, args: PyTree
    ) -> Bool[Array, ""]:
        size, own = self.sensitive.size, self._own(mode)[0]
        return self.sensitive.sound(t0, y0[:size], t1, y1[:size], own, args)

    def safe_step(self, t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree) -> State:
        return self._stepped(self.sensitive.safe_step, t0, t1, y0, mode, args)

    def _stepped(
        self, step: Callable[..., Any], t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree
    ) -> State:
        """By a step of the motion, and what is told by its two ends."""
        size, own = self.sensitive.size, self._own(mode)[0]
        after = step(t0, t1, y0[:size], own, args)
        told = self.gains(t0, y0[:size], own) + self.gains(t1, after, own)
        return jnp.concatenate([after, y0[size:] + 0.5 * (t1 - t0) * told])

    def longest_step(self, mode: Modes, span: Number, args: PyTree) -> Number | None:
        return self.sensitive.longest_step(self._own(mode)[0], span, args)

    def staying(self, mode: Modes, args: PyTree) -> "Informed":
        sensitive = self.sensitive.staying(self._own(mode)[0], args)
        return Informed(sensitive, self.weight, self.restarts)

    def tick(self, t: Number, mode: Modes, args: PyTree) -> Modes:
        own, k = self._own(mode)
        own = self.sensitive.tick(t, own, args)
        return own if k is None else jnp.concatenate([own, k[None]])

    def start(self, t: Number) -> tuple[State, Modes]:
        y, mode = self.sensitive.start(t)
        p = self.sensitive.x.shape[0]
        y = jnp.concatenate([y, jnp.zeros(p * (p + 1) // 2, y.dtype)])
        if self.restarts.shape[0]:
            mode = jnp.concatenate([mode, jnp.zeros(1, jnp.int32)])
        return y, mode
