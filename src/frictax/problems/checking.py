"""Check before a fit that all objects of a problem can be built; compute derived quantities."""

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import equinox as eqx

import frictax as fx
from frictax.analysis import Guarded
from frictax.analysis.derived.derived import (
    common,
    common_estimates,
    depends_on_record,
    expression,
    is_title,
)
from frictax.analysis.selection.structures import check_structures
from frictax.fitting.build_problem import build_problem, shared_limits
from frictax.fitting.checks import check_data
from frictax.fitting.options import DEFAULTS, FitOptions
from frictax.fitting.problem.initial_state import own_parameters
from frictax.fitting.problem.setup import check_channels
from frictax.laws import as_law
from frictax.notice import Notice
from frictax.parameters import parameters
from frictax.text import brief, suggestion

from .building import LAWS, LAWS_WITH_START, Place, build, call_checked
from .problem import Problem, paths_of
from .schema import DerivedEntry, FitEntry, LawEntry

Asked = Mapping[str, str | DerivedEntry]


def check(problem: Problem) -> None:
    """Build every fit, noise model and validation objective of a problem, without a simulation.

    **Raises:** `ProblemError` for the first object that cannot be built.
    """
    if isinstance(problem.data, fx.Sweep):
        check_laws(problem)
        return
    place, names, paths, titles = problem.place, [], [], []
    for here, structure in _structures(problem).values():
        settings, _ = shared_settings(problem)
        own = {f.name: getattr(structure, f.name) for f in dataclasses.fields(structure)}
        options = FitOptions(**{**settings, **{k: v for k, v in own.items() if k in DEFAULTS}})
        stages = [options]
        if options.start is not None:
            bounds = shared_limits(structure.bounds, structure.own)
            first = {"objective": options.start, "own": (), "priors": (), "bounds": bounds}
            stages.insert(0, dataclasses.replace(options, **first))
        posed: Any = None
        for stage in stages:
            given = structure.model, problem.fitted_records
            call_checked(functools.partial(check_data, *given), here)
            posed = call_checked(functools.partial(build_problem, *given, stage), here)[0]
        account = problem.errors() or Guarded()
        call_checked(functools.partial(account.check, posed), problem.place.below("uncertainty"))
        names += [name for u in posed.unknowns if not u.hidden for name in u.names]
        paths += paths_of(structure.model, problem.fitted_records)
        titles += [title for title, *_ in common(structure.model)]
        own_paths = own_parameters(structure.model, structure.own)
        if own_paths and problem.content.validation.records:
            raise place.below("validation", "records").error(
                "must be empty, because each fitted record has its own value of"
                f" {next(iter(own_paths))}, and another record has none. Got"
                f" {list(problem.content.validation.records)}. Leave this key out, or share this"
                " parameter."
            )
    asked = problem.content.derived
    check_derived(
        asked, place.below("derived"), problem.fitted_records, paths, dict.fromkeys(titles)
    )
    below = place.below("uncertainty", "profiles")
    for name in problem.content.uncertainty.profiles:
        if name not in names:
            raise below.error(
                f"names {name!r}, which is not fitted.{suggestion(name, names)} Fitted are:"
                f" {', '.join(dict.fromkeys(names))}."
            )
    data: Any = problem.data
    for label in problem.content.validation.records:
        for i, objective in enumerate(problem.scores()):
            here = place.below("validation", "scores", str(i))
            model = call_checked(functools.partial(objective.machine, problem.machine), here)
            call_checked(functools.partial(check_channels, model, data[label]), here)
            call_checked(functools.partial(objective.prepare, model, data[label]), here)


def check_laws(problem: Problem) -> None:
    """Raise `ProblemError` if a law or a derived quantity of a sweep cannot be built."""
    check_derived(problem.content.derived, problem.place.below("derived"))
    place = problem.place.below("law")
    for way, entry in law_entries(problem).items():
        if way not in ("f_pos", "f_neg") or entry in (None, "compare"):
            continue
        if isinstance(entry, str):
            law_class(entry, place.below(way))
        else:
            as_law(build(entry, LAWS, place.below(way)))


def law_entries(problem: Problem) -> dict[str, Any]:
    """Return the table [law] of a problem with a sweep, completed by its defaults."""
    return (problem.content.law or LawEntry()).model_dump()


def law_class(name: str, place: Place) -> Any:
    """Return the law class `name`. Raise `ProblemError` if data cannot provide its start values."""
    if name not in LAWS_WITH_START:
        raise place.error(
            f'must be "compare", {", ".join(LAWS_WITH_START)} or a table with a `kind`, got'
            f" {name!r}.{suggestion(name, ['compare', *LAWS_WITH_START])}"
        )
    return getattr(fx, name)


