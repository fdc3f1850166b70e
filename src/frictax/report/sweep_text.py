"""Texts on a fitted sweep: its data, law and quality, and Python code that repeats the fit."""

import textwrap

import numpy as np

from frictax.fitting import FitResult, Squares
from frictax.fitting.problem.steady import as_steady
from frictax.laws import LAWS, LAWS_WITH_START, AbstractLaw, Table
from frictax.measurements import Sweep
from frictax.measurements.units import Unit
from frictax.parameters import parameters
from frictax.text import figures

MOST_ROWS = 200  # largest number of rows of a sweep that a text lists


def meaning_of(path: str) -> str:
    """Return a parameter's meaning in words, and the direction if its law is for one direction."""
    meaning = {
        "peak": "breakaway over sliding friction at rest",
        "offset": "constant force of the rig, such as a payload's weight",
    }
    for law in LAWS:
        meaning |= law.meanings
    branch, _, name = path.rpartition(".")
    text = meaning.get(name, "")
    way = {"f_pos": "forward", "f_neg": "backward"}.get(branch, "")
    return f"{way}: {text}" if way and text else way or text


def formulas(found: FitResult) -> list[str]:
    """Return a line with the formula of each fitted law."""
    steady = as_steady(found.model)
    if steady.f_neg is None:
        both = found.sweep.both_directions
        return [steady.f_pos.formula + (", the same law mirrored for v < 0" if both else "")]
    return [
        f"v > 0: {steady.f_pos.formula}",
        f"v < 0: {steady.f_neg.formula}, with v for the speed",
    ]


def describe_sweep(sweep: Sweep, force: Unit) -> list[tuple[str, str]]:
    """Return pairs (word, text) that describe a sweep; `force`: the unit for forces."""
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
        out.append(("of these", f"{int(sweep.breakaway.sum())} with the breakaway force"))
    speeds, unit = sweep.velocity[~sweep.breakaway], sweep.velocity_unit
    out.append(("velocity", _range(speeds / unit.si, unit.name)))
    what = "torque" if sweep.rotational else "force"
    reach = _range(sweep.force / force.si, force.name)
    out.append((what, f"{reach}; positive where it opposes positive velocity"))
    if sweep.sigma is None:
        weight = "all rows have the same weight; the noise is estimated from the residuals"
    elif sweep.sigma_known:
        weight = "each row has a known standard deviation"
    else:
        weight = (
            "each row has a sigma that sets its relative weight; the noise is estimated from the"
            " residuals"
        )
    return [*out, ("weights", weight)]


def directions_of(sweep: Sweep) -> str:
    if sweep.both_directions:
        return "both directions"
    return "forward, v > 0" if sweep.direction[0] > 0 else "backward, v < 0"


def describe_quality(found: FitResult) -> str:
    """Return sentences on misfit, noise, degrees of freedom, AICc, BIC and method of a fit."""
    force = found.shown_force
    misfit, size = (figures(x / force.si, 3) for x in (found.rms_force, found.noise_scale))
    noise = f"the noise {size} {force.name}"
    if found.sweep.sigma_known:
        noise = "the noise is known"
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


def python_text(found: FitResult) -> str:
    """Return Python code that defines the `sweep` in SI units and the fitted `model`. The code also
    repeats the fit, unless the fit has further options (see `_has_further_options`).
    """
    sweep, steady = found.sweep, as_steady(found.model)
    if sweep.n > MOST_ROWS:
        code = [
            f"# sweep = fx.Sweep.from_csv(...): the {sweep.n} rows of {sweep.name!r}, too many to"
            " print"
        ]
    else:
        code = ["sweep = fx.Sweep(", *_row("velocity", sweep.velocity), *_row("force", sweep.force)]
        if sweep.sigma is not None:
            code += [*_row("sigma", sweep.sigma), f"    sigma_known={sweep.sigma_known},"]
        if sweep.breakaway.any():
            code += _row("breakaway", sweep.breakaway)
        units = (
            f'    velocity_unit="{sweep.velocity_unit.si_name}",'
            f' force_unit="{sweep.force_unit.si_name}", name={sweep.name!r},'
        )
        code += [units, ")"]
    model = _law_code(steady.f_pos)
    if steady is found.model:
        f_neg = "" if steady.f_neg is None else f", f_neg={_law_code(steady.f_neg)}"
        offset = "" if steady.offset is None else f", offset={float(steady.offset)!r}"
        model = f"fx.SteadyFriction({model}{f_neg}, peak={float(steady.peak)!r}{offset})"
    call = ["# The fit has options or a law that this code does not repeat."]
    if not _has_further_options(found):
        data = "sweep" if steady.f_neg is None else "sweep.positive()"
        arguments = [_start(steady.f_pos, data), "sweep"]
        if steady.f_neg is not None:
            arguments.append(f"f_neg={_start(steady.f_neg, 'sweep.negative()')}")
        if steady.offset is not None:
            arguments.append("offset=0.0")
        if not isinstance(found.loss, Squares):
            arguments.append(f"loss=fx.{found.loss!r}")
        if found.level != 0.95:
            arguments.append(f"level={found.level!r}")
        call = [f"found = fx.fit({', '.join(arguments)})", "print(found)"]
    head = ["import jax", "import frictax as fx", "", 'jax.config.update("jax_enable_x64", True)']
    return "\n".join([*head, "", *code, "", f"model = {model}", *call])


def _has_further_options(found: FitResult) -> bool:
    """Return True if the fit has a law of a user's class, or options that `python_text` does not
    write: ties, priors, bounds, logarithmic scales, fixed parameters, or `f_neg` for one direction.
    """
    sweep, steady, problem = found.sweep, as_steady(found.model), found.problem
    laws = [steady.f_pos, *([steady.f_neg] if steady.f_neg is not None else [])]
    # The speeds `v` of a table are never fitted, and `peak` only to breakaway rows.
    usual = {"v"} if sweep.breakaway.any() else {"peak", "v"}
    # Bounds and logarithmic scales replace the declaration of a parameter.
    given = {p.path: p.declaration for p in parameters(found.model)}
    return (
        any(e.path.rpartition(".")[2] not in usual for e in found.fixed)
        or bool(problem.ties or problem.priors)
        or any(u.declaration != given.get(u.path) for u in problem.unknowns)
        or any(type(law) not in LAWS_WITH_START for law in laws)
        or (steady.f_neg is not None and not sweep.both_directions)
    )


def _row(name: str, values: np.ndarray) -> list[str]:
    text = f"{name}={values.tolist()!r},"
    return textwrap.wrap(text, 120, initial_indent="    ", subsequent_indent="        ")


def _law_code(law: AbstractLaw) -> str:
    if isinstance(law, Table):
        how = "" if law.extrapolation == "linear" else f", extrapolation={law.extrapolation!r}"
        return f"fx.Table({np.column_stack([law.v, law.f]).tolist()!r}{how})"
    values = [f"{p.path}={float(p.value)!r}" for p in parameters(law)]
    values += [f"{name}={x!r}" for name, x in law.form.items()]
    room = "fx." if type(law) in LAWS else ""
    return f"{room}{type(law).__name__}({', '.join(values)})"


def _start(law: AbstractLaw, rows: str) -> str:
    form = "".join(f", {name}={np.asarray(x).tolist()!r}" for name, x in law.form.items())
    return f"fx.starting_law(fx.{type(law).__name__}, {rows}{form})"
