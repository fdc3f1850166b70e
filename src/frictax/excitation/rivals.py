"""Conventional experiments within the same limits, for comparison: chirps and staircases."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.mechanism import Force, Mechanism, PositionController, Torque
from frictax.mechanism.bodies import AbstractBody
from frictax.signals import Sampled
from frictax.simulation import SimulationError, simulate

from .problem import DesignProblem, ExperimentRun
from .shapes import Chirp, Staircase


@dataclasses.dataclass(frozen=True)
class Rival:
    """A conventional experiment: its drive `u`, and its runs with the given and drawn machines."""

    description: str
    u: Float[np.ndarray, " n"]
    run: ExperimentRun
    drawn_runs: tuple[ExperimentRun, ...] = ()


def best_rivals(problem: DesignProblem) -> list[Rival]:
    """Return the best of three chirps and the best of many staircases, scaled to the limits."""
    low, high = problem.band
    middle, chirps = np.sqrt(low * high), []
    for band in ((low, high), (low, middle), (middle, high)):
        basis = Chirp().basis(problem.t, band)
        other = dataclasses.replace(problem, shape=Chirp(), band=band, basis=basis)
        found = largest_within_limits(
            problem, lambda scale, p=other: np.asarray(p.excitation(np.array([scale])))
        )
        if found is not None:
            chirps.append(Rival(f"chirp, {band[0]:.2g} to {band[1]:.2g} Hz", *found))
    rivals = [min(chirps, key=lambda rival: _criterion(problem, rival.run))] if chirps else []
    # If the excitation is a force, a stiff position controller follows the staircase of speeds.
    drive_of = motion_to_drive(problem)
    if drive_of is None:
        return rivals
    draws, best, lowest = np.random.default_rng(0), None, np.inf
    count = 15  # number of random staircases, and of variations of the best random staircase
    for k in range(2 * count):
        if k < count:
            shape = Staircase(speeds=2 + k % 5, turn=(0.1, 0.3, 0.6)[k % 3])
            c = shape.draw(problem.t, problem.band, draws)
        elif best is not None:
            shape, c = best[1], best[2] + 0.3 * draws.standard_normal(best[2].size)
        else:
            break
        curve = np.asarray(shape.curve(shape.basis(problem.t, problem.band), c))
        curve = curve / max(np.max(np.abs(curve)), 1e-9)
        found = largest_within_limits(problem, lambda scale, x=curve: drive_of(scale * x))
        if found is not None and _criterion(problem, found[1]) < lowest:
            lowest, best = _criterion(problem, found[1]), (found, shape, c)
    if best is not None:
        held = "" if problem.excites_reference else ", held by a controller"
        rivals.append(Rival(f"staircase of speeds{held}", *best[0]))
    return rivals


def _criterion(problem: DesignProblem, run: ExperimentRun) -> float:
    return float(problem.compiled_criterion(run.information))


def motion_to_drive(problem: DesignProblem) -> Callable[[np.ndarray], np.ndarray | None] | None:
    """Return a function from a motion between -1 and 1 to the drive that produces this motion.
    Return None if the drive cannot be computed from a motion."""
    machine = problem.under_test.setup.machine
    if problem.excites_reference:
        return lambda curve: problem.centre + problem.scale * curve
    if not isinstance(machine, Mechanism):
        return None
    travel = next((a.limit for a in problem.limits if a.what == "travel"), None)
    name = problem.drive.partition(".")[0]
    drive = machine[name]
    body = machine[problem.body] if problem.body in machine.names else None
    if travel is None or not (isinstance(body, AbstractBody) and isinstance(drive, Force | Torque)):
        return None
    if drive.body.partition(".")[0] != problem.body:
        return None  # With a gear after the drive, the controller acts on another body.
    frequency = 20.0  # [Hz] bandwidth of the controller, which is high compared with the motion
    kp, kv = 0.5 * np.pi * frequency, 2 * np.pi * frequency * float(body.inertia())
    x0 = float(problem.under_test.system(problem.under_test.values()).start(jnp.zeros(()))[0][0])

    def force(curve: np.ndarray) -> np.ndarray | None:
        reference = Sampled(problem.t, x0 + 0.5 * travel * curve)
        held = PositionController(drive.body, reference, kp, kv)
        try:
            run = simulate(
                Mechanism(**{**dict(machine.named_parts()), name: held}),
                problem.t,
                problem.engine,
            )
        except SimulationError:
            return None
        shown: Any = run[name]
        return np.asarray(shown.f)

    return force


def largest_within_limits(
    problem: DesignProblem, drive_of: Callable[[float], np.ndarray | None]
) -> tuple[np.ndarray, ExperimentRun] | None:
    """Return the largest drive within all limits, and its run. Bisection finds the largest factor
    `scale` <= 1 for the drive `drive_of(scale)`. Return None if no tried scale is within the
    limits.
    """
    x, best, low, high = problem.under_test.values(), None, 0.0, 1.0
    for k in range(8):  # Scale 1, then seven bisections to an accuracy of 1 %
        scale = 1.0 if k == 0 else 0.5 * (low + high)
        u = drive_of(scale)
        run = None if u is None or problem.drive_exceeds_limit(u) else problem.run_once(u, x)
        if run is not None and run.within_limits:
            best, low = (np.asarray(u), run), scale
            if scale == 1.0:
                break
        else:
            high = scale
    return best
