"""`AbstractSignal`: the interface of every drive over time."""

import abc
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from frictax.parameters import Integer, Number, Values, is_traced
from frictax.pytree import Pickled

Piece = Integer  # number of a time segment of a signal


class AbstractSignal(Pickled, eqx.Module):
    """A quantity over time that is smooth on numbered time segments 0, 1, 2, ... Where the quantity
    jumps, the signal already has the value of the new segment (right-continuous).

    The engine ends a time step at the end of each segment. The engine evaluates the signal by
    `on_piece`, which does not test the time. Therefore no switch between two segments is missed,
    and derivatives with respect to the switching times are exact.

    **Example:** `Function` makes a signal of a user's formula.
    """

    @abc.abstractmethod
    def on_piece(self, t: Number, k: Piece) -> Number:
        """Return the value by the formula of segment `k`, also for a `t` [s] just outside it."""

    @abc.abstractmethod
    def piece(self, t: Number) -> Piece:
        """Return the number of the segment at time `t` [s]."""

    @abc.abstractmethod
    def end(self, k: Piece) -> Number:
        """Return the time [s] at which segment `k` ends; inf for the last segment."""

    def known_switches(self) -> int:
        """Return the number of segment ends, if array shapes determine this number; 0 otherwise."""
        return 0

    def turns(self, k: Piece) -> Bool[Array, ""]:
        """Return whether segment `k` ends at an extremum of a smooth formula, and not at a switch
        to another formula.

        Segments end at extrema so that breakaway is found with time steps of any length: between
        two extrema, the signal crosses a limit at most once. Extrema matter only for a stuck
        contact, and for a contact whose normal force is this signal.
        """
        return jnp.zeros(jnp.shape(k), bool)

    def passed(self, t: Number, k: Piece) -> Piece:
        """Return the segment at time `t` [s] if `OnSamples` may change to this segment at a sample
        without an event. Otherwise return `k`, the previous segment.

        A change without an event is possible at an extremum of a smooth formula, and at a sample of
        a `Sampled` signal.
        """
        return jnp.where(self.turns(k) & (self.end(k) <= t), jnp.maximum(k + 1, self.piece(t)), k)

    def staying(self, k: Piece) -> "AbstractSignal":
        """Return a signal that equals this signal on segment `k`. The returned signal contains only
        those samples of a table that segment `k` uses. The methods of the returned signal accept
        any segment number.
        """
        return self

    def jumps(self) -> bool:
        """Return whether the value of the signal jumps where a segment ends."""
        return False

    def __call__(self, t: Values | float) -> Values:
        """Return the value of the signal at time `t` [s]."""
        t = jnp.asarray(t, dtype=float)
        return jnp.vectorize(lambda ti: self.on_piece(ti, self.piece(ti)))(t)


class OnePiece(AbstractSignal):
    """A signal with one formula for all times, so it has one segment."""

    def piece(self, t: Number) -> Piece:
        return jnp.zeros(jnp.shape(t), jnp.int32)

    def end(self, k: Piece) -> Number:
        return jnp.full(jnp.shape(k), jnp.inf)


def next_piece(signal: AbstractSignal, k: Piece, t: Number, ends: Bool[Array, ""]) -> Piece:
    """Return the segment number at time `t`, given the previous segment `k`. The number increases
    if segment `k` ends at `t` (`ends`), or if extrema were passed without an event. Segments of
    length 0 at `t` are passed too.
    """
    reached = jnp.maximum(k, signal.piece(t))
    passed = jnp.where(signal.turns(k), reached, k)
    return jnp.where(ends, jnp.maximum(k + 1, reached), passed)


def first_end(ends: Iterable[Number]) -> Number:
    """Return the smallest of the times `ends`; inf if `ends` is empty, NaN if one time is NaN."""
    least = jnp.asarray(jnp.inf)
    for end in ends:
        # For two equal ends, the derivative of `jnp.minimum` is the mean of both derivatives.
        # Therefore `jnp.minimum` is not used.
        least = jnp.where((end < least) | jnp.isnan(end), end, least)
    return least


# Type of a field that contains a drive. The converter of the field is `as_signal`.
if TYPE_CHECKING:
    Drive = Any
else:
    Drive = AbstractSignal


def check_signal(part: Any, name: str) -> None:
    """Raise `ValueError` if the field `name` is not a signal."""
    value = getattr(part, name)
    if not isinstance(value, AbstractSignal):
        raise ValueError(
            f"`{type(part).__name__}.{name}` must be one of frictax's signals, got {value!r}. "
            "Replace a number inside the signal, such as `Constant.k`, or put a whole signal here."
        )


def with_closed_over(arguments: int) -> Callable[[Any], Any]:
    """Return a field converter for a user's function of `arguments` numbers. A function made inside
    of `jax.grad` or `jax.vmap` can have traced numbers in its closure. The converter makes these
    numbers pytree leaves, so that runs can be differentiated with respect to them.
    """

    def convert(f: Any) -> Any:
        if isinstance(f, type) or not callable(f) or not jax.tree_util.all_leaves([f]):
            return f
        like = [jnp.zeros(())] * arguments
        try:
            with_leaves: Any = eqx.filter_closure_convert(f, *like)
        except TypeError:
            return f  # `check_function` reports this error.
        held = getattr(with_leaves, "consts", ())
        return with_leaves if any(map(is_traced, held)) else f

    return convert


def check_function(signal: Any, form: str, arguments: int) -> None:
    """Raise `ValueError` if `f` is not a function of `arguments` numbers with one result."""
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
