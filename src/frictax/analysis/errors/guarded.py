"""Errors by the account that records support, a guard beside it, and records beside each other."""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.special import fdtri

from frictax.arguments import whole
from frictax.fitting import FitResult, InverseDynamics
from frictax.fitting.problem.problem import PreparedSweep, Problem
from frictax.fitting.result.identifiability import listed
from frictax.fitting.result.spread import Memoized, Spread
from frictax.notice import Notice
from frictax.pytree import pytree_dataclass, static

from .accounts import AbstractErrors, White
from .clusters import Clustered, has_windows
from .homogeneity import by_record, differences
from .linearized import AbstractLinearErrors, lifted, linearized
from .memory.autoregression import Autoregression
from .motion_share import LITTLE, START_ONLY, Whitened, motion_share, without_intervals
from .recorded_noise import EncoderSteps, InputNoise, are_rounded, between_samples, inputs_err
from .sweeps import is_exact, not_excluded, of_sweeps

_TWICE = 2.0  # as much: more than ten blocks may say of the same by chance
_TO_COMPARE = 2.0  # degrees of freedom of the guard, at least
_MATTERS = 0.02  # of a variance, which makes an error 1 % larger
_BY_CHANCE = 0.7  # share of records, of which the account is right, whose guard says as little


@pytree_dataclass
class Guarded(AbstractErrors):
    """What residuals have turned out to be: what a fit prints.

    Two to four accounts, and of each number the widest interval, by its own Student's t:

    - what the record supports: `Clustered()` on `Windows`, and of a run `Autoregression()` (of
      `InverseDynamics`, whose residuals are whitened, `inv(X'X)`; at samples, the guard alone);
    - the guard, `Clustered(10)`: what differs between ten blocks of time, whatever makes it differ.
      Beside another account it counts where its error is larger than of seven of ten records of
      which that is right (F test): two accounts of one thing differ by chance, and the wider one is
      too wide;
    - of a run whose misfit is above its sensors' noise, what the noise that is read from its inputs
      does to the estimates (`InputNoise`);
    - of a run whose sensors show their steps, what rounding to these does (`EncoderSteps`): alone
      where each does and no other account says of any number more than twice as much.

    What inputs may have done between their samples, on straight lines or on smooth curves, is added
    to each where it matters.

    Where several records differ in a number by more than their errors (Welch's test), its interval
    is that of the mean of such records: whole records are compared, and a notice says so.

    The rows of a sweep have no time. They are taken as white, unless they show that they are not:
    as a series with a memory (`Autoregression`), in order of speed in each direction and as they
    stand; speed by speed, where speeds differ by more than replicates of one do (F test); and by
    the squares of single residuals, where these make an error larger than four of five draws of
    white noise would.

    **Arguments:** `blocks`: how many in all.

    **Source:** B. L. Welch, "On the comparison of several mean values", Biometrika 38 (1951); see
    `Clustered` and `Autoregression`.

    **Example:** all accounts side by side, at `FitResult.uncertainty`.
    """

    blocks: int = static(default=10)

    def __post_init__(self) -> None:
        whole("`Guarded.blocks`", self.blocks, 2, "10 are usual.")

    def spread(self, found: FitResult) -> Spread:
        linear, follow = linearized(found)
        if all(isinstance(p, PreparedSweep) for p in found.problem.prepared):
            exact = is_exact(linear)
            rows = [] if exact else of_sweeps(linear)
            parts = [White().spread(found), *(lifted(found, follow, one) for one, _ in rows)]
            where = np.array([np.ones(len(found.x), bool), *(speaks for _, speaks in rows)])
            spread = _widest(found, parts, where, 0, ())
            remembers = any(one.remembers for one, _ in rows)
            once = {n.code: n for n in reversed(spread.notices)}  # of two orders the first
            notices = tuple(reversed(once.values()))
            if not notices and not exact:
                notices = not_excluded(linear, spread, remembers)
            return dataclasses.replace(spread, notices=notices)
        share = motion_share(found)
        if share < START_ONLY:
            return without_intervals(found, share)
        guard = Clustered(self.blocks)
        first = self.first(found.problem) or guard
        made = [first.of(linear)] + ([] if first is guard else [guard.of(linear)])
        if isinstance(first, Autoregression) and inputs_err(found):
            made.append(InputNoise().of(linear))
        steps = are_rounded(found) if isinstance(first, Autoregression) else (False, False)
        if any(steps):
            made.append(EncoderSteps().of(linear))
        differ, notices = differences(linear, first)
        if share < LITTLE:
            notices = (*notices, Notice("motion-near-noise", "", {"share": share}))
        if differ.any():
            made.append(by_record(linear))
        bends = between_samples(linear)
        if np.any(bends**2 > _MATTERS * np.diag(made[0].covariance)):
            made = [
                dataclasses.replace(
                    one,
                    covariance=one.covariance + np.outer(bends, bends),
                    says=f"{one.says} and interpolation of the inputs",
                )
                for one in made
            ]
        parts = [lifted(found, follow, one) for one in made]
        if all(steps) and not differ.any() and _says_all(found, parts):
            return dataclasses.replace(parts[-1], notices=notices)
        # whole records are compared for the numbers in which they differ
        where = np.ones((len(parts), len(found.x)), bool)
        if differ.any():
            where[-1] = np.any(follow[:, differ], axis=1)
        return _widest(found, parts, where, int(first is not guard), notices)

    def first(self, problem: Problem) -> AbstractLinearErrors | None:
        """The account beside the guard."""
        if has_windows(problem):
            return Clustered()
        if problem.objective.whitens():
            return Whitened()
        return None if isinstance(problem.objective, InverseDynamics) else Autoregression()


