"""Several degrees of freedom with dry friction, of the user's own kind."""

import abc
import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from frictax.annotations import ArrayLike, ScalarLike
from frictax.contacts import SupportFriction
from frictax.contacts.contact import has_breaks, piece_at
from frictax.contacts.mode import FREE, STUCK, mode_vector
from frictax.contacts.rubbing import no_bristle
from frictax.parameters import Integer, Modes, Number, State
from frictax.parameters.constant import constant

from .axis import AbstractOwnMotion
from .contact_margins import all_margins
from .elimination import Sparse
from .layout import Contact, Flange, Layout
from .mode_transition import at_rest, direction_without_lever, fallen, settled
from .snapshot import Snapshot


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
