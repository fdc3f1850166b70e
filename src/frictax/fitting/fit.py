"""Which parameters of a friction law explain a sweep."""

import difflib
from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from frictax.fitting.fit_many import fit_records_many
from frictax.fitting.problem.initial_guess import near_law, starting_law
from frictax.fitting.problem.losses import AbstractLoss, Squares
from frictax.fitting.problem.steady import SteadyFriction, as_steady
from frictax.fitting.record_fit import fit_records
from frictax.fitting.result.answer import answer
from frictax.fitting.result.found import Replicates, quantile
from frictax.fitting.result.identifiability import null_directions, peak_sentence
from frictax.fitting.search.estimation import (
    as_data,
    entries,
    estimate_each,
    estimate_jit,
    lower_bounds,
    with_values,
)
from frictax.fitting.search.methods import AbstractMethod, LevenbergMarquardt
from frictax.laws import AbstractLaw, as_law
from frictax.measurements.record import Record
from frictax.measurements.sweep import Sweep
from frictax.mechanism import AbstractHybridSystem, Mechanism
from frictax.parameters import Parameter, as_array, check, parameters, replace, select, to_unconstrained

_OF_RECORDS: dict[str, Any] = {
    "own": (), "objective": None, "start": None, "priors": (), "bounds": {}, "instruments": {}, "engine": None, "starts": 1, "spread": 0.5,
    "seed": 0, "progress": False,
}  # fmt: skip


