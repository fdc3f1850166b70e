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
    """Mode changes of a run in order of time. Unused entries are inf, -1 or `Mode.UNKNOWN`.

    A contact may be at rest at the start although its load exceeds its friction. In this case, the
    contact's first event is at ts[0], from stuck to sliding.

    - `time` [s], differentiable; `part`: the index of the contact in `names`; `mode_before`,
      `mode_after`: the `Mode` before and after the event.
    - `count`: the number of events.
    """

    time: Float[Array, " E"]
    part: Int[Array, " E"]
    mode_before: Int[Array, " E"]
    mode_after: Int[Array, " E"]
    count: Integer
    names: tuple[str, ...] = eqx.field(static=True)


class Energy(eqx.Module):
    """Energy balance of a run [J]: drive + energy at the start = kinetic + elastic + friction +
    damper + impact.

    - `drive`: work of the drives since the start.
    - `kinetic`, `elastic`: stored energy. Elastic energy includes the energy of bristles and of
      forces that depend on position. The energy of a `LinearPositionDependentForce` is 0 at `s0`.
      The energy of a `PeriodicPositionDependentForce` has mean 0 over a period, so it may be
      negative.
    - `friction`, `damper`, `impact`: energy lost since the start by friction, by dampers and drag,
      and at stops.
    - `balance`: left side minus right side of the energy balance, the integration error.

    For machines with thermal nodes, `heated` contains the losses that heat the nodes. `heat` is the
    increase of stored heat since the start, and `cooled` is the heat lost to the surroundings;
    `heat_balance` = heated - heat - cooled.
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

    - `ts`: the given times [s]; `ys`, `modes`: state vectors and mode vectors at these times (see
      `MechanicalSystem`). At the time of an event, the vectors have their values after the event.
      After an early end of the run, states, their derivatives and the variables of all parts are
      NaN.
    - `result`: a `Result`, the reason why the run ended; `steps`: number of solver steps.
    - `error`: the largest relative error of all states. The relative error is an upper estimate of
      the summed errors of all time steps, divided by the state's range, without amplification of
      errors by the motion. `error` is NaN for a solver without error control.
    - `finest`: largest number of parts into which the time step between two samples was divided; 1
      for `Adaptive`.

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
        """Return the variables of part `name` at the times `ts`."""
        self._check_is_one_run()
        mechanism = self.system.mechanism
        part = mechanism.names.index(name) if mechanism[name] is not None else -1
        return _variables(self.system.structure_only, part, self.ts, self.ys, self.modes)

    @property
    def events(self) -> Events:
        self._check_is_one_run()
        mechanism, contacts = self.system.mechanism, self.system.layout.contacts
        names = tuple(mechanism.names[c.part] for c in contacts)
        time, part, before, after, count = _events(self.system.structure_only, self.ts, self.path)
        return Events(time, part, before, after, count, names)

    @property
    def energy(self) -> Energy:
        """The energy balance of a run with ``simulate(..., energy=True)``."""
        if not self.system.energy:
            raise ValueError(
                "This run has no energy accounts. Ask for them: `simulate(..., energy=True)`."
            )
        self._check_is_one_run()
        return Energy(*_energy(self.system.structure_only, self.ts, self.ys, self.modes))

    def _check_is_one_run(self) -> None:
        if np.ndim(self.ts) > 1:
            raise ValueError(
                f"This is a batch of runs of shape {np.shape(self.ts)[:-1]}, whose variables cannot"
                " be read. Read them inside the function that you give to `jax.vmap`."
            )

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Notices on friction laws at the times `ts`: the motion is beyond the range of a table by
        more than a tenth of this range, or a law of the user is below 0.

        This tuple is empty for a batch of runs and under `jit`.
        """
        system = self.system
        contacts, laws = (*system.layout.contacts, *system.layout.bristles), []
        for k, contact in enumerate(contacts):
            for m in (1, -1):
                law = system.mechanism.parts[contact.part].law(m)
                table = table_of(law)
                rows = 0 if table is None else table.v.shape[0]
                # Test only tables that are extrapolated, and laws whose value can be negative.
                extended = table is not None and rows > 1 and table.extrapolation != "error"
                if extended or not law.is_nonnegative:
                    laws.append((k, m, law))
        known = not any(map(is_traced, jax.tree.leaves((self.path, self.system))))
        if not laws or not known or self.ys.ndim != 2:
            return ()
        seen = np.asarray(_law_use(system.structure_only, self.ts, self.ys, self.modes)[0])
        found: dict[str, Notice] = {}
        for k, m, law in laws:
            name = system.mechanism.names[contacts[k].part]
            path = f"{name}.{law_field(system.mechanism.parts[contacts[k].part], m)}"
            unit = "rad/s" if turns_about(system.mechanism, name) else "m/s"
            slowest, fastest, least, speed = seen[k, m]
            if least < 0 and not law.is_nonnegative:
                numbers = {"least": least, "speed": speed, "unit": unit}
                notice = Notice("law-below-zero", path, numbers)
            else:
                notice = table_notice(path, law, slowest, fastest, unit)
            if notice is not None:
                found.setdefault(path, notice)
        return tuple(found.values())

    _repr_html_ = Verb("frictax.report.cards:run_html")

    def __repr__(self) -> str:
        return f"Trajectory({', '.join(self.names)}: {self._summary()})"

    def _summary(self) -> str:
        """Return as text the number of times, the first and the last time, and the reason why a run
        ended early or is inaccurate.
        """
        ts, result, shape = self.ts, self.result, self.path.ys.shape
        if len(shape) != 2:
            return f"a batch of shape {shape[:-2]}"
        span = "" if is_traced(ts) else f" from {float(ts[0]):g} to {float(ts[-1]):g} s"
        known = not any(map(is_traced, jax.tree.leaves(result)))
        if known and bool(result != Result.successful):
            doubt = "inaccurate" if bool(result == Result.inaccurate) else "not to its end"
            span += f", {doubt}: {Result[result]}"
        return f"{ts.size} times{span}"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.names)


