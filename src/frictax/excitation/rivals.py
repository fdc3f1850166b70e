"""What others would have recorded: a chirp and a staircase of speeds within the same limits."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.mechanism import Force, Mechanism, PositionController, Torque
from frictax.mechanism.bodies import AbstractBody
from frictax.signals import Sampled
from frictax.simulation import SimulationError, simulate

from .ascent import excess
from .plan import Plan, Seen, ended_well
from .shapes import AbstractShape, Chirp, Staircase

_HALVINGS = 8
_DRAWS, _REFINED = 15, 15  # staircases that are tried, at random and near the best of these
_TURNS = (0.1, 0.3, 0.6)  # s: how long they take to turn round
_STIFF = 20.0  # Hz: of the controller that a staircase of speeds asks for


@dataclasses.dataclass(frozen=True)
class Rival:
    """An experiment that was not designed: what it is, its drive, what it shows of the machine as
    given, and of each that was drawn.
    """

    says: str
    u: Float[np.ndarray, " n"]
    seen: Seen
    served: tuple[Seen, ...] = ()


def rivals(plan: Plan, body: str) -> list[Rival]:
    """The best chirp of three, and the best staircase of many, each as large as limits allow."""
    found = _best(plan, _chirps(plan)), _staircase(plan, body)
    return [rival for rival in found if rival is not None]


def _best(plan: Plan, tried: Iterator[Rival]) -> Rival | None:
    best = None
    for rival in tried:
        merit = float(plan.merit(rival.seen.information))
        if best is None or merit < best[0]:
            best = merit, rival
    return None if best is None else best[1]


def _chirps(plan: Plan) -> Iterator[Rival]:
    low, high = plan.band
    middle = np.sqrt(low * high)
    for band in ((low, high), (low, middle), (middle, high)):
        other = _with_shape(plan, Chirp(), band)
        found = largest(plan, lambda scale, p=other: np.asarray(p.excitation(np.array([scale]))))
        if found is not None:
            yield Rival(f"chirp, {band[0]:.2g} to {band[1]:.2g} Hz", *found)


def _with_shape(plan: Plan, shape: AbstractShape, band: tuple[float, float]) -> Plan:
    return dataclasses.replace(plan, shape=shape, band=band, basis=shape.basis(plan.t, band))


def _staircase(plan: Plan, body: str) -> Rival | None:
    """The best that was found of those of a reference, or, where a force is designed, of what a
    stiff controller of position would give; None where neither applies.
    """
    drive_of = _played(plan, body)
    if drive_of is None:
        return None
    draws, best, merit = np.random.default_rng(0), None, np.inf
    for k in range(_DRAWS + _REFINED):
        if k < _DRAWS:
            shape = Staircase(speeds=2 + k % 5, turn=_TURNS[k % 3])
            c = shape.draw(plan.t, plan.band, draws)
        elif best is not None:
            shape, c = best[1], best[2] + 0.3 * draws.standard_normal(best[2].size)
        else:
            break
        curve = np.asarray(shape.curve(shape.basis(plan.t, plan.band), c))
        curve = curve / max(np.max(np.abs(curve)), 1e-9)
        found = largest(plan, lambda scale, x=curve: drive_of(scale * x))
        if found is not None and float(plan.merit(found[1].information)) < merit:
            merit, best = float(plan.merit(found[1].information)), (found, shape, c)
    if best is None:
        return None
    held = "" if plan.unit_is_position else ", held by a controller"
    return Rival(f"staircase of speeds{held}", *best[0])


def _played(plan: Plan, body: str) -> Callable[[np.ndarray], np.ndarray | None] | None:
    """The drive of a motion, given from -1 to 1."""
    machine = plan.under_test.setup.machine
    if plan.unit_is_position:
        return lambda curve: plan.centre + plan.scale * curve
    if not isinstance(machine, Mechanism):
        return None
    travel = next((a.limit for a in plan.limits if a.what == "travel"), None)
    drive, inertia = machine[plan.drive.partition(".")[0]], _inertia(machine, body)
    if travel is None or inertia is None or not isinstance(drive, Force | Torque):
        return None
    if drive.body.partition(".")[0] != body:
        return None  # a gear between them: what a controller on the drive holds is not the body
    kp, kv = 0.5 * np.pi * _STIFF, 2 * np.pi * _STIFF * inertia
    x0 = float(plan.under_test.system(plan.under_test.values()).start(jnp.zeros(()))[0][0])

    def force(curve: np.ndarray) -> np.ndarray | None:
        reference = Sampled(plan.t, x0 + 0.5 * travel * curve)
        held = PositionController(drive.body, reference, kp, kv)
        try:
            run = simulate(
                Mechanism(**{**dict(machine.named_parts()), plan.drive: held}), plan.t, plan.engine
            )
        except SimulationError:
            return None
        shown: Any = run[plan.drive]
        return np.asarray(shown.f)

    return force


def _inertia(machine: Mechanism, body: str) -> float | None:
    part = machine[body] if body in machine.names else None
    return float(part.inertia()) if isinstance(part, AbstractBody) else None


def largest(
    plan: Plan, drive_of: Callable[[float], np.ndarray | None], least: float = 1e-3
) -> tuple[np.ndarray, Seen] | None:
    """The drive that is as large as the limits allow, by halving, with what it shows."""
    x, best, low, high = plan.under_test.values(), None, 0.0, 1.0
    for k in range(_HALVINGS):
        scale = 1.0 if k == 0 else 0.5 * (low + high)
        u = drive_of(scale)
        seen = None if u is None or plan.is_beyond(u) else plan.seen(u, x)
        if seen is not None and ended_well(seen) and excess(seen) <= 1e-6:
            best, low = (np.asarray(u), seen), scale
            if scale == 1.0:
                break
        else:
            high = scale
        if high < least:
            return None
    return best
