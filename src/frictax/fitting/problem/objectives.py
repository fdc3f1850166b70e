"""What a fit compares with a record, and by which rule."""

import abc
import dataclasses
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from frictax.engine import Result
from frictax.engine.options import Engine
from frictax.measurements import Record
from frictax.mechanism.mechanism import Machine
from frictax.parameters import Numbers
from frictax.pytree import pytree_dataclass, static

from .setup import Course, Setup
from .weak_form import WeakForm

Predicted = Float[Array, "*w k c"]


@pytree_dataclass
class PreparedRecord:
    """A record as arrays, ready for its objective.

    - `t` (n,), `inputs`; `rows`: numbers of the samples of each window (w, k), or None for the
      record in one piece.
    - `measured`, `weight` (..., c): what the predictions are compared with, and 1/sd; 0 leaves a
      value out.
    - `known`: states over the record, as smoothed sensors have them, with derivatives where the
      objective needs these.
    - `start`: which states a run or each window starts from, with what the sensors have of them
      there.
    - `goes_on` (w,): whether a window begins where the one before has ended, instead.
    - `finer`: of a run in one piece, how its steps are divided over gaps.
    - `cutoffs`: where the filter of each output ended [Hz].
    - `tick_noise`: of the outputs whose error is one of time, as for ticks, the standard deviation
      of the times [s]. Their weights are 1/speed, so that their weighted residuals are times.
    - `floating`: those of them whose constant offset is fitted in each prediction, because the run
      begins at a tick whose time errs.
    - `weak`: the splines of the weak form, by which `measured` and `weight` then go; else None.
    """

    t: Float[Numbers, " n"]
    inputs: dict[str, Numbers]
    measured: Float[Numbers, "*w k c"]
    weight: Float[Numbers, "*w k c"]
    start: dict[str, Numbers]
    known: dict[str, Numbers]
    rows: Int[Numbers, "w k"] | None
    goes_on: Bool[Numbers, " w"] | None
    names: tuple[str, ...] = static()
    hold: bool = static()
    finer: tuple[tuple[int, int], ...] = static()
    cutoffs: dict[str, Numbers] = dataclasses.field(default_factory=dict)
    weak: WeakForm | None = None
    tick_noise: dict[str, Numbers] = dataclasses.field(default_factory=dict)
    floating: tuple[str, ...] = static(default=())

    def predicted(
        self,
        setup: Setup,
        objective: "AbstractObjective",
        engine: Engine | None,
        delayed: frozenset[str],
    ) -> Predicted:
        """What stands against `measured`."""
        return objective.predict(setup, self, engine, delayed)

    def samples(self) -> Int[np.ndarray, "*w k c"]:
        """The number of the record's sample that each value belongs to."""
        if self.weak is not None:
            return np.broadcast_to(self.weak.centres()[:, None], np.shape(self.weight))
        rows = np.arange(np.shape(self.weight)[0]) if self.rows is None else np.asarray(self.rows)
        return np.broadcast_to(rows[..., None], np.shape(self.weight))


Model = TypeVar("Model", bound=eqx.Module)


class AbstractObjective(abc.ABC):
    """How the parameters of a machine are judged by a record."""

    @abc.abstractmethod
    def prepare(self, machine: Machine, record: Record) -> PreparedRecord:
        """What can be made ready before the search; raises `ValueError` where the record does not
        hold what is needed.
        """

    @abc.abstractmethod
    def predict(
        self, setup: Setup, prepared: PreparedRecord, engine: Engine | None, delayed: frozenset[str]
    ) -> Predicted:
        """What stands against `prepared.measured`; not finite where a run failed.

        To be compiled and differentiated.
        """

    def result(
        self, setup: Setup, prepared: PreparedRecord, engine: Engine | None, delayed: frozenset[str]
    ) -> PyTree:
        """How the run of `predict` ends; of several, the first that fails."""
        return Result.successful

    def whitens(self) -> bool:
        """Whether a covariance of its own gives residuals the variance 1, or more where the machine
        lacks something.
        """
        return False

    def with_noise_found(
        self, setup: Setup, prepared: PreparedRecord, delayed: frozenset[str]
    ) -> PreparedRecord:
        """Return `prepared` with the sizes of its noise found at the parameters of `setup`; itself
        if nothing changes.
        """
        del setup, delayed
        return prepared

    def machine(self, model: Model) -> Model:
        """The machine that is simulated in place of `model`."""
        return model

    def fits_starts(self) -> bool:
        """Whether the search moves what `PreparedRecord.start` holds, an entry for each window."""
        return False

    def drives(self) -> tuple[str, ...]:
        """The drives in whose place it puts controllers, so that the record's inputs under their
        names are references.
        """
        return ()

    def in_units_of_outputs(self) -> bool:
        """Whether residuals are those of the record's outputs, weighed by their standard
        deviations.
        """
        return True


class AbstractSimulation(AbstractObjective):
    """An objective that simulates."""

    @abc.abstractmethod
    def runs(
        self, setup: Setup, prepared: PreparedRecord, engine: Engine | None, delayed: frozenset[str]
    ) -> tuple[Array, Course]:
        """What `predict` gives, and how each run went."""

    def predict(self, *asked: Any) -> Predicted:
        return self.runs(*asked)[0]

    def result(self, *asked: Any) -> PyTree:
        results = self.runs(*asked)[1].result
        first = jnp.argmax(jnp.ravel(results != Result.successful))
        return jax.tree.map(lambda a: jnp.ravel(a)[first], results)


@pytree_dataclass
class Steady(AbstractObjective):
    """Forces at steady speeds, read off a friction law: how a sweep judges it.

    Nothing is simulated.
    """

    def prepare(self, machine: Machine, record: Record) -> PreparedRecord:
        raise ValueError(
            f"`Steady` is for sweeps, and {record.name!r} is a record of a motion. Take `FreeRun()`"
            " or `Windows()`."
        )

    def predict(self, *asked: Any) -> Predicted:
        raise NotImplementedError

    def in_units_of_outputs(self) -> bool:
        return False


def check_bool(objective: Any, field: str) -> None:
    value = getattr(objective, field)
    if not isinstance(value, bool):
        raise ValueError(
            f"`{type(objective).__name__}.{field}` must be True or False, got {value!r}. Leave it"
            " out for the usual."
        )


def check_positive(objective: Any, field: str, unit: str) -> None:
    value = getattr(objective, field)
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or not (np.isfinite(value) and value > 0)
    ):
        raise ValueError(
            f"`{type(objective).__name__}.{field}` must be a number > 0 [{unit}], got {value!r}."
        )
