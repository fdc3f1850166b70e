"""An experiment as a function of the numbers of its excitation: what it tells, what it asks."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from frictax.engine import OnSamples, Result, walk
from frictax.fitting.problem.setup import contact_modes, variable_at
from frictax.mechanism import MechanicalSystem, Mechanism, PositionController
from frictax.parameters import Numbers
from frictax.parameters.arrays import constant, least, smaller
from frictax.programs import interruptible_jit
from frictax.pytree import pytree_dataclass

from .criteria import Criterion, criterion_of
from .information import informed_of
from .informed import Informed, UnderTest
from .limits import Margins
from .shapes import AbstractShape, namespace

_UNKNOWN = 1e-4  # of information: nothing is known worse than by 100 times its size
_LIMIT, _MARGIN = 20.0, 1.0  # weights beside the criterion, a logarithm
_WITHIN = 0.99  # of a limit, or of what one over a margin is, a search aims at


@pytree_dataclass
class Seen:
    """What one run of an experiment shows.

    - `information` (p, p): as an integral over the run, in units of the parameters; `sampled`: as
      the sum over the samples.
    - `asked` (k,): travel, speed, ... over their limits; `slip`: the shortest, in samples; `miss`:
      the nearest miss of an event.
    - `well`: whether the run reached its end; `events`: after how many.
    """

    information: Float[Array, "p p"]
    sampled: Float[Array, "p p"]
    asked: Float[Array, " k"]
    slip: Float[Array, ""]
    miss: Float[Array, ""]
    well: Bool[Array, ""]
    events: Array


@dataclasses.dataclass(frozen=True)
class Asked:
    """A limit: what it is called, of which variables it is one, and where it lies."""

    what: str
    variable: str
    limit: float

    def of(self, x: Array) -> Array:
        """What a run of the variable asks, as a share of the limit."""
        most = -least(-x) - least(x) if self.what == "travel" else -least(-jnp.abs(x))
        return most / self.limit


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """The experiment but for its excitation.

    - `under_test`: the machine with its instruments, and the parameters to be found; `drive`: what
      is excited, by `scale` times a curve about `centre`, held to that if `bounded`.
    - `weight` (c,), `restarts`: as of `Informed`; `size` (p,): of the parameters; `wanted`: which
      of them count; `known` (p, p): relative information there is already.
    """

    under_test: UnderTest
    drive: str
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
    limits: tuple[Asked, ...]
    margins: Margins
    engine: OnSamples

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: compiled programs cannot be pickled, and are made again when they are
        needed.
        """
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @property
    def unit_is_position(self) -> bool:
        """Whether a reference of position is excited."""
        machine = self.under_test.setup.machine
        return isinstance(machine, Mechanism) and isinstance(
            machine[self.drive.partition(".")[0]], PositionController
        )

    @property
    def t(self) -> np.ndarray:
        return np.asarray(self.under_test.t)

    def excitation(self, c: Float[Numbers, " k"]) -> Float[Numbers, " n"]:
        """The drive at its samples; in NumPy what is given in it."""
        raw = self.shape.curve(self.basis, c)
        if self.bounded and not self.shape.bounded:
            raw = namespace(c).tanh(raw)
        return self.centre + self.scale * raw

    @functools.cached_property
    def made(self) -> Any:
        """`excitation`, compiled."""
        return jax.jit(self.excitation)

    @functools.cached_property
    def back(self) -> Any:
        """From the slope of a cost by the drive to that by its numbers `c`, compiled."""
        return jax.jit(lambda c, along: jax.vjp(self.excitation, c)[1](along)[0])

    @functools.cached_property
    def shown(self) -> Any:
        """Each output at each sample (n, c), without noise, under the excitation `u` of the machine
        with values `x`, and whether the run reached its end, compiled.
        """

        def played(u: Float[Array, " n"], x: Float[Array, " p"]) -> tuple[Array, Array]:
            under_test, t = self.excited(u), jnp.asarray(self.t)
            system = under_test.system(x)
            path = walk(system, *system.start(t[0]), t, options=self.engine)
            rows = jax.vmap(lambda t, y, mode: under_test.shown(x, t, y, mode))
            return rows(t, path.ys, path.modes), path.result == Result.successful

        return jax.jit(played)

    def excited(self, u: Float[Array, " n"]) -> UnderTest:
        """The machine with its instruments under the excitation `u`."""
        inputs = {**self.under_test.inputs, self.drive: u}
        return dataclasses.replace(self.under_test, inputs=inputs)

    def informed(self, u: Float[Array, " n"], x: Float[Array, " p"]) -> Informed:
        """The machine with values `x` under the excitation `u`."""
        return informed_of(self.excited(u), x, self.weight, self.restarts)

    def run(self, u: Float[Array, " n"], x: Float[Array, " p"]) -> Seen:
        """The experiment with the excitation `u`."""
        informed, t = self.informed(u, x), jnp.asarray(self.t)
        path = walk(informed, *informed.start(t[0]), t, options=self.engine)
        sensitive = informed.sensitive
        state = lambda y: y[: sensitive.size]  # noqa: E731
        own = path.modes[:, :-1] if self.restarts.size else path.modes
        count = self._contact_modes(own.shape[1])
        guards = lambda modes: jax.vmap(  # noqa: E731
            lambda t, y, m: sensitive.guard(t, state(y), m, None)
        )(t, path.ys, modes)
        slip, miss = _edges(guards, own, path, count, t)
        # no search asks for the derivative of this sum, and it would be wrong
        still, ys = constant((informed, path.ys))
        rates = jax.vmap(lambda t, y, m: still.gains(t, state(y), m))(t, ys, own)
        step = self.t[1] - self.t[0]
        sampled = informed.matrix(
            jnp.concatenate([ys[0, : sensitive.size], step * jnp.sum(rates, axis=0)])
        )
        system = sensitive.family.system(x)
        asked = [
            limit.of(
                jax.vmap(lambda t, y, m, name=limit.variable: _value(system, name, t, y, m))(
                    t, path.ys[:, : sensitive.n], own
                )
                if limit.variable != self.drive
                else u - self.centre
            )
            for limit in self.limits
        ]
        return Seen(
            informed.matrix(path.ys[-1]),
            sampled,
            jnp.stack(asked) if asked else jnp.zeros(0),
            slip,
            miss,
            path.result == Result.successful,
            path.count,
        )

    def is_beyond(self, u: Float[np.ndarray, " n"]) -> bool:
        """Whether the drive itself is over a limit, which no run need tell."""
        most = [limit.limit for limit in self.limits if limit.variable == self.drive]
        return bool(np.max(np.abs(u - self.centre)) > (1.0 + 1e-6) * min(most, default=np.inf))

    def covariance(self, information: Float[Array, "p p"]) -> Float[Array, "p p"]:
        """Of the relative errors of all parameters, with what is known already."""
        size = jnp.asarray(self.size)
        relative = information * jnp.outer(size, size) + self.known
        return jnp.linalg.inv(relative + _UNKNOWN * jnp.eye(size.size))

    def criterion_at(self, information: Float[Array, "p p"]) -> Float[Array, ""]:
        """The criterion of the parameters that are wanted: the smaller the better."""
        covariance = self.covariance(information)
        return criterion_of(self.criterion, covariance[np.ix_(self.wanted, self.wanted)])

    @functools.cached_property
    def merit(self) -> Any:
        """`criterion_at`, compiled."""
        return jax.jit(self.criterion_at)

    def cost(
        self, u: Float[Array, " n"], x: Float[Array, " p"], strict: Any
    ) -> tuple[Float[Array, ""], tuple[Seen, Array]]:
        """What a search makes small, with what is seen and the part of limits and margins, which
        weigh `strict` times that.
        """
        seen = self.run(u, x)
        over = jax.nn.relu(seen.asked / _WITHIN - 1.0)
        short = jax.nn.relu(1.0 - _WITHIN * seen.slip / max(self.margins.slip, 1e-9))
        near = jax.nn.relu(1.0 - _WITHIN * seen.miss / max(self.margins.miss, 1e-9))
        cost = self.criterion_at(seen.information)
        beyond = _LIMIT * jnp.sum(over + over**2)
        if self.margins.slip > 0:
            beyond = beyond + _MARGIN * short**2
        if self.margins.miss > 0:
            beyond = beyond + _MARGIN * near**2
        cost = cost + strict * beyond
        return cost, (seen, beyond)

    @functools.cached_property
    def slope(self) -> Any:
        """The cost, what is seen, and the gradient of the cost by the drive, compiled; a key stops
        it at once.
        """
        program = interruptible_jit(jax.value_and_grad(self.cost, has_aux=True))
        return lambda u, x, strict: program(u, x, jnp.asarray(strict))

    def seen(self, u: Float[Numbers, " n"], x: Float[Numbers, " p"]) -> Seen:
        """`run` by the program of the search: compiling another takes longer than many a slope."""
        return self.slope(u, x, 1.0)[0][1][0]

    @functools.cached_property
    def often(self) -> Any:
        """`run` by a program of its own, for many runs; a key stops it at once."""
        return interruptible_jit(lambda u, x: self.run(u, x))

    def _contact_modes(self, modes: int) -> int:
        machine = self.under_test.setup.machine
        if isinstance(machine, Mechanism):
            return len(MechanicalSystem(machine).layout.contacts)
        return min(contact_modes(machine, len(self.under_test.inputs), modes), 1)


