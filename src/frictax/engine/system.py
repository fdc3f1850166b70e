"""`AbstractHybridSystem`: the methods of a machine that the engine calls."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from frictax.annotations import ArrayLike, ScalarLike
from frictax.handover import Verb
from frictax.parameters import Integer, Modes, Number, State
from frictax.pytree import Pickled, readable

# Reasons why a phase ends. A reason >= 0 is the index of the event function that fell to 0.
DEADLINE = -1  # the time returned by `deadline` was reached
END = -2  # the end of the run was reached
CUT = -3  # the buffers of the phase are full; the next phase continues in the same mode


class AbstractHybridSystem(Pickled, eqx.Module):
    """A hybrid system: `flow` is the smooth motion in a mode, `guard` gives event functions that
    end the mode, and `jump` gives the next state and mode.

    `t` is the time [s], `y` is the state vector, `mode` is a vector of integers, and `args` are the
    user's arguments. Derive from this class to simulate and identify a machine of your own.

    **Example:** a ball that bounces, in the docstring of `walk`.
    """

    def __repr__(self) -> str:
        return readable(self)

    _repr_html_ = Verb("frictax.report.cards:own_machine_html")

    @abc.abstractmethod
    def flow(self, t: Number, y: State, mode: Modes, args: PyTree) -> State:
        """Return dy/dt, which must be smooth as long as `mode` lasts.

        Do not branch on time or state in this method, because this makes the derivatives wrong.
        """

    @abc.abstractmethod
    def guard(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " g"]:
        """Return the values of the event functions (g,), which are positive while `mode` lasts. The
        mode ends when the first event function falls to 0.
        """

    @abc.abstractmethod
    def jump(
        self, t: Number, y: State, mode: Modes, fired: Integer, args: PyTree
    ) -> tuple[State, Modes, Integer]:
        """Return state, mode and status after an event. The status is 0, or 1 if no mode is
        consistent.

        `fired` is the index of the event function that fell to 0, or `DEADLINE`. In the new mode
        all event functions must be positive, or start at 0 and rise.
        """

    def deadline(self, mode: Modes, args: PyTree) -> Number:
        """Return the known time [s] at which `mode` ends, such as a drive switch; otherwise inf."""
        return jnp.asarray(jnp.inf)

    def is_smooth(self, args: PyTree) -> bool:
        """Return whether the derivatives of `flow` with respect to t and y are smooth in a whole
        mode, also at its start and end. The derivatives of a run then do not need shorter steps
        than the run itself.
        """
        return False

    def prepare_start(self, t: Number, y: State, mode: Modes, args: PyTree) -> tuple[State, Modes]:
        """Return the state and mode with which a run begins. `t`, `y`, `mode`: start time, state
        and mode passed to `walk`.

        The default returns `y` and `mode` unchanged. In a machine with friction, the velocity of a
        contact that sticks at the start has derivatives of 0.
        """
        return y, mode

    @property
    def mode_size(self) -> int | None:
        """The number of entries of `mode`; None if the class does not specify it."""
        return None

    def longest_step(self, mode: Modes, span: Number, args: PyTree) -> Number | None:
        """Return the longest step [s] in `mode` (None: no limit). `span`: duration of a run [s]."""
        return None

    def longest_step_at(self, t: Number, mode: Modes, span: Number, args: PyTree) -> Number | None:
        """Return `longest_step` in a run that begins at the time `t` [s]."""
        return self.longest_step(mode, span, args)

    def tick(self, t: Number, mode: Modes, args: PyTree) -> Modes:
        """Return `mode` with the segment numbers that the drives have at time `t` [s]. `OnSamples`
        calls this method at every sample.

        Set a segment number here only if the switch changes just the formula of the drive. Make all
        other mode changes in `jump`, for the cause `DEADLINE`. If dy/dt jumps at a switch in
        `tick`, derivatives with respect to the time of this switch are NaN. The default returns
        `mode` unchanged.
        """
        return mode

    def known_switches(self, args: PyTree, on_samples: bool) -> int:
        """Return the number of drive switches that is known from array shapes, such as the number
        of samples of a measured drive. The engine adds this number to the default of `max_events`.

        `on_samples`: if True, do not count the switches that `tick` handles.
        """
        return 0

    def staying(self, mode: Modes, args: PyTree) -> "AbstractHybridSystem":
        """Return a system with the same `flow` and `guard` while `mode` lasts. The drive tables of
        this system contain only the entries for `mode`.

        Reverse mode calls `staying` in every step, because the derivative of a step otherwise has
        the size of a whole drive table.
        """
        return self

    def judged_states(self, args: PyTree) -> int | None:
        """Return n if `OnSamples` controls the error of y[:n] only; None for all states."""
        return None

    # The following methods describe a stiff motion.

    def is_stiff(self, args: PyTree) -> bool:
        """Return whether the motion is stiff: its fastest rates are far above the rates of
        interest. For such a motion `OnSamples` takes linearly implicit steps, and so does
        `Adaptive` if `swings` returns False.
        """
        return False

    def swings(self, args: PyTree) -> bool:
        """Return whether the stiff motion is an oscillation without decay. For such a motion
        `Adaptive` takes explicit steps, as its error control must resolve each period.
        """
        return False

    def implicit_step(
        self, t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree
    ) -> State | None:
        """Return the state at `t1` after a linearly implicit step that the class defines; None to
        use the Rosenbrock step of the engine.
        """
        return None

    def sound(
        self, t0: Number, y0: State, t1: Number, y1: State, mode: Modes, args: PyTree
    ) -> Bool[Array, ""]:
        """Return whether a linearly implicit step from `y0` to `y1` is valid. If the step is not
        valid, the engine takes a `safe_step`. The engine calls this method for stiff systems only.
        """
        return jnp.all(jnp.isfinite(y1))

    def safe_step(self, t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree) -> State:
        """Return the state at `t1` after a step that is stable at any length. A stiff system must
        define this method.
        """
        raise NotImplementedError(
            f"`{type(self).__name__}` must say how it steps where a linearly implicit step fails:"
            " write `safe_step(self, t0, t1, y, mode, args)`."
        )

    def start(self, t: Number) -> tuple[State, Modes]:
        """Return state and mode at the start `t` [s] of a run. A fit to records needs `start`."""
        raise NotImplementedError(
            f"`{type(self).__name__}` must say how it starts before it can be fitted: write"
            " `start(self, t)`."
        )

    def begin(self, t: ScalarLike, y: ArrayLike) -> tuple[State, Modes]:
        """Return state `y` and mode at the start `t` [s] of a run. By default, the mode is that of
        `start`. Define this method if the mode depends on `y`, because `kalman_filter` calls
        `begin` at every sample.
        """
        return jnp.asarray(y), self.start(jnp.asarray(t))[1]

    def variables(self, t: Number, y: State, mode: Modes, args: PyTree) -> dict[str, Number]:
        """Return a dict from name to value of all quantities that a sensor may measure, such as
        ``{"phi": y[0], "w": y[1]}``. A fit to records needs this method.
        """
        raise NotImplementedError(
            f"`{type(self).__name__}` must name what can be measured before it can be fitted: write"
            " `variables(self, t, y, mode, args)`."
        )

    def states(self) -> tuple[str, ...]:
        """Return the name in `variables` of each entry of the state vector; an entry without a name
        has an empty string.

        A fit on windows uses the names of states to read the start state of a window from the
        measurement.
        """
        return ()
