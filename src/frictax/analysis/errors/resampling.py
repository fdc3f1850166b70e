"""Errors from fits to parts of the records: blocks drawn again, or one repeat left out."""

import numpy as np

from frictax.arguments import whole
from frictax.fitting import FitResult
from frictax.fitting.problem.problem import PreparedSweep, Problem
from frictax.fitting.result.spread import SameDegreesOfFreedom, Spread
from frictax.pytree import pytree_dataclass, static

from .accounts import AbstractErrors, check_time
from .refits import Samples, refitted


@pytree_dataclass
class BlockBootstrap(AbstractErrors):
    """Fits to records put together anew from blocks of the measured ones, drawn with replacement
    (each block keeps its place in time and counts as often as it was drawn).

    The blocks must be longer than the residuals remember, and many: 20 or more to a record. Priors
    are refused.

    **Arguments:** `length` of a block [s], a twentieth of the record unless given; `draws`: how
    many fits; `seed`.

    **Source:** H. R. Künsch, Annals of Statistics 17 (1989); weights in place of copies: S.
    Chatterjee, A. Bose, Annals of Statistics 33 (2005).

    **Example:** all accounts side by side, at `FitResult.uncertainty`.
    """

    length: float | None = static(default=None)
    draws: int = static(default=200)
    seed: int = static(default=0)

    def __post_init__(self) -> None:
        check_time("`BlockBootstrap.length`", self.length, "for a twentieth of the record.")
        whole("`BlockBootstrap.draws`", self.draws, 20, "200 give errors to 5 %.")

    def check(self, problem: Problem) -> None:
        _refuse(problem, "BlockBootstrap")

    def spread(self, found: FitResult) -> Spread:
        self.check(found.problem)
        samples, random = Samples(found.problem), np.random.default_rng(self.seed)
        blocks = [_blocks(found, i, samples, self.length) for i in range(len(samples.sizes))]
        numbers = [int(block[-1]) + 1 for block in blocks]
        few = min(numbers)
        if few < 4:
            raise ValueError(
                f"`BlockBootstrap` needs at least 4 blocks in each record, got {few}. Give a"
                " shorter `length`."
            )
        counts = []
        for _ in range(self.draws):
            drawn = [random.multinomial(k, np.full(k, 1.0 / k)) for k in numbers]
            times = [n[block].astype(float) for n, block in zip(drawn, blocks, strict=True)]
            counts.append(samples.of(times))
        x, ok = refitted(found, np.asarray(counts))
        finite = np.all(np.isfinite(x), axis=1)
        x, done = x[finite], int(finite.sum())
        if done < 0.8 * self.draws:
            raise ValueError(
                f"`BlockBootstrap`: only {done} of {self.draws} fits gave a number. Fit fewer"
                " parameters, or on `Windows`."
            )
        says = (
            f"{done} fits to blocks drawn with replacement, {few} blocks to a"
            f" record{_at_kinks(ok[finite])}"
        )
        return Spread(
            np.atleast_2d(np.cov(x, rowvar=False)), SameDegreesOfFreedom(few - 1), x, says
        )


@pytree_dataclass
class Jackknife(AbstractErrors):
    """Fits that leave out one repeat of the motion after the other: what differs between repeats is
    error, whatever makes it differ.

    variance = (k - 1)/k * sum over the k fits of (value - mean)**2, with k - 1 degrees of freedom;
    of several records, the sum over them (the degrees of freedom of one where records have numbers
    of their own, else of all).

    **Arguments:** `repeats`: how many equal parts each record is cut into, a cycle of its motion
    each; None leaves out whole records.

    **Source:** B. Efron, *The Jackknife, the Bootstrap and Other Resampling Plans* (1982), chapter
    3.

    **Example:** all accounts side by side, at `FitResult.uncertainty`.
    """

    repeats: int | None = static(default=None)

    def __post_init__(self) -> None:
        if self.repeats is not None:
            whole("`Jackknife.repeats`", self.repeats, 2, "Leave it out for whole records.")

    def check(self, problem: Problem) -> None:
        _refuse(problem, "Jackknife")
        if self.repeats is None and len(problem.prepared) < 2:
            raise ValueError(
                "`Jackknife()` leaves out whole records, and there is one. Say how often its motion"
                " repeats: Jackknife(4)."
            )
        if self.repeats is None and _has_own(problem):
            raise ValueError(
                "`Jackknife()` cannot leave out a record that has numbers of its own. Say how often"
                " each repeats: Jackknife(4)."
            )

    def spread(self, found: FitResult) -> Spread:
        self.check(found.problem)
        samples, own = Samples(found.problem), _has_own(found.problem)
        counts, owners = [], []
        for i, (size, prepared) in enumerate(
            zip(samples.sizes, found.problem.prepared, strict=True)
        ):
            # A sweep is no motion that repeats itself: it is left out whole, or stays.
            swept = isinstance(prepared, PreparedSweep)
            parts = 1 if self.repeats is None else 0 if swept else self.repeats
            for k in range(parts):
                kept = [np.ones(n) for n in samples.sizes]
                kept[i][slice(k * size // parts, (k + 1) * size // parts)] = 0.0
                counts.append(samples.of(kept))
                owners.append(0 if self.repeats is None else i)
        x, ok = refitted(found, np.asarray(counts))
        if not np.all(np.isfinite(x)):
            raise ValueError(
                "`Jackknife`: a fit without one of the parts failed. Fit fewer parameters, or on"
                " `Windows`."
            )
        covariance, dof = np.zeros((x.shape[1],) * 2), []
        for i in dict.fromkeys(owners):
            mine = x[np.asarray(owners) == i]
            away = mine - mine.mean(axis=0)
            covariance += (len(mine) - 1) / len(mine) * away.T @ away
            dof.append(len(mine) - 1)
        says = (
            f"{len(x)} fits, each without one"
            f" {'record' if self.repeats is None else 'repeat'}{_at_kinks(ok)}"
        )
        return Spread(covariance, SameDegreesOfFreedom(min(dof) if own else sum(dof)), x, says)


def _has_own(problem: Problem) -> bool:
    """Whether records have numbers of their own."""
    return any(u.record is not None for u in problem.unknowns if not u.hidden)


def _refuse(problem: Problem, kind: str) -> None:
    """What fits to other weights of the samples cannot account for."""
    if problem.priors:
        raise ValueError(
            f"`{kind}` cannot draw priors anew, so that its errors would be too small. Take"
            " `HAC()`."
        )
    if problem.loss.rounds > 1 and kind == "BlockBootstrap":
        raise ValueError(f"`{kind}` knows `Squares()` only. Take `HAC()` or `Jackknife(...)`.")


def _at_kinks(settled: np.ndarray) -> str:
    """How many fits ended where a stop or a breakaway appears or vanishes, so that the misfit has a
    kink.
    """
    return "" if settled.all() else f"; {int(np.sum(~settled))} of them ended at a kink"


def _blocks(found: FitResult, i: int, samples: Samples, length: float | None) -> np.ndarray:
    """The number of the block of each sample of record i."""
    data, size = list(found.records.values())[i], samples.sizes[i]
    if isinstance(found.problem.prepared[i], PreparedSweep):
        return np.arange(size)
    step = data.duration / max(data.n - 1, 1)
    each = max(int(round((data.duration / 20 if length is None else length) / step)), 1)
    count = max(size // each, 1)
    return np.minimum(np.arange(size) // each, count - 1)
