"""Does a residual follow speed, position, direction or time?"""

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np
from jaxtyping import Float

from frictax.text import WAYS

from .finding import CHANCE, Curve, Finding, amount, percent, with_error
from .regression import Regressed, binned, corners_of, hats, regressed
from .series import Series

_CORNERS_SPEED, _CORNERS_POSITION = 6, 9
_BINS = 16
_SAMPLES, _ROWS = 20, 2  # least number in a direction of motion: of a record, and of a sweep


@dataclasses.dataclass(frozen=True, eq=False)
class Columns:
    """Of a series, what its residual may follow: a row each, `ways` the directions in which it
    moves.
    """

    ways: tuple[int, ...]
    level: Float[np.ndarray, "n a"]
    drift: Float[np.ndarray, "n b"]
    speed: Float[np.ndarray, "n c"]
    slope: Float[np.ndarray, "n d"]
    position: Float[np.ndarray, "n e"]
    waves: Float[np.ndarray, "n f"]

    @classmethod
    def of(cls, x: Series) -> "Columns":
        one, nothing, way = np.ones((x.t.size, 1)), np.zeros((x.t.size, 0)), x.way
        least = _SAMPLES if x.in_time else _ROWS
        ways = tuple(w for w in (1, -1) if np.sum(way == w) >= least) or (1,)
        turned = way[:, None] if len(ways) == 2 else nothing
        time = ((x.t - x.t.mean()) / (x.t[-1] - x.t[0]))[:, None]  # from -1/2 to 1/2
        drift = _joined(time, time * turned)
        speed = [nothing]
        if x.v is not None:
            for w in ways:
                mine = way == w
                columns = hats(np.abs(x.v), corners_of(np.abs(x.v[mine]), _CORNERS_SPEED))
                speed.append(columns * mine[:, None])
        slope, position = nothing, nothing
        if x.s is not None:
            slope = (x.s - x.s.mean())[:, None]
            position = hats(x.s, np.linspace(x.s.min(), x.s.max(), _CORNERS_POSITION))
        level, speeds = _joined(one, turned), _joined(*speed)
        return cls(ways, level, drift, speeds, slope, position, nothing)


def _joined(*columns: np.ndarray) -> np.ndarray:
    return np.concatenate(columns, axis=1)


def subject(x: Series) -> str:
    """What a sentence is about, at its beginning."""
    if not x.is_force:
        return f"Residual of {x.of}"
    return f"Residual {'torque' if x.unit == 'N.m' else 'force'} on {x.of}"


def ending(found: Regressed, x: Series) -> str:
    """What every sentence ends with: how much it explains, and how much chance may."""
    size = float(np.sqrt(found.hidden * np.mean(x.e**2)))
    verdict = (
        ""
        if found.strong
        else f"; noise explains up to {percent(found.hidden)}, {amount(size, x.unit)} rms"
        if found.p >= CHANCE
        else ", too little to matter"
    )
    return f"{percent(found.share)} of the residual's mean square{verdict}"


def nothing_told(name: str, x: Series, why: str, x_label: tuple[str, str]) -> Finding:
    """A finding where the record does not tell."""
    return Finding(
        name, x.record, x.of, f"{subject(x)}: {why}.", False, np.nan, np.nan, x.unit,
        0.0, 1.0, {}, (), x_label, ("residual", x.unit),
    )  # fmt: skip


def finding_of(
    name: str,
    x: Series,
    sentence: str,
    effect: tuple[float, float],
    found: Regressed,
    numbers: Mapping[str, float],
    curves: Iterable[Curve],
    x_label: tuple[str, str],
    y: str = "residual",
) -> Finding:
    """A finding by a regression; `effect` with its standard error, over `x_label`."""
    size, error = (float(value) for value in effect)
    numbers = {**numbers, "independent samples": found.independent}
    return Finding(
        name, x.record, x.of, sentence, found.strong, size, error, x.unit,
        found.share, found.p, numbers, tuple(curves), x_label, (y, x.unit),
    )  # fmt: skip


