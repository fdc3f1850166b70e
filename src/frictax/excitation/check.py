"""Check predicted errors by Monte Carlo: simulate and fit a designed experiment many times."""

import dataclasses
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float

from frictax.annotations import Checked
from frictax.arguments import check_count
from frictax.fitting import fit_many
from frictax.fitting.problem.setup import perfect
from frictax.progress import Progress
from frictax.summary import Summarised, Summary

if TYPE_CHECKING:
    from .design import Design


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Check(Summarised):
    """Fits of `draws` simulated records of one designed experiment. Print a `Check` to get a table.

    - `names`, `truth` (p,): names and true values of parameters; `values` (k, p): the estimates.
    - `spread` (p,): standard deviation of the estimates divided by the predicted standard error,
      for fits that converged to the right minimum; `covered` (p,): fraction of these fits whose
      95 % interval, by the default noise model, contains the true value.
    - `converged`: fraction of the fits that converged; `astray`: fraction that converged to another
      minimum, with a cost that noise alone causes in fewer than one of a million records.

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
        """Text: percentage of searches that converged, and that ended in another minimum."""
        astray = f", {100 * self.astray:.2g} % in another minimum" if self.astray else ""
        return f"{100 * self.converged:.0f} % of the searches converged{astray}"

    @property
    def title(self) -> str:
        return f"{self.draws} records fitted, {self.ended}"

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the column titles and the rows of the printed table."""
        rows = [
            (name, f"{s:.2f}", f"{100 * c:.0f} %")
            for name, s, c in zip(self.names, self.spread, self.covered, strict=True)
        ]
        return ("parameter", "spread over predicted", "coverage"), rows

    def _summary(self) -> Summary:
        return Summary(self.title, self.rows(), "lrr")


def check_design(
    design: "Design",
    draws: int = 200,
    *,
    off: float = 0.05,
    seed: int = 0,
    progress: Checked[bool | Progress] = False,
) -> Check:
    """Simulate the experiment `draws` times with white noise, fit each record, and compare the
    estimates with the predicted errors.

    Each record is fitted from two starts, and the better fit counts, because one start may lead to
    a local minimum. If the fit is doubtful, up to two more fits follow. A fit is doubtful if the
    search does not converge or an estimate is at its bound. A fit is also doubtful if noise causes
    such a high cost in only 1 of 40 records.

    **Arguments:** `off`: relative standard deviation of the start values about the true values;
    `seed`: seed of the random noise and start values; `progress`: as in `fit`.

    **Raises:** `ValueError` for fewer than 10 draws, for free parameters of instruments, and for a
    design with `instruments`, `memory`, `priors` or `after`, which these fits do not use.
    """
    check_count("`check`: `draws`", draws, 10)
    if any(name.startswith(("inputs.", "outputs.")) for name in design.names):
        raise ValueError(
            "`check` fits many records at once, which takes perfect instruments: leave"
            f" {next(n for n in design.names if n.startswith(('inputs.', 'outputs.')))!r} out of"
            " `free`."
        )
    problem, setup = design.problem, design.problem.under_test.setup
    sensors = jax.tree.leaves([setup.inputs, setup.outputs])
    ideal = jax.tree.leaves([perfect()] * (len(problem.under_test.inputs) + len(design.outputs)))
    white = 1.0 / ((design.t[1] - design.t[0]) * np.square(list(design.outputs.values())))
    given = {
        "instruments": not np.array_equal(sensors, ideal),
        "memory": not np.allclose(problem.weight, white),
        "priors` or `after": bool(np.any(problem.known)),
    }
    if any(given.values()):
        raise ValueError(
            "`check` fits white noise of ideal sensors, without earlier knowledge, but this design"
            f" has `{next(name for name, used in given.items() if used)}`. Check a design without."
        )
    random = np.random.default_rng(seed)
    record, truth = design.record(), design.values
    clean = design.clean()
    measured = {
        name: clean[name] + sd * random.standard_normal((draws, clean[name].size))
        for name, sd in design.outputs.items()
    }
    lower = design.problem.lower
    base = np.where(np.isfinite(lower), lower, 0.0)
    columns: dict[str, Any] = {}  # path -> column of `starts`, or list of columns for a table
    for i, name in enumerate(design.names):
        path = name.partition("[")[0]
        columns[path] = i if path == name else [*columns.get(path, []), i]
    freedom = sum(y[0].size for y in measured.values()) - truth.size

    def excess(cost: np.ndarray) -> np.ndarray:
        """Return by how many standard deviations 2*cost (sum of squares) exceeds its mean."""
        return (2 * cost - freedom) / np.sqrt(2 * freedom)

    def fit_draws(some: np.ndarray) -> list[np.ndarray]:
        starts = base + (truth - base) * np.exp(
            off * random.standard_normal((some.size, base.size))
        )
        found = fit_many(
            design.problem.machine,
            record,
            {name: y[some] for name, y in measured.items()},
            values={path: starts[:, column] for path, column in columns.items()},
            free=list(columns),
            objective=design.objective,
            progress=progress,
        )
        order = [found.names.index(name) for name in design.names]
        sides = (x[:, order] for x in (found.values, found.lower, found.upper))
        return [found.cost, found.converged, *sides]

    best = fit_draws(np.arange(draws))
    for k in range(3):
        at_bound = np.any(best[2] - lower < 1e-3 * (truth - lower), axis=1)
        doubtful = np.flatnonzero(~best[1] | (excess(best[0]) > 2.0) | at_bound | (k == 0))
        if not doubtful.size:
            break
        other = fit_draws(doubtful)
        better = other[0] < best[0][doubtful]
        for x, mine in zip(best, other, strict=True):
            x[doubtful[better]] = mine[better]
    cost, converged, values, low, high = best
    # With noise alone, fewer than one of a million records has a cost above this bound.
    explained = excess(cost) < 5.0
    right = converged & explained
    inside = (low <= truth) & (truth <= high)
    return Check(
        design.names,
        values,
        truth,
        np.std(values[right], axis=0, ddof=1) / design.errors,
        np.mean(inside[right], axis=0),
        float(np.mean(converged)),
        float(np.mean(converged & ~explained)),
    )
