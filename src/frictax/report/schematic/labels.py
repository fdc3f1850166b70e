"""The label of a part in a schematic: its name and its main values."""

import dataclasses
from typing import Any

import jax
import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from frictax.contacts import AbstractContact
from frictax.laws import AbstractLaw
from frictax.mechanism.layout import is_rotational
from frictax.parameters import is_traced, rotational_unit
from frictax.parameters.declaration import declaration_of
from frictax.signals import AbstractSignal, Constant

NAME, VALUE, SMALL = 9.5, 8.5, 7.5  # [pt] sizes of letters
_LEADING = 1.28  # height of a line over the size of its letters
_LINE = 20  # [letters] longest line of several values
# Units of the values of signals: a field with a signal does not declare a unit.
_SIGNALS = {"f": "N", "tau": "N.m", "s": "m", "s_ref": "m", "f_normalized": "1"}


@dataclasses.dataclass(frozen=True)
class Label:
    """Lines of text, each with its size [pt]; the name comes first."""

    lines: tuple[tuple[str, float], ...]

    @property
    def width(self) -> float:
        return max((text_width(text, size) for text, size in self.lines), default=0.0)

    @property
    def height(self) -> float:
        return sum((_LEADING * size for _, size in self.lines), 0.0)

    def heights(self) -> list[float]:
        """Return how far the middle of each line is below the top [pt]."""
        steps = np.cumsum([0.0, *(_LEADING * size for _, size in self.lines)])
        return [float((a + b) / 2) for a, b in zip(steps[:-1], steps[1:], strict=True)]


def text_width(text: str, size: float) -> float:
    """Return the width of a text [pt], rounded up: a renderer may round the size of letters up."""
    font = FontProperties(size=size)
    return 1.02 * text_to_path.get_text_width_height_descent(text, font, False)[0] + 1.0


def label(name: str, part: Any, turns: bool, grounded: bool = False) -> Label:
    """Return the name of a part and its main values.

    `turns`: whether the part acts on turning bodies; `grounded`: whether its support is drawn as a
    ground.
    """
    lines = values(part, turns)
    if grounded and getattr(part, "support", None) is not None:
        lines.append(f"support: {part.support}")
    return Label(((name, NAME), *((line, VALUE) for line in _wrap(lines))))


def values(part: Any, turns: bool) -> list[str]:
    """Return a part's laws, signals and numbers as text, without defaults and initial values.

    A number that is traced by `jit`, or an array of a batch, is named with its unit only.

    >>> import frictax as fx
    >>> values(fx.BearingFriction("rotor", tau_pos=fx.Coulomb(F_Coulomb=0.6), peak=1.2), turns=True)
    ['Coulomb', 'peak = 1.2']
    """
    main, others, laws = [], [], 0
    for field in dataclasses.fields(part):
        value, declaration = getattr(part, field.name, None), declaration_of(field)
        required = field.default is dataclasses.MISSING
        if isinstance(value, AbstractLaw):
            main.append(f"{field.name}: {type(value).__name__}" if laws else type(value).__name__)
            laws += 1
        elif isinstance(value, AbstractSignal):
            if not isinstance(value, Constant):
                main.append(f"{field.name}: {type(value).__name__}")
            elif required or concrete_number(value.k) != field.default:
                unit = _unit(part, _SIGNALS.get(field.name, "1"), turns)
                main.append(quantity_text(field.name, value.k, unit))
        elif (
            declaration is not None
            and declaration.ndim == 0
            and not (declaration.optional and value is None)
        ):
            text = quantity_text(field.name, value, _unit(part, declaration.unit, turns))
            if required or concrete_number(value) != field.default:
                (main if required or declaration.fit else others).append(text)
    return main or others


def quantity_text(name: str, value: Any, unit: str) -> str:
    """Return a number with its name and unit.

    >>> quantity_text("c", 500.0, "N/m")
    'c = 500 N/m'
    """
    number = concrete_number(value)
    if number is None:
        return name if unit == "1" else f"{name} [{unit}]"
    return f"{name} = {number:.5g}".replace("e+0", "e").replace("e-0", "e-") + (
        "" if unit == "1" else f" {unit}"
    )


def _unit(part: Any, unit: str, turns: bool) -> str:
    """Return the unit of a part's value. A drive for sliding and turning bodies has the unit of its
    body; a normal force remains a force.
    """
    either = is_rotational(part) is None and not isinstance(part, AbstractContact)
    return rotational_unit(unit) if turns and either else unit


def concrete_number(value: Any) -> float | None:
    """Return a single concrete number; None for a traced number or an array."""
    known = (
        isinstance(value, jax.Array | np.ndarray | np.generic | float | int)
        and not is_traced(value)
        and np.ndim(value) == 0
    )
    return float(value) if known else None


def _wrap(items: list[str]) -> list[str]:
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(item) + 2 <= _LINE:
            lines[-1] += f", {item}"
        else:
            lines.append(item)
    return lines
