"""Write the JavaScript functions with which a page simulates a machine and its instruments, as a
fit does. The loop that calls these functions for each sample is in templates/simulate.js.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from frictax.engine import OnSamples
from frictax.engine.on_samples.control import PARTS
from frictax.engine.on_samples.one_step import StepControl, begin_control, take_controlled_step
from frictax.engine.reused import Reused, model_of
from frictax.export.code.languages import JavaScript
from frictax.export.code.lowering import Program
from frictax.export.code.machine import METHODS
from frictax.fitting.problem.readings import seen_in
from frictax.fitting.problem.setup import Setup, driven, moved_to, perfect, variable_at
from frictax.mechanism import MechanicalSystem
from frictax.parameters import get
from frictax.signals import Sampled


@dataclasses.dataclass(frozen=True)
class Channels:
    """Properties of a record's channels (inputs and outputs) for the simulation.

    - `inputs`: name -> True if the input is held between samples; `outputs`: names of outputs.
    - `starts`: names of the states with a measured initial value; `as_read`: True to use measured
      initial values as recorded, False to correct them by the inverse of the sensor.
    - `delayed`: the channels that may have a delay other than 0.
    """

    inputs: Mapping[str, bool]
    outputs: tuple[str, ...]
    starts: tuple[str, ...] = ()
    as_read: bool = False
    delayed: frozenset[str] = frozenset()


class SimulationCode:
    """The functions of a simulation. `javascript` traces each function by JAX and writes its code.

    **Arguments:** `setup_at(x)`: function that returns the `Setup` (machine and instruments).

    The vector `p` contains all real numbers of the setup. The vector `u` contains two sample times
    [s], and for each input its values at these times.
    """

    def __init__(
        self, setup_at: Callable[[Any], Setup], x: Any, channels: Channels, engine: OnSamples
    ) -> None:
        self.channels, self.engine = channels, engine
        self.x = jnp.asarray(x, float)
        self._setup_at = setup_at
        self.u = jnp.asarray([0.0, 1.0] + [0.0] * (2 * len(channels.inputs)))
        real, self._rest = self._split(self.x)
        self._leaves, self._structure = jax.tree.flatten(real)

    def _with_signals(self, setup: Setup, u: Any = None) -> Setup:
        """Return the setup whose machine has the inputs between two samples in `u`."""
        u = self.u if u is None else u
        signals = {
            name: Sampled(u[:2], u[2 + 2 * i : 4 + 2 * i], hold=hold)
            for i, (name, hold) in enumerate(self.channels.inputs.items())
        }
        system = driven(setup.machine, u[:2], signals, False)
        machine = system.mechanism if isinstance(system, MechanicalSystem) else system
        return dataclasses.replace(setup, machine=machine)

    def _split(self, x: Any) -> tuple[Any, Any]:
        """Return the real numbers of `setup_at(x)`, and the remaining content of this setup."""

        def is_real(a: Any) -> bool:
            return eqx.is_inexact_array(a) or isinstance(a, float | np.floating)

        return eqx.partition(self._with_signals(self._setup_at(x)), is_real)

    def _setup(self, p: Any) -> Setup:
        leaves, first = list[Any](), 0
        for leaf in self._leaves:
            first, begin = first + jnp.size(leaf), first
            leaves.append(p[begin:first].reshape(jnp.shape(leaf)))
        return eqx.combine(jax.tree.unflatten(self._structure, leaves), self._rest)

    def machine(self) -> Any:
        """Return the machine with the parameters `self.x` as a hybrid system."""
        return self._system(self.numbers(self.x), self.u)

    def _system(self, p: Any, u: Any) -> Any:
        return driven(self._with_signals(self._setup(p), u).machine, u[:2], {}, False)

    def _reuse(self, system: Any) -> Reused:
        is_mechanism = isinstance(system, MechanicalSystem)
        return Reused(model_of(system.structure_only if is_mechanism else system, None))

    def numbers(self, x: Any) -> Any:
        return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(self._split(x)[0])])

    def delays(self, p: Any) -> list[Any]:
        setup, channels = self._setup(p), self.channels
        sensors = [setup.inputs.at(n) for n in channels.inputs]
        sensors += [setup.outputs.at(n) for n in channels.outputs]
        return [jnp.asarray(sensor.delay, float) for sensor in sensors]

    def acting(self, p: Any, since: Any, read: Any) -> list[Any]:
        """Return the inputs that act on the machine for recorded values `read`, without delays.
        `since` [s]: time since the start of the record.
        """
        setup = self._setup(p)
        named = enumerate(self.channels.inputs)
        return [_read_by_sensor(setup.inputs.at(n), since, read[i]) for i, n in named]

    def sensor_readings(self, p: Any, since: Any, read: Any) -> list[Any]:
        """Return the values that sensors without delay show for the true outputs `read`."""
        setup = self._setup(p)
        named = enumerate(self.channels.outputs)
        return [_read_by_sensor(setup.outputs.at(n), since, read[i]) for i, n in named]

    def begin(self, p: Any, u: Any, t: Any, since: Any, read: Any) -> tuple[Any, ...]:
        """Return state, error control and mode at the initial time `t` of a record or window.
        `read`: measured initial values; `since` [s]: time since the start of the record.
        """
        setup, system = self._setup(p), self._system(p, u)
        start = dict[str, Any]()
        for i, name in enumerate(self.channels.starts):
            of, order = seen_in(name, self.channels.outputs)
            sensor = setup.outputs.at(of) if setup.outputs.has(of) else perfect()
            start[name] = read[i]
            if not self.channels.as_read:
                integral = get(setup.machine, name) if order < 0 else 0.0
                start[name] = sensor.invert(since[i], read[i], 0.0, order) + integral
        system = moved_to(system, start)
        y, mode = system.start(t)
        if start and not isinstance(system, MechanicalSystem):
            states = enumerate(system.states())
            y, mode = system.begin(t, jnp.stack([start.get(name, y[i]) for i, name in states]))
        reused = self._reuse(system)
        y, mode = jnp.asarray(y, float), jnp.asarray(mode, jnp.int32)
        y, mode = reused.prepare_start(t, y, mode)
        width, start, ranges, inverse = begin_control(reused, self.engine, y)
        return y, start, ranges, inverse, mode, width

    def step(self, p: Any, u: Any, step: Any, y: Any, mode: Any, control: Any) -> Any:
        """Return the results of one time step, and the error control for the next step."""
        reused = self._reuse(self._system(p, u))
        taken, after = take_controlled_step(reused, self.engine, step, y, mode, control)
        return *taken, after.width, after.ranges, after.inverse

    def outputs(self, p: Any, u: Any, t: Any, y: Any, mode: Any) -> list[Any]:
        """Return the true outputs of the machine, without the effect of its sensors."""
        system = self._system(p, u)
        names, states = self.channels.outputs, system.states()
        values = [
            y[states.index(name)] if name in states else variable_at(system, name, t, y, mode)
            for name in names
        ]
        return [jnp.asarray(value, float) for value in values]

    def javascript(self) -> str:
        """Return a JavaScript expression: an object with all functions.

        **Raises:** `CannotBeWritten` for an operation that cannot be written in JavaScript.
        """
        copied, channels = ["y", "mode", "start", "ranges", "inverse"], self.channels
        program = Program(METHODS, ["step_with_events"], copied)
        x, u, t, p = self.x, self.u, jnp.asarray(0.0), self.numbers(self.x)
        width, names = jnp.array(PARTS, jnp.int32), {"inputs": channels.inputs}
        names |= {"outputs": channels.outputs, "starts": channels.starts}
        read = {name: jnp.zeros(len(some)) for name, some in names.items()}
        y, start, _, _, mode, _ = jax.eval_shape(self.begin, p, u, t, *[read["starts"]] * 2)
        y, start, mode = (jnp.zeros(a.shape, a.dtype) for a in (y, start, mode))
        here = {"p": p, "given": u, "t": t}
        step = {**here, "end": t + 1.0, "slack": t, "y": y, "mode": mode, "width": width}
        step |= {"start": start, "ranges": start, "inverse": start}

        def take(p: Any, u: Any, *at: Any) -> Any:
            return self.step(p, u, at[:3], at[3], at[4], StepControl(*at[5:]))

        functions: dict[str, tuple[Any, dict[str, Any]]] = {
            "numbers": (self.numbers, {"x": x}),
            "delays": (self.delays, {"p": p}),
            "acting": (self.acting, {"p": p, "since": t, "read": read["inputs"]}),
            "begin": (self.begin, {**here, "since": read["starts"], "read": read["starts"]}),
            "step": (take, step),
            "outputs": (self.outputs, {**here, "y": y, "mode": mode}),
            "shown": (self.sensor_readings, {"p": p, "since": t, "read": read["outputs"]}),
        }
        for name, (function, arguments) in functions.items():
            program.trace(f"fx_{name}", function, arguments)
        known = {function.name: function for function in program.functions}
        members = [
            f"{name}:{{call:fx_{name},"
            + ",".join(f"{x}:fx_{name}_{x}" for x in known[f"fx_{name}"].sizes)
            + "}"
            for name in functions
        ]
        of = [seen_in(name, channels.outputs)[0] for name in channels.starts]
        sensors = () if channels.as_read else channels.outputs
        facts = {
            "outputs": len(channels.outputs),
            "states": y.size,
            "modes": mode.size,
            "judged": start.size,
            "late": [
                [f"{kind}.{name}" in channels.delayed for name in names[kind]]
                for kind in ("inputs", "outputs")
            ],
            # For each initial value: index of the output whose sensor is inverted, or -1
            "starts": [channels.outputs.index(n) if n in sensors else -1 for n in of],
        }
        members.append(f"facts:{json.dumps(facts)}")
        text = JavaScript().print(program).strip()
        return f"(function(){{'use strict';\n{text}\nreturn{{{','.join(members)}}}}})()"


def _read_by_sensor(instrument: Any, since: Any, read: Any) -> Any:
    """Return what an instrument without delay shows for a value, `since` [s] after the start."""
    return instrument(since[None], read[None], 0.0, delayed=False)[0]
