"""Write the HTML page of a simulation that repeats when a slider changes a parameter."""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frictax.engine import OnSamples, Result
from frictax.export.code.lowering import CannotBeWritten
from frictax.export.code.machine import default_outputs
from frictax.fitting.problem.setup import Named, Setup, perfect, variable_unit
from frictax.fitting.result.units import unit_of
from frictax.parameters import Parameter, is_traced, replace, select
from frictax.signals import Sampled
from frictax.text import format_alike, prefix_unit
from frictax.trajectory import Trajectory

from .mechanism_figure import draw_mechanism
from .page import Section, page, pictures, write_page
from .plotly_json import escape_name, extreme_rows, plot_panels
from .simulation import check_steps, packed_numbers, simulation_script
from .simulation_code import Channels, SimulationCode
from .sliders import Sliders
from .style import FAINT, FORWARD, Curve, Panel


def write_what_if(
    run: Trajectory,
    path: str | Path,
    *,
    free: str | Iterable[str] | None = None,
    title: str | None = None,
    overwrite: bool = True,
) -> Path:
    """Write one self-contained HTML file with sliders. When a slider moves, the page simulates the
    machine again.

    The page draws the states and the friction of each contact, and the given simulation in grey.
    The page simulates from sample to sample, as `OnSamples()` does. Before a slider moves, the page
    states the difference between its simulation and the given one.

    **Arguments:**

    - `path`, `title` of the page; `overwrite`: whether an existing report may be replaced.
    - `free`: paths of the parameters with a slider, as in `fx.fit`. The default is all parameters
      that a fit may estimate, including parameters of the drives. A slider goes from 0 to twice the
      value of its parameter.

    **Returns:** the path of the page.

    **Raises:** `ValueError` for a batch, for a simulation in 32 bits, and for a simulation that
    stopped early or is inaccurate; `ValueError` if the code is too long for a page; `KeyError` for
    a path that the machine does not have; `OSError` with one sentence if the page cannot be
    written.

    >>> import frictax as fx, numpy as np, tempfile
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0)),
    ...     drive=fx.Force("mass", fx.Sine(amplitude=3.0, f=0.5)),
    ... )
    >>> run = fx.simulate(block, np.linspace(0.0, 4.0, 401))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = run.page(f"{folder}/what_if.html", free=["mass.m", "drive.f.amplitude"])
    ...     "simulates" in page.read_text(encoding="utf-8")
    True
    """
    if any(map(is_traced, jax.tree.leaves(run.path))) or np.ndim(run.path.ys) != 2:
        raise ValueError(
            f"`page` needs one run, got a batch of shape {np.shape(run.path.ys)[:-2]} or a run that"
            " JAX traces. Take one of a batch: jax.tree.map(lambda x: x[0], runs)."
        )
    if run.path.ys.dtype != np.float64:
        raise ValueError(
            "`page` needs a run in 64 bits, got one in 32 bits. Switch on 64 bits before the run:"
            ' `jax.config.update("jax_enable_x64", True)`.'
        )
    if not bool(run.result == Result.successful):
        raise ValueError(
            f"`page` needs a run that is complete and accurate, got this one: {Result[run.result]}"
        )
    return write_page(path, lambda: what_if_text(run, free, title), overwrite=overwrite)


def samples_with_drives(ts: np.ndarray, drives: Iterable[Sampled]) -> np.ndarray:
    """Return the sorted times of a simulation and of the samples of its drive signals. Time steps
    end at these times. Times that differ only by rounding are merged.
    """
    rounding, grid = 1e-9 * (ts[-1] - ts[0]), ts
    for signal in drives:
        times = np.asarray(signal.times)
        times = times[(times > ts[0]) & (times < ts[-1])]
        nearest = grid[np.minimum(np.searchsorted(grid, times - rounding), grid.size - 1)]
        grid = np.union1d(grid, times[np.abs(nearest - times) > rounding])
    return grid


