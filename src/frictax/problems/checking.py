"""Check before the work that everything in a problem can be built."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any

import equinox as eqx

import frictax as fx
from frictax.analysis import Guarded
from frictax.analysis.derived.common import common
from frictax.analysis.selection.structures import check_structures
from frictax.fitting.build_problem import build_problem
from frictax.fitting.checks import check_data
from frictax.fitting.limits import shared_limits
from frictax.fitting.options import DEFAULTS, FitOptions
from frictax.fitting.problem.setup import check_channels
from frictax.laws import as_law
from frictax.text import suggestion

from .building import LAWS, Place, build, call_checked
from .deriving import check_derived
from .problem import Problem, paths_of
from .schema import LawEntry


def check(problem: Problem) -> None:
    """Build every fit, noise model and score of a problem without running any.

    **Raises:** `ProblemError` for the first that cannot be built.
    """
    if isinstance(problem.data, fx.Sweep):
        check_laws(problem)
        return
    place, names, paths, titles = problem.place, [], [], []
    for here, structure in _structures(problem).values():
        names += _fitted_numbers(problem, here, structure)
        paths += paths_of(structure.model, problem.fitted_records)
        titles += [title for title, *_ in common(structure.model)]
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
            call_checked(functools.partial(_plan, problem.machine, data[label], objective), here)


def check_laws(problem: Problem) -> None:
    """Raise `ProblemError` for laws of a sweep that cannot be built."""
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
    """Return the table [law] of a sweep."""
    return (problem.content.law or LawEntry()).model_dump()


def law_class(name: str, place: Place) -> Any:
    """Return the class of law called `name`, whose start values are found from the data."""
    if name not in LAWS[:3]:
        raise place.error(
            f'must be "compare", {", ".join(LAWS[:3])} or a table with a `kind`, got'
            f" {name!r}.{suggestion(name, ['compare', *LAWS[:3]])}"
        )
    return getattr(fx, name)


def shared_settings(problem: Problem) -> tuple[dict[str, Any], fx.Structure]:
    """Return the options of `fit` that all structures share, and the machine as given, with the
    options of its structure.
    """
    settings = problem.settings()
    names = [f.name for f in dataclasses.fields(fx.Structure) if f.name in settings]
    own = {name: settings.pop(name) for name in names}
    return settings, fx.Structure(problem.machine, **own)


def _structures(problem: Problem) -> Mapping[str, tuple[Place, fx.Structure]]:
    """Return each structure with its place in the file; raise if one does not differ from the
    machine as given.
    """
    settings, given = shared_settings(problem)
    if problem.structures:
        entry = problem.content.compare
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
        same = same and not structure.priors and not given.priors
        if same and eqx.tree_equal(structure.model, given.model):
            raise here.error(
                "does not change the machine or the free parameters. Write what differs, or leave"
                " it out."
            )
        out[name] = (here, structure)
    return out


def _fitted_numbers(problem: Problem, place: Place, structure: fx.Structure) -> Iterable[str]:
    """Return the names of the parameters that a structure fits; raise if it cannot be fitted."""
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
        posed = call_checked(
            functools.partial(_problem, structure.model, problem.fitted_records, stage), place
        )
    account = problem.errors() or Guarded()
    call_checked(lambda: account.check(posed), problem.place.below("uncertainty"))
    return [name for u in posed.unknowns if not u.hidden for name in u.names]


def _problem(model: Any, records: Mapping[str, Any], options: FitOptions) -> Any:
    check_data(model, records)
    return build_problem(model, records, options)[0]


def _plan(machine: Any, record: fx.Record, objective: Any) -> None:
    model = objective.machine(machine)
    check_channels(model, record)
    objective.prepare(model, record)
