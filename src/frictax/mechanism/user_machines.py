"""Machines whose equations a user writes: one degree of freedom (`AbstractAxis`), several degrees
of freedom (`AbstractLinkage`), and a hybrid system with signals (`Driven`).
"""

import abc
import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from frictax.annotations import ArrayLike, ScalarLike
from frictax.contacts import SupportFriction
from frictax.contacts.contact import has_breaks, law_value, piece_at, piece_limits
from frictax.contacts.mode import BACKWARD, FORWARD, FREE, STUCK, mode_vector
from frictax.contacts.rubbing import no_bristle
from frictax.engine.system import DEADLINE, AbstractHybridSystem
from frictax.parameters import Integer, Modes, Number, State
from frictax.parameters.arrays import constant
from frictax.signals import AbstractSignal
from frictax.signals.as_signal import as_signal
from frictax.signals.function import longest_steps_of_functions
from frictax.signals.signal import first_end

from .contact_margins import all_margins
from .layout import Contact, Flange, Layout
from .mode_transition import (
    bring_to_rest,
    crossed_guards,
    direction_without_lever,
    modes_after_event,
)
from .snapshot import Snapshot
from .sparse import SparseRow
from .switches import add_switch_times, first_switch, latest_due, switch_signals

# What to do if the result of a user's method has a wrong shape.
_ENTRIES = "Index an array that has one entry, such as x[0]."
_ROWS = "It has a row for each coordinate, of which there are `degrees_of_freedom`."
_REMEDIES = {
    **dict.fromkeys(("inertia", "load", "pressing"), _ENTRIES),
    **dict.fromkeys(("mass_matrix", "force"), _ROWS),
    "jacobian": "It has a row for each entry of `frictions` and a column for each coordinate. The"
    " default is the unit matrix, which needs as many frictions as `degrees_of_freedom`.",
    "others": "It returns a rate for each state after positions and velocities.",
}


class AbstractOwnMotion(AbstractHybridSystem):
    """A machine for which the user writes the equations of motion and the names of the states."""

    def others(self, t: Number, y: State, args: PyTree) -> Float[Array, " k"]:
        """Return the rates of the further states (k,), such as the integral of a controller's
        error. The further states follow positions and velocities in `y`; by default k = 0.
        """
        return jnp.zeros(0)

    def variables(self, t: Number, y: State, mode: Modes, args: PyTree) -> dict[str, Number]:
        return dict(zip(self.states(), y, strict=True))

    def _extrema_matter(self, mode: Array) -> Any:
        """Return whether the extrema of signals matter: an event function that depends on signals
        may otherwise cross 0 twice in one time step.
        """
        return True

    def _check_start(self, y: Array, mode: Array | None = None) -> None:
        """Raise `ValueError` if the state or the mode at the start of a run has a wrong length."""
        name, states = type(self).__name__, self.states()
        if y.shape != (len(states),):
            raise ValueError(
                f"`{name}`: the state at the start must have one entry for each name in `states`"
                f" ({', '.join(states)}), got shape {y.shape}."
                " Give all states, or correct `states`."
            )
        if mode is not None and mode.shape[0] != self.mode_size:
            raise ValueError(
                f"`{name}`: the mode at the start must have length {self.mode_size}, got"
                f" {mode.shape[0]}. Take the state and the mode that `begin(t, y)` returns."
            )

    def _as_array(self, name: str, value: Any, shape: tuple[int, ...], like: Array) -> Array:
        """Return `value`, the result of the user's method `name`, as an array of the type of
        `like`. Raise `ValueError` if its shape is not `shape`.
        """
        array = jnp.asarray(value, like.dtype)
        if array.shape != shape:
            kind = f"an array of shape {shape}" if shape else "one number, of shape ()"
            raise ValueError(
                f"`{type(self).__name__}.{name}` must return {kind}, got shape {array.shape}."
                f" {_REMEDIES[name]}"
            )
        return array


