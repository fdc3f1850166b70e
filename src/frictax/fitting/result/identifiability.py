"""What a sweep can tell of each parameter, in plain words."""

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

import numpy as np

from frictax.fitting.problem.losses import AbstractLoss
from frictax.fitting.problem.steady import SteadyFriction, as_steady
from frictax.fitting.search.estimation import Estimation
from frictax.laws import Stribeck
from frictax.measurements.sweep import Sweep


class Knowledge(enum.Enum):
    """What is known of one parameter."""

    KNOWN = "known"
    WEAK = "cannot be told from its bound"
    AT_BOUND = "at its bound"
    UNKNOWN = "not identifiable"
    FIXED = "fixed"


@dataclasses.dataclass(frozen=True)
class Identifiability:
    """What the data tell of each parameter.

    - `knowledge`: by name; `sentences`: the same in words, with the remedy.
    - `singular_values` of the Jacobian whose columns are scaled to length 1; `condition`, largest over smallest.
    - `null_directions`: combinations of parameters that change nothing that was measured, as coefficients by name of the
      changes in units of each parameter's own effect.
    """

    knowledge: Mapping[str, Knowledge]
    sentences: tuple[str, ...]
    singular_values: np.ndarray
    condition: float
    null_directions: tuple[Mapping[str, float], ...]

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names of the parameters that are not identifiable."""
        return tuple(name for name, what in self.knowledge.items() if what is Knowledge.UNKNOWN)

    @property
    def complete(self) -> bool:
        """Whether every free parameter is identifiable."""
        return not self.unknown


def null_directions(jacobian: np.ndarray, names: list[str], active: np.ndarray) -> tuple[np.ndarray, list[dict[str, float]]]:
    """Singular values of the scaled Jacobian, and the directions below 1e-7 of the largest."""
    columns = jacobian[:, active]
    kept = [name for name, on in zip(names, active, strict=True) if on]
    if not kept:
        return np.zeros(0), []
    _, s, vt = np.linalg.svd(columns / np.linalg.norm(columns, axis=0), full_matrices=columns.shape[0] < columns.shape[1])
    s = np.concatenate([s, np.zeros(len(kept) - s.size)])
    null = [v for v, size in zip(vt, s, strict=True) if size < 1e-7 * s[0]]
    return s, [{n: float(c) for n, c in zip(kept, v, strict=True) if abs(c) > 0.05} for v in null]


def judge(
    model: Any,
    sweep: Sweep,
    names: list[str],
    done: Estimation,
    loss: AbstractLoss,
    at_bound: np.ndarray,
    bounds: np.ndarray,
    half: np.ndarray,
) -> Identifiability:
    """Knowledge of every entry at the minimum. `half` is half the width of each interval."""
    x, active = np.asarray(done.x), np.asarray(done.active)
    s, null = null_directions(np.asarray(done.jacobian), names, active)
    knowledge: dict[str, Knowledge] = {}
    sentences: list[str] = []
    for i, name in enumerate(names):
        if active[i]:
            weak = np.isfinite(bounds[i]) and x[i] - half[i] <= bounds[i]
            knowledge[name] = Knowledge.WEAK if weak else Knowledge.KNOWN
        else:
            knowledge[name] = Knowledge.AT_BOUND if at_bound[i] else Knowledge.UNKNOWN
    for direction in null:
        knowledge.update(dict.fromkeys(direction, Knowledge.UNKNOWN))
        sentences.append(
            f"{listed(direction)} cannot be told apart: the data fix only a combination of them "
            f"(null direction {combination(direction)}). Fix all but one of them through free=[...]."
        )
    sentences += _stribeck_terms(model, sweep, names, done, loss, knowledge)
    for name, what in knowledge.items():
        if what is Knowledge.AT_BOUND:
            sentences.append(
                f"{name} lies on its bound {bounds[names.index(name)]:g}: the data ask for no more of it. No symmetric interval applies."
            )
        elif what is Knowledge.WEAK:
            sentences.append(f"{name} cannot be told from {bounds[names.index(name)]:g}: its interval reaches that bound.")
        elif what is Knowledge.UNKNOWN and not active[names.index(name)]:
            sentences.append(f"{name} has no effect on this sweep and is not identifiable.")
    condition = float(s[0] / s[-1]) if s.size and s[-1] > 0 else float("inf")
    return Identifiability(knowledge, tuple(dict.fromkeys(sentences)), s, condition, tuple(null))


def peak_sentence(model: Any) -> str:
    peak = float(as_steady(model).peak)
    return (
        f"peak cannot be known from sliding rows alone and stays at {peak:g}: measure the force at which motion begins, "
        "and declare these rows with `breakaway`."
    )


def weight_sentence(model: SteadyFriction, unit: str, size: float) -> str:
    """Two laws, no offset: their difference may be weight or friction, and nothing measured says which."""
    assert model.f_neg is not None
    difference = float(model.f_pos.f0) - float(model.f_neg.f0)
    return (
        "A payload's weight (a constant force) cannot be told from an asymmetry of Coulomb friction here: the two directions "
        f"differ by {difference / size:.3g} {unit} at rest, which would be a constant force of {difference / 2 / size:.3g} {unit} "
        "if friction were the same both ways. Measure with another payload to tell."
    )


def _stribeck_terms(
    model: Any, sweep: Sweep, names: list[str], done: Estimation, loss: AbstractLoss, knowledge: dict[str, Knowledge]
) -> list[str]:
    """Whether the dip could be noise: then neither F_Stribeck nor fexp has a meaning."""
    if isinstance(model, SteadyFriction):
        branches = [("f_pos.", model.f_pos), ("f_neg.", model.f_neg)]
    else:
        branches = [("", model)]
    out = []
    for prefix, law in branches:
        terms = [prefix + name for name in ("F_Stribeck", "fexp") if prefix + name in knowledge]
        if not isinstance(law, Stribeck) or prefix + "F_Stribeck" not in terms:
            continue
        chance = _chance_of_a_dip(model, sweep, names, done, loss, terms)
        if knowledge[terms[0]] is Knowledge.AT_BOUND or chance > 0.05:
            knowledge.update(dict.fromkeys(terms, Knowledge.UNKNOWN))
            subject = f"terms {listed(terms)} are" if len(terms) > 1 else f"term {terms[0]} is"
            out.append(
                f"The Stribeck {subject} not identifiable: "
                f"where there is no dip at all, noise alone shows one as deep in {100 * chance:.0f} of 100 sweeps. "
                "Fit a Coulomb law, or measure slower speeds."
            )
    return out


def _chance_of_a_dip(model: Any, sweep: Sweep, names: list[str], done: Estimation, loss: AbstractLoss, terms: list[str]) -> float:
    """How often noise makes the best Stribeck term improve a fit at least as much as it does here.

    Without the term fexp acts on nothing, so that the usual intervals and criteria say too much. But what is left is
    linear, F_Coulomb + F_prop*v with both >= 0, and the best gain over all fexp has under the normal law a distribution
    that depends on the speeds alone: 999 draws of it give the chance.

    **Source:** R. B. Davies, Biometrika 64 (1977) for the problem; M. Dwass, Ann. Math. Stat. 28 (1957) for the test.
    """
    from scipy.optimize import lsq_linear

    steady, negative = as_steady(model), terms[0].startswith("f_neg.")
    law = steady.f_neg if negative else steady.f_pos
    assert isinstance(law, Stribeck)
    mine = np.ones(sweep.n, bool) if steady.f_neg is None else sweep.direction == (-1 if negative else 1)
    weight = np.where(mine, sweep.direction, 0.0) * (1.0 if sweep.sigma is None else 1.0 / sweep.sigma)
    speed = np.abs(sweep.velocity)

    def dip(fexp: float) -> np.ndarray:
        return weight * np.where(sweep.breakaway, float(steady.peak), np.exp(-((fexp * speed) ** float(law.exponent))))

    x, jacobian = np.asarray(done.x), np.asarray(done.jacobian)
    residual = float(done.noise_scale) * np.asarray(loss.score(done.residuals / done.noise_scale))  # outliers drawn in
    kept = [i for i, name in enumerate(names) if name not in terms and np.any(jacobian[:, i] != 0)]
    # own terms are solved for as values, so that their bound applies; all others as steps from the minimum
    prefix = terms[0].removesuffix("F_Stribeck")
    own = np.array([names[i] in (prefix + "F_Coulomb", prefix + "F_prop") for i in kept], dtype=bool)
    columns = jacobian[:, kept] / np.linalg.norm(jacobian[:, kept], axis=0)
    data = float(law.F_Stribeck) * dip(float(law.fexp)) - residual + jacobian[:, kept] @ np.where(own, x[kept], 0.0)
    if kept:
        with np.errstate(invalid="ignore"):  # scipy tries steps without end where the data are exact, and does not take them
            without = lsq_linear(columns, data / np.max(np.abs(data)), bounds=(np.where(own, 0.0, -np.inf), np.inf)).x
        columns = columns[:, ~own | (without > 1e-6 * np.max(np.abs(without)))]

    left, size, _ = np.linalg.svd(columns, full_matrices=False)
    basis = left[:, size > 1e-10 * np.max(size, initial=0.0)]
    moving = speed[mine & ~sweep.breakaway]
    grid = np.geomspace(0.5 / moving.max(), 2.0 / moving.min(), 60) if len(terms) > 1 else [float(law.fexp)]
    dips = np.column_stack([dip(fexp) for fexp in grid])
    apart = dips - basis @ (basis.T @ dips)
    length = np.linalg.norm(apart, axis=0)
    seen = length > 1e-6 * np.linalg.norm(dips, axis=0)
    if not seen.any():
        return 1.0
    draws = np.column_stack([data, np.random.default_rng(0).standard_normal((sweep.n, 999))])
    draws -= basis @ (basis.T @ draws)
    gain = np.max(np.maximum((apart[:, seen] / length[seen]).T @ draws, 0.0) ** 2, axis=0)
    if not sweep.sigma_known:
        gain = gain / np.maximum(np.sum(draws**2, axis=0), 1e-300)
    return float(np.mean(gain >= gain[0]))


def listed(names: Any) -> str:
    """Names as in a sentence."""
    names = list(names)
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def combination(direction: Mapping[str, float]) -> str:
    """A direction as a sum."""
    return " ".join(f"{value:+.2f} {name}" for name, value in direction.items())


def judge_columns(jacobian: Any, names: list[str], active: Any, x: Any, x0: Any, between: tuple[Any, Any], half: Any) -> Identifiability:
    """Knowledge of every entry at the end of a search from `x0`, by the columns of its Jacobian; `between`: the bounds."""
    s, null = null_directions(jacobian, names, active)
    knowledge, sentences = {}, []
    for i, name in enumerate(names):
        above = between[1][i] - x[i] < x[i] - between[0][i]  # nearer to the upper bound, which only a user gives
        bound = between[1][i] if above else between[0][i]
        if not active[i]:
            acts, left, before = np.linalg.norm(jacobian[:, i]) > 0, abs(x[i] - bound), abs(x0[i] - bound)
            at_bound = np.isfinite(bound) and left < 0.5 * before and (acts or left <= 1e-9 * before)
            knowledge[name] = Knowledge.AT_BOUND if at_bound else Knowledge.UNKNOWN
            asks = "the data ask for more than that" if above else "the data ask for no more of it"
            if at_bound:
                sentences.append(f"{name} lies on its bound {bound:g}: {asks}. No symmetric interval applies.")
            elif acts and np.isfinite(bound) and left > 10 * before:
                sentences.append(
                    f"{name} went from {x0[i]:.3g} to {x[i]:.3g}, where it hardly acts: the data ask for ever more of it. Look at the "
                    "signs and units of the record."
                )
            else:
                little = "hardly any" if acts else "no"
                sentences.append(f"{name} has {little} effect on what was measured and is not identifiable.")
        else:
            weak = np.isfinite(bound) and half[i] >= abs(x[i] - bound)
            knowledge[name] = Knowledge.WEAK if weak else Knowledge.KNOWN
            if weak and not any(name in direction for direction in null):
                sentences.append(f"{name} cannot be told from {bound:g}: its interval reaches that bound.")
    for direction in null:
        knowledge.update(dict.fromkeys(direction, Knowledge.UNKNOWN))
        sentences.append(
            f"{listed(direction)} cannot be told apart: the data fix only a combination of them "
            f"(null direction {combination(direction)}). Leave one of them out of `free`."
        )
    condition = float(s[0] / s[-1]) if s.size and s[-1] > 0 else float("inf")
    return Identifiability(knowledge, tuple(sentences), s, condition, tuple(null))
