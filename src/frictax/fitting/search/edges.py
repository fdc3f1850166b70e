"""Searches that continue beyond a discontinuity of the cost.

At a discontinuity, a small change of the parameters adds or removes an event, such as the end of
sliding or a breakaway. The cost jumps by a few times the variance of the noise, and steps along its
gradient do not cross the discontinuity. The least cost may be beyond or at the discontinuity.
"""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.interrupts import may_keep
from frictax.notice import Notice
from frictax.programs import cached_jit
from frictax.progress import Work

from ..problem.objectives import PreparedRecord
from ..problem.problem import Problem
from ..problem.setup import contact_modes, contact_names
from .certificate import Certificate, certify
from .levenberg_marquardt import Descent
from .run import begun

LENGTHS = (0.1, 1.0, 3.0)  # [standard errors] distances of probe points from the final point
ROUNDS = 4  # largest number of rounds in which probe points are evaluated
# `_SHORT`: largest number of steps of a search that starts beyond a discontinuity. `_LONG`: largest
# number of further steps of a search that found a lower cost within `_SHORT` steps.
_SHORT, _LONG = 15, 60

# A function (state, number of the last step, noise scale) -> state that continues a search.
Advance = Callable[[Descent, int, Any], Descent]


class Event(NamedTuple):
    """A change of the mode of contact number `contact` at `time` [s] in record number `record`."""

    record: int
    contact: int
    before: int
    after: int
    time: float

    @property
    def kind(self) -> tuple[int, ...]:
        return self[:4]


Events = tuple[Event, ...]


class Hopped(NamedTuple):
    """The result of searches beyond jumps of the cost; `interrupted`: true after Ctrl-C."""

    state: Descent
    steps: int
    interrupted: bool
    notices: tuple[Notice, ...]


def may_gain(problem: Problem, state: Descent) -> bool:
    """Return True if a search that ended at `state` may have met a discontinuity of the cost.

    There are two signs of a discontinuity: the tolerance was not met, or one of the last trial
    points within 100 standard errors had another event sequence. The result is False if initial
    states of windows are fitted, because the cost is discontinuous in each of these states.
    """
    jacobian = np.asarray(state.jacobian)
    known = bool(np.isfinite(state.cost)) and bool(jacobian.any()) and bool(state.done)
    if not known or any(u.hidden for u in problem.unknowns):
        return False
    tried = np.arange(len(state.kinds)) < state.steps
    off = np.asarray(state.trials)[tried & (state.kinds != state.kind)] - state.z
    variance = 2.0 * state.cost / max(len(jacobian) - off.shape[1], 1)
    near = np.sum((off @ jacobian.T) ** 2, axis=1) < 100.0**2 * variance
    return not bool(state.settled) or bool(near.any())


def over_edges(
    problem: Problem, state: Descent, noise: float, dof: float, advance: Advance, say: Work
) -> Hopped:
    """Search beyond the discontinuities of the cost around `state`. Return the best final state, or
    `state` if no search finds a lower cost.

    In each of at most `ROUNDS` rounds, the cost and the event sequence are computed at probe points
    along the eigenvectors of the Gram matrix. A short search starts from the best probe of each new
    event sequence. The first search with a lower final cost continues, and the next round probes
    around its final point.

    **Source:** D. J. Wales, J. P. K. Doye, "Global optimization by basin-hopping", *Journal of
    Physical Chemistry A* 101, 1997. Unlike in the source, the probe points are not random.
    """
    steps, seen, notices = 0, set[tuple[tuple[int, ...], ...]](), ()
    try:
        for _ in range(ROUNDS):
            z, variance = np.asarray(state.z), 2.0 * float(state.cost) / dof
            # `ways`: steps of one standard error along the eigenvectors of the scaled Gram matrix,
            # limited to the span of each coordinate. The 12 least certain directions are probed.
            gram = np.asarray(state.products)[:-1, :-1]
            unit = np.sqrt(np.diag(gram))
            unit = np.where(unit > 0, unit, 1.0)
            sizes, vectors = np.linalg.eigh(gram / np.outer(unit, unit))
            ways = (vectors / np.sqrt(np.maximum(sizes, 1e-10))).T / unit * np.sqrt(variance)
            ways /= np.maximum(np.max(np.abs(ways) / state.span, axis=1), 1.0)[:, None]
            ways = ways[:12]
            points = [z] + [z + s * a * w for w in ways for a in LENGTHS for s in (-1.0, 1.0)]
            costs, kinds, _ = _evaluate_probes(problem, np.stack(points), noise)
            seen.add(kinds[0])
            best: dict[Any, int] = {}
            for i in np.argsort(costs).tolist():
                if kinds[i] not in seen or costs[i] < float(state.cost):
                    best.setdefault(kinds[i], i)
            lower = None
            for kind, i in itertools.islice(best.items(), 4):
                if not np.isfinite(costs[i]):
                    break
                seen.add(kind)
                end = advance(begun(problem, points[i]), _SHORT, noise)
                steps += int(end.steps)
                # A search cannot leave a point at which the prediction depends on no parameter.
                leads = bool(np.asarray(end.jacobian).any())
                # The sum of squares must decrease by more than a thousandth of the noise variance.
                if leads and 2.0 * (float(state.cost) - float(end.cost)) > 1e-3 * variance:
                    lower = end
                    break
            if lower is None:
                break
            state = advance(lower, int(lower.steps) + _LONG, noise)
            steps += int(state.steps) - int(lower.steps)
            say(f"beyond an edge: cost {float(state.cost):.6g}")
        if not bool(state.settled):
            notices = _find_edge(problem, state, noise, dof, len(points), len(seen) - 1)
    except KeyboardInterrupt:
        if not may_keep():
            raise
        return Hopped(state, steps, True, ())
    # The search has converged at a jump of the cost (`notices`), or at a kink of the cost, where an
    # event coincides with a sample. At a kink no probe has a lower cost, and the step is below 0.3
    # standard errors.
    if notices or (bool(state.done) and float(state.distance) <= 0.3):
        state = dataclasses.replace(state, done=np.array(True), settled=np.array(True))
    return Hopped(state, steps, False, notices)


