"""Find a limit cycle: let the machine settle, then solve for the state that returns to itself."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from frictax.annotations import Checked, ScalarLike
from frictax.arguments import whole
from frictax.contacts.mode import STUCK
from frictax.engine import AbstractHybridSystem, Adaptive, Result
from frictax.interrupts import Keys
from frictax.mechanism import Machine, Mechanism
from frictax.parameters import check
from frictax.text import figures, suggestion

from . import compiled
from .cycle import LimitCycle, sizes
from .made import CycleError, Log, lasting, made, mode_names
from .returns import Place, as_system

_ENDLESS = 2**30
_EVENTS = {"rest": "comes to rest", "breakaway": "breaks away", "change": "changes its mode"}


@Keys()
def limit_cycle(
    machine: Machine,
    within: ScalarLike,
    contact: Checked[str | int | None] = None,
    event: Checked[str | None] = None,
    *,
    near: LimitCycle | None = None,
    returns: Checked[int] = 1,
    symmetric: Checked[bool] = False,
    args: PyTree = None,
    engine: Checked[Adaptive | None] = None,
) -> LimitCycle:
    """Find a limit cycle, such as hunting or stick-slip, by shooting: the state at an event that
    comes back to itself at the next one.

    The machine runs from its start until it has about settled; from there Newton's method solves
    for the state, with the exact derivatives of the return through all events. A cycle found is one
    to rounding, and may be an unstable one.

    **Arguments:**

    - `machine`: a `Mechanism`, or a hybrid system of one's own, such as an `AbstractAxis` with the
      integral of a controller's error among its `others`. What acts on it must not change over
      time, at least not after it has settled; every state must come back (no angle that grows turn
      by turn).
    - `within` [s]: how long it runs from its start, and how long a period may last.
    - `contact`, `event`: which event begins the cycle, a "rest", a "breakaway" or any "change" of
      its mode; of a mechanism the contact's name, else its entry in the mode. Unless given, the
      first contact that goes on changing, where it comes to rest if it does so: a start at rest has
      margins to both sides, so that Newton's steps cannot break it away too soon.
    - `near`: a cycle of a machine that is much the same, from whose start it is looked for instead;
      contact, event, `returns` and `symmetric` are those of it.
    - `returns`: how many times the event comes in one period.
    - `symmetric`: the second half of the cycle is the first with all states of opposite sign, as of
      a machine that is the same both ways, about a middle at 0.
    - `args`: those of a system of one's own. `engine`: an `Adaptive`; Adaptive(rtol=1e-10,
      atol=1e-13) unless given.

    **Returns:** a `LimitCycle`.

    **Raises:** `CycleError` where there is no such event, where it comes no more, where Newton's
    method finds no cycle, and where a run fails; `ValueError` for arguments that do not fit.

    A mass on a belt, pulled back by a spring, sticks and slips. It forgets everything while it
    sticks, so that both multipliers are 0:

    >>> import frictax as fx
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
    >>> print(fx.limit_cycle(belt, within=20.0))
    Limit cycle of 0.806889 s, stable: multipliers 0
    state   lowest    highest   amplitude
    mass.s  0.017639  0.062361  0.022361
    mass.v  -0.22361  0.1       0.1618
    time [s]  event
    0.4       friction slides backward
    0.806889  friction comes to rest
    """
    engine, within = _checked(machine, within, event, returns, engine)
    if near is not None:
        place = dataclasses.replace(near.place, longest=_real(within))
        settled = jnp.asarray(near.start), place, jnp.asarray(near.scale)
    else:
        settled = _settle(machine, within, contact, event, returns, symmetric, args, engine)
    return made(machine, args, compiled.solved(machine, args, *settled, engine), settled[1], engine)


def _checked(
    machine: Any, within: Any, event: Any, returns: Any, engine: Any
) -> tuple[Adaptive, float]:
    """The engine and the time, after a look at all arguments."""
    if not isinstance(machine, Mechanism | AbstractHybridSystem):
        raise ValueError(
            "`limit_cycle` needs a `Mechanism` or a hybrid system of your own, got a"
            f" {type(machine).__name__}."
        )
    check(machine)
    longest = float(within) if np.ndim(within) == 0 else np.nan
    if not (np.isfinite(longest) and longest > 0):
        raise ValueError(f"`limit_cycle`: `within` must be a time > 0 [s], got {within!r}.")
    if event is not None and event not in _EVENTS:
        raise ValueError(
            f"`limit_cycle`: `event` must be one of {', '.join(map(repr, _EVENTS))}, got"
            f" {event!r}.{suggestion(event, _EVENTS)}"
        )
    whole("`limit_cycle`: `returns`", returns, 1)
    if not jax.config.read("jax_enable_x64"):
        raise ValueError(
            "`limit_cycle` needs 64-bit numbers: the state has to come back to itself to ten"
            ' figures. Write `jax.config.update("jax_enable_x64", True)` first.'
        )
    if engine is not None and not isinstance(engine, Adaptive):
        raise ValueError(
            f"`limit_cycle`: `engine` must be an `Adaptive`, got {engine!r}. Write"
            " `Adaptive(rtol=1e-10)`."
        )
    return compiled.tight() if engine is None else engine, longest


def _settle(
    machine: Any,
    within: float,
    contact: Any,
    event: Any,
    returns: int,
    symmetric: bool,
    args: PyTree,
    engine: Adaptive,
) -> tuple[Any, Place, Any]:
    """State and place of a start, and the sizes of the states, from the last of the events that the
    machine comes to by itself.
    """
    y, mode = as_system(machine).start(jnp.asarray(0.0))
    # of the same types in every call, so that each program is traced once
    place = Place(_whole([0, 0, 0]), _whole(_ENDLESS), _whole(mode), _real(0.0), _real(within))
    path = compiled.walked(machine, args, y, place, engine)
    if path.result != Result.successful:
        reached = float(np.max(np.asarray(path.times[: int(path.count)]), initial=0.0))
        raise CycleError(
            f"No cycle: the run stopped at {figures(reached)} s of {figures(within)} s."
            f" {Result[path.result]}"
        )
    log = Log.of(path)
    names = mode_names(machine, log.before.shape[1])
    entry = _entry(names, contact, log)
    section, at = _section(log, entry, event, names, within)
    last = float(log.times[at[-1]])
    if len(at) <= returns or within - last > 2 * (last - log.times[at[-1 - returns]]):
        raise CycleError(
            f"No cycle: {_told(names[entry], event)} at {figures(last)} s and not"
            f" again within {figures(within)} s. Let it run for longer, or look at its run: it may"
            " have come to rest for good, which the gains, or a greater start, may change."
        )
    place = dataclasses.replace(place, section=_whole(section), count=_whole(len(at)))
    end = compiled.walked(machine, args, y, place, engine)
    before = at[-1 - returns]
    ends = log.times[before + 1 : at[-1] + 1] - log.times[before]
    y, mode = end.ys[-1, :-1], end.modes[-1, :-1]
    place = dataclasses.replace(
        place,
        section=_whole(section * np.array([1, -1, -1] if symmetric else 1)),
        count=_whole(returns),
        mode=_whole(mode),
        time=_real(last),
        symmetric=symmetric,
    )
    ends = jnp.asarray(ends[lasting(ends)])
    return y, place, jnp.asarray(sizes(*compiled.extremes(machine, args, y, place, ends, engine)))


def _entry(names: Sequence[str], contact: Any, log: Log) -> int:
    """The entry of the mode whose changes are looked at."""
    if contact is None:
        late = log.changes & (log.times > 0.5 * log.times[-1])[:, None]
        known = [i for i, name in enumerate(names) if not name.startswith("mode ")]
        among = known or range(len(names))
        return next((i for i in among if late[:, i].any()), next(iter(among)))
    if isinstance(contact, int) and not isinstance(contact, bool) and 0 <= contact < len(names):
        return contact
    if contact in names:
        return names.index(contact)
    raise ValueError(
        f"`limit_cycle`: `contact` must be one of {', '.join(names)}, or its entry in the mode,"
        f" got {contact!r}.{suggestion(contact, names)}"
    )


def _section(
    log: Log, entry: int, event: Any, names: Sequence[str], within: float
) -> tuple[np.ndarray, np.ndarray]:
    """The event as entry and modes before and after, and where in the log it is."""
    before, after, changes = log.before[:, entry], log.after[:, entry], log.changes[:, entry]
    rests, leaves = changes & (after == STUCK), changes & (before == STUCK)
    late = log.times > 0.5 * log.times[changes][-1] if changes.any() else changes
    kind = event or ("rest" if (rests & late).any() else "change")
    of = {"rest": rests, "breakaway": leaves, "change": changes}[kind]
    if not of.any():
        raise CycleError(
            f"No cycle: {names[entry]} never {_EVENTS[kind]} within {figures(within)} s. Name"
            f" another contact (there are: {', '.join(names)}) or event, or let it run for longer."
        )
    last = np.flatnonzero(of)[-1]
    section = np.array([entry, before[last], after[last]], np.int32)
    # as `Returning` has it: where it rests, a turn without a rest is the same
    turns = (section[2] == STUCK) & (after == -section[1])
    same = changes & (before == section[1]) & ((after == section[2]) | turns)
    return section, np.flatnonzero(same)


def _told(name: str, event: Any) -> str:
    return f"{name} {_EVENTS[event or 'rest']}"


def _whole(x: Any) -> Array:
    return jnp.asarray(np.asarray(x, np.int32))


def _real(x: Any) -> Array:
    return jnp.asarray(np.asarray(x, np.float64))
