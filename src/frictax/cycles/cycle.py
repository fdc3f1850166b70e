"""`LimitCycle`: a cycle with events and multipliers, built from a fixed point of the return map."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from frictax.engine import Adaptive, Path, walk
from frictax.mechanism import AbstractAxis, AbstractLinkage, Driven, Machine, Mechanism
from frictax.mechanism.hybrid import state_names
from frictax.mechanism.layout import layout
from frictax.parameters import get, select
from frictax.programs import interruptible_jit
from frictax.text import align_columns, figures

from .following import CycleNumbers, Neighbourhood, compiled_derivatives, follow_compiled
from .return_map import (
    ACCEPTED,
    PoincareSection,
    Solution,
    as_system,
    compiled_run_to_section,
    resolved_extremes,
    run_second_half,
)


class CycleError(RuntimeError):
    """The error if no limit cycle is found; the message states the reason and a remedy.

    >>> import frictax as fx
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0, v=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0)),
    ... )
    >>> try:
    ...     fx.limit_cycle(block, within=9.0)
    ... except fx.CycleError as error:
    ...     print(error)
    No cycle: friction comes to rest at 0.5 s and not again within 9 s. ...
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


@dataclasses.dataclass(frozen=True)
class CycleEvent:
    """A change of a contact's mode. `time` [s] is 0 at the start of the cycle. `contact` is the
    name of the contact, and `before` and `after` are its modes.

    In a `Mechanism`, `contact` is the name of a part. In an `AbstractAxis`, `contact` is
    ``"friction"``. In an `AbstractLinkage`, `contact` is for example ``"frictions.0"``. Other
    entries of the mode vector have names such as ``"mode 3"``.

    **Example:** at `LimitCycle`.
    """

    time: float
    contact: str
    before: int
    after: int

    def __str__(self) -> str:
        if self.contact.startswith("mode "):
            return f"{self.contact}: {self.before} to {self.after}"
        words = {0: "comes to rest", 1: "slides forward", -1: "slides backward", 2: "is free"}
        return f"{self.contact} {words.get(self.after, f'goes to mode {self.after}')}"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LimitCycle:
    """A periodic motion that `limit_cycle` found. Print it to get a table.

    - `period` [s]; `states`: names of the states; `low`, `high` (n,): lowest and highest value of
      each state; `amplitude` (n,): half of the difference between highest and lowest value.
    - `start` (n,), `mode` (m,), `time` [s]: state, mode and time at the event that starts the
      cycle. `events`: the events of one cycle; the last of them starts the next cycle.
    - `multipliers` (n-1,): Floquet multipliers, the largest first: factors by which one period
      multiplies small disturbances. A multiplier is 0 if a phase of sticking removes the
      disturbance. `stable`: whether all multipliers have an absolute value below 1.
    - `return_map` (n, n): derivative of the state at the event with respect to the state at this
      event one period before; `monodromy` (n, n): derivative of the state after one period with
      respect to the start. The monodromy has an additional multiplier 1, along the cycle.
    - `residual`: largest difference between the state before and after a period, relative to the
      amplitude.

    **Example:** the cycle of `limit_cycle`, its derivatives with respect to a parameter, and the
    cycle for another value of this parameter:

    >>> import frictax as fx, jax.numpy as jnp
    >>> belt = fx.Mechanism(
    ...     wall=fx.Fixed(),
    ...     mass=fx.Mass(m=1.0),
    ...     spring=fx.Spring("wall", "mass", c=100.0),
    ...     belt=fx.Mass(m=1.0),
    ...     drive=fx.Position("belt", fx.Ramp(height=100.0, duration=1e3)),
    ...     friction=fx.SupportFriction(
    ...         "mass", f_pos=fx.Coulomb(F_Coulomb=4.0), peak=1.5, support="belt"
    ...     ),
    ... )
    >>> cycle = fx.limit_cycle(belt, within=20.0)
    >>> by = cycle.derivatives("friction.peak")["friction.peak"]
    >>> print(f"{by.period:.4f} s, {1e3 * by.amplitude[0]:.2f} mm")
    0.6400 s, 35.78 mm
    >>> stronger = fx.parameters.replace(belt, {"friction.peak": 1.6})
    >>> print(f"{cycle.follow(stronger).period:.4f} s, {cycle.period:.4f} s")
    0.8731 s, 0.8069 s
    """

    machine: Any
    period: float
    states: tuple[str, ...]
    low: Float[np.ndarray, " n"]
    high: Float[np.ndarray, " n"]
    start: Float[np.ndarray, " n"]
    mode: Int[np.ndarray, " m"]
    time: float
    events: tuple[CycleEvent, ...]
    multipliers: Any
    return_map: Float[np.ndarray, "n n"]
    monodromy: Float[np.ndarray, "n n"]
    residual: float
    section: PoincareSection
    args: PyTree
    engine: Adaptive
    ends: tuple[int, ...]  # indices of the phases of nonzero length
    phases: int  # number of phases in one return

    @property
    def amplitude(self) -> Float[np.ndarray, " n"]:
        return 0.5 * (self.high - self.low)

    @property
    def stable(self) -> bool:
        return bool(np.all(np.abs(self.multipliers) < 1.0))

    @property
    def scale(self) -> Float[np.ndarray, " n"]:
        """The size of each state (n,), by which residuals and steps are divided: its amplitude, or
        1 for a constant state.
        """
        return state_sizes(self.low, self.high)

    def follow(self, machine: Machine) -> CycleNumbers:
        """Return period and extremes of the cycle of a machine with other parameter values.

        The function is pure: JAX can differentiate it (forward mode), compile it and batch it. The
        derivatives follow from the implicit function theorem, are exact, and include the effect of
        all events. In the ``found.derived(...)`` of a fit, `follow` gives the standard errors of
        period and amplitude.

        **Arguments:** `machine`: a machine with the structure of this cycle's machine. The values
        of both machines must be similar, because the search starts at this cycle.

        **Returns:** `CycleNumbers`. All numbers are NaN if no cycle is found, or if the cycle has
        another sequence of events. In traced code the extremes are also NaN if the motion
        oscillates much faster than that of this cycle.

        **Raises:** `ValueError` for a parameter outside its domain, except in traced code.
        """
        return follow_compiled(machine, self.args, self._neighbourhood)

    @property
    def _neighbourhood(self) -> Neighbourhood:
        return Neighbourhood(
            self.start, self.section, self.scale, self.engine, self.ends, self.phases
        )

    def derivatives(self, paths: str | Iterable[str]) -> dict[str, CycleNumbers]:
        """Return the derivatives of the cycle's numbers with respect to the parameters at `paths`.
        The derivatives are exact and include the effect of all events.

        **Returns:** a dict from path to `CycleNumbers`, whose fields are derivatives: of period,
        extremes, amplitude and start. For a vector parameter, the derivatives have one more axis at
        the end.
        """
        names = [p.path for p in select(self.machine, paths)]
        values = {name: jnp.asarray(get(self.machine, name), float) for name in names}
        return compiled_derivatives(values, self.machine, self.args, self._neighbourhood)

    def sampled(self, count: int = 401, periods: float = 1.0) -> tuple[Array, Array, Array]:
        """Simulate the cycle over the given number of `periods`.

        **Returns:** `count` equidistant times [s], states (count, n), and modes (count, m).
        """
        ts = jnp.linspace(0.0, periods * self.period, count)
        path = _simulate(self.machine, self.args, self.start, self.section, ts, self.engine)
        return ts, path.ys, path.modes

    def __str__(self) -> str:
        head = f"Limit cycle of {figures(self.period, 6)} s, "
        head += "stable: " if self.stable else "not stable: "
        head += "multipliers " + ", ".join(
            figures(float(x), 4) if np.imag(x) == 0 else f"{x:.4g}" for x in self.multipliers
        )
        rows = [
            (name, *(figures(float(x), 5) for x in (low, high, half)))
            for name, low, high, half in zip(
                self.states, self.low, self.high, self.amplitude, strict=True
            )
        ]
        table = align_columns(("state", "lowest", "highest", "amplitude"), rows)
        events = align_columns(
            ("time [s]", "event"), [(figures(e.time, 6), str(e)) for e in self.events]
        )
        return "\n".join([head, *table, *events])

    __repr__ = __str__