def _find_edge(
    problem: Problem, state: Descent, noise: float, dof: float, count: int, looked: int
) -> tuple[Notice, ...]:
    """Return a notice of the first jump of the cost along the undamped (Gauss-Newton) step from
    `state`. If the cost does not jump along this step, search along the negative gradient, because
    damping turns a step towards the gradient. Return () if the cost does not jump on either line.
    """
    nearest = 1e-8  # [standard errors] shortest distance at which a jump of the cost is sought
    spans = 10.0  # [`Descent.span`] longest distance at which a jump of the cost is sought
    gram = np.asarray(state.products)[:-1, :-1]
    gradient = np.asarray(state.products)[:-1, -1]
    unit = np.sqrt(np.diag(gram))
    unit = np.where(unit > 0, unit, 1.0)
    scaled = gram / np.outer(unit, unit) + 1e-12 * np.eye(unit.size)
    z, cost = np.asarray(state.z), float(state.cost)
    variance = 2.0 * cost / dof
    left = np.sqrt(max(float(gradient / unit @ np.linalg.solve(scaled, gradient / unit)), 0.0))
    left /= np.sqrt(variance)
    if left > LENGTHS[-1]:  # `state` is too far from the minimum of the linear model
        return ()
    for way in (-np.linalg.solve(scaled, gradient / unit) / unit, -gradient / unit**2):
        size = float(np.sqrt(max(way @ gram @ way, 0.0)))
        if not size > 0:  # the gradient is zero
            continue
        way = way * np.sqrt(variance) / size  # The length is one standard error.
        # If a value is at its bound, a step of one standard error can be extremely long. Therefore
        # the step is limited to `spans` times the span of each coordinate.
        low, high = 0.0, min(max(1.0, left), spans / float(np.max(np.abs(way) / state.span)))
        if high <= nearest:
            continue
        lengths = np.concatenate([[0.0], np.geomspace(nearest, high, count - 1)])
        # The second pass refines the interval in which the first pass finds a jump.
        for _ in range(2):
            costs, kinds, courses = _evaluate_probes(problem, z + lengths[:, None] * way, noise)
            beyond = [i for i in range(1, count) if kinds[i] != kinds[0]]
            if not beyond:
                break
            low, high = lengths[beyond[0] - 1], lengths[beyond[0]]
            lengths = np.concatenate([[0.0], np.linspace(low, high, count - 1)])
        else:
            i = beyond[0]
            if not np.isfinite(costs[i - 1 : i + 1]).all():  # a simulation fails at the jump
                continue
            jump = 2.0 * (costs[i] - costs[i - 1]) / variance
            numbers = lengths[i], jump, looked
            found = certify(problem, np.asarray(state.residuals))
            return (_edge_notice(problem, courses[0], courses[i], numbers, found),)
    return ()


