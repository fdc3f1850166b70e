"""The functions of a machine that the code contains: its start, its step, and its outputs."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from frictax.engine.on_samples.one_step import Step, take_one_step
from frictax.engine.options import OnSamples
from frictax.engine.result import Result
from frictax.engine.reused import Reused, model_of
from frictax.engine.system import AbstractHybridSystem
from frictax.engine.walk import walk
from frictax.fitting.problem.setup import driven, state_names, variable_at
from frictax.mechanism.gears import LossyGear
from frictax.mechanism.hybrid import MechanicalSystem
from frictax.mechanism.layout import turns_about
from frictax.mechanism.mechanism import Mechanism
from frictax.mechanism.variable_table import VARIABLES
from frictax.parameters import parameters
from frictax.signals import AbstractSignal, Sampled

from .lowering import Program

METHODS = "flow guard jump deadline tick longest_step implicit_step sound safe_step".split()
MOST_STEPS = 64  # between two samples; a machine that needs more should be sampled faster
SHARPER = 100.0  # the accurate run has a tolerance that is smaller by this factor
WORST = 1e-3  # [range of a state] error of a run that is still exported
HOLDS = ("held", "linear")
LONG_AGO = -1e30  # [s] time of the one value of a held input


@dataclasses.dataclass(frozen=True)
class Number:
    """A number of the machine that the code keeps in its vector `p`."""

    name: str
    unit: str
    value: float
    lower: float = -np.inf
    upper: float = np.inf


class NumberTree:
    """A machine or a part as a vector of numbers: its parameters and all other real numbers in it,
    in `numbers`.
    """

    def __init__(self, model: Any) -> None:
        leaves, self._structure = jax.tree_util.tree_flatten_with_path(model)
        units = {p.path: p.declaration.unit for p in parameters(model)}
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
                self.numbers.append(Number(name + place, units.get(name, ""), float(value[i])))

    def with_numbers(self, p: Any) -> Any:
        """Return the model with other numbers."""
        leaves = [
            leaf if first is None else p[first : first + leaf.size].reshape(leaf.shape)
            for leaf, first in zip(self._leaves, self._first, strict=True)
        ]
        return jax.tree.unflatten(self._structure, leaves)


class MachineCode:
    """A machine whose numbers are one vector `p`.

    - `numbers`: the entries of `p`, as `Number`: its parameters and the numbers of its drives.
    - `outputs`: names and units of the variables that the code returns.
    - `inputs`: by name, how an input from outside goes from sample to sample, and the index in `p`
      of its first time and of its first value.
    - `substeps`, `error`: steps from one sample to the next, and the largest distance of their run
      from an accurate one, relative to the range of each state.
    - `states`, `modes`: how many entries state and mode have.
    """

    def __init__(
        self,
        machine: Mechanism | AbstractHybridSystem,
        ts: Any,
        engine: OnSamples,
        inputs: Mapping[str, str],
        outputs: Sequence[str] | None,
    ) -> None:
        for name, how in inputs.items():
            if how not in HOLDS:
                raise ValueError(
                    f"The input {name!r} must be one of {', '.join(HOLDS)}, got {how!r}: how it"
                    " goes from one sample to the next."
                )
        ts = _times(machine, ts)
        self.substeps, self.error = _steps(_system(machine), jnp.asarray(ts), engine)
        self.options = dataclasses.replace(engine, tolerance=None, substeps=1, finer=())
        first = float(ts[0])
        signals = {
            name: Sampled([LONG_AGO], [0.0], hold=True)
            if how == "held"
            else Sampled([first, first + 1.0], [0.0, 0.0])
            for name, how in inputs.items()
        }
        system = driven(machine, jnp.asarray(ts), signals, False)
        self.machine = system.mechanism if isinstance(system, MechanicalSystem) else system
        self.tree = NumberTree(self.machine)
        self.numbers = self.tree.numbers
        y, mode = self.start(self.p, jnp.asarray(first))
        self.states, self.modes = y.size, mode.size
        names = _default_outputs(self.machine) if outputs is None else outputs
        self.outputs = {name: _unit(self.machine, name) for name in names}
        known = [number.name for number in self.numbers]
        self.inputs = dict[str, tuple[str, int, int]]()
        for name, how in inputs.items():
            path = next(x for x in known if x.startswith(name) and x.endswith(".times[0]"))
            value = known.index(path.replace(".times[0]", ".values[0]"))
            self.inputs[name] = how, known.index(path), value

    @property
    def p(self) -> jax.Array:
        return jnp.asarray([number.value for number in self.numbers])

    def system(self, p: Any, named: bool = False) -> AbstractHybridSystem:
        """Return the machine with the numbers `p`."""
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
        """Return the outputs at one moment."""
        system = self.system(p, named=True)
        return [jnp.asarray(variable_at(system, n, t, y, mode), t.dtype) for n in self.outputs]

    @functools.cached_property
    def program(self) -> Program:
        """The functions `fx_start`, `fx_step` and `fx_outputs` with what they call."""
        program = Program(METHODS, shared=["step_with_events"])
        t, y = jnp.asarray(0.0), jnp.zeros(self.states)
        moment = {"p": self.p, "t": t, "y": y, "mode": jnp.zeros(self.modes, jnp.int32)}
        whole = {"p": self.p, "t": t, "t_end": t + 1.0, "y": y, "mode": moment["mode"]}
        program.trace("fx_start", self.start, {"p": self.p, "t": t}, ["p"])
        program.trace("fx_step", self.step, whole, ["p"], ["y", "mode"])
        program.trace("fx_outputs", self.read, moment, ["p"], ["y", "mode"])
        program.keep_called(["fx_start", "fx_step", "fx_outputs"])
        return program


def _system(machine: Any, named: bool = False) -> AbstractHybridSystem:
    if not isinstance(machine, Mechanism):
        return machine
    system = MechanicalSystem(machine)
    return system if named else system.structure_only


def _times(machine: Any, ts: Any) -> np.ndarray:
    """Return the times of the samples: `ts`, or those of the longest measured drive."""
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
    ts = np.asarray(ts, float)
    if ts.ndim != 1 or ts.size < 2 or not np.all(np.diff(ts) > 0):
        raise ValueError(
            f"`ts` must be at least two increasing times [s], got an array of shape {ts.shape}."
        )
    return ts


def _steps(system: Any, ts: jax.Array, engine: OnSamples) -> tuple[int, float]:
    """Return how many equal steps from sample to sample keep the run near an accurate one, and the
    largest distance between the two, relative to the range of a state.
    """
    tolerance = float(engine.tolerance or OnSamples().tolerance or 0.0)
    allowed = SHARPER * tolerance

    def run(**options: Any) -> Any:
        y, mode = system.start(ts[0])
        path = walk(system, y, mode, ts, options=dataclasses.replace(engine, **options))
        if not bool(path.result == Result.successful):
            raise ValueError(
                "The machine does not run to the last of the times, so it is not exported."
                f" {Result[path.result]}"
            )
        return np.asarray(path.ys)

    accurate = run(tolerance=tolerance / SHARPER)
    ranges = np.ptp(accurate, axis=0)

    def distance(substeps: int) -> float:
        apart = np.max(np.abs(run(tolerance=None, substeps=substeps) - accurate), axis=0)
        return float(np.max(apart / np.where(ranges > 0, ranges, 1.0), initial=0.0))

    low, high = engine.substeps - 1, engine.substeps
    error = distance(high)
    while error > allowed and high < MOST_STEPS:
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
    return high, error


def _default_outputs(machine: Any) -> list[str]:
    """Return the states with a name, and the friction of each contact of a mechanism."""
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


def _unit(machine: Any, name: str) -> str:
    part, _, variable = name.rpartition(".")
    if variable not in VARIABLES:
        return ""
    row = VARIABLES[variable]
    turns = isinstance(machine, Mechanism) and part in machine.names and turns_about(machine, part)
    return row.rotational_unit if turns else row.unit