def state_sizes(low: Any, high: Any) -> Float[np.ndarray, " n"]:
    """Return the amplitude of each state; 1 for a constant state."""
    half = 0.5 * (np.asarray(high) - np.asarray(low))
    return np.where(half > 0, half, 1.0)


@interruptible_jit
def _simulate(
    machine: Any, args: PyTree, y: Any, section: PoincareSection, ts: Any, engine: Adaptive
) -> Any:
    return walk(as_system(machine), jnp.asarray(y), section.mode, section.time + ts, args, engine)


@interruptible_jit
def _flow(machine: Machine, args: PyTree, y: Any, section: PoincareSection) -> Array:
    return as_system(machine).flow(section.time, jnp.asarray(y), section.mode, args)


@dataclasses.dataclass(frozen=True)
class PhaseLog:
    """The phases of a run, each between two events: end `times` (k,) [s] of the phases, and the
    mode vectors (k, m) `before` and `after` each end.
    """

    times: Float[np.ndarray, " k"]
    before: Int[np.ndarray, "k m"]
    after: Int[np.ndarray, "k m"]

    @classmethod
    def from_path(cls, path: Path, begins: float = 0.0) -> "PhaseLog":
        """Return the phases of the run `path`, up to the event that ends the return. `begins`: time
        at which the run begins [s].
        """
        n = int(path.count)
        remaining = np.asarray(path.after[:n, -1])
        n = min(n, int(np.argmax(remaining == 0)) + 1) if np.any(remaining == 0) else n
        before, after = (np.asarray(x)[:n, :-1] for x in (path.before, path.after))
        return cls(np.asarray(path.times)[:n] - begins, before, after)

    @property
    def changes(self) -> Bool[np.ndarray, "k m"]:
        return self.before != self.after


