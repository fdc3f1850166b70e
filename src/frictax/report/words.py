"""What the report says in words."""

from collections.abc import Mapping

import numpy as np

from frictax.fitting import FitResult, Squares
from frictax.fitting.problem.steady import as_steady
from frictax.laws import AbstractLaw, Coulomb, Stribeck, Table
from frictax.measurements import Sweep
from frictax.measurements.units import Unit
from frictax.text import figures

MEANING: Mapping[str, str] = {
    "F_prop": "viscous part: what each unit of speed adds",
    "F_Coulomb": "dry part, at any speed",
    "F_Stribeck": "what friction at rest has beyond that, lost by moving",
    "fexp": "inverse of the speed at which it is lost",
    "peak": "breakaway over sliding friction at rest",
    "offset": "constant force of the rig, such as a payload's weight",
    "f": "friction at a node of the table",
}


def meaning(path: str) -> str:
    """A parameter in a few words, with its direction where each has its own law."""
    branch, _, name = path.rpartition(".")
    text = MEANING.get(name, "")
    way = {"f_pos": "forward", "f_neg": "backward"}.get(branch, "")
    return f"{way}: {text}" if way and text else way or text


def formula(law: AbstractLaw) -> str:
    """The law's formula over speed v >= 0."""
    if isinstance(law, Coulomb):
        return "f(v) = F_Coulomb + F_prop·v"
    if isinstance(law, Stribeck):
        exponent = float(law.exponent)
        power = "fexp·v" if exponent == 1.0 else f"(fexp·v)^{exponent:g}"
        return f"f(v) = F_Coulomb + F_prop·v + F_Stribeck·exp(−{power})"
    if isinstance(law, Table):
        return f"f(v): straight lines through {law.v.size} points"
    return f"f(v) of the law {type(law).__name__}"


def formulas(found: FitResult) -> list[str]:
    """The fitted laws, one line each."""
    steady = as_steady(found.model)
    if steady.f_neg is None:
        both = found.sweep.both_directions
        return [formula(steady.f_pos) + (", the same law mirrored for v < 0" if both else "")]
    return [
        f"v > 0: {formula(steady.f_pos)}",
        f"v < 0: {formula(steady.f_neg)}, with v for the speed",
    ]


def measured(sweep: Sweep, force: Unit) -> list[tuple[str, str]]:
    """What was measured, as pairs of a word and what it is; forces in the unit `force`."""
    ways = [
        (int(np.sum(sweep.direction == way)), text)
        for way, text in ((1, "forward"), (-1, "backward"))
    ]
    rows = f"{sweep.n} ({' and '.join(f'{count} {text}' for count, text in ways if count)})"
    out = [("name", sweep.name)]
    if sweep.citation:
        out.append(("source", sweep.citation))
    out.append(("rows", rows))
    if sweep.breakaway.any():
        out.append(
            ("of these", f"{int(sweep.breakaway.sum())} with the force at which motion began")
        )
    speeds, unit = sweep.velocity[~sweep.breakaway], sweep.velocity_unit
    out.append(("velocity", _range(speeds / unit.si, unit.name)))
    what = "torque" if sweep.rotational else "force"
    reach = _range(sweep.force / force.si, force.name)
    out.append((what, f"{reach}; positive where it opposes positive velocity"))
    if sweep.sigma is None:
        weight = "all rows count alike; the noise is estimated from the misfit"
    elif sweep.sigma_known:
        weight = "each row has a standard deviation that is taken as known"
    else:
        weight = (
            "each row has a sigma that sets its relative weight; the noise is estimated from the"
            " misfit"
        )
    return [*out, ("weights", weight)]


def way(sweep: Sweep) -> str:
    """Which directions the rows have."""
    if sweep.both_directions:
        return "both directions"
    return "forward, v > 0" if sweep.direction[0] > 0 else "backward, v < 0"


def quality(found: FitResult) -> str:
    """How well the law fits, in one sentence."""
    force = found.shown_force
    misfit, size = (figures(x / force.si, 3) for x in (found.rms_force, found.noise_scale))
    noise = f"the noise {size} {force.name}"
    if found.sweep.sigma_known:
        noise = "the noise is as given"
    elif found.sweep.sigma is not None:
        noise = f"the noise {found.noise_scale:.3g} times sigma"
    squares = isinstance(found.loss, Squares)
    loss = "least squares" if squares else f"the loss {type(found.loss).__name__}"
    end = "" if found.converged else " It did not converge."
    return (
        f"The misfit is {misfit} {force.name} (root mean square), {noise},"
        f" with {found.n} rows and {found.dof} degrees of freedom; AICc {found.aicc:.1f}, BIC"
        f" {found.bic:.1f}. Fitted by {type(found.method).__name__} with {loss}.{end}"
    )


def _range(values: np.ndarray, unit: str) -> str:
    return f"{np.min(values):.4g} to {np.max(values):.4g} {unit}"
