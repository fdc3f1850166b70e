"""Identifiability of the parameters of a fit."""

import dataclasses
import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from frictax.notice import Notice


class Knowledge(enum.Enum):
    """Levels of identifiability of one parameter.

    **Example:** at `Identifiability`.
    """

    KNOWN = "known"
    WEAK = "cannot be told from its bound"
    AT_BOUND = "at its bound"
    UNKNOWN = "not identifiable"
    FIXED = "fixed"


@dataclasses.dataclass(frozen=True)
class Identifiability:
    """Identifiability of all parameters of a fit.

    - `knowledge`: dict from parameter name to its `Knowledge`; `notices`: reasons why parameters
      are not identifiable, and remedies; `sentences`: the notices as text.
    - `singular_values` of the Jacobian with its columns scaled to length 1; `condition`: largest
      singular value divided by the smallest.
    - `null_directions`: combined changes of parameters that do not change the prediction, each a
      dict from parameter name to coefficient. Parameters with equal coefficients change the
      prediction equally, because the coefficients are scaled.

    A sweep without slow speeds contains no information on the Stribeck effect:

    >>> import frictax as fx, numpy as np
    >>> v = np.linspace(5.0, 8.0, 16)
    >>> f = 6.0 + 0.2 * v + 0.01 * np.random.default_rng(0).standard_normal(16)

    >>> sweep = fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")
    >>> found = fx.fit(fx.Stribeck(F_prop=0.2, F_Coulomb=6.0, F_Stribeck=1.0, fexp=5.0), sweep)
    >>> found.identifiability.complete, sorted(found.identifiability.unknown)
    (False, ['F_Stribeck', 'fexp'])
    >>> for name, knowledge in found.identifiability.knowledge.items():
    ...     print(name, knowledge.name)
    F_prop KNOWN
    F_Coulomb KNOWN
    F_Stribeck UNKNOWN
    fexp UNKNOWN
    """

    knowledge: Mapping[str, Knowledge]
    notices: tuple[Notice, ...]
    singular_values: np.ndarray
    condition: float
    null_directions: tuple[Mapping[str, float], ...]

    def __repr__(self) -> str:
        levels = [
            f"{what.value}: {', '.join(names)}"
            for what in Knowledge
            if (names := [n for n, this in self.knowledge.items() if this is what])
        ]
        return f"Identifiability({'; '.join(levels)}; condition {self.condition:.3g})"

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(map(str, self.notices))

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names of the parameters that are not identifiable."""
        return tuple(name for name, what in self.knowledge.items() if what is Knowledge.UNKNOWN)

    @property
    def complete(self) -> bool:
        """True if every free parameter is identifiable."""
        return not self.unknown


def null_directions(
    jacobian: np.ndarray, names: list[str], active: np.ndarray
) -> tuple[np.ndarray, list[dict[str, float]]]:
    """Return the singular values of the Jacobian with columns of length 1. Return also the null
    directions (singular value below 1e-7 of the largest) as dicts from parameter to coefficient."""
    columns = jacobian[:, active]
    kept = [name for name, on in zip(names, active, strict=True) if on]
    if not kept:
        return np.zeros(0), []
    _, s, vt = np.linalg.svd(
        columns / np.linalg.norm(columns, axis=0), full_matrices=columns.shape[0] < columns.shape[1]
    )
    s = np.concatenate([s, np.zeros(len(kept) - s.size)])
    null = [v for v, size in zip(vt, s, strict=True) if size < 1e-7 * s[0]]
    return s, [{n: float(c) for n, c in zip(kept, v, strict=True) if abs(c) > 0.05} for v in null]


def is_at_bound(
    names: Sequence[str], active: Any, size: Any, left: Any, before: Any, least: float
) -> Any:
    """Return which of the parameters that are not `active` are at their bounds. `left`, `before`:
    distance of the final value and of the start value from the bound; `size`: lengths of
    the Jacobian's columns; `least`: smallest relevant change of the weighted prediction.

    A parameter near its bound is returned if a move back to its start value changes the prediction.
    This rule excludes parameters that are not identifiable, such as fexp if F_Stribeck = 0. A
    parameter exactly at its bound is also returned without such an effect. Exception: a parameter
    of the same part (law, contact) is at its bound, which can explain the missing effect.
    """
    bounded = np.isfinite(left)
    near = ~active & bounded & (left < 0.5 * before)
    acts = near & (size * np.where(bounded, before, 0.0) > least)
    owners = np.asarray([name.rpartition(".")[0] for name in names])
    excused = np.isin(owners, owners[acts])
    return acts | (near & (left <= 1e-9 * before) & ~excused)


def join_names(names: Any) -> str:
    names = list(names)
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def null_notice(code: str, direction: Mapping[str, float]) -> Notice:
    """Return a notice that a change along `direction` does not change the prediction."""
    total = " ".join(f"{value:+.2f} {name}" for name, value in direction.items())
    return Notice(code, "", {"names": join_names(direction), "direction": total})


class Entries(NamedTuple):
    """Arrays with one entry for each fitted number: values at the `start` and `end` of the search,
    half widths of the intervals (`half`), and bounds. `active`: false at a bound or without effect.
    """

    names: list[str]
    active: Any
    start: Any
    end: Any
    half: Any
    lower: Any
    upper: Any


def judge_columns(
    jacobian: Any,
    entries: Entries,
    least: float,
    doubts: Callable[[dict[str, Knowledge]], list[Notice]] = lambda knowledge: [],
) -> Identifiability:
    """Return the identifiability of every fitted number, from the columns of the final Jacobian.
    `least`: smallest relevant change of the weighted prediction. `doubts`: a function that marks
    further parameters in `knowledge` as not identifiable, and returns notices with the reasons.
    """
    names, active, x0, x, half, lower, upper = entries
    s, null = null_directions(jacobian, names, active)
    knowledge: dict[str, Knowledge] = {}
    notices: dict[str, Notice] = {}
    # Compare each estimate with its nearer bound; most upper bounds are inf.
    is_above = upper - x < x - lower
    bounds = np.where(is_above, upper, lower)
    sizes, left, before = np.linalg.norm(jacobian, axis=0), np.abs(x - bounds), np.abs(x0 - bounds)
    at_bound = is_at_bound(names, active, sizes, left, before, least)
    for i, (name, size, bound) in enumerate(zip(names, sizes, bounds, strict=True)):
        if active[i]:
            weak = np.isfinite(bound) and half[i] >= abs(x[i] - bound)
            knowledge[name] = Knowledge.WEAK if weak else Knowledge.KNOWN
            if weak:
                notices[name] = Notice("near-bound", name, {"bound": bound})
            continue
        knowledge[name] = Knowledge.AT_BOUND if at_bound[i] else Knowledge.UNKNOWN
        if at_bound[i]:
            at = "at-upper-bound" if is_above[i] else "at-lower-bound"
            notices[name] = Notice(at, name, {"bound": bound})
        elif size > 0 and np.isfinite(bound) and left[i] > 10 * before[i]:
            notices[name] = Notice("ran-away", name, {"start": x0[i], "value": x[i]})
        else:
            notices[name] = Notice("little-effect" if size > 0 else "no-effect", name)
    more = []
    for direction in null:
        knowledge.update(dict.fromkeys(direction, Knowledge.UNKNOWN))
        more.append(null_notice("null-direction", direction))
    before_doubts = dict(knowledge)
    more += doubts(knowledge)
    taken_back = {n for n in knowledge if before_doubts[n] is not knowledge[n]} | {
        n for d in null for n in d if active[names.index(n)]
    }
    said = [notice for name, notice in notices.items() if name not in taken_back]
    condition = float(s[0] / s[-1]) if s.size and s[-1] > 0 else float("inf")
    return Identifiability(knowledge, (*said, *more), s, condition, tuple(null))
