"""Pictures of a line's height for the cells of a table, as SVG in the colour of its text."""

from collections.abc import Iterable, Sequence

import numpy as np
from markupsafe import Markup

from frictax.contacts import Mode

from ..modes import MODES

_FINE = 8  # units of a picture for each pixel, so that whole numbers will do
_COLUMNS = 80  # of a curve: in each its least and its greatest value are drawn
_STEPS = 120  # of a strip
_DOTS = 120


def curve(
    x: np.ndarray,
    y: np.ndarray,
    says: str,
    *,
    level: float | None = None,
    size: tuple[int, int] = (160, 26),
) -> Markup:
    """y over x as a line, broken where a value is not finite; `level`: a dashed line across."""
    seen = np.isfinite(x) & np.isfinite(y)
    heights = y[seen] if level is None else np.append(y[seen], level)
    place = _Place(x, heights, size)
    parts = []
    edges = np.flatnonzero(np.diff(seen.astype(int), prepend=0, append=0))
    for a, b in edges.reshape(-1, 2):
        points = place(*_thinned(x[a:b], y[a:b], place.x))
        parts.append(f"M{'L'.join(points if len(points) > 1 else 2 * points)}")
    lines = [_path("".join(parts))]
    if level is not None:
        lines.append(_path(f"M{place.across(level)}", "3 3"))
    return _picture(size, says, lines)


def dots(x: np.ndarray, y: np.ndarray, says: str, *, size: tuple[int, int] = (200, 70)) -> Markup:
    """Points of y over x, about 100 of many, over a line at y = 0."""
    thin = slice(None, None, max(len(x) // _DOTS, 1))
    place = _Place(np.append(x, 0.0), np.append(y, 0.0), size)
    points = "".join(f"M{point}h0" for point in place(x[thin], y[thin]))
    zero = _path(f"M{place.across(0.0)}", "2 3")
    return _picture(size, says, [zero, _path(points, width=4.0)])


def strip(
    spans: Sequence[tuple[Mode, float, float]],
    ends: tuple[float, float],
    says: str,
    *,
    size: tuple[int, int] = (300, 14),
) -> Markup:
    """Which mode lasted when: a coloured band for each, an empty one where a contact is free. What
    is shorter than three pixels may not show.
    """
    edges = np.linspace(*ends, _STEPS + 1)
    middles = 0.5 * (edges[1:] + edges[:-1])
    begins = np.array([begin for _, begin, _ in spans] or [np.inf])
    last = spans[-1][2] if spans else -np.inf
    which = np.searchsorted(begins, middles, side="right") - 1
    modes = [
        spans[i][0] if i >= 0 and t <= last else None for i, t in zip(which, middles, strict=True)
    ]
    wide, high = size[0] * _FINE, size[1] * _FINE
    bands: dict[Mode, list[str]] = {}
    start = 0
    for k in range(1, _STEPS + 1):
        if k == _STEPS or modes[k] is not modes[start]:
            mode = modes[start]
            if mode is not None:
                a, b = (round(i * wide / _STEPS) for i in (start, k))
                bands.setdefault(mode, []).append(f"M{a} {high // 2}h{b - a}")
            start = k
    lines = [
        f'<path d="{"".join(parts)}" stroke="{MODES[mode][1]}" stroke-width="{high}"/>'
        for mode, parts in bands.items()
        if mode in MODES and mode is not Mode.FREE
    ]
    seen = round(sum(mode is not None for mode in modes) * wide / _STEPS)
    frame = f"M0 0h{seen}v{high}h-{seen}z"
    return _picture(size, says, [*lines, _path(frame, width=0.8)] if seen else [])


def legend(modes: Iterable[Mode]) -> Markup:
    """What the colours of a strip mean."""
    here = set(modes)
    swatches = [
        Markup("{} {}").format(strip([(mode, 0.0, 1.0)], (0.0, 1.0), word, size=(14, 10)), word)
        for mode, (word, _, _) in MODES.items()
        if mode in here
    ]
    return Markup(" &nbsp; ").join(swatches)


class _Axis:
    """From the least to the greatest of some values."""

    def __init__(self, values: np.ndarray) -> None:
        self.size = float(np.max(np.abs(values), initial=0.0)) or 1.0  # none overflows
        scaled = values / self.size if values.size else np.zeros(1)
        self.low, self.high = float(np.min(scaled)), float(np.max(scaled))

    def share(self, values: np.ndarray) -> np.ndarray:
        """0 at the least, 1 at the greatest, 1/2 where there is one value only."""
        width = self.high - self.low
        return (values / self.size - self.low) / width if width > 0 else np.full(len(values), 0.5)


class _Place:
    """Where values lie in a picture."""

    def __init__(self, x: np.ndarray, y: np.ndarray, size: tuple[int, int]) -> None:
        self.wide, self.high = ((side - 4) * _FINE for side in size)
        self.x, self.y = _Axis(x), _Axis(y)

    def __call__(self, x: np.ndarray, y: np.ndarray) -> list[str]:
        return self.at(self.x.share(x), self.y.share(y))

    def across(self, y: float) -> str:
        """A level line at y."""
        return "L".join(self.at(np.array([0.0, 1.0]), np.repeat(self.y.share(np.array([y])), 2)))

    def at(self, right: np.ndarray, up: np.ndarray) -> list[str]:
        left = np.rint(right * self.wide).astype(int) + 2 * _FINE
        top = np.rint((1.0 - up) * self.high).astype(int) + 2 * _FINE
        return [f"{a} {b}" for a, b in zip(left, top, strict=True)]


def _thinned(x: np.ndarray, y: np.ndarray, axis: _Axis) -> tuple[np.ndarray, np.ndarray]:
    """Of many points the least and the greatest in each column."""
    if x.size <= 2 * _COLUMNS:
        return x, y
    column = np.minimum((axis.share(x) * _COLUMNS).astype(int), _COLUMNS - 1)
    first = np.flatnonzero(np.diff(column, prepend=-1))
    kept = set()
    for a, b in zip(first, np.append(first[1:], x.size), strict=True):
        kept |= {a + int(np.argmin(y[a:b])), a + int(np.argmax(y[a:b]))}
    order = np.array(sorted(kept))
    return x[order], y[order]


def _path(d: str, dashes: str = "", width: float = 1.1) -> str:
    more = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<path d="{d}" fill="none" stroke="currentColor" stroke-width="{width}"{more}'
        ' stroke-linecap="round" stroke-linejoin="round" vector-effect="non-scaling-stroke"/>'
    )


def _picture(size: tuple[int, int], says: str, lines: list[str]) -> Markup:
    wide, high = size
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{}" width="{}" height="{}"'
        ' viewBox="0 0 {} {}" style="vertical-align: middle">{}</svg>'
    ).format(says, wide, high, wide * _FINE, high * _FINE, Markup("".join(lines)))
