"""The design problem: information, limits and margins as functions of the excitation.

`DesignProblem.run` simulates one experiment. The search minimises `DesignProblem.cost`.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from frictax.engine import OnSamples, Result, walk
from frictax.fitting.problem.setup import (
    contact_modes,
    signal_field,
    state_names,
    variable_at,
    variable_unit,
)
from frictax.measurements.units import VARIABLES, split_channel
from frictax.mechanism import MechanicalSystem, Mechanism, PositionController
from frictax.parameters import Numbers
from frictax.parameters.arrays import constant, least, smaller
from frictax.programs import interruptible_jit
from frictax.pytree import pytree_dataclass

from .information import InformationSystem, MachineUnderTest, build_information_system
from .limits import Margins
from .shapes import AbstractShape, namespace

Criterion = Literal["E", "minimax", "A", "D"]
CRITERIA: tuple[Criterion, ...] = ("E", "minimax", "A", "D")
ROUNDING = 1e-6  # relative amount by which an experiment may exceed a limit because of rounding


@pytree_dataclass
class ExperimentRun:
    """Results of one simulated experiment.

    - `information` (p, p): Fisher information as an integral over the run, in units of the
      parameters; `sampled` (p, p): the information as a sum over the samples.
    - `loads` (k,): the largest travel, speed, ... in the run, divided by their limits.
    - `slip`: duration of the shortest slip [samples]; `miss`: distance from an event that does not
      happen, as in `Margins`.
    - `reached_end`: whether the simulation succeeded; `events`: number of events.
    """

    information: Float[Array, "p p"]
    sampled: Float[Array, "p p"]
    loads: Float[Array, " k"]
    slip: Float[Array, ""]
    miss: Float[Array, ""]
    reached_end: Bool[Array, ""]
    events: Array

    @property
    def excess(self) -> float:
        """Largest load minus 1: the relative excess over a limit, negative within all limits."""
        return float(np.max(np.asarray(self.loads), initial=0.0)) - 1.0

    @property
    def is_complete(self) -> bool:
        """True if the simulation of each machine reached its end."""
        return bool(np.all(np.asarray(self.reached_end)))

    @property
    def within_limits(self) -> bool:
        """True if the simulation reached its end within all limits."""
        return self.is_complete and self.excess <= ROUNDING


@dataclasses.dataclass(frozen=True)
class VariableLimit:
    """The limit of the quantity `what` (travel, speed, ...) of a `variable`."""

    what: str
    variable: str
    limit: float

    def load(self, x: Array) -> Array:
        """Return the largest load divided by its limit. x (n,): values of the variable."""
        most = -least(-x) - least(x) if self.what == "travel" else -least(-jnp.abs(x))
        return most / self.limit


@dataclasses.dataclass(frozen=True, eq=False)
class DesignProblem:
    """All data of an experiment except the excitation.

    - `machine`: the given machine; `under_test`: its `MachineUnderTest`.
    - `names`, `units`, `lower` (p,): names, units and lower bounds of the parameters; `size` (p,):
      the error of each parameter that counts as a relative error of 1; `wanted`: indices of the
      parameters whose errors are minimised.
    - `drive`: the excited part. The drive is `centre` plus `scale` times a curve, which is
      saturated if `bounded`. `body`: the body whose motion is limited.
    - `weight` (c,), `restarts`: as in `InformationSystem`; `known` (p, p): information about the
      parameters divided by `size`, from an earlier fit and from priors.
    """

    machine: Any
    under_test: MachineUnderTest
    names: tuple[str, ...]
    units: tuple[str, ...]
    lower: np.ndarray
    drive: str
    body: str
    centre: float
    scale: float
    bounded: bool
    shape: AbstractShape
    band: tuple[float, float]
    basis: np.ndarray
    weight: np.ndarray
    restarts: np.ndarray
    size: np.ndarray
    wanted: np.ndarray
    known: np.ndarray
    criterion: Criterion
    limits: tuple[VariableLimit, ...]
    margins: Margins
    engine: OnSamples

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields only, because compiled programs cannot be pickled."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @property
    def excites_reference(self) -> bool:
        """True if the excitation is the reference of a position controller."""
        return is_position_controller(self.under_test.setup.machine, self.drive)

    @property
    def unit(self) -> str:
        """Unit of the drive."""
        return self.channel_units[self.drive]

    @property
    def channel_units(self) -> dict[str, str]:
        """SI units of inputs and outputs. For a machine of a user's class, the dict contains the
        drive, and the outputs whose names determine whether they are of a rotation.
        """
        machine, outputs = self.machine, self.under_test.outputs
        if isinstance(machine, Mechanism):
            inputs = self.under_test.inputs
            paths = {n: f"{n.partition('.')[0]}.{signal_field(machine, n)}" for n in inputs}
            paths |= {name: name for name in outputs}
            return {name: variable_unit(machine, path) or "1" for name, path in paths.items()}
        place = split_channel((*state_names(machine), "s")[0])[1]
        clear = [n for n in outputs if len(VARIABLES.get(split_channel(n)[1], ())) == 1]
        units = {name: variable_unit(machine, name) for name in clear}
        return units | {self.drive: "N.m" if place == "phi" else "N"}

    @property
    def t(self) -> np.ndarray:
        """Times of the samples (n,) [s]."""
        return np.asarray(self.under_test.t)

    def excitation(self, c: Float[Numbers, " k"]) -> Float[Numbers, " n"]:
        """Return the drive (n,) for the parameters c of the excitation. The result is a NumPy array
        if c is a NumPy array, and otherwise a JAX array.
        """
        raw = self.shape.curve(self.basis, c)
        if self.bounded and not self.shape.bounded:
            raw = namespace(c).tanh(raw)
        return self.centre + self.scale * raw

    @functools.cached_property
    def compiled_excitation(self) -> Any:
        """The compiled function `excitation`."""
        return interruptible_jit(self.excitation)

    @functools.cached_property
    def pull_back(self) -> Any:
        """Compiled chain rule: (c, gradient with respect to u) -> gradient with respect to c."""
        return interruptible_jit(lambda c, gradient: jax.vjp(self.excitation, c)[1](gradient)[0])

    @functools.cached_property
    def _outputs(self) -> Any:
        """Compiled function of the drive u and the parameter values x. This function returns the
        outputs (n, c) without noise, and whether the simulation succeeded.
        """

        def simulate(u: Float[Array, " n"], x: Float[Array, " p"]) -> tuple[Array, Array]:
            under_test, t = self._with_drive(u), jnp.asarray(self.t)
            system, setup = under_test.system(x), under_test.with_values(x)
            path, columns = walk(system, *system.start(t[0]), t, options=self.engine), []
            for name in under_test.outputs:
                at = jax.vmap(functools.partial(variable_at, system, name))(t, path.ys, path.modes)
                late = f"outputs.{name}" in under_test.delayed
                columns.append(setup.outputs.at(name)(t, at, t[0], late))
            return jnp.stack(columns, axis=1), path.result == Result.successful

        return interruptible_jit(simulate)

    def outputs(
        self, u: Float[np.ndarray, " n"], x: Float[np.ndarray, " p"] | None = None
    ) -> dict[str, Float[np.ndarray, " n"]]:
        """Return the outputs without noise for the drive u and the parameter values x.

        **Raises:** `RuntimeError` if the simulation fails.
        """
        at = self.under_test.values() if x is None else jnp.asarray(x)
        values, succeeded = self._outputs(jnp.asarray(u), at)
        if not bool(succeeded):
            raise RuntimeError("The machine cannot be simulated under its excitation.")
        return dict(zip(self.under_test.outputs, np.asarray(values).T, strict=True))

    def _with_drive(self, u: Float[Array, " n"]) -> MachineUnderTest:
        inputs = {**self.under_test.inputs, self.drive: u}
        return dataclasses.replace(self.under_test, inputs=inputs)

    def information_system(self, u: Float[Array, " n"], x: Float[Array, " p"]) -> InformationSystem:
        """Return the `InformationSystem` for the drive u and the parameter values x."""
        return build_information_system(self._with_drive(u), x, self.weight, self.restarts)

    def run(self, u: Float[Array, " n"], x: Float[Array, " p"]) -> ExperimentRun:
        """Simulate the experiment for the drive u and the parameter values x."""
        system, t = self.information_system(u, x), jnp.asarray(self.t)
        path = walk(system, *system.start(t[0]), t, options=self.engine)
        sensitive = system.sensitive
        state = lambda y: y[: sensitive.size]  # noqa: E731
        own = path.modes[:, :-1] if self.restarts.size else path.modes
        count = self._contact_modes(own.shape[1])
        guards = lambda modes: jax.vmap(  # noqa: E731
            lambda t, y, m: sensitive.guard(t, state(y), m, None)
        )(t, path.ys, modes)
        slip, miss = _slip_and_miss(guards, own, path, count, t)
        # `sampled` is a sum over samples, which is not differentiated: its derivatives are wrong.
        fixed, ys = constant((system, path.ys))
        rates = jax.vmap(lambda t, y, m: fixed.information_rates(t, state(y), m))(t, ys, own)
        step = self.t[1] - self.t[0]
        sampled = system.matrix(
            jnp.concatenate([ys[0, : sensitive.size], step * jnp.sum(rates, axis=0)])
        )
        machine, loads = sensitive.family.system(x), []

        def value(name: str, t: Array, y: Array, mode: Array) -> Array:
            if name.startswith("der("):  # `der(x)` is dx/dt of the state x.
                return machine.flow(t, y, mode, None)[machine.states().index(name[4:-1])]
            return variable_at(machine, name, t, y, mode)

        for limit in self.limits:
            if limit.variable == self.drive:
                values = u - self.centre
            else:
                rows = jax.vmap(functools.partial(value, limit.variable))
                values = rows(t, path.ys[:, : sensitive.n], own)
            loads.append(limit.load(values))
        return ExperimentRun(
            system.matrix(path.ys[-1]),
            sampled,
            jnp.stack(loads) if loads else jnp.zeros(0),
            slip,
            miss,
            path.result == Result.successful,
            path.count,
        )

    def drive_exceeds_limit(self, u: Float[np.ndarray, " n"]) -> bool:
        """Return whether the drive itself exceeds a limit. The test does not simulate."""
        most = [limit.limit for limit in self.limits if limit.variable == self.drive]
        return bool(np.max(np.abs(u - self.centre)) > (1.0 + ROUNDING) * min(most, default=np.inf))

    def covariance(self, information: Float[Array, "p p"]) -> Float[Array, "p p"]:
        """Return the covariance of the relative errors, including the information `known`."""
        size = jnp.asarray(self.size)
        relative = information * jnp.outer(size, size) + self.known
        bound = 1e-4  # added information, which limits the relative error of a parameter to 100
        return jnp.linalg.inv(relative + bound * jnp.eye(size.size))

    def criterion_at(self, information: Float[Array, "p p"]) -> Float[Array, ""]:
        """Return the logarithm of the criterion for the `wanted` parameters; smaller is better."""
        covariance = self.covariance(information)
        return design_criterion(self.criterion, covariance[np.ix_(self.wanted, self.wanted)])

    @functools.cached_property
    def compiled_criterion(self) -> Any:
        """The compiled function `criterion_at`."""
        return interruptible_jit(self.criterion_at)

    def cost(
        self, u: Float[Array, " n"], x: Float[Array, " p"], penalty_weight: Any
    ) -> tuple[Float[Array, ""], tuple[ExperimentRun, Array]]:
        """Return the cost, and the pair of run and penalty. The cost is the criterion plus
        `penalty_weight` times the penalty for violated limits and margins.
        """
        run = self.run(u, x)
        aim = 0.99  # The search aims at 99 % of each limit, so that its result is within the limit.
        excess = jax.nn.relu(run.loads / aim - 1.0)
        penalty = 20.0 * jnp.sum(excess + excess**2)
        for value, margin in ((run.slip, self.margins.slip), (run.miss, self.margins.miss)):
            if margin > 0:
                penalty = penalty + jax.nn.relu(1.0 - aim * value / margin) ** 2
        return self.criterion_at(run.information) + penalty_weight * penalty, (run, penalty)

    @functools.cached_property
    def cost_and_gradient(self) -> Any:
        """Compiled function that returns `cost` and its gradient with respect to the drive u."""
        program = interruptible_jit(jax.value_and_grad(self.cost, has_aux=True))
        return lambda u, x, weight: program(u, x, jnp.asarray(weight))

    def run_once(self, u: Float[Numbers, " n"], x: Float[Numbers, " p"]) -> ExperimentRun:
        """Return the result of `run(u, x)` by `cost_and_gradient`, without another compilation."""
        return self.cost_and_gradient(u, x, 1.0)[0][1][0]

    @functools.cached_property
    def run_repeatedly(self) -> Any:
        """The compiled function `run`, without a gradient, for many simulations."""
        return interruptible_jit(lambda u, x: self.run(u, x))

    def _contact_modes(self, modes: int) -> int:
        machine = self.under_test.setup.machine
        if isinstance(machine, Mechanism):
            return len(MechanicalSystem(machine).layout.contacts)
        return min(contact_modes(machine, len(self.under_test.inputs), modes), 1)


def design_criterion(kind: Criterion, covariance: Float[Array, "p p"]) -> Float[Array, ""]:
    """Return the logarithm of the criterion `kind` for relative errors with the given covariance.
    The criteria are E: error of the worst combination of parameters; minimax: error of the worst
    parameter; A: root mean square error; D: geometric mean of the errors along the principal axes.
    """
    if kind == "D":
        return 0.5 * jnp.linalg.slogdet(covariance)[1] / covariance.shape[0]
    if kind == "E":
        return 0.5 * jnp.log(jnp.linalg.eigvalsh(covariance)[-1])
    variance = jnp.diag(covariance)
    if kind == "A":
        return 0.5 * jnp.log(jnp.mean(variance))
    # The sum of the 8th powers replaces the maximum, which is not differentiable. The division by
    # `largest` only avoids overflow, and does not change the result.
    largest = constant(jnp.max(variance))
    return 0.5 * (jnp.log(largest) + jnp.log(jnp.sum((variance / largest) ** 8)) / 8)


def is_position_controller(machine: Any, drive: str) -> bool:
    """Return whether the part `drive` of the machine is a `PositionController`."""
    return isinstance(machine, Mechanism) and isinstance(
        machine[drive.partition(".")[0]], PositionController
    )


def _slip_and_miss(
    guards: Callable[[Array], Array], modes: Array, path: Any, count: int, t: Array
) -> tuple[Array, Array]:
    """Return the duration of the shortest slip [samples], and the distance from an event that does
    not happen.

    This distance is the smallest local minimum of an event function, divided by its largest value,
    or the result of `_standstill_reserve` if it is smaller. `guards`: function from modes at the
    samples to the event functions at the samples; `modes` (n, m): modes at the samples; `path`:
    result of the simulation; `count`: number of contacts.
    """
    step, margins = t[1] - t[0], guards(modes)
    big = jnp.asarray(1e3)
    slip = turned = big
    rows = jnp.arange(path.times.shape[0])
    used = rows < path.count
    for c in range(count):
        changed = used & (path.before[:, c] != path.after[:, c])
        begins = changed & (path.before[:, c] == 0)
        # For each event, `before` is the index of the last earlier event at which the contact began
        # to slip.
        start_row = jax.lax.associative_scan(jnp.maximum, jnp.where(begins, rows, -1))
        before = jnp.concatenate([jnp.full(1, -1), start_row[:-1]])
        ends = changed & (path.after[:, c] == 0) & (before >= 0)
        times = jnp.where(used, path.times, 0.0)
        lasted = jnp.where(ends, times - times[jnp.maximum(before, 0)], jnp.inf)
        slip = smaller(slip, least(lasted) / step)
        turns = changed & (path.before[:, c] != 0)
        rests = guards(modes.at[:, c].set(0))
        reserve = _standstill_reserve(rests, margins, modes[:, c] == 0, times, t)
        turned = smaller(turned, least(jnp.where(turns, reserve, big)))
    # An event function has another meaning if its contact is stuck. Therefore its largest value is
    # taken only over samples with the same set of stuck contacts.
    modes = modes[:, :count]
    kinds = 2 ** min(modes.shape[1], 10)  # Beyond ten contacts, two sets may have one number.
    bits = 2 ** (jnp.arange(modes.shape[1]) % 30)
    kind = jnp.sum(jnp.where(modes == 0, bits, 0), axis=1, dtype=jnp.int32) % kinds
    finite = jnp.isfinite(margins)
    g = jnp.where(finite, margins, 0.0)
    most = jax.ops.segment_max(constant(g), kind, num_segments=kinds)[kind]
    inside = jnp.all(modes[:-2] == modes[1:-1], axis=1) & jnp.all(modes[2:] == modes[1:-1], axis=1)
    low = (g[1:-1] < g[:-2]) & (g[1:-1] <= g[2:]) & finite[:-2] & finite[1:-1] & finite[2:]
    share = g[1:-1] / jnp.where(most[1:-1] > 0, most[1:-1], 1.0)
    near = jnp.where(inside[:, None] & low & (most[1:-1] > 0), share, big)
    return slip, smaller(least(jnp.ravel(near)), turned)


def _standstill_reserve(
    rests: Array, margins: Array, stuck: Array, times: Array, t: Array
) -> Array:
    """Return how far a contact is from the boundary between standstill and reversal at `times`.

    The reserve is the smallest absolute value of the event functions of breakaway, relative to half
    of their largest value while the contact sticks. `rests`: event functions at the samples for a
    stuck contact; `margins`: event functions in the actual modes; `stuck`: True where the contact
    sticks.
    """
    finite = jnp.isfinite(rests)
    g = jnp.where(finite, rests, 0.0)
    own = finite & (rests != margins)  # Event functions of other contacts are excluded.
    k = jnp.clip(jnp.searchsorted(t, times) - 1, 0, t.shape[0] - 2)
    w = jnp.clip((times - t[k]) / (t[k + 1] - t[k]), 0.0, 1.0)[:, None]
    between = (1 - w) * g[k] + w * g[k + 1]
    own = jnp.any(own & ~stuck[:, None], axis=0)
    # If the load is halfway between breakaway in both directions, the two event functions of
    # breakaway are equal. Each of these two functions is then half of its largest value.
    at_rest = jnp.max(jnp.where(stuck[:, None], g, 0.0), axis=0)
    most = constant(jnp.where(at_rest > 0, at_rest, jnp.max(g, axis=0))) / 2
    counts = own & (most > 0) & finite[k] & finite[k + 1]
    share = jnp.where(counts, between, 1e3) / jnp.where(most > 0, most, 1.0)
    return jnp.abs(least(share))
