"""Find a limit cycle: simulate until the motion settles, then solve for a periodic state."""

import dataclasses
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from frictax.annotations import Checked, ScalarLike
from frictax.arguments import check_count, check_names, lists_options
from frictax.contacts.mode import STUCK
from frictax.engine import AbstractHybridSystem, Adaptive, Result
from frictax.engine.options import ForwardAlone
from frictax.interrupts import Keys
from frictax.mechanism import Machine, Mechanism
from frictax.parameters import check
from frictax.text import figures, suggestion

from .cycle import (
    CycleError,
    LimitCycle,
    PhaseLog,
    build_cycle,
    lasting_phases,
    mode_names,
    state_sizes,
)
from .return_map import (
    MIRRORED,
    PoincareSection,
    as_system,
    compiled_run_to_section,
    compiled_solve_cycle,
    resolved_extremes,
)

_EVENTS = {"rest": "comes to rest", "breakaway": "breaks away", "change": "changes its mode"}


class CycleOptions(TypedDict, total=False):
    """The options of `limit_cycle`; its docstring explains them."""

    near: LimitCycle | None
    returns: int
    symmetric: bool
    args: PyTree
    engine: Adaptive | None


_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(CycleOptions.__annotations__),
    "returns": 1,
    "symmetric": False,
}


@Keys()
@lists_options(CycleOptions, _DEFAULTS)
def limit_cycle(
    machine: Machine,
    within: ScalarLike,
    contact: Checked[str | int | None] = None,
    event: Checked[str | None] = None,
    **options: Unpack[CycleOptions],
) -> LimitCycle:
    """Find a limit cycle, such as hunting or stick-slip, by the shooting method.

    The machine is simulated from its start until the motion is approximately periodic. After that,
    Newton's method solves for a state that is the same at two consecutive events of one kind. The
    derivatives in this method are exact and include the effect of events. The cycle is exact to
    rounding and may be unstable.

    **Arguments:**

    - `machine`: a `Mechanism`, or a hybrid system of your own, such as an `AbstractAxis` with the
      integral of a controller's error among its `others`. Loads and references must become constant
      well before the time `within`. Every state must be periodic (no angle that grows with each
      turn).
    - `within` [s]: duration of the simulation from the start, and longest possible period.
    - `contact`, `event`: the event that starts the cycle. `event` is "rest", "breakaway" or
      "change" (any change of the contact's mode). `contact` is a name in a mechanism, and otherwise
      an index into the mode vector. The default is the first contact whose mode still changes in
      the second half of the simulation. The default event is "rest" if this contact comes to rest,
      and "change" otherwise. The event "rest" is the best choice: at rest the load is below the
      breakaway force in both directions, so Newton's method does not release the contact too early.
    - `near`: a cycle of a similar machine. The search begins at the start of `near` and uses the
      contact, event, `returns` and `symmetric` of `near`.
    - `returns`: how many times the event occurs in one period.
    - `symmetric`: whether the second half of the cycle is the first half with the opposite signs of
      all states. A machine that is symmetric about 0 can have symmetric cycles.
    - `args`: arguments of a system of your own. `engine`: an `Adaptive`, by default
      Adaptive(rtol=1e-10, atol=1e-13).

    **Returns:** a `LimitCycle`.

    **Raises:** `CycleError` if the event does not occur or stops occurring, if Newton's method does
    not find a cycle, or if a simulation fails. Another `CycleError` reports with `symmetric` that
    the machine is not symmetric. `ValueError` for invalid arguments.

    A mass on a belt with a spring sticks and slips. Each phase of sticking removes all
    disturbances, so the multipliers are 0:

    >>> import frictax as fx
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
    >>> print(fx.limit_cycle(belt, within=20.0))
    Limit cycle of 0.806889 s, stable: multipliers 0
    state   lowest    highest   amplitude
    mass.s  0.017639  0.062361  0.022361
    mass.v  -0.22361  0.1       0.1618
    time [s]  event
    0.4       friction slides backward
    0.806889  friction comes to rest
    """
    check_names(limit_cycle, options)
    given = {**_DEFAULTS, **options}
    near, engine, args = given["near"], given["engine"], given["args"]
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
    check_count("`limit_cycle`: `returns`", given["returns"], 1)
    if not jax.config.read("jax_enable_x64"):
        raise ValueError(
            "`limit_cycle` needs 64-bit numbers: the state must return to its start to ten"
            ' digits. Write `jax.config.update("jax_enable_x64", True)` first.'
        )
    if engine is not None and not isinstance(engine, Adaptive):
        raise ValueError(
            f"`limit_cycle`: `engine` must be an `Adaptive`, got {engine!r}. Write"
            " `Adaptive(rtol=1e-10)`."
        )
    # With these tolerances the return map is smooth enough for the tolerance of Newton's method.
    if engine is None:
        engine = Adaptive(rtol=1e-10, atol=1e-13, adjoint=ForwardAlone())  # pyright: ignore
    if near is not None:
        section = dataclasses.replace(near.section, longest=_float64(longest))
        settled = jnp.asarray(near.start), section, jnp.asarray(near.scale)
    else:
        settled = _settle(machine, longest, contact, event, {**given, "engine": engine})
    found = compiled_solve_cycle(machine, args, *settled, engine)
    return build_cycle(machine, args, found, *settled[1:], engine)


