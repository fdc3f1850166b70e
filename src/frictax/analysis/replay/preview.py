"""A machine under the inputs of a record as it stands: a look before any fit."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from frictax.engine import OnSamples
from frictax.fitting import FreeRun
from frictax.fitting.build_problem import prepare_record
from frictax.fitting.problem.setup import channel_unit, contact_names
from frictax.measurements import Record
from frictax.text import amount

from .motion import Motion, walked

_MODES = {-1: "backward", 0: "stuck", 1: "forward", 2: "free"}


@dataclasses.dataclass(frozen=True, eq=False)
class Preview:
    """A machine that is not fitted, beside a record.

    - `label`, `record`; `motion`: its run under the record's inputs.
    - `final`: output -> measured and simulated value at the end; `rms`: output -> root mean square
      of their difference; `units` [SI].
    - `events`: contact -> what happens ("stuck to forward") -> how often.
    """

    label: str
    record: Record
    motion: Motion
    final: Mapping[str, tuple[float, float]]
    rms: Mapping[str, float]
    units: Mapping[str, str]
    events: Mapping[str, Mapping[str, int]]

    def __str__(self) -> str:
        lines = [f"{self.label}: {self.record.n} samples, {self.record.duration:g} s"]
        for name, (measured, simulated) in self.final.items():
            unit = self.units[name]
            lines.append(
                f"  {name}: at the end {amount(measured, unit)} measured,"
                f" {amount(simulated, unit)} simulated; rms of the difference"
                f" {amount(self.rms[name], unit)}, of the measured motion"
                f" {amount(float(np.std(self.record.outputs[name])), unit)}"
            )
        for contact, counts in self.events.items():
            told = ", ".join(f"{what} {count}" for what, count in sorted(counts.items()))
            lines.append(f"  {contact}: {told or 'no event'}")
        if not self.motion.complete:
            lines.append(f"! The run ended at {self.motion.end:g} s: {self.motion.result}")
        if self.record.gaps.size:
            lines.append("! The record has gaps, over which its inputs are joined.")
        return "\n".join(lines)

    __repr__ = __str__


def preview(
    machine: Any,
    record: Record,
    objective: Any = None,
    *,
    label: str | None = None,
    instruments: Mapping[str, Any] | None = None,
    engine: OnSamples | None = None,
) -> Preview:
    """Run a machine as it stands under the inputs of a record, from its measured start unless
    `objective`, a `FreeRun` or a `ClosedLoop`, says otherwise, by the steps of `engine`.

    **Raises:** `ValueError` for a record whose channels the machine does not have.

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 2.0, 201)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    ...     drive=fx.Force("mass", 0.0),
    ... )
    >>> seen = {"mass.s": 0.3 * np.cos(3 * t)}
    >>> record = fx.Record(t, {"drive": -2.7 * np.cos(3 * t)}, seen, name="push")
    >>> print(preview(block, record, fx.FreeRun()))
    push: 201 samples, 2 s
      mass.s: at the end 0.288 m measured, 0.385 m simulated; rms of the difference ...
      friction: backward to forward 1, forward to backward 1
    """
    objective = FreeRun(measured_start=True) if objective is None else objective
    placed = objective.machine(machine)
    engine = OnSamples() if engine is None else engine
    setup, prepared, delayed = prepare_record(placed, record, objective, instruments, engine)
    here = setup.for_channels(prepared.inputs, prepared.names)
    motion, before, after = walked(here, prepared, record.t, engine, delayed)
    predicted = np.asarray(prepared.predicted(here, objective, engine, delayed))
    left = predicted - np.asarray(prepared.measured)
    final = {
        name: (float(record.outputs[name][-1]), float(predicted[-1, i]))
        for i, name in enumerate(prepared.names)
    }
    rms = np.sqrt(np.nanmean(left**2, axis=0))
    return Preview(
        record.name if label is None else label,
        record,
        motion,
        final,
        dict(zip(prepared.names, rms.tolist(), strict=True)),
        {name: channel_unit(placed, record, name) for name in prepared.names},
        {name: _counted(before, after, i) for i, name in enumerate(contact_names(placed))},
    )


def _counted(before: np.ndarray, after: np.ndarray, i: int) -> dict[str, int]:
    """How often each change of mode of a contact happens."""
    counts = dict[str, int]()
    for a, b in zip(before[:, i], after[:, i], strict=True):
        if a != b and int(a) in _MODES and int(b) in _MODES:
            what = f"{_MODES[int(a)]} to {_MODES[int(b)]}"
            counts[what] = counts.get(what, 0) + 1
    return counts
