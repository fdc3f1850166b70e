"""Whether errors will be as predicted: the experiment simulated many times, and fitted."""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from frictax.annotations import Checked
from frictax.fitting import fit_many
from frictax.progress import Progress
from frictax.summary import Summarised, Summary

if TYPE_CHECKING:
    from .designed import Design

_AGAIN, _DOUBTFUL = 3, 2.0  # other starts at most; how far above the noise all are taken
_LOST = 1e-3  # of the distance of its true value from a bound: a value so near to that is lost
_FAR = 5.0  # standard deviations of the sum of squares: beyond, it is not of the noise


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Check(Summarised):
    """What became of `draws` records of one designed experiment, each with its own noise. Print it.

    - `names`; `values` (k, p): what was found; `truth` (p,).
    - `spread` (p,): the standard deviation of what was found over the predicted error, of the fits
      that arrived; `covered` (p,): share of their 95 % intervals, by the default account, that hold
      the truth.
    - `converged`: share of the fits that ended; `astray`: share of all that ended, with a misfit
      that the noise would not leave once in a million records: in another minimum.

    **Example:** at `Design.check`.
    """

    names: tuple[str, ...]
    values: Float[np.ndarray, "k p"]
    truth: Float[np.ndarray, " p"]
    spread: Float[np.ndarray, " p"]
    covered: Float[np.ndarray, " p"]
    converged: float
    astray: float

    @property
    def draws(self) -> int:
        return len(self.values)

    @property
    def ended(self) -> str:
        """How the searches ended, in words."""
        told = f", {100 * self.astray:.2g} % in another minimum"
        return f"{100 * self.converged:.0f} % of the searches ended{told if self.astray else ''}"

    @property
    def title(self) -> str:
        return f"{self.draws} records fitted, {self.ended}"

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The head of its table, and the table."""
        rows = [
            (name, f"{s:.2f}", f"{100 * c:.0f} %")
            for name, s, c in zip(self.names, self.spread, self.covered, strict=True)
        ]
        return ("parameter", "spread over predicted", "coverage"), rows

    def _summary(self) -> Summary:
        return Summary(self.title, self.rows(), "lrr")


def checked(
    design: "Design",
    draws: int = 200,
    *,
    off: float = 0.05,
    seed: int = 0,
    progress: Checked[bool | Progress] = False,
) -> Check:
    """Simulate the experiment `draws` times with white noise, fit each record, and compare what is
    found with what was predicted.

    Each record is fitted from two starts, for one may end in another minimum, and the better is
    taken; where its misfit is larger than what the noise of 39 of 40 records leaves, or a value
    ended at its bound, from two more.

    **Arguments:** `off`: how far each start is from the truth, a relative standard deviation;
    `seed`; `progress` as in `fit`.

    **Raises:** `ValueError` for fewer than 10 draws, for imperfect instruments.
    """
    if not isinstance(draws, int) or isinstance(draws, bool) or draws < 10:
        raise ValueError(f"`check`: `draws` must be a whole number >= 10, got {draws!r}.")
    if any(name.startswith(("inputs.", "outputs.")) for name in design.names):
        raise ValueError(
            "`check` fits many records at once, which takes perfect instruments: leave"
            f" {next(n for n in design.names if n.startswith(('inputs.', 'outputs.')))!r} out of"
            " `free`."
        )
    random = np.random.default_rng(seed)
    record, truth = design.record(), design.values
    clean = design.clean()
    measured = {
        name: clean[name] + sd * random.standard_normal((draws, clean[name].size))
        for name, sd in design.outputs.items()
    }
    lower = design.posed.lower
    base = np.where(np.isfinite(lower), lower, 0.0)
    paths = [name for name in design.names if "[" not in name]
    freedom = sum(y[0].size for y in measured.values()) - truth.size

    def beyond(cost: np.ndarray) -> np.ndarray:
        """How far a sum of squares is above that of the noise [standard deviations]."""
        return (2 * cost - freedom) / np.sqrt(2 * freedom)

    def fitted(some: np.ndarray) -> list[np.ndarray]:
        begun = base + (truth - base) * np.exp(off * random.standard_normal((some.size, base.size)))
        found = fit_many(
            design.posed.machine,
            record,
            {name: y[some] for name, y in measured.items()},
            values={name: begun[:, design.names.index(name)] for name in paths},
            free=list(dict.fromkeys(name.partition("[")[0] for name in design.names)),
            objective=design.objective,
            progress=progress,
        )
        order = [found.names.index(name) for name in design.names]
        sides = (x[:, order] for x in (found.values, found.lower, found.upper))
        return [found.cost, found.converged, *sides]

    best = fitted(np.arange(draws))
    for k in range(_AGAIN):
        lost = np.any(best[2] - lower < _LOST * (truth - lower), axis=1)
        doubtful = np.flatnonzero(~best[1] | (beyond(best[0]) > _DOUBTFUL) | lost | (k == 0))
        if not doubtful.size:
            break
        other = fitted(doubtful)
        better = other[0] < best[0][doubtful]
        for x, mine in zip(best, other, strict=True):
            x[doubtful[better]] = mine[better]
    cost, converged, values, low, high = best
    explained = beyond(cost) < _FAR
    well = converged & explained
    inside = (low <= truth) & (truth <= high)
    return Check(
        design.names,
        values,
        truth,
        np.std(values[well], axis=0, ddof=1) / design.errors,
        np.mean(inside[well], axis=0),
        float(np.mean(converged)),
        float(np.mean(converged & ~explained)),
    )
