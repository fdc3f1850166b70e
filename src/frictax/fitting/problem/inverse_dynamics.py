"""Inverse dynamics: friction from forces and the measured motion, without a simulation."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from frictax.arguments import is_finite_number
from frictax.contacts import MassWithStopAndFriction
from frictax.engine.options import Engine
from frictax.laws import AbstractLaw
from frictax.measurements import Record
from frictax.measurements.filters import smooth
from frictax.mechanism import MechanicalSystem, Mechanism
from frictax.mechanism.bristle_steps import integrate_bristles
from frictax.mechanism.layout import Layout, coordinates_of
from frictax.mechanism.mechanism import Machine
from frictax.parameters import Numbers
from frictax.parameters.arrays import constant
from frictax.programs import cached_jit
from frictax.pytree import pytree_dataclass, static

from .objectives import AbstractObjective, Predicted, PreparedRecord, check_bool, check_positive
from .readings import (
    acting,
    allowed_cutoff,
    check_no_ticks,
    integral,
    invert_sensor,
    prepared_record,
)
from .setup import Setup, driven, moved_to
from .weak_form import automatic_cutoff, noise_sizes, weak_form, weak_residuals


@pytree_dataclass
class InverseDynamics(AbstractObjective):
    """An objective that evaluates Newton's law along the measured motion, without a simulation. For
    each body, the objective compares the force that the motion requires with the acting force [N].

    Newton's law is multiplied by splines and integrated by parts (the weak form, see
    `frictax.fitting.problem.weak_form`). Each integral covers a section of the record in which
    every contact slides in one direction. No position is differentiated twice. The covariance of
    the residuals accounts for the white noise of the measured positions, so that the intervals
    cover the true values. Samples at low speed are left out, so `Windows` estimates Stribeck terms
    and breakaway more accurately.

    The weak form needs a record that measures the position of every body at even time steps, and
    sensors without a delay. The weak form excludes bristles, hard stops, gaps and prescribed
    motions. If the weak form cannot be used, forces are compared at samples, as with `at_samples`,
    and a notice reports this. If the measured motion is hardly larger than its noise, the result
    does not have intervals. Friction that depends on the temperature of a `HeatCapacitor` is an
    error, because temperatures keep their start values.

    With `at_samples`, m*a is compared with the sum of forces at each sample. A Butterworth low-pass
    of order 4 filters the positions forward and backward (no phase shift). Finite differences of
    the filtered positions give v and a. If a record measures only the speed, the position is the
    integral of the speed. The noise of velocity and acceleration biases the estimates, and the
    intervals do not include this bias. Therefore use the result as the start of a fit with another
    objective; `start=InverseDynamics()` always compares forces at samples. The deflection of a
    bristle is integrated along the motion from its initial value `z`, so the cutoff must be above
    the frequencies of the presliding motion.

    **Arguments:** `cutoff` [Hz]: cutoff frequency of the filter of the motion; by default estimated
    from the record (with `at_samples`: as for `FreeRun`). `v_min`: least sliding speed, as a
    fraction of the highest speed. Samples with slower sliding are left out, because the direction
    of sliding is uncertain; contacts with a bristle do not need this. `at_samples`: option to
    compare forces at each sample, except within 2/cutoff [s] of a hard stop.

    **Source:** A. Janot, P.-O. Vandanjon, M. Gautier, IEEE Trans. Control Systems Technology 22(1),
    2014 (inverse dynamic identification model with least squares).

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 6.0, 1201)
    >>> s = (1.0 - np.cos(1.3 * t)) / 1.3 + (1.0 - np.cos(3.1 * t)) / 3.1
    >>> v = np.sin(1.3 * t) + np.sin(3.1 * t)
    >>> a = 1.3 * np.cos(1.3 * t) + 3.1 * np.cos(3.1 * t)
    >>> record = fx.Record(t, {"drive": 2.0 * a + 1.5 * np.sign(v) + 0.4 * v}, {"mass.s": s})
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0, F_prop=1.0)),
    ...     drive=fx.Force("mass", 0.0),
    ... )
    >>> found = fx.fit(
    ...     block,
    ...     record,
    ...     free=["mass.m", "friction.f_pos"],
    ...     objective=fx.InverseDynamics(cutoff=20.0),
    ... )
    >>> {name: round(float(value), 2) for name, value in found.values.items()}
    {'mass.m': 2.0, 'friction.f_pos.F_Coulomb': 1.5, 'friction.f_pos.F_prop': 0.4}
    """

    cutoff: float | None = static(default=None)
    v_min: float = static(default=0.01)
    at_samples: bool = static(default=False)

    def __post_init__(self) -> None:
        if self.cutoff is not None:
            check_positive(self, "cutoff", "Hz")
        check_bool(self, "at_samples")
        if not (is_finite_number(self.v_min) and 0 <= self.v_min < 1):
            raise ValueError(
                "`InverseDynamics.v_min` must be a share >= 0 and < 1 of the highest speed, got"
                f" {self.v_min!r}."
            )

    def prepare(self, machine: Machine, record: Record) -> PreparedRecord:
        if not isinstance(machine, Mechanism):
            raise ValueError(
                "`InverseDynamics` needs a `Mechanism`, whose masses it knows. Take `Windows` or"
                " `FreeRun` for a machine of your own."
            )
        check_no_ticks(record, "InverseDynamics")
        if not self.at_samples and (node := heated_node(machine)):
            raise ValueError(
                "`InverseDynamics` must have friction at a constant temperature, got a law that"
                f" depends on the temperature of {node!r}. Take `FreeRun()`. Its option"
                " start=InverseDynamics() gives start values."
            )
        lay = MechanicalSystem(machine).layout
        bodies = {machine.names[i]: coordinates_of(machine.parts[i]) for i in lay.bodies}
        missing = [
            f"{b}.{s}"
            for b, (s, v) in bodies.items()
            if not {f"{b}.{s}", f"{b}.{v}"} & set(record.outputs)
        ]
        if missing:
            raise ValueError(
                f"Record {record.name!r} must measure how every body moves for `InverseDynamics`;"
                f" {', '.join(missing)} is missing. Take `FreeRun()` or `Windows()`."
            )
        if not self.at_samples and not why_not_covered(machine, record):
            weak = self._weak(record, bodies, lay)
            if weak is not None:
                return weak
        cutoff = allowed_cutoff(record, self.cutoff)
        known, keep = {}, np.ones(record.n, bool)
        # Both ends of the record are left out, because the filter needs samples on both sides.
        edge = int(np.ceil(record.rate / cutoff))
        keep[:edge] = keep[record.n - edge :] = False
        for b, (place, rate) in bodies.items():
            if f"{b}.{place}" in record.outputs:
                found = smooth(record.t, record.outputs[f"{b}.{place}"], cutoff)
                motion = found.x, found.v, found.a
            else:
                found = smooth(record.t, record.outputs[f"{b}.{rate}"], cutoff)
                motion = integral(record.t, found.x), found.x, found.v
            known |= dict(zip((f"{b}.{place}", f"{b}.{rate}", f"{b}.a"), motion, strict=True))
            part, s = machine[b], motion[0]
            if isinstance(part, MassWithStopAndFriction):  # leave out samples near a hard stop
                low, high = (float(x) for x in part.stops())
                play, wide = 0.01 * float(np.ptp(s)), 2 * edge
                at_stop = np.convolve((s <= low + play) | (s >= high - play), np.ones(2 * wide + 1))
                keep &= ~(at_stop[wide : wide + s.size] > 0.5)
        speeds = [known[f"{b}.{rate}"] for b, (_, rate) in bodies.items()]
        for slides in _sliding_speeds(lay, speeds):
            keep &= slides >= self.v_min * np.max(slides)
        if not keep.any():
            raise ValueError(
                f"Record {record.name!r} has no samples for `InverseDynamics`: all are slow, at the"
                " ends or at a stop. Take `FreeRun()` or `Windows()`."
            )
        nothing = np.zeros((record.n, len(bodies)))
        return prepared_record(
            record,
            nothing,
            np.where(keep[:, None], 1.0, nothing),
            {},
            known=known,
            names=[f"force on {b}" for b in bodies],
        )

    def _weak(
        self, record: Record, bodies: Mapping[str, tuple[str, str]], lay: Layout
    ) -> PreparedRecord | None:
        """Return the weak form of a record; None if its sections of sliding are too short."""
        positions = [record.outputs[f"{b}.{s}"] for b, (s, _) in bodies.items()]
        cutoff = automatic_cutoff(record.t, positions) if self.cutoff is None else self.cutoff
        cutoff = allowed_cutoff(record, cutoff)
        contacts = np.zeros((len(lay.contacts), len(bodies)))
        for k, contact in enumerate(lay.contacts):
            for body, sign in contact.ends:
                contacts[k, body] += sign
        made = weak_form(
            record.t,
            np.stack(positions, axis=1),
            record.hold,
            contacts,
            cutoff,
            self.v_min,
            list(record.inputs.values()),
        )
        if made is None:
            return None
        weak, x, v = made
        known = {}
        for j, (b, (place, rate)) in enumerate(bodies.items()):
            known |= {f"{b}.{place}": x[:, j], f"{b}.{rate}": v[:, j]}
        used = np.broadcast_to((weak.stretch >= 0)[:, None], (len(weak.stretch), len(bodies)))
        prepared = prepared_record(
            record,
            np.zeros(used.shape),
            np.where(used, 1.0, 0.0),
            {},
            known=known,
            names=[f"force on {b}" for b in bodies],
        )
        return dataclasses.replace(prepared, weak=weak)

    def in_units_of_outputs(self) -> bool:
        return False

    def whitens(self) -> bool:
        return not self.at_samples

    def with_noise_found(
        self, setup: Setup, prepared: PreparedRecord, delayed: frozenset[str]
    ) -> PreparedRecord:
        if prepared.weak is None:
            return prepared
        weak = dataclasses.replace(prepared.weak, correlation=None)
        bare = dataclasses.replace(prepared, weak=weak)
        correlation, force_noise, scale = map(np.asarray, _noise_sizes(setup, bare, delayed))
        old = prepared.weak
        before = np.asarray(old.force_noise)
        was = 0.0 if old.correlation is None else np.asarray(old.correlation)
        # The search is not repeated if the noise changes by less than a fifth.
        is_same = (np.abs(force_noise - before) <= 0.2 * before) & (correlation == was)
        if np.all(is_same & (np.asarray(old.scale) != 1.0)):
            return prepared
        weak = dataclasses.replace(
            weak,
            force_noise=force_noise,
            scale=scale,
            correlation=correlation if correlation.any() else None,
        )
        used = np.asarray(weak.stretch)[:, None] >= 0
        return dataclasses.replace(prepared, weak=weak, weight=np.where(used, 1.0 / scale, 0.0))

    def predict(
        self, setup: Setup, prepared: PreparedRecord, engine: Engine | None, delayed: frozenset[str]
    ) -> Predicted:
        if prepared.weak is not None:
            return weak_residuals(setup, prepared, acting(setup, prepared, delayed))
        system = driven(setup.machine, prepared.t, acting(setup, prepared, delayed), prepared.hold)
        assert isinstance(system, MechanicalSystem)
        bodies = [setup.machine.names[i] for i in system.layout.bodies]

        def start_at(t: Array, now: Mapping[str, Numbers]) -> tuple[Array, Array]:
            moves = {name: x for name, x in now.items() if not name.endswith(".a")}
            return moved_to(system, moves).start(t)

        def one(t: Array, now: Mapping[str, Numbers], y: Array, mode: Array) -> Array:
            moment = system.snapshot(t, y, mode)
            a, m = moment.accelerations, moment.inertias
            return jnp.stack([m[i] * (a[i] - now[f"{b}.a"]) for i, b in enumerate(bodies)])

        moves, ts = motion(setup, prepared, delayed), jnp.asarray(prepared.t)
        ys, modes = jax.vmap(start_at)(ts, moves)
        if system.layout.bristles:
            ys = integrate_bristles(system.snapshot, ts, ys, modes)
        lacking = jax.vmap(one)(ts, moves, ys, modes)
        delays = any(name.startswith("outputs.") for name in delayed)
        if not (delays and system.layout.contacts):
            return lacking
        # `prepare` excludes slow samples of the measured motion. With a delayed sensor, residuals
        # at slow samples of the motion without the delay are set to 0 here.
        speeds = [constant(moves[f"{b}.{coordinates_of(setup.machine[b])[1]}"]) for b in bodies]
        fast = [v >= self.v_min * jnp.max(v) for v in _sliding_speeds(system.layout, speeds)]
        return jnp.where(jnp.stack(fast).all(axis=0)[:, None], lacking, 0.0)


def _sliding_speeds(lay: Layout, speeds: Sequence[Any]) -> list[Any]:
    """Return the magnitude of the sliding speed of each contact, from the speeds of all bodies."""
    return [abs(sum(sign * speeds[body] for body, sign in c.ends)) for c in lay.contacts]


@cached_jit
def _noise_sizes(
    setup: Setup, prepared: PreparedRecord, delayed: frozenset[str]
) -> tuple[Array, ...]:
    return noise_sizes(setup, prepared, acting(setup, prepared, delayed))


def why_not_covered(machine: Mechanism, record: Record) -> str:
    """Return the reason why a machine or a record cannot have a weak form, or an empty text."""
    lay = MechanicalSystem(machine).layout
    if lay.bristles:
        return "the machine has a bristle"
    if lay.gaps or any(isinstance(part, MassWithStopAndFriction) for part in machine.parts):
        return "the machine has a hard stop or a gap"
    if lay.motions:
        return "the machine has a prescribed motion"
    for i in lay.bodies:
        position = f"{machine.names[i]}.{coordinates_of(machine.parts[i])[0]}"
        if position not in record.outputs:
            return f"the record does not measure {position}"
    steps = np.diff(record.t)
    if np.max(np.abs(steps - np.mean(steps))) > 0.02 * np.mean(steps):
        return "its samples are not at even steps"
    return ""


def heated_node(machine: Mechanism) -> str:
    """Return the name of a thermal node whose temperature changes a friction law, or an empty text.
    `InverseDynamics` keeps the temperature at its start value.
    """
    lay = MechanicalSystem(machine).layout
    for node in lay.nodes:
        contacts = (lay.contacts[c] for c in node.contacts)
        for c in (*contacts, *(lay.bristles[b] for b in node.bristles)):
            laws = [x for x in vars(machine.parts[c.part]).values() if isinstance(x, AbstractLaw)]
            if any(law.at_temperature(machine.parts[node.part].T) is not law for law in laws):
                return machine.names[node.part]
    return ""


def motion(setup: Setup, prepared: PreparedRecord, delayed: frozenset[str]) -> dict[str, Array]:
    """Return a dict from variable to its values at each sample, without the effects of sensors:
    positions, velocities and accelerations of the bodies.
    """
    found = {}
    for name in prepared.known:
        body, _, variable = name.rpartition(".")
        seen = [
            (f"{body}.{x}", i // 2)
            for i, x in enumerate(("s", "phi", "v", "w"))
            if setup.outputs.has(f"{body}.{x}")
            # In fits from older files, `outputs` is empty.
            and (f"{body}.{x}" in prepared.outputs or not prepared.outputs)
        ]
        of, rate = seen[0] if seen else (name, 0)  # an unmeasured body has no sensor
        order = {"s": 0, "phi": 0, "v": 1, "w": 1, "a": 2}[variable] - rate
        found[name] = invert_sensor(setup, prepared, name, of, order, slice(None), delayed)
    return found