def _settle(
    machine: Any, within: float, contact: Any, event: Any, options: dict[str, Any]
) -> tuple[Any, PoincareSection, Any]:
    """Simulate the machine until `within` [s]. Return the state at the last event of the requested
    kind, the section that this event defines, and the sizes of the states.
    """
    returns, symmetric = options["returns"], options["symmetric"]
    args, engine = options["args"], options["engine"]
    y, mode = as_system(machine).start(jnp.asarray(0.0))
    if not np.size(mode):
        raise CycleError(
            "No cycle: no event occurs, because the machine has no modes. Add a contact."
        )
    # No event matches this section, so the run does not end early. The values have the same types
    # in all calls, so that JAX traces each program only once.
    section = PoincareSection(
        _int32([0, 0, 0]), _int32(2**30), _int32(mode), _float64(0.0), _float64(within)
    )
    path = compiled_run_to_section(machine, args, y, section, engine)
    if path.result != Result.successful:
        reached = float(np.max(np.asarray(path.times[: int(path.count)]), initial=0.0))
        raise CycleError(
            f"No cycle: the run stopped at {figures(reached)} s of {figures(within)} s."
            f" {Result[path.result]}"
        )
    log = PhaseLog.from_path(path)
    names = mode_names(machine, log.before.shape[1])
    which, at = _find_event(log, contact, event, names, within)
    last = float(log.times[at[-1]])
    if len(at) <= returns or within - last > 2 * (last - log.times[at[-1 - returns]]):
        raise CycleError(
            f"No cycle: {names[which[0]]} {_EVENTS[event or 'rest']} at {figures(last)} s and not"
            f" again within {figures(within)} s. Let it run for longer, or look at its run: it may"
            " have come to rest for good. Other gains or a larger start may change this."
        )
    section = dataclasses.replace(section, event=_int32(which), count=_int32(len(at)))
    end = compiled_run_to_section(machine, args, y, section, engine)
    before = at[-1 - returns]
    ends = log.times[before + 1 : at[-1] + 1] - log.times[before]
    y, mode = end.ys[-1, :-1], end.modes[-1, :-1]
    section = dataclasses.replace(
        section,
        event=_int32(which * np.array(MIRRORED if symmetric else 1)),
        count=_int32(returns),
        mode=_int32(mode),
        time=_float64(last),
        symmetric=symmetric,
    )
    ends = jnp.asarray(ends[lasting_phases(ends)])
    low, high, section = resolved_extremes(machine, args, y, section, ends, engine)
    return y, section, jnp.asarray(state_sizes(low, high))


def _find_event(
    log: PhaseLog, contact: Any, event: Any, names: Sequence[str], within: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the event as (index into the mode vector, mode before, mode after), and the indices of
    the phases in `log` that the event ends. Without `contact`, use the first contact whose mode
    changes in the second half of the run.
    """
    if contact is None:
        changed = log.changes & (log.times > 0.5 * log.times[-1])[:, None]
        known = [i for i, name in enumerate(names) if not name.startswith("mode ")]
        among = known or range(len(names))
        entry = next((i for i in among if changed[:, i].any()), next(iter(among)))
    elif isinstance(contact, int) and not isinstance(contact, bool) and 0 <= contact < len(names):
        entry = contact
    elif contact in names:
        entry = names.index(contact)
    else:
        raise ValueError(
            f"`limit_cycle`: `contact` must be one of {', '.join(names)}, or its entry in the mode,"
            f" got {contact!r}.{suggestion(contact, names)}"
        )
    before, after, changes = log.before[:, entry], log.after[:, entry], log.changes[:, entry]
    rests, leaves = changes & (after == STUCK), changes & (before == STUCK)
    late = log.times > 0.5 * log.times[changes][-1] if changes.any() else changes
    kind = event or ("rest" if (rests & late).any() else "change")
    occurs = {"rest": rests, "breakaway": leaves, "change": changes}[kind]
    if not occurs.any():
        raise CycleError(
            f"No cycle: {names[entry]} never {_EVENTS[kind]} within {figures(within)} s. Name"
            f" another contact (there are: {', '.join(names)}) or event, or let it run for longer."
        )
    last = np.flatnonzero(occurs)[-1]
    which = np.array([entry, before[last], after[last]], np.int32)
    # As in `ReturnSystem`, a reversal without standstill counts as a standstill of duration 0.
    turns = (which[2] == STUCK) & (after == -which[1])
    same = changes & (before == which[1]) & ((after == which[2]) | turns)
    return which, np.flatnonzero(same)


def _int32(x: Any) -> Array:
    return jnp.asarray(np.asarray(x, np.int32))


def _float64(x: Any) -> Array:
    return jnp.asarray(np.asarray(x, np.float64))
