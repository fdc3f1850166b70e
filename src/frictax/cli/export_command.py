"""The command `export`: a fit as an FMU, or as C, JavaScript or structured text."""

import dataclasses
import enum
from pathlib import Path

import typer

from .options import OUT, argument, option, overwrite_option, with_options
from .working import plain_errors, progress, refuse_existing, show


class Target(enum.StrEnum):
    """The formats to which a fit is exported."""

    FMU = "fmu"
    C = "c"
    JAVASCRIPT = "javascript"
    ST = "st"


SUFFIXES = {Target.FMU: ".fmu", Target.C: ".c", Target.JAVASCRIPT: ".js", Target.ST: ".st"}
WHAT = "What is exported"


@dataclasses.dataclass(frozen=True)
class Export:
    """The options of `frictax export`."""

    problem: Path = argument(
        "PROBLEM", "The folder of an identified problem, or a saved fit such as motor/result.fit."
    )
    to: Target = option(WHAT, "", "The format.", default=Target.C)
    friction: str | None = option(
        WHAT, "CONTACT", "Export only the friction of this contact, as a function for a controller."
    )
    record: str | None = option(
        WHAT, "RECORD", "The record whose values --friction uses, if they differ by record."
    )
    inputs: list[str] | None = option(
        WHAT,
        "NAME=held|linear",
        "An input that the caller gives, held or linear between samples. The option can be"
        " repeated. Without it, the export contains the recorded inputs.",
        "--input",
    )
    outputs: list[str] | None = option(
        WHAT,
        "NAME",
        "A variable to return. The option can be repeated. Default: positions, speeds and friction"
        " forces.",
        "--output",
    )
    out: Path | None = option(
        OUT, "FILE", "The file. Default: machine.c (.fmu, .js, .st), next to the fit."
    )
    overwrite: bool = overwrite_option()


@with_options
def export(options: Export) -> None:
    """Write an identified machine as an FMU, or as C, JavaScript or structured text (IEC 61131-3).
    The export simulates the machine with its stick and slip events. For the fit of a sweep, write
    the law as a function for a controller.
    """
    to, friction = options.to, options.friction
    inputs = dict[str, str]()
    for given in options.inputs or ():
        name, equals, how = given.partition("=")
        if "" in (name, equals, how):
            raise typer.BadParameter(f"--input must be NAME=held or NAME=linear, got {given!r}.")
        if name in inputs:
            raise typer.BadParameter(f"--input names {name!r} twice. Leave one of the two out.")
        inputs[name] = how
    with plain_errors(options=False), progress() as doing:
        doing("Reading")
        import frictax as fx
        from frictax.files.replacing import check_target, write_whole

        saved = options.problem
        if saved.suffix != ".fit":
            from frictax.problems.problem import find

            problem = find(saved)
            saved = problem.with_name("result.fit")
            if not saved.exists():
                raise FileNotFoundError(
                    f"{problem.parent} has no result.fit, so there is no fit to export. Run"
                    f" `frictax identify {options.problem}` first."
                )
        found = fx.load_fit(saved)
        law = found.of_sweep or friction is not None
        if law and to is Target.FMU:
            raise ValueError("A friction law is exported to c, javascript or st, got --to fmu.")
        if options.record is not None and friction is None:
            raise ValueError("--record belongs to --friction. Leave it out.")
        if law and (inputs or options.outputs):
            raise ValueError("--input and --output belong to a machine. Leave them out for a law.")
        stem = "friction" if law else "machine"
        target = options.out or saved.with_name(stem + SUFFIXES[to])
        check_target(target, "the export")
        refuse_existing(target, options.overwrite)
        doing("Exporting")
        how = {"inputs": inputs, "outputs": options.outputs}
        if to is Target.FMU:
            fx.to_fmu(found, target, overwrite=options.overwrite, **how)
        else:
            if law:
                how = {"language": to.value, "label": options.record}
                text = fx.to_feedforward(found, friction, **how)
            else:
                write = {"c": fx.to_c, "javascript": fx.to_javascript, "st": fx.to_structured_text}
                text = write[to](found, **how)
            write_whole(target, text, replace=options.overwrite)
    show(f"Written: {target}")
