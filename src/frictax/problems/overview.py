"""The table of all identified machines, from their results."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from frictax.files.replacing import finish_interrupted, write_whole
from frictax.files.targets import check_target
from frictax.text import amount, shown

from .results import FORMAT

_LARGEST = 20_000_000  # [bytes] of a result.json: those of the largest fits have 1 MB
BEGIN, END = "<!-- results: made by `frictax table`, not by hand -->", "<!-- end of results -->"
_HEAD = (
    "machine",
    "law or structure",
    "parameters, with intervals",
    "residuals",
    "errors on other data",
)


def overview(folder: str | Path) -> str:
    """The table, in Markdown, of every folder below `folder` with a `result.json`; raises
    `ValueError` where one cannot be read.
    """
    found = sorted(Path(folder).glob("*/result.json"))
    if not found:
        raise FileNotFoundError(
            f"{folder} holds no results. Run `frictax identify` on the problems in it first."
        )
    rows = [_HEAD, ("---",) * len(_HEAD), *(_row(file) for file in found)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)


def write_overview(folder: str | Path) -> Path:
    """Put the table into the README.md of `folder`, between its two marks; all else in it stays."""
    target = check_target(Path(folder) / "README.md", "the table")
    text = target.read_text(encoding="utf-8") if target.exists() else f"{BEGIN}\n{END}\n"
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(
            f"{target.name} in {folder} does not say where the table goes. Add the lines {BEGIN!r}"
            f" and {END!r}."
        )
    write_whole(target, f"{before}{BEGIN}\n\n{overview(folder)}\n\n{END}{after}", replace=True)
    return target


def _row(file: Path) -> tuple[str, ...]:
    name = file.parent.name
    try:
        finish_interrupted(file.parent, reading=True)
        if file.stat().st_size > _LARGEST:
            raise ValueError(f"it has {file.stat().st_size} bytes, more than {_LARGEST}")
        result = json.loads(file.read_text(encoding="utf-8"))
        if result["format"] > FORMAT:
            raise ValueError(
                f"it is of format {result['format']}, and this frictax knows up to {FORMAT}"
            )
        cells = (tell(result) for tell in (_law, _parameters, _left, _validation))
        return f"[{name}]({name}/README.md)", *cells
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{file} is no result of `frictax identify` ({error}). Make it again with --overwrite,"
            " or use a newer frictax."
        ) from None


def _law(result: Mapping[str, Any]) -> str:
    structure, fit = result["structure"], result["fit"]
    if structure is not None:
        return _escaped(f"{structure['chosen']}, of {len(structure['structures'])} structures")
    if fit["kind"] == "fit":
        chosen = [c["chosen"] for c in fit["comparisons"]]
        if len(chosen) == 2:
            return _escaped(f"{chosen[0]} forward, {chosen[1]} backward")
        return _escaped(", ".join(chosen) or fit["law"]["f_pos"]["kind"])
    return "as given"


def _parameters(result: Mapping[str, Any]) -> str:
    rows = (result["errors"] or result["fit"])["estimates"]
    return "<br>".join(_parameter(e) for e in rows if "@" not in e["name"])


def _parameter(e: Mapping[str, Any]) -> str:
    error, low, high = (
        math.nan if e[key] is None else e[key] for key in ("standard_error", "lower", "upper")
    )
    row = shown(e["value"], error, e["unit"], (low, high))
    ends = row.interval if row.error else "no interval"
    return f"`{_escaped(e['name'])}` {row.value} ({ends}) {row.unit}".rstrip()


def _left(result: Mapping[str, Any]) -> str:
    fit = result["fit"]
    if fit["kind"] == "fit":
        return f"{_amount(fit['rms'], fit['sweep']['force_unit'])} of {fit['sweep']['rows']} rows"
    return "<br>".join(
        f"{_escaped(label)}: {_amount(left['value'], left['unit'] or '1')}"
        for label, record in fit["records"].items()
        for left in record["rms"].values()
    )


def _validation(result: Mapping[str, Any]) -> str:
    if result["validation"]:
        out = []
        for v in result["validation"]:
            what = "own start" if "start" in v else v["objective"].partition("(")[0]
            for name, value in v["rms"].items():
                text = f"{_escaped(v['record'])}, {what}: {_amount(value, v['units'][name])}"
                ranges = v.get("ranges_10_50_90")
                if ranges and None not in ranges[name]:
                    low, _, high = (_amount(x, v["units"][name]) for x in ranges[name])
                    text += f" (chance: {low} to {high})"
                out.append(text)
        return "<br>".join(out)
    fit = result["fit"]
    if fit["kind"] == "fit" and fit["comparisons"]:
        chosen = [
            next(law for law in c["laws"] if law["name"] == c["chosen"]) for c in fit["comparisons"]
        ]
        return "rows left out: " + ", ".join(
            _amount(law["left_out_rms"], fit["sweep"]["force_unit"]) for law in chosen
        )
    return "none"


def _amount(value: float | None, unit: str) -> str:
    return "unknown" if value is None else amount(value, unit)


def _escaped(text: str) -> str:
    """Text that a Markdown table shows as it is."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
