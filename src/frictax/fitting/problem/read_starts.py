"""Correct the starts of windows for the error of the filter that smooths the measured motion."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.measurements.filters import smooth
from frictax.measurements.units import VELOCITY_OF, related_channel
from frictax.parameters import Numbers
from frictax.programs import cached_jit

from .objectives import PreparedRecord
from .problem import Problem
from .readings import measured_starts, seen_in
from .sensors import perfect
from .setup import Named, state_names
from .simulations import Windows

# A search with corrected starts of windows is kept if the sum of squares is not larger than before
# by more than this factor.
LARGEST_RISE = 1.05


def without_rounding(problem: Problem, x: Float[np.ndarray, " p"]) -> Problem:
    """Return the problem with corrected starts of its windows, or the same problem if no start is
    read from a record, or a window fails.

    The filter rounds kinks at reversals, breakaways and drives, and differences reduce fast
    motion. This error of the starts is the same in each repeat, and no comparison of windows shows
    it. The error for the motion that `problem` predicts at the values `x` is known. It is
    subtracted from the starts that were read from the measured motion.
    """
    objective = problem.objective
    if not isinstance(objective, Windows) or objective.free_starts:
        return problem
    prepared = list(problem.prepared)
    for i, one in enumerate(problem.prepared):
        if isinstance(one, PreparedRecord):
            states = np.asarray(_states(problem, x, i)[0])
            if not np.isfinite(states).all():
                return problem
            prepared[i] = _correct_starts(problem, one, states, x, i)
    return dataclasses.replace(problem, prepared=tuple(prepared))


@cached_jit
def _states(problem: Problem, x: Float[Numbers, " p"], i: int) -> tuple[Float[Array, "w k s"]]:
    """Return the states of the machine in all windows of prepared i."""
    prepared, setup = problem.prepared[i], problem.setup_at(jnp.asarray(x), i)
    assert isinstance(prepared, PreparedRecord)
    assert prepared.rows is not None
    assert isinstance(problem.objective, Windows)
    names, starts = state_names(setup.machine), measured_starts(setup, prepared, problem.delayed)
    nothing = np.zeros((*prepared.rows.shape, len(names)))
    asked = dataclasses.replace(
        prepared, names=names, measured=nothing, weight=nothing, start=starts
    )
    setup = dataclasses.replace(setup, outputs=Named.from_dict(dict.fromkeys(names, perfect())))
    late = frozenset(n for n in problem.delayed if n.startswith("inputs."))
    as_given = dataclasses.replace(problem.objective, free_starts=True)
    return (as_given.predict(setup, asked, problem.engine, late),)


def _correct_starts(
    problem: Problem,
    prepared: PreparedRecord,
    states: Float[np.ndarray, "w k s"],
    x: Float[np.ndarray, " p"],
    i: int,
) -> PreparedRecord:
    setup, rows = problem.setup_at(jnp.asarray(x), i), prepared.rows
    assert rows is not None
    names, known = state_names(setup.machine), dict(prepared.known)
    t = np.asarray(prepared.t)[: int(rows[-1, -1]) + 1]
    for name in names:
        of, order = seen_in(name, prepared.names)
        if order < 0 or of not in names:
            continue
        rate = related_channel(of, VELOCITY_OF)
        value = states[..., names.index(of)]
        slope = states[..., names.index(rate)] if rate in names else np.zeros_like(value)
        value, slope = _join_windows(np.asarray(prepared.t)[rows], value, slope)
        read = smooth(t, value, float(prepared.cutoffs[of]))
        bias = read.v - slope if order else read.x - value
        if f"outputs.{of}" in problem.delayed:
            bias = np.interp(t - float(setup.outputs.at(of).delay), t, bias)
        left = np.array(known[name])
        left[: t.size] -= float(setup.outputs.at(of).gain) * bias
        known[name] = left
    start = {name: known[name][rows[:, 0]] for name in prepared.start}
    return eqx.tree_at(lambda p: (p.known, p.start), prepared, (known, start))


def _join_windows(
    t: Float[np.ndarray, "w k"], value: Float[np.ndarray, "w k"], slope: Float[np.ndarray, "w k"]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Join windows to one motion. A cubic is added to each window, so that the window begins with
    the value and slope of the previous end. The cubic and its slope are 0 at the window's end.
    """
    length = t[:, -1:] - t[:, :1]
    u = (t - t[:, :1]) / length
    jump, turn = (np.zeros((len(t), 1)) for _ in range(2))
    jump[1:, 0], turn[1:, 0] = value[:-1, -1] - value[1:, 0], slope[:-1, -1] - slope[1:, 0]
    turn *= length
    value = value + (1 - u) ** 2 * (jump * (1 + 2 * u) + turn * u)
    slope = slope + (1 - u) * (turn * (1 - 3 * u) - 6 * jump * u) / length
    series = (np.append(np.ravel(a[:, :-1]), a[-1, -1]) for a in (value, slope))
    return next(series), next(series)
