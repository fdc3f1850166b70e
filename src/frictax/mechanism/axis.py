"""One degree of freedom with dry friction, of the user's own kind."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from frictax.annotations import ArrayLike, ScalarLike
from frictax.contacts import SupportFriction
from frictax.contacts.contact import ends, has_breaks, law_value, piece_at
from frictax.contacts.mode import BACKWARD, FORWARD, STUCK, mode_vector
from frictax.contacts.rubbing import no_bristle
from frictax.engine.system import AbstractHybridSystem
from frictax.parameters import Integer, Modes, Number, State


class AbstractOwnMotion(AbstractHybridSystem):
    """A machine whose user writes how it moves, and the names of its states."""

    def others(self, t: Number, y: State, args: PyTree) -> Float[Array, " k"]:
        """The rates of the states after positions and velocities, such as the integral of a
        controller's error; none by default.
        """
        return jnp.zeros(0)

    def variables(self, t: Number, y: State, mode: Modes, args: PyTree) -> dict[str, Number]:
        return dict(zip(self.states(), y, strict=True))


class AbstractAxis(AbstractOwnMotion):
    """One degree of freedom with dry friction, which turns or slides: its user writes the inertia
    and the load.

        inertia(t, y, args) * dv/dt = load(t, y, args) - friction

    The state is y = (position, velocity, further states whose rates `others` gives). The mode's
    first entry is -1, 0 or 1: backward, stuck, forward; then, where there is a `pressing`, its
    sign, and, where the law has corners, its piece.

    **To be written:** a field `friction`, a `SupportFriction` (the name of its body is not used);
    `inertia`, `load` and `states`; `start` for a fit, in one line by `begin`. `pressing` and
    `others` where needed.

    **Raises:** `ValueError` where `friction` is something else.

    A sledge on an incline, released from rest, with 4.905 N pulling and 3 N of friction:

    >>> import equinox as eqx, frictax as fx, jax.numpy as jnp
    >>> class Sledge(fx.AbstractAxis):
    ...     friction: fx.SupportFriction
    ...     slope: float
    ...
    ...     def inertia(self, t, y, args):
    ...         return 1.0
    ...
    ...     def load(self, t, y, args):
    ...         return 9.81 * jnp.sin(self.slope)
    ...
    ...     def states(self):
    ...         return ("s", "v")
    >>> sledge = Sledge(fx.SupportFriction("sledge", f_pos=fx.Coulomb(F_Coulomb=3.0)), jnp.pi / 6)
    >>> path = fx.walk(sledge, *sledge.begin(0.0, [0.0, 0.0]), jnp.array([0.0, 2.0]))
    >>> round(float(path.ys[-1, 1]), 6), int(path.modes[-1, 0])
    (3.81, 1)
    """

    friction: eqx.AbstractVar[SupportFriction]

    def __check_init__(self) -> None:
        if not isinstance(self.friction, SupportFriction):
            raise ValueError(
                f"`{type(self).__name__}.friction` must be a `SupportFriction`, got a"
                f' {type(self.friction).__name__}. Write fx.SupportFriction("joint",'
                " f_pos=fx.Coulomb(F_Coulomb=5.0)), say."
            )
        no_bristle(self, "friction", self.friction)

    @abc.abstractmethod
    def inertia(self, t: Number, y: State, args: PyTree) -> ScalarLike:
        """The mass [kg] or moment of inertia [kg.m2] that moves, > 0."""

    @abc.abstractmethod
    def load(self, t: Number, y: State, args: PyTree) -> Number:
        """The sum of all forces [N] or torques [N.m] but friction, smooth in t and y: gravity,
        springs, a motor, a controller.
        """

    @abc.abstractmethod
    def states(self) -> tuple[str, ...]:
        """The names of the states: ``("phi", "w")`` where it turns, ``("s", "v")`` where it slides,
        then those of `others`.
        """

    def pressing(self, t: Number, y: State, args: PyTree) -> ScalarLike:
        """A force or torque, signed and smooth, whose size adds to the friction, as a load does in
        gears; none by default.
        """
        return 0.0

    def begin(self, t: ScalarLike, y: ArrayLike) -> tuple[State, Modes]:
        """State and mode of a run from state `y`: sliding where the velocity says so, else stuck.

        A load that is too great for that breaks it away at once.
        """
        y = jnp.asarray(y, dtype=float)
        direction = jnp.sign(y[1]).astype(jnp.int32)
        mode = [direction] + [jnp.ones_like(direction)] * self._is_pressed
        if has_breaks(self.friction):
            mode.append(piece_at(self.friction, direction, jnp.abs(y[1])))
        return y, mode_vector(mode)

    def friction_force(self, t: Number, y: State, mode: Modes, args: PyTree) -> Number:
        """What friction opposes to forward motion [N or N.m]; stuck, what holds."""
        m = mode[0]
        sliding = law_value(
            self.friction, m, m * y[1], mode[-1] if has_breaks(self.friction) else None
        )
        return jnp.where(
            m == STUCK, self.load(t, y, args), m * (sliding + self._added(t, y, mode, args))
        )

    # -- the contract with the engine

    def flow(self, t: Number, y: State, mode: Modes, args: PyTree) -> State:
        return jnp.concatenate(
            [jnp.stack([y[1], self._acceleration(t, y, mode, args)]), self.others(t, y, args)]
        )

    def guard(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " g"]:
        # All margins start a rounding above 0, so that none of a new mode is found at 0. In 32 bits
        # `eps` is no small velocity.
        m, eps, inf = mode[0], 500 * jnp.finfo(y.dtype).eps, jnp.full_like(y[1], jnp.inf)
        forward, backward = self._reserves(t, y, mode, args)
        slack = self._slack(t, y, mode, args)
        margins = [
            jnp.where(m == STUCK, forward + 0.016 * slack, m * y[1] + min(eps, 1e-9)),
            jnp.where(m == STUCK, backward + 0.016 * slack, inf),
        ]
        if self._is_pressed:
            margins.append(self._added(t, y, mode, args) + slack)
        if has_breaks(self.friction):
            (begins, stops), v = ends(self.friction, m, mode[-1]), m * y[1]
            margins += [
                jnp.where(m == STUCK, inf, stops - v + eps),
                jnp.where(m == STUCK, inf, v - begins + eps),
            ]
        return jnp.stack(margins)

    def jump(
        self, t: Number, y: State, mode: Modes, fired: Integer, args: PyTree
    ) -> tuple[State, Modes, Integer]:
        old, new, arrived = mode[0], list(mode), y
        at_rest = (old == STUCK) | (fired == 0)
        y = y.at[1].set(jnp.where(at_rest, 0.0, y[1]))
        # whether the margin that fell was computed with the right sign of `pressing`
        own = jnp.array(True)
        if self._is_pressed:
            own = self._added(t, y, mode, args) > -2 * self._slack(t, y, mode, args)
            new[1] = jnp.where((fired == 2) | ~own, -mode[1], mode[1])
        forward, backward = self._reserves(t, y, mode_vector(new), args)
        # Stuck, it leaves by its own margin, located in time, unless a switch of a drive throws it
        # off.
        located = (old == STUCK) & own
        slack = jnp.where(old == STUCK, 1e-9 * (jnp.abs(forward) + jnp.abs(backward)), 0.0)
        forward = (forward < -slack) | (located & (fired == 0))
        backward = (backward < -slack) | (located & (fired == 1))
        new[0] = jnp.where(
            at_rest, jnp.where(forward, FORWARD, jnp.where(backward, BACKWARD, STUCK)), old
        )
        if has_breaks(self.friction):
            faster = 2 + self._is_pressed
            step = jnp.where(fired == faster, 1, jnp.where(fired == faster + 1, -1, 0))
            first = piece_at(self.friction, new[0], 0.0)
            new[-1] = jnp.where(new[0] == old, mode[-1] + step, first)
        # A load may release it at the very start. The derivative by the start velocity lasts then.
        leaves = (old == STUCK) & (new[0] != STUCK)
        y = y.at[1].set(jnp.where(leaves, arrived[1], y[1]))
        return y, mode_vector(new), jnp.zeros((), jnp.int32)

    def prepare_start(self, t: Number, y: State, mode: Modes, args: PyTree) -> tuple[State, Modes]:
        held = (mode[0] == STUCK) & jnp.all(self.guard(t, y, mode, args) > 0)
        return y.at[1].set(jnp.where(held, jax.lax.stop_gradient(y[1]), y[1])), mode

    @property
    def mode_size(self) -> int:
        return 1 + self._is_pressed + has_breaks(self.friction)

    # -- what these are made of

    @property
    def _is_pressed(self) -> bool:
        return type(self).pressing is not AbstractAxis.pressing

    def _added(self, t: Array, y: Array, mode: Array, args: PyTree) -> Any:
        """What the load adds to the friction: the size of `pressing` while its sign lasts."""
        return mode[1] * self.pressing(t, y, args) if self._is_pressed else 0.0

    def _acceleration(self, t: Array, y: Array, mode: Array, args: PyTree) -> Array:
        net = self.load(t, y, args) - self.friction_force(t, y, mode, args)
        return jnp.where(mode[0] == STUCK, 0.0, net) / self.inertia(t, y, args)

    def _reserves(self, t: Array, y: Array, mode: Array, args: PyTree) -> tuple[Array, Array]:
        """How much more load it holds at rest, forward and backward."""
        load, added = (
            self.load(t, y, args),
            self.friction.breakaway() * self._added(t, y, mode, args),
        )
        return (
            self.friction.holds(1, 1.0) + added - load,
            self.friction.holds(-1, 1.0) + added + load,
        )

    def _slack(self, t: Array, y: Array, mode: Array, args: PyTree) -> Array:
        """A rounding [N] of the loads."""
        forward, backward = self._reserves(t, y, mode, args)
        size = jnp.abs(forward) + jnp.abs(backward) + jnp.abs(self._added(t, y, mode, args))
        return 500 * jnp.finfo(y.dtype).eps * jax.lax.stop_gradient(size) + jnp.finfo(y.dtype).tiny