def lasting_phases(ends: Float[np.ndarray, " k"]) -> Int[np.ndarray, " p"]:
    """Return the indices of phases longer than 1e-9 times the run. `ends`: end times of phases."""
    return np.flatnonzero(np.diff(ends, prepend=0.0) > 1e-9 * ends[-1])


def mode_names(machine: Machine, count: int) -> list[str]:
    """Return a name for each of the `count` entries of the mode vector: the name of its contact, or
    ``"mode 3"`` for an entry that is not the mode of a contact.
    """
    own = machine.system if isinstance(machine, Driven) else machine
    if isinstance(own, Mechanism):
        names = [own.names[c.part] for c in layout(own).contacts]
    elif isinstance(own, AbstractAxis):
        names = ["friction"]
    else:
        known = len(own.frictions) if isinstance(own, AbstractLinkage) else 0
        names = [f"frictions.{i}" for i in range(known)]
    return names + [f"mode {i}" for i in range(len(names), count)]


def build_cycle(
    machine: Machine,
    args: PyTree,
    found: Solution,
    section: PoincareSection,
    scale: Any,
    engine: Adaptive,
) -> LimitCycle:
    """Return the `LimitCycle` for the fixed point `found` of the return map. `scale`: sizes of the
    states.

    **Raises:** `CycleError` if the fixed point is not a limit cycle.
    """
    if not float(found.residual) <= ACCEPTED:
        if not np.isfinite(found.residual):
            why = (
                "from the start of the search the state does not return within"
                f" {figures(float(section.longest))} s, or the run fails. Let it settle for longer"
                " (`within`)"
            )
        else:
            why = (
                f"after {int(found.tried)} returns the state still differs from its start by"
                f" {float(found.residual):.1g} of the amplitudes. Let it settle for longer"
                " (`within`), or say how many events make a period (`returns`)"
            )
        raise CycleError(f"No cycle: {why}.")
    y, half = np.asarray(found.y), float(found.image.after)
    path = compiled_run_to_section(machine, args, y, section, engine)
    log = PhaseLog.from_path(path, float(section.time))
    # The machine must not depend on time: a return that starts later must take the same time.
    later = dataclasses.replace(section, time=section.time + 0.37 * found.image.after)
    later_half = float(compiled_run_to_section(machine, args, found.y, later, engine).ys[-1, -1])
    if not abs(later_half - half) <= 1e-6 * half:
        raise CycleError(
            f"No cycle: the state returns after {figures(half, 6)} s, but after"
            f" {figures(later_half, 6)} s from a start that is 0.37 of this time later. Drives and"
            " references must be constant (`Constant`), or end before the search begins (`within`)."
        )
    logs, times, period = [log], log.times, half
    if section.symmetric:
        second, mirrored = run_second_half(machine, args, path, section, scale, engine)
        if not mirrored:
            raise CycleError(
                "No cycle: the motion from the mirror image of the start is not the mirror image of"
                " the motion from the start. The machine is not symmetric about 0. Leave out"
                " symmetric=True."
            )
        logs.append(PhaseLog.from_path(second, float(section.time)))
        times, period = np.append(times, half + times), 2 * half
    names, events = mode_names(machine, log.before.shape[1]), []
    for of in logs:
        for time, before, now in zip(of.times, of.before, of.after, strict=True):
            for name, old, new in zip(names, before, now, strict=True):
                if old != new and time > 1e-9 * period:
                    events.append(CycleEvent(float(time), name, int(old), int(new)))
    ends = lasting_phases(times)
    extremes = resolved_extremes(machine, args, y, section, jnp.asarray(times[ends]), engine)
    (low, high), section = (np.asarray(x) for x in extremes[:2]), extremes[2]
    if not np.all(np.isfinite(low)):
        raise CycleError(
            "No cycle: the extremes of the states are unknown. A run over one period fails, or a"
            " state oscillates thousands of times between two events. Check stiffnesses and masses."
        )
    derivatives, after = np.asarray(found.derivatives.y), np.asarray(found.derivatives.after)
    if section.symmetric:
        derivatives, after = derivatives @ derivatives, after + after @ derivatives
    flow = np.asarray(_flow(machine, args, y, section))
    states = state_names(machine) if isinstance(machine, Mechanism) else machine.states()
    return LimitCycle(
        machine=machine,
        period=period,
        states=states or tuple(f"y[{i}]" for i in range(len(y))),
        low=low,
        high=high,
        start=y,
        mode=np.asarray(section.mode),
        time=float(section.time),
        events=tuple(events),
        multipliers=floquet_multipliers(derivatives, state_sizes(low, high)),
        return_map=derivatives,
        monodromy=derivatives - np.outer(flow, after),
        residual=float(found.residual),
        section=section,
        args=args,
        engine=engine,
        ends=tuple(map(int, ends)),
        phases=len(log.times),
    )


def floquet_multipliers(derivatives: Any, scale: Any) -> np.ndarray:
    """Return n-1 eigenvalues of a return map's derivative (n, n), the largest first. The eigenvalue
    0 in the direction of motion is omitted. An event or a phase of sticking makes some eigenvalues
    exactly 0. For a defective eigenvalue 0, an eigenvalue solver returns a root of the rounding
    error. Therefore repeated singular value decompositions first remove the null space.
    """
    n = len(scale)
    matrix = np.asarray(derivatives) * scale / np.asarray(scale)[:, None]
    while matrix.size:
        left, sizes, right = np.linalg.svd(matrix)
        rank = int(np.sum(sizes > 1e-7 * max(1.0, sizes[0])))
        if rank == len(matrix):
            break
        # The nonzero eigenvalues of U S V' are those of the smaller matrix S V' U.
        matrix = sizes[:rank, None] * (right[:rank] @ left[:, :rank])
    found = np.linalg.eigvals(matrix) if matrix.size else np.zeros(0)
    found = np.concatenate([found, np.zeros(n - len(found))])[: n - 1]
    found = found[np.argsort(-np.abs(found), kind="stable")]
    return found.real if np.all(found.imag == 0) else found
