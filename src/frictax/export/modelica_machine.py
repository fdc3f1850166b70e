"""A machine as a complete Modelica model."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from frictax.files.replacing import write_together
from frictax.mechanism import HeatCapacitor, Mechanism, ThermalConductor

from .modelica_elements import with_all_that_they_need
from .modelica_parts import write_part
from .modelica_sheet import Sheet
from .modelica_words import comment_lines, model_name, number

VERSION = "4.0.0"  # of the Modelica Standard Library: the oldest with these names


def machine_text(
    machine: Mechanism,
    name: str = "Machine",
    *,
    self_contained: bool = False,
    start_time: float = 0.0,
    stop_time: float = 1.0,
    interval: float | None = None,
    accuracy: float = 1e-6,
    tolerance: float = 1e-3,
    v_max: float | None = None,
    rows: int = 200,
    comment: str | Iterable[str] = (),
) -> str:
    """A complete, runnable Modelica model of a machine, its parts under their names and with their
    values.

    The parts are those of the Modelica Standard Library, from version 4.0.0 on. What the library
    does not have is written out in the model itself: friction with a law for each direction, a
    controller, a force over position. Laws become tables, with their error in a comment.

    **Arguments:**

    - `name` of the model, no word of Modelica; `comment`: a text or lines to stand at its top.
    - `self_contained`: whether all elements are written out, so that the text needs no library.
    - `start_time`, `stop_time`, `interval` [s] and `accuracy` of the experiment.
    - `tolerance`: error of a law's table relative to the law at rest; `v_max` [m/s or rad/s]: how
      far the table of a law of your own reaches.
    - `rows`: with the library, a longer `Sampled` is read from the file of the parameter `tables`,
      see `write_machine`.

    **Raises:** `ValueError` for a part, law or signal in Python that Modelica cannot read, and
    for a name that is no identifier.

    **Source:** Modelica Language Specification 3.6; the elements' modes: M. Otter, H. Elmqvist, S.
    E. Mattsson, CACSD 1999.

    >>> import frictax as fx
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=2.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=5.0)),
    ...     drive=fx.Force("mass", 6.0),
    ... )
    >>> print(machine_text(block, "Block"))
    model Block
      Modelica.Mechanics.Translational.Components.Mass mass(m=2.0, L=0.0,
        s(start=0.0, fixed=true), v(start=0.0, fixed=true));
      // friction.f_pos: Coulomb, F_Coulomb=5.0, F_prop=0.0
      Modelica.Mechanics.Translational.Components.SupportFriction friction(f_pos=[0.0,
        5.0; 1.0, 5.0], peak=1.0);
      Modelica.Mechanics.Translational.Sources.Force drive;
      Modelica.Blocks.Sources.Constant drive_f(k=6.0);
    equation
      connect(friction.flange_b, mass.flange_b);
      connect(drive.flange, mass.flange_b);
      connect(drive_f.y, drive.f);
      annotation(experiment(StartTime=0.0, StopTime=1.0, Tolerance=1e-06),
        uses(Modelica(version="4.0.0")));
    end Block;
    """
    sheet = _written(machine, self_contained, tolerance, v_max, rows)
    name = model_name(name, sheet.taken)
    settings = [
        ("StartTime", start_time),
        ("StopTime", stop_time),
        ("Interval", interval),
        ("Tolerance", accuracy),
    ]
    experiment = ", ".join(f"{key}={number(value)}" for key, value in settings if value is not None)
    uses = "" if self_contained else f', uses(Modelica(version="{VERSION}"))'
    own = [f"{text}\n" for text in with_all_that_they_need(sheet.elements, self_contained)]
    files = (
        [f'  parameter String tables = "{table_name(name)}" "File of the tables";']
        if sheet.tables
        else []
    )
    return "\n".join(
        [
            f"model {name}",
            *comment_lines(comment),
            *own,
            *files,
            *sheet.declarations,
            "equation",
            *sheet.equations,
            f"  annotation(experiment({experiment}){uses});",
            f"end {name};",
        ]
    )


def table_name(name: str) -> str:
    """The file of the tables of the model called `name`."""
    return f"{name}_tables.txt"


def write_machine(
    machine: Mechanism,
    folder: str | Path,
    name: str = "Machine",
    *,
    overwrite: bool = False,
    **options: Any,
) -> list[Path]:
    """Write the model into `folder`, and the file of its long tables beside it; returns the paths.

    `options` as of `machine_text`.

    The model names that file without its folder: run it there, or set its parameter `tables`.

    **Raises:** `FileExistsError` where a file is there and `overwrite` is false; nothing is written
    then.
    """
    text = machine_text(machine, name, **options)
    how = {"self_contained", "tolerance", "v_max", "rows"} & options.keys()
    sheet = _written(machine, **{key: options[key] for key in how})
    folder, name = Path(folder), model_name(name, sheet.taken)
    texts = {folder / f"{name}.mo": text + "\n"}
    if sheet.tables:
        texts[folder / table_name(name)] = _tables(sheet.tables)
    there = [path for path in texts if path.exists()]
    if there and not overwrite:
        raise FileExistsError(
            f"{there[0]} exists. Give overwrite=True to replace it, or another folder or name."
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_together(texts, replace=overwrite)
    return list(texts)


def modifiers(
    machine: Mechanism, names: Iterable[str], tolerance: float = 1e-3, v_max: float | None = None
) -> str:
    """The components called `names` alone, one after another, to be pasted into a model."""
    sheet = _written(machine, tolerance=tolerance, v_max=v_max)
    wanted = {sheet.names[n] for n in {*names} if n in sheet.names}
    return "\n".join(text for text in sheet.declarations if _named(text) in wanted)


def _named(declaration: str) -> str:
    lines = [line for line in declaration.splitlines() if not line.startswith("  //")]
    return lines[0].split()[1].partition("(")[0].rstrip(";")


def _written(
    machine: Any,
    self_contained: bool = False,
    tolerance: float = 1e-3,
    v_max: float | None = None,
    rows: int = 200,
) -> Sheet:
    if not isinstance(machine, Mechanism):
        kind = type(machine).__name__
        raise ValueError(
            f"A {kind} is a system of your own in Python, which Modelica cannot read: build it as a"
            " `Mechanism` of parts."
        )
    sheet = Sheet(machine, self_contained, tolerance, v_max, rows)
    thermal = [
        n for n, p in machine.named_parts() if isinstance(p, HeatCapacitor | ThermalConductor)
    ]
    for name in [*(n for n in machine.names if n not in thermal), *thermal]:
        write_part(sheet, name)
    return sheet


def _tables(tables: dict[str, np.ndarray]) -> str:
    """Tables in the format that Modelica.Blocks.Sources.CombiTimeTable reads."""
    lines = ["#1"]
    for name, table in tables.items():
        lines.append(f"double {name}({table.shape[0]},{table.shape[1]})")
        lines += [" ".join(map(number, row)) for row in table]
    return "\n".join(lines) + "\n"
