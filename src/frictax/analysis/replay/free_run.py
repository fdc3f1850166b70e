"""Free runs of a fitted machine beside its record, with the effect of parameter errors."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.annotations import Checked
from frictax.fitting import AbstractObjective, ClosedLoop, FitResult, FreeRun
from frictax.fitting.problem.objectives import PreparedRecord
from frictax.fitting.problem.problem import Problem, bounds, upper_bounds
from frictax.fitting.problem.readings import divide_gaps
from frictax.measurements import Record
from frictax.parameters import parameters, replace
from frictax.programs import cached_jit
from frictax.text import prefix_unit

from ..errors.resampling import Jackknife
from ..errors.uncertainty import Uncertainty, uncertainty
from .motion import find_record

_KEPT = 1500  # samples of each run that sensitivities are computed from
_FORCES = ("F_prop", "F_Coulomb", "F_Stribeck", "f")  # fields of all laws that scale friction


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FreeRunScore:
    """A free run of a fitted machine beside its record, and its sensitivity. Print it.

    - `label` of the record; `rms`: output -> root mean square of measured - simulated [SI]; `units`
      of the outputs.
    - `sensitivities`: a small change in words -> output -> rms of the change of the run [SI].
    - `ranges`: output -> 10, 50 and 90 % quantiles of the rms of machines that differ from the
      fitted one as `says` describes.
    - `draws` (k, c): the rms of each drawn machine; `failed`: the number of machines whose
      run failed.
    """

    label: str
    rms: Mapping[str, float]
    units: Mapping[str, str]
    sensitivities: Mapping[str, Mapping[str, float]]
    ranges: Mapping[str, tuple[float, float, float]]
    says: str
    draws: Float[np.ndarray, "k c"]
    failed: int

    def __str__(self) -> str:
        lines = []
        for name, value in self.rms.items():
            unit, size = prefix_unit(self.units[name], value, plain=(1.0, np.inf))
            low, middle, high = (x / size for x in self.ranges[name])
            lines.append(f"{self.label}: free run, rms of {name} {value / size:.3g} {unit}")
            lines += [
                f"  {says} moves it by {moved[name] / size:.2g} {unit}"
                for says, moved in self.sensitivities.items()
            ]
            lines.append(
                f"  {self.says}: {low:.3g} / {middle:.3g} / {high:.3g} {unit} at 10 / 50 / 90 %"
            )
        if self.failed:
            lines.append(f"  {self.failed} of these machines gave no run")
        return "\n".join(lines)

    __repr__ = __str__


def free_run(
    found: FitResult,
    record: Checked[Record | str],
    *,
    errors: Uncertainty | None = None,
    objective: AbstractObjective | None = None,
    draws: Checked[int] = 200,
    seed: int = 0,
) -> FreeRunScore:
    """Simulate the fitted machine with the inputs of a whole record, without feedback, and with
    parameters drawn from their errors.

    The parameters of the drawn machines have normal errors. With `Jackknife` errors, the machines
    differ like repeats of the motion. With other errors, they differ as the parameters are
    uncertain. A parameter that is drawn beyond its bound is set to the bound.

    **Arguments:** `record`: a label of the fit, or a `Record` that was not fitted; `errors`: an
    `Uncertainty` of this fit, by default that of the fit's own errors; `objective`: by default
    `FreeRun(measured_start=True)`; `draws`, `seed`.

    **Returns:** a `FreeRunScore`.

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 2.0, 401)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    ...     drive=fx.Force("mass", 0.0),
    ... )
    >>> seen = {"mass.v": 0.75 * t + 0.01 * np.random.default_rng(0).standard_normal(t.size)}
    >>> record = fx.Record(t, {"drive": 2.0 + 0.0 * t}, seen, name="pull")
    >>> found = fx.fit(block, record, free=["friction.f_pos.F_Coulomb"])
    >>> print(found.free_run("pull", objective=fx.FreeRun()))
    pull: free run, rms of mass.v 9.93 mm/s
      0.001 N more from drive moves it by 1.2 mm/s
      1 % more friction moves it by 14 mm/s
      parameters drawn with their errors (Guarded): ... / ... / ... mm/s at 10 / 50 / 90 %
    """
    if not isinstance(record, str | Record):
        raise ValueError(
            f"`free_run` takes a `Record` or the label of one that was fitted, got {record!r}."
        )
    if not isinstance(draws, int) or draws < 10:
        raise ValueError(
            f"`free_run` needs `draws`, a whole number >= 10, got {draws!r}. 200 are usual."
        )
    errors = uncertainty(found) if errors is None else errors
    objective = FreeRun(measured_start=True) if objective is None else objective
    if not isinstance(objective, FreeRun | ClosedLoop):
        raise ValueError(
            f"`free_run` takes FreeRun(...) or ClosedLoop(...) as objective, got {objective!r}."
            " `score` takes any."
        )
    i, data = find_record(found, record)
    if not isinstance(data, Record):
        raise ValueError(f"`free_run` simulates a record, and {record!r} is a sweep.")
    x = np.asarray(found.x)
    machine = objective.machine(found.problem.setup_at(jnp.asarray(x), i).machine)
    prepared = divide_gaps(objective.prepare(machine, data), found.problem.engine)
    changes = _changes(data, machine)
    times = _repeats(found, errors)
    covariance = errors.full * np.sqrt(np.outer(times, times))
    values, vectors = np.linalg.eigh(covariance)
    away = (
        np.random.default_rng(seed).standard_normal((draws, x.size))
        @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    )
    unknowns = found.problem.unknowns
    drawn = np.clip(x + away, bounds(unknowns), upper_bounds(unknowns))
    xs = np.concatenate([np.tile(x, (1 + len(changes), 1)), drawn])
    more, scale = np.zeros(len(xs)), np.ones(len(xs))
    for k, (_, force, times) in enumerate(changes):
        more[1 + k], scale[1 + k] = force, times
    kept = np.unique(np.linspace(0, data.n - 1, min(data.n, _KEPT)).round().astype(int))
    machines = xs, more, scale
    ends = _runs(found.problem, objective, prepared, i, _inputs(data), machines, kept)
    rms, runs = map(np.asarray, ends)
    base, moved, spread = rms[0], runs[1 : 1 + len(changes)] - runs[0], rms[1 + len(changes) :]
    ok = np.all(np.isfinite(spread), axis=1)
    ends = (
        np.quantile(spread[ok], [0.1, 0.5, 0.9], axis=0)
        if ok.any()
        else np.full((3, base.size), np.nan)
    )
    says = (
        "machines that differ as one repeat from the next"
        if isinstance(errors.by, Jackknife)
        else f"parameters drawn with their errors ({type(errors.by).__name__})"
    )
    return FreeRunScore(
        record if isinstance(record, str) and record else data.name,
        dict(zip(prepared.names, base.tolist(), strict=True)),
        {n: data.units[n].si_name for n in prepared.names},
        {
            c[0]: dict(zip(prepared.names, np.sqrt(np.mean(m**2, axis=0)).tolist(), strict=True))
            for c, m in zip(changes, moved, strict=True)
        },
        {
            name: (low, middle, high)
            for name, (low, middle, high) in zip(prepared.names, ends.T.tolist(), strict=True)
        },
        says,
        spread,
        int(np.sum(~ok)),
    )


def _repeats(found: FitResult, errors: Uncertainty) -> np.ndarray:
    """Return the number of repeats that each fitted parameter is a mean of. The variance of
    one repeat is this multiple of the variance of the parameter.
    """
    if not isinstance(errors.by, Jackknife):
        return np.ones(len(found.x))
    motions = sum(isinstance(r, Record) for r in found.records.values())
    each = 1 if errors.by.repeats is None else errors.by.repeats
    shared = len(found.records) if errors.by.repeats is None else each * motions
    return np.concatenate(
        [
            np.full(u.size, float(shared if u.record is None else each))
            for u in found.problem.unknowns
        ]
    )


def _inputs(data: Record) -> tuple[str, ...]:
    """Return the drives whose input is a force, or a torque if none is a force."""
    units = {n: data.units[n].si_name for n in data.inputs}
    return tuple(n for n in units if units[n] == ("N" if "N" in units.values() else "N.m"))


def _changes(data: Record, machine: Any) -> list[tuple[str, float, float]]:
    """Return each change in words, its additional force [N or N.m], and its factor on friction."""
    out = []
    driven = _inputs(data)
    if driven:
        largest = max(float(np.max(np.abs(data.inputs[n]))) for n in driven)
        small = float(f"{10.0 ** np.floor(np.log10(max(largest, 1e-300) * 1e-3)):.0e}")
        unit = data.units[driven[0]].si_name
        out.append((f"{small:g} {unit} more from {' and '.join(driven)}", small, 1.0))
    if _of_friction(machine):
        out.append(("1 % more friction", 0.0, 1.01))
    return out


def _of_friction(machine: Any) -> list[Any]:
    """Return the parameters that scale friction."""
    return [
        p
        for p in parameters(machine)
        if p.path.rpartition(".")[2] in _FORCES and p.declaration.unit.startswith("N")
    ]


@cached_jit
def _runs(
    problem: Problem,
    objective: Any,
    prepared: PreparedRecord,
    record: Any,
    driven: tuple[str, ...],
    machines: tuple[Any, Any, Any],
    kept: Any,
) -> tuple[Any, Any]:
    """Return the rms of each output of each machine, and its run at the samples `kept`.

    `machines`: fitted parameters, additional force, and factor on friction of each.
    """
    weight = jnp.asarray(prepared.weight) > 0

    def simulate(at: tuple[Any, Any, Any]) -> tuple[Any, Any]:
        x, force, times = at
        setup = problem.setup_at(x, record)
        machine = objective.machine(setup.machine)
        machine = replace(machine, {p.path: p.value * times for p in _of_friction(machine)})
        here = setup.for_channels(prepared.inputs, prepared.names, machine)
        pushed = [n for n in prepared.inputs if n in driven]
        here = eqx.tree_at(
            lambda b: [b.inputs.at(n).offset for n in pushed], here, replace_fn=lambda x: x + force
        )
        run = objective.predict(here, prepared, problem.engine, problem.delayed)
        left = jnp.where(weight, run - prepared.measured, 0.0)
        return jnp.sqrt(jnp.sum(left**2, axis=0) / jnp.sum(weight, axis=0)), run[kept]

    return jax.lax.map(simulate, tuple(jnp.asarray(a) for a in machines))