@dataclasses.dataclass(frozen=True)
class _Widest(Spread):
    """Of several accounts the widest interval; `of_each`: half of it by each of them, (parts, m) of
    directions (m, q) at a level.
    """

    of_each: Callable[[np.ndarray, float], np.ndarray] = dataclasses.field(kw_only=True)

    def half_width(
        self, level: float, directions: Float[np.ndarray, "m q"]
    ) -> Float[np.ndarray, " m"]:
        return self.of_each(directions, level).max(axis=0)


def _widest(
    found: FitResult,
    parts: list[Spread],
    where: np.ndarray,
    guard: int,
    notices: tuple[Notice, ...],
) -> Spread:
    """Of `parts` the widest; `where` (parts, q): of which numbers each speaks; `guard`: which of
    them is one, 0 where it is the only account.
    """
    level = found.level
    of_each = Memoized(functools.partial(_half_widths, parts, where, guard))
    dof = Memoized(functools.partial(_dof_of_widest, parts, of_each, level))
    wins = of_each(np.eye(len(found.x)), level).argmax(axis=0)
    size = np.sqrt([np.maximum(np.diag(part.covariance), 0.0) for part in parts])
    own = size[wins, np.arange(len(wins))]
    # the correlations of the account that speaks for most numbers, with the errors of each
    most = int(np.argmax(np.bincount(wins[found.shown & found.active], minlength=len(parts))))
    scale = np.divide(own, size[most], out=np.ones_like(own), where=size[most] > 0)
    covariance = parts[most].covariance * np.outer(scale, scale)
    says, more = _says(found, parts, wins), (n for part in parts for n in part.notices)
    return _Widest(covariance, dof, None, says, (*notices, *more), of_each=of_each)


def _half_widths(
    parts: list[Spread],
    where: np.ndarray,
    guard: int,
    directions: Float[np.ndarray, "m q"],
    level: float,
) -> Float[np.ndarray, "k m"]:
    """Half of the interval of each direction by each of `parts`; 0 where one does not speak."""
    speaks = ((directions != 0) @ where.T).T
    if guard:
        speaks[guard] &= _stands_out(parts[0], parts[guard], directions)
    return np.where(speaks, [part.half_width(level, directions) for part in parts], 0.0)


def _dof_of_widest(
    parts: list[Spread],
    of_each: Callable[[np.ndarray, float], np.ndarray],
    level: float,
    directions: Float[np.ndarray, "m q"],
) -> Float[np.ndarray, " m"]:
    """The degrees of freedom of the widest of `parts` for each direction."""
    wins = of_each(directions, level).argmax(axis=0)
    return np.array([part.dof(directions) for part in parts])[wins, np.arange(len(wins))]


def _stands_out(usual: Spread, guard: Spread, directions: np.ndarray) -> np.ndarray:
    """Of which directions (m, q) the guard's error is larger than chance makes it, and of more than
    one block.
    """
    free = guard.dof(directions)
    rounded = np.minimum(np.nan_to_num([free, usual.dof(directions)], nan=1.0), 1e6)
    most = fdtri(*np.maximum(rounded, 1.0), _BY_CHANCE)  # of the ratio of squares
    mine, theirs = (
        np.einsum("mi,ij,mj->m", directions, part.covariance, directions) for part in (usual, guard)
    )
    return (free >= _TO_COMPARE) & (theirs > most * mine)


def _says_all(found: FitResult, parts: list[Spread]) -> bool:
    """Whether the last of `parts` leaves nothing to be explained by others."""
    directions = np.eye(len(found.x))[found.shown & found.active]
    *others, last = [part.half_width(found.level, directions) for part in parts]
    return bool(np.all(np.max(others, axis=0, initial=0.0) <= _TWICE * last))


def _says(found: FitResult, parts: list[Spread], wins: np.ndarray) -> str:
    """How each number's error was found, the usual account first."""
    names, mine = found.names, wins[found.shown]
    active = found.active[found.shown]
    of = [
        [n for n, w, a in zip(names, mine, active, strict=True) if a and w == k]
        for k in range(len(parts))
    ]
    spoken = [k for k in range(len(parts)) if of[k]] or [0]
    if len(spoken) == 1:
        return parts[spoken[0]].says
    return "; ".join(f"{parts[k].says}, for {listed(of[k])}" for k in spoken)
