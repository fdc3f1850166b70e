"""What an identification leaves in its folder: result.json, result.fit, parameters.toml,
report.html, all of them or none.
"""

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import frictax as fx
from frictax.analysis import Validation
from frictax.files.replacing import write_together
from frictax.files.targets import check_folder, check_target
from frictax.report.json_text import estimate, to_json_types, versions

from .identification import Identification
from .reading import find

FORMAT = 2  # of result.json: rises by 1 when a key comes, goes or changes its meaning
FILES = ("result.json", "result.fit", "parameters.toml", "report.html")


def check_results(
    path: str | Path, out: str | Path | None = None, *, overwrite: bool = False
) -> dict[str, Path]:
    """Where the results of the problem at `path` go, its own folder unless `out` is given; raises
    `OSError` with one sentence where they cannot, or where one is there and `overwrite` is false.
    """
    folder = find(path).parent if out is None else Path(out)
    check_folder(folder, FILES, overwrite=overwrite)
    return {name: check_target(folder / name, name) for name in FILES}


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Hold a folder against a second run that would write there; where the system has no such
    locks, nothing is held.
    """
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
    """What the files of an identification hold, by name; `command`: the command line that makes
    them again.
    """
    return {
        "result.json": result_json(made),
        "parameters.toml": parameters_toml(made),
        "report.html": report(made, command),
    }


def result_files(made: Identification, command: str | None = None) -> dict[str, str | bytes]:
    """These texts, and the fit itself, which `load_fit` reads."""
    from frictax.report.saving.fit_file import fit_bytes

    return {**result_texts(made, command), "result.fit": fit_bytes(made.found)}


def write_results(
    contents: Mapping[str, str | bytes], targets: Mapping[str, Path], *, overwrite: bool = False
) -> None:
    """Write all files of an identification, or none of them."""
    write_together({targets[name]: whole for name, whole in contents.items()}, replace=overwrite)


def result_json(made: Identification) -> str:
    """Everything that was found, with units; the same problem gives the same text on the same
    machine.
    """
    from frictax.report import found_json, found_machine_json

    problem = made.problem
    of_sweep = isinstance(problem.data, fx.Sweep)
    fit = json.loads(
        found_json(made.found, made.comparison) if of_sweep else found_machine_json(made.found)
    )

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
        "outlook": None if made.outlook is None else _outlook(made.outlook),
        "structure": _structure(made),
        "errors": _errors(made),
        "derived": [_derived(e) for e in made.derived],
        "profiles": {
            name: {key: getattr(p, key) for key in ("unit", "lower", "upper", "one_sided")}
            | {"says": p.sentence}
            for name, p in made.profiles.items()
        },
        "residuals": [
            {"name": f.name, "strong": f.strong, "says": f.sentence}
            for f in (() if made.study is None else made.study.findings)
        ],
        "missing": None if made.missing is None else _missing(made.missing),
        "validation": [_validation(score) for score in made.scores],
    }
    return json.dumps(to_json_types(whole), indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _derived(e: fx.Estimate) -> dict[str, Any]:
    return {k: v for k, v in estimate(e).items() if k != "path"}


def _missing(missing: Any) -> dict[str, Any]:
    return {
        "says": list(missing.sentences),
        "found": [term.name for term in missing.found],
        "terms": [dataclasses.asdict(term) for term in missing.terms],
        "untold": list(missing.untold),
    }


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


def _outlook(outlook: Any) -> dict[str, Any]:
    columns = zip(
        outlook.names, outlook.values, outlook.units, outlook.errors, outlook.relative, strict=True
    )
    known = outlook.identifiability.knowledge
    keys = ("name", "start", "unit", "expected_error", "relative")
    rows = [
        dict(zip(keys, row, strict=True)) | {"knowledge": known[row[0]].value} for row in columns
    ]
    return {
        "condition": outlook.identifiability.condition,
        "parameters": rows,
        "says": outlook.sentences,
        "notices": [notice.to_dict() for notice in outlook.notices],
    }


def _errors(made: Identification) -> dict[str, Any]:
    u, left_out = made.uncertainty or made.found.uncertainty(), ("path", "knowledge")
    told = (*u.estimates, *u.tied)
    rows = [{k: v for k, v in estimate(e).items() if k not in left_out} for e in told]
    return {
        "by": type(u.by).__name__,
        "says": u.says,
        "level": u.level,
        "degrees_of_freedom": u.dof,
        "estimates": rows,
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
    """The fitted values for the next program: a table for each, with unit, standard error and
    interval.
    """
    errors = made.uncertainty or made.found.uncertainty()
    lines = [
        f"# {' '.join(made.problem.content.title.split())}",
        f"# Found by frictax {fx.__version__}; errors by {type(errors.by).__name__}. SI units.",
    ]
    for e in (*errors.estimates, *errors.tied):
        lines += [
            "",
            f"[{_quoted(e.name)}]",
            f"value = {_number(e.value)}",
            f"unit = {_quoted(e.unit)}",
            *([f"tied = {_quoted(e.tied)}"] if e.tied else []),
        ]
        if np.isfinite(e.standard_error):
            lines += [
                f"standard_error = {_number(e.standard_error)}",
                f"interval = [{_number(e.lower)}, {_number(e.upper)}]",
                f"level = {_number(made.found.level)}",
            ]
        else:
            lines += ["# no error: at its bound, or not identifiable"]
    return "\n".join(lines) + "\n"


def report(made: Identification, command: str | None) -> str:
    """The HTML text."""
    content = made.problem.content
    if isinstance(made.problem.data, fx.Sweep):
        from frictax.report.sweep_report import sweep_report_text

        notes = [*content.notes, *content.learnt]
        return sweep_report_text(
            made.found,
            made.comparison,
            title=content.title,
            notes=notes,
            command=command,
            derived=made.derived,
        )
    from frictax.report.machine_report import About, machine_report_text

    about = About(
        content.title,
        content.notes,
        content.learnt,
        content.citation,
        made.problem.sources,
        content.fit.seed,
        command,
    )
    return machine_report_text(
        made.found,
        made,
        about,
        uncertainty=made.uncertainty,
        comparison=made.comparison,
        profiles=made.profiles.values(),
        scores=made.scores,
        derived=made.derived,
    )


def _number(x: float) -> str:
    return repr(float(x))


def _quoted(text: str) -> str:
    """A text as TOML writes it."""
    return json.dumps(text, ensure_ascii=False)
