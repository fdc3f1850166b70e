"""The options of a fit, defined once for `fit`, `fit_many`, `outlook`, `fleet`, `Structure` and
problem files.

`FitOptions` contains the values and defaults, and checks the values. The `TypedDict`s inform type
checkers and editors about the options of each function and their types.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import numpy as np

from frictax.annotations import Checked
from frictax.arguments import check_count
from frictax.engine import Engine, OnSamples
from frictax.laws import AbstractLaw
from frictax.progress import Progress

from .problem.losses import AbstractLoss
from .problem.objectives import AbstractObjective, Steady
from .problem.priors import AbstractPrior
from .problem.setup import Instrument
from .problem.steady import SteadyFriction
from .problem.ties import Tied
from .search.methods import AbstractMethod, LevenbergMarquardt

Own = Mapping[str, Sequence[float] | None] | Iterable[str]
Bounds = Mapping[str, tuple[float, float]]
Law = AbstractLaw | SteadyFriction | type[AbstractLaw] | Sequence[Sequence[float]]
_Function = TypeVar("_Function", bound=Callable[..., Any])


class ParameterOptions(TypedDict, total=False):
    """Options that select the fitted and the tied parameters."""

    free: str | Iterable[str] | None
    tied: Tied | None


class DomainOptions(TypedDict, total=False):
    """Options for the scale and the bounds of the fitted parameters."""

    log_scale: str | Iterable[str]
    bounds: Bounds | None


class SearchOptions(TypedDict, total=False):
    """Options for the method, the loss, the level of the intervals, and the progress report."""

    method: AbstractMethod | None
    loss: AbstractLoss | None
    level: float
    progress: bool | Progress


class StartOptions(TypedDict, total=False):
    """Options for the points from which the search starts."""

    starts: int
    spread: float
    seed: int


class SweepOptions(ParameterOptions, DomainOptions, SearchOptions, StartOptions, total=False):
    """The options of `fit` for a law and a sweep."""

    f_neg: Law | None
    peak: float | None
    offset: float | None
    priors: Sequence[AbstractPrior]


class RecordOptions(ParameterOptions, DomainOptions, SearchOptions, StartOptions, total=False):
    """The options of `fit` for a machine and its records."""

    own: Own
    objective: AbstractObjective | None
    start: AbstractObjective | None
    priors: Sequence[AbstractPrior]
    instruments: Mapping[str, Instrument] | None
    engine: Engine | None
    rounds: int | None


class FitOptionsDict(SweepOptions, RecordOptions, total=False):
    """All options of `fit`."""


class ManyOptions(ParameterOptions, SearchOptions, total=False):
    """The options of `fit` that `fit_many` also accepts."""

    objective: AbstractObjective | None
    engine: OnSamples | None


class FleetFitOptions(ParameterOptions, DomainOptions, SearchOptions, total=False):
    """The options of `fit` that `fleet` also accepts."""

    objective: AbstractObjective | None
    instruments: Mapping[str, Instrument] | None


class NoSuchOption:
    """The type that type checkers give a misspelt option, so that their message names the option.
    Without this type, pyright only reports that no overload of the function matches.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class FitOptions:
    """The options of a fit with their defaults; see `fit` for their meaning.

    **Raises:** `ValueError` for a value that is invalid in every fit.
    """

    f_neg: Checked[Law | None] = None
    peak: Checked[float | None] = None
    offset: Checked[float | None] = None
    free: Checked[str | Iterable[str] | None] = None
    tied: Checked[Tied | None] = None
    log_scale: Checked[str | Iterable[str]] = ()
    own: Checked[Own] = ()
    objective: Checked[AbstractObjective | None] = None
    start: Checked[AbstractObjective | None] = None
    priors: Checked[Sequence[AbstractPrior]] = ()
    bounds: Checked[Bounds | None] = None
    instruments: Checked[Mapping[str, Instrument] | None] = None
    engine: Checked[Engine | None] = None
    method: Checked[AbstractMethod | None] = None
    loss: Checked[AbstractLoss | None] = None
    level: Checked[float] = 0.95
    starts: Checked[int] = 1
    spread: Checked[float] = 0.5
    seed: Checked[int] = 0
    rounds: Checked[int | None] = None
    progress: Checked[bool | Progress] = False

    def __post_init__(self) -> None:
        for name in ("objective", "start"):
            value = getattr(self, name)
            if value is not None and (
                not isinstance(value, AbstractObjective) or isinstance(value, Steady)
            ):
                raise ValueError(
                    f"`{name}` must be FreeRun(), Windows(), ClosedLoop(...) or InverseDynamics(),"
                    f" got {value!r}."
                )
        for prior in self.priors if isinstance(self.priors, Sequence) else [self.priors]:
            if not isinstance(prior, AbstractPrior) or not isinstance(self.priors, Sequence):
                raise ValueError(
                    f"`priors` must be a list of Normal(...) or Smooth(...), got {prior!r}."
                )
        if self.instruments is not None and (
            not isinstance(self.instruments, Mapping)
            or not all(isinstance(i, Instrument) for i in self.instruments.values())
        ):
            raise ValueError(
                "`instruments` must be a dict of channel -> Instrument(...), got"
                f" {self.instruments!r}. Its keys are like 'inputs.drive'."
            )
        if not isinstance(self.engine, Engine | None):
            raise ValueError(
                "`engine` of a fit must be `OnSamples(...)` or `Adaptive(...)`, got"
                f" {self.engine!r}."
            )
        self._check_search()

    def _check_search(self) -> None:
        if not isinstance(self.method, AbstractMethod | None):
            raise ValueError(
                f"`method` must be LevenbergMarquardt() or Optax(...), got {self.method!r}. Write"
                f" Optax({self.method!r}) for an optax rule."
            )
        if not isinstance(self.loss, AbstractLoss | None):
            raise ValueError(f"`loss` must be Squares() or Huber(), got {self.loss!r}.")
        if not isinstance(self.level, int | float) or not 0 < self.level < 1:
            raise ValueError(
                f"`level` must be a number between 0 and 1, got {self.level!r}. 0.95 is usual."
            )
        check_count("`starts`", self.starts, 1)
        if (
            not isinstance(self.spread, int | float)
            or isinstance(self.spread, bool)
            or not (np.isfinite(self.spread) and self.spread >= 0)
        ):
            raise ValueError(
                f"`spread` must be a number >= 0, got {self.spread!r}. 0.5 draws starts about half"
                " their size apart."
            )
        check_count("`seed`", self.seed, 0, "Leave it out for 0.")
        if self.rounds is not None:
            check_count("`rounds`", self.rounds, 0, "0 is one search alone, 4 are usual.")

    @property
    def is_least_squares(self) -> bool:
        """True if Levenberg-Marquardt minimises plain least squares."""
        by_newton = isinstance(self.method, LevenbergMarquardt | None)
        return by_newton and (self.loss is None or self.loss.rounds == 1)


DEFAULTS: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(FitOptions)}


def is_given(value: Any) -> bool:
    """Return True if an option has a value; None and () mean that the option is left out."""
    return value is not None and not (isinstance(value, tuple) and value == ())


def refuse(given: Mapping[str, Any], of: str, here: str) -> None:
    """Raise `ValueError` if an option in `given` has a value. The message states that the option is
    for `of` (such as "a record"), and not for `here` (such as "a sweep").
    """
    for name, value in given.items():
        if is_given(value):
            raise ValueError(
                f"`{name}` is an option for {of} and means nothing for {here}, got {value!r}. Leave"
                " it out."
            )


def names_of(options: type) -> list[str]:
    """Return the names of the options of a `TypedDict`, in the order of `FitOptions`."""
    mine = options.__annotations__
    return [*(n for n in mine if n not in DEFAULTS), *(n for n in DEFAULTS if n in mine)]


# Types of the options in the overloads of `fit` and `outlook`, for type checkers only.
if TYPE_CHECKING:

    class SweepFit(SweepOptions, total=False, extra_items=NoSuchOption): ...

    class RecordFit(RecordOptions, total=False, extra_items=NoSuchOption): ...

else:
    SweepFit, RecordFit = SweepOptions, RecordOptions
