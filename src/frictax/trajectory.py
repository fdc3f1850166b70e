"""Results of a run: states, variables of each part with Modelica's names, events and energy."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from frictax.contacts.mode import STUCK, UNKNOWN
from frictax.engine import Path, Result
from frictax.engine.result import SECOND
from frictax.engine.tangents import constant_if_known, over_samples
from frictax.handover import Verb
from frictax.laws.table import Table, table_of
from frictax.mechanism import MechanicalSystem
from frictax.mechanism.contact_margins import is_sliding, velocity_rounding
from frictax.mechanism.energy import stored_energy
from frictax.mechanism.layout import turns_about
from frictax.mechanism.variables import structure_of_variables, variables_at
from frictax.notice import Notice
from frictax.parameters import Integer, Number, is_traced
from frictax.programs import cached_primitive
from frictax.verbs import TrajectoryVerbs

OverTime = Float[Array, " T"]


class Events(eqx.Module):
    """The mode changes of a run, in the order of time, padded with inf, -1 and `Mode.UNKNOWN`.

    What is at rest at the start and cannot be held breaks away there: an entry at ts[0], from
    stuck.

    - `time` [s], differentiable; `part`: the number of the contact in `names`; `mode_before`,
      `mode_after`: a `Mode`.
    - `count`: how many there are.
    """

    time: Float[Array, " E"]
    part: Int[Array, " E"]
    mode_before: Int[Array, " E"]
    mode_after: Int[Array, " E"]
    count: Integer
    names: tuple[str, ...] = eqx.field(static=True)


class Energy(eqx.Module):
    """Where the energy is [J]: drive + what was stored at the start = kinetic + elastic + friction
    + damper + impact.

    `drive`: work done by the drives since the start; `kinetic`, `elastic`: stored (elastic is of
    either sign where a `LinearPositionDependentForce` acts, and 0 at its `s0`, and where a
    `PeriodicPositionDependentForce` does, of mean 0 over its period, and holds that of bristles);
    `friction`, `damper`,
    `impact`: lost since the start by friction, in dampers and by drag, at stops; `balance`: what is
    missing, 0 but for the error of the integration.

    Where there are thermal nodes, `heated`: what of these losses went into them; `heat`: stored in
    them more than at the start; `cooled`: gone to the surroundings; `heat_balance` = heated - heat
    - cooled.
    """

    drive: OverTime
    kinetic: OverTime
    elastic: OverTime
    friction: OverTime
    damper: OverTime
    impact: OverTime
    heated: OverTime
    heat: OverTime
    cooled: OverTime

    @property
    def balance(self) -> OverTime:
        stored = self.kinetic + self.elastic
        return self.drive - (stored - stored[0]) - self.friction - self.damper - self.impact

    @property
    def heat_balance(self) -> OverTime:
        return self.heated - self.heat - self.cooled


class Trajectory(TrajectoryVerbs, eqx.Module):
    """A run of a mechanism: ``run["mass"].v``, ``run["friction"].mode``, ``run.events.time``,
    ``run.plot()``.

    - `ts`: the asked times [s]; `ys`, `modes`: state vector and mode vector there (see
      `MechanicalSystem`); at the time of an event, those after it; states that the run did not
      reach are NaN, as are their derivatives and the variables of all parts there.
    - `result`: a `Result`, how the run ended; `steps`: solver steps taken.
    - `error`: an upper estimate of the sum of all errors of steps, relative to the range of each
      state, the largest of all states, without what the motion amplifies; NaN where
      the solver has no error control.
    - `finest`: the most parts that a step between two samples was divided into; 1 for `Adaptive`.

    >>> import frictax as fx, jax.numpy as jnp
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0, v=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0)),
    ... )
    >>> run = fx.simulate(block, ts=jnp.linspace(0.0, 1.0, 5))
    >>> run["friction"].mode.tolist()
    [1, 1, 1, 0, 0]
    >>> print(run.to_pandas()[["mass.s", "mass.v", "friction.lossPower"]].round(3))
          mass.s  mass.v  friction.lossPower
    time
    0.00   0.000     1.0                 2.0
    0.25   0.187     0.5                 1.0
    0.50   0.250     0.0                 0.0
    0.75   0.250     0.0                 0.0
    1.00   0.250     0.0                 0.0
    """

    system: MechanicalSystem
    ts: OverTime
    path: Path

    @property
    def ys(self) -> Float[Array, "T n"]:
        return self.path.ys

    @property
    def modes(self) -> Int[Array, "T m"]:
        return self.path.modes

    @property
    def result(self) -> PyTree:
        return self.path.result

    @property
    def steps(self) -> Integer:
        return self.path.steps

    @property
    def error(self) -> Number:
        return self.path.error

    @property
    def finest(self) -> Integer:
        return self.path.finest

    @property
    def names(self) -> tuple[str, ...]:
        return self.system.mechanism.names

    def __getitem__(self, name: str) -> Any:
        """The variables of part `name` at the asked times."""
        mechanism = self.system.mechanism
        part = mechanism.names.index(name) if mechanism[name] is not None else -1
        return _variables(self.system.structure_only, part, self.ts, self.ys, self.modes)

    @property
    def events(self) -> Events:
        mechanism, contacts = self.system.mechanism, self.system.layout.contacts
        names = tuple(mechanism.names[c.part] for c in contacts)
        time, part, before, after, count = _events(self.system.structure_only, self.ts, self.path)
        return Events(time, part, before, after, count, names)

    @property
    def energy(self) -> Energy:
        """The energy balance; the run must have been made with ``simulate(..., energy=True)``."""
        if not self.system.energy:
            raise ValueError(
                "This run has no energy accounts. Ask for them: `simulate(..., energy=True)`."
            )
        return Energy(*_energy(self.system.structure_only, self.ts, self.ys, self.modes))

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Notices of friction laws at the asked times: tables that the motion leaves by more than a
        tenth of their range, and laws of the user's own that are below 0.

        None for a batch of runs and under `jit`.
        """
        system = self.system
        contacts = (*system.layout.contacts, *system.layout.bristles)
        laws = [
            (k, m, law)
            for k, contact in enumerate(contacts)
            for m in (1, -1)
            if _is_watched(law := system.mechanism.parts[contact.part].law(m))
        ]
        known = not any(map(is_traced, jax.tree.leaves((self.path, self.system))))
        if not laws or not known or self.ys.ndim != 2:
            return ()
        seen = np.asarray(_law_use(system.structure_only, self.ts, self.ys, self.modes)[0])
        found: dict[str, Notice] = {}
        for k, m, law in laws:
            name = system.mechanism.names[contacts[k].part]
            path = f"{name}.{law_field(system.mechanism.parts[contacts[k].part], m)}"
            unit = "rad/s" if turns_about(system.mechanism, name) else "m/s"
            if (notice := _law_notice(path, law, unit, *seen[k, m])) is not None:
                found.setdefault(path, notice)
        return tuple(found.values())

    _repr_html_ = Verb("frictax.report.notebook.cards:run_html")

    def __repr__(self) -> str:
        return f"Trajectory({', '.join(self.names)}: {self._told()})"

    def _told(self) -> str:
        """How long the run is, and how it ended where that is known."""
        ts, result, shape = self.ts, self.result, self.path.ys.shape
        if len(shape) != 2:
            return f"a batch of shape {shape[:-2]}"
        span = "" if is_traced(ts) else f" from {float(ts[0]):g} to {float(ts[-1]):g} s"
        traced = any(map(is_traced, jax.tree.leaves(result)))
        ended = traced or bool(result == Result.successful)
        return f"{ts.size} times{span}" + ("" if ended else f", not to its end: {Result[result]}")

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.names)


