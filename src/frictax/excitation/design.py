"""The experiment that tells most of a machine's parameters, within what the machine bears."""

import dataclasses
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from frictax.annotations import ArrayLike, Checked
from frictax.engine import OnSamples
from frictax.fitting import AbstractObjective, AbstractPrior, FitResult, Instrument
from frictax.measurements import Record
from frictax.mechanism import Machine
from frictax.progress import Progress, watched

from .ascent import climbed
from .criteria import Criterion
from .designed import Design, kept_by
from .limits import Limits, Margins
from .machines import Over, machines_of
from .plan import Plan, Seen
from .posed import posed
from .rivals import Rival, largest, rivals
from .shapes import AbstractShape

_LOOKED, _KEEP = 200, 0.97  # machines by which limits are kept, and how many of them
_TRIALS = 8  # of sizes


def design(
    machine: Machine,
    outputs: Mapping[str, float],
    *,
    duration: float,
    rate: float,
    limits: Limits,
    drive: str | None = None,
    free: str | Iterable[str] | None = None,
    wanted: str | Iterable[str] | None = None,
    shape: AbstractShape | None = None,
    criterion: Checked[Criterion] = "E",
    objective: AbstractObjective | None = None,
    inputs: Mapping[str, ArrayLike] | None = None,
    instruments: Mapping[str, Instrument] | None = None,
    memory: Mapping[str, float] | None = None,
    over: Over | None = None,
    machines: int = 6,
    after: FitResult | None = None,
    beside: Record | None = None,
    priors: Sequence[AbstractPrior] = (),
    size: Mapping[str, float] | None = None,
    margins: Margins | None = None,
    hold: bool = False,
    engine: OnSamples | None = None,
    starts: int = 8,
    steps: int = 600,
    seed: int = 0,
    progress: Checked[bool | Progress] = False,
) -> Design:
    """The excitation of `machine` from which its parameters are found best, within `limits`.

    A search makes the errors small that a record of `outputs` is to be expected to leave. Its
    gradients are exact through breakaway, sticking and stops: the Fisher information is a state of
    the run (`information`), never the derivative of a sum over samples, which jumps where an event
    passes a sample and whose slope is wrong between.

    **Arguments:**

    - `machine`: a `Mechanism`, or a hybrid system of one's own, with the values that are guessed.
    - `outputs`: what is measured -> the standard deviation of its noise in SI.
    - `duration` [s], `rate` [Hz]: of the record, and of the drive's table.
    - `limits`: what the machine bears.
    - `drive`: the part that is excited: a force or torque, or a `PositionController`, whose
      reference is then designed. Unless given, the one controller, or the one force.
    - `free`: the parameters that nobody knows, as for `fit`; `wanted`: those of them that count,
      all unless given: errors of the others are allowed for.
    - `shape`: `FourierSeries()` unless given, `Multisine()`, `CubicSpline()`, `Ramps()` or, for a
      reference, `Staircase()`.
    - `criterion`, of relative errors: "E", that of the worst combination of parameters; "minimax",
      of the worst parameter; "A", the mean square; "D", the product along the principal axes. "A"
      and "E" keep away from edges of events better than "minimax".
    - `objective`: how the record will be fitted: `FreeRun()`, `Windows(...)` or `ClosedLoop(...)`.
    - `inputs`: other parts that are driven -> their samples. `instruments`: as for `fit`; name
      ``"outputs.mass.v.gain"`` in `free` where it is not known.
    - `memory`: output -> how long its noise remembers [s]: an approximation, by which a sample
      counts as (1 - r)/(1 + r) of one, r = exp(-1/(rate*memory)), right for motions that are slow
      beside it.
    - `over`: for which machines, where values are not known: a relative scatter, one for each
      path, a fit with its covariance, or a `Posterior`. The criterion is then the mean over
      `machines` that are drawn, and the excitation so small that limits are kept by 97 % of 200;
      so are the other experiments.
    - `after`: an earlier fit, whose information is added; `priors`: as for `fit`.
    - `beside`: a record at hand under the same drive, whose errors stand in the table.
    - `size`: name -> the error that counts as 1, its value unless given. `margins`: how far to stay
      from the edges of events. `hold`: whether the drive holds its samples.
    - `engine`: an `OnSamples`. `starts`, `steps`, `seed`: of the search. `progress`: as in `fit`.

    **Returns:** a `Design`.

    **Raises:** `ValueError` for what cannot be asked, in a sentence.

    **Source:** J. Swevers et al., IEEE Transactions on Robotics and Automation 13(5), 1997, for the
    excitation; the information through events as in `Sensitive`.

    A block, of which only the speed is measured:

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
    one = lambda x: {} if x is None else dict(x)  # noqa: E731
    asked: dict[str, Any] = {"drive": drive, "free": free, "wanted": wanted, "shape": shape}
    asked |= {"criterion": criterion, "objective": objective, "inputs": one(inputs)}
    asked |= {"instruments": one(instruments), "memory": one(memory), "after": after}
    asked |= {"priors": priors, "size": one(size), "hold": hold, "engine": engine}
    asked |= {"margins": Margins() if margins is None else margins}
    for name, value in (("machines", machines), ("starts", starts), ("steps", steps)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"`design`: `{name}` must be a whole number >= 1, got {value!r}.")
    ready = posed(machine, outputs, duration, rate, limits, **asked)
    plan = ready.plan
    how = over, plan.under_test, ready.names, ready.lower
    few = machines_of(*how, machines, seed)
    with watched(progress, "Designing") as work:
        parts = work.parts({"search": 8.0, "looking at it": 1.0})
        best = climbed(plan, few, starts, steps, seed, parts["search"])
        u = np.asarray(plan.made(best.c))
        drawn = machines_of(*how, _LOOKED, seed + 1)[1:] if over is not None else []
        found = largest(plan, lambda scale: plan.centre + scale * (u - plan.centre))
        u, served = _reduced(plan, u if found is None else found[0], drawn)
        seen = plan.seen(u, plan.under_test.values())
        parts["looking at it"]("others", 0.5)
        others = [_rival_reduced(plan, rival, drawn) for rival in rivals(plan, ready.body)]
        if beside is not None:
            others.append(_at_hand(plan, beside, drawn))
    return Design(
        ready,
        u,
        seen,
        tuple(others),
        tuple(drawn),
        served,
        {name: float(sd) for name, sd in outputs.items()},
        objective,
        time.perf_counter() - began,
    )


def _reduced(
    plan: Plan, u: np.ndarray, drawn: Sequence[np.ndarray]
) -> tuple[np.ndarray, tuple[Seen, ...]]:
    """The excitation made so small that nearly all of the machines `drawn` keep the limits, and
    what it shows of each.
    """
    served = _looked(plan, u, drawn)
    if kept_by(served) >= _KEEP:
        return u, served
    # What keeps the limits now does so when less is asked, or nearly: all are looked at in the end.
    may = len(drawn) - round(_KEEP * len(drawn))
    over = [x for x, seen in zip(drawn, served, strict=True) if not kept_by([seen])]
    at = lambda scale: plan.centre + scale * (u - plan.centre)  # noqa: E731
    low, high = 0.0, 1.0
    for _ in range(_TRIALS):
        middle = 0.5 * (low + high)
        beyond = sum(not kept_by([seen]) for seen in _looked(plan, at(middle), over))
        low, high = (middle, high) if beyond <= may else (low, middle)
    served = _looked(plan, at(low), drawn)
    for _ in range(_TRIALS):
        if kept_by(served) >= _KEEP:
            break
        low *= 0.95
        served = _looked(plan, at(low), drawn)
    return at(low), served


def _looked(plan: Plan, u: np.ndarray, drawn: Sequence[np.ndarray]) -> tuple[Seen, ...]:
    """What the excitation `u` shows of each of the machines."""
    return tuple(jax.device_get([plan.often(u, x) for x in drawn]))


def _rival_reduced(plan: Plan, rival: Rival, drawn: Sequence[np.ndarray]) -> Rival:
    """`rival` within the limits of the machines, as an experiment on one of them has to be."""
    u, served = _reduced(plan, rival.u, drawn)
    seen = rival.seen if u is rival.u else plan.seen(u, plan.under_test.values())
    return dataclasses.replace(rival, u=u, seen=seen, served=served)


def _at_hand(plan: Plan, record: Record, drawn: Sequence[np.ndarray]) -> Rival:
    """A record that there is, as an experiment."""
    if plan.drive not in record.inputs:
        raise ValueError(
            f"`beside` must be a record under {plan.drive!r}; its inputs are"
            f" {', '.join(record.inputs) or 'none'}."
        )
    t = np.asarray(record.t, dtype=float)
    u = np.interp(plan.t, t - t[0], record.inputs[plan.drive])
    seen, served = plan.seen(u, plan.under_test.values()), _looked(plan, u, drawn)
    return Rival(f"{record.name} (at hand)", u, seen, served)
