"""An experiment that was designed, as a table, a file and a check."""

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.files.replacing import write_whole
from frictax.fitting import AbstractObjective
from frictax.handover import Verb
from frictax.measurements import Record
from frictax.parameters import replace
from frictax.summary import Summarised, Summary
from frictax.text import figures, shown
from frictax.verbs import DesignVerbs

from .ascent import excess
from .plan import Seen, ended_well
from .posed import Posed
from .replayed import replayed
from .rivals import Rival

_ENOUGH = 1e-9
_NEARLY = 0.95  # of a margin, or of the best of the others: what a search may end at


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Design(Summarised, DesignVerbs):
    """An excitation, and what a record made with it will tell. Print it.

    - `t`, `excitation` (n,): the drive at its samples, [N or N.m], or [m or rad] of a reference;
      `drive`, `unit`: whose, and in what.
    - `names`, `units`, `values` (p,): what is to be found, and what it was taken to be;
      `errors` (p,): the standard errors that are to be expected; `relative` (p,): over the sizes.
    - `beside`: other experiments within the same limits -> their relative errors (p,).
    - `asked`: what the run asks of the machine -> (amount, limit); `events`: mode changes.
    - `drawn` (k): machines of `over`, values (p,) of each; `served`: what the experiment shows of
      them; `kept`: share of them that keep all limits, 1 where none were drawn.
    - `slip`, `miss`: the shortest slip [samples] and the nearest miss of an event.

    **Example:** at `design`.
    """

    posed: Posed
    excitation: Float[np.ndarray, " n"]
    seen: Seen
    rivals: tuple[Rival, ...]
    drawn: tuple[np.ndarray, ...]
    served: tuple[Seen, ...]
    outputs: dict[str, float]
    objective: AbstractObjective | None
    seconds: float

    @property
    def t(self) -> Float[np.ndarray, " n"]:
        return self.posed.plan.t

    @property
    def drive(self) -> str:
        return self.posed.plan.drive

    @property
    def unit(self) -> str:
        return self.posed.unit

    @property
    def names(self) -> tuple[str, ...]:
        return self.posed.names

    @property
    def units(self) -> tuple[str, ...]:
        return self.posed.units

    @functools.cached_property
    def values(self) -> Float[np.ndarray, " p"]:
        return np.asarray(self.posed.plan.under_test.values())

    @functools.cached_property
    def relative(self) -> Float[np.ndarray, " p"]:
        return self._relative(self.seen)

    @property
    def errors(self) -> Float[np.ndarray, " p"]:
        return self.relative * self.posed.plan.size

    @property
    def wanted(self) -> tuple[str, ...]:
        """The parameters that count."""
        return tuple(self.names[i] for i in self.posed.plan.wanted)

    @functools.cached_property
    def beside(self) -> dict[str, Float[np.ndarray, " p"]]:
        return {rival.says: self._relative(rival.seen) for rival in self.rivals}

    @property
    def asked(self) -> dict[str, tuple[float, float]]:
        shares = np.asarray(self.seen.asked)
        limits = self.posed.plan.limits
        return {
            limit.what: (float(share * limit.limit), limit.limit)
            for limit, share in zip(limits, shares, strict=True)
        }

    @property
    def slip(self) -> float:
        return float(self.seen.slip)

    @property
    def miss(self) -> float:
        return float(self.seen.miss)

    @property
    def events(self) -> int:
        return int(self.seen.events)

    def worst(self, says: str | None = None) -> float:
        """The largest relative error of a parameter that is wanted; of another experiment, by what
        it is called in `beside`.
        """
        relative = self.relative if says is None else self.beside[says]
        return float(np.max(relative[self.posed.plan.wanted]))

    def worst_of_drawn(self, says: str | None = None) -> Float[np.ndarray, " k"]:
        """`worst` of each of the machines `drawn` (k,), in their order; infinite where a run
        failed.
        """
        others = {rival.says: rival.served for rival in self.rivals}
        served = self.served if says is None else others[says]
        wanted = self.posed.plan.wanted
        return np.array(
            [
                np.max(self._relative(seen)[wanted]) if ended_well(seen) else np.inf
                for seen in served
            ]
        )

    def worst_of_most(self, says: str | None = None) -> float:
        """What the largest relative error is at most in 9 of 10 of the machines `drawn`."""
        return float(np.percentile(self.worst_of_drawn(says), 90))

    @property
    def kept(self) -> float:
        return kept_by(self.served)

    def record(self, seed: int = 0, name: str = "designed") -> Record:
        """What would be recorded of the machine as given, with white noise."""
        plan = self.posed.plan
        clean = self.clean()
        draws = np.random.default_rng(seed)
        noisy = {
            output: clean[output] + sd * draws.standard_normal(plan.t.size)
            for output, sd in self.outputs.items()
        }
        inputs = {k: np.asarray(u) for k, u in plan.under_test.inputs.items() if k != plan.drive}
        return Record(
            plan.t,
            {plan.drive: self.excitation, **inputs},
            noisy,
            sd=dict(self.outputs),
            hold=plan.under_test.hold,
            name=name,
        )

    def clean(self) -> dict[str, Float[np.ndarray, " n"]]:
        """What the sensors would show of the machine as given, without noise."""
        return replayed(self.posed.plan, self.excitation)

    def to_csv(self, path: str | Path) -> Path:
        """Write times and drive, a row a sample, to `path`.

        **Raises:** `ValueError` where the folder does not exist.
        """
        path = Path(path)
        if not path.parent.is_dir():
            raise ValueError(f"`to_csv`: the folder {path.parent} does not exist. Make it first.")
        write_whole(path.resolve(), self.csv_text(), replace=True)
        return path

    def csv_text(self) -> str:
        """What `to_csv` writes."""
        head = f"time [s],{self.drive} [{self.unit}]"
        rows = zip(self.t, self.excitation, strict=True)
        return "\n".join([head, *(f"{t:.9g},{u:.9g}" for t, u in rows)]) + "\n"

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The head of its table, and the table."""
        others = list(self.beside)
        short = [says.partition(",")[0].partition(" of ")[0] for says in others]
        head = ("parameter", "value", "unit", "expected error", "relative", *short)
        rows = []
        for i, name in enumerate(self.names):
            row = shown(self.values[i], self.errors[i], self.units[i])
            mark = "" if i in self.posed.plan.wanted else " (not wanted)"
            cells = figures(self.values[i] / row.size, 6), row.unit, row.error
            shares = [share(self.beside[says][i]) for says in others]
            rows.append((name + mark, *cells, share(self.relative[i]), *shares))
        return head, rows

    @property
    def title(self) -> str:
        """Which drive, for how long, with how many samples and events."""
        count, rate = self.t.size, 1.0 / (self.t[1] - self.t[0])
        return (
            f"{self.drive} [{self.unit}] for {self.t[-1]:.4g} s at {rate:.4g} Hz, {count} samples,"
            f" {self.events} events"
        )

    @property
    def lines(self) -> tuple[str, ...]:
        """What it asks of the machine, and what it is held beside."""
        asked = [
            f"{what} {figures(amount, 3)} of {figures(limit, 3)}"
            for what, (amount, limit) in self.asked.items()
        ]
        lines = [f"asks for {', '.join(asked)}"]
        if self.beside:
            lines.append(f"beside it: {'; '.join(self.beside)}")
        if self.drawn:
            of = [None, *self.beside]
            most = [share(self.worst_of_most(says)) for says in of]
            beside = f" (beside it {'; '.join(most[1:])})" if most[1:] else ""
            lines.append(
                f"limits are kept by {100 * self.kept:.0f} % of {len(self.drawn)} machines drawn;"
                f" in 9 of 10 of them the worst error is at most {most[0]}{beside}"
            )
        return tuple(lines)

    def _summary(self) -> Summary:
        head, rows = self.rows()
        sides = "lrlr" + "r" * (len(head) - 4)
        return Summary(self.title, (head, rows), sides, self.lines, self.warnings)

    _repr_html_ = Verb("frictax.report.cards:design_html")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to mind, in sentences."""
        said, plan = [], self.posed.plan
        if float(np.max(np.asarray(self.seen.asked), initial=0.0)) > 1.0 + _ENOUGH:
            said.append("No excitation within all limits was found: this one is the nearest.")
        if self.slip < _NEARLY * plan.margins.slip:
            said.append(
                f"The shortest slip lasts {self.slip:.2g} samples: a fit may end at an edge there,"
                " and errors be larger. Sample faster."
            )
        if self.miss < _NEARLY * plan.margins.miss:
            said.append(
                f"An event is missed by {100 * self.miss:.2g} % of its margin: with slightly other"
                " values it happens, and the errors differ from the predicted ones."
            )
        better = min(self.beside, key=self.worst, default=None)
        if better is not None and self.worst(better) < _NEARLY * self.worst():
            said.append(
                f"The {better.split(',')[0]} identifies the worst parameter better: search longer,"
                " with more `starts` and `steps`, or use it."
            )
        weak = [self.names[i] for i in plan.wanted if self.relative[i] > 0.5]
        if weak:
            said.append(
                f"{', '.join(weak)} would still be known worse than by 50 %: let it last longer, or"
                " allow for more."
            )
        return tuple(said)

    def _relative(self, seen: Seen) -> np.ndarray:
        covariance = np.asarray(self.posed.plan.covariance(jnp.asarray(seen.sampled)))
        return np.sqrt(np.diag(covariance))

    def model(self, x: Float[np.ndarray, " p"] | None = None) -> Any:
        """The machine, with other values of the parameters."""
        if x is None:
            return self.posed.machine
        return replace(self.posed.machine, dict(zip(self.names, x, strict=True)))


def kept_by(served: Sequence[Seen]) -> float:
    """How many machines keep all limits, as a share; 1 of none."""
    return float(np.mean([ended_well(s) and excess(s) <= 1e-6 for s in served])) if served else 1.0


def share(x: float) -> str:
    """A relative error in words."""
    if not np.isfinite(x) or x > 50:
        return "unknown"
    return f"{100 * x:.2g} %" if x < 1 else f"{x:.2g} times"