def _is_watched(law: Any) -> bool:
    """Whether a run may leave a law's range, or find it below 0."""
    table = table_of(law)
    is_extended = table is not None and table.v.shape[0] > 1 and table.extrapolation != "error"
    return is_extended or not law.is_nonnegative


def law_field(part: Any, direction: int) -> str:
    """The name of the field that holds the law of a direction."""
    forward = getattr(part, "forward", "f_pos")
    backward = forward.replace("_pos", "_neg")
    return backward if direction < 0 and getattr(part, backward, None) is not None else forward


def _law_notice(
    path: str, law: Any, unit: str, slowest: float, fastest: float, least: float, speed: float
) -> Notice | None:
    """The notice of a law between these speeds, with its least value and where that is."""
    if least < 0 and not law.is_nonnegative:
        return Notice("law-below-zero", path, {"least": least, "speed": speed, "unit": unit})
    return table_notice(path, law, slowest, fastest, unit)


def table_notice(path: str, law: Any, slowest: float, fastest: float, unit: str) -> Notice | None:
    """The notice of a table that a motion between these speeds leaves."""
    table: Table | None = table_of(law)
    if table is None or (reached := table.left_at(slowest, fastest)) is None:
        return None
    first, last = (float(x) for x in np.asarray(table.v)[[0, -1]])
    numbers = {"first": first, "last": last, "reached": reached, "unit": unit}
    return Notice("table-left", path, numbers)


