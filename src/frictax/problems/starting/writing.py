"""Write the problem file of a draft, or copy a bundled example."""

import os
import tempfile
from pathlib import Path

from frictax.files.replacing import check_folder, made_folder, write_together
from frictax.problems.building import toml_text
from frictax.problems.checking import check
from frictax.problems.problem import NAME, read
from frictax.text import suggestion

from .draft import Draft
from .machines import TEMPLATES, sizes
from .roles import PRESSING, Chosen, unit_of_clock


def write_problem(draft: Draft, folder: str | Path, *, overwrite: bool = False) -> list[Path]:
    """Write all files of the problem that a draft without open questions describes. First check
    them like `frictax identify --check`. After an error no file is written.

    **Raises:** `ValueError` for columns that do not fit the machine; `OSError` for files that
    cannot be written.
    """
    folder = Path(folder)
    texts = problem_texts(draft, folder)
    check_folder(folder, texts, overwrite=overwrite)
    with made_folder(folder):
        with tempfile.TemporaryDirectory(prefix="frictax-") as trial:
            place = Path(trial)
            for name, text in problem_texts(draft, place).items():
                (place / name).write_text(text, encoding="utf-8")
            check(read(place, allow_code=True))
        return write_folder(folder, texts, overwrite=overwrite)


def problem_texts(draft: Draft, folder: Path) -> dict[str, str]:
    """Return a dict from the name of each file to its text, with paths relative to `folder`."""
    if draft.machine == "sweep":
        velocity, force = draft.columns["velocity"], draft.columns["force"]
        names = {
            role: _key_of(column.number, draft)
            for role, column in (("velocity", velocity), ("force", force))
        }
        v = draft.shape.values[:, draft.columns["velocity"].number - 1]
        both = bool(min((v > 0).sum(), (v < 0).sum()) >= 8)
        return {
            NAME: f"""\
# Which friction explains {draft.file.name}?   frictax identify {folder.name}
title = {toml_text(f"The friction of {draft.file.stem}")}
citation = "" # where the table is from

[sweep] # one row for each steady speed
{_file(draft, folder)}velocity = {names["velocity"]}
force = {names["force"]}
velocity_unit = "{velocity.unit}"
force_unit = "{force.unit}"

[law]
f_pos = "compare" # fits several laws and chooses one by the data
{'f_neg = "compare" # each direction has a separate law' + chr(10) if both else ""}"""
        }
    found = sizes(draft)
    made = TEMPLATES[draft.machine](draft, found)
    thin = ""
    if found.decimate > 1:
        thin = f"decimate = {found.decimate} # {found.rate:.4g} Hz is far above the motion\n"
    name = draft.file.stem
    code = " --allow-code" if made.files else ""
    plain = name.replace("_", "").replace("-", "")
    time, drive, output = draft.columns.get("time"), draft.drive, draft.output
    assert output is not None
    if time is not None:
        lines = [f"time = {_column(time, draft)}\n"]
    else:
        assert draft.rate is not None
        lines = [f"rate = {_number(draft.rate)} # Hz\n"]
    if drive is not None:
        lines.append(f"inputs.{made.drive} = {_column(drive, draft)}\n")
    key = f'"{made.output}"' if "." in made.output else made.output
    lines.append(f"outputs.{key} = {_column(output, draft)}\n")
    text = f"""\
# What explains {draft.file.name}?   frictax identify {folder.name}{code}
title = {toml_text(f"The friction of {name}")}
citation = "" # where the record is from

[records.{(name if plain.isascii() and plain.isalnum() else toml_text(name))}]
{_file(draft, folder)}{thin}{"".join(lines)}
# The machine, with start values from the record. Parameters that are not free keep these values.
{made.text}"""
    return {NAME: text, **made.files}


def _file(draft: Draft, folder: Path) -> str:
    """Return the TOML lines with the path and the layout of the recorded file."""
    shape = draft.shape
    try:
        path = os.path.relpath(draft.file.resolve(), folder.resolve())
    except ValueError:  # On Windows, a file on another disk has no relative path.
        path = str(draft.file.resolve())
    lines = [f"file = {toml_text(Path(path).as_posix())}\n"]
    if shape.delimiter != ",":
        lines.append(f"delimiter = {toml_text(shape.delimiter)}\n")
    if shape.decimal != ".":
        lines.append(f"decimal = {toml_text(shape.decimal)}\n")
    if shape.skip:
        lines.append(f"skip = {shape.skip} # lines before the table\n")
    if not shape.header:
        lines.append("header = false # columns are named by their numbers\n")
    if draft.where:
        each = []
        for name, cell in draft.where.items():
            try:
                value = _number(float(cell))
            except ValueError:
                value = toml_text(cell)
            each.append(f"{toml_text(name)} = {value}")
        lines.append(f"where = {{ {', '.join(each)} }}\n")
    if draft.machine == "sweep":
        return "".join(lines)
    if draft.part is not None:
        lines.append(f"part = {draft.part} # this part is read; the clock restarts in each part\n")
    if shape.broken or _drops_rows(draft):
        lines.append(
            "drop_missing = true # rows that lack a number, or repeat a time, are left out\n"
        )
    return "".join(lines)


