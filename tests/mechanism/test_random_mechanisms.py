"""Random mechanisms, 21 structures with 100 draws each: energy, finiteness, result codes, and
`Adaptive` against `OnSamples`.

Three structures that compile soon are run by default, without gears; all 21 where the environment
variable FRICTAX_ALL_STRUCTURES is set.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from structures import SEED, Structure

NUMBERS = (0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 25, 27, 37)
BY_DEFAULT = (3, 4, 17)
CHOSEN = NUMBERS if os.environ.get("FRICTAX_ALL_STRUCTURES") else BY_DEFAULT
WALKED = CHOSEN if os.environ.get("FRICTAX_ALL_STRUCTURES") else (3,)
DRAWS, COMPARED = 100, 4
TIGHT = fx.Adaptive(rtol=1e-11, atol=1e-13, max_events=300)
SAMPLES = 6  # of the error-controlled run
STEPS = 1536  # of the finer walk on samples; the coarser has steps of twice the length
LEAST = 1e-4  # energy [J] below which a machine counts as one that does not move
SHORTEST = 1e-7  # a mode that lasts less [s] is one that the two walks may pass at one instant


VARIED = (
    "m J c d F_Coulomb F_prop F_Stribeck fexp amplitude height offset fn_max C G s v phi w smin"
    " smax tau_bf1 tau_bf2 ratio".split()
)


def varied(machine: fx.Mechanism) -> list[str]:
    """The paths of what is drawn; a table's forces by one factor, for they are called as a sine's
    frequency is.
    """
    found = []
    for p in fx.parameters.parameters(machine):
        name = p.path.rpartition(".")[2]
        if name in (*VARIED, "peak") or (name == "f" and np.ndim(p.value) == 1):
            found.append(p.path)
    return found


def drawn(machine: fx.Mechanism, factors: jax.Array) -> fx.Mechanism:
    """`machine` with each of its `varied` values times an entry of `factors`, a peak in what is
    above 1.
    """
    values = {}
    for path, factor in zip(varied(machine), factors, strict=True):
        value = fx.parameters.get(machine, path)
        values[path] = 1 + (value - 1) * factor if path.endswith("peak") else value * factor
    return fx.parameters.replace(machine, values)


FACTORS = 3.0  # up and down
CODES = {
    "successful": fx.Result.successful,
    "too_many_events": fx.Result.too_many_events,
    "max_steps_reached": fx.Result.max_steps_reached,
    "chatter": fx.Result.chatter,
    "nonfinite": fx.Result.nonfinite,
    "inconsistent": fx.Result.inconsistent,
}
Found = dict[str, np.ndarray]


def factors(machine: fx.Mechanism, number: int) -> jax.Array:
    draw = np.random.default_rng([SEED, number, 1])
    return jnp.asarray(FACTORS ** draw.uniform(-1, 1, (DRAWS, len(varied(machine)))))


def program(
    machine: fx.Mechanism, engine: Any, energy: bool = False
) -> Callable[[jax.Array, jax.Array], Found]:
    """All draws at given times in one program; `balance` and `heat` over the energy that is turned
    over.
    """

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, None))
    def run(scale: jax.Array, ts: jax.Array) -> dict[str, Any]:
        path = fx.simulate(drawn(machine, scale), ts, engine, energy=energy)
        events = path.events
        found = {
            "ys": path.ys,
            "modes": path.modes,
            "code": jnp.stack([path.result == code for code in CODES.values()]),
            "steps": path.steps,
            "time": events.time,
            "part": events.part,
            "after": events.mode_after,
            "count": events.count,
        }
        if energy:
            e = path.energy
            turned_over = (
                jnp.max(jnp.abs(e.drive))
                + e.friction[-1]
                + e.damper[-1]
                + e.impact[-1]
                + jnp.max(e.kinetic + jnp.abs(e.elastic))
                + LEAST
            )
            found |= {
                "balance": jnp.max(jnp.abs(e.balance)) / turned_over,
                "heat": jnp.max(jnp.abs(e.heat_balance)) / turned_over,
            }
        return found

    return lambda scales, ts: {k: np.asarray(v) for k, v in run(scales, ts).items()}


def lasting(found: Found, draw: int, contacts: int, end: float) -> list[list[tuple[float, int]]]:
    """For each contact when it took which mode, without modes of next to no length."""
    all_changes = []
    for c in range(contacts):
        here = (found["part"][draw] == c) & (found["time"][draw] < end - 1e-4)
        times, after = found["time"][draw][here], found["after"][draw][here]
        changes = [(0.0, int(found["modes"][draw, 0, c]))]
        for time, mode in zip(times, after, strict=True):
            if time - changes[-1][0] < SHORTEST:
                changes.pop()
            if not changes or mode != changes[-1][1]:
                changes.append((float(time), int(mode)))
        all_changes.append(changes)
    return all_changes


@functools.cache
def exact(number: int) -> tuple[Structure, fx.Mechanism, jax.Array, Found]:
    """A structure and its error-controlled runs."""
    structure = Structure(number)
    machine = structure.built()
    scales = factors(machine, number)
    return (
        structure,
        machine,
        scales,
        program(machine, TIGHT, energy=True)(scales, jnp.linspace(0.0, structure.end, SAMPLES + 1)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("number", CHOSEN)
def test_all_draws_reach_their_end_with_a_closed_energy_balance(number: int) -> None:
    _, _, _, found = exact(number)
    codes = {name: int(np.sum(found["code"][:, i])) for i, name in enumerate(CODES)}
    assert codes == dict.fromkeys(CODES, 0) | {"successful": DRAWS}
    assert np.all(np.isfinite(found["ys"]))
    assert np.max(found["balance"]) <= 1e-7
    assert np.max(found["heat"]) <= 1e-7
    assert np.percentile(found["count"], 90) >= 5
    if number in WALKED:
        assert_that_a_walk_on_samples_is_of_third_order_and_has_the_same_modes(number)


def assert_that_a_walk_on_samples_is_of_third_order_and_has_the_same_modes(number: int) -> None:
    structure, machine, scales, found = exact(number)
    # Without error control: divided steps hide the order.
    walk = program(machine, fx.OnSamples(max_events=600, tolerance=None))
    errors = []
    # A run of double length on as many samples has steps of double length.
    for longer in (2, 1):
        here = walk(scales[:COMPARED], jnp.linspace(0.0, longer * structure.end, STEPS + 1))
        common = here["ys"][:, : STEPS // longer + 1 : STEPS // longer // SAMPLES]
        difference = common - found["ys"][:COMPARED, :, : common.shape[2]]
        errors.append(np.max(np.abs(difference), axis=(1, 2)))
        for draw in range(COMPARED):
            contacts = len(structure.contacts)
            ours, theirs = (lasting(f, draw, contacts, structure.end) for f in (here, found))
            assert [[mode for _, mode in c] for c in ours] == [
                [mode for _, mode in c] for c in theirs
            ]
    coarse, fine = errors
    assert np.max(fine) <= 3e-4
    # Third order; where a step takes a steep part of a curve, a single halving of it shows 2.3 or
    # 3.1.
    assert np.all((coarse / fine >= 2**2.25) | (fine <= 1e-10))
