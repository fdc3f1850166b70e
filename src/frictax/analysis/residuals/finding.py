"""One thing that a residual study looked for: what it found, in words, in numbers and as
a picture.
"""

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from frictax.text import prefixed, shown

# a strong finding explains more than this of the mean square, and chance as much less often than
# this
SHARE, CHANCE = 0.005, 0.005


@dataclasses.dataclass(frozen=True, eq=False)
class Curve:
    """What is drawn of a finding: `y` over `x` with standard errors or None; `direction` 1, -1, or
    0 for both; `kind`: "points", "line" or "band" (from -y to y).
    """

    x: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]
    error: Float[np.ndarray, " n"] | None = None
    direction: int = 0
    kind: str = "points"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Finding:
    """What a study found of one kind. Print it.

    - `name`: "whiteness", "speed", "position", "direction", "time" or "ripple"; `record`, `of`: the
      body or channel whose residual it is.
    - `sentence`; `strong`: see `ResidualStudy`.
    - `effect` and `error`, its standard error, in `unit`, [1] for whiteness: the greatest
      difference that the finding makes (an amplitude, for a ripple). `share` of the residual's mean
      square; `p`: the chance of as much from coloured noise.
    - `numbers`: more of them by name, SI: ``period``, ``period error``, ``forward``, ``backward``
      of a ripple, say.
    - `curves`: what the picture shows, over `x_label` and `y_label`, each with its unit.

    **Example:** at `ResidualStudy`.
    """

    name: str
    record: str
    of: str
    sentence: str
    strong: bool
    effect: float
    error: float
    unit: str
    share: float
    p: float
    numbers: Mapping[str, float]
    curves: tuple[Curve, ...]
    x_label: tuple[str, str]
    y_label: tuple[str, str]

    def __str__(self) -> str:
        return self.sentence

    __repr__ = __str__


def is_strong(share: float, p: float) -> bool:
    return bool(share > SHARE and p < CHANCE)


def amount(value: float, unit: str, figures: int = 3) -> str:
    """A value with a prefix that makes it handy.

    >>> amount(0.0025, "m", 4), amount(-0.87, "N"), amount(12000.0, "N.m")
    ('2.500 mm', '-0.870 N', '12.0 kN.m')
    """
    if not math.isfinite(value):
        return f"unknown {unit}"
    name, size = prefixed(unit, value, plain=(0.1, 1e3))
    return f"{_figures(value / size, figures)} {name}"


def with_error(value: float, error: float, unit: str) -> str:
    """A value to the second figure of its standard error, both with one prefix.

    >>> with_error(0.00250012, 0.0000031, "m")
    '2.5001 mm (std. error 0.0031 mm)'
    """
    if not (math.isfinite(value) and math.isfinite(error) and error > 0):
        return amount(value, unit)
    row = shown(value, error, unit)
    return f"{row.value} {row.unit} (std. error {row.error} {row.unit})"


def _figures(x: float, figures: int) -> str:
    digits = figures - 1 - (math.floor(math.log10(abs(x))) if x else 0)
    return f"{x:.{min(max(digits, 0), 12)}f}" if -6 < digits < 12 else f"{x:.{figures}g}"


def percent(share: float) -> str:
    """A share in per cent.

    >>> percent(0.187), percent(0.0004)
    ('19 %', 'less than 0.1 %')
    """
    return "less than 0.1 %" if share < 1e-3 else f"{100 * share:.2g} %"
