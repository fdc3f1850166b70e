"""Chains of the No-U-Turn sampler over a `Problem`, each in a thread of its own."""

import dataclasses
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.fitting.problem.problem import Problem
from frictax.interrupts import Workers, may_keep, results_of
from frictax.programs import cached_jit
from frictax.progress import Work

from .refits import searched

_BLOCK = 25  # draws of one key
_SECONDS = 0.5  # that a call takes, between which a chain can be stopped and tells how far it is
_ACCEPTED = 0.9  # of the proposals: the step size is adapted to that
_FAR = 20.0  # in the logarithm of the density, and 2 for each number: no start lies below
_FEWEST = 100  # draws that an interrupted chain must have to be worth anything


State = tuple[np.ndarray, np.ndarray, np.ndarray]  # u, the density's logarithm, its slope by u


@dataclasses.dataclass(frozen=True, eq=False)
class Chains:
    """Draws of the values (chains, n, q); what the sampler says of each, by name (chains, n); and
    whether a key stopped the chains.
    """

    x: Float[np.ndarray, "c n q"]
    stats: dict[str, np.ndarray]
    interrupted: bool


class Frame(eqx.Module):
    """Coordinates u in which the density is about that of unit normals: w = middle + root u, and
    values x(w) within their bounds.

    Far from its bound x is linear in w, in steps of `scale`: numbers that are known together only
    would else lie on a bent ridge.
    """

    lower: Float[np.ndarray, " q"]
    upper: Float[np.ndarray, " q"]
    scale: Float[np.ndarray, " q"]
    middle: Float[np.ndarray, " q"]
    root: Float[np.ndarray, "q q"]

    def values(self, w: Any) -> Array:
        """Softplus above one bound, a logistic curve between two."""
        lower, upper = (jnp.isfinite(b) for b in (self.lower, self.upper))
        low, high = jnp.where(lower, self.lower, 0.0), jnp.where(upper, self.upper, 0.0)
        wide = jnp.where(lower & upper, high - low, 1.0)
        above = low + self.scale * jax.nn.softplus(w)
        below = high - self.scale * jax.nn.softplus(-w)
        between = low + wide * jax.nn.sigmoid(4.0 * self.scale / wide * w)
        bounded = jnp.where(upper, jnp.where(lower, between, below), above)
        return jnp.where(lower | upper, bounded, self.scale * w)

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """The w of values inside their bounds."""
        w = []
        for low, high, scale, at in zip(self.lower, self.upper, self.scale, x, strict=True):
            if np.isfinite(low) and np.isfinite(high):
                w.append(np.log((at - low) / (high - at)) * (high - low) / (4.0 * scale))
            elif np.isfinite(low) or np.isfinite(high):
                far = (at - low if np.isfinite(low) else high - at) / scale
                w.append((far + np.log(-np.expm1(-far))) * (1.0 if np.isfinite(low) else -1.0))
            else:
                w.append(at / scale)
        return np.asarray(w)

    def slopes(self, w: Any) -> Array:
        """dx/dw."""
        return jax.jvp(self.values, (w,), (jnp.ones_like(w),))[1]


def chains(
    problem: Problem,
    method: Any,
    frame: Frame,
    samples: float,
    counts: tuple[int, int, int],
    seed: int,
    tell: Work,
) -> Chains:
    """Draw.

    `frame` to begin with; `samples`: how many independent ones the residuals are worth; `counts` of
    chains, of draws that the step size and the metric are adapted with, and of draws that are kept,
    in each chain.
    """
    number, warmup, draws = counts
    many = _Chain(problem, method, np.float64(samples), warmup, draws, tell.parts(_equal(number)))
    keys = jax.random.split(jax.random.key(seed), number)
    taken: list[list[dict[str, np.ndarray]]] = [[] for _ in range(number)]
    interrupted = False
    try:
        with Workers() as pool:
            each = zip(range(number), keys, taken, strict=True)
            results_of([pool.submit(many.run, k, key, frame, own) for k, key, own in each])
    except KeyboardInterrupt:
        interrupted = True
        tell.break_off()
        if not may_keep() or min(map(_count, taken)) < _FEWEST:
            raise
    least = min(map(_count, taken))
    stats = {
        name: np.stack([np.concatenate([b[name] for b in blocks])[:least] for blocks in taken])
        for name in taken[0][0]
    }
    x = np.asarray(frame.values(jnp.asarray(stats.pop("w"))))
    return Chains(x, stats, interrupted)


