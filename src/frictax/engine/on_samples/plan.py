"""What many runs beside each other give back, and in which pieces they get there."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..options import OnSamples, room
from ..result import Result
from .control import PartLog
from .grid import at_samples
from .log import Log, empty_log

_TILE = 2**18  # bytes of samples that are kept before they are written where they belong


class Made(eqx.Module):
    """What is returned, or will be: lanes first, seeds last; None where there are no tangents, and
    of samples that nobody asks for.
    """

    ys: Array | None
    d_ys: Array | None
    modes: Array | None
    log: Log
    d_t1: Array | None
    count: Array
    parts: PartLog | None  # where reverse mode is asked for
    end: Any  # how runs ended, steps, errors, most parts of a step


@dataclasses.dataclass(frozen=True)
class Plan:
    """Sizes, and of what types things are."""

    options: OnSamples
    lanes: int  # in a block
    steps: int
    tile: int
    y: Array  # as one lane has it
    mode: Array
    seeds: int | None
    keeps: bool
    shows: tuple[bool, bool]  # states and modes at the samples

    @classmethod
    def of(cls, options, lanes: int, steps: int, y0, mode0, seeds, keeps: bool, shows) -> "Plan":
        y, mode = y0[0], mode0[0]
        row = lanes * (y.shape[0] * y.dtype.itemsize * (1 + (seeds or 0)) + 4 * mode.shape[0])
        most = min(max(_TILE // max(row, 1), 4), 64, steps)
        # the one that leaves the least over
        tile = min(range(most, most // 2, -1), key=lambda w: -steps % w)
        return cls(options, lanes, steps, tile, y, mode, seeds, keeps, shows)

    @property
    def tiles(self) -> int:
        return -(-self.steps // self.tile)

    @property
    def beyond(self) -> int:
        """Steps that the last tile has more than there are."""
        return self.tiles * self.tile - self.steps

    @property
    def rows(self) -> int:
        """Of a lane's log: the last takes what is not to be kept."""
        return room(self.options) + 1

    def room(self, lanes: int) -> Made:
        rows = self.tiles * self.tile
        of = lambda like, *ahead: jnp.zeros((lanes, *ahead, *like.shape), like.dtype)  # noqa: E731
        nothing = lambda x: jnp.zeros((*x.shape, self.seeds), x.dtype)  # noqa: E731
        has_ys, has_modes = self.shows
        ys = of(self.y, rows)
        log = jax.tree.map(lambda a: of(a[:-1]), self.log())
        return Made(
            ys if has_ys else None,
            None if self.seeds is None else nothing(ys),
            of(self.mode, rows) if has_modes else None,
            log,
            None if self.seeds is None else nothing(log.t1),
            jnp.zeros(lanes, jnp.int32),
            jax.tree.map(of, self.part_log()) if self.keeps else None,
            (
                jax.tree.map(lambda a: jnp.full(lanes, a), Result.successful),
                jnp.zeros(lanes, jnp.int32),
                jnp.zeros(lanes, self.y.dtype),
                jnp.zeros(lanes, jnp.int32),
            ),
        )

    def part_log(self) -> PartLog:
        return PartLog.empty(self.options, self.steps)

    def log(self) -> Log:
        return empty_log(self.options, self.y, self.mode, self.keeps)

    def returned(self, made: Made, lanes: int, samples: int) -> Any:
        made = jax.tree.map(lambda a: a[:lanes], made)
        kept = at_samples(self.options, samples)
        log = made.log
        ys, modes = (None if a is None else a[:, kept] for a in (made.ys, made.modes))
        whole = (modes, log.fired, log.before, log.after, made.count, *made.end)
        floats = ys, log.t1
        if self.seeds is not None:
            assert made.d_ys is not None
            return floats, (made.d_ys[:, kept], made.d_t1), whole
        if not self.keeps:
            return floats, whole, None
        # as many rows as `march` has
        full = lambda a: _filled(a[:, : self.steps], self.steps + 2)  # noqa: E731
        return floats, whole, (full(made.ys), full(made.modes), log, made.count, made.parts)


def _filled(a: Array, rows: int) -> Array:
    return jnp.concatenate(
        [a, jnp.zeros((a.shape[0], rows - a.shape[1], *a.shape[2:]), a.dtype)], 1
    )