def what_if_text(
    run: Trajectory, free: str | Iterable[str] | None = None, title: str | None = None
) -> str:
    """Return the HTML text of the page that `write_what_if` writes."""
    machine = run.system.mechanism
    chosen = [p for p in select(machine, free) if "Sampled" not in p.owner]
    if not chosen:
        raise ValueError("`page` needs a parameter for a slider. Name parameters in `free`.")
    drives = {
        f"{name}.{field}": signal
        for name, part in machine.named_parts()
        for field, signal in vars(part).items()
        if isinstance(signal, Sampled)
    }
    ts, outputs = np.asarray(run.ts), default_outputs(machine)
    grid = samples_with_drives(ts, list(drives.values()))
    own = np.searchsorted(grid, ts)  # index of each sample of the simulation in `grid`
    seen = np.full((len(outputs), grid.size), np.nan)
    for row, name in zip(seen, outputs, strict=True):
        part, _, variable = name.rpartition(".")
        row[own] = np.asarray(getattr(run[part], variable))
    start = np.concatenate([np.ravel(p.value) for p in chosen]).astype(float)
    setup = Setup(
        machine, *(Named.from_dict(dict.fromkeys(x, perfect())) for x in (drives, outputs))
    )
    ends = np.cumsum([0, *(np.size(p.value) for p in chosen)])

    def setup_at(x: Any) -> Setup:
        parts = [x[a:b] for a, b in itertools.pairwise(ends)]
        moved = zip(chosen, parts, strict=True)
        return replace(setup, {p.path: part.reshape(np.shape(p.value)) for p, part in moved})

    held = {name: signal.hold for name, signal in drives.items()}
    try:
        code = SimulationCode(setup_at, start, Channels(held, tuple(outputs)), OnSamples())
        check_steps(code)
        record = {
            "code": 0,
            "x": list(range(start.size)),
            "t": packed_numbers(grid),
            "inputs": [packed_numbers(signal(jnp.asarray(grid))) for signal in drives.values()],
            "measured": [packed_numbers(row) for row in seen],
            "known": [],
            "windows": [0],
            "size": grid.size,
            "steps": {},
            "substeps": 1,
        }
        script = simulation_script([code.javascript()], [record])
    except CannotBeWritten as reason:
        raise ValueError(f"A page cannot simulate this machine: {reason}") from None
    moves, changes, panels = list[dict[str, Any]](), list[dict[str, Any]](), list[Panel]()
    # Draw only the lowest and the highest sample of each curve in each of 400 bins.
    shown = np.union1d([0, ts.size - 1], extreme_rows(seen[:, own], 400))
    absent = np.flatnonzero(np.isnan(seen[0])).tolist() if outputs else []
    for c, (name, y) in enumerate(zip(outputs, seen[:, own], strict=True)):
        unit, size = prefix_unit(variable_unit(machine, name), y)
        curves = [
            Curve(ts[shown], y[shown] / size, FAINT, "this run", 3.0),
            Curve(ts[shown], y[shown] / size, FORWARD, "simulated again", 1.4),
        ]
        panels.append(Panel(f"{escape_name(name)} [{unit}]", curves, layout={"nticks": 6}))
        place = {"record": 0, "column": c}
        moves.append(
            {**place, "plot": "run", "rows": own[shown].tolist(), "curves": [[2 * c + 1, size]]}
        )
        says = {"says": name, "word": "rms difference from this run", "unit": unit, "size": size}
        changes.append({**place, **says, "n": ts.size, "squares": 0.0, "absent": absent})
    rows, sliders = _rows(chosen, unit_of({}, machine))
    data: dict[str, Any] = {"steps": Sliders.steps, "sliders": sliders, "moves": moves}
    data |= {"rms": changes, "x": start.tolist()}
    lead = (
        "Each slider changes one parameter. Then this page simulates the machine again, with error"
        " control and all events. Grey: the run from which this page was written. The screen shows"
        " a part of the samples; each rms uses all samples. Before a slider moves, the rms is the"
        " difference between two integration methods."
    )
    figure = plot_panels(panels, "time [s]", 190 * len(panels) + 90)
    moving = Sliders(
        {"run": figure},
        [("run", "")],
        rows,
        data,
        still=[],
        lead=lead,
        script=script,
        group="Parameters of the machine and its drives",
        found="from",
        back="Back to this run",
    )
    sections = [
        Section("run", "Simulation with sliders", moving.blocks()),
        Section("machine", "Machine", [("schematic", pictures(draw_mechanism(machine))["wide"])]),
    ]
    text = (
        f"{ts.size} samples from {ts[0]:g} to {ts[-1]:g} s of a machine with"
        f" {', '.join(run.names)}."
    )
    plots = moving.figures
    return page(title or "What if", text, sections, notes=[], plots=plots, moving=moving)


def _rows(
    chosen: Sequence[Parameter], unit_for: Any
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a dict for each slider: texts on the page, and numbers for the script."""
    rows, sliders = list[dict[str, Any]](), list[dict[str, Any]]()
    for p in chosen:
        domain, unit = p.declaration.domain, unit_for(p)
        unit = "" if unit == "1" else unit
        for i, value in np.ndenumerate(np.asarray(p.value).astype(object)):
            name = p.path + (f"[{', '.join(map(str, i))}]" if i else "")
            size, low, high = abs(value) or 1.0, domain.bound(), domain.upper()
            # A slider ends before a bound, because many machines cannot be simulated at a bound.
            lower = max(-size, 0.98 * (low - value))
            upper = min(size, 0.98 * (high - value))
            step = max(-lower, upper) / Sliders.steps
            limits = {k: end for k, end in (("low", low), ("high", high)) if np.isfinite(end)}
            sliders.append({"value": value, "step": step, "x": len(sliders), "size": 1.0, **limits})
            ends = format_alike([value + lower, value + upper], size / 20)
            rows.append(
                {
                    "name": name,
                    "unit": unit,
                    "least": round(lower / step),
                    "most": round(upper / step),
                    "found": f"{value:.6g} {unit}".rstrip(),
                    "error": 0.0,
                    "holds": f"{ends[0]} to {ends[1]} {unit}".rstrip(),
                    "doubtful": False,
                }
            )
    return rows, sliders
