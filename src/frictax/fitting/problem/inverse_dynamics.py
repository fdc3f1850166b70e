"""Friction from forces and smoothed motion, without a simulation: the start of every other fit."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from frictax.contacts import MassWithStopAndFriction
from frictax.engine.options import Engine
from frictax.measurements import Record
from frictax.measurements.filters import smooth
from frictax.mechanism import MechanicalSystem, Mechanism
from frictax.mechanism.attachments import coordinates_of
from frictax.mechanism.bristles.along import bent_along, places
from frictax.mechanism.mechanism import Machine
from frictax.parameters import Numbers
from frictax.parameters.constant import constant
from frictax.pytree import pytree_dataclass, static

from .objectives import (
    AbstractObjective,
    Predicted,
    PreparedRecord,
    check_positive,
)
from .readings import (
    LARGEST_CUTOFF,
    acting,
    integral,
    invert_sensor,
    prepared_record,
)
from .setup import Setup, driven, moved_to


@pytree_dataclass
class InverseDynamics(AbstractObjective):
    """Newton's law at every sample: the force that the smoothed motion asks for against the force
    that acts, m*a - sum of forces [N].

    Positions pass a Butterworth low-pass of order 4 forward and backward (no phase shift) and are
    differenced for v and a; where only the speed is measured, that, and its integral is the
    position. Linear in masses, Coulomb and viscous coefficients, so that it takes milliseconds from
    any start. Noise of v and a biases it, and it says nothing of breakaway; so it is where a fit
    starts. The delay of a sensor that is not known is for `Windows` to find.

    How a bristle is bent follows from the motion, sample by sample from its start `z`, by what is
    known of it at one speed between two samples. The filter must pass the presliding motion: a
    reversal that it rounds is bent less.

    **Arguments:** `cutoff` [Hz] of the filter; `v_min`, as a share of the highest speed: slower
    samples are left out, for their direction is not known, unless all friction has a bristle, for
    which that does not matter; so are those at a hard stop, or less than 2/cutoff from one, for its
    force is not known.

    **Source:** A. Janot, P.-O. Vandanjon, M. Gautier, IEEE Trans. Control Systems Technology 22(1),
    2014 (inverse dynamic identification model with least squares).

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 6.0, 1201)
    >>> v = np.sin(1.3 * t) + np.sin(3.1 * t)
    >>> a = 1.3 * np.cos(1.3 * t) + 3.1 * np.cos(3.1 * t)
    >>> record = fx.Record(t, {"drive": 2.0 * a + 1.5 * np.sign(v) + 0.4 * v}, {"mass.v": v})
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

    cutoff: float = static(default=50.0)
    v_min: float = static(default=0.01)

    def __post_init__(self) -> None:
        check_positive(self, "cutoff", "Hz")
        if not 0 <= self.v_min < 1:
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
        cutoff = min(self.cutoff, LARGEST_CUTOFF * record.rate)
        known, keep = {}, np.ones(record.n, bool)
        # the filter does not know what lies beyond the ends
        edge = int(np.ceil(record.rate / cutoff))
        keep[:edge] = keep[record.n - edge :] = False
        for b, (s, v) in bodies.items():
            if f"{b}.{s}" in record.outputs:
                found = smooth(record.t, record.outputs[f"{b}.{s}"], cutoff)
                motion = found.x, found.v, found.a
            else:
                found = smooth(record.t, record.outputs[f"{b}.{v}"], cutoff)
                motion = integral(record.t, found.x), found.x, found.v
            known |= dict(zip((f"{b}.{s}", f"{b}.{v}", f"{b}.a"), motion, strict=True))
            if lay.contacts:
                keep &= np.abs(motion[1]) >= self.v_min * np.max(np.abs(motion[1]))
            keep &= ~_at_stops(machine[b], motion[0], 2 * edge)
        if not keep.any():
            raise ValueError(
                f"Record {record.name!r} leaves `InverseDynamics` no sample: all are slow, at the"
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

    def in_units_of_outputs(self) -> bool:
        return False

    def predict(
        self, setup: Setup, prepared: PreparedRecord, engine: Engine | None, delayed: frozenset[str]
    ) -> Predicted:
        system = driven(setup.machine, prepared.t, acting(setup, prepared, delayed), prepared.hold)
        assert isinstance(system, MechanicalSystem)
        bodies = [setup.machine.names[i] for i in system.layout.bodies]

        def started(t: Array, now: Mapping[str, Numbers]) -> tuple[Array, Array]:
            moves = {name: x for name, x in now.items() if not name.endswith(".a")}
            return moved_to(system, moves).start(t)

        def one(t: Array, now: Mapping[str, Numbers], bent: Array) -> Array:
            y, mode = started(t, now)
            first = system.layout.first_bristle
            y = y.at[first : first + bent.shape[0]].set(bent)
            moment = system.snapshot(t, y, mode)
            a, m = moment.accelerations, moment.inertias
            return jnp.stack([m[i] * (a[i] - now[f"{b}.a"]) for i, b in enumerate(bodies)])

        moves, ts = motion(setup, prepared, delayed), jnp.asarray(prepared.t)
        bent = jnp.zeros((ts.shape[0], 0))
        if system.layout.bristles:
            at = jax.vmap(lambda t, now: places(system.snapshot(t, *started(t, now))))(ts, moves)
            begun = started(ts[0], {name: x[0] for name, x in moves.items()})
            bent = bent_along(system.snapshot(ts[0], *begun), ts, at)
        lacking = jax.vmap(one)(ts, moves, bent)
        delays = any(name.startswith("outputs.") for name in delayed)
        if not (delays and system.layout.contacts):
            return lacking
        # Which samples are slow was told from what a delayed sensor showed, at other times than the
        # machine was.
        speeds = [
            jnp.abs(constant(v))
            for name, v in moves.items()
            if name.rpartition(".")[2] in ("v", "w")
        ]
        fast = [v >= self.v_min * jnp.max(v) for v in speeds]
        return jnp.where(jnp.stack(fast).all(axis=0)[:, None], lacking, 0.0)


def _at_stops(part, s: np.ndarray, wide: int) -> np.ndarray:
    """Which samples lie at a stop of `part`, or `wide` samples from one that does."""
    if not isinstance(part, MassWithStopAndFriction):
        return np.zeros(s.size, bool)
    low, high = (float(x) for x in part.stops())
    play = 0.01 * float(np.ptp(s))
    at = (s <= low + play) | (s >= high - play)
    return np.convolve(at, np.ones(2 * wide + 1))[wide : wide + s.size] > 0.5


def motion(setup: Setup, prepared: PreparedRecord, delayed: frozenset[str]) -> dict[str, Array]:
    """Positions, velocities and accelerations of the bodies at each sample, without what sensors
    add to them.
    """
    found = {}
    for name in prepared.known:
        body, _, variable = name.rpartition(".")
        seen = [
            (f"{body}.{x}", i // 2)
            for i, x in enumerate(("s", "phi", "v", "w"))
            if setup.outputs.has(f"{body}.{x}")
        ]
        of, rate = seen[0] if seen else (name, 0)  # nobody's sensor
        order = {"s": 0, "phi": 0, "v": 1, "w": 1, "a": 2}[variable] - rate
        found[name] = invert_sensor(setup, prepared, name, of, order, slice(None), delayed)
    return found
