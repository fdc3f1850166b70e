"""The limit cycle as a pure function of the machine, which JAX can differentiate and batch."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PyTree

from frictax.engine import Adaptive
from frictax.jax_internals import Tracer
from frictax.mechanism import Machine
from frictax.parameters import Values, check, replace
from frictax.parameters.arrays import constant
from frictax.programs import interruptible_jit

from .return_map import (
    ACCEPTED,
    PoincareSection,
    compiled_run_to_section,
    compiled_solve_cycle,
    extremes,
    newton_step,
    resolved_extremes,
    run_second_half,
    solve_cycle,
    whole_return,
)


class CycleNumbers(eqx.Module):
    """The numbers of a limit cycle that can be differentiated.

    - `period` [s]; `low`, `high` (n,): lowest and highest value of each state over the cycle;
      `amplitude` (n,): half of the difference between `high` and `low`; `start` (n,): state at the
      event that starts the cycle.

    **Example:** at `LimitCycle`.
    """

    period: Values
    low: Values
    high: Values
    start: Values

    @property
    def amplitude(self) -> Values:
        return 0.5 * (self.high - self.low)


class Neighbourhood(eqx.Module):
    """The start and the options of a search for a cycle near a known cycle. `y` (n,): state of the
    known cycle at its event; `scale` (n,): sizes of the states; `phases`: number of phases in a
    return; `ends`: indices of the cycle's phases of nonzero length.
    """

    y: Any
    section: PoincareSection
    scale: Any
    engine: Adaptive
    ends: tuple[int, ...]
    phases: int


def follow_cycle(machine: Machine, args: PyTree, near: Neighbourhood) -> CycleNumbers:
    """Return the numbers of the cycle of `machine` near a known cycle; NaN if no cycle is found.
    The derivatives come from the implicit function theorem. The solution of Newton's method is a
    constant, so JAX does not differentiate the iterations. One more Newton step, of length 0, adds
    the derivatives.
    """
    y, scale = jnp.asarray(near.y), jnp.asarray(near.scale)
    section, engine, phases = near.section, near.engine, near.phases
    at = constant(solve_cycle(constant(machine), args, y, section, scale, engine, phases))
    image = whole_return(machine, args, at.y, section, engine, phases)
    by, by_after, by_events = at.derivatives.y, at.derivatives.after, at.derivatives.events
    if section.symmetric:
        by_events = jnp.concatenate([by_events, by_after + by_events @ by])
        by, by_after = by @ by, by_after + by_after @ by
    step = newton_step(by, image.y - at.y, scale)
    y, period, events = at.y + step, image.after + by_after @ step, image.events + by_events @ step
    returns = image.arrived & jnp.all(jnp.abs(image.y - at.y) <= ACCEPTED * scale)
    same_events = jnp.abs(image.events[-1] - image.after) <= 1e-9 * image.after
    ends = events[jnp.asarray(near.ends)]
    low, high, _ = extremes(machine, args, y, section, ends, engine)
    found = jnp.where((at.residual <= ACCEPTED) & returns & same_events, 1.0, jnp.nan)
    return jax.tree.map(lambda x: x * found, CycleNumbers(period, low, high, y))


def cycle_derivatives(
    values: dict[str, Array], machine: Machine, args: PyTree, near: Neighbourhood
) -> dict[str, CycleNumbers]:
    """Return the derivatives of `follow_cycle` with respect to parameters. `values`: path -> value.
    The start of the cycle is known, so no equation is solved. One run gives the derivatives of the
    return map with respect to state and parameters. The result is path -> `CycleNumbers` of
    derivatives, whose last axes are those of the parameter's value.
    """
    y, scale, n = jnp.asarray(near.y), jnp.asarray(near.scale), len(near.scale)
    section, engine = near.section, near.engine
    x, back = ravel_pytree(values)
    machine_at = lambda x: replace(machine, back(x))  # noqa: E731

    def image_of(both: Array) -> tuple[tuple[Array, Array, Array], Array]:
        changed, start = machine_at(both[n:]), both[:n]
        image = whole_return(changed, args, start, section, engine, near.phases)
        times = image.events[jnp.asarray(near.ends)]
        return (image.y, image.after, times), times

    derivatives, times = jax.jacfwd(image_of, has_aux=True)(jnp.append(y, x))
    by_state, own = derivatives[0][:, :n], derivatives[0][:, n:]
    start_by = newton_step(by_state, own, scale)
    period, times_by = (of[..., :n] @ start_by + of[..., n:] for of in derivatives[1:])

    def extremes_at(by: Array) -> tuple[Array, Array]:
        changed, start, ends = machine_at(x + by), y + start_by @ by, times + times_by @ by
        return extremes(changed, args, start, section, ends, engine)[:2]

    low, high = jax.jacfwd(extremes_at)(jnp.zeros_like(x))
    each = [jax.vmap(back)(jnp.atleast_2d(of)) for of in (period, low, high, start_by)]
    return {name: CycleNumbers(each[0][name][0], *(of[name] for of in each[1:])) for name in values}


compiled_derivatives = interruptible_jit(cycle_derivatives)
_compiled_follow = interruptible_jit(follow_cycle)


def follow_compiled(machine: Machine, args: PyTree, near: Neighbourhood) -> CycleNumbers:
    """Return the result of `follow_cycle`. If the arguments are numbers, use the functions that
    `limit_cycle` has already compiled. To compile `follow_cycle` takes longer than to compute
    hundreds of cycles. Therefore it is compiled only within compiled code and for derivatives.
    """
    if any(isinstance(x, Tracer) for x in jax.tree.leaves((machine, args))):
        return _compiled_follow(machine, args, near)
    check(machine)
    section, engine = near.section, near.engine
    start, scale = jnp.asarray(near.y), jnp.asarray(near.scale)
    found = compiled_solve_cycle(machine, args, start, section, scale, engine)
    # If the result is a tracer, the machine is a constant of the code that JAX is tracing.
    if isinstance(found.y, Tracer):
        return _compiled_follow(machine, args, near)
    path = compiled_run_to_section(machine, args, np.asarray(found.y), section, engine)
    events = np.asarray(path.times)[: near.phases] - float(section.time)
    after = float(found.image.after)
    returns = float(found.residual) <= ACCEPTED and abs(events[-1] - after) <= 1e-9 * after
    if returns and section.symmetric:
        returns = run_second_half(machine, args, path, section, scale, engine)[1]
    if not returns:
        unknown = jnp.full_like(found.y, jnp.nan)
        return CycleNumbers(unknown[0], unknown, unknown, unknown)
    period = 2 * after if section.symmetric else after
    events = np.append(events, after + events) if section.symmetric else events
    at = jnp.asarray(events[np.asarray(near.ends)])
    low, high, _ = resolved_extremes(machine, args, np.asarray(found.y), section, at, engine)
    return CycleNumbers(jnp.asarray(period, found.y.dtype), low, high, found.y)