def _equal(number: int) -> dict[str, float]:
    return {f"chain {k + 1}": 1.0 for k in range(number)}


@dataclasses.dataclass(frozen=True, eq=False)
class _Chain:
    """What all chains have in common."""

    problem: Problem
    method: Any
    samples: np.float64
    warmup: int
    draws: int
    tell: dict[str, Work]

    def run(self, number: int, key: Any, frame: Frame, taken: list[dict[str, np.ndarray]]) -> None:
        """One chain: half of the warm-up in the frame given, half in that of the draws so far, then
        the draws, which are `taken` as they come, with what the sampler says of each.
        """
        tell = list(self.tell.values())[number]
        key, own = jax.random.split(key)
        state = self.started(own, frame)
        step, done, part = 0.5, 0, 1
        halves = []
        for count, moves in (
            (self.warmup // 2, True),
            (self.warmup - self.warmup // 2, True),
            (self.draws, False),
        ):
            averaging, drawn = _averaging(step), []
            while _count(drawn) < count:
                key, own = jax.random.split(key)
                own = np.asarray(jax.random.key_data(own))
                at, last = 0, _BLOCK if moves else min(_BLOCK, count - _count(drawn))
                while at < last:
                    began, to = time.perf_counter(), min(at + part, last)
                    state, averaging, told = _block(
                        self.problem,
                        frame,
                        self.samples,
                        own,
                        state,
                        averaging,
                        np.bool_(moves),
                        np.float64(step),
                        np.int32(at),
                        np.int32(to),
                    )
                    left = count - _count(drawn)
                    drawn.append({name: np.asarray(a)[at:to][:left] for name, a in told.items()})
                    if not moves:
                        taken.append(drawn[-1])
                    done += min(left, to - at)
                    tell.count(done, self.warmup + self.draws, "draws")
                    each = (time.perf_counter() - began) / (to - at)
                    at, part = to, int(np.clip(_SECONDS / each, 1, _BLOCK))
            if moves:
                step = float(np.exp(averaging[1]))
                halves.append(np.concatenate([block["w"] for block in drawn]))
            if moves and len(halves) == 1:
                frame, state = _reframed(frame, state, halves[0][len(halves[0]) // 3 :])

    def started(self, key: Any, frame: Frame) -> State:
        """A state to begin with, drawn in the frame, nearer to its middle where the first lead
        nowhere, or over an edge to where next to nothing is probable and all is flat: where nothing
        moves, say.
        """
        random = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        middle = self.state(np.zeros(frame.middle.size), frame)
        least = -np.inf if middle is None else middle[1] - _FAR - 2.0 * frame.middle.size
        improbable = None
        for nearer in range(12):
            u = random.standard_normal(frame.middle.size) * 0.5**nearer
            state = self.state(u, frame)
            if state is not None and state[1] >= least:
                return state
            improbable = improbable if state is None else state
        if improbable is None:
            raise ValueError(
                "`posterior`: the runs fail close to the fitted values too. Fit on `Windows`, or"
                " give `bounds`."
            )
        return improbable

    def state(self, u: np.ndarray, frame: Frame) -> State | None:
        """That at u of the frame; None where runs fail."""
        w = frame.middle + frame.root @ u
        z = np.asarray(self.problem.coordinates(frame.values(jnp.asarray(w))))
        end = searched(self.problem, self.method, z, 1)
        if not np.isfinite(float(end.cost)):
            return None
        value, slope = _density_alone(
            self.problem,
            frame,
            jnp.asarray(w),
            jnp.asarray(end.residuals),
            jnp.asarray(end.jacobian),
            self.samples,
        )
        if not (np.isfinite(value) and np.all(np.isfinite(slope))):
            return None
        return u, np.asarray(value), frame.root.T @ np.asarray(slope)


def _count(blocks: list[dict[str, np.ndarray]]) -> int:
    return sum(len(block["w"]) for block in blocks)


def _averaging(step: float) -> tuple[np.ndarray, ...]:
    """The state of the step size's dual averaging."""
    from blackjax.adaptation.step_size import dual_averaging_adaptation

    return tuple(np.asarray(x, dtype=float) for x in dual_averaging_adaptation(_ACCEPTED)[0](step))


@cached_jit
def _block(
    problem: Problem,
    frame: Frame,
    samples: Any,
    key: Any,
    state: Any,
    averaging: Any,
    moves: Any,
    size: Any,
    begin: Any,
    end: Any,
) -> tuple[Any, Any, dict[str, Array]]:
    """Draws on from `state`, from `begin` to `end` of the `_BLOCK` of one key; the step size is
    `size` unless it `moves` with the averaging.
    """
    from blackjax.adaptation.step_size import dual_averaging_adaptation
    from blackjax.mcmc import hmc, nuts

    kernel, adapt = nuts.build_kernel(), dual_averaging_adaptation(_ACCEPTED)
    root = jnp.asarray(frame.root)

    def at(u: Array) -> tuple[Array, Array]:
        w = frame.middle + root @ u
        value, slope = _density(
            problem,
            frame,
            w,
            *problem.evaluate(jnp.asarray(problem.coordinates(frame.values(w))), 1.0),
            samples,
        )
        good = jnp.isfinite(value) & jnp.all(jnp.isfinite(slope))
        return jnp.where(good, value, -jnp.inf), jnp.where(good, root.T @ slope, 0.0)

    # Both from one pass of forward mode, where reverse mode would take ten times as long.
    density = jax.custom_vjp(lambda u: at(u)[0])
    density.defvjp(at, lambda slope, c: (c * slope,))
    kind = type(adapt[0](1.0))

    draw: Any = kernel  # whose types know neither traced steps nor arrays as positions

    keys = jax.random.split(jax.random.wrap_key_data(key), _BLOCK)

    def drawn(state: Any, averaging: Any, key: Any) -> tuple[Any, Any, dict[str, Array]]:
        now = kind(*averaging)
        step = jnp.where(moves, jnp.exp(now.log_step_size), size)
        new, info = draw(key, hmc.HMCState(*state), density, step, jnp.ones(root.shape[0]))
        after = tuple(jnp.asarray(x, dtype=float) for x in adapt[1](now, info.acceptance_rate))
        told = {
            "w": frame.middle + root @ new.position,
            "lp": new.logdensity,
            "diverging": info.is_divergent,
            "acceptance_rate": info.acceptance_rate,
            "tree_depth": info.num_trajectory_expansions,
            "n_steps": info.num_integration_steps,
        }
        return tuple(new), after, told

    def one(i: Any, carry: Any) -> Any:
        state, averaging, told = carry
        state, averaging, new = drawn(state, averaging, keys[i])
        return state, averaging, jax.tree.map(lambda rows, row: rows.at[i].set(row), told, new)

    start = tuple(map(jnp.asarray, state)), tuple(jnp.asarray(x, dtype=float) for x in averaging)
    _, _, like = jax.eval_shape(drawn, *start, keys[0])
    none = jax.tree.map(lambda x: jnp.zeros((_BLOCK, *x.shape), x.dtype), like)
    return jax.lax.fori_loop(begin, end, one, (*start, none))


def _density(
    problem: Problem, frame: Frame, w: Any, r: Any, jacobian: Any, samples: Any
) -> tuple[Array, Array]:
    """The logarithm of the posterior density of the coordinates w, but for a constant, and its
    gradient, from the residuals and their Jacobian by the coordinates of the problem.
    """
    data = sum(int(np.prod(np.shape(p.weight))) for p in problem.prepared)
    size = jnp.maximum(r[:data] @ r[:data], jnp.finfo(r.dtype).tiny)
    volume = lambda w: jnp.sum(jnp.log(frame.slopes(w)))  # noqa: E731
    value = -0.5 * samples * jnp.log(size) - 0.5 * r[data:] @ r[data:] + volume(w)
    slope = -samples / size * (r[:data] @ jacobian[:data]) - r[data:] @ jacobian[data:]
    by_value = slope / problem.values_and_slopes(problem.coordinates(frame.values(w)))[1]
    return value, by_value * frame.slopes(w) + jax.grad(volume)(w)


_density_alone = cached_jit(_density)


def _reframed(frame: Frame, state: Any, drawn: Float[np.ndarray, "n q"]) -> tuple[Frame, Any]:
    """The frame of the draws so far, and the state in it."""
    u, value, slope = (np.asarray(x) for x in state)
    w, count = frame.middle + frame.root @ u, len(drawn)
    old = frame.root @ frame.root.T
    # Few draws say little of many directions: what was known before counts as five more (as in
    # Stan).
    covariance = (count * np.atleast_2d(np.cov(drawn, rowvar=False)) + 5.0 * old) / (count + 5.0)
    new = dataclasses.replace(frame, middle=drawn.mean(axis=0), root=np.linalg.cholesky(covariance))
    back = np.linalg.solve(frame.root.T, slope)
    return new, (np.linalg.solve(new.root, w - new.middle), value, new.root.T @ back)
