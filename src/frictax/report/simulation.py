"""Write the JavaScript with which a page simulates records: functions and data."""

import base64
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from frictax.engine import OnSamples
from frictax.export.code.lowering import CannotBeWritten
from frictax.fitting.problem.objectives import PreparedRecord
from frictax.fitting.problem.problem import Problem
from frictax.fitting.problem.readings import seen_in
from frictax.fitting.problem.simulations import ClosedLoop, FreeRun, Windows
from frictax.mechanism import MechanicalSystem
from frictax.mechanism.bristle_steps import is_motion_given

from .cards import template
from .plotly_json import as_json
from .simulation_code import Channels, SimulationCode

# Part of a page -> largest number of characters in this part. Longer code starts too slowly in a
# browser. Longer measurements make a page larger than 5 MB.
LONGEST = {"the code of the machine": 120_000, "the measurements": 2_000_000}


def simulation_script(codes: Sequence[str], records: Sequence[dict[str, Any]]) -> str:
    """Return the script that defines the JavaScript object `simulation`.

    **Raises:** `CannotBeWritten` if the code or the data are too long for a page.
    """
    data = as_json({"records": records})
    for (what, limit), text in zip(LONGEST.items(), ("".join(codes), data), strict=True):
        if len(text) > limit:
            kilobytes = f"{len(text) / 1000:.0f} kB, and at most {limit / 1000:.0f} kB are allowed"
            raise CannotBeWritten(f"{what} would need {kilobytes}")
    return template("simulate.js").render(codes=",".join(codes), data=data)


def packed_numbers(values: Any) -> str:
    """Return 64-bit real numbers as base64 text for the function `decode` in simulate.js."""
    return base64.b64encode(np.ascontiguousarray(values, "<f8").tobytes()).decode("ascii")


def simulate_records(problem: Problem, found: np.ndarray) -> str:
    """Return the script that simulates each record of a problem, as the objective of the fit does.
    `found` (p,): all unknowns. Sliders change all unknowns except initial states of windows.

    **Raises:** `CannotBeWritten` with the reason if a page cannot simulate these records.
    """
    engine = problem.engine
    objective = type(problem.objective).__name__
    if not isinstance(problem.objective, FreeRun | ClosedLoop | Windows):
        raise CannotBeWritten(f"`{objective}` does not simulate records sample by sample")
    if not isinstance(engine, OnSamples) or engine.solver is not None:
        raise CannotBeWritten("the fit used a solver of diffrax")
    engine = dataclasses.replace(engine, tolerance=engine.tolerance and float(engine.tolerance))
    codes, records, kinds = list[str](), list[dict[str, Any]](), dict[str, int]()
    for i, prepared in enumerate(problem.prepared):
        if not isinstance(prepared, PreparedRecord):
            raise CannotBeWritten("a sweep is fitted together with the records")
        if prepared.floating:
            raise CannotBeWritten("an offset is fitted to outputs of ticks in each simulation")
        if prepared.goes_on is not None and np.any(prepared.goes_on):
            raise CannotBeWritten("windows begin at the end of the window before")
        channels = Channels(
            dict.fromkeys(prepared.inputs, prepared.hold),
            prepared.names,
            tuple(prepared.start),
            problem.objective.fits_starts(),
            problem.delayed,
        )
        mine = [u for u in problem.unknowns if u.record in (None, i) and not u.hidden]
        places = [k for u in mine for k in range(u.first, u.first + u.size)]
        # Records with the same channels and the same parameters use the same functions.
        key = repr((channels, [u.path for u in mine]))
        if key not in kinds:
            kinds[key] = len(codes)
            ends = np.cumsum([0, *(u.size for u in mine)])
            own = [
                dataclasses.replace(u, record=None, first=int(first))
                for u, first in zip(mine, ends, strict=False)
            ]
            alone = dataclasses.replace(problem, unknowns=tuple(own))
            code = SimulationCode(
                lambda x, alone=alone: alone.setup_at(x, None), found[places], channels, engine
            )
            check_steps(code)
            codes.append(code.javascript())
        record = {"code": kinds[key], "x": places, "substeps": engine.substeps}
        record["steps"] = {k: parts * engine.substeps for k, parts in prepared.finer}
        records.append(record | numbers_of_record(problem, i, found))
    return simulation_script(codes, records)


def numbers_of_record(problem: Problem, i: int, x: np.ndarray) -> dict[str, Any]:
    """Return the times, inputs, measurements and initial values of record i."""
    prepared = problem.prepared[i]
    assert isinstance(prepared, PreparedRecord)
    hidden = {u.path.removeprefix("windows."): u for u in problem.unknowns if u.record == i}
    rows = np.arange(prepared.t.size)[None] if prepared.rows is None else prepared.rows
    known = list[Any]()
    for name in prepared.start:
        of = f"outputs.{seen_in(name, prepared.names)[0]}"
        if problem.objective.fits_starts():
            u = hidden.get(name)
            known.append(prepared.start[name] if u is None else x[u.place])
        else:
            values = np.asarray(prepared.known[name])
            known.append(values if of in problem.delayed else values[rows[:, 0]])
    measured = np.asarray(prepared.measured)
    columns = range(measured.shape[-1])
    return {
        "t": packed_numbers(prepared.t),
        "inputs": [packed_numbers(values) for values in prepared.inputs.values()],
        "measured": [packed_numbers(np.ravel(measured[..., c])) for c in columns],
        "known": [packed_numbers(values) for values in known],
        "windows": np.asarray(rows)[:, 0].tolist(),
        "size": int(np.shape(rows)[1]),
    }


def check_steps(code: SimulationCode) -> None:
    """Raise `CannotBeWritten` if all motions are given, so that nothing is simulated."""
    system = code.machine()
    if isinstance(system, MechanicalSystem) and is_motion_given(system.mechanism, system.layout):
        raise CannotBeWritten("the motion of all its bodies is given")