def law_field(part: Any, direction: int) -> str:
    """Return the name of the field of `part` that contains the law for `direction` (1 or -1)."""
    forward = getattr(part, "forward", "f_pos")
    backward = forward.replace("_pos", "_neg")
    return backward if direction < 0 and getattr(part, backward, None) is not None else forward


def table_notice(path: str, law: Any, slowest: float, fastest: float, unit: str) -> Notice | None:
    """Return a notice if a motion between these speeds leaves the table of `law`."""
    table: Table | None = table_of(law)
    if table is None or (reached := table.left_at(slowest, fastest)) is None:
        return None
    first, last = (float(x) for x in np.asarray(table.v)[[0, -1]])
    numbers = {"first": first, "last": last, "reached": reached, "unit": unit}
    return Notice("table-left", path, numbers)


@cached_primitive(SECOND, jax.tree.structure((0,)))
def _law_use(system: MechanicalSystem, ts: Array, ys: Array, modes: Array) -> tuple[Array]:
    """Return four numbers for each contact and direction: lowest and highest speed, smallest value
    of the law, and the speed at which the law has this value. Array axes: contacts (contacts with a
    bristle last), directions 0 (unused), 1 and -1, and four numbers.
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
    ends = jnp.min(size, axis=0), jnp.max(speed, axis=0), jnp.min(value, axis=0)
    speed_there = jnp.take_along_axis(speed, lowest[None], axis=0)[0]
    found = jnp.stack([*ends, speed_there], axis=-1)
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
        before = jnp.concatenate([stuck[None], before])
        after = jnp.concatenate([first[None, :n], after])
        changed, times = jnp.concatenate([slides[None], changed]), jnp.concatenate([ts[:1], times])
    changed = changed.reshape(-1)
    # Several contacts may change their mode at one event.
    order = jnp.flatnonzero(changed, size=max(size, changed.size), fill_value=changed.size)

    def rows(values: Array, padding) -> Array:
        # For entries without an event, `order` selects the appended padding value.
        return jnp.append(values.reshape(-1), jnp.asarray(padding, values.dtype))[order]

    parts = jnp.broadcast_to(jnp.arange(n), before.shape)
    times = jnp.broadcast_to(times[:, None], before.shape)
    # After an early end of the run, event times are unknown: inf, with the derivative NaN.
    unknown = constant_if_known(path.ys[-1:], jnp.full(1, jnp.inf, times.dtype))[0]
    seen = rows(times, unknown), rows(parts, -1), rows(before, UNKNOWN), rows(after, UNKNOWN)
    return *seen, jnp.sum(changed)


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
