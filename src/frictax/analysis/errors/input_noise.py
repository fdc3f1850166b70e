"""Errors where a machine was driven by something else than what was recorded of its inputs."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.fitting import FitResult
from frictax.fitting.problem.objectives import PreparedRecord
from frictax.fitting.problem.problem import predictions
from frictax.measurements import Record
from frictax.measurements.noise import noise_of
from frictax.pytree import pytree_dataclass

from .linearized import AbstractLinearErrors, Linearized, LinearSpread

_DRAWS = 40  # as many degrees of freedom
_SHARE = 0.1  # of the noise is drawn, and what it does is taken as many times: tangents are local
_ABOVE = 3.0  # times the noise of an output: a misfit that is not of the sensor
_CLEAN = 1e-3  # of the spread of an input: less noise is none
_MOST = 4.0  # times the squares that the residuals show: more no noise has made of them


@pytree_dataclass
class InputNoise(AbstractLinearErrors):
    """White noise of the recorded inputs, as large as it is read from each, led through the
    machine: each draw is added to the inputs, the records are predicted once more, and the
    estimates follow by the linearised fit.

    In one run such noise is integrated, and hits of stops or breakaways multiply it, so that it
    shows as few swings that are as long as the record: a residual that no account of its memory
    can tell from others. How the machine passes it on is known, though. No more than four times the
    squares of the residuals are put down to it, for an input may be meant to be rough.
    """

    def of(self, linear: Linearized) -> LinearSpread:
        found, rng = linear.found, np.random.default_rng(0)
        problem, noise, base = found.problem, _noises(found), None
        root, _ = linear.axes
        moved, left = [], []
        for k in range(_DRAWS + 1):  # the first without noise
            rows = []
            for i, one in enumerate(problem.prepared):
                if isinstance(one, PreparedRecord):
                    inputs = {
                        name: np.asarray(u)
                        + (k > 0) * _SHARE * sd * rng.standard_normal(np.shape(u))
                        for (name, u), sd in zip(one.inputs.items(), noise[i], strict=True)
                    }
                    one = dataclasses.replace(one, inputs=inputs)
                prepared = (*problem.prepared[:i], one, *problem.prepared[i + 1 :])
                mine = dataclasses.replace(problem, prepared=prepared)
                weight = np.asarray(one.weight)
                after = np.asarray(predictions(mine, jnp.asarray(found.x), i))
                rows.append(np.ravel(weight * np.where(weight > 0, after, 0.0)))
            r = np.concatenate(rows)
            base = r if base is None else base
            if k and np.isfinite(r).all():
                change = (r - base) / _SHARE
                moved.append(root @ (root.T @ (linear.jacobian.T @ change)))
                left.append(np.sum((change - linear.jacobian @ moved[-1]) ** 2))
        size, count = np.reshape(moved, (-1, len(root))), max(len(moved), 1)
        shown = np.sum(linear.residuals**2) / max(float(np.mean(left or [0.0])), 1e-300)
        covariance = size.T @ size / count * min(1.0, _MOST * shown)
        says = f"noise of the inputs, led through the machine {len(moved)} times"
        return LinearSpread(covariance, lambda directions: np.full(len(directions), count), says)


def inputs_err(found: FitResult) -> bool:
    """Whether inputs are noisy, and leave more of an output than its sensor's noise."""
    for label, record in found.records.items():
        for name, misfit in found.rms[label].items() if isinstance(record, Record) else ():
            if name not in record.outputs:  # a force of inverse dynamics: no sensor's
                continue
            sd = record.sd.get(name)
            least = misfit / _ABOVE
            y = record.outputs[name]
            if least > (noise_of(y, enough=least) if sd is None else np.sqrt(np.mean(sd**2))):
                return any(sd > 0 for each in _noises(found) for sd in each)
    return False


def _noises(found: FitResult) -> list[Float[np.ndarray, " _"]]:
    """The standard deviation of the noise of each input of each record, 0 where there is none."""
    out = []
    for prepared in found.problem.prepared:
        inputs = prepared.inputs.values() if isinstance(prepared, PreparedRecord) else ()
        sizes = [(noise_of(np.asarray(u)), float(np.std(u))) for u in inputs]
        out.append(np.array([sd if sd > _CLEAN * spread else 0.0 for sd, spread in sizes]))
    return out
