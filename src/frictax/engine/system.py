"""The contract between a hybrid system and the engine."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from frictax.annotations import ArrayLike, ScalarLike
from frictax.handover import Verb
from frictax.parameters import Integer, Modes, Number, State
from frictax.pytree import Pickled, readable

# How a phase ended, where no guard fired (a guard is named by its index, >= 0).
DEADLINE = -1  # at the time that `deadline` names
END = -2  # at the end of the run
CUT = -3  # inside a mode: the buffers of one phase are full and the next goes on in the same mode


class AbstractHybridSystem(Pickled, eqx.Module):
    """Smooth motion inside a mode, guards that end it, and a jump to the next.

    `t` is time [s], `y` the state vector, `mode` a vector of integers, `args` whatever the user
    passes on. Derive from this class to bring a machine of your own.

    **Example:** a ball that bounces, at `walk`.
    """

    def __repr__(self) -> str:
        return readable(self)

    _repr_html_ = Verb("frictax.report.cards:own_machine_html")

    @abc.abstractmethod
    def flow(self, t: Number, y: State, mode: Modes, args: PyTree) -> State:
        """dy/dt, smooth as long as `mode` lasts.

        No test of time or state in here: derivatives after it are wrong.
        """

    @abc.abstractmethod
    def guard(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " g"]:
        """Margins, positive while `mode` lasts; the first to fall to 0 ends it."""

    @abc.abstractmethod
    def jump(
        self, t: Number, y: State, mode: Modes, fired: Integer, args: PyTree
    ) -> tuple[State, Modes, Integer]:
        """State and mode after margin `fired` fell (`DEADLINE`: the deadline came), and 0, or 1 for
        no consistent mode.

        The margins of the new mode must be positive, or start at 0 and rise.
        """

    def deadline(self, mode: Modes, args: PyTree) -> Number:
        """The time [s] at which `mode` ends whatever the state does, such as a switch of a drive;
        inf for never.
        """
        return jnp.asarray(jnp.inf)

    def is_smooth(self, args: PyTree) -> bool:
        """Whether the slopes of `flow` are known to be smooth too, to the very ends of a mode.

        If so, the derivatives of a run need no shorter steps than the motion.
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
        """The longest step [s] allowed in `mode` of a run of length `span` [s]; None for no bound
        at all.
        """
        return None

    def tick(self, t: Number, mode: Modes, args: PyTree) -> Modes:
        """`mode` with the clocks of its drives set to time `t` [s], for `OnSamples`, which does so
        at every sample.

        Only what `jump` after a `DEADLINE` would do where nothing but a drive's formula changes;
        the default leaves all to `jump`.
        """
        return mode

    def known_switches(self, args: PyTree, on_samples: bool) -> int:
        """How many switches of its drives a run may meet as far as the shapes of arrays tell, such
        as the samples of a measured drive: the engine makes room for these events.

        `on_samples`: only those that `tick` leaves to `jump`.
        """
        return 0

    def staying(self, mode: Modes, args: PyTree) -> "AbstractHybridSystem":
        """A system with the same `flow` and `guard` as long as `mode` lasts: of the tables of its
        drives, with no more than what is read there.

        Reverse mode goes over every step by it: by a table that is read in each of them, the
        derivative of every single step would be a table.
        """
        return self

    def judged_states(self, args: PyTree) -> int | None:
        """How many of the first states the error control of `OnSamples` judges; None for all."""
        return None

    # What a motion says that is stiff: it has rates far above all that is looked at.

    def is_stiff(self, args: PyTree) -> bool:
        """Whether it is: `OnSamples` then takes linearly implicit steps, and `Adaptive` does where
        explicit ones would be many.
        """
        return False

    def swings(self, args: PyTree) -> bool:
        """Whether what is stiff swings on and does not decay, so that steps under error control
        have to follow it: `Adaptive` then takes explicit ones.
        """
        return False

    def implicit_step(
        self, t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree
    ) -> State | None:
        """The state at `t1` by a linearly implicit step of its own; None for the usual one."""
        return None

    def sound(
        self, t0: Number, y0: State, t1: Number, y1: State, mode: Modes, args: PyTree
    ) -> Bool[Array, ""]:
        """Whether a linearly implicit step from `y0` to `y1` kept the bounds that the motion keeps;
        asked for where the system is stiff.
        """
        return jnp.all(jnp.isfinite(y1))

    def safe_step(self, t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree) -> State:
        """The state at `t1` by a step that keeps them, whatever its length; needed by a system that
        is stiff.
        """
        raise NotImplementedError(
            f"`{type(self).__name__}` must say how it steps where a linearly implicit step fails:"
            " write `safe_step(self, t0, t1, y, mode, args)`."
        )

    # What a fit asks for beside the motion.

    def start(self, t: Number) -> tuple[State, Modes]:
        """State and mode at the time `t` [s] at which a run begins; needed by a fit to records."""
        raise NotImplementedError(
            f"`{type(self).__name__}` must say how it starts before it can be fitted: write"
            " `start(self, t)`."
        )

    def begin(self, t: ScalarLike, y: ArrayLike) -> tuple[State, Modes]:
        """State and mode of a run from the state `y` at time `t` [s]; the mode that `start` says,
        unless written anew.
        """
        return jnp.asarray(y), self.start(jnp.asarray(t))[1]

    def variables(self, t: Number, y: State, mode: Modes, args: PyTree) -> dict[str, Number]:
        """What a sensor may measure, by name, such as ``{"phi": y[0], "w": y[1]}``; needed by a fit
        to records.
        """
        raise NotImplementedError(
            f"`{type(self).__name__}` must name what can be measured before it can be fitted: write"
            " `variables(self, t, y, mode, args)`."
        )

    def states(self) -> tuple[str, ...]:
        """The names in `variables` of the entries of the state vector, in their order; empty where
        an entry has none.

        A fit on windows takes the start of each from the measurement by them.
        """
        return ()
