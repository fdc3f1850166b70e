"""The machine from one sample of a record to the next, as an observer asks for it."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from frictax.engine import Engine, walk
from frictax.fitting.problem.setup import driven, moved_to, variable_at
from frictax.mechanism import AbstractHybridSystem, MechanicalSystem
from frictax.parameters import Modes, State, get, replace
from frictax.parameters.arrays import constant


class Wanders(eqx.Module):
    """What of a machine is not known.

    - `names`: parameters that are estimated with the state, `q` (p,): how they drift, per root of
      a second; `low`, `high` (p,): the ends of their domains.
    - `noisy`: inputs and parameters with white noise about what they are, `r` (w,): its size times
      the root of a second; `noisy_low`, `noisy_high`: domains of these.
    """

    q: Float[Array, " p"]
    low: Float[Array, " p"]
    high: Float[Array, " p"]
    r: Float[Array, " w"]
    noisy_low: Float[Array, " w"]
    noisy_high: Float[Array, " w"]
    names: tuple[str, ...] = eqx.field(static=True)
    noisy: tuple[str, ...] = eqx.field(static=True)

    @property
    def size(self) -> int:
        """How many numbers with variance 1 an interval draws."""
        return len(self.noisy) + len(self.names)


class Interval(eqx.Module):
    """A machine under one interval of a record.

    What is estimated is x: the state of the machine, then the parameters of `wanders`. `t` and
    `inputs` hold the interval's two ends; `contacts`: how many of the modes are those of contacts.
    """

    machine: Any
    wanders: Wanders
    t: Float[Array, " 2"]
    inputs: dict[str, Float[Array, " 2"]]
    states: tuple[str, ...] = eqx.field(static=True)
    hold: bool = eqx.field(static=True)
    contacts: int = eqx.field(static=True)

    def system(self, x: Array, draw: Array | None = None) -> AbstractHybridSystem:
        """The machine with the parameters of `x`, under the noise that was drawn."""
        w = self.wanders
        values = {
            name: _inside(x[len(self.states) + i], w.low[i], w.high[i])
            for i, name in enumerate(w.names)
        }
        inputs = dict(self.inputs)
        if draw is not None:
            force = draw * w.r / jnp.sqrt(self._length)
            for i, name in enumerate(w.noisy):
                if name in inputs:
                    inputs[name] = inputs[name] + force[i]
                else:
                    value = values[name] if name in values else get(self.machine, name)
                    values[name] = _inside(value + force[i], w.noisy_low[i], w.noisy_high[i])
        return driven(replace(self.machine, values), self.t, inputs, self.hold)

    def begun(self, x: Array, draw: Array | None = None) -> tuple[Any, State, Modes]:
        """The machine, its state and mode where the interval begins: what is at rest there and
        held has no velocity, whatever `x` is moved by.
        """
        system, y = self.system(x, draw), x[: len(self.states)]
        if isinstance(system, MechanicalSystem):
            system = moved_to(system, dict(zip(self.states, y, strict=True)))
            return system, *system.start(self.t[0])
        return system, *system.begin(self.t[0], y)

    def end(self, x: Array, draw: Array, engine: Engine) -> tuple[Array, PyTree]:
        """x where the interval ends, by the exact run through its events, with numbers `draw` of
        variance 1 for what is not known; how the run ended.
        """
        x, draw = self._drifted(x, draw)
        system, y, mode = self.begun(x, draw)
        path = walk(system, y, mode, self.t, options=engine)
        return self._with(path.ys[-1], x), path.result

    def end_in_mode(self, x: Array, draw: Array) -> Array:
        """x where the interval ends as if the mode in which it begins went on, by one step of
        Runge and Kutta.
        """
        y = x[: len(self.states)]
        x, draw = self._drifted(x, draw)
        system, mode, (t0, t1) = self.system(x, draw), constant(self.begun(x, draw)[2]), self.t
        h = t1 - t0
        rate = lambda t, y: system.flow(t, y, mode, None)  # noqa: E731
        k1 = rate(t0, y)
        k2 = rate(t0 + h / 2, y + h / 2 * k1)
        k3 = rate(t0 + h / 2, y + h / 2 * k2)
        k4 = rate(t1, y + h * k3)
        return self._with(y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), x)

    def shown(self, x: Array, mode: Modes, names: tuple[str, ...]) -> Float[Array, " c"]:
        """The outputs `names` where the interval begins."""
        system, y = self.system(x), x[: len(self.states)]
        return jnp.stack([variable_at(system, name, self.t[0], y, mode) for name in names])

    def margins(self, x: Array, mode: Modes) -> Float[Array, " g"]:
        """How far the mode is from its ends, where the interval begins."""
        return self.system(x).guard(self.t[0], x[: len(self.states)], mode, None)

    def change(self, x: Array, mode: Modes) -> Float[Array, " g"]:
        """By how much the margins change until the interval ends, if the mode lasts."""
        system, (t0, t1), y = self.system(x), self.t, x[: len(self.states)]
        after = y + (t1 - t0) * system.flow(t0, y, mode, None)
        return system.guard(t1, after, mode, None) - system.guard(t0, y, mode, None)

    @property
    def _length(self) -> Array:
        length = self.t[1] - self.t[0]
        return jnp.where(length > 0, length, 1.0)  # after the last sample comes nothing

    def _drifted(self, x: Array, draw: Array) -> tuple[Array, Array]:
        n, k = len(self.states), len(self.wanders.noisy)
        by = draw[k:] * self.wanders.q * jnp.sqrt(self._length)
        return jnp.concatenate([x[:n], x[n:] + by]), draw[:k]

    def _with(self, y: Array, x: Array) -> Array:
        w, n = self.wanders, len(self.states)
        return jnp.concatenate([y, _inside(x[n:], w.low, w.high)])


def _inside(value: Array, low: Array, high: Array) -> Array:
    """In its domain; on its edge it keeps its derivative, so that it can come back."""
    return value + constant(jnp.clip(value, low, high) - value)
