"""`continued`, `Branch`: limit cycles over a parameter, also around folds (turning points)."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from frictax.annotations import Checked, ScalarLike
from frictax.arguments import check_count
from frictax.engine import Adaptive
from frictax.interrupts import Keys
from frictax.mechanism import Machine
from frictax.parameters import check, get, parameters, replace
from frictax.programs import interruptible_jit
from frictax.text import align_columns, figures, suggestion

from .cycle import CycleError, LimitCycle, build_cycle
from .return_map import CONVERGED, PoincareSection, ReturnMap, Solution, return_to_section


class ReturnByParameter(eqx.Module):
    """The result `image` of the return map, and derivatives of the new state (`y`) and the duration
    (`after`). The last column is the derivative with respect to the parameter, the others to the
    old state."""

    image: ReturnMap
    y: Float[Array, "n k"]
    after: Float[Array, " k"]


@interruptible_jit
def _return_by_parameter(
    machine: Machine, path: str, x: Any, args: PyTree, section: PoincareSection, engine: Adaptive
) -> ReturnByParameter:
    """Evaluate the return map at the state x[:-1], where x[-1] is the parameter at `path`."""

    def image_of(x: Any) -> Any:
        image = return_to_section(replace(machine, {path: x[-1]}), args, x[:-1], section, engine)
        return (image.y, image.after), image

    derivatives, image = jax.jacfwd(image_of, has_aux=True)(x)
    return ReturnByParameter(image, *derivatives)


@dataclasses.dataclass(frozen=True)
class Point:
    """A cycle on a branch. `x`: state and parameter, each divided by its scale; `at`: result of the
    return map at x; `tangent`: unit tangent of the branch.
    """

    x: np.ndarray
    at: ReturnByParameter
    tangent: np.ndarray

    def orient(self, tangent: np.ndarray) -> "Point":
        """Return this point with a tangent whose scalar product with `tangent` is positive."""
        sign = np.copysign(1.0, self.tangent @ tangent)
        return dataclasses.replace(self, tangent=sign * self.tangent)


class Curve:
    """The curve of the fixed points x = (state, parameter) / `scale` of the return map."""

    def __init__(self, cycle: LimitCycle, path: str, begins: float, end: float) -> None:
        self.cycle, self.path, self.end = cycle, path, end
        self.scale = np.append(cycle.scale, abs(end - begins))

    def evaluate(self, x: np.ndarray) -> tuple[ReturnByParameter, np.ndarray, np.ndarray]:
        """Return the result of the return map at x, the residual (n,), and the derivatives of the
        residual with respect to x (n, n+1). The residual is (state after - state before the return)
        / scale.
        """
        c = self.cycle
        at = _return_by_parameter(
            c.machine, self.path, jnp.asarray(x * self.scale), c.args, c.section, c.engine
        )
        residual = np.asarray(at.image.y) / self.scale[:-1] - x[:-1]
        if not (at.image.arrived and np.all(np.isfinite(residual))):
            residual = np.full_like(residual, np.inf)
        matrix = np.asarray(at.y) * self.scale / self.scale[:-1, None]
        return at, residual, matrix - np.eye(*matrix.shape)

    def correct(self, x: np.ndarray, normal: np.ndarray) -> Point | None:
        """Return the point of the curve in the plane through `x` with the normal vector `normal`.
        Return None if Newton's method does not converge, or leaves the parameter's domain.
        """
        start, last, good = x, np.inf, CONVERGED * _growth(x)
        for _ in range(8):
            try:
                check(replace(self.cycle.machine, {self.path: self.value(x)}))
            except ValueError:
                return None
            at, residual, matrix = self.evaluate(x)
            size = float(np.max(np.abs(residual)))
            worse = size > 0.5 * last
            # If an iteration does not halve the residual, the residual may be a rounding error. A
            # residual above 100 times the tolerance is not a rounding error.
            if not np.isfinite(size) or (worse and size > 100.0 * good):
                return None
            full, off = np.vstack([matrix, normal]), float(normal @ (x - start))
            if size <= good or worse:
                tangent = np.linalg.solve(full, np.append(np.zeros(len(residual)), 1.0))
                return Point(x, at, tangent / np.linalg.norm(tangent))
            step = np.linalg.solve(full, -np.append(residual, off))
            # If an entry of the state has the same value after every return, the entry is set to
            # this value directly, without the rounding error of Newton's method.
            set_by_event = np.all(np.asarray(at.y) == 0, axis=1)
            x = x + step
            image = np.asarray(at.image.y) / self.scale[:-1]
            x[:-1] = np.where(set_by_event, image, x[:-1])
            last = size
        return None

    def value(self, x: np.ndarray) -> float:
        """Return the value of the parameter at x, in the unit of the parameter."""
        value, size = float(x[-1] * self.scale[-1]), self.scale[-1]
        # The last value may be a bound of the domain, so it has no rounding error.
        return self.end if abs(value - self.end) <= 1e-12 * size else value

    def cycle_at(self, x: np.ndarray, at: ReturnByParameter) -> LimitCycle:
        """Return the limit cycle at the point `x` of the curve.

        **Raises:** `CycleError` if the solution is not a limit cycle.
        """
        c, n = self.cycle, len(x) - 1
        derivatives = ReturnMap(at.y[:, :n], at.after[:n], jnp.zeros((0, n)), at.image.arrived)
        y = jnp.asarray(x[:n] * self.scale[:n])
        residual = jnp.max(jnp.abs(at.image.y - y) / self.scale[:n]) / _growth(x)
        found = Solution(y, at.image, derivatives, residual, jnp.array(1))
        machine = replace(c.machine, {self.path: self.value(x)})
        return build_cycle(machine, c.args, found, c.section, self.scale[:n], c.engine)

    def fold(self, before: Point, after: Point) -> Point:
        """Return the fold between two points: the point at which the parameter turns back. At the
        fold the curve is smooth, or has a corner because the sequence of events changes.
        """
        length, way = float(before.tangent @ (after.x - before.x)), np.sign(before.tangent[-1])
        low, high = (0.0, before.tangent[-1]), (length, after.tangent[-1])
        best = max(before, after, key=lambda point: way * point.x[-1])
        for _ in range(60):
            (left, g0), (right, g1) = low, high
            share = left - g0 * (right - left) / (g1 - g0)
            margin = 0.1 * (right - left)
            share = min(max(share, left + margin), right - margin)
            found = self.correct(before.x + share * before.tangent, before.tangent)
            # Beyond a kink of the curve, Newton's method may not converge.
            slope = g1 if found is None else found.orient(before.tangent).tangent[-1]
            low, high = (low, (share, slope)) if slope * g1 > 0 else ((share, slope), high)
            if found is not None and way * found.x[-1] > way * best.x[-1]:
                best = found
            if abs(slope) < 1e-7 or right - left < 1e-9:
                break
        return best


def _growth(x: np.ndarray) -> float:
    """Return a factor for tolerances: the largest absolute value of a scaled state, at least 1."""
    return max(1.0, float(np.max(np.abs(x[:-1]))))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Branch:
    """A branch of limit cycles: how a cycle changes with a parameter. `continued` returns it; print
    it to get a table.

    - `path`: path of the parameter; `cycles`: the k cycles along the branch; `values` (k,): values
      of the parameter. Arrays over the k cycles, as in `LimitCycle`: `period` (k,) [s]; `low`,
      `high` and `amplitude` (k, n) of the `states`; `start` (k, n), `multipliers` (k, n-1), and
      `stable` (k,).
    - `folds`: values of the parameter at which the branch turns back. At a fold, a stable and an
      unstable cycle meet, and beyond this value neither of them exists.
    - `ended`: text that explains why the branch ends.

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
        return "\n".join([*align_columns(head, rows), *folds, self.ended])

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
    longest_step: ScalarLike = 0.05,
    past_folds: Checked[bool] = True,
) -> Branch:
    """Follow a limit cycle while one parameter changes, also around folds (where the branch turns
    back), by pseudo-arclength continuation.

    Newton's method with exact derivatives finds each cycle, stable or unstable. At a fold, the
    function finds the turning point and follows the branch back to the first value of the
    parameter. If the cycle ceases to exist, for example because a contact no longer breaks away,
    the steps become shorter. The last value of the parameter is then the limit of existence,
    accurate to 1e-8 of the range between first value and `to`.

    **Arguments:**

    - `cycle`: a `LimitCycle` from `limit_cycle`; `path`: path of a parameter that is one number;
      `to`: the last value of this parameter.
    - `most`: largest number of cycles; `longest_step`: longest step, relative to the range of the
      parameter and to the amplitudes; `past_folds`: False to end at the first fold.

    **Returns:** a `Branch`.

    **Raises:** `KeyError` for an unknown path; `ValueError` for a parameter that is not a single
    number, for `to` outside the parameter's domain, and for invalid values of the other arguments;
    `CycleError` if the state of `cycle` does not return to itself.

    A mass on a belt sticks and slips. A smaller breakaway force gives a smaller amplitude:

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
    >>> cycle = fx.limit_cycle(belt, within=20.0)
    >>> branch = fx.continued(cycle, "friction.peak", to=1.3, longest_step=0.5)

    >>> print(branch)
    friction.peak  period [s]  mass.s   mass.v  multiplier
    1.5            0.8069      0.02236  0.1618  0
    1.49812        0.8057      0.02229  0.1615  0
    ...
    1.3            0.6931      0.01562  0.1281  0
    It reached friction.peak = 1.3.
    """
    if not isinstance(cycle, LimitCycle):
        raise ValueError(
            f"`continued` needs a `LimitCycle`, got a {type(cycle).__name__}. Find one by"
            " `limit_cycle`."
        )
    check_count("`continued`: `most`", most, 2)
    known, value = [p.path for p in parameters(cycle.machine)], get(cycle.machine, path)
    if path not in known or np.ndim(value) != 0:
        raise ValueError(
            f"`continued`: {path!r} must be a parameter of one number.{suggestion(path, known)}"
            f" There are: {', '.join(known)}."
        )
    begins, end = float(value), float(to)
    if not np.isfinite(end) or end == begins:
        raise ValueError(
            f"`continued`: `to` must be a value other than {figures(begins)}, that of the cycle,"
            f" got {to!r}."
        )
    if not 0 < float(longest_step) < np.inf:
        raise ValueError(
            f"`continued`: `longest_step` must be a number > 0, got {longest_step!r}. Write"
            " longest_step=0.05."
        )
    check(replace(cycle.machine, {path: end}))
    curve = Curve(cycle, path, begins, end)
    direction = np.sign(end - begins)
    by_parameter = np.append(np.zeros(len(cycle.start)), 1.0)
    first = curve.correct(np.append(cycle.start, begins) / curve.scale, by_parameter)
    if first is None:
        raise CycleError(
            f"No branch: the cycle's state does not return to itself at {path} = {figures(begins)}."
            " Find the cycle again by `limit_cycle`."
        )
    first = first.orient(direction * by_parameter)
    points, folds, ended = _follow_curve(
        curve, first, begins, end, most, float(longest_step), past_folds
    )
    cycles = tuple(curve.cycle_at(point.x, point.at) for point in points)
    return Branch(path, cycles, tuple(folds), ended)