def ended_well(seen: Seen) -> bool:
    """Whether the run reached its end."""
    return bool(np.all(np.asarray(seen.well)))


def _value(system: Any, name: str, t: Array, y: Array, mode: Array) -> Array:
    """A variable; ``"der(x)"`` for the rate of a state."""
    if name.startswith("der("):
        return system.flow(t, y, mode, None)[system.states().index(name[4:-1])]
    return variable_at(system, name, t, y, mode)


def _edges(
    guards: Callable[[Array], Array], modes: Array, path: Any, count: int, t: Array
) -> tuple[Array, Array]:
    """The shortest slip in samples, and the nearest miss of an event as a share of what its margin
    has at most; `guards`: the margins at the samples, in given modes.
    """
    step, margins = t[1] - t[0], guards(modes)
    big = jnp.asarray(1e3)
    slip = turned = big
    rows = jnp.arange(path.times.shape[0])
    used = rows < path.count
    for c in range(count):
        changed = used & (path.before[:, c] != path.after[:, c])
        begins = changed & (path.before[:, c] == 0)
        # the time of the last start of a slip before each row
        start_row = jax.lax.associative_scan(jnp.maximum, jnp.where(begins, rows, -1))
        before = jnp.concatenate([jnp.full(1, -1), start_row[:-1]])
        ends = changed & (path.after[:, c] == 0) & (before >= 0)
        times = jnp.where(used, path.times, 0.0)
        lasted = jnp.where(ends, times - times[jnp.maximum(before, 0)], jnp.inf)
        slip = smaller(slip, least(lasted) / step)
        turns = changed & (path.before[:, c] != 0)
        rests = guards(modes.at[:, c].set(0))
        reserve = _least_reserve(rests, margins, modes[:, c] == 0, times, t)
        turned = smaller(turned, least(jnp.where(turns, reserve, big)))
    # A margin of a stuck contact and one of a sliding one may stand in the same place.
    modes = modes[:, :count]
    kind = jnp.sum(
        jnp.where(modes == 0, 2 ** jnp.arange(modes.shape[1]), 0), axis=1, dtype=jnp.int32
    )
    finite = jnp.isfinite(margins)
    g = jnp.where(finite, margins, 0.0)
    most = jax.ops.segment_max(constant(g), kind, num_segments=2 ** min(modes.shape[1], 10))[kind]
    inside = jnp.all(modes[:-2] == modes[1:-1], axis=1) & jnp.all(modes[2:] == modes[1:-1], axis=1)
    low = (g[1:-1] < g[:-2]) & (g[1:-1] <= g[2:]) & finite[:-2] & finite[1:-1] & finite[2:]
    share = g[1:-1] / jnp.where(most[1:-1] > 0, most[1:-1], 1.0)
    near = jnp.where(inside[:, None] & low & (most[1:-1] > 0), share, big)
    return slip, smaller(least(jnp.ravel(near)), turned)


def _least_reserve(rests: Array, margins: Array, stuck: Array, times: Array, t: Array) -> Array:
    """How far a contact is, at each of the `times`, from the edge between coming to rest and going
    on the other way: the least of its margins were it stuck, `rests` at the samples, either sign,
    as a share of the most that this has where it is.
    """
    finite = jnp.isfinite(rests)
    g = jnp.where(finite, rests, 0.0)
    own = finite & (rests != margins)  # not what others have whatever it does
    k = jnp.clip(jnp.searchsorted(t, times) - 1, 0, t.shape[0] - 2)
    w = jnp.clip((times - t[k]) / (t[k + 1] - t[k]), 0.0, 1.0)[:, None]
    between = (1 - w) * g[k] + w * g[k + 1]
    own = jnp.any(own & ~stuck[:, None], axis=0)
    # half of the way between both directions
    at_rest = jnp.max(jnp.where(stuck[:, None], g, 0.0), axis=0)
    most = constant(jnp.where(at_rest > 0, at_rest, jnp.max(g, axis=0))) / 2
    counts = own & (most > 0) & finite[k] & finite[k + 1]
    share = jnp.where(counts, between, 1e3) / jnp.where(most > 0, most, 1.0)
    return jnp.abs(least(share))