def direction(x: Series, c: Columns) -> Finding:
    """Means forward and backward: alike, they are an offset of the force or friction that differs
    by direction; opposite, friction.
    """
    label = ("direction of motion", "")
    if x.v is None:
        return nothing_told(
            "direction", x, "the record does not contain the direction of motion", label
        )
    others = _joined(c.drift, c.slope, c.waves)
    others = others - others.mean(axis=0)
    found = regressed(x.e, c.level, others, x.in_time)
    if found is None:
        return nothing_told("direction", x, "there are too few samples for a mean", label)
    even, odd = found.values[0], found.values[1] if len(c.ways) == 2 else 0.0
    means = {w: float(even + w * odd) for w in c.ways}
    curves = []
    for w in c.ways:
        own = regressed(
            x.e,
            (np.sign(x.v) == w)[:, None].astype(float),
            _joined(others, (np.sign(x.v) == -w)[:, None].astype(float)),
            x.in_time,
        )
        error = np.nan if own is None else own.errors[0]
        curves.append(Curve(np.array([float(w)]), np.array([means[w]]), np.array([error]), w))
    told = " and ".join(f"{amount(m, x.unit)} {WAYS[w]}" for w, m in means.items())
    effect, error = even, found.errors[0]
    if len(c.ways) == 1:
        hint = "which with one direction alone may also be friction"
    elif abs(even) / error >= abs(odd) / found.errors[1]:
        hint = (
            "mostly equal in both directions, as from an offset or from friction that differs by"
            " direction"
        )
    else:
        effect, error = odd, found.errors[1]
        more = "more" if odd < 0 else "less"
        hint = f"mostly opposite in the two directions, as from {more} friction than the model has"
    because = ", " + hint if found.strong else ""
    sentence = f"{subject(x)} is {told} in the mean{because}: {ending(found, x)}."
    numbers = {"alike": float(even), "opposite": float(odd)}
    numbers |= {WAYS[w]: m for w, m in means.items()}
    return finding_of(
        "direction", x, sentence, (abs(effect), error), found, numbers, curves, label, "mean"
    )


def time(x: Series, c: Columns) -> Finding:
    """A straight line in time: alike both ways (an offset drifts), or turning with the motion
    (friction changes).
    """
    label = ("time", "s")
    found = regressed(x.e, c.drift, _joined(c.level, c.speed, c.slope, c.waves))
    if found is None:
        return nothing_told("time", x, "there are too few samples for a drift", label)
    both = len(c.ways) == 2
    even, odd = float(found.values[0]), float(found.values[1]) if both else 0.0
    errors = (float(found.errors[0]), float(found.errors[1]) if both else np.nan)
    span, ends = float(x.t[-1] - x.t[0]), x.t[[0, -1]]
    partial, middle = found.part + found.rest, float(x.t.mean())
    curves = []
    for w in c.ways:
        mine, side = x.way == w, w if both else 0
        means = binned(x.t[mine], partial[mine], np.linspace(x.t[0], x.t[-1], _BINS + 1))
        line = (even + w * odd) * (ends - middle) / span
        curves += [Curve(*means, side), Curve(ends, line, None, side, "line")]
    alike = not (np.isfinite(errors[1]) and abs(odd) / errors[1] > abs(even) / errors[0])
    effect, error = (even, errors[0]) if alike else (odd, errors[1])
    if len(c.ways) == 1:
        hint = (
            "which with one direction alone may be an offset that drifts or friction that changes"
        )
    elif alike:
        hint = "equal in both directions: an offset drifts, for example of an amplifier or a sensor"
    else:
        hint = (
            "against the motion: friction"
            f" {'falls, for example by temperature or wear' if odd > 0 else 'rises'}"
        )
    sentence = (
        f"{subject(x)} drifts by {with_error(effect, error, x.unit)} over"
        f" {span:.3g} s, {amount(effect / span, x.unit + '/s')}"
        f"{', ' + hint if found.strong else ''}: {ending(found, x)}."
    )
    numbers = {"alike": even / span, "with the motion": odd / span}
    return finding_of("time", x, sentence, (abs(effect), error), found, numbers, curves, label)


