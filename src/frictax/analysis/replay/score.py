"""How well a fitted machine explains a record by another objective."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from frictax.fitting import AbstractObjective, FitResult
from frictax.fitting.problem.readings import divide_gaps
from frictax.fitting.problem.setup import Setup
from frictax.measurements import Record
from frictax.programs import cached_jit

from .motion import named


def score(
    found: FitResult, record: Record | str, objective: AbstractObjective
) -> Mapping[str, float]:
    """How well the fitted machine explains a record by another objective.

    `record`: a label of this fit, whose own values count then, or a `Record` that was not fitted. A
    free run of a validation record is ``found.score(validation, fx.FreeRun(measured_start=True))``.

    **Returns:** output -> root mean square of what is left [SI].
    """
    if not isinstance(objective, AbstractObjective):
        raise ValueError(
            "`score` needs an objective such as FreeRun(measured_start=True) or Windows(), got"
            f" {objective!r}."
        )
    number, data = named(found, record)
    if not isinstance(data, Record):
        raise ValueError(
            f"`score` takes a `Record` or the label of one that was fitted, got {record!r}."
        )
    setup = found.problem.setup_at(jnp.asarray(found.x), number)
    machine = objective.machine(setup.machine)
    here = setup.for_channels(data.inputs, data.outputs, machine)
    prepared = divide_gaps(objective.prepare(machine, data), found.problem.engine)
    predicted = np.asarray(_predict(objective, here, prepared, found.problem.engine))
    counted = np.asarray(prepared.weight) > 0
    left = np.where(counted, np.asarray(prepared.measured) - predicted, 0.0)
    axes = tuple(range(left.ndim - 1))
    rms = np.sqrt(np.sum(left**2, axis=axes) / np.sum(counted, axis=axes))
    return dict(zip(prepared.names, rms.tolist(), strict=True))


@cached_jit
def _predict(objective: AbstractObjective, setup: Setup, prepared: Any, engine: Any) -> Any:
    delayed = frozenset(
        [f"inputs.{n}" for n in prepared.inputs] + [f"outputs.{n}" for n in prepared.names]
    )
    return objective.predict(setup, prepared, engine, delayed)
