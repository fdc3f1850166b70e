"""The machine with its sensors and actuators, and functions that simulate the machine."""

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from frictax.annotations import ScalarLike
from frictax.engine import Engine, OnSamples, Result, walk
from frictax.engine.tangents import over_samples
from frictax.measurements import Record
from frictax.measurements.units import split_channel
from frictax.mechanism import (
    AbstractHybridSystem,
    AbstractLinkage,
    Driven,
    Force,
    MechanicalSystem,
    Mechanism,
    Torque,
    hybrid,
)
from frictax.mechanism.bristle_steps import integrate_bristles, is_motion_given
from frictax.mechanism.forces import AbstractMotion
from frictax.mechanism.layout import is_rotational, turns_about
from frictax.mechanism.variable_table import VARIABLES
from frictax.mechanism.variables import variables_at
from frictax.parameters import (
    CheckedModule,
    Integer,
    Modes,
    Number,
    Numbers,
    Positive,
    Real,
    Scalar,
    State,
    children,
    parameter,
)
from frictax.parameters.arrays import constant
from frictax.pytree import pytree_dataclass
from frictax.signals import AbstractSignal, Sampled
from frictax.text import suggestion


@functools.cache
def perfect() -> "Instrument":
    """Return the default instrument of a channel: an ideal sensor or actuator."""
    with jax.ensure_compile_time_eval():  # a tracer of `jit` must not enter the cache
        return Instrument()


class Instrument(CheckedModule):
    """A sensor or actuator, which returns gain*x(t - delay) + offset + drift*(t - t0). t0 is the
    start of the record.

    For an output, x is the variable of the machine, and the instrument returns the recorded value.
    For an input, x is the recorded value, and the instrument returns the value that acts on the
    machine. x is interpolated linearly between samples.

    A fit has an instrument for every channel, such as ``"inputs.drive"`` or ``"outputs.mass.s"``.
    To fit the offset of an input, for example, put its path ``"inputs.drive.offset"`` into `free`
    or `own`.

    **Arguments:** `gain` > 0 [1]; `offset` [unit of the channel]; `drift` [unit of the channel/s];
    `delay` [s].

    >>> import frictax as fx, jax.numpy as jnp
    >>> fx.Instrument(gain=2.0, drift=1.0)(
    ...     jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 1.0, 1.0]), 0.0
    ... ).tolist()
    [2.0, 3.0, 4.0]
    """

    gain: Scalar = parameter(Positive(), "1", fit=False, default=1.0)
    offset: Scalar = parameter(Real(), "1", fit=False, default=0.0)
    drift: Scalar = parameter(Real(), "1/s", fit=False, default=0.0)
    delay: Scalar = parameter(Real(), "s", fit=False, default=0.0)

    def __call__(
        self, t: Float[Array, " n"], x: Float[Array, " n"], t0: ScalarLike, delayed: bool = True
    ) -> Float[Array, " n"]:
        """Return the output of the instrument. With `delayed=False`, ignore the delay."""
        late = jnp.interp(t - self.delay, t, x) if delayed else x
        return self.gain * late + self.offset + self.drift * (t - t0)

    def invert(
        self, t: Float[Numbers, "*n"], y: Float[Numbers, "*n"], t0: ScalarLike, order: int = 0
    ) -> Float[Numbers, "*n"]:
        """Return the x that gives the output `y` at the time `t`, if the delay is 0. With `order` 1
        or 2, x and `y` are first or second time derivatives; with -1, integrals from t0.
        """
        since = t - t0
        added = {
            -1: self.offset * since + 0.5 * self.drift * since**2,
            0: self.offset + self.drift * since,
            1: self.drift,
            2: 0.0,
        }[order]
        return (y - added) / self.gain


# SI unit of a translation -> SI unit of the corresponding rotation.
_OF_ROTATION = {"m": "rad", "m/s": "rad/s", "m/s2": "rad/s2", "N": "N.m"}
_OF_TRANSLATION = {turning: sliding for sliding, turning in _OF_ROTATION.items()}