def speed(x: Series, c: Columns) -> Finding:
    """The curve over speed that the friction law misses: lines with six corners a direction."""
    label = ("velocity", f"{x.place}/s")
    if x.v is None:
        return nothing_told("speed", x, "the record does not contain the speed", label)
    found = regressed(x.e, c.speed, _joined(c.level, c.drift, c.slope, c.waves), x.in_time)
    if found is None:
        return nothing_told("speed", x, "the speed varies too little", label)
    curves, spans = [], {}
    for w in c.ways:
        mine = np.sign(x.v) == w
        part, v = found.part[mine] - found.part[mine].mean(), x.v[mine]
        curves.append(Curve(*binned(v, part + found.rest[mine], corners_of(v, _BINS)), w))
        order = np.argsort(v)[np.linspace(0, v.size - 1, min(v.size, 400)).astype(int)]
        curves.append(Curve(v[order], part[order], None, w, "line"))
        # What a few samples at the edge seem to say is no range.
        low, high = np.quantile(part, [0.02, 0.98])
        spans[w] = (
            float(high - low),
            abs(v[np.argmin(np.abs(part - low))]),
            abs(v[np.argmin(np.abs(part - high))]),
        )
    most = max(spans, key=lambda w: spans[w][0])
    size, slow, fast = spans[most]
    spread = np.concatenate([q.error for q in curves if q.error is not None])
    error = float(np.median(spread)) if spread.size else np.nan
    names = (" forward" if most > 0 else " backward") if len(c.ways) == 2 else ""
    sentence = (
        f"{subject(x)} follows the speed over a range of {amount(size, x.unit)}{names}"
        + (
            f", from its minimum at {amount(slow, label[1])} to its maximum at"
            f" {amount(fast, label[1])}, as from another friction law"
            if found.strong
            else ""
        )
        + f": {ending(found, x)}."
    )
    numbers = {WAYS[w]: s[0] for w, s in spans.items()}
    return finding_of("speed", x, sentence, (size, error), found, numbers, curves, label)


def position(x: Series, c: Columns) -> Finding:
    """A slope or a slow curve over position: lines with nine corners over the travel."""
    label = ("position" if x.place == "m" else "angle", x.place)
    if x.s is None:
        return nothing_told("position", x, "the record does not contain the position", label)
    others = _joined(c.level, c.drift, c.speed, c.waves)
    found, straight = regressed(x.e, c.position, others), regressed(x.e, c.slope, others)
    if found is None or straight is None:
        return nothing_told("position", x, "the position varies too little", label)
    part = found.part - found.part.mean()
    edges = np.linspace(x.s.min(), x.s.max(), _BINS + 1)
    curves = []
    for w in c.ways:
        means = binned(x.s[x.way == w], (part + found.rest)[x.way == w], edges)
        curves.append(Curve(*means, w if len(c.ways) == 2 else 0))
    order = np.argsort(x.s)[np.linspace(0, x.s.size - 1, min(x.s.size, 400)).astype(int)]
    curves.append(Curve(x.s[order], part[order], None, 0, "line"))
    slope, error, travel = float(straight.values[0]), float(straight.errors[0]), float(np.ptp(x.s))
    # One number against noise is judged more sharply than eight.
    p = min(1.0, 2 * min(found.p, straight.p))
    line = straight.p < CHANCE and straight.share > 0.5 * found.share
    best = dataclasses.replace(straight if line else found, p=p)
    size = abs(slope) * travel if line else float(np.subtract(*np.quantile(part, [0.98, 0.02])))
    what = (
        "a spring or an axis that is not level"
        if line
        else "a guide that is not even or a drive that pulls unevenly"
    )
    unit = f"{x.unit}/{x.place}"
    sentence = (
        f"{subject(x)} varies by {amount(size, x.unit)} over {amount(travel, x.place)} of"
        f" {label[0]}, {'by' if line else 'beside'} a slope of"
        f" {with_error(slope, error, unit)}{', as from ' + what if best.strong else ''}:"
        f" {ending(best, x)}."
    )
    numbers = {"slope": slope, "slope error": error}
    return finding_of("position", x, sentence, (size, error * travel), best, numbers, curves, label)
