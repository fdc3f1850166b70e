"""The printed form of a motion record."""

from typing import Any

import numpy as np

from .record import Record
from .units import Unit


def headline(record: Record) -> str:
    """Return the headline: name, number of samples, duration, sampling rate."""
    step = "uniform" if record.uniform else "not uniform"
    return (
        f"{record.name}: {record.n} samples, {record.duration:.4g} s, {record.rate:.4g} Hz, {step}"
    )


def one_line(record: Record) -> str:
    """Return the headline and the channels."""
    inputs = f"; inputs {', '.join(record.inputs)}" if record.inputs else ""
    return f"Record({headline(record)}{inputs}; outputs {', '.join(record.outputs)})"


def channel_table(record: Record) -> str:
    """Return the headline, a line for each channel in its declared unit, and the warnings."""
    between = "held between samples" if record.hold else "interpolated linearly"
    rows = [("input", name, u, between) for name, u in record.inputs.items()]
    rows += [
        ("output", name, y, deviation(record.sd[name], record.units[name]))
        for name, y in record.outputs.items()
    ]
    spans = [span(values, record.units[name]) for _, name, values, _ in rows]
    names, width = max(len(name) for _, name, _, _ in rows), max(map(len, spans))
    lines = [
        f"  {kind:<8}{name:<{names}}  {text:<{width}}  {more}"
        for (kind, name, _, more), text in zip(rows, spans, strict=True)
    ]
    return "\n".join([headline(record), *lines, *(f"  ! {text}" for text in record.warnings)])


def span(values: np.ndarray, unit: Unit) -> str:
    """Return the least and the greatest value as text.

    >>> from frictax.measurements.units import force_unit
    >>> span(np.array([1.0, -20.0]), force_unit("kN"))
    '-0.02 to 0.001 kN'
    """
    return f"{number_text(values.min(), unit)} to {number_text(values.max(), unit)} {unit.name}"


def deviation(sd: Any, unit: Unit) -> str:
    """Return the standard deviation of an output as text.

    >>> from frictax.measurements.units import force_unit
    >>> deviation(0.25, force_unit("N")), deviation(None, force_unit("N"))
    ('sd 0.25 N', 'sd not known')
    """
    if sd is None:
        return "sd not known"
    if np.ndim(sd):
        return f"sd {span(sd, unit)}"
    return f"sd {number_text(sd, unit)} {unit.name}"


def number_text(value: Any, unit: Unit) -> str:
    """Return an SI value in `unit`, to four figures."""
    return f"{float(value) / unit.si:.4g}"