def shared_settings(problem: Problem) -> tuple[dict[str, Any], fx.Structure]:
    """Return the options of `fit` that all structures share, and the `Structure` that [machine] and
    the remaining options of [fit] describe.
    """
    settings = problem.settings()
    names = [f.name for f in dataclasses.fields(fx.Structure) if f.name in settings]
    own = {name: settings.pop(name) for name in names}
    return settings, fx.Structure(problem.machine, **own)


def _structures(problem: Problem) -> Mapping[str, tuple[Place, fx.Structure]]:
    """Return a dict from name to (place, structure), including the structure of [machine]. Raise
    `ProblemError` if a structure in [structures] equals the structure of [machine], or if [fit] has
    an option that `compare` does not have.
    """
    settings, given = shared_settings(problem)
    if problem.structures:
        entry, fit = problem.content.compare, problem.content.fit
        for key in ("loss", "level", "starts", "spread", "seed", "rounds"):
            value, default = getattr(fit, key), FitEntry.model_fields[key].default
            if value not in (default, {"kind": default}):
                raise problem.place.below("fit", key).error(
                    "is not used with [structures], because `compare` does not have this option,"
                    f" got {brief(value, 80)}. Leave it out."
                )
        given_too = {entry.given: given, **problem.structures}
        call_checked(
            lambda: check_structures(given_too, settings["objective"], entry.repeats, entry.bands),
            problem.place,
        )
    out = {problem.content.compare.given: (problem.place.below("fit"), given)}
    for name, structure in problem.structures.items():
        here = problem.place.below("structures", name)
        same = all(
            getattr(structure, key) == getattr(given, key)
            for key in ("free", "own", "bounds", "tied", "log_scale")
        )
        same = same and bool(eqx.tree_equal(list(structure.priors), list(given.priors)))
        if same and eqx.tree_equal(structure.model, given.model):
            raise here.error(
                "does not change the machine or the free parameters. Write what differs, or leave"
                " it out."
            )
        out[name] = (here, structure)
    return out


def check_derived(
    asked: Asked,
    place: Place,
    records: Iterable[str] = (),
    known: Iterable[str] | None = None,
    titles: Iterable[str] = (),
) -> None:
    """Raise `ProblemError` for a derived quantity that cannot be computed, because it is not an
    arithmetic expression or contains an unknown record or path.

    `known`: all paths of the machine, or None to accept any path; `titles`: names of the usual
    quantities of the machine.
    """
    known, titles = None if known is None else list(known), list(titles)
    for name, entry in asked.items():
        here, (value, _, record) = place.below(name), _parts(entry)
        if record is not None and record not in records:
            raise here.error(
                f"names the record {record!r}, which is not"
                f" fitted.{suggestion(record, records)} There are: {', '.join(records)}."
            )
        if is_title(value):
            if known is not None and value not in titles:
                raise here.error(
                    f"names {value!r}, which is no common quantity of this"
                    f" machine.{suggestion(value, titles)} It has: {', '.join(titles) or 'none'}."
                )
            continue
        for path in call_checked(lambda value=value: expression(value), here, values=True).paths:
            if known is not None and path not in known:
                raise here.error(
                    f"names {path!r}, which the machine does not have.{suggestion(path, known)}"
                )


@contextlib.contextmanager
def without_stopping(notices: list[Notice]) -> Iterator[None]:
    """Append a notice to `notices` if the body raises `ValueError`: a fit that took long is not
    lost if one of its results cannot be computed.
    """
    try:
        yield
    except ValueError as why:
        notices.append(Notice("not-computed", "", {"why": str(why)}))


def derive(
    asked: Asked, found: fx.FitResult, uncertainty: Any, place: Place, notices: list[Notice]
) -> tuple[fx.Estimate, ...]:
    """Return the derived quantities of the file, except those with parameters that the chosen
    structure does not have. Without a table [derived], return the usual quantities of the machine.

    A quantity that differs by record, and for which the file does not name a record, is returned
    once for each record. A quantity that cannot be computed adds a notice to `notices`.
    """
    if not asked:
        return common_estimates(found, uncertainty)
    sweep = found.sweep if found.of_sweep else None
    titles = [title for title, *_ in common(found.model, sweep)]
    known, out = {p.path for p in parameters(found.problem.setup)}, []
    for name, entry in asked.items():
        value, unit, record = _parts(entry)
        if value not in titles if is_title(value) else not known >= set(expression(value).paths):
            continue
        here, each = place.below(name), {name: record}
        with without_stopping(notices):
            differs = functools.partial(depends_on_record, found, value)
            if record is None and call_checked(differs, here, values=True):
                each = {f"{name}@{label}": label for label in found.records}
            for title, label in each.items():
                options = {"name": title, "by": uncertainty, "label": label}
                options |= {} if is_title(value) else {"unit": unit}
                made = functools.partial(found.derived, value, **options)
                out += call_checked(made, here, values=True).estimates
    return tuple(out)


def _parts(entry: str | DerivedEntry) -> tuple[str, str, str | None]:
    if isinstance(entry, str):
        return entry, "", None
    return entry.value, entry.unit, entry.record
