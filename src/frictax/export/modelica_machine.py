"""Write a machine, a fitted machine or a fitted law as Modelica text."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

import frictax
from frictax.annotations import Checked
from frictax.arguments import check_names, lists_options
from frictax.files.replacing import write_together
from frictax.fitting import FitResult
from frictax.fitting.options import refuse
from frictax.fitting.problem.steady import as_steady
from frictax.laws import Stribeck
from frictax.mechanism import HeatCapacitor, Mechanism, ThermalConductor
from frictax.simulation import simulate

from .fitted_machine import FittedMachine, machine_of_parts
from .modelica_parts import Sheet, with_dependencies, write_part
from .modelica_text import comment_lines, model_name, needs_speed, number, sample


def sweep_modifier(found: FitResult, tolerance: float = 1e-3) -> str:
    """Return the friction law of a fitted sweep as Modelica text: a component with modifiers.

    A symmetric translational Stribeck law of exponent 1 without a peak becomes
    `MassWithStopAndFriction` with four coefficients. The breakaway force of
    `MassWithStopAndFriction` is 1.001 times its friction at rest. Every other law becomes a table
    of `SupportFriction` or `BearingFriction`; a comment states the error of the table. The table is
    for both directions of motion, so a separate law for backward motion becomes a comment.

    **Arguments:** `tolerance`: allowed error of the table, relative to the largest force.
    """
    friction, sweep = as_steady(found.model), found.sweep
    rotational = sweep.rotational
    v_max = float(np.max(np.abs(sweep.velocity)))
    name = " ".join(sweep.name.split())  # In the comment below, a line break would end the comment.
    lines = [
        f"// {name}: steady friction fitted by frictax, valid to {v_max:.6g}"
        f" {'rad/s' if rotational else 'm/s'}"
    ]
    if friction.offset is not None:
        lines.append(
            f"// in addition there is a constant {'torque' if rotational else 'force'} of"
            f" {_number(friction.offset)} {sweep.force_unit.si_name}"
        )
    law = friction.f_pos
    plain = isinstance(law, Stribeck) and isinstance(law.exponent, float) and law.exponent == 1.0
    if plain and not rotational and friction.f_neg is None and float(friction.peak) == 1.0:
        assert isinstance(law, Stribeck)
        terms = ", ".join(
            f"{name}={_number(getattr(law, name))}"
            for name in ("F_prop", "F_Coulomb", "F_Stribeck", "fexp")
        )
        return "\n".join([*lines, f"MassWithStopAndFriction({terms})"])
    name, table, unit = "SupportFriction", "f_pos", "N"
    if rotational:
        name, table, unit = "BearingFriction", "tau_pos", "N.m"
    for before, law in ("", friction.f_pos), ("// ", friction.f_neg):
        if law is None:
            continue
        if before:
            lines.append(
                "// backward motion has a separate law, which this element does not support:"
            )
        rows, error = sample(law, v_max, tolerance)
        text = "; ".join(f"{_number(v)}, {_number(f)}" for v, f in rows)
        lines += [
            f"// table within {error:.2g} {unit} of the fitted {type(law).__name__} law",
            f"{before}{name}({table}=[{text}], peak={_number(friction.peak)})",
        ]
    return "\n".join(lines)


def _number(value: object) -> str:
    """Return a number as text with ten digits, more than a fit can determine."""
    return repr(float(f"{float(value):.10g}"))  # type: ignore[arg-type]


VERSION = "4.0.0"  # oldest Modelica Standard Library that contains all elements used here


class ModelicaOptions(TypedDict, total=False):
    self_contained: bool
    start_time: float | None
    stop_time: float | None
    interval: float | None
    accuracy: float
    tolerance: float
    v_max: float | None
    rows: int
    comment: str | Iterable[str] | None


class FileOptions(ModelicaOptions, total=False):
    overwrite: bool


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class TextOptions:
    """The options of the export to Modelica, with defaults; `machine_text` describes them."""

    self_contained: Checked[bool] = False
    start_time: Checked[float | None] = None
    stop_time: Checked[float | None] = None
    interval: Checked[float | None] = None
    accuracy: Checked[float] = 1e-6
    tolerance: Checked[float] = 1e-3
    v_max: Checked[float | None] = None
    rows: Checked[int] = 200
    comment: Checked[str | Iterable[str] | None] = None
    overwrite: Checked[bool] = False

    def experiment(self) -> str:
        """Return the settings of the annotation `experiment`; the default is to simulate 1 s."""
        settings = {
            "StartTime": 0.0 if self.start_time is None else self.start_time,
            "StopTime": 1.0 if self.stop_time is None else self.stop_time,
            "Interval": self.interval,
            "Tolerance": self.accuracy,
        }
        return ", ".join(
            f"{k}={number(value)}" for k, value in settings.items() if value is not None
        )


_DEFAULTS: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(TextOptions)}


@lists_options(ModelicaOptions, _DEFAULTS)
def machine_text(
    machine: Mechanism, name: str = "Machine", **options: Unpack[ModelicaOptions]
) -> str:
    """Return a complete, runnable Modelica model of a machine. Parts keep their names and values.

    The model uses the Modelica Standard Library, version 4.0.0 or later. The text also defines
    elements that the library does not have: friction with a law for each direction, a controller,
    or a force that depends on position. Friction laws become tables; a comment states the error of
    each table.

    **Arguments:**

    - `name`: name of the model, not a keyword of Modelica; `comment`: a text, or lines, at the top
      of the model.
    - `self_contained`: whether the text contains all elements, so that it does not need the
      library.
    - `start_time`, `stop_time`, `interval` [s], `accuracy`: settings of the annotation
      `experiment`; `accuracy` is its `Tolerance`.
    - `tolerance`: allowed error of a law's table, relative to the friction at rest. `v_max` [m/s or
      rad/s]: highest speed in the table of a user's law; by default the highest of a record.
    - `rows`: largest number of samples of a signal in the text, unless `self_contained`. The model
      reads a longer signal from the file in its parameter `tables` (see `write_machine`).

    **Raises:** `ValueError` for a part, law or signal written in Python, which Modelica cannot
    read, and for a name that is not an identifier.

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
    check_names(machine_text, options)
    return _model(machine, name, TextOptions(**options))[1]


