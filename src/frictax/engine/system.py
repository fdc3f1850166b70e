"""`AbstractHybridSystem`: the functions that the engine needs of a machine."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from frictax.annotations import ArrayLike, ScalarLike
from frictax.handover import Verb
from frictax.parameters import Integer, Modes, Number, State
from frictax.pytree import Pickled, readable

# Reason why a phase ends. A number >= 0 is the index of the guard that fell to 0.
DEADLINE = -1  # the time returned by `deadline` was reached
END = -2  # the end of the run was reached
CUT = -3  # the buffers of the phase are full; the next phase continues in the same mode


class AbstractHybridSystem(Pickled, eqx.Module):
    """Smooth motion inside a mode, guards that end it, and a jump to the next.

    `t` is time [s], `y` the state vector, `mode` a vector of integers, `args` the user's arguments.
    Derive from this class to simulate and identify a machine of your own.

    **Example:** a ball that bounces, at `walk`.
    """

    def __repr__(self) -> str:
        return readable(self)

    _repr_html_ = Verb("frictax.report.cards:own_machine_html")

    @abc.abstractmethod
    def flow(self, t: Number, y: State, mode: Modes, args: PyTree) -> State:
        """Return dy/dt, smooth as long as `mode` lasts.

        Do not test time or state in here: the derivatives would be wrong.
        """

    @abc.abstractmethod
    def guard(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " g"]:
        """Return the margins, positive while `mode` lasts. The first margin that falls to 0 ends
        it.
        """

    @abc.abstractmethod
    def jump(
        self, t: Number, y: State, mode: Modes, fired: Integer, args: PyTree
    ) -> tuple[State, Modes, Integer]:
        """Return state and mode after margin `fired` fell (`DEADLINE`: at the deadline), and 0, or
        1 without a consistent mode.

        The margins of the new mode must be positive, or start at 0 and rise.
        """

    def deadline(self, mode: Modes, args: PyTree) -> Number:
        """Return the time [s] at which `mode` ends independent of the state, such as a switch of a
        drive; inf for never.
        """
        return jnp.asarray(jnp.inf)

    def is_smooth(self, args: PyTree) -> bool:
        """Return whether the slopes of `flow` are smooth, too, up to the ends of a mode.

        If so, the derivatives of a run do not need shorter steps than the motion.
        """
        return False

    def prepare_start(self, t: Number, y: State, mode: Modes, args: PyTree) -> tuple[State, Modes]:
        """Return state and mode of a run that begins at `t` in `y` and `mode`, as `walk` got them.

        The default returns both as they are. A contact that friction holds at the start has no
        velocity, and the derivative of its velocity is removed here.
        """
        return y, mode

    @property
    def mode_size(self) -> int | None:
        """The number of entries of `mode`; None where the system does not name it."""
        return None

    def longest_step(self, mode: Modes, span: Number, args: PyTree) -> Number | None:
        """Return the longest step [s] allowed in `mode` of a run of length `span` [s]; None for no
        bound.
        """
        return None

    def tick(self, t: Number, mode: Modes, args: PyTree) -> Modes:
        """Return `mode` with the segments of the drives at time `t` [s]. `OnSamples` calls it at
        every sample.

        It may change a segment only if nothing but the drive's formula changes. Other changes are
        left to `jump` after a `DEADLINE`. The default leaves all changes to `jump`.
        """
        return mode

    def known_switches(self, args: PyTree, on_samples: bool) -> int:
        """Return the number of drive switches that is known from the shapes of arrays, such as the
        samples of a measured drive. The engine makes room for these events.

        `on_samples`: count the switches that `tick` leaves to `jump` only.
        """
        return 0

    def staying(self, mode: Modes, args: PyTree) -> "AbstractHybridSystem":
        """Return a system with the same `flow` and `guard` as long as `mode` lasts, which has only
        those entries of its drives' tables that `mode` reads.

        Reverse mode uses it in every step. With a whole table, the derivative of every single step
        would be a whole table.
        """
        return self

    def judged_states(self, args: PyTree) -> int | None:
        """Return how many of the first states the error control of `OnSamples` judges; None for
        all.
        """
        return None

    # -- stiff motion

    def is_stiff(self, args: PyTree) -> bool:
        """Return whether the motion has rates far above those of interest. Then `OnSamples` takes
        linearly implicit steps, and so does `Adaptive` unless the motion `swings`.
        """
        return False

    def swings(self, args: PyTree) -> bool:
        """Return whether the stiff motion is an oscillation that does not decay. Steps with error
        control must resolve the oscillation, so `Adaptive` takes explicit steps.
        """
        return False

    def implicit_step(
        self, t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree
    ) -> State | None:
        """Return the state at `t1` by a linearly implicit step of its own; None for the default."""
        return None

    def sound(
        self, t0: Number, y0: State, t1: Number, y1: State, mode: Modes, args: PyTree
    ) -> Bool[Array, ""]:
        """Return whether a linearly implicit step from `y0` to `y1` kept the bounds of the motion;
        used for a stiff system.
        """
        return jnp.all(jnp.isfinite(y1))

    def safe_step(self, t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree) -> State:
        """Return the state at `t1` by a step that keeps the bounds at any length; needed by a stiff
        system.
        """
        raise NotImplementedError(
            f"`{type(self).__name__}` must say how it steps where a linearly implicit step fails:"
            " write `safe_step(self, t0, t1, y, mode, args)`."
        )

    # -- needed by a fit

    def start(self, t: Number) -> tuple[State, Modes]:
        """Return state and mode at the time `t` [s] at which a run begins; needed by a fit to
        records.
        """
        raise NotImplementedError(
            f"`{type(self).__name__}` must say how it starts before it can be fitted: write"
            " `start(self, t)`."
        )

    def begin(self, t: ScalarLike, y: ArrayLike) -> tuple[State, Modes]:
        """Return state and mode of a run from the state `y` at time `t` [s]. By default the mode is
        that of `start`.
        """
        return jnp.asarray(y), self.start(jnp.asarray(t))[1]

    def variables(self, t: Number, y: State, mode: Modes, args: PyTree) -> dict[str, Number]:
        """Return the quantities that a sensor may measure, by name, such as ``{"phi": y[0], "w":
        y[1]}``; needed by a fit to records.
        """
        raise NotImplementedError(
            f"`{type(self).__name__}` must name what can be measured before it can be fitted: write"
            " `variables(self, t, y, mode, args)`."
        )

    def states(self) -> tuple[str, ...]:
        """Return the names in `variables` of the entries of the state vector, in their order, and
        an empty text for an entry without name.

        A fit on windows reads the start of each window from the measurement by these names.
        """
        return ()