def _follow_curve(
    curve: Curve,
    point: Point,
    begins: float,
    to: float,
    most: int,
    longest: float,
    past_folds: bool,
) -> tuple[list[Point], list[float], str]:
    """Return the points of the branch, the parameter values at folds, and why the branch ends."""
    points, folds, step = [point], [], min(0.01, longest)
    by_parameter = np.append(np.zeros(len(point.x) - 1), 1.0)
    while len(points) < most:
        trial = point.x + step * point.tangent
        now, then = curve.value(point.x), curve.value(trial)
        passed = [v for v in (begins, to) if (then - v) * (now - v) < 0]
        if passed:
            trial = trial * (1 - by_parameter) + by_parameter * passed[0] / curve.scale[-1]
        new = curve.correct(trial, by_parameter if passed else point.tangent)
        new = None if new is None else new.orient(point.tangent)
        # If the tangents differ by more than 18 degrees, the step is repeated with a quarter of its
        # length.
        if new is None or new.tangent @ point.tangent < 0.95:
            step *= 0.25
            if step >= 1e-9:
                continue
            # Near the end of the branch the points are very close to each other. A point that is
            # too close to the previous point is left out.
            kept = [points[0]]
            for near_end in points[1:-1]:
                if np.linalg.norm(near_end.x - kept[-1].x) > 0.01 * longest:
                    kept.append(near_end)
            ended = "no such cycle is found. One cause is an event that appears or disappears."
            if not curve.evaluate(trial)[0].image.arrived:
                span = figures(float(curve.cycle.section.longest))
                ended = f"the state does not return within {span} s."
            place = f"It ends at {curve.path} = {figures(curve.value(trial), 6)}: beyond, "
            return [*kept, points[-1]], folds, place + ended
        if new.tangent[-1] * point.tangent[-1] < 0:
            fold = curve.fold(point, new)
            folds.append(curve.value(fold.x))
            points.append(fold.orient(point.tangent))
            if not past_folds:
                return points, folds, f"It turns back at {curve.path} = {figures(folds[0], 6)}."
        points.append(new)
        if passed:
            arrived = "returned to" if passed[0] == begins else "reached"
            return points, folds, f"It {arrived} {curve.path} = {figures(passed[0])}."
        size = float(np.linalg.norm(new.x) / np.linalg.norm(points[0].x))
        if size > 1e3:
            text = (
                f"It grows without bound towards {curve.path} = {figures(curve.value(new.x), 6)}."
            )
            return points, folds, text
        point, step = new, min(2 * step, longest * max(1.0, size))
    return points, folds, f"It has {most} cycles, which is the limit. Increase `most` to continue."
