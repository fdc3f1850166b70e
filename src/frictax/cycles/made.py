"""What is said of a cycle once its state is known."""

import dataclasses
from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int, PyTree

from frictax.cycles import compiled
from frictax.engine import Adaptive, Path
from frictax.mechanism import AbstractAxis, AbstractLinkage, Driven, Machine, Mechanism
from frictax.mechanism.hybrid import state_names
from frictax.mechanism.layout import layout
from frictax.text import figures

from .cycle import CycleEvent, LimitCycle, sizes
from .multipliers import multipliers
from .newton import ENOUGH, Solution
from .returns import Place

_LASTS = 1e-9  # of a period: phases that are shorter have no length


class CycleError(RuntimeError):
    """No limit cycle was found. The message says why and what to do.

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
class Log:
    """The phases of a run: their ends `times` (k,) [s] after its start, and the modes before and
    after these; `longest` [s]: how long the run might have been.
    """

    times: Float[np.ndarray, " k"]
    before: Int[np.ndarray, "k m"]
    after: Int[np.ndarray, "k m"]

    @classmethod
    def of(cls, path: Path, begins: float = 0.0) -> "Log":
        """Of a run to an event, without what comes after it."""
        n = int(path.count)
        left = np.asarray(path.after[:n, -1])
        n = min(n, int(np.argmax(left == 0)) + 1) if np.any(left == 0) else n
        before, after = (np.asarray(x)[:n, :-1] for x in (path.before, path.after))
        return cls(np.asarray(path.times)[:n] - begins, before, after)

    @property
    def changes(self) -> Bool[np.ndarray, "k m"]:
        return self.before != self.after


def lasting(ends: Float[np.ndarray, " k"]) -> Int[np.ndarray, " p"]:
    """Which of the phases with these ends are of some length."""
    return np.flatnonzero(np.diff(ends, prepend=0.0) > _LASTS * ends[-1])


def mode_names(machine: Machine, count: int) -> list[str]:
    """A name for each entry of the mode: that of its contact, where it is one."""
    own = machine.system if isinstance(machine, Driven) else machine
    if isinstance(own, Mechanism):
        names = [own.names[c.part] for c in layout(own).contacts]
    elif isinstance(own, AbstractAxis):
        names = ["friction"]
    else:
        known = len(own.frictions) if isinstance(own, AbstractLinkage) else 0
        names = [f"frictions.{i}" for i in range(known)]
    return names + [f"mode {i}" for i in range(len(names), count)]


def made(
    machine: Machine, args: PyTree, found: Solution, place: Place, engine: Adaptive
) -> LimitCycle:
    """The cycle of a solution; raises `CycleError` where it is none."""
    _check_found(found, place)
    y, half = np.asarray(found.y), float(found.there.after)
    path = compiled.walked(machine, args, y, place, engine)
    log = Log.of(path, float(place.time))
    _check_still(machine, args, found, place, engine)
    phases, period = len(log.times), 2 * half if place.symmetric else half
    if place.symmetric:
        log = Log(
            np.concatenate([log.times, log.times + half]),
            np.concatenate([log.before, _mirrored(machine, log.before)]),
            np.concatenate([log.after, _mirrored(machine, log.after)]),
        )
    ends = lasting(log.times)
    extremes = compiled.extremes(machine, args, y, place, jnp.asarray(log.times[ends]), engine)
    low, high = (np.asarray(x) for x in extremes)
    slopes, after = np.asarray(found.slopes.y), np.asarray(found.slopes.after)
    if place.symmetric:
        slopes, after = slopes @ slopes, after + after @ slopes
    flow = np.asarray(compiled.flow(machine, args, y, place))
    return LimitCycle(
        machine=machine,
        period=period,
        states=_states(machine, len(y)),
        low=low,
        high=high,
        start=y,
        mode=np.asarray(place.mode),
        time=float(place.time),
        events=tuple(_events(machine, log)),
        multipliers=multipliers(slopes, sizes(low, high)),
        return_map=slopes,
        monodromy=slopes - np.outer(flow, after),
        residual=float(found.residual),
        place=place,
        args=args,
        engine=engine,
        ends=tuple(map(int, ends)),
        phases=phases,
    )


def _check_still(
    machine: Machine, args: PyTree, found: Solution, place: Place, engine: Adaptive
) -> None:
    """Raise `CycleError` where the same state returns otherwise at another time."""
    later = dataclasses.replace(place, time=place.time + 0.37 * found.there.after)
    end = compiled.walked(machine, args, found.y, later, engine).ys[-1]
    after, there = float(end[-1]), float(found.there.after)
    if not abs(after - there) <= 1e-6 * there:
        raise CycleError(
            f"No cycle: the same state returns after {figures(there, 6)} s, and"
            f" {figures(after, 6)} s where it begins 0.37 of that later. What acts on the machine"
            " must not change over time: hold drives and references still (`Constant`), or begin"
            " when they have ended (`within`)."
        )


def _mirrored(machine: Machine, modes: np.ndarray) -> np.ndarray:
    """The modes of the mirror image: contacts that slide do so the other way."""
    names = mode_names(machine, modes.shape[1])
    slides = np.array([not name.startswith("mode ") for name in names])
    return np.where(slides & (np.abs(modes) == 1), -modes, modes)


def _states(machine: Machine, count: int) -> tuple[str, ...]:
    names = state_names(machine) if isinstance(machine, Mechanism) else machine.states()
    return names or tuple(f"y[{i}]" for i in range(count))


def _events(machine: Machine, log: Log) -> Iterator[CycleEvent]:
    names = mode_names(machine, log.before.shape[1])
    for time, before, after in zip(log.times, log.before, log.after, strict=True):
        for name, old, new in zip(names, before, after, strict=True):
            if old != new and time > _LASTS * log.times[-1]:
                yield CycleEvent(float(time), name, int(old), int(new))


def _check_found(found: Solution, place: Place) -> None:
    longest = figures(float(place.longest))
    if not float(found.residual) <= ENOUGH:
        if not np.isfinite(found.residual):
            why = (
                f"from where it was looked for it does not come back within {longest} s, or the run"
                " fails. Let it settle for longer (`within`)"
            )
        else:
            why = (
                f"after {int(found.tried)} returns the state still misses itself by"
                f" {float(found.residual):.1g} of the amplitudes. Let it settle for longer"
                " (`within`), or say how many events make a period (`returns`)"
            )
        raise CycleError(f"No cycle: {why}.")
