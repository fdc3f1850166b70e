"""Numbers, names, tables and laws as Modelica writes them."""

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from frictax.laws import AbstractLaw, Coulomb, Stribeck, Table, TemperatureDependent
from frictax.text import brief, printable

from .modelica import sample

_RESERVED = frozenset(
    "algorithm and annotation assert block break class connect connector constant constrainedby der"
    " discrete each else elseif elsewhen encapsulated end enumeration equation expandable extends"
    " external false final flow for function if import impure in initial inner input loop model not"
    " operator or outer output package parameter partial protected public pure record redeclare"
    " replaceable return stream then true type when while within time Modelica Real Integer Boolean"
    " String".split()
)


def number(value: Any) -> str:
    """A number that reads back as it was.

    >>> number(0.1), number(3), number(1e-9)
    ('0.1', '3.0', '1e-09')
    """
    return repr(float(value))


def identifier(name: str, taken: Any = ()) -> str:
    """`name` as Modelica takes it: ASCII, no word of the language, none of `taken`.

    >>> identifier("mass"), identifier("block"), identifier("größe")
    ('mass', 'block_', 'gr_u00f6_u00dfe')
    """
    plain = re.sub(r"[^A-Za-z0-9_]", lambda m: f"_u{ord(m[0]):04x}", name)
    while plain in _RESERVED or plain in taken:
        plain += "_"
    return plain


def plain_name(name: str) -> str:
    """The name that `identifier` was given; of any other name the name itself.

    >>> plain_name("mass"), plain_name("block_"), plain_name("gr_u00f6_u00dfe")
    ('mass', 'block', 'größe')
    """
    plain = re.sub(r"_u([0-9a-f]{4})", lambda m: chr(int(m[1], 16)), name.strip("'"))
    bare = plain.rstrip("_")
    return bare if bare in _RESERVED else plain


def model_name(name: Any, taken: Any = ()) -> str:
    """The name of a model as Modelica takes it, see `identifier`.

    **Raises:** `ValueError` for what begins with a digit, is empty, or is a word of Modelica.

    >>> model_name("Axis_2")
    'Axis_2'
    """
    if not isinstance(name, str) or not name or name[0].isdigit() or name in _RESERVED:
        raise ValueError(
            f"`name` must be an identifier of Modelica, got {brief(name)}. Begin it with a letter,"
            " and take no word of the language."
        )
    return identifier(name, taken)


def comment_lines(comment: str | Iterable[str]) -> list[str]:
    """Lines of comment at the top of a model. A line end begins another comment, so that nothing of
    a text becomes part of the model.

    >>> comment_lines("bench 3\\nend Machine;"), comment_lines(["a", "*/ b"])
    (['  // bench 3', '  // end Machine;'], ['  // a', '  // */ b'])
    """
    texts = [comment] if isinstance(comment, str) else comment
    lines = [line for text in texts for line in str(text).splitlines() or [""]]
    return [f"  // {printable(line)}".rstrip() for line in lines]


def matrix(rows: Any) -> str:
    """Rows of numbers as Modelica's matrix, some to a line.

    >>> matrix([[0, 1.5], [2, 1]])
    '[0.0, 1.5; 2.0, 1.0]'
    """
    cells = [", ".join(map(number, row)) for row in np.asarray(rows, dtype=float)]
    lines = ["; ".join(cells[k : k + 4]) for k in range(0, len(cells), 4)]
    return "[" + ";\n      ".join(lines) + "]"


def law_table(
    law: AbstractLaw, what: str, tolerance: float, v_max: float | None, unit: str
) -> tuple[np.ndarray, str]:
    """Rows [speed, value] between and beyond which straight lines keep to `law`, and what is to be
    said of them.

    `tolerance` is relative to the law at rest; of a law of the user's own, to its largest value.

    Past the last row the library goes on along the last two. Of frictax's own laws that is right at
    all speeds, since the rows reach to where a Stribeck curve has become a line; a law of the
    user's own is kept to up to `v_max`.

    **Raises:** `ValueError` for a law of the user's own without `v_max`.
    """
    if isinstance(law, TemperatureDependent):
        rows, said = law_table(law.law, what, tolerance, v_max, unit)
        return rows, f"{said}; at {number(law.T_ref)} K, T_ref; beta={number(law.beta)} 1/K is lost"
    if isinstance(law, Table):
        said = f"{what}: the table itself"
        if law.extrapolation == "error":
            said += (
                f", which ends at {number(law.v[-1])}; beyond it Modelica goes on, frictax does not"
            )
        return law.continued(), said
    if isinstance(law, Coulomb):
        f, d = float(law.F_Coulomb), float(law.F_prop)
        said = f"{what}: Coulomb, F_Coulomb={number(f)}, F_prop={number(d)}"
        return np.array([[0.0, f], [1.0, f + d]]), said
    if isinstance(law, Stribeck):
        reach, f0 = _until_a_line(law), float(law.f0)
        # By the friction at rest: what is largest in the table may be the viscous part at a speed
        # that no motion has.
        rows, error = sample(
            law, reach, tolerance * (f0 / max(f0, float(law(reach))) if f0 else 1.0)
        )
        rows = np.vstack([rows, [2 * reach, float(law(2 * reach))]])
        values = ", ".join(
            f"{n}={number(getattr(law, n))}"
            for n in ("F_prop", "F_Coulomb", "F_Stribeck", "fexp", "exponent")
        )
        return rows, f"{what}: Stribeck, {values}; table within {error:.2g} {unit}"
    if v_max is None:
        raise ValueError(
            f"`{what}` is a law of your own, {type(law).__name__}, which Modelica gets as a table"
            " up to a speed: give `v_max`, the highest of the motion [m/s or rad/s]."
        )
    rows, error = sample(law, v_max, tolerance)
    within = f"table within {error:.2g} {unit} up to a speed of {number(v_max)}"
    return rows, f"{what}: {type(law).__name__}; {within}"


def _until_a_line(law: Stribeck) -> float:
    """The speed from which on the exponential is below exp(-25)."""
    fexp = float(law.fexp)
    if fexp == 0 or float(law.F_Stribeck) == 0:
        return 1.0
    return math.exp(math.log(25.0) / float(law.exponent)) / fexp
