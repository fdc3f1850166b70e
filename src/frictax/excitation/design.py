"""Design the experiment that identifies the parameters of a machine best: `design`."""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import jax
import numpy as np

from frictax.fitting.options import check_names, lists_options
from frictax.measurements import Record
from frictax.mechanism import Machine
from frictax.progress import watched

from .ascent import climbed
from .designed import Design, kept_by
from .limits import Limits
from .machines import machines_of
from .plan import Plan, Seen
from .posed import DesignOptions, DesignSettings, posed
from .rivals import Rival, largest, rivals

_DRAWN = 200  # random machines for which the limits are checked
_KEEP = 0.97  # share of the random machines that must keep the limits
_TRIALS = 8  # bisections of the size of the excitation
_DEFAULTS: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(DesignSettings)}


@lists_options(DesignOptions, _DEFAULTS)
def design(
    machine: Machine,
    outputs: Mapping[str, float],
    *,
    duration: float,
    rate: float,
    limits: Limits,
    **options: Unpack[DesignOptions],
) -> Design:
    """Find the excitation of `machine` that identifies its parameters best, within `limits`.

    A search minimises the expected standard errors of a record of `outputs`. Its gradients are
    exact through breakaway, sticking and stops, because the Fisher information is a state of the
    run (`information`). A sum over samples jumps when an event passes a sample, and its derivative
    is wrong.

    **Arguments:**

    - `machine`: a `Mechanism`, or a hybrid system of your own, with guessed values.
    - `outputs`: measured variable -> standard deviation of its noise in SI.
    - `duration` [s], `rate` [Hz]: of the record, and of the table of the drive.
    - `limits`: the limits of the machine.
    - `drive`: the part that is excited: a force, a torque, or a `PositionController`, whose
      reference is then designed; by default the only controller, or the only force.
    - `free`: the unknown parameters, as for `fit`; `wanted`: those of them whose errors count, by
      default all. The errors of the others are taken into account.
    - `shape`: `FourierSeries()` by default, `Multisine()`, `CubicSpline()`, `Ramps()` or, for a
      reference, `Staircase()`.
    - `criterion`, of relative errors: "E", of the worst combination of parameters; "minimax", of
      the worst parameter; "A", the mean square; "D", the product along the principal axes. "A" and
      "E" stay away from the edges of events better than "minimax".
    - `objective`: the objective of the later fit: `FreeRun()`, `Windows(...)` or `ClosedLoop(...)`.
    - `inputs`: other driven parts -> their samples. `instruments`: as for `fit`; name
      ``"outputs.mass.v.gain"`` in `free` if it is unknown.
    - `memory`: output -> correlation time of its noise [s]. Each sample then counts as (1 - r)/(1 +
      r) of an independent one, r = exp(-1/(rate*memory)). This holds for motions that are slow
      compared with the correlation time.
    - `over`: the uncertainty of the values: a relative scatter, one for each path, a fit with its
      covariance, or a `Posterior`. The criterion is then the mean over `machines` random machines.
      The excitation is so small that 97 % of 200 machines keep the limits; so are the other
      experiments.
    - `after`: an earlier fit, whose information is added; `priors`: as for `fit`.
    - `beside`: an existing record of the same drive, whose errors are in the table.
    - `size`: name -> the error that counts as 1, by default the value. `margins`: the distance from
      the edges of events. `hold`: whether the drive holds its samples.
    - `engine`: an `OnSamples`. `starts`, `steps`, `seed`: of the search. `progress`: as in `fit`.

    **Returns:** a `Design`.

    **Raises:** `ValueError` with one sentence for a design that is not possible.

    **Source:** J. Swevers et al., IEEE Transactions on Robotics and Automation 13(5), 1997, for the
    excitation; the information through events as in `Sensitive`.

    Only the speed of a block is measured:

    >>> import frictax as fx
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0, F_prop=0.2)),
    ...     drive=fx.Force("mass", 0.0),
    ... )
    >>> experiment = fx.design(
    ...     block,
    ...     {"mass.v": 2e-3},
    ...     free=["mass.m", "friction.f_pos"],
    ...     duration=4.0,
    ...     rate=100.0,
    ...     limits=fx.Limits(force=3.0, travel=0.2, band=(0.25, 3.0)),
    ...     starts=1,
    ...     steps=40,
    ... )
    >>> experiment.worst() < min(experiment.worst(other) for other in experiment.beside)
    True
    >>> experiment.plot().axes[0].get_ylabel(), experiment.excitation.size
    ('drive [N]', 401)
    """
    began = time.perf_counter()
    check_names(design, options)
    given = DesignSettings(**options)
    ready = posed(machine, outputs, duration, rate, limits, given)
    plan = ready.plan
    how = given.over, plan.under_test, ready.names, ready.lower
    few = machines_of(*how, given.machines, given.seed)
    with watched(given.progress, "Designing") as work:
        parts = work.parts({"search": 8.0, "looking at it": 1.0})
        best = climbed(plan, few, given.starts, given.steps, given.seed, parts["search"])
        u = np.asarray(plan.made(best.c))
        drawn = machines_of(*how, _DRAWN, given.seed + 1)[1:] if given.over is not None else []
        found = largest(plan, lambda scale: plan.centre + scale * (u - plan.centre))
        u, served = _reduce(plan, u if found is None else found[0], drawn)
        seen = plan.seen(u, plan.under_test.values())
        parts["looking at it"]("others", 0.5)
        others = [_reduce_rival(plan, rival, drawn) for rival in rivals(plan, ready.body)]
        if given.beside is not None:
            others.append(_existing_record(plan, given.beside, drawn))
    return Design(
        ready,
        u,
        seen,
        tuple(others),
        tuple(drawn),
        served,
        {name: float(sd) for name, sd in outputs.items()},
        given.objective,
        time.perf_counter() - began,
    )


