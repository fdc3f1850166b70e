"""Options of the engine: `Adaptive` and `OnSamples`."""

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from frictax.annotations import Adjoint, DTypeLike, ScalarLike, Solver, StepSizeController
from frictax.pytree import Pickled

if TYPE_CHECKING:
    import diffrax

# Diffrax is imported only in functions, because its import takes longer than that of frictax.

_LARGEST = float(np.finfo(float).max)


EVENTS = 1000  # default of `max_events`; the number of known drive switches is added


def room(options: "Adaptive | OnSamples") -> int:
    """Return the largest number of events that a run with these options may have."""
    return EVENTS if options.max_events is None else options.max_events


class Adaptive(Pickled, eqx.Module):
    """Options of the engine with error-controlled steps. A run consists of phases between events.

    Each phase is one `diffrax.diffeqsolve`. A phase ends when the first event function (`guard`)
    falls to 0.

    **Arguments:**

    - `rtol`, `atol`: tolerances of a step. Defaults: 1e-7, 1e-9; with 32-bit numbers 1e-5, 1e-6.
    - `solver`: any diffrax solver with an interpolation. Default: a Rosenbrock method of order 4 if
      a part has a bristle other than `MaxwellSlip`, and `diffrax.Tsit5()` otherwise. For other
      stiff machines use `diffrax.Kvaerno5()`. With bristles, `Kvaerno5` is much slower than the
      default.
    - `stepsize_controller`: any controller of diffrax; replaces `rtol` and `atol`. A controller
      without error control needs `dt0`.
    - `dt0`: the first step of every phase [s]. Default: the mean step of the previous phase.
    - `dtmax`: the longest step [s]. An event function may fall to 0 and rise again within one step.
      With error control, the engine finds such a dip by a cubic through the event function's values
      and rates at both ends of the step. A step may still pass over a short pulse of a load that a
      machine of your own computes from the time `t`. Set `dtmax` to the shortest time in which such
      a load may rise and fall again, or make the load a `Function` with its own `dtmax`.
    - `max_events`: largest number of mode changes and drive switches in a run. Default: 1000 plus
      the number of samples of all `Sampled` drives. Outside of `jit` and `vmap`, `simulate` doubles
      `max_events` until it is sufficient. Under `jit`, choose a larger limit for a `Pulse`,
      `Trapezoid` or `Sine` with many periods. Compiled code cannot raise an error, so check
      `run.result`.
    - `max_steps`: largest number of solver steps in a run.
    - `adjoint`: None for derivatives in forward and reverse mode; `diffrax.ForwardMode()` for
      forward mode only, which compiles faster.

    **Raises:** `ValueError` for a limit or tolerance that is not positive. `simulate` also raises
    `ValueError` for a tolerance that 32-bit numbers cannot meet.

    A mass on a spring returns pi seconds after its release:

    >>> import frictax as fx, jax.numpy as jnp
    >>> swing = fx.Mechanism(
    ...     wall=fx.Fixed(), mass=fx.Mass(m=1.0, s=1.0), spring=fx.Spring("wall", "mass", c=4.0)
    ... )
    >>> for rtol in (1e-4, 1e-10):
    ...     engine = fx.Adaptive(rtol=rtol, atol=1e-2 * rtol)
    ...     run = fx.simulate(swing, jnp.array([0.0, jnp.pi]), engine)
    ...     print(f"{rtol:.0e}: off by {abs(run['mass'].s[-1] - 1.0):.0e} m")
    1e-04: off by 2e-06 m
    1e-10: off by 1e-11 m
    """

    rtol: float | None = None
    atol: float | None = None
    solver: Solver | None = None
    stepsize_controller: StepSizeController | None = None
    dt0: float | None = None
    dtmax: float | None = None
    max_events: int | None = eqx.field(static=True, default=None)
    max_steps: int = eqx.field(static=True, default=100_000)
    adjoint: Adjoint | None = None

    def __check_init__(self) -> None:
        self._check_numbers()
        if self.solver is None and self.stepsize_controller is None and self.adjoint is None:
            return  # No option is a diffrax object, so there is nothing to check.
        import diffrax

        solver, control = self.walker(), self.stepsize_controller
        if not isinstance(solver, diffrax.AbstractSolver):
            raise ValueError(
                "`Adaptive.solver` must be a diffrax solver such as `diffrax.Tsit5()`, got"
                f" {solver!r}."
            )
        if solver.term_structure is not diffrax.AbstractTerm:
            raise ValueError(
                "`Adaptive.solver` must solve one ordinary differential equation, got"
                f" {type(solver).__name__}, which wants it split in several terms. Take"
                " `diffrax.Tsit5()` or, for stiff machines, `diffrax.Kvaerno5()`."
            )
        if not isinstance(control, diffrax.ConstantStepSize | diffrax.StepTo) and not isinstance(
            solver, diffrax.AbstractAdaptiveSolver
        ):
            raise ValueError(
                f"`Adaptive.solver` must estimate its error, got {type(solver).__name__},"
                " which does not. Take `diffrax.Tsit5()`, or constant steps:"
                " `stepsize_controller=diffrax.ConstantStepSize(), dt0=1e-3`."
            )
        if control is not None and not isinstance(control, diffrax.AbstractStepSizeController):
            raise ValueError(
                "`Adaptive.stepsize_controller` must be a diffrax controller such as"
                f" `diffrax.PIDController(...)`, got {control!r}."
            )
        if isinstance(control, diffrax.ConstantStepSize) and self.dt0 is None:
            raise ValueError(
                "`Adaptive.dt0` must be given with `ConstantStepSize`: write `Adaptive(...,"
                " dt0=1e-3)`."
            )
        _check_adjoint(self)

    def _check_numbers(self) -> None:
        """Raise `ValueError` for a tolerance, step or limit that is not a positive number."""
        usual = "Leave it out for the default."
        for name in ("rtol", "atol", "dt0", "dtmax", "max_events", "max_steps"):
            value = getattr(self, name)
            plain = value is None or isinstance(value, int | float)
            if not plain and getattr(value, "shape", None) != ():
                raise ValueError(f"`Adaptive.{name}` must be a number, got {value!r}. {usual}")
            if plain and value is not None and not 0 < value <= _LARGEST:
                raise ValueError(f"`Adaptive.{name}` must be > 0, got {value!r:.60}. {usual}")
        for name in ("max_events", "max_steps"):
            value = getattr(self, name)
            if not isinstance(value, int) and (name == "max_steps" or value is not None):
                raise ValueError(
                    f"`Adaptive.{name}` must be a whole number, got {value!r}. {usual}"
                )

    def walker(self) -> Any:
        """Return `solver`, or by default the diffrax solver `diffrax.Tsit5()`."""
        import diffrax

        return diffrax.Tsit5() if self.solver is None else self.solver

    def controller(
        self, dtype: DTypeLike, dtmax: ScalarLike | None
    ) -> "diffrax.AbstractStepSizeController":
        """Return the step-size controller for numbers of type `dtype`. `dtmax`: longest step."""
        import diffrax

        bounds = [b for b in (self.dtmax, dtmax) if b is not None]
        bound = None if not bounds else bounds[0] if len(bounds) == 1 else jnp.minimum(*bounds)
        control = self.stepsize_controller
        if control is None:
            rtol, atol = self.tolerances(dtype)
            # After an event, diffrax's default controller rejects many steps. This
            # proportional-integral controller needs a quarter fewer steps.
            return diffrax.PIDController(rtol=rtol, atol=atol, pcoeff=0.3, icoeff=0.4, dtmax=bound)
        if bound is not None and isinstance(control, diffrax.PIDController):
            least = bound if control.dtmax is None else jnp.minimum(bound, control.dtmax)
            return eqx.tree_at(lambda c: c.dtmax, control, least, is_leaf=lambda x: x is None)
        return control

    def tolerances(self, dtype: DTypeLike) -> tuple[float, float]:
        """Return rtol and atol; raise `ValueError` if numbers of type `dtype` cannot meet them."""
        double = jnp.finfo(dtype).bits >= 64
        rtol = (1e-7 if double else 1e-5) if self.rtol is None else self.rtol
        atol = (1e-9 if double else 1e-6) if self.atol is None else self.atol
        if not double and isinstance(rtol, float) and rtol < 1e-6:
            raise ValueError(
                f"`Adaptive.rtol` must be >= 1e-6 in 32-bit numbers, got {rtol:g}. "
                'Switch on 64 bits first: `jax.config.update("jax_enable_x64", True)`.'
            )
        return rtol, atol


