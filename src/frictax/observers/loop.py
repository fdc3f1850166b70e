"""The loop over the samples of a record."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from frictax.contacts.mode import STUCK
from frictax.engine import Engine, Result
from frictax.programs import jitted

from .interval import Interval, Wanders
from .mixture import Seen, Sensors, at_rest, distance, drawn, predicted, updated


class Asked(eqx.Module):
    """A machine, a record as arrays, and what is not known of either.

    `x` (k,), `sd` (k,): what is estimated, as it is known before the first sample; `variance`
    (n, c) of the sensors.
    """

    machine: Any
    wanders: Wanders
    t: Float[Array, " n"]
    inputs: dict[str, Float[Array, " n"]]
    measured: Float[Array, "n c"]
    variance: Float[Array, "n c"]
    x: Float[Array, " k"]
    sd: Float[Array, " k"]
    states: tuple[str, ...] = eqx.field(static=True)
    outputs: tuple[str, ...] = eqx.field(static=True)
    hold: bool = eqx.field(static=True)
    contacts: int = eqx.field(static=True)

    def interval(self, i: Any, j: Any) -> Interval:
        """From sample i to sample j."""
        ends = jnp.stack([i, j])
        inputs = {name: u[ends] for name, u in self.inputs.items()}
        return Interval(
            self.machine,
            self.wanders,
            self.t[ends],
            inputs,
            self.states,
            self.hold,
            self.contacts,
        )


class Found(eqx.Module):
    """What the loop finds at a sample, or at each; `result`: how the run to it ended."""

    x: Float[Array, "... k"]
    P: Float[Array, "... k k"]
    innovation: Float[Array, "... c"]
    S: Float[Array, "... c c"]
    nis: Float[Array, "..."]
    log_density: Float[Array, "..."]
    stuck: Float[Array, "... m"]
    result: PyTree


@jitted
def filtered(asked: Asked, engine: Engine, saltation: bool, members: int, key: Array) -> Found:
    """`members` Kalman filters over a record, each with its weight."""
    n = asked.t.shape[0]

    def step(carry: Any, at: Any) -> Any:
        (X, P, log_w, result), (i, key) = carry, at
        # the interval that begins at sample i says what acts from there on
        interval = asked.interval(i, jnp.minimum(i + 1, n - 1))
        sensors = Sensors(asked.measured[i], asked.variance[i], asked.outputs)
        see = lambda x, P: updated(interval, x, P, sensors, saltation)  # noqa: E731
        seen = jax.vmap(see)(X, P)
        found, log_w = _mixed(seen, log_w, result, asked.contacts)
        X, P = seen.x, seen.P
        if members > 1:
            numbers, again = jax.random.split(key)
            number = jax.random.normal(numbers, (members,))
            (X, P, mode), log_w = _resampled((X, P, seen.mode), log_w, again)
            X, P = jax.vmap(lambda *one: drawn(interval, *one))(X, P, mode, number)
        go = lambda x, P: predicted(interval, x, P, engine, saltation)  # noqa: E731
        X, P, result = jax.vmap(go)(X, P)
        lost = ~jnp.all(jnp.isfinite(X), axis=1)
        if members > 1:  # a run that failed is one of many
            X, P = jnp.where(lost[:, None], asked.x, X), jnp.where(lost[:, None, None], 0.0, P)
            log_w = jnp.where(lost, -jnp.inf, log_w)
        worst = jax.tree.map(lambda a: a[jnp.argmax(lost)], result)
        return (X, P, log_w, worst), found

    first = asked.interval(jnp.array(0), jnp.array(1))
    x, P, _ = at_rest(first, asked.x, jnp.diag(asked.sd**2), saltation)
    each = lambda a: jnp.broadcast_to(a, (members, *a.shape))  # noqa: E731
    start = each(x), each(P), jnp.full(members, -jnp.log(members)), Result.successful
    return jax.lax.scan(step, start, (jnp.arange(n), jax.random.split(key, n)))[1]


def _mixed(seen: Seen, log_w: Array, result: PyTree, contacts: int) -> tuple[Found, Array]:
    """What the filters say together, and the logarithms of their weights after the sample."""
    before = jnp.exp(log_w)
    innovation = before @ seen.innovation
    apart = seen.innovation - innovation
    S = jnp.einsum("p,pij->ij", before, seen.S) + jnp.einsum("p,pi,pj->ij", before, apart, apart)
    log_density = jax.scipy.special.logsumexp(log_w + seen.log_density)
    log_w = log_w + seen.log_density - log_density
    w = jnp.exp(log_w)
    x = w @ seen.x
    P = jnp.einsum("p,pij->ij", w, seen.P) + jnp.einsum("p,pi,pj->ij", w, seen.x - x, seen.x - x)
    nis, stuck = distance(innovation, S), w @ (seen.mode[:, :contacts] == STUCK).astype(w.dtype)
    return Found(x, P, innovation, S, nis, log_density, stuck, result), log_w


def _resampled(filters: Any, log_w: Array, key: Array) -> tuple[Any, Array]:
    """The filters drawn anew by their weights, at even distances, where few of them count."""
    w, members = jnp.exp(log_w), log_w.shape[0]
    few = jnp.sum(w**2) > 2.0 / members
    at = (jax.random.uniform(key) + jnp.arange(members)) / members
    pick = jnp.minimum(jnp.searchsorted(jnp.cumsum(w), at), members - 1)
    filters = jax.tree.map(lambda a: jnp.where(few, a[pick], a), filters)
    return filters, jnp.where(few, -jnp.log(members), log_w)