class Named(eqx.Module):
    """A collection of objects by name, in groups: ``mass.s`` is object ``s`` of group ``mass``."""

    things: tuple[Any, ...]
    names: tuple[str, ...] = eqx.field(static=True)

    @classmethod
    def from_dict(cls, things: Mapping[str, Any]) -> "Named":
        tree: dict[str, Any] = {}
        for name, thing in things.items():
            node, *_, last = tree, *name.split(".")
            for step in name.split(".")[:-1]:
                node = node.setdefault(step, {})
            node[last] = thing
        return cls._from(tree)

    @classmethod
    def _from(cls, tree: dict[str, Any]) -> "Named":
        return cls(
            tuple(cls._from(v) if isinstance(v, dict) else v for v in tree.values()), tuple(tree)
        )

    def named_parts(self) -> Iterator[tuple[str, Any]]:
        return zip(self.names, self.things, strict=True)

    def at(self, name: str) -> Any:
        first, _, rest = name.partition(".")
        thing = self.things[self.names.index(first)]
        # A call of `thing.at` binds the method, which creates a new module; `Named.at` does not.
        return Named.at(thing, rest) if rest else thing

    def has(self, name: str) -> bool:
        first, _, rest = name.partition(".")
        if first not in self.names:
            return False
        thing = self.things[self.names.index(first)]
        return Named.has(thing, rest) if isinstance(thing, Named) and rest else not rest


@pytree_dataclass
class Setup:
    """A machine with an `Instrument` for each input and each output.

    A parameter has the same path in the setup as in the machine.
    """

    described_as: ClassVar[str] = "machine or of its record's channels"
    machine: Any
    inputs: Named
    outputs: Named

    def parameter_children(self) -> Iterator[tuple[str, Any, Any]]:
        yield from children(self.machine)
        yield "inputs", self.inputs, None
        yield "outputs", self.outputs, None

    def for_channels(
        self, inputs: Iterable[str] | None, outputs: Iterable[str], machine: Any = None
    ) -> "Setup":
        """Return the setup for other channels. A new channel gets an ideal instrument. With
        `inputs=None`, the inputs do not change.
        """

        def pick(known: Named, names: Iterable[str]) -> Named:
            return Named.from_dict({n: known.at(n) if known.has(n) else perfect() for n in names})

        machine = self.machine if machine is None else machine
        kept = self.inputs if inputs is None else pick(self.inputs, inputs)
        return Setup(machine, kept, pick(self.outputs, outputs))


class Course(NamedTuple):
    """Summary of a simulation: its `result` (success or failure), and the time of each event [s]
    with the m modes `before` and `after` this event. Only the first `count` entries are valid.
    """

    result: PyTree
    times: Float[Array, "... K"]
    before: Int[Array, "... K m"]
    after: Int[Array, "... K m"]
    count: Integer


def driven(
    machine: Any,
    t: Float[Numbers, " n"],
    inputs: Mapping[str, Float[Numbers, " n"] | AbstractSignal],
    hold: bool,
) -> AbstractHybridSystem:
    """Return the machine as a hybrid system with `inputs`: samples at `t`, or signals."""
    signals = {
        name: given if isinstance(given, AbstractSignal) else Sampled(t, given, hold=hold)
        for name, given in inputs.items()
    }
    if isinstance(machine, Driven) and signals:  # the record's inputs replace the machine's signals
        own = dict(zip(machine.names, machine.signals, strict=True))
        return Driven(machine.system, **own | signals)
    if not isinstance(machine, Mechanism):
        return Driven(machine, **signals) if signals else machine
    for name, signal in signals.items():
        if isinstance(machine[name.partition(".")[0]], AbstractMotion) and signal.jumps():
            signal = Sampled(t, inputs[name])  # The samples of a position are not held.
        field = signal_field(machine, name)
        machine = eqx.tree_at(
            lambda m, n=name, f=field: getattr(m[n.split(".")[0]], f), machine, signal
        )
    return MechanicalSystem(machine)


def signal_at(system: AbstractHybridSystem, name: str) -> AbstractSignal:
    """Return the signal of the input `name` in a system made by `driven`."""
    if isinstance(system, Driven):
        return system.signals[system.names.index(name)]
    assert isinstance(system, MechanicalSystem)
    return getattr(system.mechanism[name.split(".")[0]], signal_field(system.mechanism, name))


def signal_field(machine: Mechanism, name: str) -> str:
    """Return the name of the field that contains the signal of the input `name` ("part" or
    "part.field"). Raise `ValueError` if this field is missing or ambiguous.
    """
    part, _, field = name.partition(".")
    fields = [f for f, value in vars(machine[part]).items() if isinstance(value, AbstractSignal)]
    if field in fields:
        return field
    if field or len(fields) != 1:
        has = f"its signals are {', '.join(fields)}" if fields else "it has no signal"
        drives = [
            n
            for n, p in machine.named_parts()
            if any(isinstance(v, AbstractSignal) for v in vars(p).values())
        ]
        raise ValueError(
            f"The input {name!r} must name a part with a signal; {has}. Parts with one:"
            f" {', '.join(drives) or 'none'}."
        )
    return fields[0]


