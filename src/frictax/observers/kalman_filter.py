"""Estimate states and drifting parameters of a machine from a record."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, TypedDict, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from frictax.annotations import Checked
from frictax.arguments import check_count, check_names, is_finite_number, lists_options
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
from frictax.mechanism.layout import coordinates_of, layout
from frictax.mechanism.mechanism import Machine
from frictax.parameters import Numbers, Parameter, check, parameters
from frictax.text import align_columns, brief, figures, suggestion

from .filters import FilterProblem, Uncertainties, run_filters


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Filtered:
    """Estimates of states and drifting parameters at each sample, from `kalman_filter`.

    - `t` (n,) [s]; `names` (k,): the states, then the estimated parameters; `outputs` (c,):
      measured variables.
    - `mean` (n, k), `covariance` (n, k, k) of the estimates after the update by each sample.
      ``found["mass.v"]`` is one column of `mean`, ``found.sd["mass.v"]`` its standard deviation.
    - `innovation` (n, c), `innovation_covariance` (n, c, c): measured minus predicted values,
      before the update by the sample.
    - `nis` (n,): normalised innovation squared. The expected mean of `nis` is the number c of
      outputs if the covariances are correct, and above c if the covariances are too small.
    - `log_likelihood`: log of the likelihood of all samples.
    - `stuck`: contact -> (n,), probability that the contact sticks; 0 or 1 for a single filter.

    **Example:** at `kalman_filter`.
    """

    t: Float[np.ndarray, " n"]
    names: tuple[str, ...]
    outputs: tuple[str, ...]
    mean: Float[np.ndarray, "n k"]
    covariance: Float[np.ndarray, "n k k"]
    innovation: Float[np.ndarray, "n c"]
    innovation_covariance: Float[np.ndarray, "n c c"]
    nis: Float[np.ndarray, " n"]
    log_likelihood: float
    stuck: dict[str, Float[np.ndarray, " n"]]

    def __getitem__(self, name: str) -> Float[np.ndarray, " n"]:
        if name not in self.names:
            raise KeyError(
                f"The filter did not estimate {name!r}.{suggestion(name, self.names)} It has:"
                f" {', '.join(self.names)}."
            )
        return self.mean[:, self.names.index(name)]

    @property
    def sd(self) -> dict[str, Float[np.ndarray, " n"]]:
        """Standard deviation of each state and parameter."""
        sd = np.sqrt(np.maximum(np.einsum("nii->in", self.covariance), 0.0))
        return dict(zip(self.names, sd, strict=True))

    @property
    def consistent(self) -> bool:
        """True if the mean of `nis` is in the 95 % range that a correct model has."""
        return bool(abs(float(np.mean(self.nis)) - len(self.outputs)) <= self._half)

    @property
    def _half(self) -> float:
        # The sum of `nis` over a record is chi-squared with n*c degrees of freedom (n samples, c
        # outputs). The normal approximation gives the 95 % range.
        return 1.96 * float(np.sqrt(2.0 * len(self.outputs) / self.t.size))

    def within(self, name: str, truth: Float[Numbers, " n"], sds: float) -> Bool[np.ndarray, " n"]:
        """Return for each sample whether the known `truth` is within `sds` standard deviations of
        the estimate.

        A rounding error is tolerated, because the velocity of a stuck body has the variance 0.
        """
        error = np.abs(np.asarray(truth) - self[name])
        return error <= sds * self.sd[name] + 1e-12 * (1.0 + np.abs(self[name]))

    def __str__(self) -> str:
        c, n = len(self.outputs), self.t.size
        head = ("", "at the end", "sd")
        rows = [
            (name, figures(self.mean[-1, i], 4), figures(self.sd[name][-1], 2))
            for i, name in enumerate(self.names)
        ]
        usual = f"95 % of the records of a correct model have {c} +- {self._half:.3f}"
        nis = f"mean NIS {np.mean(self.nis):.3f}; {usual}"
        sticks = [f"{name} sticks {100 * p.mean():.1f} %" for name, p in self.stuck.items()]
        first = f"{n} samples of {', '.join(self.outputs)} filtered"
        return "\n".join([first, *align_columns(head, rows), nis, *sticks])

    def __repr__(self) -> str:
        return f"Filtered({self.t.size} samples; {', '.join(self.names)})"


class FilterOptions(TypedDict, total=False):
    """The options of `kalman_filter`, which the docstring of that function explains."""

    drift: Mapping[str, float] | None
    noise: Mapping[str, float] | None
    members: int
    saltation: bool
    seed: int
    engine: Engine | None


_DEFAULTS: dict[str, Any] = {
    "drift": None,
    "noise": None,
    "members": 30,
    "saltation": True,
    "seed": 0,
    "engine": None,
}


@lists_options(FilterOptions, _DEFAULTS)
def kalman_filter(
    model: Checked[Machine],
    record: Checked[Record],
    *,
    start_sd: Checked[Mapping[str, float]],
    **options: Unpack[FilterOptions],
) -> Filtered:
    """Estimate states and slowly changing parameters of a machine at each sample of a record. A
    bank (weighted set) of extended Kalman filters also estimates whether contacts stick.

    Between samples, the mean of each filter is simulated through all events. The derivatives of
    this simulation propagate the covariance. The derivatives of the simulation include the
    saltation matrix of each event: the derivative of the state after the event with respect to the
    state before it. When a contact comes to rest, the variance of its velocity becomes 0, and the
    uncertainty of the velocity becomes an uncertainty of the position.

    Derivatives do not show *whether* the real machine had an event. If a single filter
    (``members=1``) assumes that a sliding contact sticks, the variance of its velocity is 0, so
    measurements do not correct the velocity. Therefore, when an event is near, the filters of the
    bank get different distances from the event. The innovations determine the weights of the
    filters; `stuck` is the total weight of the filters in which the contact sticks.

    **Arguments:**

    - `model`: a `Mechanism`, or a hybrid system of your own that names its `states`. The mean
      begins at the start values of the model.
    - `record`: a record with `sd`, the standard deviation of the white noise of each output.
    - `start_sd`: state or parameter -> standard deviation at the start; other states have 0. A
      parameter without drift is an unknown constant. If a machine sticks, let its parameters drift
      slightly; otherwise an error at the first event cannot be corrected later.
    - `drift`: parameter -> standard deviation of its random walk, in the unit of the parameter per
      root of a second. Model an unknown load as a ``fx.Force("mass", 0.0)`` that drifts.
    - `noise`: input of the record, or parameter -> root of the spectral density of its white noise.
      The unit of the noise is that of its input or parameter times the root of a second. With white
      noise on a force, the time of breakaway depends on the sampling interval, and the derivatives
      do not include this dependence. If a contact sticks, let a load or friction drift instead.
    - `members`: number of filters; 1 is enough if no contact sticks.
    - `saltation`: use False to compare with an observer without events. A single filter then
      propagates its covariance in the mode at the start of each interval.
    - `seed`: seed of the random differences between the filters. `engine`: by default
      `OnSamples()`, with steps short enough for the longest gap of the record.

    **Returns:** a `Filtered`. The likelihood cannot be differentiated with respect to parameters,
    because this needs second derivatives of a simulation. Use `fit` for constant parameters.

    **Raises:** `ValueError` or `KeyError` for an unknown name, for an invalid standard deviation,
    and for a record without `sd`; `RuntimeError` if a simulation fails.

    **Source:** N. J. Kong, J. J. Payne, G. Council, A. M. Johnson, "The Salted Kalman Filter:
    Kalman filtering on hybrid dynamical systems", Automatica 131, 109752, 2021.

    A block slides until friction stops it. At the start, the friction has a standard deviation of
    0.2 N. The sliding distance identifies the friction:

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
    >>> found = fx.kalman_filter(block(2.0), record, start_sd={"mass.v": 0.01, F: 0.2})
    >>> round(float(found[F][-1]), 2), bool(found.sd[F][-1] < 0.01), float(found.sd["mass.v"][-1])
    (2.1, True, 0.0)
    """
    check_names(kalman_filter, options)
    chosen = {**_DEFAULTS, **options}
    drift, noise = ({} if chosen[name] is None else chosen[name] for name in ("drift", "noise"))
    members, saltation, engine = (chosen[name] for name in ("members", "saltation", "engine"))
    _check_arguments(model, record, members, saltation, engine)
    check(model)
    states = state_names(model)
    check_channels(model, record, states)
    if engine is None:
        substeps = max((k for _, k in OnSamples().over_gaps(record.t).finer), default=1)
        forward: Any = ForwardAlone()
        # A simulation may have at most 20 mode changes between two samples.
        engine = OnSamples(substeps=substeps, max_events=20, adjoint=forward)
    known = {p.path: p for p in parameters(model)}
    follow = set[str]()  # starts of bodies whose motion a gear or a prescribed motion determines
    if isinstance(model, Mechanism):
        bodies = [(model.names[i], model.parts[i]) for i in layout(model).bodies]
        follow = {f"{name}.{of}" for name, part in bodies for of in coordinates_of(part)}
        follow -= set(states)
    for option, given in (("start_sd", start_sd), ("drift", drift), ("noise", noise)):
        others = states if option == "start_sd" else record.inputs if option == "noise" else ()
        _check_sizes(option, given, known, (*others,), states, follow)
    estimated = (*dict.fromkeys([*drift, *(name for name in start_sd if name not in states)]),)
    problem = _filter_problem(model, record, states, estimated, (start_sd, drift, noise), known)
    found = run_filters(problem, engine, saltation, members, jax.random.key(chosen["seed"]))
    failed = ~np.all(np.isfinite(np.asarray(found.x)), axis=1)
    if failed.any():
        i = int(np.argmax(failed))
        how = jax.tree.map(lambda a: a[i], found.result)
        why = "The estimate is not finite." if how == Result.successful else Result[how]
        begin, end = record.t[max(i - 1, 0)], record.t[i]
        raise RuntimeError(f"`kalman_filter` failed from {begin:g} s to {end:g} s: {why}")
    contacts = contact_names(model)[: problem.contacts]
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


def _filter_problem(
    model: Any,
    record: Record,
    states: tuple[str, ...],
    estimated: tuple[str, ...],
    sizes: tuple[Mapping[str, float], ...],
    known: Mapping[str, Parameter],
) -> FilterProblem:
    start_sd, drift, noise = sizes
    # A further sample continues the last segment, so that a prescribed motion keeps its velocity.
    further = lambda u, slope: jnp.append(u, u[-1] + slope * (u[-1] - u[-2]))  # noqa: E731
    inputs = {n: further(u, 0.0 if record.hold else 1.0) for n, u in record.inputs.items()}
    t = further(record.t, 1.0)
    system = driven(model, t[:2], {n: u[:2] for n, u in inputs.items()}, record.hold)
    y, _ = system.start(t[0])
    values = [float(known[name].value) for name in estimated]
    numbers = lambda of, names: jnp.array([float(of.get(n, 0.0)) for n in names])  # noqa: E731
    low, high = _domain_bounds(estimated, known)
    noisy_low, noisy_high = _domain_bounds(tuple(noise), known)
    uncertain = Uncertainties(
        numbers(drift, estimated),
        low,
        high,
        numbers(noise, noise),
        noisy_low,
        noisy_high,
        estimated,
        tuple(noise),
    )
    contacts = int(isinstance(model, AbstractAxis))
    if isinstance(model, Mechanism):
        contacts = len(MechanicalSystem(model).layout.contacts)
    outputs = tuple(record.outputs)
    sd = [np.broadcast_to(np.asarray(record.sd[name]), record.n) for name in outputs]
    return FilterProblem(
        model,
        uncertain,
        t,
        inputs,
        jnp.stack([jnp.asarray(record.outputs[name]) for name in outputs], axis=1),
        jnp.stack([jnp.asarray(s) for s in sd], axis=1) ** 2,
        jnp.concatenate([y, jnp.array(values, y.dtype)]),
        numbers(start_sd, (*states, *estimated)),
        states,
        outputs,
        record.hold,
        contacts,
    )


def _domain_bounds(names: tuple[str, ...], known: Mapping[str, Parameter]) -> tuple[Any, Any]:
    """Return the smallest and the largest valid value of each parameter or input."""
    low, high = [], []
    for name in names:
        if name not in known:  # An input has no bounds.
            low.append(-np.inf)
            high.append(np.inf)
            continue
        domain, value = known[name].declaration.domain, np.asarray(known[name].value, dtype=float)
        least = domain.bound()
        inside = not np.isfinite(least) or domain.contains(np.asarray(least))
        low.append(least if inside else least + 1e-6 * float(value - least))
        high.append(domain.upper())
    return jnp.array(low, float), jnp.array(high, float)


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
    check_count("`kalman_filter`: `members`", members, 1, "30 are usual.")
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
    follow: Collection[str],
) -> None:
    zero = option == "start_sd"
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
            if name in follow:
                raise ValueError(
                    f"`kalman_filter`: `{option}` names {name!r}, but another body or a motion"
                    f" determines {name!r}. Name a state: {', '.join(states)}."
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
        if not is_finite_number(size) or size < 0 or (size == 0 and not zero):
            raise ValueError(
                f"`kalman_filter`: `{option}` of {name!r} must be a number {least}, got {size!r}."
            )