def _edge_notice(
    problem: Problem,
    here: Events,
    there: Events,
    numbers: tuple[Any, Any, Any],
    found: Certificate | None,
) -> Notice:
    """Return a notice of the first event that differs between the event sequences `here` and
    `there` on the two sides of a discontinuity. The certificate `found` shows whether the result of
    the search at the discontinuity is valid. `numbers`: distance of the discontinuity, jump of the
    cost, and number of event sequences from which a search started.
    """
    if found is None:
        verdict = "The noise cannot be estimated from the residuals, so a lower misfit may exist."
    elif found.at_noise:
        verdict = "The residuals are white noise, so the result of the search is valid."
    else:
        verdict = (
            f"The misfit is {found.ratio:.3g} times the noise of {found.subject} or is not white,"
            " so the result of the search is not valid."
        )
    never = Event(0, 0, 0, 0, np.inf)
    records = [p for p in problem.prepared if isinstance(p, PreparedRecord)]
    rate = min(float(np.median(np.diff(p.t))) for p in records)
    k = 0
    for a, b in itertools.zip_longest(here, there, fillvalue=never):
        if a.kind != b.kind or abs(a.time - b.time) > rate:
            break
        k += 1
    a, b = (side[k] if k < len(side) else never for side in (here, there))
    gone = (a.record, a.time) < (b.record, b.time)
    side, event = (here, a) if gone else (there, b)
    until = [e.time for e in side[k + 1 :] if e[:2] == event[:2]]
    does = _VERBS.get((event.before, event.after), "changes its mode")
    lasts = f" for {1e3 * (until[0] - event.time):.2g} ms" if until else ""
    names = contact_names(problem.setup.machine)
    where = names[event.contact] if event.contact < len(names) else "a contact"
    does = ("no longer " if gone else "") + does + lasts
    if len(records) > 1:
        does += f" in record {event.record + 1}"
    away, jump, looked = numbers
    numbers_of_edge = {"away": away, "jump": jump, "looked": looked}
    of_event = {"does": does, "time": event.time, "verdict": verdict}
    return Notice("search-edge", where, numbers_of_edge | of_event)


_VERBS = {
    (before, after): verb
    for verb, pairs in {
        "stops": [(-1, 0), (1, 0), (2, 0)],
        "breaks away": [(0, -1), (0, 1)],
        "turns": [(-1, 1), (1, -1)],
        "lets go": [(-1, 2), (0, 2), (1, 2)],
        "takes hold": [(2, -1), (2, 1)],
    }.items()
    for before, after in pairs
}


def _evaluate_probes(
    problem: Problem, points: Float[np.ndarray, "k p"], noise: float
) -> tuple[Float[np.ndarray, " k"], list[tuple[tuple[int, ...], ...]], list[Events]]:
    """Return the cost (inf if a simulation fails), event kinds and events at each of `points`."""
    costs, *courses = (np.asarray(a) for a in _runs(problem, points, np.float64(noise)))
    events: list[list[Event]] = [[] for _ in points]
    records = [i for i, p in enumerate(problem.prepared) if isinstance(p, PreparedRecord)]
    for k, record in enumerate(records):
        times, before, after, count = courses[4 * k : 4 * k + 4]
        prepared = problem.prepared[record]
        assert isinstance(prepared, PreparedRecord)
        machine, modes = problem.setup.machine, before.shape[-1]
        columns = contact_modes(machine, len(prepared.inputs), modes)
        changed = (before != after)[..., :columns] & (
            np.arange(times.shape[-1]) < count[..., None]
        )[..., None]
        for *row, contact in np.argwhere(changed).tolist():
            at = tuple(row)
            modes = int(before[at][contact]), int(after[at][contact])
            events[at[0]].append(Event(record, contact, *modes, float(times[at])))
    kinds = [tuple(event.kind for event in course) for course in events]
    return np.where(np.isfinite(costs), costs, np.inf), kinds, [tuple(e) for e in events]


@cached_jit
def _runs(problem: Problem, points: Float[Array, "k p"], noise: Any) -> tuple[Array, ...]:
    """Return the cost at each of the `points`. Return also, for each simulated record, the times of
    the events, the modes before and after the events, and the number of events.
    """

    def one(z: Array) -> tuple[Array, ...]:
        r, courses = problem.misfit_and_courses(z, noise)
        return 0.5 * jnp.sum(r * r), *(a for c in courses for a in c[1:])

    return jax.lax.map(one, jnp.asarray(points))