class ForwardAlone(eqx.Module):
    """An `adjoint` that has the effect of `diffrax.ForwardMode()` but does not import diffrax."""


class OnSamples(Pickled, eqx.Module):
    """Options of the engine that steps from each sample of a record to the next sample.

    `OnSamples` is made for measured drives. If the motion is fast, `OnSamples` takes several steps
    between two samples. Events are located inside the steps.

    The sampling times are the `ts` of `simulate`, equidistant or not. A measured drive is a
    `Sampled` with the same times, so its corners are at the samples. A corner at a sample does not
    need extra steps, while `Adaptive` ends a phase at each corner. Other drives may be smooth, or
    switch between samples.

    A machine of your own may read the rate of a drive, such as `args["der(motor)"]`. This rate
    jumps at each sample of a `Sampled` drive. Derivatives by the `times` of this drive are then NaN
    (without `jit`, a `ValueError`), and `Adaptive` computes them.

    **Arguments:**

    - `solver`: any explicit diffrax Runge-Kutta solver. With a given solver, steps do not have
      error control, and `run.error` is NaN. The default is `diffrax.Bosh3()`, the cheapest method
      with an error below 1e-9 on a record at 2.5 kHz (experiments/benchmarks/p2.py). If a part has
      a bristle, the default is linearly implicit steps of order 2.
    - `tolerance`: the largest estimated error of a step, relative to the range of each state so
      far. A step with a larger error is divided into 2, 4, 8, ... up to 4096 parts. None means
      steps without error control. With 32-bit numbers the smallest value is 1.2e-5. While a state
      has moved by less than 1e-9 of its unit (32 bits: 1e-6), its error is relative to 1e-5 of the
      unit (32 bits: 1e-2).
    - `substeps`: the least number of steps from one sample to the next.
    - `max_steps`: largest number of parts of all divided steps in a run.
    - `max_events`: largest number of mode changes, plus drive switches between samples, in a run.
      Default: 1000 plus the number of samples of `Position` drives. Under `jit`, `max_events` is a
      fixed limit. A drive sample at a time that is not in `ts` also counts as an event.
    - `adjoint`: None for derivatives in forward and reverse mode; `diffrax.ForwardMode()` for
      forward mode only. Forward mode alone computes value and derivatives in one pass and compiles
      three times as fast. `fit` uses forward mode.
    - `finer`: pairs (i, k): take k times as many steps from sample i to sample i + 1. Use these
      pairs for gaps in a record, see `over_gaps`.

    **Raises:** `ValueError` for an invalid solver, or for a count that is not a whole number >= 1.

    A force grows by 2 N/s. A block with 10 N of friction breaks away between two samples:

    >>> import frictax as fx, jax.numpy as jnp, numpy as np
    >>> t = np.linspace(0.0, 6.3, 64)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=10.0)),
    ...     drive=fx.Force("mass", fx.Sampled(t, 2.0 * t + 0.1)),
    ... )
    >>> run = fx.simulate(block, t, fx.OnSamples())
    >>> round(float(run.events.time[0]), 9), bool(run.error < 1e-5)
    (4.95, True)
    """

    solver: Solver | None = None
    tolerance: ScalarLike | None = 1e-7
    substeps: int = eqx.field(static=True, default=1)
    max_events: int | None = eqx.field(static=True, default=None)
    max_steps: int = eqx.field(static=True, default=100_000)
    adjoint: Adjoint | None = None
    finer: tuple[tuple[int, int], ...] = eqx.field(static=True, default=())

    def over_gaps(self, t: np.ndarray) -> "OnSamples":
        """Return a copy of these options with more steps in the gaps between the sampling times `t`
        (n,) [s]. A gap is an interval longer than 2.5 times the median interval. Each gap is
        divided into steps that are not longer than the median interval.

        `fit` calls this function for each record.

        >>> import frictax as fx, numpy as np
        >>> fx.OnSamples().over_gaps(np.array([0.0, 0.1, 0.2, 0.6, 0.7])).finer
        ((2, 4),)
        """
        steps, finer = np.diff(np.asarray(t)), ()
        gap = 2.5  # a sampling interval longer than 2.5 times the median interval is a gap
        if steps.size and steps.max() > gap * steps.min():
            usual = float(np.median(steps))
            finer = tuple(
                (int(i), math.ceil(steps[i] / usual - 1e-6))
                for i in np.flatnonzero(steps > gap * usual)
            )
        return self if finer == self.finer else dataclasses.replace(self, finer=finer)

    def with_numbers(self, dtype: DTypeLike) -> "OnSamples":
        """Return a copy with the tolerance as an array, which can change without recompilation."""
        if self.tolerance is None or isinstance(self.tolerance, jax.Array):
            return self
        return dataclasses.replace(self, tolerance=jnp.asarray(self.tolerance, dtype))

    def steps(self, samples: int) -> np.ndarray:
        """Return the number of steps in each interval between two samples, shape (samples - 1,)."""
        steps = np.full(max(samples - 1, 0), self.substeps)
        for i, k in self.finer:
            steps[i] *= k
        return steps

    def __check_init__(self) -> None:
        tolerance = self.tolerance
        is_wrong = isinstance(tolerance, bool | str)
        if isinstance(tolerance, int | float):
            is_wrong = is_wrong or not 0 < tolerance <= _LARGEST
        if is_wrong:
            raise ValueError(
                f"`OnSamples.tolerance` must be > 0, got {tolerance!r:.60}. Leave it out for"
                " 1e-7, or write None for steps without error control."
            )
        if tolerance is not None and np.shape(tolerance) != ():
            raise ValueError(
                f"`OnSamples.tolerance` must be one number, got an array of shape"
                f" {np.shape(tolerance)}. Leave it out for 1e-7."
            )
        counts = {"substeps": self.substeps, "max_events": room(self), "max_steps": self.max_steps}
        for name, value in counts.items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(
                    f"`OnSamples.{name}` must be a whole number >= 1, got {value!r}. Leave it out"
                    " for the default."
                )
        if self.solver is None and isinstance(self.adjoint, ForwardAlone | None):
            return  # No option is a diffrax object, so there is nothing to check.
        import diffrax

        explicit = (
            self.solver is None
            or isinstance(self.solver, diffrax.AbstractSolver)
            and not isinstance(self.solver, diffrax.AbstractImplicitSolver)
        )
        if not explicit or (
            self.solver is not None and self.solver.term_structure is not diffrax.AbstractTerm
        ):
            raise ValueError(
                "`OnSamples.solver` must be an explicit diffrax Runge-Kutta solver such as"
                f" `diffrax.Bosh3()`, got {self.solver!r}. Leave it out for the default."
            )
        _check_adjoint(self)


def _check_adjoint(options: Adaptive | OnSamples) -> None:
    import diffrax

    if not isinstance(options.adjoint, diffrax.ForwardMode | ForwardAlone | None):
        raise ValueError(
            f"`{type(options).__name__}.adjoint` must be None or `diffrax.ForwardMode()`, got"
            f" {options.adjoint!r}. None serves forward and reverse mode."
        )


Engine = Adaptive | OnSamples