def fit(
    model: Any,
    data: Any,
    *,
    f_neg: Any = None,
    peak: float | None = None,
    offset: float | None = None,
    free: str | Iterable[str] | None = None,
    method: AbstractMethod | None = None,
    loss: AbstractLoss | None = None,
    level: float = 0.95,
    **of_records: Any,
) -> Any:
    """Find the parameters with which a friction law explains a measured sweep, or a machine its records, with error bars.

    **Arguments:**

    - `model`: a law (`Stribeck(...)`), whose values are the start, beside one found from the data (the better end is
      taken, for a Stribeck curve has more than one minimum); a kind of law (`Stribeck`), whose start is the data's alone;
      or a `SteadyFriction`. One law serves both directions, mirrored.
    - `data`: the sweep; for a machine a `Record`, several in a list, or records and sweeps under labels.
    - `f_neg`: a law or kind of law of its own for v < 0. Paths are then ``"f_pos.F_Coulomb"``, ``"f_neg.F_Coulomb"``.
    - `peak` > 1: start of the ratio of breakaway to sliding force; found from the data unless given. It is fitted
      where the sweep has breakaway rows, and cannot be otherwise.
    - `offset` [N or N.m]: start of a constant force, such as a payload's weight. It needs both directions, and cannot be
      told from an asymmetry of Coulomb friction, so not together with `f_neg`.
    - `free`: paths of what may move; all that the data can see unless given.
    - `method`: `LevenbergMarquardt()` or `Optax(...)`; `loss`: `Squares()` or `Huber()`; `level` of the intervals.

    For a machine (a `Mechanism` or a hybrid system of your own) in the place of `f_neg`, `peak` and `offset`:

    - `free` takes sensors and drives too, such as ``"outputs.mass.s.delay"``; `own`: paths of which each record has a value of its own
      (``"mass.v@run2"``), or path -> a start for each record. Positions and speeds at the start begin where the record does: `own`
      ones, and `free` ones of one record that the machine leaves at 0. `instruments`: channel -> `Instrument`.
    - `objective`: `FreeRun()` unless given, `Windows`, `ClosedLoop`, `InverseDynamics`; `start`: the objective of a fit before, whose end
      is the start; `priors`: `Normal`, `Smooth`; `engine`: `OnSamples(...)`.
    - `bounds`: path -> (least, most), where the user knows more than a parameter's own domain says.
    - `starts`, `spread`, `seed`: how many starts to search from, how far apart, and which; `progress`: True, or a function of a line.

    **Returns:** a `Found`, for a machine a `FoundMachine`. Intervals are the linearised ones, +- t standard errors: over 2000 synthetic
    sweeps like the measured one of a screw drive, and over 400 synthetic records, they hold the truth in 95 % (see
    tests/fitting/test_coverage.py and test_record_coverage.py).

    **Raises:** `ValueError` for a start on the edge of its domain, too few rows, terms that no data of this kind can
    tell apart; `KeyError` for a path that does not exist.

    >>> import frictax as fx
    >>> sweep = fx.Sweep([1, 2, 3, 4], [7.1, 7.9, 9.1, 9.9], velocity_unit="m/s", force_unit="N")
    >>> found = fx.fit(fx.Coulomb, sweep)
    >>> round(float(found.law.F_Coulomb), 3), round(found.standard_errors["F_Coulomb"], 3)
    (6.1, 0.155)

    A mass that 2 N move, and that the record shows to be slower than it would be with 1 N of friction:

    >>> import jax.numpy as jnp, numpy as np
    >>> t = jnp.linspace(0.0, 2.0, 41)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0), friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)), drive=fx.Force("mass", 2.0)
    ... )
    >>> record = fx.Record(t, outputs={"mass.v": 0.75 * np.asarray(t) + 0.01 * np.sin(40 * np.asarray(t))}, name="pull")
    >>> print(fx.fit(block, record, free=["friction.f_pos.F_Coulomb"]))
    Mechanism fitted to pull by FreeRun
    parameter                 value    unit  std. error  95 % interval
    friction.f_pos.F_Coulomb  1.25017  N     0.00096     1.24823 to 1.25211
    pull: rms mass.v 0.007072
    40 degrees of freedom, condition 1, ... steps, ... s
    """
    loss = Squares() if loss is None else loss
    unknown = [name for name in of_records if name not in _OF_RECORDS]
    if unknown:
        known = ["f_neg", "peak", "offset", "free", "method", "loss", "level", *_OF_RECORDS]
        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise TypeError(f"`fit` has no option {unknown[0]!r}.{hint} It has: {', '.join(known)}.")
    if not isinstance(data, Sweep) or isinstance(model, Mechanism | AbstractHybridSystem):
        _refuse({"f_neg": f_neg, "peak": peak, "offset": offset}, "a law's sweep", "a machine, which holds its own")
        settings = {**_OF_RECORDS, **of_records}
        limits = settings.pop("bounds")
        return fit_records(model, data, free=free, method=method, loss=loss, level=level, limits=limits, **settings)
    _refuse(of_records, "the records of a machine", "a law's sweep")
    method = LevenbergMarquardt() if method is None else method
    _check_arguments(data, method, loss)
    start = _assemble(model, data, f_neg, peak, offset)
    chosen, notes = _free(start, data, free)
    paths = tuple(p.path for p in chosen)
    _check_determined(start, data, chosen)
    starts = [start, *_start_from_data(start, data, paths)]
    ends = [estimate_jit(as_data(data), model, paths, method, loss, data.sigma_known) for model in starts]
    done = min(ends, key=lambda end: float(end.cost) if np.isfinite(end.cost) else np.inf)
    return answer(start, data, chosen, done, method, loss, level, notes)


