"""Whether all that a problem asks for can be built: asked before the work, not found out
after it.
"""

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import equinox as eqx

import frictax as fx
from frictax.analysis import Guarded
from frictax.analysis.derived.common import common
from frictax.analysis.selection.structures import check_structures
from frictax.fitting.checks import check_arguments
from frictax.fitting.limits import shared_limits
from frictax.fitting.posing import fit_engine, pose
from frictax.fitting.problem.setup import check_channels
from frictax.laws import as_law
from frictax.text import suggestion

from .building import LAWS, Place, build, computed
from .deriving import check_derived
from .problem import Problem, paths_of
from .schema import LawEntry


def check(problem: Problem) -> None:
    """Build every fit, account of errors and score of a problem without running any; raises
    `ProblemError` for what cannot be.
    """
    if isinstance(problem.data, fx.Sweep):
        check_laws(problem)
        return
    place, names, paths, titles = problem.place, [], [], []
    for here, structure in _structures(problem).values():
        names += _fitted_numbers(problem, here, structure)
        paths += paths_of(structure.model, problem.fitted)
        titles += [title for title, *_ in common(structure.model)]
    asked = problem.content.derived
    check_derived(asked, place.below("derived"), problem.fitted, paths, dict.fromkeys(titles))
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
            computed(functools.partial(_plan, problem.machine, data[label], objective), here)


def check_laws(problem: Problem) -> None:
    """The laws that a sweep's file names can be made."""
    check_derived(problem.content.derived, problem.place.below("derived"))
    place = problem.place.below("law")
    for way, entry in laws_asked(problem).items():
        if way not in ("f_pos", "f_neg") or entry in (None, "compare"):
            continue
        if isinstance(entry, str):
            kind_of_law(entry, place.below(way))
        else:
            as_law(build(entry, LAWS, place.below(way)))


def laws_asked(problem: Problem) -> dict[str, Any]:
    """What the file says of the laws of a sweep."""
    return (problem.content.law or LawEntry()).model_dump()


def kind_of_law(name: str, place: Place) -> Any:
    """The kind of law called `name`, whose start values the data give."""
    if name not in LAWS[:3]:
        raise place.error(
            f'must be "compare", {", ".join(LAWS[:3])} or a table with a `kind`, got'
            f" {name!r}.{suggestion(name, ['compare', *LAWS[:3]])}"
        )
    return getattr(fx, name)


def shared_settings(problem: Problem) -> tuple[dict[str, Any], fx.Structure]:
    """The options of `fit` that all structures share, and the machine as given with what is its
    own.
    """
    settings = problem.settings()
    own = {key: settings.pop(key) for key in ("free", "own", "priors", "instruments", "bounds")}
    own |= {key: settings.pop(key) for key in ("tied", "log_scale")}
    return settings, fx.Structure(problem.machine, **own)


def _structures(problem: Problem) -> Mapping[str, tuple[Place, fx.Structure]]:
    """Each with its place in the file; raises where one is no other machine than that given."""
    settings, given = shared_settings(problem)
    if problem.structures:
        entry = problem.content.compare
        given_too = {entry.given: given, **problem.structures}
        computed(
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
                "changes nothing of the machine, nor of what is free. Say what differs, or leave it"
                " out."
            )
        out[name] = (here, structure)
    return out


def _fitted_numbers(problem: Problem, place: Place, structure: fx.Structure) -> Iterable[str]:
    """The names of the numbers that a structure fits, once its fit is seen to be possible."""
    settings = problem.settings()
    first = (settings["start"], (), (), shared_limits(structure.bounds, structure.own))
    last = (settings["objective"], structure.own, structure.priors, structure.bounds)
    posed: Any = None
    for stage in (last,) if settings["start"] is None else (first, last):
        ask = functools.partial(_posed, problem, structure, settings["loss"], *stage)
        posed = computed(ask, place)
    account = problem.errors() or Guarded()
    computed(lambda: account.check(posed), problem.place.below("uncertainty"))
    return [name for u in posed.unknowns if not u.hidden for name in u.names]


def _posed(
    problem: Problem,
    structure: fx.Structure,
    loss: Any,
    objective: Any,
    own: Any,
    priors: Any,
    limits: Any,
) -> Any:
    records, instruments = problem.fitted, structure.instruments
    check_arguments(structure.model, records, objective, None, priors, instruments)
    engine = fit_engine(None, fx.LevenbergMarquardt())
    arguments = (own, objective, priors, instruments, engine, loss, limits)
    return pose(
        structure.model, records, structure.free, *arguments, structure.tied, structure.log_scale
    )[0]


def _plan(machine: Any, record: fx.Record, objective: Any) -> None:
    model = objective.machine(machine)
    check_channels(model, record)
    objective.prepare(model, record)
