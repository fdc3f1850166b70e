"""The state of a machine from its record, sample by sample."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frictax.annotations import Checked
from frictax.arguments import whole
from frictax.engine import Adaptive, Engine, OnSamples, Result
from frictax.engine.options import ForwardAlone
from frictax.fitting.problem.setup import (
    check_channels,
    check_no_bristle,
    contact_names,
    driven,
    state_names,
)
from frictax.measurements import Record
from frictax.mechanism import AbstractAxis, MechanicalSystem, Mechanism
from frictax.mechanism.mechanism import Machine
from frictax.parameters import Parameter, check, parameters
from frictax.text import brief, suggestion

from .filtered import Filtered
from .interval import Wanders
from .loop import Asked, filtered

EVENTS = 20  # mode changes from one sample to the next


def kalman_filter(
    model: Checked[Machine],
    record: Checked[Record],
    *,
    start_sd: Checked[Mapping[str, float]],
    drift: Checked[Mapping[str, float] | None] = None,
    noise: Checked[Mapping[str, float] | None] = None,
    members: Checked[int] = 30,
    saltation: Checked[bool] = True,
    seed: int = 0,
    engine: Checked[Engine | None] = None,
) -> Filtered:
    """States and slowly changing parameters of a machine at each sample of a record, from the
    samples up to it: an extended Kalman filter that goes through stick and slip.

    Kalman filters side by side, each exact about its own mean: from sample to sample the mean goes
    by the exact run through its events, and the covariance by that run's exact derivatives, which
    hold the saltation matrix of each event. Where a contact comes to rest its velocity has no
    variance any more, and what was not known of it has become uncertainty of the place.

    One thing no derivative shows: *whether* an event has happened. A single filter (``members=1``)
    that believes a contact to be stuck, while it slides in truth, has no velocity to correct. So
    where the end of a mode is near, the filters part: each knows its distance from there as well as
    it changes within an interval, and they differ in it. Their innovations weigh them, and `stuck`
    is a probability.

    **Arguments:**

    - `model`: a `Mechanism`, or a hybrid system of one's own that names its `states`. It starts as
      the model says.
    - `record`: with `sd` of each output: white noise of the sensors.
    - `start_sd`: state or parameter -> how well its start value is known; 0 of a state that is left
      out. A parameter that does not drift is a constant to be found; where a machine sticks, let it
      drift a little, for an error that is made at a first event is else never mended.
    - `drift`: parameter -> by how much it wanders in a second (a random walk), in its unit per root
      of a second. What a machine does not say of its load is a ``fx.Force("mass", 0.0)`` that
      drifts.
    - `noise`: input of the record, or parameter -> white noise about its value, in its unit times
      the root of a second. White noise of a force lets a contact go the sooner the shorter the
      sampling interval, which no derivative shows: where something sticks, let a load or friction
      drift instead.
    - `members`: how many filters; 1 where no contact sticks.
    - `saltation`: False carries the covariance of a single filter by the mode in which an interval
      begins, as an observer does that knows nothing of events; to compare.
    - `seed`: of how the filters part. `engine`: `OnSamples()` unless given, with steps short enough
      for the longest gap of the record.

    **Returns:** a `Filtered`. Its likelihood has no derivative by parameters, for that would be a
    second one of a run: constant parameters are for `fit`.

    **Raises:** `ValueError` or `KeyError` for a name that there is not, a number that is no
    standard deviation, a record without `sd`; `RuntimeError` where a run fails.

    **Source:** N. J. Kong, J. J. Payne, G. Council, A. M. Johnson, "The Salted Kalman Filter:
    Kalman filtering on hybrid dynamical systems", Automatica 131, 109752, 2021.

    A block slides until a friction that is known to 0.2 N stops it; how far it came tells the rest:

    >>> import frictax as fx, numpy as np
    >>> def block(F):
    ...     return fx.Mechanism(
    ...         mass=fx.Mass(m=1.0, v=1.0),
    ...         friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=F)),
    ...     )
    >>> t = np.linspace(0.0, 1.0, 101)
    >>> s = np.asarray(fx.simulate(block(2.1), t)["mass"].s)
    >>> s = s + 1e-4 * np.random.default_rng(0).standard_normal(101)
    >>> record = fx.Record(t, outputs={"mass.s": s}, sd={"mass.s": 1e-4})
    >>> F = "friction.f_pos.F_Coulomb"
    >>> seen = fx.kalman_filter(block(2.0), record, start_sd={"mass.v": 0.01, F: 0.2})
    >>> round(float(seen[F][-1]), 2), bool(seen.sd[F][-1] < 0.01), float(seen.sd["mass.v"][-1])
    (2.1, True, 0.0)
    """
    drift, noise = ({} if given is None else given for given in (drift, noise))
    _check_arguments(model, record, members, saltation, engine)
    check(model)
    states = state_names(model)
    check_channels(model, record, states)
    engine = _usual(record) if engine is None else engine
    known = {p.path: p for p in parameters(model)}
    for option, given in (("start_sd", start_sd), ("drift", drift), ("noise", noise)):
        others = states if option == "start_sd" else record.inputs if option == "noise" else ()
        _check_sizes(option, given, known, (*others,), states, zero=option == "start_sd")
    estimated = (*dict.fromkeys([*drift, *(name for name in start_sd if name not in states)]),)
    asked = _asked(model, record, states, estimated, (start_sd, drift, noise), known)
    found = filtered(asked, engine, saltation, members, jax.random.key(seed))
    _check_ended(found, record)
    contacts = contact_names(model)[: asked.contacts]
    return Filtered(
        t=np.asarray(record.t),
        names=(*states, *estimated),
        outputs=tuple(record.outputs),
        mean=np.asarray(found.x),
        covariance=np.asarray(found.P),
        innovation=np.asarray(found.innovation),
        innovation_covariance=np.asarray(found.S),
        nis=np.asarray(found.nis),
        log_likelihood=float(jnp.sum(found.log_density)),
        stuck=dict(zip(contacts, np.asarray(found.stuck).T, strict=True)),
    )


def _asked(
    model: Any,
    record: Record,
    states: tuple[str, ...],
    estimated: tuple[str, ...],
    sizes: tuple[Mapping[str, float], ...],
    known: Mapping[str, Parameter],
) -> Asked:
    start_sd, drift, noise = sizes
    t, inputs = jnp.asarray(record.t), {n: jnp.asarray(u) for n, u in record.inputs.items()}
    system = driven(model, t[:2], {n: u[:2] for n, u in inputs.items()}, record.hold)
    y, _ = system.start(t[0])
    values = [float(known[name].value) for name in estimated]
    numbers = lambda of, names: jnp.array([float(of.get(n, 0.0)) for n in names])  # noqa: E731
    low, high = _ends(estimated, known)
    noisy_low, noisy_high = _ends(tuple(noise), known)
    wanders = Wanders(
        numbers(drift, estimated),
        low,
        high,
        numbers(noise, noise),
        noisy_low,
        noisy_high,
        estimated,
        tuple(noise),
    )
    outputs = tuple(record.outputs)
    sd = [np.broadcast_to(np.asarray(record.sd[name]), record.n) for name in outputs]
    return Asked(
        model,
        wanders,
        t,
        inputs,
        jnp.stack([jnp.asarray(record.outputs[name]) for name in outputs], axis=1),
        jnp.stack([jnp.asarray(s) for s in sd], axis=1) ** 2,
        jnp.concatenate([y, jnp.array(values, y.dtype)]),
        numbers(start_sd, (*states, *estimated)),
        states,
        outputs,
        record.hold,
        _contacts(model),
    )


def _contacts(model: Any) -> int:
    """How many of the first modes are those of contacts."""
    if isinstance(model, Mechanism):
        return len(MechanicalSystem(model).layout.contacts)
    return int(isinstance(model, AbstractAxis))


def _ends(names: tuple[str, ...], known: Mapping[str, Parameter]) -> tuple[Any, Any]:
    """The least and the largest value that a machine takes of each."""
    low, high = [], []
    for name in names:
        if name not in known:  # an input
            low.append(-np.inf)
            high.append(np.inf)
            continue
        domain, value = known[name].declaration.domain, np.asarray(known[name].value, dtype=float)
        least = domain.bound()
        inside = not np.isfinite(least) or domain.contains(np.asarray(least))
        low.append(least if inside else least + 1e-6 * float(value - least))
        high.append(domain.upper())
    return jnp.array(low, float), jnp.array(high, float)


def _usual(record: Record) -> OnSamples:
    finer = OnSamples().over_gaps(record.t).finer
    substeps = max((k for _, k in finer), default=1)
    forward: Any = ForwardAlone()
    return OnSamples(substeps=substeps, max_events=EVENTS, adjoint=forward)


def _check_arguments(model: Any, record: Any, members: Any, saltation: Any, engine: Any) -> None:
    if not isinstance(model, Machine):
        raise ValueError(
            "`kalman_filter` needs a `Mechanism` or a hybrid system of your own, got"
            f" {brief(model)}."
        )
    check_no_bristle(model, "kalman_filter", "Leave the bristle out.")
    if not isinstance(record, Record):
        raise ValueError(
            f"`kalman_filter` needs a `Record`, got {brief(record)}. Read one with"
            " Record.from_csv(...)."
        )
    lacking = [name for name in record.outputs if record.sd.get(name) is None]
    if lacking:
        raise ValueError(
            f"`kalman_filter` weighs each output by its noise, and record {record.name!r} has no sd"
            f" of {lacking[0]!r}. Write Record(..., sd={{{lacking[0]!r}: 1e-4}})."
        )
    if not state_names(model):
        raise ValueError(
            f"`{type(model).__name__}` must say which variables its states are before they can be"
            " observed: write `states(self)`."
        )
    whole("`kalman_filter`: `members`", members, 1, "30 are usual.")
    if not isinstance(saltation, bool):
        raise ValueError(
            f"`kalman_filter`: `saltation` must be True or False, got {saltation!r}. Leave it out."
        )
    if members > 1 and not saltation:
        raise ValueError(
            f"`kalman_filter`: without `saltation` there is one filter, got {members} `members`."
            " Write members=1."
        )
    if engine is not None and not isinstance(engine, Adaptive | OnSamples):
        raise ValueError(
            f"`kalman_filter`: `engine` must be an `Adaptive` or an `OnSamples`, got {engine!r}."
            " Leave it out for the default."
        )


def _check_sizes(
    option: str,
    given: Any,
    known: Mapping[str, Parameter],
    others: tuple[str, ...],
    states: tuple[str, ...],
    zero: bool,
) -> None:
    if not isinstance(given, Mapping):
        raise ValueError(
            f"`kalman_filter`: `{option}` must be a dict of name -> size, got {brief(given)}."
        )
    for name, size in given.items():
        if name not in others:
            if name in states:
                raise ValueError(
                    f"`kalman_filter`: `{option}` names {name!r}, a state, which moves by itself."
                    " Name the force that is not known, or a parameter."
                )
            if name not in known:
                every = [*others, *known]
                raise KeyError(
                    f"`kalman_filter`: `{option}` names {name!r}, which there is"
                    f" not.{suggestion(name, every)} There are: {', '.join(every)}."
                )
            if np.shape(known[name].value) != ():
                raise ValueError(
                    f"`kalman_filter`: `{option}` must name numbers, got {name!r} of shape"
                    f" {np.shape(known[name].value)}. Write the law with a number for each."
                )
        least = ">= 0" if zero else "> 0"
        if not _number(size) or not np.isfinite(size) or size < 0 or (size == 0 and not zero):
            raise ValueError(
                f"`kalman_filter`: `{option}` of {name!r} must be a number {least}, got {size!r}."
            )


def _number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float | np.integer | np.floating)


def _check_ended(found: Any, record: Record) -> None:
    """Raise `RuntimeError` where a run from one sample to the next failed."""
    lost = ~np.all(np.isfinite(np.asarray(found.x)), axis=1)
    if not lost.any():
        return
    i = int(np.argmax(lost))
    how = jax.tree.map(lambda a: a[i], found.result)
    why = "What was found is not finite." if how == Result.successful else Result[how]
    begin, end = record.t[max(i - 1, 0)], record.t[i]
    raise RuntimeError(f"`kalman_filter` failed from {begin:g} s to {end:g} s: {why}")
