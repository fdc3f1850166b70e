"""Friction as modifiers of the Modelica Standard Library's elements."""

import jax.numpy as jnp
import numpy as np

from frictax.fitting import FitResult, SteadyFriction
from frictax.fitting.problem.steady import as_steady
from frictax.laws import AbstractLaw, Stribeck, Table

_MOST = 200  # rows of a table


def sweep_modifier(found: FitResult, tolerance: float = 1e-3) -> str:
    """A fitted sweep as text that a Modelica tool accepts behind a component's class name.

    A symmetric translational Stribeck law of exponent 1 becomes `MassWithStopAndFriction`'s four
    coefficients (its breakaway factor is 1.001, so only where no peak was fitted); everything else
    a table of `SupportFriction` or `BearingFriction`, with its error in a comment. These elements
    mirror one table: of two laws, both are written, the second commented out.

    **Arguments:** `tolerance`: error of the table relative to the largest force.
    """
    friction, sweep = as_steady(found.model), found.sweep
    rotational = sweep.rotational
    v_max = float(np.max(np.abs(sweep.velocity)))
    name = " ".join(sweep.name.split())  # on one line, or it would leave the comment
    lines = [
        f"// {name}: steady friction fitted by frictax, valid to {v_max:.6g}"
        f" {'rad/s' if rotational else 'm/s'}"
    ]
    if friction.offset is not None:
        lines.append(
            f"// beside it acts a constant {'torque' if rotational else 'force'} of"
            f" {_number(friction.offset)} {sweep.force_unit.si_name}"
        )
    law = friction.f_pos
    plain = isinstance(law, Stribeck) and isinstance(law.exponent, float) and law.exponent == 1.0
    if plain and not rotational and friction.f_neg is None and float(friction.peak) == 1.0:
        assert isinstance(law, Stribeck)
        terms = ", ".join(
            f"{name}={_number(getattr(law, name))}"
            for name in ("F_prop", "F_Coulomb", "F_Stribeck", "fexp")
        )
        return "\n".join([*lines, f"MassWithStopAndFriction({terms})"])
    lines += _element(law, friction, rotational, v_max, tolerance, "")
    if friction.f_neg is not None:
        lines.append(
            "// backward motion has a law of its own, which this element cannot take; it would be"
        )
        lines += _element(friction.f_neg, friction, rotational, v_max, tolerance, "// ")
    return "\n".join(lines)


def sample(law: AbstractLaw, v_max: float, tolerance: float = 1e-3) -> tuple[np.ndarray, float]:
    """Rows [speed, force] from 0 to `v_max` between which straight lines keep to `law`, and their
    largest error.

    Intervals are halved where the error is largest until it is below `tolerance` times the largest
    force.

    >>> import frictax as fx
    >>> rows, error = sample(fx.Coulomb(F_Coulomb=5.0, F_prop=1.0), v_max=2.0)
    >>> rows.tolist(), error
    ([[0.0, 5.0], [2.0, 7.0]], 0.0)
    """
    if isinstance(law, Table):
        return law.continued(), 0.0
    breaks = np.asarray(law.breaks)
    nodes = [0.0, *breaks[(breaks > 0) & (breaks < v_max)], v_max]
    even, near_rest = np.linspace(0, v_max, 8001), np.geomspace(1e-9 * v_max, v_max, 4500)
    fine = np.unique(np.concatenate([even, near_rest, nodes]))
    f = np.asarray(law(jnp.asarray(fine)), dtype=float)
    while True:
        at = np.searchsorted(fine, nodes)
        error = np.abs(f - np.interp(fine, fine[at], f[at]))
        worst = int(np.argmax(error))
        if error[worst] <= tolerance * np.max(np.abs(f)) or len(nodes) >= _MOST:
            small = error[worst] < 1e-12 * np.max(np.abs(f))
            return np.column_stack([fine[at], f[at]]), 0.0 if small else float(error[worst])
        nodes = sorted([*nodes, float(fine[worst])])


def _element(
    law: AbstractLaw,
    friction: SteadyFriction,
    rotational: bool,
    v_max: float,
    tolerance: float,
    before: str,
) -> list[str]:
    rows, error = sample(law, v_max, tolerance)
    name, table, unit = "SupportFriction", "f_pos", "N"
    if rotational:
        name, table, unit = "BearingFriction", "tau_pos", "N.m"
    text = "; ".join(f"{_number(v)}, {_number(f)}" for v, f in rows)
    return [
        f"// table within {error:.2g} {unit} of the fitted {type(law).__name__} law",
        f"{before}{name}({table}=[{text}], peak={_number(friction.peak)})",
    ]


def _number(value: object) -> str:
    """Ten digits: far more than a fit knows, and short enough to read."""
    return repr(float(f"{float(value):.10g}"))  # type: ignore[arg-type]