class AbstractAxis(AbstractOwnMotion):
    """A machine with one degree of freedom (sliding or turning) and dry friction. The user writes
    its inertia and its load.

        inertia(t, y, args) * dv/dt = load(t, y, args) - friction

    The state is y = (position, velocity, further states). The first entry of the mode vector is -1
    (backward), 0 (stuck) or 1 (forward). If the class defines `pressing`, the sign of `pressing` is
    the next entry. If the law has corners, the number of the law's segment is the last entry.

    **To be written:** a field `friction`, a `SupportFriction` (its body is not used), and the
    methods `inertia`, `load` and `states`. `pressing` and `others` are optional. A fit also needs
    the method `start`(t), which returns ``self.begin(t, y)`` for the start state y.

    **Raises:** `ValueError` if `friction` is not a `SupportFriction`.

    A sledge is released from rest on an incline. Its weight pulls it down the incline with 4.905 N,
    against a friction of 3 N:

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
        """Return the moving mass [kg] or the moment of inertia [kg.m2], > 0."""

    @abc.abstractmethod
    def load(self, t: Number, y: State, args: PyTree) -> Number:
        """Return the sum of all forces [N] or torques [N.m] except friction, such as gravity,
        springs, a motor and a controller. The sum must be smooth in t and y.

        `Adaptive` may step over a short pulse of this formula in `t`. Then limit the step by
        `Adaptive(dtmax=...)`, or read the pulse by `Driven` from a `Function` with its own `dtmax`.
        """

    @abc.abstractmethod
    def states(self) -> tuple[str, ...]:
        """Return the names of the states, which begin with ``("phi", "w")`` for turning or ``("s",
        "v")`` for sliding, and end with the names of the further states.
        """

    def pressing(self, t: Number, y: State, args: PyTree) -> ScalarLike:
        """Return a force or torque whose absolute value adds to the friction, like the load of a
        gear; 0 by default. The value must be smooth and may have either sign.
        """
        return 0.0

    def begin(self, t: ScalarLike, y: ArrayLike) -> tuple[State, Modes]:
        """Return state and mode at the start of a run from the state `y`. The mode is sliding if
        the velocity is not 0, and stuck otherwise. If the load exceeds the breakaway force, a stuck
        axis begins to slide at once.
        """
        y = jnp.asarray(y, dtype=float)
        self._check_start(y)
        direction = jnp.sign(y[1]).astype(jnp.int32)
        mode = [direction] + [jnp.ones_like(direction)] * self._is_pressed
        if has_breaks(self.friction):
            mode.append(piece_at(self.friction, direction, jnp.abs(y[1])))
        return y, mode_vector(mode)

    def friction_force(self, t: Number, y: State, mode: Modes, args: PyTree) -> Number:
        """Return the friction force [N or N.m], positive if it opposes forward motion. The friction
        force of a stuck axis is the holding force, which equals the load.
        """
        m = mode[0]
        sliding = law_value(
            self.friction, m, m * y[1], mode[-1] if has_breaks(self.friction) else None
        )
        return jnp.where(
            m == STUCK,
            self._load(t, y, args),
            m * (sliding + self._pressed_friction(t, y, mode, args)),
        )

    # The engine calls the following methods.

    def flow(self, t: Number, y: State, mode: Modes, args: PyTree) -> State:
        net = self._load(t, y, args) - self.friction_force(t, y, mode, args)
        inertia = self._as_array("inertia", self.inertia(t, y, args), (), y)
        acceleration = jnp.where(mode[0] == STUCK, 0.0, net) / inertia
        others = self._as_array("others", self.others(t, y, args), (y.shape[0] - 2,), y)
        return jnp.concatenate([jnp.stack([y[1], acceleration]), others])

    def guard(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " g"]:
        # A rounding error is added to each event function, so that every event function is positive
        # when a mode begins. For a velocity, at most 1e-9 is added. For 32-bit numbers `eps` is
        # 6e-5, and 6e-5 m/s is not a small velocity.
        m, eps, inf = mode[0], 500 * jnp.finfo(y.dtype).eps, jnp.full_like(y[1], jnp.inf)
        forward, backward = self._reserves(t, y, mode, args)
        slack = self._slack(t, y, mode, args)
        margins = [
            jnp.where(m == STUCK, forward + 0.016 * slack, m * y[1] + min(eps, 1e-9)),
            jnp.where(m == STUCK, backward + 0.016 * slack, inf),
        ]
        if self._is_pressed:
            margins.append(self._pressed_friction(t, y, mode, args) + slack)
        if has_breaks(self.friction):
            (begins, stops), v = piece_limits(self.friction, m, mode[-1]), m * y[1]
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
        # `own`: whether the event function that fell to 0 contains the correct sign of `pressing`.
        own = jnp.array(True)
        if self._is_pressed:
            own = self._pressed_friction(t, y, mode, args) > -2 * self._slack(t, y, mode, args)
            new[1] = jnp.where((fired == 2) | ~own, -mode[1], mode[1])
        forward, backward = self._reserves(t, y, mode_vector(new), args)
        # A stuck axis breaks away at the located time at which one of its event functions falls to
        # 0. At other times only a switch of a drive can release the axis.
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
        # If a load releases the axis at the start of a run, use the velocity before the jump. That
        # velocity has a derivative with respect to the start velocity.
        leaves = (old == STUCK) & (new[0] != STUCK)
        y = y.at[1].set(jnp.where(leaves, arrived[1], y[1]))
        return y, mode_vector(new), jnp.zeros((), jnp.int32)

    def prepare_start(self, t: Number, y: State, mode: Modes, args: PyTree) -> tuple[State, Modes]:
        self._check_start(y, mode)
        held = (mode[0] == STUCK) & jnp.all(self.guard(t, y, mode, args) > 0)
        return y.at[1].set(jnp.where(held, jax.lax.stop_gradient(y[1]), y[1])), mode

    @property
    def mode_size(self) -> int:
        return 1 + self._is_pressed + has_breaks(self.friction)

    # The following methods compute terms of the equations.

    @property
    def _is_pressed(self) -> bool:
        return type(self).pressing is not AbstractAxis.pressing

    def _pressed_friction(self, t: Array, y: Array, mode: Array, args: PyTree) -> Any:
        """Return the friction added by `pressing`: its value times its sign in the mode vector. The
        product is smooth, and equals the absolute value until `pressing` changes its sign.
        """
        if not self._is_pressed:
            return 0.0
        return mode[1] * self._as_array("pressing", self.pressing(t, y, args), (), y)

    def _load(self, t: Array, y: Array, args: PyTree) -> Array:
        return self._as_array("load", self.load(t, y, args), (), y)

    def _extrema_matter(self, mode: Array) -> Any:
        guards = type(self).guard is AbstractAxis.guard and not self._is_pressed
        return mode[0] == STUCK if guards else True

    def _reserves(self, t: Array, y: Array, mode: Array, args: PyTree) -> tuple[Array, Array]:
        """Return the additional load [N or N.m] that a stuck axis holds, forward and backward."""
        load = self._load(t, y, args)
        added = self.friction.breakaway() * self._pressed_friction(t, y, mode, args)
        forward, backward = self.friction.holds(1, 1.0), self.friction.holds(-1, 1.0)
        return forward + added - load, backward + added + load

    def _slack(self, t: Array, y: Array, mode: Array, args: PyTree) -> Array:
        """Return the rounding error [N] of the loads."""
        forward, backward = self._reserves(t, y, mode, args)
        size = (
            jnp.abs(forward) + jnp.abs(backward) + jnp.abs(self._pressed_friction(t, y, mode, args))
        )
        return 500 * jnp.finfo(y.dtype).eps * jax.lax.stop_gradient(size) + jnp.finfo(y.dtype).tiny


class AbstractLinkage(AbstractOwnMotion):
    """A machine with several degrees of freedom and dry friction, such as a robot arm. The user
    writes the mass matrix and the forces without friction.

        M(q) du/dt = force(t, q, u, args) - J(q)' friction,    dq/dt = u

    Friction contact c moves with the velocity (J u)[c]. By default J is the unit matrix, and
    contact c is joint c. The contacts are coupled through M: whether one contact holds depends on
    the forces of the other contacts. The engine finds consistent modes at every event.

    The state is y = (q, u, further states). The mode vector contains a `Mode` for each contact,
    then the segment number of each law that has corners.

    **To be written:** a field `frictions`, a tuple of `SupportFriction` (their body names are not
    used), and the methods `mass_matrix`, `force` and `states`. Write `jacobian` if the contacts are
    not the joints, and `others` and `degrees_of_freedom` if there are further states. A fit also
    needs the method `start`(t), which returns ``self.begin(t, y)`` for the start state y.

    **Raises:** `ValueError` if `frictions` is not a tuple of `SupportFriction`.

    Two sledges on a track, joined by a rod without mass, have a total mass of 2 kg. A force of 6 N
    pulls them, and the friction of each sledge is 1 N:

    >>> import frictax as fx, jax.numpy as jnp
    >>> class Sledges(fx.AbstractLinkage):
    ...     frictions: tuple[fx.SupportFriction, ...]
    ...
    ...     def mass_matrix(self, q):
    ...         return jnp.array([[2.0]])
    ...
    ...     def force(self, t, q, u, args):
    ...         return jnp.array([6.0])
    ...
    ...     def jacobian(self, q):
    ...         return jnp.array([[1.0], [1.0]])
    ...
    ...     def states(self):
    ...         return ("s", "v")
    >>> rubber = fx.SupportFriction("sledge", f_pos=fx.Coulomb(F_Coulomb=1.0))
    >>> sledges = Sledges((rubber, rubber))

    >>> path = fx.walk(sledges, *sledges.begin(0.0, [0.0, 0.0]), jnp.array([0.0, 1.0]))
    >>> round(float(path.ys[-1, 1]), 6), path.modes[-1].tolist()
    (2.0, [1, 1])
    """

    frictions: eqx.AbstractVar[tuple[SupportFriction, ...]]

    def __check_init__(self) -> None:
        frictions: Any = self.frictions
        if (
            not isinstance(frictions, tuple)
            or not frictions
            or not all(isinstance(f, SupportFriction) for f in frictions)
        ):
            raise ValueError(
                f"`{type(self).__name__}.frictions` must be a tuple of `SupportFriction`, one for"
                f' each contact, got {frictions!r}. Write (fx.SupportFriction("shoulder",'
                " f_pos=fx.Coulomb(F_Coulomb=5.0)), ...), say."
            )
        for i, friction in enumerate(frictions):
            no_bristle(self, f"frictions[{i}]", friction)

    @abc.abstractmethod
    def mass_matrix(self, q: Float[Array, " n"]) -> Float[Array, "n n"]:
        """Return the mass matrix M(q), symmetric and positive definite [kg, kg.m, kg.m2]."""

    @abc.abstractmethod
    def force(
        self, t: Number, q: Float[Array, " n"], u: Float[Array, " n"], args: PyTree
    ) -> Float[Array, " n"]:
        """Return the sum of all forces [N] or torques [N.m] along each coordinate, except friction.
        Include motors, gravity, and -C(q, u)u (see `velocity_terms`). The sum must be smooth.
        """

    @abc.abstractmethod
    def states(self) -> tuple[str, ...]:
        """Return the names of the states, in the order q, u, further states."""

    def jacobian(self, q: Float[Array, " n"]) -> Float[Array, "k n"]:
        """Return the Jacobian J(q), which gives the velocities J(q) u of the k contacts. By default
        J is the unit matrix, and each coordinate has one contact.
        """
        return jnp.eye(q.shape[0], dtype=q.dtype)

    @property
    def degrees_of_freedom(self) -> int:
        """The number of coordinates; half of the states by default."""
        return len(self.states()) // 2

    def velocity_terms(self, q: Float[Array, " n"], u: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return the Coriolis and centrifugal terms C(q, u)u = dM/dt u - 1/2 d(u'M u)/dq."""
        _, turning = jax.jvp(self._mass_at, (q,), (u,))
        return turning @ u - 0.5 * jax.grad(lambda q: u @ self._mass_at(q) @ u)(q)

    def begin(self, t: ScalarLike, y: ArrayLike) -> tuple[State, Modes]:
        """Return state and mode at the start of a run from the state `y`. A contact slides if its
        velocity is not 0, and is stuck otherwise. A stuck contact whose load exceeds the breakaway
        force begins to slide at once.
        """
        y = jnp.asarray(y, dtype=float)
        self._check_start(y)
        n = self.degrees_of_freedom
        speeds = self._jacobian_at(y[:n]) @ y[n : 2 * n]
        mode = [jnp.sign(v) for v in speeds]
        mode += [
            piece_at(friction, jnp.sign(v).astype(jnp.int32), jnp.abs(v))
            for friction, v in zip(self.frictions, speeds, strict=True)
            if has_breaks(friction)
        ]
        return y, mode_vector(mode)

    def friction_forces(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " k"]:
        """Return the friction force of each contact [N or N.m], positive if it opposes forward
        motion. The friction force of a stuck contact is the holding force.
        """
        return jnp.stack(self._snapshot(t, y, mode, args).friction)

    # The engine calls the following methods.

    def flow(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " n"]:
        now = self._snapshot(t, y, mode, args)
        rest = (y.shape[0] - 2 * self.degrees_of_freedom,)
        others = self._as_array("others", self.others(t, y, args), rest, y)
        return jnp.concatenate([jnp.stack([*now.u, *now.coordinate_acceleration]), others])

    def guard(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " g"]:
        return jnp.stack(all_margins(self._snapshot(t, y, mode, args)))

    def prepare_start(self, t: Number, y: State, mode: Modes, args: PyTree) -> tuple[State, Modes]:
        self._check_start(y, mode)
        if not self.is_by_joint:
            mode = self._slide_without_lever(*constant((self, t, y, mode, args)))
        held = jnp.all(self.guard(t, y, mode, args) > 0)
        stuck = {c: held & (mode[c] == STUCK) for c in range(len(self.frictions))}
        return bring_to_rest(self._snapshot(t, y, mode, args), y, stuck), mode

    @property
    def mode_size(self) -> int:
        return len(self.frictions) + sum(map(has_breaks, self.frictions))

    def jump(
        self, t: Number, y: State, mode: Modes, fired: Integer, args: PyTree
    ) -> tuple[State, Modes, Integer]:
        new, (still, *at) = list(mode), constant((self, t, y, mode, args))
        now = still._snapshot(*at)
        rests, ok = modes_after_event(
            now, now, crossed_guards(now.layout, still.frictions, fired), fired, new
        )
        y = bring_to_rest(self._snapshot(t, y, mode, args), y, rests) if rests else y
        return y, mode_vector(new), jnp.where(ok, 0, 1).astype(jnp.int32)

    # The following methods compute terms of the equations.

    @staticmethod
    def _slide_without_lever(
        still: "AbstractLinkage", t: Array, y: Array, mode: Array, args: PyTree
    ) -> Array:
        """Return the mode vector in which every stuck contact without a lever slides instead. A
        contact is without a lever if no force at the contact can change its velocity.
        """
        now, new = still._snapshot(t, y, mode, args), list(mode)
        for c, contact in enumerate(now.layout.contacts):
            rate = now.relative_acceleration(c, now.free_acceleration)
            slides = (mode[c] == STUCK) & ~now.has_lever(c)
            new[c] = jnp.where(slides, direction_without_lever(mode[c], rate), mode[c])
            if contact.piece is not None:
                first = piece_at(now.part(c), new[c], 0.0)
                new[contact.piece] = jnp.where(slides, first, mode[contact.piece])
        return mode_vector(new)

    def _snapshot(self, t: Array, y: Array, mode: Array, args: PyTree) -> "_LinkageSnapshot":
        n, k = self.degrees_of_freedom, len(self.frictions)
        q, u = y[:n], y[n : 2 * n]
        jacobian, turning = jax.jvp(self._jacobian_at, (q,), (u,))
        speeds = jacobian @ u
        entries, place = [], k
        for c, friction in enumerate(self.frictions):
            piece = place if has_breaks(friction) else None
            place += piece is not None
            flange, group = Flange(c, c, 0), tuple(range(k))
            redundant = not self.is_by_joint
            entries.append(Contact(c, flange, None, None, group, False, redundant, None, piece))
        laid = Layout((), tuple(range(n)), (), (), tuple(entries), (), (), ())
        v_rel = [speeds[c] for c in range(k)]
        direction = [jnp.where(mode[c] == FREE, 0, mode[c]) for c in range(k)]
        pieces = [None if c.piece is None else mode[c.piece] for c in laid.contacts]
        contact_jacobian: list[SparseRow] = [
            {c: 1.0} if self.is_by_joint else {i: jacobian[c, i] for i in range(n)}
            for c in range(k)
        ]
        modes = [mode[i] for i in range(mode.shape[0])]
        at = self.frictions, laid, t, modes, list(q), list(u)
        contacts = contact_jacobian, v_rel, direction, pieces
        force = self._as_array("force", self.force(t, q, u, args), (n,), q)
        matrices = self._mass_at(q), force, turning @ u, self._jacobian_at
        return _LinkageSnapshot(*at, *contacts, *matrices)

    def _mass_at(self, q: Array) -> Array:
        return self._as_array("mass_matrix", self.mass_matrix(q), q.shape * 2, q)

    def _jacobian_at(self, q: Array) -> Array:
        shape = len(self.frictions), q.shape[0]
        return self._as_array("jacobian", self.jacobian(q), shape, q)

    def _extrema_matter(self, mode: Array) -> Any:
        guards = type(self).guard is AbstractLinkage.guard
        return jnp.any(mode[: len(self.frictions)] == STUCK) if guards else True

    @property
    def is_by_joint(self) -> bool:
        """True if contact c moves with coordinate c, because the class defines no `jacobian`."""
        return type(self).jacobian is AbstractLinkage.jacobian


