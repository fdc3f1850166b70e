"""Which parameters explain a measurement: of a friction law a sweep, of a machine its records."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, overload

from frictax.annotations import DataFrame
from frictax.engine.options import Engine
from frictax.laws import AbstractLaw
from frictax.measurements import Record, Sweep
from frictax.mechanism import Machine
from frictax.progress import Progress, watched

from .fit_data import Search, fit_records, fit_sweep
from .problem.losses import AbstractLoss
from .problem.objectives import AbstractObjective
from .problem.priors import AbstractPrior
from .problem.sensors import Instrument
from .problem.steady import SteadyFriction
from .problem.ties import Tied
from .result.fit_result import FitResult
from .search.methods import AbstractMethod
from .search.multistart import Extent

Own = Mapping[str, Sequence[float] | None] | Iterable[str]
Bounds = Mapping[str, tuple[float, float]]
Data = Record | Iterable[Record | Sweep] | Mapping[str, Record | Sweep]
Law = AbstractLaw | SteadyFriction | type[AbstractLaw] | Sequence[Sequence[float]]
Model = TypeVar("Model", bound=Machine)


@overload
def fit(
    model: Law,
    data: Sweep | DataFrame,
    *,
    f_neg: Law | None = None,
    peak: float | None = None,
    offset: float | None = None,
    free: str | Iterable[str] | None = None,
    tied: Tied | None = None,
    log_scale: str | Iterable[str] = (),
    priors: Sequence[AbstractPrior] = (),
    bounds: Bounds | None = None,
    method: AbstractMethod | None = None,
    loss: AbstractLoss | None = None,
    level: float = 0.95,
    starts: int = 1,
    spread: float = 0.5,
    seed: int = 0,
    progress: bool | Progress = False,
) -> FitResult[AbstractLaw | SteadyFriction]: ...


@overload
def fit(
    model: Model,
    data: Data,
    *,
    free: str | Iterable[str] | None = None,
    tied: Tied | None = None,
    log_scale: str | Iterable[str] = (),
    own: Own = (),
    objective: AbstractObjective | None = None,
    start: AbstractObjective | None = None,
    priors: Sequence[AbstractPrior] = (),
    bounds: Bounds | None = None,
    instruments: Mapping[str, Instrument] | None = None,
    engine: Engine | None = None,
    method: AbstractMethod | None = None,
    loss: AbstractLoss | None = None,
    level: float = 0.95,
    starts: int = 1,
    spread: float = 0.5,
    seed: int = 0,
    rounds: int | None = None,
    progress: bool | Progress = False,
) -> FitResult[Model]: ...


def fit(
    model: Any,
    data: Any,
    *,
    f_neg: Any = None,
    peak: Any = None,
    offset: Any = None,
    free: Any = None,
    tied: Any = None,
    log_scale: Any = (),
    own: Any = (),
    objective: Any = None,
    start: Any = None,
    priors: Any = (),
    bounds: Any = None,
    instruments: Any = None,
    engine: Any = None,
    method: Any = None,
    loss: Any = None,
    level: Any = 0.95,
    starts: Any = 1,
    spread: Any = 0.5,
    seed: Any = 0,
    rounds: Any = None,
    progress: Any = False,
) -> FitResult:
    """Find the parameters with which a friction law explains a measured sweep, or a machine its
    records, with error bars.

    **Arguments:**

    - `model`: a law (`Stribeck(...)`), whose values are the start, beside one found from the data
      (the better end is taken, for a Stribeck curve has more than one minimum); a kind of law
      (`Stribeck`), whose start is the data's alone; or a `SteadyFriction`. One law serves both
      directions, mirrored.
    - `data`: the sweep, or a `DataFrame` with one, see `Sweep.from_pandas`; for a machine a
      `Record`, several in a list, or records and sweeps under labels.
    - `f_neg`: a law or kind of law of its own for v < 0. Paths are then ``"f_pos.F_Coulomb"``,
      ``"f_neg.F_Coulomb"``.
    - `peak` > 1: start of the ratio of breakaway to sliding force; found from the data unless
      given. It is fitted where the sweep has breakaway rows, and cannot be otherwise.
    - `offset` [N or N.m]: start of a constant force, such as a payload's weight. It needs both
      directions, and cannot be told from an asymmetry of Coulomb friction, so not together with
      `f_neg`.
    - `free`: paths of what may move; all that the data can see unless given.
    - `tied`: path -> what it is equal to: another path, ``"factor * path"``, or a function of all
      parameters by path that JAX can differentiate. A part or law tied to another of its kind ties
      each of its parameters. Nothing that is tied is in `free`; it is in the table and in
      `found.tied`, with the error that follows.
    - `log_scale`: paths of what is > 0 and known by factors, such as a viscous coefficient of which
      the size is open: moved on a logarithmic scale, with intervals from value/k to value*k.
    - `method`: `LevenbergMarquardt()` or `Optax(...)`; `loss`: `Squares()` or `Huber()`; `level` of
      the intervals.

    For a machine (a `Mechanism` or a hybrid system of your own) in the place of `f_neg`, `peak` and
    `offset`:

    - `free` takes sensors and drives too, such as ``"outputs.mass.s.delay"``; `own`: paths of which
      each record has a value of its own (``"mass.v@run2"``), or path -> a start for each record.
      Positions and speeds at the start begin where the record does: `own` ones, and `free` ones of
      one record that the machine leaves at 0. `instruments`: channel -> `Instrument`.
    - `objective`: `FreeRun()` unless given, `Windows`, `ClosedLoop`, `InverseDynamics`; `start`:
      the objective of a fit before, whose end is the start; `priors`: `Normal`, `Smooth`; `engine`:
      `OnSamples(...)`, the fast one, or `Adaptive(...)`, by which the parameters are fitted through
      diffrax's own solve.
    - `bounds`: path -> (least, most), where the user knows more than a parameter's own domain says.
    - `rounds`: how many rounds follow at most where the search of a `FreeRun` or `ClosedLoop` ends
      above the noise of the record: 4 unless given, 0 for one search alone, 12 for a start that is
      far off. A round is 1280 runs and at most 32 short fits. `found.at_noise` says whether the end
      is certified. The same fit gives the same numbers.
    - `starts`, `spread`: how many starts to search from, and how far apart; free runs take `rounds`
      instead. `seed` of starts and rounds.
    - `progress`: True shows in one line how far it is and how much time is left; a function is
      called with each `ProgressLine`. A key (`KeyboardInterrupt`) stops it at once; what was found
      so far is returned, with the notice `search-interrupted`, if a search had got anywhere.

    **Returns:** a `FitResult`. Intervals are the linearised ones, +- t standard errors, by
    `Guarded()`: over 2000 synthetic sweeps like the measured one of a screw drive, and over 400
    synthetic records, they hold the truth in 95 % (see tests/fitting/test_coverage.py and
    test_record_coverage.py).

    **Raises:** `ValueError` for a start on the edge of its domain, too few rows, terms that no data
    of this kind can tell apart; `KeyError` for a path that does not exist.

    >>> import frictax as fx, numpy as np
    >>> sweep = fx.Sweep([1, 2, 3, 4], [7.1, 7.9, 9.1, 9.9], velocity_unit="m/s", force_unit="N")
    >>> found = fx.fit(fx.Coulomb, sweep)
    >>> round(float(found.law.F_Coulomb), 3), round(found.standard_errors["F_Coulomb"], 3)
    (6.1, 0.155)

    The same friction both ways but for the dry part:

    >>> v = np.concatenate([np.linspace(1, 8, 8), -np.linspace(1, 8, 8)])
    >>> f = np.sign(v) * (6.0 + 0.2 * abs(v)) + 0.5 * (v < 0) + 0.01 * np.sin(40.0 * v)
    >>> sweep = fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")
    >>> ties = {"f_neg.F_prop": "f_pos.F_prop"}
    >>> found = fx.fit(fx.Coulomb, sweep, f_neg=fx.Coulomb, tied=ties)
    >>> for e in (*found.estimates, *found.tied):
    ...     print(e)
    f_pos.F_Coulomb 6.0025 N, std. error 0.0046 N, 5.9926 to 6.0125 N
    f_pos.F_prop 0.19938 N.s/m, std. error 0.00083 N.s/m, 0.19759 to 0.20117 N.s/m
    f_neg.F_Coulomb 5.5025 N, std. error 0.0046 N, 5.4926 to 5.5125 N
    f_neg.F_prop = f_pos.F_prop 0.19938 N.s/m, std. error 0.00083 N.s/m, 0.19759 to 0.20117 N.s/m

    A mass that 2 N move, and that the record shows to be slower than it would be with 1 N of
    friction:

    >>> t = np.linspace(0.0, 2.0, 401)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    ...     drive=fx.Force("mass", 2.0),
    ... )
    >>> record = fx.Record(
    ...     t,
    ...     outputs={"mass.v": 0.75 * t + 0.01 * np.random.default_rng(0).standard_normal(401)},
    ...     name="pull",
    ... )
    >>> print(fx.fit(block, record, free=["friction.f_pos.F_Coulomb"]))
    Mechanism fitted to pull by FreeRun
    parameter                 value    unit  std. error  95 % interval
    friction.f_pos.F_Coulomb  1.25051  N     0.00043     1.24966 to 1.25136
    pull: rms mass.v 9.93 mm/s
    400 degrees of freedom, condition 1, ... steps, ... s
    Intervals (Guarded): uncorrelated residuals (399 degrees of freedom). ...
    """
    steady = {"f_neg": f_neg, "peak": peak, "offset": offset}
    shared = {"free": free, "priors": priors, "tied": tied, "log_scale": log_scale}
    shared["limits"] = {} if bounds is None else bounds
    moving = {
        "own": own,
        "objective": objective,
        "start": start,
        "instruments": instruments,
        "engine": engine,
        "rounds": rounds,
    }
    data = _with_sweep(model, data)
    with watched(progress, "Fitting") as work:
        how = Search(method, loss, level, Extent(starts, spread, seed), work)
        if isinstance(data, Sweep) and not isinstance(model, Machine):
            refuse(moving, "the records of a machine", "a law's sweep")
            return fit_sweep(model, data, how, **steady, **shared)
        refuse(steady, "a law's sweep", "a machine, which holds its own")
        return fit_records(model, data, how, **moving, **shared)


def _with_sweep(model: Any, data: Any) -> Any:
    """Return the data; a `DataFrame` for a law becomes a sweep."""
    if not hasattr(data, "iloc"):
        return data
    if isinstance(model, Machine):
        raise ValueError(
            "`fit` of a machine must be given records, got a DataFrame. Write"
            " Record.from_pandas(frame, time='t', inputs={'drive': 'F'}, outputs={'mass.s': 'q'}),"
            " which names each column."
        )
    return Sweep.from_pandas(data)


def refuse(given: Mapping[str, Any], of: str, here: str) -> None:
    """Raise `ValueError` for options that would be passed over in silence."""
    for name, value in given.items():
        if value is not None and value != ():
            raise ValueError(
                f"`{name}` is an option for {of} and means nothing for {here}, got {value!r}. Leave"
                " it out."
            )
