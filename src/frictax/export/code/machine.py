"""The functions of a machine that the code contains: its start, its step, and what sensors see."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from frictax.engine.on_samples.one_step import Step, take_one_step
from frictax.engine.options import OnSamples
from frictax.engine.reused import Reused, model_of
from frictax.engine.system import AbstractHybridSystem
from frictax.mechanism.hybrid import MechanicalSystem
from frictax.mechanism.mechanism import Mechanism
from frictax.parameters import parameters

from .lowering import Program

METHODS = "flow guard jump deadline tick longest_step implicit_step sound safe_step".split()


class MachineCode:
    """A machine whose numbers are one vector `p`.

    - `names`, `units`, `values`: of the entries of `p`: the parameters of the machine, and the
      numbers in its drives.
    - `states`, `modes`: how many entries state and mode have.
    """

    def __init__(self, machine: Mechanism | AbstractHybridSystem, options: OnSamples) -> None:
        self.machine, self.options = machine, options
        leaves, self._structure = jax.tree_util.tree_flatten_with_path(machine)
        units = {p.path: p.declaration.unit for p in parameters(machine)}
        self._leaves, self._first = [], list[int | None]()
        self.names, self.units, self.values = list[str](), list[str](), list[float]()
        for path, leaf in leaves:
            number = np.asarray(leaf) if eqx.is_array_like(leaf) else None
            self._leaves.append(leaf if number is None else jnp.asarray(number))
            if number is None or not np.issubdtype(number.dtype, np.floating):
                self._first.append(None)
                continue
            self._first.append(len(self.values))
            name = self._name(path)
            self.values += number.reshape(-1).tolist()
            self.units += [units.get(name, "")] * number.size
            self.names += [
                name + (f"[{', '.join(map(str, i))}]" if i else "")
                for i in np.ndindex(number.shape)
            ]
        y, mode = self.start(jnp.asarray(self.values), jnp.asarray(0.0))
        self.states, self.modes = y.size, mode.size

    def _name(self, path: Any) -> str:
        steps = [str(getattr(k, "name", getattr(k, "idx", getattr(k, "key", k)))) for k in path]
        if steps[0] == "parts" and isinstance(self.machine, Mechanism):
            steps = [self.machine.names[int(steps[1])], *steps[2:]]
        return ".".join(steps)

    def system(self, p: Any) -> AbstractHybridSystem:
        """Return the machine with the numbers `p`."""
        leaves = [
            leaf if first is None else p[first : first + leaf.size].reshape(leaf.shape)
            for leaf, first in zip(self._leaves, self._first, strict=True)
        ]
        machine = jax.tree.unflatten(self._structure, leaves)
        if isinstance(machine, Mechanism):
            return MechanicalSystem(machine).structure_only
        return machine

    def start(self, p: Any, t: Any) -> tuple[Any, Any]:
        system = self.system(p)
        y, mode = system.start(t)
        y, mode = jnp.asarray(y, t.dtype), jnp.asarray(mode, jnp.int32)
        return system.prepare_start(t, y, mode, None)

    def step(self, p: Any, t: Any, end: Any, y: Any, mode: Any) -> Step:
        system = Reused(model_of(self.system(p), None))
        return take_one_step(system, self.options, t, end, y, mode)

    def program(self) -> Program:
        """Return the functions `fx_start` and `fx_step` with what they call."""
        program = Program(METHODS, shared=["step_with_events"])
        p, t = jnp.asarray(self.values), jnp.asarray(0.0)
        y, mode = jnp.zeros(self.states), jnp.zeros(self.modes, jnp.int32)
        program.trace("fx_start", self.start, {"p": p, "t": t}, arrays=["p"])
        program.trace(
            "fx_step",
            self.step,
            {"p": p, "t": t, "end": t + 1e-3, "y": y, "mode": mode},
            arrays=["p"],
            copied=["y", "mode"],
        )
        program.keep_called(["fx_start", "fx_step"])
        return program