def _model(machine: Any, name: str, options: TextOptions) -> tuple[str, str, Sheet]:
    """Return the name of the model, its text, and the `Sheet` with its components."""
    sheet = _write_parts(machine, options)
    name = model_name(name, sheet.taken)
    uses = "" if options.self_contained else f', uses(Modelica(version="{VERSION}"))'
    elements = with_dependencies(sheet.elements, options.self_contained)
    tables = f'  parameter String tables = "{table_name(name)}" "File of the tables";'
    lines = [
        f"model {name}",
        *comment_lines(() if options.comment is None else options.comment),
        *(f"{text}\n" for text in elements),
        *([tables] if sheet.tables else []),
        *sheet.declarations.values(),
        "equation",
        *sheet.equations,
        f"  annotation(experiment({options.experiment()}){uses});",
        f"end {name};",
    ]
    return name, "\n".join(lines), sheet


def table_name(name: str) -> str:
    return f"{name}_tables.txt"


@lists_options(FileOptions, _DEFAULTS)
def write_machine(
    machine: Mechanism, folder: str | Path, name: str = "Machine", **options: Unpack[FileOptions]
) -> list[Path]:
    """Write the text of `machine_text` and a file of long tables into `folder`; return the paths.

    `options`: those of `machine_text`. The model contains the table file's name without its folder,
    so simulate it in `folder`, or set its parameter `tables` to the file's path.

    **Raises:** `FileExistsError`, before any file is written, if one of the files exists and
    `overwrite` is false.
    """
    check_names(write_machine, options)
    return _write_model(machine, folder, name, TextOptions(**options))


