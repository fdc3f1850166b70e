"""Identifiability before the fit, and the notices on remedies for weak parameters."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from frictax.fitting import Estimate, Identifiability, Knowledge
from frictax.fitting.result.identifiability import join_names, null_directions, null_notice
from frictax.notice import Notice

from .expected import Outlook
from .experiments import Remedy

# Ratios of an error to its value, or to the distance from its bound: weak, not identifiable.
_WEAK, _HOPELESS = 0.5, 2.0
_HELPS = 1.5  # least reduction of an error for which an experiment is recommended


def assess_parameters(
    title: str,
    estimates: Sequence[Estimate],
    x: Float[np.ndarray, " p"],
    lower: Float[np.ndarray, " p"],
    jacobian: Float[np.ndarray, "n p"],
    covariance: Float[np.ndarray, "p p"],
    cures: Callable[[Sequence[str]], Mapping[str, tuple[Remedy, ...]]],
    said: tuple[Notice, ...],
    unknown: Sequence[str] = (),
) -> Outlook:
    """Decide which parameters are identifiable, and find remedies for weak ones.

    - `x`, `lower` (p,): values and lower bounds; `covariance` (p, p) of their expected errors.
    - `jacobian` (n, p) of the weighted residuals; `said`: notices that precede those found here.
    - `cures`: maps weak parameters to experiments; `unknown`: parameters without information.
    """
    names = [e.name for e in estimates]
    norms = np.linalg.norm(jacobian, axis=0)
    seen = norms > 1e-12 * np.max(norms, initial=0.0)
    s, null = null_directions(jacobian, names, seen)
    size = np.where(
        np.isfinite(lower) & (x > lower), x - np.where(np.isfinite(lower), lower, 0.0), np.abs(x)
    )
    nulls = {name for direction in null for name in direction}
    alone = np.asarray([name not in nulls for name in names])
    errors = np.where(seen & alone, np.sqrt(np.maximum(np.diag(covariance), 0.0)), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = errors / size
    notices = [*said, *(null_notice("null-direction-always", direction) for direction in null)]
    knowledge: dict[str, Knowledge] = {}
    for i, name in enumerate(names):
        if not seen[i]:
            knowledge[name] = Knowledge.UNKNOWN
            notices.append(Notice("no-effect", name))
        elif name in nulls or name in unknown or not relative[i] < _HOPELESS:
            # A parameter that may be 0, such as an offset, does not have a relative error.
            unidentified = name in nulls or name in unknown or size[i] > 0
            knowledge[name] = Knowledge.UNKNOWN if unidentified else Knowledge.KNOWN
        else:
            knowledge[name] = Knowledge.WEAK if relative[i] > _WEAK else Knowledge.KNOWN
    weak = [n for n in names if knowledge[n] is not Knowledge.KNOWN and n not in nulls]
    kept = [i for i, n in enumerate(names) if seen[i] and n not in nulls and size[i] > 0]
    if weak and kept and not unknown:
        mine = [estimates[i] for i in kept]
        notices += _directions(mine, covariance[np.ix_(kept, kept)], size[kept])
    found = cures(weak) if weak else {}
    notices += _advice(found, weak)
    condition = float(s[0] / s[-1]) if s.size and s[-1] > 0 else float("inf")
    known = Identifiability(knowledge, tuple(dict.fromkeys(notices)), s, condition, tuple(null))
    units = tuple(e.unit for e in estimates)
    declared = tuple(e.declared for e in estimates)
    return Outlook(tuple(names), units, x, errors, relative, known, found, title, declared)


def _directions(
    estimates: Sequence[Estimate], covariance: np.ndarray, size: np.ndarray
) -> list[Notice]:
    """Return notices on the one or two combinations of parameters with the largest relative error,
    if it is above one half.
    """
    spread, directions = np.linalg.eigh(covariance / np.outer(size, size))
    out = []
    for variance, w in list(zip(spread, directions.T, strict=True))[::-1][:2]:
        if not np.sqrt(max(variance, 0.0)) > _WEAK:
            break
        change = w / np.max(np.abs(w)) * min(np.sqrt(variance) * np.max(np.abs(w)), 1.0)
        parts = [i for i in range(len(w)) if abs(w[i]) > 0.1 * np.max(np.abs(w))]
        names = [estimates[i].name for i in parts]
        changes = ", ".join(
            f"{estimates[i].name} by {change[i] * size[i]:+.2g} {estimates[i].unit}" for i in parts
        )
        if len(parts) > 1:
            numbers = {"names": join_names(names), "changes": changes}
            out.append(Notice("hard-to-tell-apart", "", numbers))
        else:
            out.append(Notice("hard-to-tell", names[0], {"changes": changes}))
    return out


def _advice(cures: Mapping[str, tuple[Remedy, ...]], weak: Sequence[str]) -> list[Notice]:
    """Return a notice for each experiment that is the best for some weak parameters."""
    best: dict[str, list[tuple[str, float]]] = {}
    without = []
    for name in weak:
        helpful = [c for c in cures.get(name, ()) if c.gain >= _HELPS]
        if helpful:
            cure = max(helpful, key=lambda c: c.gain)
            best.setdefault(cure.says, []).append((name, cure.gain))
        else:
            without.append(name)
    out = []
    for says, gains in best.items():
        errors = [f"{name} {gain:.2g} times" for name, gain in gains if np.isfinite(gain)]
        unseen = [name for name, gain in gains if not np.isfinite(gain)]
        effects = [f"the errors are smaller ({join_names(errors)})"] if errors else []
        effects += [f"the data identify {join_names(unseen)}"] if unseen else []
        out.append(Notice("cure", "", {"experiment": says, "gains": ", and ".join(effects)}))
    if without:
        out.append(Notice("no-cure", "", {"names": join_names(without)}))
    return out