def _reduce(
    plan: Plan, u: np.ndarray, drawn: Sequence[np.ndarray]
) -> tuple[np.ndarray, tuple[Seen, ...]]:
    """Return the excitation, reduced until nearly all of the machines `drawn` keep the limits, and
    its information on each.
    """
    served = _information_on(plan, u, drawn)
    if kept_by(served) >= _KEEP:
        return u, served
    # A machine that keeps the limits nearly always keeps them with a smaller excitation. All
    # machines are checked at the end.
    may = len(drawn) - round(_KEEP * len(drawn))
    over = [x for x, seen in zip(drawn, served, strict=True) if not kept_by([seen])]
    at = lambda scale: plan.centre + scale * (u - plan.centre)  # noqa: E731
    low, high = 0.0, 1.0
    for _ in range(_TRIALS):
        middle = 0.5 * (low + high)
        beyond = sum(not kept_by([seen]) for seen in _information_on(plan, at(middle), over))
        low, high = (middle, high) if beyond <= may else (low, middle)
    served = _information_on(plan, at(low), drawn)
    for _ in range(_TRIALS):
        if kept_by(served) >= _KEEP:
            break
        low *= 0.95
        served = _information_on(plan, at(low), drawn)
    return at(low), served


def _information_on(plan: Plan, u: np.ndarray, drawn: Sequence[np.ndarray]) -> tuple[Seen, ...]:
    """Return the information of the excitation `u` on each of the machines."""
    return tuple(jax.device_get([plan.often(u, x) for x in drawn]))


def _reduce_rival(plan: Plan, rival: Rival, drawn: Sequence[np.ndarray]) -> Rival:
    """Return `rival` reduced to the limits of the machines."""
    u, served = _reduce(plan, rival.u, drawn)
    seen = rival.seen if u is rival.u else plan.seen(u, plan.under_test.values())
    return dataclasses.replace(rival, u=u, seen=seen, served=served)


def _existing_record(plan: Plan, record: Record, drawn: Sequence[np.ndarray]) -> Rival:
    """Return an existing record as an experiment."""
    if plan.drive not in record.inputs:
        raise ValueError(
            f"`beside` must be a record under {plan.drive!r}; its inputs are"
            f" {', '.join(record.inputs) or 'none'}."
        )
    t = np.asarray(record.t, dtype=float)
    u = np.interp(plan.t, t - t[0], record.inputs[plan.drive])
    seen, served = plan.seen(u, plan.under_test.values()), _information_on(plan, u, drawn)
    return Rival(f"{record.name} (at hand)", u, seen, served)