def _drops_rows(draft: Draft) -> bool:
    """Return True if the record has rows to skip, which repeat a time or lack a value."""
    import numpy as np

    values, time = draft.shape.values, draft.columns.get("time")
    base = None if time is None else time.number
    if base is not None and (values[1:, base - 1] == values[:-1, base - 1]).any():
        return True
    own = any(column.clock for column in draft.used_columns)
    groups: dict[int | None, list[int]] = {}
    for column in draft.used_columns:
        if column is not time:
            groups.setdefault(column.clock or base, []).append(column.number - 1)
    for clock, columns in groups.items():
        every = values[:, columns if clock is None else [clock - 1, *columns]]
        missing = np.isnan(every)
        some, all_ = missing.any(axis=1), missing.all(axis=1)
        if np.any(some & ~all_ if own else some):
            return True
    return False


def _column(column: Chosen, draft: Draft) -> str:
    """Return the inline TOML table that describes a column, with a comment."""
    shape, at = draft.shape, column.number - 1
    referred = draft.of_motor(column)
    unit, note = _unit(referred, draft)
    if referred is not column:
        does = "divided by" if column.role == "force" else "times"
        note += f" # of the load, {does} the ratio of the gear"
    parts = [f"column = {_key_of(column.number, draft)}", unit]
    if column.name and not shape.header:
        note = f" # {column.name}{note}"
    if draft.reversed and column is draft.drive:
        parts.append("sign = -1")
        note += " # the data show that it is positive against the motion"
    if at in shape.wraps and column.role in ("time", "position", "reference"):
        parts.append("unwrap = true")
        note += f" # it starts again at {_number(shape.wraps[at])}"
    if column.role == "time" and at in shape.nanoseconds:
        parts.append(f"nanoseconds = {_key_of(shape.nanoseconds[at] + 1, draft)}")
    if column.clock is not None:
        clock = _key_of(column.clock, draft)
        unit = unit_of_clock(shape, column.clock, draft.columns.get("time"))
        parts.append(f'time = {{ column = {clock}, unit = "{unit}" }}')
    return f"{{ {', '.join(parts)} }}{note}"


def _unit(column: Chosen, draft: Draft) -> tuple[str, str]:
    """Return the TOML text with the unit and gain of a column, and a TOML comment."""
    if column.per_turn is not None:
        return f'unit = "counts", per_turn = {_number(column.per_turn)}', ""
    if column.role == "current":
        to = "N.m" if draft.turns else "N"
        unit, note = column.unit if column.factor is None else "V", ""
        if column.unit in ("mA", "mV") or column.factor is not None:
            constant, per = draft.constants["torque_constant"], column.unit.removeprefix("m")
            note = f" # {_number(constant)} {to}/{per}"
        return f'unit = "{unit}", gain = {_number(draft.gain)}, to = "{to}"', note
    if column.role == "pressing":
        gain = _number((column.factor or 1.0) * PRESSING[column.unit])
        return f'unit = "{column.unit}", gain = {gain}, to = "1"', ""
    if column.factor is not None:  # `factor` converts the recorded unit to `column.unit`
        recorded = draft.shape.units[column.number - 1] or "counts"
        return f'unit = "{recorded}", gain = {_number(column.factor)}, to = "{column.unit}"', ""
    return f'unit = "{column.unit}"', ""


def _key_of(number: int, draft: Draft) -> str:
    """Return the TOML text that names a column: its name if unique, otherwise its number."""
    names = draft.shape.names
    name = names[number - 1]
    told = draft.shape.header and bool(name) and names.count(name) == 1
    return toml_text(name) if told else str(number)


def _number(value: float) -> str:
    """Return the text of a number with up to 15 digits."""
    return f"{value:.15g}"


_BUNDLED = Path(__file__).parent / "bundled"
# Name of an example -> its files in the folder data/ of the repository, outside the package.
_SHIPPED = {"screw_drive": ("screw_drives/sweep.csv", "screw_drives/LICENSE")}
EXAMPLES = ("motor", "screw_drive")


def copy_example(name: str, folder: str | Path, *, overwrite: bool = False) -> list[Path]:
    """Copy all files of an example into `folder`, which is created if necessary, and return the new
    paths. After an error no file is written.

    **Raises:** `ValueError` for an unknown name; `OSError` if a file cannot be written, or if it
    exists and `overwrite` is False.
    """
    if name not in EXAMPLES:
        raise ValueError(
            f"There is no example {name!r}.{suggestion(name, EXAMPLES)} There is:"
            f" {', '.join(EXAMPLES)}."
        )
    sources = [path for path in (_BUNDLED / name).iterdir() if path.is_file()]
    # In an installed package, the files of `_SHIPPED` are in the folder `bundled` too.
    data = Path(__file__).parents[4] / "data"
    sources += [data / file for file in _SHIPPED.get(name, ()) if (data / file).is_file()]
    sources.sort()
    texts = {path.name: path.read_text(encoding="utf-8") for path in sources}
    return write_folder(folder, texts, overwrite=overwrite)


def write_folder(folder: str | Path, texts: dict[str, str], *, overwrite: bool) -> list[Path]:
    """Write all `texts` (file name -> text) to a folder; return the paths. Write none on error."""
    folder = Path(folder)
    check_folder(folder, texts, overwrite=overwrite)
    with made_folder(folder):
        write_together({folder / name: text for name, text in texts.items()}, replace=overwrite)
    return [folder / name for name in texts]
