"""A limit cycle, and what follows from it."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from frictax.engine import Adaptive, walk
from frictax.mechanism import Machine
from frictax.parameters import get, select
from frictax.programs import interruptible_jit
from frictax.text import aligned, figures

from . import compiled
from .following import Around, CycleNumbers
from .returns import Place, as_system


@dataclasses.dataclass(frozen=True)
class CycleEvent:
    """A mode that changes on the way: `time` [s] after the start, the `contact` by name (of a
    system of one's own ``"contact 0"``, and ``"mode 3"`` what is no contact), its mode `before` and
    `after`.

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
    """A motion that repeats itself, as `limit_cycle` finds it. Print it.

    - `period` [s]; `states`, the names of the state vector, and for each of them (n,) `low` and
      `high`, its least and its greatest value, and `amplitude`, half of what lies between.
    - `start` (n,), `mode` (m,), `time` [s]: of the event that begins it; `events`: what happens on
      the way, the last one being the first again.
    - `multipliers` (n-1,): Floquet multipliers, by which a small disturbance has grown when a
      period is over, the largest first; 0 for what is forgotten: a stick leaves only the places
      where it rests and what is integrated meanwhile. `stable`: all are less than 1 in size.
    - `return_map` (n, n): the derivative of the state at the event by the one a period before;
      `monodromy` (n, n): that of the state after the time of a period, which has the further
      multiplier 1, of the motion along the cycle.
    - `residual`: by how much the state misses itself, over the amplitudes.

    **Example:** a mass on a belt, pulled back by a spring: see `limit_cycle`. What follows from
    it:

    >>> import frictax as fx, jax.numpy as jnp
    >>> belt = fx.Mechanism(
    ...     wall=fx.Fixed(),
    ...     mass=fx.Mass(m=1.0),
    ...     spring=fx.Spring("wall", "mass", c=100.0),
    ...     belt=fx.Mass(m=1.0),
    ...     drive=fx.Position("belt", lambda t: 0.1 * t),
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
    place: Place
    args: PyTree
    engine: Adaptive
    # of each phase of a return that lasts, which of its ends it is, of how many
    ends: tuple[int, ...]
    phases: int

    @property
    def amplitude(self) -> Float[np.ndarray, " n"]:
        return 0.5 * (self.high - self.low)

    @property
    def stable(self) -> bool:
        return bool(np.all(np.abs(self.multipliers) < 1.0))

    @property
    def scale(self) -> Float[np.ndarray, " n"]:
        """The size of each state, for residuals and steps."""
        return sizes(self.low, self.high)

    def follow(self, machine: Machine) -> CycleNumbers:
        """The same cycle of a machine with other values: a pure function, to be differentiated
        (forward), compiled and batched by JAX.

        The derivatives are those of the implicit function theorem, through all events: a fit's
        ``found.derived(...)`` makes errors of them.

        **Arguments:** `machine`, of the structure of the cycle's own and not far from it, for it is
        found from the cycle's start.

        **Returns:** `CycleNumbers`; NaN where no such cycle is found and where its events are
        others.
        """
        return compiled.followed(machine, self.args, self._around)

    @property
    def _around(self) -> Around:
        return Around(self.start, self.place, self.scale, self.engine, self.ends, self.phases)

    def derivatives(self, paths: str | Iterable[str]) -> dict[str, CycleNumbers]:
        """The derivatives of period, amplitude and start by the parameters at `paths`, exact
        through all events.

        **Returns:** for each path `CycleNumbers` that hold the derivatives; of a parameter of
        several numbers, with a last axis for these.
        """
        names = [p.path for p in select(self.machine, paths)]
        values = {name: jnp.asarray(get(self.machine, name), float) for name in names}
        return compiled.derivatives(values, self.machine, self.args, self._around)

    def sampled(self, count: int = 401, periods: float = 1.0) -> tuple[Array, Array, Array]:
        """Times (count,) [s] from its start, states (count, n) and modes (count, m) there, evenly
        over so many periods.
        """
        ts = jnp.linspace(0.0, periods * self.period, count)
        path = _run(self.machine, self.args, self.start, self.place, ts, self.engine)
        return ts, path.ys, path.modes

    def __str__(self) -> str:
        head = f"Limit cycle of {figures(self.period, 6)} s, "
        head += "stable: " if self.stable else "not stable: "
        head += "multipliers " + ", ".join(_short(x) for x in self.multipliers)
        rows = [
            (name, *(figures(float(x), 5) for x in (low, high, half)))
            for name, low, high, half in zip(
                self.states, self.low, self.high, self.amplitude, strict=True
            )
        ]
        table = aligned(("state", "lowest", "highest", "amplitude"), rows)
        events = aligned(("time [s]", "event"), [(figures(e.time, 6), str(e)) for e in self.events])
        return "\n".join([head, *table, *events])

    __repr__ = __str__


def _short(x: Any) -> str:
    return figures(float(x), 4) if np.imag(x) == 0 else f"{x:.4g}"


def sizes(low: Any, high: Any) -> Float[np.ndarray, " n"]:
    """How large each state's motion is; 1 of what does not move."""
    half = 0.5 * (np.asarray(high) - np.asarray(low))
    return np.where(half > 0, half, 1.0)


@interruptible_jit
def _run(machine: Any, args: PyTree, y: Any, place: Place, ts: Any, engine: Adaptive) -> Any:
    return walk(as_system(machine), jnp.asarray(y), place.mode, place.time + ts, args, engine)