def fit_many(
    model: Any,
    data: Sweep | Record,
    measured: Any,
    *,
    free: str | Iterable[str] | None = None,
    method: AbstractMethod | None = None,
    loss: AbstractLoss | None = None,
    level: float = 0.95,
    objective: Any = None,
    engine: Any = None,
) -> Replicates:
    """Fit one model to many measurements (or draws) at the rows of one sweep, or under the inputs of one record, in one compilation.

    **Arguments:**

    - `model`: a law or `SteadyFriction`, for a record a machine, whose values are every fit's start.
    - `data`: the sweep or the record; its own forces or outputs are not looked at.
    - `measured`: for a sweep forces (k, n) [N or N.m]; for a record output -> (k, n) in SI, or (k, n) where it has one output.
    - `objective`, `engine`: for records only, as in `fit`.

    **Returns:** `Replicates`: values of all k fits, as `fit` would give them, for bootstrap and coverage; intervals for white residuals.

    **Raises:** `ValueError` for measurements of another shape; for a record, a loss or method other than the default kind.
    """
    loss = Squares() if loss is None else loss
    if isinstance(data, Record):
        settings = {"free": free, "objective": objective, "engine": engine, "method": method, "loss": loss, "level": level}
        return fit_records_many(model, data, measured, **settings)
    _refuse({"objective": objective, "engine": engine}, "a record", "a sweep")
    method = LevenbergMarquardt() if method is None else method
    _check_arguments(data, method, loss)
    f = jnp.asarray(measured, dtype=float)
    if f.ndim != 2 or f.shape[1] != data.n:
        raise ValueError(f"`measured` must have shape (k, {data.n}), one column for each row of the sweep, got {f.shape}.")
    start = _assemble(model, data, None, None, None)
    chosen, _ = _free(start, data, free)
    _check_determined(start, data, chosen)
    done = estimate_each(as_data(data), f, start, tuple(p.path for p in chosen), method, loss, data.sigma_known)
    x = np.asarray(done.x)
    error = np.sqrt(np.where(np.asarray(done.active), np.diagonal(np.asarray(done.covariance), axis1=1, axis2=2), np.nan))
    half = np.asarray(quantile(level, np.asarray(done.dof), data.sigma_known)).reshape(-1, 1) * error
    low = np.maximum(x - half, np.where(np.isnan(half), np.nan, lower_bounds(chosen)))
    names = tuple(name for _, name in entries(chosen))
    return Replicates(names, x, error, low, x + half, np.asarray(done.converged), level)


def _refuse(given: dict[str, Any], of: str, here: str) -> None:
    """Options that would be passed over in silence."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"`{name}` is an option for {of} and means nothing for {here}, got {value!r}. Leave it out.")


def _check_arguments(data: Any, method: Any, loss: Any) -> None:
    if not isinstance(data, Sweep):
        raise ValueError(f"`fit` needs a `Sweep`, got {type(data).__name__}. Read one with Sweep.from_csv(path, velocity=..., force=...).")
    if not isinstance(method, AbstractMethod):
        raise ValueError(f"`method` must be LevenbergMarquardt() or Optax(...), got {method!r}. Write Optax({method!r}) for an optax rule.")
    if not isinstance(loss, AbstractLoss):
        raise ValueError(f"`loss` must be Squares() or Huber(), got {loss!r}.")
    if jnp.zeros(()).dtype != jnp.float64:
        raise ValueError(
            '`fit` needs 64 bit numbers, got 32. Write jax.config.update("jax_enable_x64", True) before the first computation.'
        )


def _assemble(model: Any, data: Sweep, f_neg: Any, peak: float | None, offset: float | None) -> Any:
    """The model to fit, all its arrays in 64 bits: a bare law where nothing else is to be found."""
    if isinstance(model, SteadyFriction):
        if f_neg is not None or peak is not None or offset is not None:
            raise ValueError("`f_neg`, `peak` and `offset` belong inside the `SteadyFriction` that is fitted, not beside it.")
        return _wide(model)
    breakaway = bool(data.breakaway.any())
    forward = _law(model, data.positive() if f_neg is not None else data)
    if f_neg is None and peak is None and offset is None and not breakaway:
        check(forward)
        return _wide(forward)
    backward = None if f_neg is None else _law(f_neg, data.negative())
    if peak is None:
        peak = 1.0
        if breakaway:
            began = (
                data.breakaway & (data.direction > 0)
                if backward is not None and np.any(data.breakaway & (data.direction > 0))
                else data.breakaway
            )
            peak = max(1.05, float(np.mean(np.abs(data.force[began])) / max(float(forward.f0), 1e-300)))
    return _wide(SteadyFriction(forward, backward, as_array(peak), as_array(offset)))


def _start_from_data(model: Any, data: Sweep, paths: tuple[str, ...]) -> list[Any]:
    """`model` with the parameters that may move set near the data; nothing for laws of the user's own."""
    steady = as_steady(model)
    values: dict[str, Any] = {}
    for branch, law in (("f_pos", steady.f_pos), ("f_neg", steady.f_neg)):
        way = 1 if branch == "f_pos" else -1
        if law is None or (steady.f_neg is not None and not np.any((data.direction == way) & ~data.breakaway)):
            continue
        own = data if steady.f_neg is None else data.select("positive" if way > 0 else "negative")
        near = near_law(law, own)
        if near is None:
            return []
        prefix = f"{branch}." if isinstance(model, SteadyFriction) else ""
        values |= {prefix + p.path: p.value for p in parameters(near)}
        if "peak" in paths and own.breakaway.any():
            values["peak"] = as_array(_peak(near, own))
    moved = {path: value for path, value in values.items() if path in paths}
    return [_wide(replace(model, moved))] if moved else []


