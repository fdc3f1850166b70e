"""Notices of a fit whose motion leaves the table of a friction law."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from frictax.fitting import FitResult, InverseDynamics
from frictax.fitting.problem.objectives import AbstractSimulation, PreparedRecord
from frictax.laws.table import table_of
from frictax.notice import Notice
from frictax.parameters import get
from frictax.trajectory import table_notice

from .candidates import between, laws, motion_of
from .first_look import motions_of


def tables_left(found: FitResult) -> tuple[Notice, ...]:
    """Return a notice for each table that the motion of the records leaves by more than a tenth of
    its range.
    """
    machine, out = found.model, []
    for path, turns in laws(machine).items():
        each = list(_slip(found, path))
        if not each:
            continue
        v, name = np.concatenate(each), path.rpartition(".")[0]
        backward = path.replace("_pos", "_neg")
        own = getattr(get(machine, name), backward.rpartition(".")[2], None)
        for at, speed in ((path, v), (path if own is None else backward, -v)):
            law = getattr(get(machine, name), at.rpartition(".")[2], None)
            if table_of(law) is None or any(n.subject == at for n in out):
                continue
            unit = "rad/s" if turns else "m/s"
            slowest, fastest = float(np.min(np.abs(v))), max(float(np.max(speed)), 0.0)
            notice = table_notice(at, law, slowest, fastest, unit)
            out += [] if notice is None else [notice]
    return tuple(out)


def _slip(found: FitResult, path: str) -> Iterator[Float[np.ndarray, " n"]]:
    """The speeds of the contact whose law is at `path`, in each record that shows them."""
    problem, machine = found.problem, found.problem.setup.machine
    here, there = between(machine, path)
    for i, prepared in enumerate(problem.prepared):
        if not isinstance(prepared, PreparedRecord):
            continue
        if isinstance(problem.objective, InverseDynamics):
            rates = {b: motion_of(machine, b)[1] for b in (here, there) if b}
            seen = {
                b: np.asarray(prepared.known[n]) for b, n in rates.items() if n in prepared.known
            }
        elif isinstance(problem.objective, AbstractSimulation):
            seen = {body: motion.v for body, motion in motions_of(found, i).items()}
        else:
            continue
        if here in seen and (there is None or there in seen):
            v = seen[here] - (seen[there] if there else 0.0)
            yield v[np.isfinite(v)]
