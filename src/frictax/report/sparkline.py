"""Small pictures for the cells of a table, as SVG in the colour of the text."""

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from markupsafe import Markup

from frictax.contacts import Mode

from .modes import MODES

_FINE = 8  # units of a picture for each pixel, so that coordinates are integers
_COLUMNS = 80  # columns of a curve; the lowest and the highest value of each are drawn
_STEPS = 120  # colour steps of a strip: each is 2.5 pixels wide

Size = tuple[int, int]  # [pixels] width and height


def curve(
    x: np.ndarray, y: np.ndarray, says: str, *, level: float | None = None, size: Size = (160, 26)
) -> Markup:
    """Return y over x as a line with gaps where y is not finite; `level`: a dashed line."""
    seen = np.isfinite(x) & np.isfinite(y)
    heights = y[seen] if level is None else np.append(y[seen], level)
    right, up = _scale(x, size[0]), _scale(heights, size[1], upward=True)
    parts = []
    edges = np.flatnonzero(np.diff(seen.astype(int), prepend=0, append=0))
    for a, b in edges.reshape(-1, 2):
        at, height = _thin(right(x[a:b]), y[a:b], size[0])
        points = [f"{i} {j}" for i, j in zip(at, up(height), strict=True)]
        parts.append(f"M{'L'.join(points if len(points) > 1 else 2 * points)}")
    lines = [_path("".join(parts))]
    if level is not None:
        lines.append(_horizontal(int(up(np.array([level]))[0]), size, "3 3"))
    return _picture(size, says, lines)


def dots(x: np.ndarray, y: np.ndarray, says: str, *, size: Size = (200, 70)) -> Markup:
    """Return points of y over x, at most 240, and a dashed line at y = 0."""
    thin = slice(None, None, max(len(x) // 120, 1))
    right, up = _scale(np.append(x, 0.0), size[0]), _scale(np.append(y, 0.0), size[1], upward=True)
    points = zip(right(x[thin]), up(y[thin]), strict=True)
    path = "".join(f"M{i} {j}h0" for i, j in points)
    zero = _horizontal(int(up(np.zeros(1))[0]), size, "2 3")
    return _picture(size, says, [zero, _path(path, width=4.0)])


def strip(
    spans: Sequence[tuple[Mode, float, float]],
    ends: tuple[float, float],
    says: str,
    *,
    size: Size = (300, 14),
) -> Markup:
    """Return a coloured band for each mode over time, an empty one where a contact is free. Bands
    shorter than three pixels may be missing.
    """
    edges = np.linspace(*ends, _STEPS + 1)
    middles = 0.5 * (edges[1:] + edges[:-1])
    begins = np.array([begin for _, begin, _ in spans] or [np.inf])
    which = np.searchsorted(begins, middles, side="right") - 1
    which[middles > (spans[-1][2] if spans else -np.inf)] = -1
    wide, high = size[0] * _FINE, size[1] * _FINE
    bands: dict[str, str] = {}
    for a, b in itertools.pairwise([0, *(np.flatnonzero(np.diff(which)) + 1), _STEPS]):
        mode = spans[which[a]][0] if which[a] >= 0 else Mode.FREE
        if mode in MODES and mode is not Mode.FREE:
            left, right = (round(i * wide / _STEPS) for i in (a, b))
            colour = MODES[mode][1]
            bands[colour] = bands.get(colour, "") + f"M{left} {high // 2}h{right - left}"
    lines = [f'<path d="{d}" stroke="{c}" stroke-width="{high}"/>' for c, d in bands.items()]
    seen = round(int(np.sum(which >= 0)) * wide / _STEPS)
    frame = _path(f"M0 0h{seen}v{high}h-{seen}z", width=0.8)
    return _picture(size, says, [*lines, frame] if seen else [])


def legend(modes: Iterable[Mode]) -> Markup:
    """Return the names of the modes beside their colours."""
    here = set(modes)
    swatches = [
        Markup("{} {}").format(strip([(mode, 0.0, 1.0)], (0.0, 1.0), word, size=(14, 10)), word)
        for mode, (word, _, _) in MODES.items()
        if mode in here
    ]
    return Markup(" &nbsp; ").join(swatches)


def _scale(
    values: np.ndarray, pixels: int, *, upward: bool = False
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from values to coordinates: the middle if all values are equal."""
    largest = float(np.max(np.abs(values), initial=0.0)) or 1.0  # Scaled values do not overflow.
    scaled = values / largest if values.size else np.zeros(1)
    low, width = float(np.min(scaled)), float(np.max(scaled) - np.min(scaled))

    def coordinates(some: np.ndarray) -> np.ndarray:
        share = (some / largest - low) / width if width > 0 else np.full(len(some), 0.5)
        share = 1.0 - share if upward else share
        return np.rint(share * (pixels - 4) * _FINE).astype(int) + 2 * _FINE

    return coordinates


def _thin(x: np.ndarray, y: np.ndarray, pixels: int) -> tuple[np.ndarray, np.ndarray]:
    """Keep the lowest and the highest of the points in each column."""
    if x.size <= 2 * _COLUMNS:
        return x, y
    column = (x - 2 * _FINE) * _COLUMNS // ((pixels - 4) * _FINE + 1)
    parts = np.split(np.arange(x.size), np.flatnonzero(np.diff(column)) + 1)
    kept = sorted({int(p[pick(y[p])]) for p in parts for pick in (np.argmin, np.argmax)})
    return x[kept], y[kept]


def _horizontal(height: int, size: Size, dashes: str) -> str:
    right = (size[0] - 2) * _FINE
    return _path(f"M{2 * _FINE} {height}L{right} {height}", dashes)


def _path(d: str, dashes: str = "", width: float = 1.1) -> str:
    more = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<path d="{d}" fill="none" stroke="currentColor" stroke-width="{width}"{more}'
        ' stroke-linecap="round" stroke-linejoin="round" vector-effect="non-scaling-stroke"/>'
    )


def _picture(size: Size, says: str, lines: list[str]) -> Markup:
    wide, high = size
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{}" width="{}" height="{}"'
        ' viewBox="0 0 {} {}" style="vertical-align: middle">{}</svg>'
    ).format(says, wide, high, wide * _FINE, high * _FINE, Markup("".join(lines)))
