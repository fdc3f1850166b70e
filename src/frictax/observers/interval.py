"""The machine from one sample of a record to the next: exact run, outputs and margins."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from frictax.engine import Engine, walk
from frictax.fitting.problem.setup import driven, moved_to, variable_at
from frictax.mechanism import AbstractHybridSystem, MechanicalSystem
from frictax.parameters import Modes, State, get, replace
from frictax.parameters.arrays import constant


class Uncertainties(eqx.Module):
    """The uncertain parameters and inputs of a machine.

    - `names` (p): parameters that are estimated with the state; `q` (p,): their drift per root of a
      second; `low`, `high` (p,): bounds of their domains.
    - `noisy` (w): inputs and parameters with white noise about their values; `r` (w,): its size
      times the root of a second; `noisy_low`, `noisy_high` (w,): bounds of their domains.
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
        """Number of standard normal variables of an interval."""
        return len(self.noisy) + len(self.names)


class Interval(eqx.Module):
    """A machine during one interval of a record.

    The vector x has the state of the machine, then the parameters of `uncertain`. `t` and `inputs`
    have the two ends of the interval; `contacts`: number of contacts among the modes.
    """

    machine: Any
    uncertain: Uncertainties
    t: Float[Array, " 2"]
    inputs: dict[str, Float[Array, " 2"]]
    states: tuple[str, ...] = eqx.field(static=True)
    hold: bool = eqx.field(static=True)
    contacts: int = eqx.field(static=True)

    def system(self, x: Array, draw: Array | None = None) -> AbstractHybridSystem:
        """Return the machine with the parameters of x, under the noise `draw`."""
        w = self.uncertain
        values = {
            name: _clip(x[len(self.states) + i], w.low[i], w.high[i])
            for i, name in enumerate(w.names)
        }
        inputs = dict(self.inputs)
        if draw is not None:
            noise = draw * w.r / jnp.sqrt(self._length)
            for i, name in enumerate(w.noisy):
                if name in inputs:
                    inputs[name] = inputs[name] + noise[i]
                else:
                    value = values[name] if name in values else get(self.machine, name)
                    values[name] = _clip(value + noise[i], w.noisy_low[i], w.noisy_high[i])
        return driven(replace(self.machine, values), self.t, inputs, self.hold)

    def start(self, x: Array, draw: Array | None = None) -> tuple[Any, State, Modes]:
        """Return the machine, its state and its mode at the start of the interval.

        Stuck bodies have no velocity, also if x is perturbed.
        """
        system, y = self.system(x, draw), x[: len(self.states)]
        if isinstance(system, MechanicalSystem):
            system = moved_to(system, dict(zip(self.states, y, strict=True)))
            return system, *system.start(self.t[0])
        return system, *system.begin(self.t[0], y)

    def end(self, x: Array, draw: Array, engine: Engine) -> tuple[Array, PyTree]:
        """Return x at the end of the interval, by the exact run through its events, and the result
        code of the run. `draw`: standard normal variables for the uncertainties.
        """
        x, draw = self._add_drift(x, draw)
        system, y, mode = self.start(x, draw)
        path = walk(system, y, mode, self.t, options=engine)
        return self._join(path.ys[-1], x), path.result

    def end_in_mode(self, x: Array, draw: Array) -> Array:
        """Return x at the end of the interval in the mode of its start, by one Runge-Kutta step."""
        y = x[: len(self.states)]
        x, draw = self._add_drift(x, draw)
        system, mode, (t0, t1) = self.system(x, draw), constant(self.start(x, draw)[2]), self.t
        h = t1 - t0
        rate = lambda t, y: system.flow(t, y, mode, None)  # noqa: E731
        k1 = rate(t0, y)
        k2 = rate(t0 + h / 2, y + h / 2 * k1)
        k3 = rate(t0 + h / 2, y + h / 2 * k2)
        k4 = rate(t1, y + h * k3)
        return self._join(y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), x)

    def outputs(self, x: Array, mode: Modes, names: tuple[str, ...]) -> Float[Array, " c"]:
        """Return the outputs `names` at the start of the interval."""
        system, y = self.system(x), x[: len(self.states)]
        return jnp.stack([variable_at(system, name, self.t[0], y, mode) for name in names])

    def margins(self, x: Array, mode: Modes) -> Float[Array, " g"]:
        """Return the margins of the mode at the start of the interval."""
        return self.system(x).guard(self.t[0], x[: len(self.states)], mode, None)

    def margin_change(self, x: Array, mode: Modes) -> Float[Array, " g"]:
        """Return the change of the margins over the interval if the mode lasts."""
        system, (t0, t1), y = self.system(x), self.t, x[: len(self.states)]
        after = y + (t1 - t0) * system.flow(t0, y, mode, None)
        return system.guard(t1, after, mode, None) - system.guard(t0, y, mode, None)

    @property
    def _length(self) -> Array:
        length = self.t[1] - self.t[0]
        return jnp.where(length > 0, length, 1.0)  # The last sample has no interval.

    def _add_drift(self, x: Array, draw: Array) -> tuple[Array, Array]:
        n, k = len(self.states), len(self.uncertain.noisy)
        by = draw[k:] * self.uncertain.q * jnp.sqrt(self._length)
        return jnp.concatenate([x[:n], x[n:] + by]), draw[:k]

    def _join(self, y: Array, x: Array) -> Array:
        w, n = self.uncertain, len(self.states)
        return jnp.concatenate([y, _clip(x[n:], w.low, w.high)])


def _clip(value: Array, low: Array, high: Array) -> Array:
    """Clip a value to its domain, with derivative 1, so that it can return from the boundary."""
    return value + constant(jnp.clip(value, low, high) - value)
