"""A fit as Python that makes it again."""

import textwrap
from typing import Any

import numpy as np

from frictax.fitting import FitResult, Squares
from frictax.fitting.problem.steady import as_steady
from frictax.laws import AbstractLaw, Coulomb, Stribeck, Table
from frictax.measurements import Sweep
from frictax.parameters import parameters

MOST_ROWS = 200  # of data in a text that people read


def python_text(found: FitResult) -> str:
    """The sweep's rows, the fitted model and, where all of a usual law was fitted from the data's
    own start, the call that fits it.

    Run from top to bottom it defines `sweep`, `model` and perhaps `found`. Numbers are SI and have
    all their digits.
    """
    lines = [
        "import jax",
        "import frictax as fx",
        "",
        'jax.config.update("jax_enable_x64", True)',
        "",
        *_sweep(found.sweep),
        "",
        f"model = {_model(found)}",
    ]
    return "\n".join([*lines, *_call(found)])


def _sweep(sweep: Sweep) -> list[str]:
    if sweep.n > MOST_ROWS:
        return [
            f"# sweep = fx.Sweep.from_csv(...): the {sweep.n} rows of {sweep.name!r}, too many to"
            " print"
        ]
    lines = ["sweep = fx.Sweep(", *_row("velocity", sweep.velocity), *_row("force", sweep.force)]
    if sweep.sigma is not None:
        lines += [*_row("sigma", sweep.sigma), f"    sigma_known={sweep.sigma_known},"]
    if sweep.breakaway.any():
        lines += _row("breakaway", sweep.breakaway)
    lines.append(
        f'    velocity_unit="{sweep.velocity_unit.si_name}",'
        f' force_unit="{sweep.force_unit.si_name}", name={sweep.name!r},'
    )
    return [*lines, ")"]


def _row(name: str, values: np.ndarray) -> list[str]:
    text = f"{name}={values.tolist()!r},"
    return textwrap.wrap(text, 120, initial_indent="    ", subsequent_indent="        ")


def _model(found: FitResult) -> str:
    steady = as_steady(found.model)
    if steady is not found.model:
        return _law(steady.f_pos)
    f_neg = "" if steady.f_neg is None else f", f_neg={_law(steady.f_neg)}"
    offset = "" if steady.offset is None else f", offset={float(steady.offset)!r}"
    return f"fx.SteadyFriction({_law(steady.f_pos)}{f_neg}, peak={float(steady.peak)!r}{offset})"


def _law(law: AbstractLaw) -> str:
    if isinstance(law, Table):
        how = "" if law.extrapolation == "linear" else f", extrapolation={law.extrapolation!r}"
        return f"fx.Table({np.column_stack([law.v, law.f]).tolist()!r}{how})"
    values = [f"{p.path}={float(p.value)!r}" for p in parameters(law)]
    if isinstance(law, Stribeck):
        values.append(f"exponent={float(law.exponent)!r}")
    room = "fx." if isinstance(law, Coulomb | Stribeck) else ""
    return f"{room}{type(law).__name__}({', '.join(values)})"


def _call(found: FitResult) -> list[str]:
    """The fit from the data's own start: only where nothing but the law's form was the user's."""
    steady, sweep = as_steady(found.model), found.sweep
    held = {e.path.rpartition(".")[2] for e in found.fixed} - {"peak", "v"}
    laws = [steady.f_pos, *([steady.f_neg] if steady.f_neg is not None else [])]
    if (
        held
        or found.problem.ties
        or any(not isinstance(law, Coulomb | Stribeck | Table) for law in laws)
        or (steady.f_neg is not None and not sweep.both_directions)
    ):
        return []
    each = steady.f_neg is not None
    arguments: list[Any] = [_start(steady.f_pos, "sweep.positive()" if each else "sweep"), "sweep"]
    if steady.f_neg is not None:
        arguments.append(f"f_neg={_start(steady.f_neg, 'sweep.negative()')}")
    if steady.offset is not None:
        arguments.append("offset=0.0")
    if not isinstance(found.loss, Squares):
        arguments.append(f"loss=fx.{found.loss!r}")
    if found.level != 0.95:
        arguments.append(f"level={found.level!r}")
    return [f"found = fx.fit({', '.join(arguments)})", "print(found)"]


def _start(law: AbstractLaw, rows: str) -> str:
    nodes = f", nodes={law.v.tolist()}" if isinstance(law, Table) else ""
    more = f", exponent={float(law.exponent)!r}" if isinstance(law, Stribeck) else nodes
    return f"fx.starting_law(fx.{type(law).__name__}, {rows}{more})"
