"""`frictax fit` and `frictax compare`: the friction of a sweep of steady speeds."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frictax.progress import Work

from .options import (
    DATA,
    FIT,
    OUT,
    Direction,
    FitChoice,
    Law,
    SweepFile,
    inside_0_1,
    json_option,
    law_option,
    option,
    overwrite_option,
    positive,
    with_options,
)
from .working import (
    DATA_FAILED,
    as_option_names,
    command_line,
    conditions,
    end,
    is_stdout,
    plain_errors,
    print_error,
    progress,
    show,
    write_json,
)

if TYPE_CHECKING:
    from frictax.analysis import Comparison
    from frictax.measurements import Sweep


@dataclasses.dataclass(frozen=True)
class Laws:
    """The laws of `frictax fit`."""

    law: Law = law_option("The law of friction over speed.", Law.STRIBECK)
    exponent: float | None = option(
        FIT, "NUMBER", "Exponent of the Stribeck law: 1 (the default) or 2.", callback=positive
    )
    neg_law: Law | None = law_option("The law for v < 0; implies --each-direction.", None)
    neg_exponent: float | None = option(
        FIT, "NUMBER", "Exponent of the law for v < 0; implies --each-direction.", callback=positive
    )
    level: float = option(FIT, "NUMBER", "Confidence level.", default=0.95, callback=inside_0_1)

    @property
    def backward(self) -> Law:
        """The law for v < 0."""
        return self.law if self.neg_law is None else self.neg_law


@dataclasses.dataclass(frozen=True)
class Outputs:
    """Options for the report, the files and the texts that `frictax fit` writes."""

    report: Path | None = option(OUT, "FILE", "File for a self-contained HTML report.")
    title: str | None = option(OUT, "TEXT", "Title of the report.")
    citation: str = option(DATA, "TEXT", "Source of the data, for the report.", default="")
    compare: bool = option(OUT, "", "Also compare the usual laws (a few seconds).", default=False)
    modelica: bool = option(OUT, "", "Print the friction as a Modelica modifier.", default=False)
    json: Path | None = json_option()
    overwrite: bool = overwrite_option()


@dataclasses.dataclass(frozen=True)
class ComparisonOutputs:
    """Options for the file that `frictax compare` writes."""

    json: Path | None = json_option()
    overwrite: bool = overwrite_option()


@with_options
def fit_sweep_file(data: SweepFile, laws: Laws, choice: FitChoice, outputs: Outputs) -> None:
    """Fit a friction law to a measured sweep of steady speeds.

    Prints each parameter with its unit, standard error and interval, and notices on parameters that
    the data do not identify.
    """
    if laws.neg_law is not None or laws.neg_exponent is not None:
        choice = dataclasses.replace(choice, each_direction=True)
    _check_combinations(laws, outputs)
    with _with_sweep(data, choice, outputs) as (sweep, doing):
        import frictax.fitting as fitting
        from frictax.report import found_json

        doing("Fitting")
        loss = fitting.Huber() if choice.robust else fitting.Squares()
        arguments: dict[str, Any] = {"level": laws.level, "loss": loss}
        exponent = 1.0 if laws.exponent is None else laws.exponent
        if choice.each_direction:
            power = exponent if laws.neg_exponent is None else laws.neg_exponent
            arguments["f_neg"] = _start(laws.backward, sweep.negative(), power)
        if choice.offset:
            arguments["offset"] = 0.0
        forward = sweep.positive() if choice.each_direction else sweep
        found = fitting.fit(_start(laws.law, forward, exponent), sweep, **arguments)
        if outputs.compare:
            doing("Comparing")
        made = _compare_laws(sweep, choice) if outputs.compare else []
        doing("Writing")
        text = None if outputs.json is None else found_json(found, made)
        if outputs.report is not None:
            from frictax.report import write_sweep_report

            how: Any = {"command": command_line.get(), "overwrite": outputs.overwrite}
            write_sweep_report(found, outputs.report, made, title=outputs.title, **how)
        if outputs.json is not None and text is not None:
            write_json(outputs.json, text, outputs.overwrite)
    if not is_stdout(outputs.json):
        from frictax.report import comparison_table, found_table

        show(
            found_table(found),
            *map(comparison_table, made),
            *([found.to_modelica()] if outputs.modelica else []),
            *_written(outputs.report, outputs.json),
        )
    if not found.converged:
        end(
            "The fit did not converge, so its estimates are not valid. Try another law, or check"
            " the data.",
            DATA_FAILED,
        )


@with_options
def compare(data: SweepFile, choice: FitChoice, outputs: ComparisonOutputs) -> None:
    """Fit Coulomb, Stribeck (exponents 1 and 2) and table laws to a sweep and print which one fits
    best.

    The criterion is the small-sample AIC among laws whose terms are all identifiable. BIC and the
    leave-one-out error are printed too. Measured machines are rarely symmetric: give
    `--each-direction` or `--direction`.
    """
    json, overwrite = outputs.json, outputs.overwrite
    with _with_sweep(data, choice, Outputs(json=json, overwrite=overwrite)) as (sweep, doing):
        doing("Comparing")
        made = _compare_laws(sweep, choice)
        from frictax.report import comparison_json, comparison_table

        if json is not None:
            write_json(json, comparison_json(made), overwrite)
    if not is_stdout(json):
        show(*map(comparison_table, made), *_written(json))


def _written(*paths: Path | None) -> list[str]:
    """Return a text with the paths of the written files."""
    files = [f"Written: {path}" for path in paths if path is not None and not is_stdout(path)]
    return ["\n".join(files)] if files else []


def _check_combinations(laws: Laws, outputs: Outputs) -> None:
    """End with exit code 2 for options that have no effect."""
    if laws.exponent is not None and laws.law is not Law.STRIBECK:
        end(
            f"--exponent belongs to the Stribeck law, not to --law {laws.law.value}. Leave it out,"
            " or write --law stribeck."
        )
    if laws.neg_exponent is not None and laws.backward is not Law.STRIBECK:
        end(
            f"--neg-exponent belongs to the Stribeck law, not to {laws.backward.value}. Leave it"
            " out, or write --neg-law stribeck."
        )
    if outputs.title is not None and outputs.report is None:
        end("--title is the title of a report: give --report FILE too, or leave it out.")
    if outputs.citation and outputs.report is None and outputs.json is None:
        end("--citation is for the report and the JSON: give --report FILE too, or leave it out.")
    if outputs.modelica and is_stdout(outputs.json):
        end("--modelica is not used: --json - prints the JSON alone. Name a file for --json.")


@contextlib.contextmanager
def _with_sweep(
    data: SweepFile, choice: FitChoice, outputs: Outputs
) -> "Iterator[tuple[Sweep, Work]]":
    """Check the options and files, and yield the sweep and the progress of the command."""
    with plain_errors(), progress() as doing:
        _check_usage(data, choice)
        # Check before the work that the files can be written and do not replace other files.
        asked = {"report": outputs.report, "json": outputs.json}
        files = {
            name: path for name, path in asked.items() if path is not None and not is_stdout(path)
        }
        for name, path in files.items():
            if path.exists() and data.sweep.exists() and path.samefile(data.sweep):
                end(
                    f"--{name} {path} is the sweep itself, which is never overwritten. Name another"
                    " file."
                )
        if len({path.resolve() for path in files.values()}) < len(files):
            end(f"--report and --json both name {outputs.json}. Give each a file of its own.")
        for name, path in files.items():
            if path.is_file() and not outputs.overwrite:
                raise FileExistsError(
                    f"{path} exists. Give --overwrite to replace it, or name another file for"
                    f" --{name}."
                )
            if name == "report":
                from frictax.report import check_report

                check_report(path)
            else:
                from frictax.files.replacing import check_target

                check_target(path, "the JSON")
        doing("Reading")
        from frictax.measurements import Sweep

        where = conditions(data.where or [])
        rows = ", ".join(f"{column} = {value}" for column, value in where.items())
        as_given = (
            "velocity force sigma breakaway sign velocity_unit force_unit sigma_known decimal"
        )
        sweep = Sweep.from_csv(
            data.sweep,
            **{name: getattr(data, name) for name in as_given.split()},
            where=where,
            direction=data.direction.value,
            delimiter=data.delimiter.replace("\\t", "\t"),
            name=f"{data.sweep.stem} ({rows})" if rows else data.sweep.stem,
            citation=outputs.citation,
        )
        for note in sweep.notes:
            print_error(as_option_names(note))
        yield sweep, doing


def _check_usage(data: SweepFile, choice: FitChoice) -> None:
    """End with exit code 2 for options that contradict each other."""
    if choice.each_direction and data.direction is not Direction.BOTH:
        way = data.direction.value
        end(
            f"A law for each direction needs both, got --direction {way}. Leave out one of the two."
        )
    if data.sigma_known and data.sigma is None:
        end(
            "--sigma-known says that --sigma is exact: name its column with --sigma COLUMN, or"
            " leave it out."
        )
    if data.sign not in (1, -1):
        end(
            f"--sign must be 1 or -1, got {data.sign}. It multiplies the force; units are"
            " declared by name."
        )
    for name, known in (("delimiter", None), ("decimal", (".", ","))):
        text = getattr(data, name)
        if len(text.replace("\\t", "\t")) != 1 or (known and text not in known):
            end(
                f"--{name} must be {'one character' if known is None else 'a point or a comma'},"
                f" got {text!r}."
            )
    if data.delimiter == data.decimal:
        end(
            f"--delimiter and --decimal are both {data.decimal!r}. Name the sign between the"
            " cells: --delimiter ';', say."
        )


def _start(law: Law, sweep: "Sweep", exponent: float) -> Any:
    """Return a law of the given kind with start values estimated from the sweep."""
    from frictax.fitting import starting_law
    from frictax.laws import LAWS_WITH_START

    kinds = {kind.__name__.lower(): kind for kind in LAWS_WITH_START}
    return starting_law(kinds[law.value], sweep, exponent=exponent)


def _compare_laws(sweep: "Sweep", choice: FitChoice) -> "list[Comparison]":
    """Return a comparison of laws, or one comparison for each direction of motion."""
    from frictax.analysis import compare
    from frictax.fitting import Huber, Squares

    loss = Huber() if choice.robust else Squares()
    offset = 0.0 if choice.offset else None
    parts = (sweep.positive(), sweep.negative()) if choice.each_direction else (sweep,)
    return [compare(part, loss=loss, offset=offset) for part in parts]
