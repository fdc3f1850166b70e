"""Write numbers, names, tables and friction laws as Modelica text."""

import math
import re
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frictax.laws import AbstractLaw, Coulomb, Stribeck, Table, TemperatureDependent
from frictax.text import brief, printable

_RESERVED = frozenset(
    "algorithm and annotation assert block break class connect connector constant constrainedby der"
    " discrete each else elseif elsewhen encapsulated end enumeration equation expandable extends"
    " external false final flow for function if import impure in initial inner input loop model not"
    " operator or outer output package parameter partial protected public pure record redeclare"
    " replaceable return stream then true type when while within time Modelica Real Integer Boolean"
    " String".split()
)


def number(value: Any) -> str:
    """Return a number as the shortest text from which the same number can be read.

    >>> number(0.1), number(3), number(1e-9)
    ('0.1', '3.0', '1e-09')
    """
    return repr(float(value))


def identifier(name: str, taken: Any = ()) -> str:
    """Return `name` as an ASCII identifier that is not a word of Modelica and not in `taken`.

    >>> identifier("mass"), identifier("block"), identifier("größe")
    ('mass', 'block_', 'gr_u00f6_u00dfe')
    """
    plain = re.sub(r"[^A-Za-z0-9_]", lambda m: f"_u{ord(m[0]):04x}", name)
    while plain in _RESERVED or plain in taken:
        plain += "_"
    return plain


def plain_name(name: str) -> str:
    """Return the original of a name that `identifier` made; return other names unchanged.

    >>> plain_name("mass"), plain_name("block_"), plain_name("gr_u00f6_u00dfe")
    ('mass', 'block', 'größe')
    """
    plain = re.sub(r"_u([0-9a-f]{4})", lambda m: chr(int(m[1], 16)), name.strip("'"))
    bare = plain.rstrip("_")
    return bare if bare in _RESERVED else plain


def model_name(name: Any, taken: Any = ()) -> str:
    """Return the name of a model as an identifier that is not in `taken`.

    **Raises:** `ValueError` for a name that is empty, begins with a digit, or is a word of
    Modelica.

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
    """Return the lines of a comment at the top of a model. Each line begins with `//`, so that no
    text becomes code.

    >>> comment_lines("bench 3\\nend Machine;"), comment_lines(["a", "*/ b"])
    (['  // bench 3', '  // end Machine;'], ['  // a', '  // */ b'])
    """
    texts = [comment] if isinstance(comment, str) else comment
    lines = [line for text in texts for line in str(text).splitlines() or [""]]
    return [f"  // {printable(line)}".rstrip() for line in lines]


def matrix(rows: Any) -> str:
    """Return rows of numbers as a Modelica matrix, with four rows in each line of text.

    >>> matrix([[0, 1.5], [2, 1]])
    '[0.0, 1.5; 2.0, 1.0]'
    """
    cells = [", ".join(map(number, row)) for row in np.asarray(rows, dtype=float)]
    lines = ["; ".join(cells[k : k + 4]) for k in range(0, len(cells), 4)]
    return "[" + ";\n      ".join(lines) + "]"


def sample(law: AbstractLaw, v_max: float, tolerance: float = 1e-3) -> tuple[np.ndarray, float]:
    """Return rows [speed, force] of a law from 0 to `v_max`, and the largest interpolation error.

    Rows are added at the speed of the largest error until the error is below `tolerance` times the
    largest force, or there are 200 rows.

    >>> import frictax as fx
    >>> rows, error = sample(fx.Coulomb(F_Coulomb=5.0, F_prop=1.0), v_max=2.0)
    >>> rows.tolist(), error
    ([[0.0, 5.0], [2.0, 7.0]], 0.0)
    """
    if isinstance(law, Table):
        return law.extended_rows(), 0.0
    breaks = np.asarray(law.breaks)
    nodes = [0.0, *breaks[(breaks > 0) & (breaks < v_max)], v_max]
    even, near_rest = np.linspace(0, v_max, 8001), np.geomspace(1e-9 * v_max, v_max, 4500)
    fine = np.unique(np.concatenate([even, near_rest, nodes]))
    f = np.asarray(law(jnp.asarray(fine)), dtype=float)
    while True:
        at = np.searchsorted(fine, nodes)
        error = np.abs(f - np.interp(fine, fine[at], f[at]))
        worst = int(np.argmax(error))
        most_rows = 200  # A law that needs more rows has a jump, which no table can represent.
        if error[worst] <= tolerance * np.max(np.abs(f)) or len(nodes) >= most_rows:
            small = error[worst] < 1e-12 * np.max(np.abs(f))
            return np.column_stack([fine[at], f[at]]), 0.0 if small else float(error[worst])
        nodes = sorted([*nodes, float(fine[worst])])


def needs_speed(machine: Any) -> bool:
    """Return whether the function `law_table` needs the argument `v_max` for the machine."""

    def is_law(x: Any) -> bool:
        return isinstance(x, AbstractLaw) and not isinstance(x, TemperatureDependent)

    laws = filter(is_law, jax.tree.leaves(machine, is_leaf=is_law))
    return any(not isinstance(law, Table | Coulomb | Stribeck) for law in laws)


def law_table(
    law: AbstractLaw, what: str, tolerance: float, v_max: float | None, unit: str
) -> tuple[np.ndarray, str]:
    """Return rows [speed, value] of a law for linear interpolation and extrapolation, and a comment
    on the law; `what`: the law's name.

    `tolerance`: allowed error, relative to the value at rest, or to a user's law's largest value.

    The Modelica library extrapolates linearly from the last two rows. For the laws of frictax the
    extrapolation is correct, because their rows end where the Stribeck curve has become a straight
    line. The table of a law written by the user is accurate up to `v_max`.

    **Raises:** `ValueError` if `v_max` is missing for a law written by the user.
    """
    if isinstance(law, TemperatureDependent):
        rows, said = law_table(law.law, what, tolerance, v_max, unit)
        return rows, f"{said}; at {number(law.T_ref)} K, T_ref; beta={number(law.beta)} 1/K is lost"
    if isinstance(law, Table):
        said = f"{what}: the table itself"
        if law.extrapolation == "error":
            said += (
                f", which ends at {number(law.v[-1])}; Modelica extrapolates it, frictax does not"
            )
        return law.extended_rows(), said
    if isinstance(law, Coulomb):
        f, d = float(law.F_Coulomb), float(law.F_prop)
        said = f"{what}: Coulomb, F_Coulomb={number(f)}, F_prop={number(d)}"
        return np.array([[0.0, f], [1.0, f + d]]), said
    if isinstance(law, Stribeck):
        fexp, f0, reach = float(law.fexp), float(law.f0), 1.0
        if fexp != 0 and float(law.F_Stribeck) != 0:
            # Above the speed `reach` the Stribeck term is below exp(-25), so the curve is straight.
            reach = math.exp(math.log(25.0) / float(law.exponent)) / fexp
        # The tolerance is relative to the friction at rest, because the largest value of the table
        # may be viscous friction at a speed that the motion never reaches.
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
            f"`{what}` is a {type(law).__name__} law, which Modelica gets as a table. Give `v_max`,"
            " the highest speed of the motion [m/s or rad/s]."
        )
    rows, error = sample(law, v_max, tolerance)
    within = f"table within {error:.2g} {unit} up to a speed of {number(v_max)}"
    return rows, f"{what}: {type(law).__name__}; {within}"