@dataclasses.dataclass(frozen=True)
class _LinkageSnapshot(Snapshot):
    """A `Snapshot` of a linkage: its forces and accelerations at one time, with these attributes:

    - `mechanism`: the tuple of frictions. `jacobian`: the function that computes J from q.
    - `dense_mass`: mass matrix M (n x n) [kg or kg.m2]. `force`: force along each coordinate (n,)
      [N or N.m]. `turning`: the term dJ/dt u of each contact's acceleration [m/s2 or rad/s2].
    """

    mechanism: Any
    layout: Layout
    t: Array
    mode: list[Array]
    q: list[Array]
    u: list[Array]
    contact_jacobian: list[SparseRow]
    v_rel: list[Array]
    direction: list[Array]
    piece: list[Any]
    dense_mass: Array
    force: Array
    turning: Array
    jacobian: Callable[[Array], Array]

    begins_stuck = True

    @property
    def levers_vary(self) -> bool:
        return self.layout.contacts[0].redundant

    @property
    def elements(self) -> list[Any]:
        return list(self.mechanism)

    @property
    def normal(self) -> list[Any]:
        return [None] * len(self.contact_jacobian)

    @property
    def side(self) -> list[Any]:
        return self.normal

    @cached_property
    def scale(self) -> list[Any]:
        return [1.0] * len(self.contact_jacobian)

    @property
    def v(self) -> list[Array]:
        return self.v_rel

    @cached_property
    def mass_matrix(self) -> dict[int, SparseRow]:
        numbers = range(len(self.q))
        return {i: {j: self.dense_mass[i, j] for j in numbers} for i in numbers}

    @cached_property
    def coordinate_force(self) -> list[Array]:
        return [self.force[i] for i in range(len(self.q))]

    def turning_at(self, u: list[Array]) -> Array:
        rates = jnp.stack(u)
        return jax.jvp(self.jacobian, (jnp.stack(self.q),), (rates,))[1] @ rates

    def given_acceleration(self, c: int) -> Any:
        """Return (dJ/dt u)[c], the acceleration of contact c by the change of its Jacobian."""
        return self.turning[c]


