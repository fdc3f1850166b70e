"""Text that is shared by whatever prints: tables, rounding, prefixes of units, names nearby."""

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np

WAYS = {1: "forward", -1: "backward"}


def aligned(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Columns of text, the first left, the others right aligned as far as they hold numbers."""
    cells = [head, *rows]
    widths = [max(len(row[j]) for row in cells) for j in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def rounded(value: float, error: float) -> str:
    """`value` to the second digit of its error.

    >>> rounded(12.3456, 0.012), rounded(3.819003e-4, 5.8e-9)
    ('12.346', '0.0003819003')
    """
    if not np.isfinite(value):
        return "?"
    if not np.isfinite(error) or error <= 0:
        return f"{value:.4g}"
    digits = 1 - int(np.floor(np.log10(error)))
    if not -6 < digits < 10 or abs(value) * 10.0**digits > 1e9:
        # of the number's own digits
        known = digits + 1 + int(np.floor(np.log10(abs(value) or 1.0)))
        return f"{value:.{min(max(known, 4), 15)}g}"
    return f"{value:.{max(digits, 0)}f}"


def prefixed(unit: str, *values: Any, plain: tuple[float, float] = (0.1, 1e4)) -> tuple[str, float]:
    """The SI unit with a prefix that gives handy numbers, and what to divide by; without one where
    the largest of the values lies between the two of `plain`.

    >>> prefixed("m", [0.0, 0.004])
    ('mm', 0.001)
    """
    sizes = [np.abs(v[np.isfinite(v)]) for v in map(np.asarray, values)]
    largest = max((float(np.max(v)) for v in sizes if v.size), default=0.0)
    if largest == 0.0 or plain[0] <= largest < plain[1]:
        return unit, 1.0
    for prefix, size in (("M", 1e6), ("k", 1e3), ("", 1.0), ("m", 1e-3), ("µ", 1e-6)):
        if largest >= size:
            return prefix + unit, size
    return "n" + unit, 1e-9


def amount(value: float, unit: str) -> str:
    """
    >>> amount(0.004, "m")
    '4 mm'
    """
    name, size = prefixed(unit, value)
    return f"{value / size:.3g} {name}"


def brief(value: Any, most: int = 60) -> str:
    """A value in a sentence, cut where it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= most else text[: most - 3] + "..."


def nearest(name: Any, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The one of the known names that is most like `name`, where one is."""
    return next(iter(difflib.get_close_matches(str(name), list(known), n=1, cutoff=cutoff)), None)


def suggestion(name: Any, known: Iterable[str], cutoff: float = 0.6) -> str:
    """A question after a name that is not known, where one like it is.

    >>> suggestion("omga", ["omega", "torque"])
    " Did you mean 'omega'?"
    """
    near = nearest(name, known, cutoff)
    return f" Did you mean {near!r}?" if near else ""
