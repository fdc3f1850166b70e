"""The functions of a machine in exported code: its initial state, its step, and its outputs."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from frictax.annotations import Checked
from frictax.engine.on_samples.one_step import Step, take_one_step
from frictax.engine.options import OnSamples
from frictax.engine.result import Result
from frictax.engine.reused import Reused, model_of
from frictax.engine.system import AbstractHybridSystem
from frictax.engine.walk import walk
from frictax.fitting import FitResult
from frictax.fitting.problem.setup import (
    Instrument,
    driven,
    state_names,
    variable_at,
    variable_names,
    variable_unit,
)
from frictax.fitting.result.units import unit_of
from frictax.mechanism.gears import LossyGear
from frictax.mechanism.hybrid import MechanicalSystem
from frictax.mechanism.layout import turns_about
from frictax.mechanism.mechanism import Mechanism
from frictax.parameters import (
    UnknownName,
    as_seconds,
    is_not_numeric,
    parameters,
    rotational_unit,
)
from frictax.signals import AbstractSignal, Sampled
from frictax.simulation import simulate_once
from frictax.text import suggestion

from ..fitted_machine import FittedMachine
from .lowering import Program

METHODS = "flow guard jump deadline tick longest_step_at implicit_step sound safe_step".split()
MOST_STEPS = 64  # largest number of time steps between samples, see `_steps`
SHARPER = 100.0  # ratio allowed error : tolerance, and ratio tolerance : reference tolerance
WORST = 1e-3  # largest error of an exported machine, relative to the range of a state
HOLDS = ("held", "linear")
INSTRUMENT = "gain offset drift delay".split()  # order of an instrument's numbers in `p`
LISTED = 32  # [entries] largest array whose entries the code lists by name
LONG_AGO = -1e30  # [s] time of the only value of a held input; it is before all samples


@dataclasses.dataclass(frozen=True)
class Number:
    """A number of the machine: an entry of the vector `p` of the code. `lower`, `upper`: interval
    of a fitted number; `listed`: False for entries of long tables, which the code does not name.
    """

    name: str
    unit: str
    value: float
    lower: float = -np.inf
    upper: float = np.inf
    listed: bool = True


class NumberTree:
    """All real numbers of a machine or part as one vector (`numbers`), not only its parameters."""

    def __init__(self, model: Any) -> None:
        leaves, self._structure = jax.tree_util.tree_flatten_with_path(model)
        turns = bool(getattr(type(model), "rotational", False))  # True for a rotating contact
        says = (lambda p: rotational_unit(p.declaration.unit)) if turns else unit_of({}, model)
        units = {p.path: says(p) for p in parameters(model)}
        self._leaves, self._first = list[Any](), list[int | None]()
        self.numbers = list[Number]()
        for path, leaf in leaves:
            value = np.asarray(leaf) if eqx.is_array_like(leaf) else None
            is_real = value is not None and np.issubdtype(value.dtype, np.floating)
            self._leaves.append(leaf if value is None else jnp.asarray(value))
            self._first.append(len(self.numbers) if is_real else None)
            if value is None or not is_real:
                continue
            steps = [str(getattr(k, "name", getattr(k, "idx", getattr(k, "key", k)))) for k in path]
            if steps[0] == "parts" and isinstance(model, Mechanism):
                steps = [model.names[int(steps[1])], *steps[2:]]
            name = ".".join(steps)
            for i in np.ndindex(value.shape):
                place = f"[{', '.join(map(str, i))}]" if i else ""
                number = Number(name + place, units.get(name, ""), float(value[i]))
                is_listed = value.size <= LISTED
                self.numbers.append(dataclasses.replace(number, listed=is_listed))

    def with_numbers(self, p: Any) -> Any:
        """Return the model with the entries of `p` as its numbers."""
        leaves = [
            leaf if first is None else p[first : first + leaf.size].reshape(leaf.shape)
            for leaf, first in zip(self._leaves, self._first, strict=True)
        ]
        return jax.tree.unflatten(self._structure, leaves)

    @property
    def values(self) -> jax.Array:
        """The numbers of the original model, as one vector."""
        return jnp.asarray([number.value for number in self.numbers])


class MachineCode:
    """A machine for export, with all its real numbers in one vector `p`.

    - `numbers`: the entries of `p`: all numbers of the machine, its signals and its instruments.
    - `outputs`: name -> unit of the variables that the code returns, as their sensors show them.
    - `inputs`: input that the caller sets -> "held" or "linear", the index in `p` of the first time
      of its signal, and that of the first value.
    - `instruments`: channel, such as "outputs.mass.s" -> index in `p` of its gain; offset, drift
      and delay are the next entries. `delayed`: the channels whose delay is not 0.
    - `substeps`: number of time steps between two samples; `error`: largest difference of a state
      from the reference simulation, relative to the range of this state.
    - `ts`: times of the samples [s]; `first`: the first time; `ranges`: range of each state in the
      reference simulation; `states`, `modes`: number of states and of modes.
    """

    def __init__(
        self,
        source: Mechanism | AbstractHybridSystem | FitResult,
        ts: Any,
        engine: Checked[OnSamples],
        inputs: Checked[Mapping[str, str]],
        outputs: Sequence[str] | None,
    ) -> None:
        _check(engine, inputs, outputs)
        if not jax.config.read("jax_enable_x64"):
            raise ValueError(
                "An export needs numbers of 64 bits, and JAX is set to 32. Write"
                ' `jax.config.update("jax_enable_x64", True)` before it.'
            )
        machine, ts, instruments, intervals = _machine_of(source, ts)
        self.ts = ts
        self.options = dataclasses.replace(engine, tolerance=None, substeps=1, finer=())
        self.first = float(ts[0])
        signals = {
            name: Sampled([LONG_AGO], [0.0], hold=True)
            if how == "held"
            else Sampled([self.first, self.first + 1.0], [0.0, 0.0])
            for name, how in inputs.items()
        }
        system = driven(machine, jnp.asarray(ts), signals, False)
        self.machine = system.mechanism if isinstance(system, MechanicalSystem) else system
        self.tree = NumberTree(self.machine)
        if outputs:
            _check_outputs(self.machine, self.first, outputs)
        self.substeps, self.error, self.ranges = _steps(machine, jnp.asarray(ts), engine)
        y, mode = self.system(self.tree.values).start(jnp.asarray(self.first))
        self.states, self.modes = jnp.size(y), jnp.size(mode)
        names = default_outputs(self.machine) if outputs is None else outputs
        self.outputs = {name: variable_unit(self.machine, name) for name in names}
        known = [number.name for number in self.tree.numbers]

        def first_time(name: str) -> int | None:
            """Return the index in `p` of the first sample time of the input `name`, or None."""
            times = (i for i, x in enumerate(known) if x.endswith(".times[0]"))
            return next((i for i in times if known[i].startswith(f"{name}.")), None)

        self.inputs = dict[str, tuple[str, int, int]]()
        channels = {f"outputs.{n}": f"outputs.{n}" for n in self.outputs}
        for name, how in inputs.items():
            time: Any = first_time(name)
            value = known.index(known[time].replace(".times[0]", ".values[0]"))
            self.inputs[name] = how, time, value
            # The record may have another name for this input, such as "drive" for "drive.f".
            for channel in (x for x in instruments if x.startswith("inputs.")):
                if first_time(channel.removeprefix("inputs.")) == time:
                    channels[f"inputs.{name}"] = channel
        self.instruments = dict[str, int]()
        self.delayed = list[str]()
        numbers = list(self.tree.numbers)
        for channel in sorted(channels):
            if channels[channel] in instruments:
                self.instruments[channel] = len(numbers)
                unit = self.outputs.get(channel.removeprefix("outputs."), "")
                numbers += _numbers_of(channels[channel], instruments[channels[channel]], unit)
                self.delayed += [channel] * bool(numbers[-1].value)
        self.numbers = [
            dataclasses.replace(n, lower=min(low, n.value), upper=max(high, n.value))
            for n in numbers
            for low, high in [intervals.get(n.name, (-np.inf, np.inf))]
        ]

    @property
    def p(self) -> jax.Array:
        return jnp.asarray([number.value for number in self.numbers])

    def system(self, p: Any, named: bool = False) -> AbstractHybridSystem:
        return _system(self.tree.with_numbers(p), named)

    def start(self, p: Any, t: Any) -> tuple[Any, Any]:
        system = self.system(p)
        y, mode = system.start(t)
        y, mode = jnp.asarray(y, t.dtype), jnp.asarray(mode, jnp.int32)
        return system.prepare_start(t, y, mode, None)

    def step(self, p: Any, t: Any, t_end: Any, y: Any, mode: Any) -> Step:
        system = Reused(model_of(self.system(p), None))
        return take_one_step(system, self.options, t, t_end, y, mode)

    def read(self, p: Any, t: Any, y: Any, mode: Any) -> list[Any]:
        """Return the outputs at time `t`, as their sensors show them. For a sensor with a delay,
        the caller must apply delay and drift, because delay and drift need outputs at other times.
        """
        system = self.system(p, named=True)
        shown = list[Any]()
        for name in self.outputs:
            x = jnp.asarray(variable_at(system, name, t, y, mode), t.dtype)
            at = self.instruments.get(f"outputs.{name}")
            if at is not None:
                x = p[at] * x + p[at + 1]
                if f"outputs.{name}" not in self.delayed:
                    x = x + p[at + 2] * (t - self.first)
            shown.append(x)
        return shown

    @functools.cached_property
    def program(self) -> Program:
        """The functions `fx_start`, `fx_step`, `fx_outputs` and all functions that they call."""
        program = Program(METHODS, ["step_with_events"], copied=["y", "mode"])
        t, y = jnp.asarray(0.0), jnp.zeros(self.states)
        moment = {"p": self.p, "t": t, "y": y, "mode": jnp.zeros(self.modes, jnp.int32)}
        whole = {"p": self.p, "t": t, "t_end": t + 1.0, "y": y, "mode": moment["mode"]}
        program.trace("fx_start", self.start, {"p": self.p, "t": t})
        program.trace("fx_step", self.step, whole)
        program.trace("fx_outputs", self.read, moment)
        return program


def _system(machine: Any, named: bool = False) -> AbstractHybridSystem:
    if not isinstance(machine, Mechanism):
        return machine
    system = MechanicalSystem(machine)
    return system if named else system.structure_only


def _check(engine: Any, inputs: Any, outputs: Any) -> None:
    if not isinstance(engine, OnSamples):
        raise ValueError(
            "`engine` must be an `OnSamples`, whose steps the code takes, got"
            f" {type(engine).__name__}."
        )
    if not isinstance(inputs, Mapping):
        raise ValueError(f'`inputs` must be a dict such as {{"drive.f": "held"}}, got {inputs!r}.')
    if isinstance(outputs, str):
        raise ValueError(
            f"`outputs` must be a list of names, got {outputs!r}. Write [{outputs!r}]."
        )
    for name, how in inputs.items():
        if how not in HOLDS:
            raise ValueError(
                f"The input {name!r} must be one of {', '.join(HOLDS)}, got {how!r}: how it goes"
                " from one sample to the next."
            )


def _check_outputs(machine: Any, first: float, names: Sequence[str]) -> None:
    """Raise `UnknownName` if a name is not a variable of the machine at time `first` [s]."""
    known = variable_names(_system(machine, named=True), jnp.asarray(first))
    for name in names:
        if name not in known:
            raise UnknownName(
                f"`outputs` names {name!r}, which is no variable of the"
                f" machine.{suggestion(name, known)} It has: {', '.join(known)}."
            )


class _Source(NamedTuple):
    """The machine to export and its sample times `ts` [s]. For a fit, `instruments` contains the
    instrument of each channel, and `intervals` the interval of each fitted parameter (by name).
    """

    machine: Any
    ts: np.ndarray
    instruments: Mapping[str, Instrument] = {}
    intervals: Mapping[str, tuple[float, float]] = {}


def _machine_of(source: Any, ts: Any) -> _Source:
    if not isinstance(source, FitResult):
        if not isinstance(source, Mechanism | AbstractHybridSystem):
            raise TypeError(
                "The machine must be a `Mechanism`, an `AbstractHybridSystem` or a fit of one, got"
                f" a {type(source).__name__}."
            )
        return _Source(source, _times(source, ts))
    if source.of_sweep:
        raise ValueError(
            "The fit of a sweep is a law and not a machine. For a controller take"
            " `fx.to_feedforward(found)`."
        )
    fitted = FittedMachine.of(source)
    if fitted.ts is None:
        raise ValueError("The fit has no record of a motion, so there is no machine to export.")
    record, fitted_paths = source.records[fitted.label], [e.path for e in source.estimates]
    channels = {f"inputs.{n}": fitted.setup.inputs.at(n) for n in record.inputs}
    channels |= {f"outputs.{n}": fitted.setup.outputs.at(n) for n in record.outputs}
    instruments = {
        channel: instrument
        for channel, instrument in channels.items()
        if _fields(instrument) != _fields(Instrument())
        or any(path.startswith(f"{channel}.") for path in fitted_paths)
    }
    ends = {
        e.name.removesuffix(f"@{fitted.label}"): (e.lower, e.upper)
        for e in source.estimates
        if np.isfinite(e.lower + e.upper)
    }
    return _Source(
        fitted.machine,
        fitted.ts if ts is None else _times(fitted.machine, ts),
        instruments,
        ends,
    )


def _fields(instrument: Instrument) -> list[float]:
    return [float(getattr(instrument, name)) for name in INSTRUMENT]


def _numbers_of(channel: str, instrument: Instrument, unit: str) -> list[Number]:
    units = "1", unit, f"{unit}/s" if unit else "", "s"
    rows = zip(INSTRUMENT, units, _fields(instrument), strict=True)
    return [Number(f"{channel}.{name}", unit, value) for name, unit, value in rows]


def _times(machine: Any, ts: Any) -> np.ndarray:
    """Return the sample times: `ts`, or the times of the longest `Sampled` signal."""
    if ts is None:
        is_signal = lambda x: isinstance(x, AbstractSignal)  # noqa: E731
        signals = jax.tree.leaves(machine, is_leaf=is_signal)
        sampled = [x.times for x in signals if isinstance(x, Sampled) and np.size(x.times) > 1]
        if not sampled:
            raise ValueError(
                "The machine has no measured drive (`Sampled`), so the times of its samples are"
                " not known. Give them as `ts`, such as ts=np.linspace(0.0, 10.0, 2001)."
            )
        ts = max(sampled, key=np.size)
    try:
        given = as_seconds(ts) if is_not_numeric(ts) else ts
        if is_not_numeric(given):
            raise TypeError
        ts = np.asarray(given, float)
    except (TypeError, ValueError):
        raise ValueError(f"`ts` must be times [s], got {ts!r}.") from None
    if ts.ndim != 1 or ts.size < 2 or not np.all(np.diff(ts) > 0):
        raise ValueError(
            f"`ts` must be at least two times [s] that increase, got an array of shape {ts.shape}."
        )
    return ts


def _steps(machine: Any, ts: jax.Array, engine: OnSamples) -> tuple[int, float, np.ndarray]:
    """Return the smallest sufficient number of equal time steps between samples, its error, and the
    ranges of all states. The error is the largest difference of a state from a reference
    simulation, relative to the range of this state.
    """
    tolerance = float(engine.tolerance or OnSamples().tolerance or 0.0)
    allowed, last = SHARPER * tolerance, ts.size - 1

    def run(times: Any, **options: Any) -> Any:
        how = dataclasses.replace(engine, **options)
        if isinstance(machine, Mechanism):
            return simulate_once(machine, jnp.asarray(times), how).path
        y, mode = machine.start(ts[0])
        return walk(machine, y, mode, jnp.asarray(times), options=how)

    @jax.jit
    def states(times: Any) -> Any:
        return run(times, tolerance=None, substeps=1).ys

    accurate = run(ts, tolerance=tolerance / SHARPER)
    if not bool(accurate.result == Result.successful):
        raise ValueError(
            "The run of the machine is not complete and accurate, so it is not exported."
            f" {Result[accurate.result]}"
        )
    exact = np.asarray(accurate.ys)
    ranges = np.ptp(exact, axis=0)

    def distance(substeps: int) -> float:
        if substeps == engine.substeps:
            ys = np.asarray(run(ts, tolerance=None, substeps=substeps).ys)
        else:  # One compiled program with a fixed number of times simulates any number of steps.
            at = np.arange(last * MOST_STEPS + 1) / substeps
            beyond = np.maximum(at - last, 0.0) * (ts[-1] - ts[-2])
            times = np.interp(at, np.arange(last + 1), ts) + beyond
            ys = np.asarray(states(times))[: last * substeps + 1 : substeps]
        apart = np.max(np.abs(ys - exact) / np.where(ranges > 0, ranges, 1.0), initial=0.0)
        return float(apart) if np.isfinite(apart) else np.inf

    low, high = engine.substeps - 1, engine.substeps
    error = distance(high)
    while error > allowed and 2 * high <= MOST_STEPS:
        low, high = high, 2 * high
        error = distance(high)
    if error > WORST:
        raise ValueError(
            f"With {high} steps between two samples the run is still {error:.1e} of the range of a"
            " state away from an accurate one. Give `ts` more samples."
        )
    while error <= allowed and high - low > 1:
        middle = (low + high) // 2
        tried = distance(middle)
        if tried > allowed:
            low = middle
        else:
            high, error = middle, tried
    return high, error, ranges


def default_outputs(machine: Any) -> list[str]:
    """Return the names of all named states, and of the friction of each contact of a mechanism."""
    names = [name for name in state_names(machine) if name]
    if not isinstance(machine, Mechanism):
        return names
    lay = MechanicalSystem(machine).layout
    contacts = [machine.names[c.part] for c in (*lay.contacts, *lay.bristles)]
    friction = {None: "f", False: "f", True: "tau"}
    return names + [
        f"{name}.{'tauLoss' if isinstance(machine[name], LossyGear) else friction[turns]}"
        for name in contacts
        for turns in [turns_about(machine, name)]
    ]
