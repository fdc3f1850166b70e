"""What every drive over time offers."""

import abc
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from frictax.parameters import Integer, Number, Values, is_traced
from frictax.pytree import Pickled

Piece = Integer  # the number of one


class AbstractSignal(Pickled, eqx.Module):
    """A quantity over time that is smooth on numbered pieces 0, 1, 2, ... and right-continuous
    between them.

    The engine ends a phase at a piece's end instead of stepping over it, and reads the signal
    through `on_piece`, which does not test the time. So nothing is stepped over and derivatives by
    the times of switches are right.

    **Example:** a formula of one's own is a signal by `Function`.
    """

    @abc.abstractmethod
    def on_piece(self, t: Number, k: Piece) -> Number:
        """The formula of piece `k` at time `t` [s], continued smoothly beyond its ends."""

    @abc.abstractmethod
    def piece(self, t: Number) -> Piece:
        """The number of the piece that holds time `t` [s]."""

    @abc.abstractmethod
    def end(self, k: Piece) -> Number:
        """The time [s] at which piece `k` ends; inf for the last."""

    def known_switches(self) -> int:
        """How many pieces end in any run, as far as the shapes of arrays tell."""
        return 0

    def turns(self, k: Piece) -> Bool[Array, ""]:
        """Whether piece `k` ends in an extremum of one smooth formula and not in a switch.

        Such ends matter only to a contact that is stuck or whose normal force the signal is:
        between two of them a limit is crossed at most once, so that no breakaway is missed however
        long the steps are.
        """
        return jnp.zeros(jnp.shape(k), bool)

    def passed(self, t: Number, k: Piece) -> Piece:
        """The piece at time `t` [s] after piece `k`, by switches that a walk on samples may take at
        a sample without an event; else `k`.

        Those are extrema of one smooth formula, and what a drive's own samples are.
        """
        return jnp.where(self.turns(k) & (self.end(k) <= t), jnp.maximum(k + 1, self.piece(t)), k)

    def staying(self, k: Piece) -> "AbstractSignal":
        """A signal that is this one as long as piece `k` lasts, whichever piece it is asked for: of
        a table, with no more than what is read there.
        """
        return self

    def __call__(self, t: Values | float) -> Values:
        """The signal at time `t` [s]."""
        t = jnp.asarray(t, dtype=float)
        return jnp.vectorize(lambda ti: self.on_piece(ti, self.piece(ti)))(t)


class OnePiece(AbstractSignal):
    """A signal of one formula at all times."""

    def piece(self, t: Number) -> Piece:
        return jnp.zeros(jnp.shape(t), jnp.int32)

    def end(self, k: Piece) -> Number:
        return jnp.full(jnp.shape(k), jnp.inf)


def moved_on(signal: AbstractSignal, k: Piece, t: Number, ends: Bool[Array, ""]) -> Piece:
    """The piece at time `t` after piece `k`, where that `ends` there, or has gone over extrema
    unnoticed.
    """
    passed = jnp.where(signal.turns(k), jnp.maximum(k, signal.piece(t)), k)
    return jnp.where(ends, jnp.maximum(k + 1, passed), passed)


def first_end(ends: Iterable[Number]) -> Number:
    """The least of some times, inf without any; NaN where one is."""
    least = jnp.asarray(jnp.inf)
    for end in ends:
        # Not the minimum: of two ends at one time, it would take half of each derivative.
        least = jnp.where((end < least) | jnp.isnan(end), end, least)
    return least


# What a field for a drive holds; `as_signal` makes it a signal.
if TYPE_CHECKING:
    Drive = Any
else:
    Drive = AbstractSignal


def check_signal(part: Any, name: str) -> None:
    """Raise `ValueError` where something else stands in place of the signal called `name`."""
    value = getattr(part, name)
    if not isinstance(value, AbstractSignal):
        raise ValueError(
            f"`{type(part).__name__}.{name}` must be one of frictax's signals, got {value!r}. "
            "Replace a number inside the signal, such as `Constant.k`, or put a whole signal here."
        )


def with_closed_over(arguments: int) -> Callable[[Any], Any]:
    """Of a field for a user's function of so many numbers, the converter: a function that closes
    over traced numbers, as one made inside of `jax.grad` or `jax.vmap`, gets them as its leaves, so
    that runs can be differentiated by them; all else, such as a module with leaves of its own, as
    it is.
    """

    def converted(f: Any) -> Any:
        if isinstance(f, type) or not callable(f) or not jax.tree_util.all_leaves([f]):
            return f
        like = [jnp.zeros(())] * arguments
        try:
            with_leaves: Any = eqx.filter_closure_convert(f, *like)
        except TypeError:
            return f  # `check_function` says what is wrong with it
        held = getattr(with_leaves, "consts", ())
        return with_leaves if any(map(is_traced, held)) else f

    return converted


def check_function(signal: Any, form: str, arguments: int) -> None:
    """Raise `ValueError` where its field `f` is no function of so many numbers that gives one."""
    name = type(signal).__name__
    try:
        value = jax.eval_shape(signal.f, *[jnp.zeros(())] * arguments)
    except TypeError as error:
        first = str(error).split("\n", 1)[0]
        raise ValueError(
            f"`{name}.f` must be a function {form} written with jax.numpy; it failed with: {first}"
        ) from error
    if not isinstance(value, jax.ShapeDtypeStruct) or value.shape != ():
        raise ValueError(
            f"`{name}.f` must give one number at a time, got {value!r}. Return a number of"
            " jax.numpy."
        )
