"""A system of the user's own under drives."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from frictax.annotations import ArrayLike, ScalarLike
from frictax.engine.system import DEADLINE, AbstractHybridSystem
from frictax.parameters import Integer, Modes, Number, State
from frictax.signals import AbstractSignal
from frictax.signals.as_signal import as_signal
from frictax.signals.signal import first_end, moved_on


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