@cached_primitive(SECOND, jax.tree.structure((0,)))
def _law_use(system: MechanicalSystem, ts: Array, ys: Array, modes: Array) -> tuple[Array]:
    """For each contact, those with a bristle last, and the directions 0 (none), 1 and -1: the
    lowest and the highest speed, the least value of the law, and the speed there.
    """

    def at(t: Array, y: Array, mode: Array) -> Array:
        now = system.snapshot(t, y, mode)
        speeds = [*now.v_rel, *now.bristle_v]
        rows = []
        for v, element in zip(speeds, (*now.elements, *now.bristle_elements), strict=True):
            ways = [(s, element.law(m)(s)) for m in (1, -1) for s in [jnp.maximum(m * v, 0.0)]]
            rows.append(jnp.stack([jnp.stack([jnp.abs(v), s, f]) for s, f in ways]))
        return jnp.stack(rows)

    seen = jax.vmap(at)(ts, ys, modes)
    size, speed, value = seen[..., 0], seen[..., 1], seen[..., 2]
    lowest = jnp.argmin(value, axis=0)
    found = jnp.stack(
        [
            jnp.min(size, axis=0),
            jnp.max(speed, axis=0),
            jnp.min(value, axis=0),
            jnp.take_along_axis(speed, lowest[None], axis=0)[0],
        ],
        axis=-1,
    )
    return (jnp.concatenate([jnp.zeros_like(found[:, :1]), found], axis=1),)


@cached_primitive(
    SECOND, lambda system, part, *_: structure_of_variables(system.mechanism, system.layout, part)
)
def _variables(system: MechanicalSystem, part: int, ts: Array, ys: Array, modes: Array) -> Any:
    at = lambda t, y, mode: variables_at(system.snapshot(t, y, mode), part)  # noqa: E731
    return over_samples(at, ts, ys, modes)


@cached_primitive(SECOND, jax.tree.structure((0,) * 5))
def _events(system: MechanicalSystem, ts: Array, path: Path) -> tuple[Array, ...]:
    lay = system.layout
    n, size = len(lay.contacts), path.times.shape[0]
    before, after, times = path.before[:, :n], path.after[:, :n], path.times
    changed = (before != after) & (jnp.arange(size) < path.count)[:, None]
    if n:
        first = jnp.where(path.count > 0, path.before[0], path.modes[0])
        start = system.snapshot(ts[0], path.ys[0], first)
        rests = jnp.stack(
            [jnp.abs(start.v_rel[c]) <= velocity_rounding(start, c) for c in range(n)]
        )
        slides = is_sliding(first[:n]) & rests
        stuck = jnp.where(slides, STUCK, first[:n])
        before, after = (
            jnp.concatenate([stuck[None], before]),
            jnp.concatenate([first[None, :n], after]),
        )
        changed, times = jnp.concatenate([slides[None], changed]), jnp.concatenate([ts[:1], times])
    changed = changed.reshape(-1)
    order = jnp.flatnonzero(changed, size=size, fill_value=changed.size)

    def rows(values: Array, padding) -> Array:
        # the last entry stands where no event is
        return jnp.append(values.reshape(-1), jnp.asarray(padding, values.dtype))[order]

    parts = jnp.broadcast_to(jnp.arange(n), before.shape)
    times = jnp.broadcast_to(times[:, None], before.shape)
    # After a cut the next event is unknown: its time has no derivative.
    unknown = constant_if_known(path.ys[-1:], jnp.full(1, jnp.inf, times.dtype))[0]
    return (
        rows(times, unknown),
        rows(parts, -1),
        rows(before, UNKNOWN),
        rows(after, UNKNOWN),
        jnp.sum(changed),
    )


@cached_primitive(SECOND, jax.tree.structure((0,) * 9))
def _energy(system: MechanicalSystem, ts: Array, ys: Array, modes: Array) -> tuple[Array, ...]:
    at = lambda t, y, mode: stored_energy(system.snapshot(t, y, mode))  # noqa: E731
    kinetic, elastic = over_samples(at, ts, ys, modes)
    drive, friction, damper, impact = ys[:, -4:].T
    nodes, nothing = system.layout.nodes, jnp.zeros_like(drive)
    heated, cooled = ys[:, -6:-4].T if nodes else (nothing, nothing)
    first = 2 * len(system.layout.coordinates)
    heats = [
        system.mechanism.parts[node.part].C * (ys[:, first + k] - ys[0, first + k])
        for k, node in enumerate(nodes)
    ]
    heat = sum(heats, nothing)
    return drive, kinetic, elastic, friction, damper, impact, heated, heat, cooled