def _peak(law: AbstractLaw, data: Sweep) -> float:
    """Breakaway over sliding force at rest, inside its domain."""
    return max(1.05, float(np.mean(np.abs(data.force[data.breakaway])) / max(float(law.f0), 1e-300)))


def _law(model: Any, data: Sweep) -> AbstractLaw:
    if isinstance(model, type) and issubclass(model, AbstractLaw):
        return starting_law(model, data)
    if isinstance(model, str):
        raise ValueError(f"`fit` takes a law, got the text {model!r}. Write fx.Stribeck, or fx.Stribeck(...) with start values.")
    return as_law(model)


def _wide(model: Any) -> Any:
    return jax.tree.map(lambda a: a.astype(jnp.float64) if eqx.is_inexact_array(a) else a, model)


def _free(model: Any, data: Sweep, free: Any) -> tuple[list[Parameter], list[str]]:
    """The parameters that the fit moves, and sentences on those that it cannot."""
    chosen = select(model, free)
    notes = []
    if isinstance(model, SteadyFriction):
        if not data.breakaway.any():
            chosen = [p for p in chosen if p.path != "peak"]
            notes.append(peak_sentence(model))
        for branch, rows in (("f_pos.", data.direction > 0), ("f_neg.", data.direction < 0)):
            if model.f_neg is not None and not rows.any():
                chosen = [p for p in chosen if not p.path.startswith(branch)]
                notes.append(f"{branch[:-1]} cannot be known and stays as given: the sweep has no rows in its direction.")
    else:
        notes.append(peak_sentence(model))
    if not chosen:
        raise ValueError(f"Nothing is left to fit: `free` is {free!r}. Name some of {', '.join(p.path for p in parameters(model))}.")
    to_unconstrained(model, [p.path for p in chosen])  # raises for a start on the edge of its domain
    return chosen, notes


def _check_determined(model: Any, data: Sweep, chosen: list[Parameter]) -> None:
    count = len(entries(chosen))
    if data.n <= count:
        raise ValueError(
            f"`Sweep` {data.name!r} has {data.n} rows, too few for {count} parameters and their errors: {count + 1} is the least. "
            "Measure more speeds, or move fewer through free=[...]."
        )
    if any(p.path == "offset" for p in chosen):
        arrays, paths = as_data(data), tuple(p.path for p in chosen)
        x = jnp.concatenate([jnp.ravel(jnp.asarray(p.value)) for p in chosen])
        jacobian = np.asarray(jax.jacfwd(lambda x: arrays.predict(with_values(model, paths, x)))(x))
        names = [name for _, name in entries(chosen)]
        _, null = null_directions(jacobian, names, np.linalg.norm(jacobian, axis=0) > 0)
        if any("offset" in direction for direction in null):
            why = "an asymmetry of Coulomb friction" if data.both_directions else "Coulomb friction"
            remedy = "Leave out `offset` or `f_neg`" if data.both_directions else "Leave out `offset`, or measure both directions"
            raise ValueError(f"`offset` (the payload's weight) cannot be told from {why} here: both shift the curve alike. {remedy}.")
