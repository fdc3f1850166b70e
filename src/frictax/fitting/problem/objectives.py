"""Base classes of objectives, which predict the values that a fit compares with a record."""

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
    """The arrays of a record that an objective needs.

    - `t` (n,) [s]; `inputs`: name -> samples (n,). `rows` (w, k): indices of the samples of each
      window, or None if the whole record is simulated.
    - `measured` (..., c): values to compare with predictions; `weight`: 1/sd of each value, or 0
      for an excluded value.
    - `known`: from the smoothed outputs, the states at each sample, and the time derivatives that
      the objective needs.
    - `start`: initial states read from the record: name -> smoothed value at the start of the
      simulation or of each window.
    - `goes_on` (w,): mask of the windows that start from the final state of the previous window.
    - `finer`: for each gap of the record (index of the sample before the gap, number of time steps
      in the gap); empty for windows.
    - `cutoffs`: cutoff frequency of the filter of each output [Hz].
    - `tick_noise`: standard deviation of the sample times [s], for outputs of ticks (one sample for
      each step of an encoder, with an error in time). The weights of these outputs are 1/speed, so
      that their weighted residuals are times [s].
    - `floating`: names of the outputs of ticks for which each prediction fits a constant offset,
      because the time of the first tick has an error too.
    - `outputs`: names of the measured channels.
    - `weak`: the splines of the weak form, or None. With a weak form, `measured` and `weight` have
      one row for each spline.
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
    outputs: tuple[str, ...] = static(default=())

    def predict(
        self,
        setup: Setup,
        objective: "AbstractObjective",
        engine: Engine | None,
        delayed: frozenset[str],
    ) -> Predicted:
        """Return the prediction that is compared with `measured`."""
        return objective.predict(setup, self, engine, delayed)

    def samples(self) -> Int[np.ndarray, "*w k c"]:
        """Return for each measured value the index of its sample in the record."""
        if self.weak is not None:
            return np.broadcast_to(self.weak.centres()[:, None], np.shape(self.weight))
        rows = np.arange(np.shape(self.weight)[0]) if self.rows is None else np.asarray(self.rows)
        return np.broadcast_to(rows[..., None], np.shape(self.weight))


Model = TypeVar("Model", bound=eqx.Module)


class AbstractObjective(abc.ABC):
    """A rule for the comparison of a record with a machine."""

    @abc.abstractmethod
    def prepare(self, machine: Machine, record: Record) -> PreparedRecord:
        """Return the arrays for the search. Raise `ValueError` if a required channel is missing."""

    @abc.abstractmethod
    def predict(
        self, setup: Setup, prepared: PreparedRecord, engine: Engine | None, delayed: frozenset[str]
    ) -> Predicted:
        """Return the values to compare with `prepared.measured`, which are not finite if a
        simulation fails. JAX must be able to compile and differentiate this function.
        """

    def result(
        self, setup: Setup, prepared: PreparedRecord, engine: Engine | None, delayed: frozenset[str]
    ) -> PyTree:
        """Return the `Result` of the first simulation that fails, or success if none fails."""
        return Result.successful

    def whitens(self) -> bool:
        """Return True if residuals are whitened: variance 1, or more if the model lacks a term."""
        return False

    def with_noise_found(
        self, setup: Setup, prepared: PreparedRecord, delayed: frozenset[str]
    ) -> PreparedRecord:
        """Return `prepared` with the noise that is estimated at the parameter values in `setup`.
        Return `prepared` itself if the noise has hardly changed.
        """
        del setup, delayed
        return prepared

    def machine(self, model: Model) -> Model:
        """Return the machine that is simulated in place of `model`."""
        return model

    def fits_starts(self) -> bool:
        """Return True if the initial state of each window is estimated with the parameters."""
        return False

    def drives(self) -> tuple[str, ...]:
        """Return the names of the drives that the objective replaces by controllers. The record's
        inputs with these names are references of the controllers.
        """
        return ()

    def in_units_of_outputs(self) -> bool:
        """Return True if a residual is the error of an output divided by its sd."""
        return True


class AbstractSimulation(AbstractObjective):
    """An objective that simulates the machine."""

    @abc.abstractmethod
    def runs(
        self, setup: Setup, prepared: PreparedRecord, engine: Engine | None, delayed: frozenset[str]
    ) -> tuple[Array, Course]:
        """Return the prediction, and the `Course` (result and events) of each simulation."""

    def predict(self, *asked: Any) -> Predicted:
        return self.runs(*asked)[0]

    def result(self, *asked: Any) -> PyTree:
        results = self.runs(*asked)[1].result
        first = jnp.argmax(jnp.ravel(results != Result.successful))
        return jax.tree.map(lambda a: jnp.ravel(a)[first], results)


@pytree_dataclass
class Steady(AbstractObjective):
    """The objective of a sweep: forces of a friction law at steady speeds, without a simulation."""

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
