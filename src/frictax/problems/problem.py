"""What a problem file asks, and whether every name in it is one of its machine."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import frictax as fx
from frictax.parameters import parameters
from frictax.text import suggestion

from .building import ERRORS, LOSSES, OBJECTIVES, PRIORS, Place, build, checked, each_built
from .schema import ProblemFile


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """What is to be identified, from which data, and how it is judged.

    - `file`: where it stands; `content`: what it says; `sha256` of its text.
    - `machine`: with start values, None for a sweep; `structures`: by name, other machines with
      what is free in them.
    - `data`: label -> `Record`, in the order written, or the `Sweep`; `sources`: file -> its
      SHA-256.
    """

    file: Path
    content: ProblemFile
    sha256: str
    machine: Any
    structures: Mapping[str, fx.Structure]
    data: Mapping[str, fx.Record] | fx.Sweep
    sources: Mapping[str, str]

    @property
    def place(self) -> Place:
        return Place(self.file.name)

    @property
    def fitted(self) -> dict[str, fx.Record]:
        """The records that are fitted: those named, else all that do not serve validation only."""
        assert isinstance(self.data, Mapping)
        named = self.content.fit.records
        if named is None:
            named = [label for label in self.data if label not in self.content.validation.records]
        return {label: self.data[label] for label in named}

    def settings(self) -> dict[str, Any]:
        """The options of `fit` for records that the file gives."""
        fit, place = self.content.fit, self.place.below("fit")
        out: dict[str, Any] = {"free": fit.free, "own": fit.own, "bounds": fit.bounds}
        out |= {"tied": fit.tied, "log_scale": fit.log_scale}
        out |= {"starts": fit.starts, "spread": fit.spread, "seed": fit.seed, "level": fit.level}
        out["rounds"] = fit.rounds
        out["objective"] = build(fit.objective, OBJECTIVES, place.below("objective"))
        out["start"] = (
            None if fit.start is None else build(fit.start, OBJECTIVES, place.below("start"))
        )
        out["priors"] = each_built(fit.priors, PRIORS, place.below("priors"))
        out["loss"] = build(fit.loss, LOSSES, place.below("loss"))
        out["instruments"] = instruments_of(fit.instruments, place.below("instruments"))
        out["engine"] = None if fit.tolerance is None else fx.OnSamples(tolerance=fit.tolerance)
        return out

    def criterion(self) -> dict[str, Any]:
        """The options of `compare` for structures."""
        entry, settings = self.content.compare, self.settings()
        out = {key: settings[key] for key in ("objective", "start", "engine")}
        out |= {"repeats": entry.repeats, "bands": entry.bands}
        cutoff = getattr(out["objective"], "cutoff", None)
        return out if cutoff is None else out | {"cutoff": cutoff}

    def errors(self) -> Any:
        """The account of the residuals by which errors are stated; None where the file leaves it
        open.
        """
        asked, place = self.content.uncertainty.errors, self.place.below("uncertainty", "errors")
        return None if asked is None else build(asked, ERRORS, place)

    def scores(self) -> list[Any]:
        """The objectives by which validation records are judged."""
        place = self.place.below("validation", "scores")
        return each_built(self.content.validation.scores, OBJECTIVES, place)


def instruments_of(entries: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """The sensors and drives that a file describes, by channel."""
    return {
        c: build({"kind": "Instrument", **values}, ["Instrument"], place.below(c))
        for c, values in entries.items()
    }


def check_names(problem: Problem) -> None:
    """Labels and paths that the file names exist, its kinds can be made, and nothing validates what
    was fitted.
    """
    content, place = problem.content, problem.place
    for section, labels in (
        ("fit", content.fit.records or []),
        ("validation", content.validation.records),
    ):
        here = place.below(section, "records")
        for label in labels:
            if label not in content.records:
                known = ", ".join(content.records)
                raise here.error(
                    f"names {label!r}, and there is no such"
                    f" record.{suggestion(label, content.records)} There are: {known}."
                )
    if content.compare.given in content.structures:
        raise place.below("compare", "given").error(
            f"names {content.compare.given!r}, as a structure does. Give it another name."
        )
    both = [label for label in content.validation.records if label in problem.fitted]
    if both:
        here = place.below("validation", "records")
        raise here.error(
            f"names {both[0]!r}, which is fitted: a record validates only what it did not make."
            " Name it in one of the two."
        )
    if not problem.fitted:
        raise place.below("fit").error(
            "has no record to fit: all of them serve validation, or fit.records is empty. Name one."
        )
    settings = problem.settings()
    problem.errors()
    problem.scores()
    problem.criterion()
    known = paths_of(
        checked(
            lambda: settings["objective"].machine(problem.machine),
            place.below("fit", "objective"),
        ),
        problem.fitted,
    )
    for key, paths in (
        ("free", content.fit.free or []),
        ("own", list(content.fit.own)),
        ("bounds", list(content.fit.bounds)),
        ("tied", list(content.fit.tied)),
        ("log_scale", content.fit.log_scale),
    ):
        for path in paths:
            if not any(is_below(p, path) for p in known):
                raise place.below("fit", key).error(
                    f"names {path!r}, which the machine does not have.{suggestion(path, known)}"
                )


def is_below(path: str, other: str) -> bool:
    """Whether `path` is `other` or a part of it."""
    return path == other or path.startswith(f"{other}.")


def paths_of(model: Any, records: Mapping[str, fx.Record]) -> list[str]:
    """All that a fit may move: the machine's parameters, and those of its sensors and drives."""
    channels = dict.fromkeys(
        f"{kind}.{name}"
        for kind in ("inputs", "outputs")
        for r in records.values()
        for name in getattr(r, kind)
    )
    own = parameters(fx.Instrument())
    instruments = [f"{channel}.{p.path}" for channel in channels for p in own]
    return [p.path for p in parameters(model)] + instruments
