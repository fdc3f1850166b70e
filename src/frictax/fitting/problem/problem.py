"""`Problem`: records, machine, objective and priors, combined into one vector of residuals."""

import dataclasses
import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from frictax.engine.sensitive import jvp_columns
from frictax.laws import AbstractLaw
from frictax.measurements import Sweep
from frictax.mechanism import Mechanism
from frictax.mechanism.layout import turns_about
from frictax.parameters import Declaration, Numbers, Real, parameters, replace
from frictax.programs import cached_jit
from frictax.pytree import pytree_dataclass, static
from frictax.signals import Constant

from .losses import AbstractLoss
from .objectives import AbstractObjective, AbstractSimulation, PreparedRecord, Steady
from .priors import AbstractPrior
from .setup import Course, Setup, contact_modes
from .steady import SteadyFriction, steady_friction
from .ties import Tie, apply_ties

NOISE_UPDATES = 3  # updates of the noise estimate of a weak form, which are enough


@dataclasses.dataclass(frozen=True)
class Unknown:
    """A fitted parameter. `record`, `label`: index and label of its record, None and "" for a
    shared parameter. `first`: index of the parameter's first entry in the vector of all entries.
    """

    path: str
    record: int | None
    label: str
    declaration: Declaration
    shape: tuple[int, ...]
    first: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def place(self) -> slice:
        """The slice of the parameter's entries in the vector of all entries."""
        return slice(self.first, self.first + self.size)

    @property
    def hidden(self) -> bool:
        """True for the initial states of windows, which are not parameters of the machine."""
        return self.path.startswith("windows.")

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each entry, such as ``mass.v@kp100`` or ``friction.f_pos.f[2]``."""
        at = f"@{self.label}" if self.record is not None else ""
        return (
            (f"{self.path}{at}",)
            if self.shape == ()
            else tuple(f"{self.path}[{i}]{at}" for i in range(self.size))
        )


def bounds(unknowns: Sequence[Unknown]) -> Float[np.ndarray, " p"]:
    """Return the lower bound of each entry, -inf if it is unbounded below."""
    return np.array(
        [u.declaration.domain.bound() for u in unknowns for _ in range(u.size)], dtype=float
    )


def upper_bounds(unknowns: Sequence[Unknown]) -> Float[np.ndarray, " p"]:
    """Return the upper bound of each entry, inf if it is unbounded above."""
    return np.array(
        [u.declaration.domain.upper() for u in unknowns for _ in range(u.size)], dtype=float
    )


def transform_parameters(
    unknowns: Sequence[Unknown], x: Float[Numbers, " p"], way: str
) -> Float[Numbers, " p"]:
    """Transform each entry of `x` by the method `way` of its domain, ``"to_unconstrained"`` or
    ``"from_unconstrained"``. Neighbouring entries with the same domain are transformed in one call.
    """
    xp, runs = x.__array_namespace__(), []
    for u in unknowns:
        domain, end = u.declaration.domain, u.first + u.size
        if runs and runs[-1][0] == domain and domain.entry_by_entry:
            first = runs.pop()[1]
            runs.append((domain, first, end, (end - first,)))
        else:
            runs.append((domain, u.first, end, u.shape))
    parts = [
        xp.reshape(getattr(domain, way)(xp.reshape(x[first:end], shape)), (-1,))
        for domain, first, end, shape in runs
    ]
    return parts[0] if len(parts) == 1 else xp.concat(parts)


@pytree_dataclass
class PreparedSweep:
    """A sweep as arrays. `contact`: the measured contact; None if the model is a friction law."""

    velocity: Float[Numbers, " n"]
    measured: Float[Numbers, "n 1"]
    weight: Float[Numbers, "n 1"]
    breakaway: Numbers
    direction: Float[Numbers, " n"]
    contact: str | None = static()
    names: tuple[str, ...] = static(default=("f",))

    def predict(
        self, setup: Setup, objective: AbstractObjective, engine: Any, delayed: frozenset[str]
    ) -> Float[Array, "n 1"]:
        """Return the forces at the speeds of the sweep."""
        v, breakaway, way = (
            jnp.asarray(a) for a in (self.velocity, self.breakaway, self.direction)
        )
        f = steady_friction(setup.machine, self.contact).predict(v, breakaway, way)[:, None]
        part = setup.machine if self.contact is None else setup.machine[self.contact]
        pressed = getattr(part, "f_normalized", None)
        return f if pressed is None else f * part.scale(part.normal(pressed(0.0)))

    def samples(self) -> Int[np.ndarray, "n 1"]:
        """Return the index of each row of the sweep, as an array (n, 1)."""
        return np.arange(len(self.weight))[:, None]


@pytree_dataclass
class Problem:
    """The least-squares problem of a fit.

    The search uses unconstrained coordinates `z`, which are 0 at the start values `x0`. If a value
    has only a lower bound (`origin`), its distance from the bound is first divided by the distance
    of the start value (`size`). The domain of the value then transforms the quotient. `base`: the
    transformed `x0`, which is subtracted to make `z` 0 at the start. `noise_known`: whether the
    weights are 1/(standard deviation), or only relative. `ties`: rules that compute parameters from
    other parameters.
    """

    setup: Setup
    prepared: tuple[PreparedRecord | PreparedSweep, ...]
    priors: tuple[AbstractPrior, ...]
    objective: AbstractObjective
    engine: Any
    loss: AbstractLoss
    x0: Float[np.ndarray, " p"]
    base: Float[np.ndarray, " p"]
    origin: Float[np.ndarray, " p"]
    size: Float[np.ndarray, " p"]
    unknowns: tuple[Unknown, ...] = static()
    delayed: frozenset[str] = static()
    noise_known: bool = static(default=False)
    ties: tuple[Tie, ...] = static(default=())

    @property
    def is_steady(self) -> bool:
        """True if a friction law is fitted to a sweep, instead of a machine to records."""
        return isinstance(self.objective, Steady)

    def weights(self) -> Float[np.ndarray, " n"]:
        """Return the weights of the residuals of all data, without priors."""
        return np.concatenate([np.ravel(np.asarray(p.weight)) for p in self.prepared])

    def by_record(self, residuals: Any) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        """Yield for each record or sweep: the prepared data, its weights, and its part of the
        `residuals`. Weights and residuals get the shape of the measured values.
        """
        first = 0
        for prepared in self.prepared:
            weight = np.asarray(prepared.weight)
            mine = np.asarray(residuals)[first : first + weight.size]
            first += weight.size
            yield prepared, weight, mine.reshape(weight.shape)

    def rows(self) -> int:
        values = {u.path: np.zeros(u.shape) for u in self.unknowns}
        return sum(int(np.prod(np.shape(p.weight))) for p in self.prepared) + sum(
            p.residuals(values).shape[0] for p in self.priors
        )

    def one_sided(self) -> np.ndarray:
        """Return a mask of the entries with a lower bound but no upper bound."""
        return np.isfinite(bounds(self.unknowns)) & ~np.isfinite(upper_bounds(self.unknowns))

    def spans(self, hidden: float = 0.0) -> Numbers:
        """Return a length for each coordinate, for the spread of random starts, and for the longest
        first step of a search.

        The length is 1 for a value with bounds. With a lower bound only, a length of 1 is about the
        distance of the start value from the bound. For an unbounded value the length is the size of
        the start value, and for an initial state of a window it is `hidden`.
        """
        kinds = [
            hidden if u.hidden else np.nan if isinstance(u.declaration.domain, Real) else 1.0
            for u in self.unknowns
            for _ in range(u.size)
        ]
        xp = self.x0.__array_namespace__()
        return xp.where(np.isnan(kinds), xp.abs(self.x0), np.asarray(kinds))

    def physical(self, z: Float[Numbers, " p"]) -> Float[Array, " p"]:
        """Return the parameter values at the coordinates `z`."""
        scaled = transform_parameters(self.unknowns, self.base + z, "from_unconstrained")
        return (jnp.asarray(scaled) - self.origin) * self.size + self.origin

    def coordinates(self, x: Float[Numbers, " p"]) -> Float[Numbers, " p"]:
        """Return the coordinates of the values `x`: the inverse of `physical`."""
        scaled = self.origin + (x - self.origin) / self.size
        return transform_parameters(self.unknowns, scaled, "to_unconstrained") - self.base

    def values_and_slopes(
        self, z: Float[Numbers, " p"]
    ) -> tuple[Float[Array, " p"], Float[Array, " p"]]:
        """Return the parameter values, and their derivatives with respect to `z`."""
        return jax.jvp(self.physical, (z,), (jnp.ones_like(z),))

    def setup_at(self, x: Float[Numbers, " p"], record: int | None) -> Setup:
        """Return the machine and its instruments for one record, with the parameter values `x`."""
        mine = [u for u in self.unknowns if u.record in (None, record) and not u.hidden]
        moved = replace(self.setup, {u.path: jnp.reshape(x[u.place], u.shape) for u in mine})
        return apply_ties(moved, self.ties)

    def with_noise_found(self, x: Float[np.ndarray, " p"]) -> "Problem":
        """Return the problem with the noise of each weak form estimated at the values `x`. Return
        the problem itself if no estimate changes.
        """
        # The noise estimate affects only whitened residuals.
        if not self.objective.whitens():
            return self
        prepared = tuple(
            self.objective.with_noise_found(self.setup_at(x, i), one, self.delayed)
            if isinstance(one, PreparedRecord)
            else one
            for i, one in enumerate(self.prepared)
        )
        if all(a is b for a, b in zip(prepared, self.prepared, strict=True)):
            return self
        return dataclasses.replace(self, prepared=prepared)

    def predict(self, x: Float[Array, " p"], i: int) -> Array:
        """Return the prediction for record i, with the parameter values `x`."""
        return self.with_starts(x, i).predict(
            self.setup_at(x, i), self.objective, self.engine, self.delayed
        )

    def with_starts(self, x: Float[Array, " p"], i: int) -> Any:
        """Return the arrays of record i, with the fitted initial states of windows from `x`."""
        prepared, starts = self.prepared[i], self.fitted_starts(x, i)
        if starts and isinstance(prepared, PreparedRecord):
            prepared = eqx.tree_at(lambda p: p.start, prepared, {**prepared.start, **starts})
        return prepared

    def fitted_starts(self, x: Float[Array, " p"], i: int) -> dict[str, Array]:
        """Return the fitted initial states of the windows of record number i."""
        return {u.path.removeprefix("windows."): x[u.place] for u in self._starts(i)}

    def _starts(self, i: int) -> list[Unknown]:
        return [u for u in self.unknowns if u.hidden and u.record == i]

    def residuals_of(self, x: Float[Array, " p"], i: int) -> Float[Array, " r"]:
        """Return the weighted residuals of record number i, 0 for samples with weight 0."""
        prepared = self.prepared[i]
        # If the simulation fails, even the residual of a sample with weight 0 is nan.
        return jnp.ravel(prepared.weight * (self.predict(x, i) - prepared.measured))

    def _residuals_and_course(self, x: Float[Array, " p"], i: int) -> tuple[Array, Course | None]:
        """Return the residuals of record number i, and the `Course` (result and events) of its
        simulations; None if the objective does not simulate.
        """
        prepared = self.prepared[i]
        if not (
            isinstance(prepared, PreparedRecord) and isinstance(self.objective, AbstractSimulation)
        ):
            return self.residuals_of(x, i), None
        asked = self.setup_at(x, i), self.with_starts(x, i), self.engine, self.delayed
        values, course = self.objective.runs(*asked)
        return jnp.ravel(prepared.weight * (values - prepared.measured)), course

    def _kind(self, course: Course | None, i: int) -> Array:
        """Return a hash of the event sequence in `course`, the simulation of record number i."""
        prepared = self.prepared[i]
        if course is None or not isinstance(prepared, PreparedRecord):
            return jnp.zeros((), jnp.int32)
        before, after = course.before, course.after
        columns = contact_modes(self.setup.machine, len(prepared.inputs), before.shape[-1])
        rows = jnp.arange(before.shape[-2])
        used = (before != after) & (rows < course.count[..., None])[..., None]
        terms = 31 * before + 17 * after + 101 * jnp.arange(before.shape[-1])
        terms = (terms + 1009) * (7919 * rows[:, None] + 1)
        return jnp.sum(jnp.where(used, terms, 0)[..., :columns], dtype=jnp.int32)

    def residuals(self, x: Float[Array, " p"]) -> Float[Array, " n"]:
        """Return the residuals of all data, followed by the residuals of the priors."""
        return jnp.concatenate(
            [*(self.residuals_of(x, i) for i in range(len(self.prepared))), self._prior(x)]
        )

    def evaluate(
        self, z: Float[Array, " p"], noise: Any, fixed: Any = None
    ) -> tuple[Float[Array, " n"], Float[Array, "n p"]]:
        """Return the weighted residuals, transformed by the loss for the noise scale `noise`, and
        their Jacobian with respect to the coordinates. `fixed`: a mask (p,) of fixed parameters,
        and an array (p,) of their values. For the fixed parameters, `z` is not used.
        """
        return self.evaluate_with_kind(z, noise, fixed)[:2]

    def evaluate_with_kind(
        self, z: Float[Array, " p"], noise: Any, fixed: Any = None
    ) -> tuple[Float[Array, " n"], Float[Array, "n p"], Array]:
        """Return residuals and Jacobian like `evaluate`, and a hash of the sequence of events."""
        x, slope = self.values_and_slopes(z)
        if fixed is not None:
            x, slope = jnp.where(fixed[0], fixed[1], x), jnp.where(fixed[0], 0.0, slope)
        parts, p, kind = [], z.shape[0], jnp.zeros((), jnp.int32)
        for i in range(len(self.prepared)):
            # Only parameters that affect this record need derivatives. An initial state of a window
            # affects only the residuals of this window. Therefore one column contains the
            # derivatives with respect to this state for all windows.
            mine, starts = (
                [u for u in self.unknowns if u.record in (None, i) and not u.hidden],
                self._starts(i),
            )
            own = np.concatenate([np.arange(u.first, u.first + u.size) for u in mine])

            def with_kind(
                values: Array, i: int = i, own: np.ndarray = own, starts: list[Unknown] = starts
            ) -> tuple[Array, tuple[Array, Array]]:
                at = values if own.size == p else x.at[own].set(values[: own.size])
                for k, u in enumerate(starts):
                    at = at.at[u.place].add(values[own.size + k])
                r, course = self._residuals_and_course(at, i)
                return r, (r, self._kind(course, i))

            jacobian, (r, mine_kind) = jax.jacfwd(with_kind, has_aux=True)(
                x if own.size == p else jnp.concatenate([x[own], jnp.zeros(len(starts))])
            )
            full = (
                jacobian
                if own.size == p
                else jnp.zeros((r.shape[0], p)).at[:, own].set(jacobian[:, : own.size])
            )
            for k, u in enumerate(starts):
                rows = np.arange(r.shape[0])
                full = full.at[rows, u.first + rows // (r.shape[0] // u.size)].set(
                    jacobian[:, own.size + k]
                )
            kind = 3 * kind + mine_kind
            if self.loss.rounds > 1:
                root, bend = jax.jvp(self.loss.root, (r / noise,), (jnp.ones_like(r),))
                r, full = root * noise, full * bend[:, None]
            parts.append((r, full))
        if self.priors:
            # Residuals of priors have the standard deviation 1, so they are scaled to the noise of
            # the data.
            parts.append((noise * self._prior(x), noise * jax.jacfwd(self._prior)(x)))
        r, jacobian = (jnp.concatenate(a) for a in zip(*parts, strict=True))
        return r, jacobian * slope, kind

    def misfit(self, z: Float[Array, " p"], noise: Any) -> Float[Array, " n"]:
        """Return the residuals that `evaluate` returns, without computing their Jacobian."""
        return self.misfit_and_courses(z, noise)[0]

    def misfit_and_courses(
        self, z: Float[Array, " p"], noise: Any
    ) -> tuple[Float[Array, " n"], list[Course]]:
        """Return the same residuals as `misfit`, and the `Course` of each simulated record."""
        x = self.physical(z)
        parts = [self._residuals_and_course(x, i) for i in range(len(self.prepared))]
        r = jnp.concatenate([r for r, _ in parts])
        r = noise * self.loss.root(r / noise) if self.loss.rounds > 1 else r
        r = jnp.concatenate([r, noise * self._prior(x)])
        return r, [course for _, course in parts if course is not None]

    def _prior(self, x: Array) -> Array:
        if not self.priors:
            return jnp.zeros(0)
        # The speeds of a table, which are not fitted, are also needed.
        values = {p.path: p.value for p in parameters(self.setup)}
        values |= {u.path: jnp.reshape(x[u.place], u.shape) for u in self.unknowns}
        return jnp.concatenate([p.residuals(values) for p in self.priors])


@cached_jit
def residuals_and_jacobian(problem: Problem, x: Float[Numbers, " p"]) -> tuple[Array, Array]:
    """Return the weighted residuals, without the loss, and their Jacobian at the values `x`."""
    return jvp_columns(problem.residuals, (x,), (jnp.eye(x.shape[0], dtype=x.dtype),))


def predictions(problem: Problem, x: Float[Numbers, " p"], i: int) -> Array:
    """Return the prediction for record i at `x`. Similar records share a compiled program."""
    mine, values = list[Unknown](), np.zeros(0)
    for u in (u for u in problem.unknowns if u.record in (None, i)):
        record = None if u.record is None else 0
        mine.append(dataclasses.replace(u, record=record, label="", first=values.size))
        values = np.append(values, np.asarray(x)[u.place])
    alone = (problem.prepared[i],)
    return _predict_first(
        dataclasses.replace(problem, prepared=alone, unknowns=tuple(mine)), values
    )


@cached_jit
def _predict_first(problem: Problem, x: Array) -> Array:
    return problem.predict(x, 0)


def steady_plan(
    machine: Any, label: str, sweep: Sweep, driven: Collection[str] = ()
) -> PreparedSweep:
    """Return a sweep as arrays, for the contact called `label` or the only contact. `driven`: names
    of the parts with a signal from a record.
    """
    contact = None
    if not isinstance(machine, SteadyFriction | AbstractLaw):
        contacts = (
            [n for n, part in machine.named_parts() if hasattr(part, "breakaway")]
            if isinstance(machine, Mechanism)
            else []
        )
        if label not in contacts and len(contacts) != 1:
            raise ValueError(
                f"A sweep must name the contact whose friction it measures: got {label!r}, contacts"
                f" are {', '.join(contacts) or 'none'}. Give the data as {{'friction': sweep,"
                " 'run': record}."
            )
        contact = label if label in contacts else contacts[0]
        pressed = getattr(machine[contact], "f_normalized", None)
        if pressed is not None and (contact in driven or not isinstance(pressed, Constant)):
            raise ValueError(
                f"The contact {contact!r} of a sweep must have a constant normal force, got"
                f" {'an input of a record' if contact in driven else type(pressed).__name__}. Leave"
                " the sweep out, or give a number as `f_normalized`."
            )
        turns = turns_about(machine, contact)
        if turns is not None and turns != sweep.rotational:
            does, *units = (("slides", "m/s", "N"), ("turns", "rad/s", "N.m"))[turns]
            raise ValueError(
                f"{contact!r} {does}, so its sweep needs units such as {units[0]} and {units[1]},"
                f" got {sweep.velocity_unit.name} and {sweep.force_unit.name}. Write"
                f" Sweep(..., velocity_unit={units[0]!r}, force_unit={units[1]!r})."
            )
    weight = np.ones(sweep.n) if sweep.sigma is None else 1 / sweep.sigma
    return PreparedSweep(
        sweep.velocity,
        sweep.force[:, None],
        weight[:, None],
        sweep.breakaway,
        sweep.direction,
        contact,
    )
