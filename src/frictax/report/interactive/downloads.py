"""What a page holds for other programs: results and curves as files inside addresses."""

import base64
import csv
import gzip
import io
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from frictax.analysis.replay.motion import Motion
from frictax.fitting import FitResult
from frictax.measurements import Record

_PLAIN, _MOST = 120_000, 300_000  # bytes: of a file as it is, of all that is packed


def downloads(found: FitResult, result: str, motions: Mapping[str, Motion]) -> list[dict[str, str]]:
    """The result as JSON, and for each record, or the sweep, a CSV of what was measured and
    what the model gives, in SI; long ones are packed, and what does not fit is left out and said.

    `motions`: record -> its free run.
    """
    out = [_file("result.json", "application/json", result, "all of the fit, SI units")]
    room, absent = _MOST, []
    for label, record in found.records.items():
        if isinstance(record, Record):
            if label not in motions:
                continue
            columns, says = _of_record(record, motions[label]), "measured, and the free run"
        else:
            columns = {
                f"velocity [{record.velocity_unit.si_name}]": record.velocity,
                f"measured [{record.force_unit.si_name}]": record.force,
                f"fitted [{record.force_unit.si_name}]": found.predicted(label)[:, 0],
            }
            says = "measured and fitted"
        made = _file(
            f"{_plain(label)}.csv", "text/csv", _csv(columns), f"{label}: {says}, SI units"
        )
        room -= len(made["address"])
        if room < 0:
            absent.append(label)
        else:
            out.append(made)
    if absent:
        out[0]["says"] += f". Too long to stand here: {', '.join(absent)}"
    return out


def _of_record(record: Record, motion: Motion) -> dict[str, Any]:
    columns: dict[str, Any] = {"time [s]": record.t}
    unit = lambda name: record.units[name].si_name  # noqa: E731
    columns |= {f"{name} [{unit(name)}]": x for name, x in record.inputs.items()}
    for name, x in record.outputs.items():
        columns[f"{name} measured [{unit(name)}]"] = x
        if name in motion.states:
            columns[f"{name} simulated [{unit(name)}]"] = motion.states[name]
    return columns


def _csv(columns: Mapping[str, Any]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow([f"{x:.9g}" if np.isfinite(x) else "" for x in row])
    return text.getvalue()


def _file(name: str, kind: str, text: str, says: str) -> dict[str, str]:
    content = text.encode("utf-8", "replace")
    if len(content) > _PLAIN:
        name, kind = f"{name}.gz", "application/gzip"
        content = gzip.compress(content, 9, mtime=0)
    data = base64.b64encode(content).decode("ascii")
    return {"name": name, "address": f"data:{kind};base64,{data}", "says": says}


def _plain(label: str) -> str:
    """A label as the name of a file."""
    return re.sub(r"[^\w.-]+", "_", label, flags=re.ASCII).strip("._") or "data"
