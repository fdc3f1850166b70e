"""One degree of freedom with dry friction, of the user's own kind."""

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
from frictax.contacts.contact import ends, has_breaks, law_value, piece_at
from frictax.contacts.mode import BACKWARD, FORWARD, FREE, STUCK, mode_vector
from frictax.contacts.rubbing import no_bristle
from frictax.engine.system import DEADLINE, AbstractHybridSystem
from frictax.parameters import Integer, Modes, Number, State
from frictax.parameters.arrays import constant
from frictax.signals import AbstractSignal
from frictax.signals.as_signal import as_signal
from frictax.signals.signal import first_end, moved_on

from .contact_margins import all_margins
from .layout import Contact, Flange, Layout
from .mode_transition import at_rest, direction_without_lever, fallen, settled
from .snapshot import Snapshot
from .sparse import Sparse


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


class AbstractLinkage(AbstractOwnMotion):
    """Several degrees of freedom with dry friction, such as an arm: its user writes the mass matrix
    and the force.

        M(q) du/dt = force(t, q, u, args) - J(q)' friction,    dq/dt = u

    Friction contact c moves with the velocity (J u)[c]; by default J is the unit matrix: friction c
    is that of joint c. The contacts act on each other through M: whether one holds depends on what
    the others bear, and that is found out at every event.

    The state is y = (q, u, further states whose rates `others` gives). The mode has an entry for
    each contact, a `Mode`, then the piece of each law that has corners.

    **To be written:** a field `frictions`, a tuple of `SupportFriction` (the names of their bodies
    are not used); `mass_matrix`, `force` and `states`; `start` for a fit, in one line by `begin`.
    `jacobian` where contacts are not the joints; `others` and `degrees_of_freedom` where there are
    further states.

    **Raises:** `ValueError` where `frictions` holds something else.

    Two sledges on a track, joined by a rod without mass: 2 kg, 6 N, and 1 N of friction at either

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
        """M(q), symmetric and positive definite [kg, kg.m, kg.m2]."""

    @abc.abstractmethod
    def force(
        self, t: Number, q: Float[Array, " n"], u: Float[Array, " n"], args: PyTree
    ) -> Float[Array, " n"]:
        """All forces [N] or torques [N.m] along the coordinates but friction, smooth: motors,
        gravity, and -C(q, u)u of the motion itself.

        `velocity_terms` computes the last from M.
        """

    @abc.abstractmethod
    def states(self) -> tuple[str, ...]:
        """The names of the states: first those of q, then those of u, then those of `others`."""

    def jacobian(self, q: Float[Array, " n"]) -> Float[Array, "k n"]:
        """J(q): the velocities of the k contacts are J u.

        The unit matrix by default, a contact for each coordinate.
        """
        return jnp.eye(q.shape[0], dtype=q.dtype)

    @property
    def degrees_of_freedom(self) -> int:
        """The number of coordinates; half of the states by default."""
        return len(self.states()) // 2

    def velocity_terms(self, q: Float[Array, " n"], u: Float[Array, " n"]) -> Float[Array, " n"]:
        """What the motion itself asks for, C(q, u)u = dM/dt u - 1/2 d(u'M u)/dq, of the mass
        matrix's derivatives.
        """
        _, turning = jax.jvp(self.mass_matrix, (q,), (u,))
        return turning @ u - 0.5 * jax.grad(lambda q: u @ self.mass_matrix(q) @ u)(q)

    def begin(self, t: ScalarLike, y: ArrayLike) -> tuple[State, Modes]:
        """State and mode of a run from state `y`: contacts that move slide, the others hold what
        they can. A load that is too great for that breaks them away at once.
        """
        y = jnp.asarray(y, dtype=float)
        n = self.degrees_of_freedom
        speeds = self.jacobian(y[:n]) @ y[n : 2 * n]
        mode = [jnp.sign(v) for v in speeds]
        mode += [
            piece_at(friction, jnp.sign(v).astype(jnp.int32), jnp.abs(v))
            for friction, v in zip(self.frictions, speeds, strict=True)
            if has_breaks(friction)
        ]
        return y, mode_vector(mode)

    def friction_forces(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " k"]:
        """What friction opposes to forward motion at each contact [N or N.m]; stuck, what holds."""
        return jnp.stack(self._snapshot(t, y, mode, args).friction)

    # -- the contract with the engine

    def flow(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " n"]:
        now = self._snapshot(t, y, mode, args)
        return jnp.concatenate(
            [jnp.stack([*now.u, *now.coordinate_acceleration]), self.others(t, y, args)]
        )

    def guard(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " g"]:
        return jnp.stack(all_margins(self._snapshot(t, y, mode, args)))

    def prepare_start(self, t: Number, y: State, mode: Modes, args: PyTree) -> tuple[State, Modes]:
        if not self.is_by_joint:
            mode = self._started(*constant((self, t, y, mode, args)))
        held = jnp.all(self.guard(t, y, mode, args) > 0)
        stuck = {c: held & (mode[c] == STUCK) for c in range(len(self.frictions))}
        return at_rest(self._snapshot(t, y, mode, args), y, stuck), mode

    @property
    def mode_size(self) -> int:
        return len(self.frictions) + sum(map(has_breaks, self.frictions))

    def jump(
        self, t: Number, y: State, mode: Modes, fired: Integer, args: PyTree
    ) -> tuple[State, Modes, Integer]:
        new, (still, *at) = list(mode), constant((self, t, y, mode, args))
        now = still._snapshot(*at)
        rests, ok = settled(now, now, fallen(now.layout, still.frictions, fired), fired, new)
        y = at_rest(self._snapshot(t, y, mode, args), y, rests) if rests else y
        return y, mode_vector(new), jnp.where(ok, 0, 1).astype(jnp.int32)

    # -- what these are made of

    @staticmethod
    def _started(still: "AbstractLinkage", t: Array, y: Array, mode: Array, args: PyTree) -> Array:
        """The mode in which no contact is stuck that has no lever."""
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
        jacobian, turning = jax.jvp(self.jacobian, (q,), (u,))
        speeds = jacobian @ u
        laid = _layout(self.frictions, n, not self.is_by_joint)
        v_rel = [speeds[c] for c in range(k)]
        direction = [jnp.where(mode[c] == FREE, 0, mode[c]) for c in range(k)]
        pieces = [None if c.piece is None else mode[c.piece] for c in laid.contacts]
        contact_jacobian: list[Sparse] = [
            {c: 1.0} if self.is_by_joint else {i: jacobian[c, i] for i in range(n)}
            for c in range(k)
        ]
        modes, matrices = (
            [mode[i] for i in range(mode.shape[0])],
            (self.mass_matrix(q), self.force(t, q, u, args), turning @ u, self.jacobian),
        )
        return _LinkageSnapshot(
            self.frictions,
            laid,
            t,
            modes,
            list(q),
            list(u),
            contact_jacobian,
            v_rel,
            direction,
            pieces,
            *matrices,
        )

    @property
    def is_by_joint(self) -> bool:
        """Whether contact c is that of coordinate c, as it is unless `jacobian` says otherwise."""
        return type(self).jacobian is AbstractLinkage.jacobian


@dataclasses.dataclass(frozen=True)
class _LinkageSnapshot(Snapshot):
    """A linkage at one time: `dense_mass` is M [kg or kg.m2], n x n; `force` has n entries [N or
    N.m]; `turning` is dJ/dt u [m/s2 or rad/s2], one for each contact; `jacobian`: J as a function
    of q; `mechanism`: the frictions. The others are those of `Snapshot`.
    """

    mechanism: Any
    layout: Layout
    t: Array
    mode: list[Array]
    q: list[Array]
    u: list[Array]
    contact_jacobian: list[Sparse]
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
    def mass_matrix(self) -> dict[int, Sparse]:
        numbers = range(len(self.q))
        return {i: {j: self.dense_mass[i, j] for j in numbers} for i in numbers}

    @cached_property
    def coordinate_force(self) -> list[Array]:
        return [self.force[i] for i in range(len(self.q))]

    def turning_at(self, u: list[Array]) -> Array:
        rates = jnp.stack(u)
        return jax.jvp(self.jacobian, (jnp.stack(self.q),), (rates,))[1] @ rates

    def given_acceleration(self, c: int) -> Any:
        """What the motion itself makes of the relative acceleration of contact c."""
        return self.turning[c]


def _layout(frictions: tuple[SupportFriction, ...], n: int, redundant: bool) -> Layout:
    k = len(frictions)
    contacts, place = [], k
    for c, friction in enumerate(frictions):
        piece = place if has_breaks(friction) else None
        place += piece is not None
        contacts.append(
            Contact(
                c, Flange(c, c, 0), None, None, tuple(range(k)), False, redundant, None, piece, None
            )
        )
    return Layout((), tuple(range(n)), (), (), tuple(contacts), (), (), ())


class Driven(AbstractHybridSystem):
    """A hybrid system of the user's own, with signals: its `args` are the signals' values by name,
    ``args["motor"]``, and their rates as ``args["der(motor)"]``.

    The engine stops at the signals' switches by itself; the system need not know of them. Where a
    drive may break a contact away at a switch, the margin is down when the mode goes on, and `jump`
    is called for it.

    **Arguments:** `system`; then each signal under its name: signals, functions of time or numbers.

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
        self.system = system
        self.signals = tuple(as_signal(s) for s in signals.values())
        self.names = tuple(signals)

    def with_pieces(self, y: Array, mode: Array, t: Array) -> tuple[Array, Array]:
        """`y` and the system's mode followed by the signals' pieces at time `t`, as a
        run begins.
        """
        return y, jnp.concatenate(
            [
                jnp.asarray(mode, jnp.int32),
                jnp.stack([s.piece(t) for s in self.signals]).astype(jnp.int32),
            ]
        )

    def prepare_start(
        self, t: Number, y: State, mode: Modes, args: PyTree
    ) -> tuple[State, Int[Array, " k"]]:
        if self.system.mode_size == mode.shape[0]:  # of the system's own `begin`
            y, mode = self.with_pieces(y, mode, t)
        self._check(t, y, mode)
        y, own = self.system.prepare_start(t, y, self._own(mode), self._values(t, mode))
        return y, jnp.concatenate([own, mode[own.shape[0] :]])

    @property
    def mode_size(self) -> int | None:
        own = self.system.mode_size
        return None if own is None else own + len(self.signals)

    def flow(self, t: Number, y: State, mode: Modes, args: PyTree) -> State:
        return self.system.flow(t, y, self._own(mode), self._values(t, mode))

    def guard(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " g"]:
        return self.system.guard(t, y, self._own(mode), self._values(t, mode))

    def jump(
        self, t: Number, y: State, mode: Modes, fired: Integer, args: PyTree
    ) -> tuple[State, Modes, Integer]:
        switch = jnp.argmin(jnp.stack([signal.end(k) for signal, k in self._pieces(mode)]))
        pieces = [
            moved_on(signal, k, t, (fired == DEADLINE) & (switch == j))
            for j, (signal, k) in enumerate(self._pieces(mode))
        ]
        after = jnp.concatenate([self._own(mode), jnp.stack(pieces).astype(jnp.int32)])
        y, own, status = self.system.jump(t, y, self._own(mode), fired, self._values(t, after))
        return y, jnp.concatenate([jnp.asarray(own, jnp.int32), after[own.shape[0] :]]), status

    def deadline(self, mode: Modes, args: PyTree) -> Number:
        return first_end(signal.end(k) for signal, k in self._pieces(mode))

    def known_switches(self, args: PyTree, on_samples: bool) -> int:
        own = self.system.known_switches(None, on_samples)
        return own + (0 if on_samples else sum(s.known_switches() for s in self.signals))

    def is_smooth(self, args: PyTree) -> bool:
        return self.system.is_smooth(None)

    def is_stiff(self, args: PyTree) -> bool:
        return self.system.is_stiff(None)

    def swings(self, args: PyTree) -> bool:
        return self.system.swings(None)

    def sound(
        self, t0: Number, y0: State, t1: Number, y1: State, mode: Modes, args: PyTree
    ) -> Bool[Array, ""]:
        return self.system.sound(t0, y0, t1, y1, self._own(mode), self._values(t1, mode))

    def safe_step(self, t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree) -> State:
        return self.system.safe_step(t0, t1, y0, self._own(mode), self._values(t1, mode))

    def staying(self, mode: Modes, args: PyTree) -> "Driven":
        signals = {
            name: signal.staying(k)
            for name, (signal, k) in zip(self.names, self._pieces(mode), strict=True)
        }
        return Driven(self.system.staying(self._own(mode), None), **signals)

    def tick(self, t: Number, mode: Modes, args: PyTree) -> Modes:
        after = [signal.passed(t, k) for signal, k in self._pieces(mode)]
        return jnp.concatenate([self._own(mode), jnp.stack(after).astype(jnp.int32)])

    def start(self, t: Number) -> tuple[State, Modes]:
        return self.with_pieces(*self.system.start(t), t)

    def begin(self, t: ScalarLike, y: ArrayLike) -> tuple[State, Modes]:
        return self.with_pieces(*self.system.begin(t, y), jnp.asarray(t))

    def variables(self, t: Number, y: State, mode: Modes, args: PyTree) -> dict[str, Number]:
        values = self._values(t, mode)
        return {
            **{name: values[name] for name in self.names},
            **self.system.variables(t, y, self._own(mode), values),
        }

    def states(self) -> tuple[str, ...]:
        return self.system.states()

    def _check(self, t: Array, y: Array, mode: Array) -> None:
        """Raise `ValueError` where `mode` lacks the pieces of the signals."""
        name, size, got = type(self.system).__name__, self.mode_size, mode.shape[0]
        wants = f"the mode of `{name}` and a piece for each signal ({', '.join(self.names)})"
        remedy = "Write driven.begin(t, y), or driven.with_pieces(y, mode, t) with its own mode."
        try:
            fits = size in (None, got) and got >= len(self.signals)
            if fits and size is None:
                jax.eval_shape(
                    lambda t, y, mode: self.system.guard(
                        t, y, self._own(mode), self._values(t, mode)
                    ),
                    t,
                    y,
                    mode,
                )
        except IndexError:
            fits = False
        if not fits:
            entries = f"{got} entr{'y' if got == 1 else 'ies'}"
            raise ValueError(f"`Driven`: `mode` must hold {wants}, got {entries}. {remedy}")

    def _own(self, mode: Array) -> Array:
        return mode[: mode.shape[0] - len(self.signals)]

    def _pieces(self, mode: Array) -> list[tuple[AbstractSignal, Array]]:
        """The signals, each with the piece that it is on."""
        return list(zip(self.signals, mode[mode.shape[0] - len(self.signals) :], strict=True))

    def _values(self, t: Array, mode: Array) -> dict[str, Array]:
        now: dict[str, Array] = {}
        for name, (signal, k) in zip(self.names, self._pieces(mode), strict=True):
            now[name], now[f"der({name})"] = jax.jvp(
                lambda t, s=signal, k=k: s.on_piece(t, k), (t,), (jnp.ones_like(t),)
            )
        return now