def _write_model(machine: Any, folder: str | Path, name: str, options: TextOptions) -> list[Path]:
    name, text, sheet = _model(machine, name, options)
    folder = Path(folder)
    texts = {folder / f"{name}.mo": text + "\n"}
    if sheet.tables:
        # The file has the format of Modelica.Blocks.Sources.CombiTimeTable.
        lines = ["#1"]
        for title, table in sheet.tables.items():
            lines.append(f"double {title}({table.shape[0]},{table.shape[1]})")
            lines += [" ".join(map(number, row)) for row in table]
        texts[folder / table_name(name)] = "\n".join(lines) + "\n"
    there = [path for path in texts if path.exists()]
    if there and not options.overwrite:
        raise FileExistsError(
            f"{there[0]} exists. Give overwrite=True to replace it, or another folder or name."
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_together(texts, replace=options.overwrite)
    return list(texts)


def modifiers(
    machine: Mechanism, names: Iterable[str], tolerance: float = 1e-3, v_max: float | None = None
) -> str:
    """Return the Modelica declarations of the parts called `names`, to be pasted into a model."""
    sheet = _write_parts(machine, TextOptions(tolerance=tolerance, v_max=v_max))
    wanted = {sheet.names[n] for n in {*names} if n in sheet.names}
    return "\n".join(text for name, text in sheet.declarations.items() if name in wanted)


def _write_parts(machine: Any, options: TextOptions) -> Sheet:
    """Return a `Sheet` with all parts; thermal parts are last because they refer to other parts."""
    if not isinstance(machine, Mechanism):
        kind = type(machine).__name__
        raise ValueError(
            f"A {kind} is a system of your own in Python, which Modelica cannot read: build it as a"
            " `Mechanism` of parts."
        )
    sheet = Sheet(machine, options.self_contained, options.tolerance, options.v_max, options.rows)
    kinds = HeatCapacitor | ThermalConductor
    for name, _ in sorted(machine.named_parts(), key=lambda named: isinstance(named[1], kinds)):
        write_part(sheet, name)
    return sheet


@lists_options(ModelicaOptions, _DEFAULTS)
def to_modelica(
    found: FitResult,
    record: str | None = None,
    *,
    name: str = "Machine",
    **options: Unpack[ModelicaOptions],
) -> str:
    """Return the identified machine as a runnable Modelica model with the inputs of `record`, by
    default the first record that is not a sweep. For a fitted sweep, see `sweep_modifier`.

    The inputs of the model are those of the record, corrected by the fitted gains, offsets and
    delays. If the objective uses measured states, the model starts from these states. A comment at
    the top names the record, the objective and the fitted values with their intervals, unless a
    `comment` is given. The model reads a record of more than `rows` samples from a file, which
    `write_modelica` also writes. By default, `start_time` and `stop_time` [s] are the first and the
    last time of the record. `machine_text` describes the other options.

    **Raises:** `KeyError` for an unknown record; `ValueError` for a machine that Modelica cannot
    read.
    """
    check_names(to_modelica, options)
    given = TextOptions(**options)
    if found.of_sweep:
        names = ("start_time", "stop_time", "interval", "v_max", "comment")
        own = {"record": record, "self_contained": given.self_contained or None}
        own |= {option: getattr(given, option) for option in names}
        refuse(own, "a machine", "a law's sweep")
        return sweep_modifier(found, given.tolerance)
    machine, given = _fitted_machine(found, record, given)
    return _model(machine, name, given)[1]


@lists_options(FileOptions, _DEFAULTS)
def write_identified(
    found: FitResult,
    folder: str | Path,
    record: str | None = None,
    *,
    name: str = "Machine",
    **options: Unpack[FileOptions],
) -> list[Path]:
    """Write the text of `to_modelica` and a file of long records into `folder`; return paths."""
    check_names(write_identified, options)
    machine, given = _fitted_machine(found, record, TextOptions(**options))
    return _write_model(machine, folder, name, given)


def identified_modifiers(
    found: FitResult,
    tolerance: float = 1e-3,
    v_max: float | None = None,
    label: str | None = None,
) -> str:
    """Return the Modelica declarations of all parts with fitted values, to paste into a model.

    `label`: name of the record whose values are used, required if values differ by record.
    """
    parts = [e.path.partition(".")[0] for e in found.estimates]
    machine = machine_of_parts(found, label, parts)
    if v_max is None and needs_speed(machine):
        v_max = _highest_speed(FittedMachine.of(found, label))
    return modifiers(machine, parts, tolerance, v_max)


def _highest_speed(fitted: FittedMachine) -> float | None:
    """Return the highest sliding speed in a simulation [m/s or rad/s], None for a sweep."""
    if fitted.ts is None:
        return None
    run = simulate(fitted.machine, fitted.ts)
    parts, names = [run[name] for name in fitted.machine.names], ("v_relfric", "w_relfric")
    speeds = (getattr(part, v) for part in parts for v in names if hasattr(part, v))
    return max(float(np.max(np.abs(np.asarray(v)))) for v in speeds)


def _fitted_machine(
    found: FitResult, label: str | None, options: TextOptions
) -> tuple[Any, TextOptions]:
    """Return the fitted machine with the inputs of record `label`, and the completed `options`."""
    fitted = FittedMachine.of(found, label)
    record = found.records[fitted.label]
    citation = " ".join(str(getattr(record, "citation", "")).split())
    records, kind = ", ".join(found.records), type(found.problem.objective).__name__
    lines = [
        f"Identified by frictax {frictax.__version__} from {records} by {kind}.",
        f"Driven here as in {fitted.label}{': ' + citation if citation else ''}.",
    ]
    comment = [
        *(" ".join(line.split()) for line in lines),
        f"Fitted, with the standard error and the {100 * found.level:g} % interval for white"
        " residuals:",
        *(
            f"  {e.name} = {e.value:.10g} {e.unit}, {', '.join(filter(None, (error, interval)))}"
            for e in found.estimates
            for *_, error, interval in [dataclasses.replace(e, declared=(e.unit, 1.0)).cells]
        ),
        *(f"! {w}" for w in found.warnings),
    ]
    settings: dict[str, Any] = {"comment": comment}
    if fitted.ts is not None:
        settings |= {"start_time": float(fitted.ts[0]), "stop_time": float(fitted.ts[-1])}
    settings = {k: value for k, value in settings.items() if getattr(options, k) is None}
    if options.v_max is None and needs_speed(fitted.machine):
        settings["v_max"] = _highest_speed(fitted)
    return fitted.machine, dataclasses.replace(options, **settings)
