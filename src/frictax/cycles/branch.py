"""A limit cycle followed over a parameter, around folds and to where it ends."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from frictax.annotations import Checked, ScalarLike
from frictax.arguments import whole
from frictax.interrupts import Keys
from frictax.parameters import get, parameters
from frictax.text import aligned, figures, suggestion

from .curve import Curve, Point
from .cycle import LimitCycle
from .made import CycleError

_FIRST, _LONGEST, _SHORTEST = 0.01, 0.05, 1e-9  # steps, of the way to the end
_GROWN = 1e3  # times as large as at the beginning: the branch ends
_STRAIGHT = 0.95  # the cosine by which a branch may turn in a step


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Branch:
    """Limit cycles over a parameter, as `continued` follows them. Print it.

    - `path` of the parameter; `cycles` (k), in the order in which they were come to, and of each
      its value in `values` (k,), its `period` (k,) [s], its `low`, `high` and `amplitude` (k, n) of
      the `states`, its `start` (k, n), its `multipliers` (k, n-1), and whether it is `stable` (k,).
    - `folds`: the values at which the branch turns back. There two cycles meet, one of which is not
      stable, and beyond there is none.
    - `ended`: why the last is the last.

    **Example:** at `continued`.
    """

    path: str
    cycles: tuple[LimitCycle, ...]
    folds: tuple[float, ...]
    ended: str

    def _each(self, name: str) -> Any:
        return np.array([getattr(cycle, name) for cycle in self.cycles])

    @property
    def values(self) -> Float[np.ndarray, " k"]:
        return np.array([float(get(cycle.machine, self.path)) for cycle in self.cycles])

    @property
    def states(self) -> tuple[str, ...]:
        return self.cycles[0].states

    period = property(lambda self: self._each("period"))
    low = property(lambda self: self._each("low"))
    high = property(lambda self: self._each("high"))
    amplitude = property(lambda self: self._each("amplitude"))
    start = property(lambda self: self._each("start"))
    multipliers = property(lambda self: self._each("multipliers"))
    stable = property(lambda self: self._each("stable"))

    def __str__(self) -> str:
        head = (self.path, "period [s]", *self.states, "multiplier")
        rows = [
            (
                figures(float(value), 6),
                figures(cycle.period),
                *(figures(float(a)) for a in cycle.amplitude),
                f"{np.max(np.abs(cycle.multipliers), initial=0.0):.3g}",
            )
            for value, cycle in zip(self.values, self.cycles, strict=True)
        ]
        folds = [f"Fold at {self.path} = {figures(x, 6)}." for x in self.folds]
        return "\n".join([*aligned(head, rows), *folds, self.ended])

    def __repr__(self) -> str:
        values = self.values
        span = f"{figures(float(values.min()))} to {figures(float(values.max()))}"
        return f"Branch({len(values)} cycles, {self.path} = {span}. {self.ended})"


@Keys()
def continued(
    cycle: LimitCycle,
    path: Checked[str],
    to: ScalarLike,
    *,
    most: Checked[int] = 400,
    longest_step: ScalarLike = _LONGEST,
    past_folds: Checked[bool] = True,
) -> Branch:
    """Follow a limit cycle while one parameter goes to another value, by steps along the curve of
    cycles (pseudo-arclength), which goes around folds.

    Each point is solved for by Newton's method with exact derivatives, as in `limit_cycle`, stable
    or not. Where the branch turns back, the fold is located; where there is no such cycle any
    longer, the steps become so short that the last value is the edge, to a part in 10^8 of the
    way: as where a rest lasts for ever, because it is no longer broken away from. After a fold the
    branch goes on to the value that it began with.

    **Arguments:** `cycle`, of `limit_cycle`; `path` of the parameter, a single number, and the
    value `to` which it goes; `most`: how many cycles there may be; `longest_step`, of the way from
    the cycle's value, and of the amplitudes; `past_folds`: False to end at the first fold.

    **Returns:** a `Branch`.

    **Raises:** `KeyError` for a path that there is not; `ValueError` for a parameter that is no
    single number, and for values that do not fit; `CycleError` where the cycle is no cycle of its
    machine.

    A mass on a belt sticks and slips, the less the nearer the force that holds comes to the one
    that slides:

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
    >>> cycle = fx.limit_cycle(belt, within=20.0)
    >>> branch = fx.continued(cycle, "friction.peak", to=1.3, longest_step=0.5)
    >>> print(branch)
    friction.peak  period [s]  mass.s   mass.v  multiplier
    1.5            0.8069      0.02236  0.1618  0
    1.49812        0.8057      0.02229  0.1615  0
    ...
    1.3            0.6931      0.01562  0.1281  0
    It came to friction.peak = 1.3.
    """
    if not isinstance(cycle, LimitCycle):
        raise ValueError(
            f"`continued` needs a `LimitCycle`, got a {type(cycle).__name__}. Find one by"
            " `limit_cycle`."
        )
    whole("`continued`: `most`", most, 2)
    begins, end = single(cycle, path, "continued"), float(to)
    if not np.isfinite(end) or end == begins:
        raise ValueError(
            f"`continued`: `to` must be a value other than {figures(begins)}, that of the cycle,"
            f" got {to!r}."
        )
    curve = Curve(cycle, path, abs(end - begins))
    way = np.sign(end - begins)
    across = np.append(np.zeros(len(cycle.start)), 1.0)
    first = curve.corrected(np.append(cycle.start, begins) / curve.scale, across)
    if first is None:
        raise CycleError(
            f"No branch: the cycle's state does not return to itself at {path} = {figures(begins)}."
            " Find the cycle anew by `limit_cycle`."
        )
    first = first.turned(way * across)
    points, folds, ended = _followed(
        curve, first, begins, end, most, float(longest_step), past_folds
    )
    cycles = tuple(curve.made(point.x, point.at) for point in points)
    return Branch(path, cycles, tuple(folds), ended)


def _followed(
    curve: Curve,
    point: Point,
    begins: float,
    to: float,
    most: int,
    longest: float,
    past_folds: bool,
) -> tuple[list[Point], list[float], str]:
    """The points from the first on, the folds among them, and why the last is the last."""
    points, folds, step = [point], [], min(_FIRST, longest)
    across = np.append(np.zeros(len(point.x) - 1), 1.0)
    while len(points) < most:
        trial = point.x + step * point.along
        here, there = curve.value(point.x), curve.value(trial)
        passed = [v for v in (begins, to) if (there - v) * (here - v) < 0]
        if passed:
            trial = trial * (1 - across) + across * passed[0] / curve.scale[-1]
        new = curve.corrected(trial, across if passed else point.along)
        new = None if new is None else new.turned(point.along)
        if new is None or new.along @ point.along < _STRAIGHT:
            step *= 0.25
            if step < _SHORTEST:
                return _apart(points, longest), folds, _why(curve, trial)
            continue
        if new.along[-1] * point.along[-1] < 0:
            fold = curve.fold(point, new)
            folds.append(curve.value(fold.x))
            points.append(fold.turned(point.along))
            if not past_folds:
                return points, folds, f"It turns back at {curve.path} = {figures(folds[0], 6)}."
        points.append(new)
        if passed:
            text = f"{curve.path} = {figures(passed[0])}"
            back = passed[0] == begins
            return points, folds, f"It came {'back to' if back else 'to'} {text}."
        size = float(np.linalg.norm(new.x) / np.linalg.norm(points[0].x))
        if size > _GROWN:
            text = (
                f"It grows without bound towards {curve.path} = {figures(curve.value(new.x), 6)}."
            )
            return points, folds, text
        point, step = new, min(2 * step, longest * max(1.0, size))
    return points, folds, f"It has {most} cycles: allow more (`most`) to go on."


def _apart(points: list[Point], longest: float) -> list[Point]:
    """The points without those that an edge was looked for with, but for the last."""
    kept = [points[0]]
    for point in points[1:-1]:
        if np.linalg.norm(point.x - kept[-1].x) > 0.01 * longest:
            kept.append(point)
    return [*kept, points[-1]]


def _why(curve: Curve, trial: np.ndarray) -> str:
    at, _, _ = curve.look(trial)
    text = f"It ends at {curve.path} = {figures(curve.value(trial), 6)}: beyond, "
    if at.there.came:
        return text + "no such cycle is found, as where events come or go."
    longest = figures(float(curve.cycle.place.longest))
    return text + f"it does not come back within {longest} s."


def single(cycle: LimitCycle, path: Any, what: str) -> float:
    """The value of the parameter at `path`, which must be a single number."""
    known = [p.path for p in parameters(cycle.machine)]
    value = get(cycle.machine, path)  # raises for a path that there is not
    if path not in known or np.ndim(value) != 0:
        raise ValueError(
            f"`{what}`: {path!r} must be a parameter of one number.{suggestion(path, known)} There"
            f" are: {', '.join(known)}."
        )
    return float(value)