class Driven(AbstractHybridSystem):
    """A user's hybrid system with drive signals. The methods of the system receive a dict `args`:
    ``args["motor"]`` is the value of the signal "motor", and ``args["der(motor)"]`` is its rate.
    If the `args` of `walk` are a dict, the methods receive its entries too. Methods without a time,
    such as `deadline`, receive only the `args` of `walk`.

    The engine ends a time step at each switch of a signal, and calls `jump` with the cause
    `DEADLINE`. All signals that switch at one time switch together. If the system has a `deadline`
    of its own, `jump` is called with the cause `DEADLINE` at this deadline only. If a switch makes
    a contact break away, an event function (`guard`) is negative after the switch, and the engine
    calls `jump` for this event function.

    **Arguments:** `system`, the user's hybrid system; then keyword arguments, each a signal, a
    function of time or a number. Signals of a `system` that is a `Driven` are kept, except those
    with the same name.

    **Raises:** `ValueError` if `system` is not a hybrid system.

    >>> import frictax as fx, jax.numpy as jnp
    >>> class Rotor(fx.AbstractHybridSystem):
    ...     def flow(self, t, y, mode, args):
    ...         return args["motor"][None] / 2.0
    ...
    ...     def guard(self, t, y, mode, args):
    ...         return jnp.ones(1)
    ...
    ...     def jump(self, t, y, mode, fired, args):
    ...         return y, mode, jnp.array(0)
    >>> rotor = fx.Driven(Rotor(), motor=fx.Step(height=4.0, startTime=1.0))
    >>> y, mode = rotor.with_pieces(jnp.zeros(1), jnp.zeros(1, int), jnp.array(0.0))
    >>> float(fx.walk(rotor, y, mode, jnp.array([0.0, 3.0])).ys[-1, 0].round(9))
    4.0
    """

    system: AbstractHybridSystem
    signals: tuple[AbstractSignal, ...]
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self, system: AbstractHybridSystem, **signals: AbstractSignal | ScalarLike
    ) -> None:
        if not isinstance(system, AbstractHybridSystem):
            raise ValueError(
                f"`Driven.system` must be an `AbstractHybridSystem`, got a {type(system).__name__}."
                " Give the signals of a `Mechanism` to its parts, such as `Force`."
            )
        if isinstance(system, Driven):
            signals = dict(zip(system.names, system.signals, strict=True)) | signals
            system = system.system
        self.system = system
        self.signals = tuple(as_signal(s) for s in signals.values())
        self.names = tuple(signals)

    def with_pieces(self, y: Array, mode: Array, t: Array) -> tuple[Array, Array]:
        """Return `y` and the mode vector at the start of a run: the mode of the system, followed by
        the segment number of each signal at time `t`.
        """
        t = jnp.asarray(t, dtype=float)
        return y, _join(mode, [s.piece(t) for s in self.signals])

    def prepare_start(
        self, t: Number, y: State, mode: Modes, args: PyTree
    ) -> tuple[State, Int[Array, " k"]]:
        if self.system.mode_size == mode.shape[0]:  # the segment numbers of the signals are missing
            y, mode = self.with_pieces(y, mode, t)
        self._check(t, y, mode, args)
        # The mode may be that of another time. A segment that ends exactly at the start is kept,
        # because the run then begins with the event at its end.
        rounding = 8 * jnp.finfo(t.dtype).eps * jnp.abs(t)
        pieces = [
            jnp.where((signal.end(k) < t - rounding) | (k > now), now, k)
            for signal, k in self._pieces(mode)
            for now in [signal.piece(t + rounding)]
        ]
        values = self._values(t, _join(self._own(mode), pieces), args)
        y, own = self.system.prepare_start(t, y, self._own(mode), values)
        return y, _join(own, pieces)

    @property
    def mode_size(self) -> int | None:
        own = self.system.mode_size
        return None if own is None else own + len(self.signals)

    def flow(self, t: Number, y: State, mode: Modes, args: PyTree) -> State:
        return self.system.flow(t, y, self._own(mode), self._values(t, mode, args))

    def guard(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " g"]:
        return self.system.guard(t, y, self._own(mode), self._values(t, mode, args))

    def jump(
        self, t: Number, y: State, mode: Modes, fired: Integer, args: PyTree
    ) -> tuple[State, Modes, Integer]:
        own, signals = self._own(mode), self._pieces(mode)
        due = latest_due(t, self.deadline(mode, args), fired)
        pieces, switched = switch_signals(signals, self._ends(mode), due, fired)
        values = self._values(t, _join(own, pieces), args)
        after, new, status = self.system.jump(t, y, own, fired, values)
        # Before its own deadline, the system has no event of this cause.
        end = self.system.deadline(own, args)
        waits = (fired == DEADLINE) & (end > due) & jnp.isfinite(end)
        after, status = jnp.where(waits, y, after), jnp.where(waits, 0, status)
        new = _join(jnp.where(waits, own, new), pieces)
        changed = (y, mode), (after, new)
        return add_switch_times(self, (t, args), *changed, signals, switched), new, status

    def deadline(self, mode: Modes, args: PyTree) -> Number:
        first = first_switch(self._pieces(mode), self._ends(mode))
        return first_end([first, jnp.asarray(self.system.deadline(self._own(mode), args), float)])

    def _ends(self, mode: Array) -> list[Array]:
        """Return the time at which the present segment of each signal ends; inf if the segment ends
        at an extremum that does not matter.
        """
        matters = True
        if isinstance(self.system, AbstractOwnMotion):
            matters = self.system._extrema_matter(self._own(mode))
        return [
            jnp.where(signal.turns(k) & jnp.logical_not(matters), jnp.inf, signal.end(k))
            for signal, k in self._pieces(mode)
        ]

    def known_switches(self, args: PyTree, on_samples: bool) -> int:
        own = self.system.known_switches(args, on_samples)
        return own + (0 if on_samples else sum(s.known_switches() for s in self.signals))

    def longest_step_at(self, t: Number, mode: Modes, span: Number, args: PyTree) -> Number | None:
        steps = longest_steps_of_functions(self.signals, span)
        own = self.system.longest_step_at(t, self._own(mode), span, args)
        steps += [] if own is None else [own]
        return jnp.min(jnp.stack([jnp.asarray(step) for step in steps])) if steps else None

    def is_smooth(self, args: PyTree) -> bool:
        return self.system.is_smooth(args)

    def is_stiff(self, args: PyTree) -> bool:
        return self.system.is_stiff(args)

    def swings(self, args: PyTree) -> bool:
        return self.system.swings(args)

    def judged_states(self, args: PyTree) -> int | None:
        return self.system.judged_states(args)

    def implicit_step(
        self, t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree
    ) -> State | None:
        values = self._values(t1, mode, args)
        return self.system.implicit_step(t0, t1, y0, self._own(mode), values)

    def sound(
        self, t0: Number, y0: State, t1: Number, y1: State, mode: Modes, args: PyTree
    ) -> Bool[Array, ""]:
        values = self._values(t1, mode, args)
        return self.system.sound(t0, y0, t1, y1, self._own(mode), values)

    def safe_step(self, t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree) -> State:
        return self.system.safe_step(t0, t1, y0, self._own(mode), self._values(t1, mode, args))

    def staying(self, mode: Modes, args: PyTree) -> "Driven":
        signals = {
            name: signal.staying(k)
            for name, (signal, k) in zip(self.names, self._pieces(mode), strict=True)
        }
        return Driven(self.system.staying(self._own(mode), args), **signals)

    def tick(self, t: Number, mode: Modes, args: PyTree) -> Modes:
        own, pieces = self._own(mode), [s.passed(t, k) for s, k in self._pieces(mode)]
        return _join(self.system.tick(t, own, self._values(t, _join(own, pieces), args)), pieces)

    def start(self, t: Number) -> tuple[State, Modes]:
        return self.with_pieces(*self.system.start(t), t)

    def begin(self, t: ScalarLike, y: ArrayLike) -> tuple[State, Modes]:
        return self.with_pieces(*self.system.begin(t, y), jnp.asarray(t))

    def variables(self, t: Number, y: State, mode: Modes, args: PyTree) -> dict[str, Number]:
        values = self._values(t, mode, args)
        return {
            **{name: values[name] for name in self.names},
            **self.system.variables(t, y, self._own(mode), values),
        }

    def states(self) -> tuple[str, ...]:
        return self.system.states()

    def _check(self, t: Array, y: Array, mode: Array, args: PyTree) -> None:
        """Raise `ValueError` if `mode` does not contain a segment number for each signal."""
        name, size, got = type(self.system).__name__, self.mode_size, mode.shape[0]
        wants = f"the mode of `{name}` and a piece for each signal ({', '.join(self.names)})"
        remedy = "Write driven.begin(t, y), or driven.with_pieces(y, mode, t) with its own mode."
        try:
            fits = size in (None, got) and got >= len(self.signals)
            if fits and size is None:
                jax.eval_shape(lambda t, y, mode: self.guard(t, y, mode, args), t, y, mode)
        except IndexError:
            fits = False
        if not fits:
            entries = f"{got} entr{'y' if got == 1 else 'ies'}"
            raise ValueError(f"`Driven`: `mode` must hold {wants}, got {entries}. {remedy}")

    def _own(self, mode: Array) -> Array:
        return mode[: mode.shape[0] - len(self.signals)]

    def _pieces(self, mode: Array) -> list[tuple[AbstractSignal, Array]]:
        """Return the signals, each with the number of its segment."""
        return list(zip(self.signals, mode[mode.shape[0] - len(self.signals) :], strict=True))

    def _values(self, t: Array, mode: Array, args: PyTree = None) -> dict[str, Any]:
        """Return the entries of `args`, and value and rate of each signal at time `t`."""
        if args is not None and not isinstance(args, dict):
            raise ValueError(
                f"`Driven`: `args` of a run must be a dict, got a {type(args).__name__}. Write"
                " args={'g': 9.81}; the methods of the system find it beside the signals."
            )
        now: dict[str, Any] = dict(args or {})
        for name, (signal, k) in zip(self.names, self._pieces(mode), strict=True):
            if name in now:
                raise ValueError(
                    f"`Driven`: `args` of a run must not have the name of a signal, got {name!r}."
                    " Rename the entry."
                )
            now[name], now[f"der({name})"] = jax.jvp(
                lambda t, s=signal, k=k: s.on_piece(t, k), (t,), (jnp.ones_like(t),)
            )
        return now


def _join(own: Array, pieces: list[Array]) -> Array:
    """Return the mode vector of a `Driven`: the mode of its system, then the segment numbers."""
    return jnp.concatenate([jnp.asarray(own, jnp.int32), mode_vector(pieces)])
