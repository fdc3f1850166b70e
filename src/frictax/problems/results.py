"""The result files of an identification, and an overview table of all identified machines."""

import contextlib
import dataclasses
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import frictax as fx
from frictax.analysis import Validation
from frictax.files.replacing import (
    check_folder,
    check_target,
    finish_interrupted,
    write_together,
    write_whole,
)
from frictax.report.json_text import estimate, to_json_types, versions
from frictax.text import amount, format_estimate

from .building import toml_text
from .identification import Identification
from .problem import find

FORMAT = 2  # version of result.json, which increases with each change of a key or its meaning
FILES = ("result.json", "result.fit", "parameters.toml", "report.html")


def check_results(
    path: str | Path, out: str | Path | None = None, *, overwrite: bool = False
) -> dict[str, Path]:
    """Return a dict from the name of each result file to its path. The folder is `out`, by default
    the folder of the problem at `path`.

    **Raises:** `OSError` if a file cannot be written, or if it exists and `overwrite` is False.
    """
    folder = find(path).parent if out is None else Path(out)
    check_folder(folder, FILES, overwrite=overwrite)
    return {name: check_target(folder / name, name) for name in FILES}


@contextlib.contextmanager
def lock_results(folder: Path) -> Iterator[None]:
    """Lock a folder against other identifications, if the operating system can lock folders."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    hold = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(
                f"Another run is working on {folder}. Wait for its end, or give this one a folder"
                " with --out."
            ) from None
        yield
    finally:
        os.close(hold)


def result_texts(made: Identification, command: str | None = None) -> dict[str, str]:
    """Return a dict from the name of each text file of the results to its text. `command`: the
    command line that repeats the identification; it is shown in the report.
    """
    return {
        "result.json": result_json(made),
        "parameters.toml": parameters_toml(made),
        "report.html": report(made, command),
    }


def result_files(made: Identification, command: str | None = None) -> dict[str, str | bytes]:
    """Return file name -> content: the texts of `result_texts`, and the saved fit as bytes."""
    from frictax.report.saving.fit_file import fit_bytes

    return {**result_texts(made, command), "result.fit": fit_bytes(made.found)}


def write_results(
    contents: Mapping[str, str | bytes], targets: Mapping[str, Path], *, overwrite: bool = False
) -> None:
    """Write all result files; if an error occurs, do not write any file."""
    write_together({targets[name]: whole for name, whole in contents.items()}, replace=overwrite)


def result_json(made: Identification) -> str:
    """Return all results with units as JSON text, which is reproducible on the same computer."""
    from frictax.report import found_json, found_machine_json

    problem = made.problem
    of_sweep = isinstance(problem.data, fx.Sweep)
    fit = json.loads(
        found_json(made.found, made.comparison) if of_sweep else found_machine_json(made.found)
    )
    outlook = None
    if (o := made.outlook) is not None:
        keys = ("name", "start", "unit", "expected_error", "relative")
        columns = zip(o.names, o.values, o.units, o.errors, o.relative, strict=True)
        outlook = {
            "condition": o.identifiability.condition,
            "parameters": [
                dict(zip(keys, row, strict=True))
                | {"knowledge": o.identifiability.knowledge[row[0]].value}
                for row in columns
            ],
            "says": o.sentences,
            "notices": [notice.to_dict() for notice in o.notices],
        }
    missing = made.missing
    u, left_out = made.uncertainty or made.found.uncertainty(), ("path", "knowledge")
    told = (*u.estimates, *u.tied)
    rows = [{k: v for k, v in estimate(e).items() if k not in left_out} for e in told]
    whole = {
        "format": FORMAT,
        "kind": "identification",
        "title": problem.content.title,
        "citation": problem.content.citation,
        "learnt": problem.content.learnt,
        "problem": {
            "file": problem.file.name,
            "sha256": problem.sha256,
            "sources": dict(problem.sources),
        },
        "seeds": {"starts": problem.content.fit.seed, "draws": problem.content.uncertainty.seed},
        "versions": versions(),
        "fit": fit,
        "outlook": outlook,
        "structure": _structure(made),
        "errors": {
            "by": type(u.by).__name__,
            "says": u.says,
            "level": u.level,
            "degrees_of_freedom": u.dof,
            "estimates": rows,
        },
        "derived": [{k: v for k, v in estimate(e).items() if k != "path"} for e in made.derived],
        "profiles": {
            name: {key: getattr(p, key) for key in ("unit", "lower", "upper", "one_sided")}
            | {"says": p.sentence}
            for name, p in made.profiles.items()
        },
        "residuals": [
            {"name": f.name, "strong": f.strong, "says": f.sentence}
            for f in (() if made.study is None else made.study.findings)
        ],
        "missing": missing
        and {
            "says": list(missing.sentences),
            "found": [term.name for term in missing.found],
            "terms": [dataclasses.asdict(term) for term in missing.terms],
            "untold": list(missing.untold),
        },
        "validation": [_validation(score) for score in made.scores],
    }
    return json.dumps(to_json_types(whole), indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _structure(made: Identification) -> Any:
    if made.comparison is None or isinstance(made.comparison, list):
        return None
    rows = []
    for row in made.comparison.rows:
        numbers = {
            f.name: getattr(row, f.name)
            for f in dataclasses.fields(row)
            if isinstance(getattr(row, f.name), float | int | str)
        }
        rows.append({**numbers, "parameters": len(row.found.estimates)})
    return {
        "chosen": made.comparison.best.name,
        "reason": made.comparison.reason,
        "structures": rows,
    }


def _validation(score: Any) -> dict[str, Any]:
    run = score.run
    out = {
        "record": score.label,
        "objective": repr(score.objective),
        "rms": dict(score.rms),
        "units": dict(score.units),
    }
    if isinstance(run, Validation):
        out |= {"from_measured_start": dict(run.from_measured), "from_given": dict(run.from_given)}
        out |= {"start": [estimate(e) for e in run.start]}
    elif run is not None:
        out |= {"sensitivities": run.sensitivities, "ranges_10_50_90": run.ranges}
        out |= {"ranges_say": run.says}
    return out


def parameters_toml(made: Identification) -> str:
    """Return the TOML text of the fitted values, with units, standard errors and intervals."""
    errors = made.uncertainty or made.found.uncertainty()
    lines = [
        f"# {' '.join(made.problem.content.title.split())}",
        f"# Found by frictax {fx.__version__}; errors by {type(errors.by).__name__}. SI units.",
    ]
    for e in (*errors.estimates, *errors.tied):
        lines += [
            "",
            f"[{toml_text(e.name)}]",
            f"value = {_number(e.value)}",
            f"unit = {toml_text(e.unit)}",
            *([f"tied = {toml_text(e.tied)}"] if e.tied else []),
        ]
        if np.isfinite(e.standard_error):
            lines += [
                f"standard_error = {_number(e.standard_error)}",
                f"interval = [{_number(e.lower)}, {_number(e.upper)}]",
                f"level = {_number(made.found.level)}",
            ]
        else:
            lines += ["# no standard error: at its bound, or not identifiable"]
    return "\n".join(lines) + "\n"


def report(made: Identification, command: str | None) -> str:
    """Return the report as HTML."""
    content = made.problem.content
    if isinstance(made.problem.data, fx.Sweep):
        from frictax.report.sweep_report import sweep_report_text

        notes = [*content.notes, *content.learnt, *map(str, made.notices)]
        texts = {"title": content.title, "notes": notes}
        how = {"command": command, "derived": made.derived}
        return sweep_report_text(made.found, made.comparison, **texts, **how)
    from frictax.report.machine_report import About, machine_report_text

    texts = content.title, content.notes, content.learnt, content.citation
    about = About(*texts, made.problem.sources, content.fit.seed, command)
    same = ("uncertainty", "comparison", "scores", "derived")
    how: dict[str, Any] = {name: getattr(made, name) for name in same}
    return machine_report_text(made.found, made, about, profiles=made.profiles.values(), **how)


def _number(x: float) -> str:
    return repr(float(x))


BEGIN, END = "<!-- results: made by `frictax table`, not by hand -->", "<!-- end of results -->"
_HEAD = (
    "machine",
    "law or structure",
    "parameters, with intervals",
    "residuals",
    "errors on other data",
)


def overview(folder: str | Path) -> str:
    """Return a Markdown table with a row for each folder in `folder` that contains a `result.json`.

    **Raises:** `FileNotFoundError` if no folder contains a `result.json`; `ValueError` if a
    `result.json` cannot be read.
    """
    found = sorted(Path(folder).glob("*/result.json"))
    if not found:
        raise FileNotFoundError(
            f"{folder} holds no results. Run `frictax identify` on the problems in it first."
        )
    rows = [_HEAD, ("---",) * len(_HEAD), *(_row(file) for file in found)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)


def write_overview(folder: str | Path) -> Path:
    """Write the overview table into the README.md of `folder`, between its two marker lines."""
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
        # [bytes] largest size of a `result.json`; the largest fits write about 1 MB
        largest = 20_000_000
        if file.stat().st_size > largest:
            raise ValueError(f"it has {file.stat().st_size} bytes, more than {largest}")
        result = json.loads(file.read_text(encoding="utf-8"))
        if result["format"] > FORMAT:
            raise ValueError(
                f"it is of format {result['format']}, and this frictax knows up to {FORMAT}"
            )
        structure, fit = result["structure"], result["fit"]
        chosen = [c["chosen"] for c in fit["comparisons"]] if fit["kind"] == "fit" else []
        if structure is not None:
            law = f"{structure['chosen']}, of {len(structure['structures'])} structures"
        elif fit["kind"] != "fit":
            law = "as given"
        elif len(chosen) == 2:
            law = f"{chosen[0]} forward, {chosen[1]} backward"
        else:
            law = ", ".join(chosen) or fit["law"]["f_pos"]["kind"]
        parameters = []
        for e in (result["errors"] or fit)["estimates"]:
            if "@" in e["name"]:
                continue
            error, low, high = (
                math.nan if e[key] is None else e[key]
                for key in ("standard_error", "lower", "upper")
            )
            row = format_estimate(e["value"], error, e["unit"], (low, high))
            ends = row.interval if row.error else "no interval"
            text = f"`{_markdown_text(e['name'])}` {row.value} ({ends}) {row.unit}"
            parameters.append(text.rstrip())
        if fit["kind"] == "fit":
            rms = _amount(fit["rms"], fit["sweep"]["force_unit"])
            residuals = [f"{rms} of {fit['sweep']['rows']} rows"]
        else:
            residuals = [
                f"{_markdown_text(label)}: {_amount(left['value'], left['unit'] or '1')}"
                for label, record in fit["records"].items()
                for left in record["rms"].values()
            ]
        cells = (_markdown_text(law), "<br>".join(parameters), "<br>".join(residuals))
        return f"[{name}]({name}/README.md)", *cells, _validation_cell(result)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{file} is no result of `frictax identify` ({error}). Make it again with --overwrite,"
            " or use a newer frictax."
        ) from None


def _validation_cell(result: Mapping[str, Any]) -> str:
    if result["validation"]:
        out = []
        for v in result["validation"]:
            what = "own start" if "start" in v else v["objective"].partition("(")[0]
            for name, value in v["rms"].items():
                text = f"{_markdown_text(v['record'])}, {what}: {_amount(value, v['units'][name])}"
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


def _markdown_text(text: str) -> str:
    """Escape the special characters of Markdown tables in `text`."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