def moved_to(system: AbstractHybridSystem, start: Mapping[str, Numbers]) -> AbstractHybridSystem:
    """Return the system with the initial positions and velocities `start` (name -> value). Systems
    that are not mechanisms are returned unchanged.
    """
    if not isinstance(system, MechanicalSystem):
        return system
    for name, value in start.items():
        body, _, variable = name.rpartition(".")
        system = eqx.tree_at(
            lambda m, b=body, v=variable: getattr(m.mechanism[b], v), system, value
        )
    return system


def simulate_variables(
    system: AbstractHybridSystem,
    ts: Float[Numbers, " n"],
    names: tuple[str, ...],
    engine: Engine,
    start: Mapping[str, Numbers],
) -> tuple[Float[Array, "n c"], Course, Array]:
    """Simulate from the machine's initial state, in which `start` (name -> value) replaces values.
    Return the variables `names` at the times `ts`, the `Course`, and the last state.
    """
    system = moved_to(system, start)
    if (
        isinstance(system, MechanicalSystem)
        and isinstance(engine, OnSamples)
        and is_motion_given(system.mechanism, system.layout)
    ):
        # If every motion is prescribed, only the bristles are integrated. The last state is
        # computed half a time step earlier, where the last segment of a piecewise signal still
        # applies.
        t = jnp.asarray(ts)
        ys, modes = jax.vmap(system.start)(t.at[-1].set(0.5 * (t[-2] + t[-1])))
        ys = integrate_bristles(system.snapshot, t, ys, modes)
        values = [jax.vmap(lambda *m, n=n: variable_at(system, n, *m))(t, ys, modes) for n in names]
        none = jnp.zeros((1, modes.shape[1]), modes.dtype)
        course = Course(Result.successful, t[:1], none, none, jnp.zeros((), jnp.int32))
        return jnp.stack(values, axis=1), course, ys[-1]
    y0, mode0 = system.start(ts[0])
    if start and not isinstance(system, MechanicalSystem):
        y0, mode0 = system.begin(
            ts[0], jnp.stack([start.get(name, y0[i]) for i, name in enumerate(system.states())])
        )
    path, states = walk(system, y0, mode0, ts, options=engine), system.states()
    columns = [
        path.ys[:, states.index(name)]
        if name in states
        else over_samples(
            lambda *moment, n=name: variable_at(system, n, *moment), ts, path.ys, path.modes
        )
        for name in names
    ]
    return (
        jnp.stack(columns, axis=1),
        Course(path.result, constant(path.times), path.before, path.after, path.count),
        path.ys[-1],
    )


def state_names(machine: Any) -> tuple[str, ...]:
    """Return the names of the states of a machine; an empty tuple for a law."""
    return (
        hybrid.state_names(machine)
        if isinstance(machine, Mechanism)
        else getattr(machine, "states", tuple)()
    )


def contact_names(machine: Any) -> list[str]:
    """Return the names of the contacts in the order of their modes. The contacts of an
    `AbstractLinkage` have the paths of their parameters, such as ``"frictions.0"``. In another
    machine of the user, the first mode is called ``"friction"``.
    """
    if isinstance(machine, Mechanism):
        return [machine.names[c.part] for c in MechanicalSystem(machine).layout.contacts]
    own = machine.system if isinstance(machine, Driven) else machine
    if isinstance(own, AbstractLinkage):
        return [f"frictions.{c}" for c in range(len(own.frictions))]
    return ["friction"]


def check_no_bristle(machine: Any, asks: str, remedy: str = "Take `FreeRun()`.") -> None:
    """Raise `ValueError` if a contact has a bristle. The objective `asks` needs the deflection of
    the bristle in the middle of a record, which no sensor measures.
    """
    if isinstance(machine, Mechanism):
        for contact in MechanicalSystem(machine).layout.bristles:
            raise ValueError(
                f"`{asks}` must have friction without a bristle, got one in"
                f" {machine.names[contact.part]!r}: no record measures its deflection. {remedy}"
            )


def contact_modes(machine: Any, inputs: int, modes: int) -> int:
    """Return the number of modes of contacts and gaps, which precede the modes of piecewise
    signals. `modes`: number of all modes; `inputs`: number of inputs, each with one mode.
    """
    if isinstance(machine, Mechanism):
        return MechanicalSystem(machine).layout.first_signal
    return modes - inputs


