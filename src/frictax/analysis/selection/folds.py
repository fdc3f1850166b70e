"""Pieces of records, and the folds in which a cross-validation leaves them out."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from frictax.fitting.problem.problem import Problem
from frictax.fitting.problem.readings import LARGEST_CUTOFF
from frictax.measurements import Record
from frictax.measurements.filters import smooth
from frictax.measurements.units import POSITION_OF, VELOCITY_OF, split_channel

from ..errors.linearization import Samples

_LENGTH = 0.5  # [s] length of a piece if the objective does not have windows

Fold = tuple[Int[np.ndarray, " u"], tuple[str, ...]]


class Folds:
    """Pieces of records that a fold leaves out: windows of the objective, or half a second each.

    - `record`, `place`, `speed` (u,): for each piece the number of its record, its place in the
      record (0 to 1), and its median speed in `unit`.
    - `piece_of_samples`: for each record the number of the piece of each sample.
    """

    def __init__(self, problem: Problem, records: Mapping[str, Record], cutoff: float) -> None:
        each, self.unit = speeds(list(records.values()), cutoff)
        record, place, speed, self.piece_of_samples = [], [], [], []
        for i, (r, prepared) in enumerate(zip(records.values(), problem.prepared, strict=True)):
            rows = getattr(prepared, "rows", None)
            size = rows.shape[1] - 1 if rows is not None else max(round(_LENGTH * r.rate), 2)
            count = max((r.n - 1) // size, 1)
            # The first sample of a window is its start, and has the weight 0.
            at = np.clip((np.arange(r.n) - 1) // size, 0, count - 1)
            self.piece_of_samples.append(len(record) + at)
            record += [i] * count
            place += [(j + 0.5) / count for j in range(count)]
            speed += [float(np.median(each[i][at == j])) for j in range(count)]
        self.record, self.place, self.speed = map(np.asarray, (record, place, speed))

    def piece_of_residuals(self, problem: Problem) -> Int[np.ndarray, " m"]:
        """Return the number of the piece of each residual of a problem with these records."""
        pieces = [x.astype(float) for x in self.piece_of_samples]
        return Samples(problem).spread_out(pieces).astype(int)

    def repeats(self, parts: int) -> Fold:
        """Return folds that leave out one of `parts` equal parts of each record: the fold of each
        piece, and the names of the folds.
        """
        return _number_folds(
            self.record * parts + np.floor(self.place * parts).astype(int),
            lambda f: f"part {f % parts + 1} of {parts}",
        )

    def records(self, labels: Sequence[str]) -> Fold:
        """Return folds that leave out whole records."""
        return _number_folds(self.record, lambda f: labels[f])

    def bands(self, count: int) -> Fold:
        """Return folds that leave out bands of speed, with limits between clusters of speeds."""
        band = natural_classes(self.speed, count)

        def name(b: int) -> str:
            mine = self.speed[band == b]
            return f"{mine.min():.3g} to {mine.max():.3g} {self.unit}"

        return _number_folds(band, name)


def speeds(records: Sequence[Record], cutoff: float) -> tuple[list[Float[np.ndarray, " _"]], str]:
    """Return the speed of the machine at each sample, and the unit: |v| of its only body, or the
    mean of |v|/max|v| over several bodies.
    """
    found = [{b: np.abs(v) for b, v in body_speeds(r, cutoff).items()} for r in records]
    if all(len(here) == 1 for here in found):
        turns = all(r.units[n].rotational for r in records for n in r.outputs if n in r.units)
        return [next(iter(here.values())) for here in found], "rad/s" if turns else "m/s"
    highest = {
        b: max(float(here[b].max()) for here in found if b in here) or 1.0
        for b in dict.fromkeys(b for here in found for b in here)
    }
    return [
        np.mean([v / highest[b] for b, v in here.items()], axis=0) for here in found
    ], "of the highest speeds"


def body_speeds(record: Record, cutoff: float) -> dict[str, Float[np.ndarray, " n"]]:
    """Return the velocity of each body [m/s or rad/s], smoothed at `cutoff` [Hz]; the rates of all
    outputs if the record does not measure a motion.
    """
    out, cutoff = {}, min(cutoff, LARGEST_CUTOFF * record.rate)
    places = {*VELOCITY_OF, *POSITION_OF}
    moving = [n for n in record.outputs if split_channel(n)[1] in places] or [*record.outputs]
    for name in moving:
        body, variable = split_channel(name)
        smoothed = smooth(record.t, record.outputs[name], cutoff)
        out[body] = smoothed.x if variable in POSITION_OF else smoothed.v
    return out


def sliding_speed(
    ends: tuple[str, str | None], speeds: Mapping[str, np.ndarray]
) -> Float[np.ndarray, " n"] | None:
    """Return the velocity of the first end of a contact relative to the second end or the housing;
    None if it is not measured.
    """
    bodies = [end.split(".")[0] for end in ends if end is not None]
    if not all(body in speeds for body in bodies):
        return None
    return speeds[bodies[0]] - (speeds[bodies[1]] if len(bodies) == 2 else 0.0)


def natural_classes(values: Float[np.ndarray, " n"], count: int) -> Int[np.ndarray, " n"]:
    """Divide values into `count` classes with the least sum of squares within classes. Return the
    class of each value, the lowest first.

    **Source:** W. D. Fisher, "On grouping for maximum homogeneity", Journal of the American
    Statistical Association 53 (1958).

    >>> import numpy as np
    >>> natural_classes(np.array([1.0, 5.1, 1.1, 9.0, 5.0, 9.2]), 3).tolist()
    [0, 1, 0, 2, 1, 2]
    """
    order = np.argsort(values, kind="stable")
    x = values[order] - np.mean(values)
    n, count = x.size, min(count, np.unique(x).size)
    sums, squares = (np.concatenate([[0.0], np.cumsum(a)]) for a in (x, x**2))
    # within[i, j]: sum of squares within a class of the values i to j - 1 in increasing order
    size = np.arange(n + 1) - np.arange(n + 1)[:, None]
    within = squares - squares[:, None] - (sums - sums[:, None]) ** 2 / np.maximum(size, 1)
    within = np.where(size > 0, within, np.inf)
    least, cuts = within[0], []
    for _ in range(count - 1):
        cuts.append(np.argmin(least[:, None] + within, axis=0))
        least = np.min(least[:, None] + within, axis=0)
    out, last = np.zeros(n, int), n
    for k in reversed(range(1, count)):
        first = int(cuts[k - 1][last])
        out[order[first:last]], last = k, first
    return out


def _number_folds(fold: np.ndarray, name: Callable[[int], str]) -> Fold:
    present, number = np.unique(fold, return_inverse=True)
    return number, tuple(name(int(f)) for f in present)
