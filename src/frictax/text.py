"""Text for tables and sentences: rounding, prefixes of units, aligned columns, similar names."""

import dataclasses
import difflib
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

WAYS = {1: "forward", -1: "backward"}


def align_columns(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table with left-aligned columns."""
    cells = [head, *rows]
    widths = [max(len(row[j]) for row in cells) for j in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


@dataclasses.dataclass(frozen=True)
class Shown:
    """A number, its standard error and its interval as texts in `unit`; `size`: SI value of `unit`.
    The text of an unknown number is empty.
    """

    value: str
    unit: str
    error: str
    lower: str
    upper: str
    size: float = 1.0

    @property
    def interval(self) -> str:
        return f"{self.lower or '?'} to {self.upper or '?'}" if self.lower or self.upper else ""


def format_estimate(
    value: float,
    error: float,
    unit: str,
    ends: tuple[float, float] = (math.nan, math.nan),
    fixed: tuple[str, float] | None = None,
) -> Shown:
    """Round a number, its standard error and its interval to two significant digits of the error.

    The unit is the SI `unit` with a suitable prefix, or `fixed`: a unit and its value in SI. For a
    unit without prefixes (kg.m2, s/rad, 1) powers of ten are printed, so that the number can be
    typed into a model.

    >>> row = format_estimate(2.0129e-4, 1.02e-6, "kg.m2", (1.993e-4, 2.033e-4))
    >>> row.value, row.error, row.interval, row.unit
    ('2.013e-4', '1.0e-6', '1.993e-4 to 2.033e-4', 'kg.m2')

    >>> row = format_estimate(0.0389, 0.0011, "N.m", (0.0367, 0.0411))
    >>> row.value, row.error, row.interval, row.unit
    ('38.9', '1.1', '36.7 to 41.1', 'mN.m')
    """
    told = math.isfinite(error) and (not value or error < 1e4 * abs(value))
    name, size = fixed or prefix_unit(unit, [value, error if told else 0.0])
    numbers, error = [x / size for x in (value, *ends)], error / size
    least, powers = _form(numbers, error)
    at, below, above = _apart(numbers, least, powers)
    # The error has two significant digits. It is written with a power of ten if another text has a
    # power of ten.
    powers = powers or "e" in at + below + above
    by = _written(error, 1 - _order(error), powers) if math.isfinite(error) else ""
    return Shown(at, name, by, below, above, size)


def format_alike(numbers: Sequence[float], error: float = math.nan) -> list[str]:
    """Round numbers to two significant digits of their error. Use more digits if different numbers
    look equal. A nan becomes an empty text.

    >>> (
    ...     format_alike([0.0, 2e-4, 2.0], 1.0),
    ...     format_alike([3e-9, 2.97e-9], 1.2e-11),
    ...     format_alike([1e7], 2e5),
    ... )
    (['0.0000', '0.0002', '2.0000'], ['3.000e-9', '2.970e-9'], ['1.000e7'])
    """
    return _apart(numbers, *_form(numbers, error))


def _form(numbers: Sequence[float], error: float) -> tuple[int, bool]:
    """Return the number of decimals, and whether to write powers of ten; see `format_alike`."""
    largest = max((abs(x) for x in numbers if math.isfinite(x)), default=0.0)
    if math.isfinite(error) and 0 < error and (not largest or error <= 1e4 * largest):
        return 1 - _order(error), not 1e-3 <= max(largest, error) < 1e6
    return 3 - _order(largest), largest > 0 and not 1e-3 <= largest < 1e6


def _apart(numbers: Sequence[float], least: int, powers: bool) -> list[str]:
    """Write numbers with `least` decimals, or with more if different numbers look equal."""
    known = {float(x) for x in numbers if math.isfinite(x)}
    for digits in range(least, least + 400):
        powers = powers or digits > 12
        texts = {x: _written(x, digits, powers) for x in known}
        if len(set(map(float, texts.values()))) == len(known):
            return [texts.get(float(x), _endless(x)) for x in numbers]
    return [repr(float(x)) if math.isfinite(x) else _endless(x) for x in numbers]


def _endless(x: float) -> str:
    """Return the text for an infinite number or nan (empty for nan)."""
    return "" if math.isnan(x) else "inf" if x > 0 else "-inf"


def _order(x: float) -> int:
    """Return the power of ten of the first digit of `x`, or 0 for x = 0."""
    return math.floor(math.log10(abs(x))) if x else 0


def _written(x: float, digits: int, powers: bool) -> str:
    """Return `x` as text with `digits` decimals. If `powers` is True, append a power of ten."""
    if not powers:
        text = f"{x:.{max(digits, 0)}f}"
        return text if float(text) else text.removeprefix("-")
    if not x:
        return "0"
    figures, _, power = f"{x:.{min(max(digits + _order(x), 0), 16)}e}".partition("e")
    return figures if int(power) == 0 else f"{figures}e{int(power)}"


def round_by_error(value: float, error: float) -> str:
    """Round `value` to two significant digits of its error; without an error, to four digits.

    >>> round_by_error(12.3456, 0.012), round_by_error(3.819003e-4, 5.8e-9)
    ('12.346', '3.819003e-4')
    """
    if not np.isfinite(value):
        return "?"
    return format_alike([value], error)[0]


def figures(value: float, count: int = 4) -> str:
    """Round `value` to `count` significant digits, without zeros at the end.

    >>> figures(1.25), figures(2e-4), figures(12345678.0)
    ('1.25', '2e-4', '1.235e7')
    """
    plain, _, power = f"{value:.{count}g}".partition("e")
    if 0 < abs(value) < 1e-3:
        plain, _, power = f"{value:.{count - 1}e}".partition("e")
        plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return f"{plain}e{int(power)}" if power else plain


_PREFIXABLE = re.compile(r"(N|m|rad|W|V|A|Hz|J)(?![A-Za-z0-9])|s$|kg$")


def prefix_unit(
    unit: str, *values: Any, plain: tuple[float, float] = (0.1, 1e4)
) -> tuple[str, float]:
    """Return the SI unit with a suitable prefix, and its value in SI. The unit stays without a
    prefix if prefixes do not suit it, or if the largest value lies between both numbers of `plain`.

    >>> prefix_unit("m", [0.0, 0.004]), prefix_unit("kg", [0.02]), prefix_unit("kg.m2", [2e-4])
    (('mm', 0.001), ('g', 0.001), ('kg.m2', 1.0))
    """
    sizes = [np.abs(v[np.isfinite(v)]) for v in map(np.asarray, values)]
    largest = max((float(np.max(v)) for v in sizes if v.size), default=0.0)
    if largest == 0.0 or plain[0] <= largest < plain[1] or not _PREFIXABLE.match(unit):
        return unit, 1.0
    if unit == "kg":
        return ("kg", 1.0) if largest >= 1.0 else ("g", 1e-3) if largest >= 1e-3 else ("mg", 1e-6)
    small = unit.startswith(("s", "rad"))
    for prefix, size in (("M", 1e6), ("k", 1e3), ("", 1.0), ("m", 1e-3), ("µ", 1e-6)):
        if largest >= size and not (small and size > 1.0):
            return prefix + unit, size
    return "n" + unit, 1e-9


def amount(value: float, unit: str, fixed: tuple[str, float] | None = None) -> str:
    """Return a value with a suitable unit prefix, or in the unit `fixed` (its name and SI value).

    >>> amount(0.004, "m"), amount(0.004, "m", ("cm", 0.01)), amount(1.5, "1")
    ('4 mm', '0.4 cm', '1.5')
    """
    name, size = fixed or prefix_unit(unit, value)
    if name in ("1", ""):
        return figures(value / size, 3)
    return f"{figures(value / size, 3)} {name}"


def brief(value: Any, most: int = 60) -> str:
    """Return a value as text for a sentence, shortened to `most` characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= most else text[: most - 3] + "..."


# A terminal executes control characters and does not show them. `CONTROL` finds C0 (except tab and
# line feed), DEL, C1, changes of the writing direction, and separators of lines and paragraphs.
CONTROL = re.compile(r"[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Escape the control characters of a text, so that a terminal does not execute them.

    >>> printable("torque\\x1b[2J"), printable("abc\\u202e")
    ('torque\\\\x1b[2J', 'abc\\\\u202e')
    """
    return CONTROL.sub(lambda sign: sign[0].encode("unicode_escape").decode("ascii"), text)


def nearest(name: Any, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that is most similar to `name`, ignoring case; None if none is similar.

    >>> nearest("rotor.j", ["rotor.w", "rotor.J"])
    'rotor.J'
    """
    spelt = {one.lower(): one for one in reversed(list(known))}
    near = difflib.get_close_matches(str(name).lower(), spelt, n=1, cutoff=cutoff)
    return spelt[near[0]] if near else None


def suggestion(name: Any, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the question "Did you mean ...?" for an unknown name; empty without a similar name.

    >>> suggestion("omga", ["omega", "torque"])
    " Did you mean 'omega'?"
    """
    near = nearest(name, known, cutoff)
    return f" Did you mean {near!r}?" if near else ""