def check_channels(machine: Any, record: Record, states: tuple[str, ...] | None = None) -> None:
    """Raise `ValueError` for an input that is not a signal of a part, or an output that is not a
    variable of the machine. `states`: names of the machine's states.
    """
    if isinstance(machine, Mechanism):
        for name in record.inputs:
            signal_field(machine, name)
            drive, unit = machine[name.partition(".")[0]], record.units[name]
            fits = "N" if isinstance(drive, Force) else "N.m"
            if isinstance(drive, Force | Torque) and unit.si_name != fits:
                kind = "a force [N]" if isinstance(drive, Force) else "a torque [N.m]"
                raise ValueError(
                    f"The record's input {name!r} must be {kind}, got one in {unit.name}. Correct"
                    " its unit, or drive the part by `Position` or a controller in `ClosedLoop`."
                )
        for name in (*record.inputs, *record.outputs):
            part, _, variable = name.partition(".")
            # The normal force of a rotary brake is a force, not a torque.
            turns = (
                None
                if variable == "fn" or part not in machine.names
                else turns_about(machine, part)
            )
            unit = record.units[name]
            right = (_OF_TRANSLATION, _OF_ROTATION)[bool(turns)].get(unit.si_name)
            if turns is not None and right is not None:
                does = ("slides", "turns")
                raise ValueError(
                    f"The record's channel {name!r} must be in {right}, or a unit like it, since"
                    f" {part!r} {does[turns]}, got {unit.name}. Correct the unit, or take a part"
                    f" that {does[not turns]}."
                )
    if set(record.outputs) <= set(state_names(machine) if states is None else states):
        return
    t = jnp.zeros(())
    system = driven(
        machine,
        jnp.asarray(record.t[:2]),
        {n: jnp.asarray(x[:2]) for n, x in record.inputs.items()},
        record.hold,
    )
    known = variable_names(system, t)
    for name in record.outputs:
        if name not in known:
            raise ValueError(
                f"The record's output {name!r} is no variable of the"
                f" machine.{suggestion(name, known)} It has: {', '.join(known)}."
            )


def variable_names(system: AbstractHybridSystem, t: Number) -> list[str]:
    """Return the names of all variables that `variable_at` can return; `t`: start time."""
    if isinstance(system, MechanicalSystem):
        known = []
        for part in system.mechanism.names:
            shape = jax.eval_shape(lambda p=part: _variables(system, p, t, *system.start(t)))
            known += [f"{part}.{v}" for v, value in vars(shape).items() if value is not None]
        return known
    known = list(jax.eval_shape(lambda: system.variables(t, *system.start(t), None)))
    return [*known, *(name for name in system.states() if name not in known)]


def channel_unit(machine: Any, record: Record, name: str) -> str:
    """Return the SI unit of a channel of the record, or of a residual called "force on <body>"."""
    if name in record.units:
        return record.units[name].si_name
    body = name.removeprefix("force on ")
    return (
        "N.m"
        if isinstance(machine, Mechanism) and body in machine.names and is_rotational(machine[body])
        else "N"
    )


def variable_unit(machine: Any, name: str) -> str:
    """Return the SI unit of the variable `name` of the machine; "" for an unknown variable."""
    part, variable = split_channel(name)  # `phi1` of a user's machine has the unit of `phi`
    if variable not in VARIABLES:
        return ""
    turns = isinstance(machine, Mechanism) and part in machine.names and turns_about(machine, part)
    return VARIABLES[variable].rotational_unit if turns else VARIABLES[variable].unit


def variable_at(
    system: AbstractHybridSystem, name: str, t: Number, y: State, mode: Modes
) -> Number:
    """Return the value of the variable `name` of the machine at the time `t`."""
    states = system.states()
    if name in states:
        return y[states.index(name)]
    if isinstance(system, MechanicalSystem):
        part, _, variable = name.rpartition(".")
        return getattr(_variables(system, part, t, y, mode), variable)
    return system.variables(t, y, mode, None)[name]


def _variables(system: MechanicalSystem, name: str, t: Array, y: Array, mode: Array) -> Any:
    return variables_at(system.snapshot(t, y, mode), system.mechanism.names.index(name))


def contact_forces(system: Any, t: Array, y: Array, mode: Array) -> Float[Array, " k"]:
    """Return the friction force of each contact, in the order of the modes. For a user's own
    machine, return the result of its method `friction_force` (of an `AbstractLinkage`:
    `friction_forces`), or an empty array without such a method.
    """
    if isinstance(system, MechanicalSystem):
        return jnp.stack(system.snapshot(t, y, mode).friction or [jnp.zeros(())])
    args = None
    if isinstance(system, Driven):  # `args`: values of the inputs, as in a simulation
        system, mode, args = system.system, system._own(mode), system._values(t, mode)
    if isinstance(system, AbstractLinkage):
        return system.friction_forces(t, y, mode, args)
    force = getattr(system, "friction_force", None)
    return jnp.zeros(0) if force is None else jnp.stack([force(t, y, mode, args)])
