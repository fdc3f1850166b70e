"""The result of a fit, and the function that builds it from the end of the search."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from frictax.handover import Verb
from frictax.laws import AbstractLaw
from frictax.measurements.sweep import Sweep
from frictax.measurements.units import Unit, display_unit, shown_force
from frictax.notice import Notice
from frictax.parameters import Parameter, UnknownName, get, parameters, replace
from frictax.summary import Summarised
from frictax.text import amount
from frictax.verbs import FitResultVerbs

from ..problem.losses import AbstractLoss
from ..problem.problem import (
    Problem,
    Unknown,
    bounds,
    predictions,
    residuals_and_jacobian,
    upper_bounds,
)
from ..problem.steady import as_steady
from ..search.certificate import Certificate, certify
from ..search.methods import AbstractMethod
from ..search.multistart import Searched
from .estimates import Estimate, Estimated, by_path, quantile
from .identifiability import Entries, Identifiability, Knowledge, is_at_bound, judge_columns
from .notices import (
    begins_well,
    far_from_start,
    has_bristles,
    held_breakaways,
    not_settled,
    presliding,
    replace_by_rounds,
    standing_still,
    too_large,
)
from .spread import CovarianceEstimate, inverse_gram, robust_variance
from .sweep_checks import SteadyFit, doubtful_dips, sweep_checks, weight_notices
from .units import in_records, rms_units, unit_of
from .worth import worth

Model = TypeVar("Model")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FitResult(Summarised, Estimated, FitResultVerbs, Generic[Model]):
    """The result of a fit: estimates, standard errors, and notices. `print` shows it as a table.

    - `start`: the machine or friction law with its values before the fit. `model`: the machine or
      law with the estimates that all records share. `model_for(label)`: the machine with all
      estimates of one record. `records`: the data by label.
    - `estimates`: one `Estimate` in SI units for each fitted parameter, also by name:
      ``found["mass.m"]``. The estimate ``mass.v@run2`` is for record run2. `tied`: the estimates of
      tied parameters; `fixed`: the parameters that were not fitted.
    - Standard errors, intervals and degrees of freedom are from `uncertainty()` with the noise
      model `Guarded`. Intervals have the confidence level `level`, by Student's t. `covariance` (p,
      p) is in the order of the estimates.
    - `residuals` (n,): measured minus predicted [SI]; `weighted_residuals`: residuals divided by
      the standard deviations. `jacobian` (m, p): derivatives of (predicted - measured) / sd with
      respect to the estimates, one row for each measured value and each prior. `dof`: number of
      residuals with weight minus number of `active` values.
    - `full_residuals` r (n,): the values (predicted - measured) / sd. `full_jacobian` (m, q):
      derivatives of r with respect to all q entries of `x`. `full_covariance` (q, q): covariance of
      `x` for white residuals. `active` (q,): mask of entries with an effect and not at a bound.
    - `rms`: record -> output -> root mean square of the residuals [SI]. `noise_scale`: standard
      deviation of the weighted residuals, 1 if sigma is known.
    - `x`: all fitted values, with the fitted initial states of windows, which are not estimates.
      `z`: the unconstrained coordinates of `x`.
    - `at_noise`: whether the residuals of a free run are white noise.
    - `converged`: whether the search met its tolerance; `iterations`: its number of steps;
      `seconds`: its duration; `costs`: the final cost from each start; `identifiability`;
      `notices`: doubts and remarks; `notes`: the notices of the search; `warnings`: the notices as
      sentences.

    The result of a sweep also has `sweep`, `law`, `rms_force`, `predict(velocity)`,
    `band(velocity)`, `aicc` and `bic`.

    >>> import frictax as fx
    >>> v = [0.5, 1.0, 2.0, 4.0, 8.0]
    >>> f = [6.12, 6.19, 6.41, 6.78, 7.61]

    >>> found = fx.fit(fx.Coulomb, fx.Sweep(v, f, velocity_unit="m/s", force_unit="N"))
    >>> {name: round(float(value), 3) for name, value in found.values.items()}
    {'F_Coulomb': 6.003, 'F_prop': 0.2}
    >>> for e in found.estimates:
    ...     print(f"{e.name}: {e.value:.3f} {e.unit}, {e.lower:.3f} to {e.upper:.3f}")
    F_Coulomb: 6.003 N, 5.962 to 6.044
    F_prop: 0.200 N.s/m, 0.190 to 0.210
    >>> print(found["F_Coulomb"])
    F_Coulomb 6.003 N, std. error 0.013 N, 5.962 to 6.044 N
    >>> [round(float(end), 3) for end in found.intervals["F_Coulomb"]]
    [5.962, 6.044]
    >>> band = found.band([1.0, 10.0])
    >>> (band.upper - band.lower).round(3)
    array([0.068, 0.147])
    """

    start: Model
    records: Mapping[str, Any]
    full_covariance: Float[np.ndarray, "q q"]
    full_jacobian: Float[np.ndarray, "m q"]
    active: Bool[np.ndarray, " q"]
    full_residuals: Float[np.ndarray, " n"]
    rms: Mapping[str, Mapping[str, float]]
    noise_scale: float
    dof: int
    level: float
    converged: bool
    iterations: int
    seconds: float
    costs: np.ndarray
    notes: tuple[Notice, ...]
    problem: Problem
    method: AbstractMethod
    x: Float[np.ndarray, " q"]
    z: Float[np.ndarray, " q"]

    # Standard errors and notices are computed on first use. This saves time if nobody uses them.

    @functools.cached_property
    def spread(self) -> CovarianceEstimate:
        """Covariance, degrees of freedom and notices according to the default noise model."""
        return self._usual_spread()

    @functools.cached_property
    def certificate(self) -> Certificate | None:
        """Comparison of the residuals of a free run with white noise, or None (see `certify`)."""
        return certify(self.problem, self.full_residuals)

    @property
    def at_noise(self) -> bool | None:
        """True if no other parameter values explain the record better: the residuals of a free run
        are white noise as large as that of the record. None if the noise cannot be estimated, and
        for objectives other than `FreeRun` and `ClosedLoop`.
        """
        return None if self.certificate is None else self.certificate.at_noise

    @functools.cached_property
    def bends(self) -> Any:
        """Changes of the estimates (`Bends`) if the inputs are interpolated smoothly instead of
        linearly; None if the changes are negligible.
        """
        return self._by_bends()

    @functools.cached_property
    def estimates(self) -> tuple[Estimate, ...]:
        return self.uncertainty().estimates

    @functools.cached_property
    def covariance(self) -> Float[np.ndarray, "p p"]:
        return self.spread.covariance[np.ix_(self.shown, self.shown)]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(n for u in self.problem.unknowns if not u.hidden for n in u.names)

    @property
    def values(self) -> Mapping[str, Any]:
        """Fitted values by path: a number, or an array for the forces of a `Table`."""
        shown = [u for u in self.problem.unknowns if not u.hidden]
        places = ((n, n if "@" in n else u.path) for u in shown for n in u.names)
        return by_path(places, self.x[self.shown].tolist())

    @functools.cached_property
    def identifiability(self) -> Identifiability:
        shown, unknowns = self.shown, self.problem.unknowns
        # J = QR gives J'J = R'R, so only R is needed. NumPy's types lack mode="r", hence `asarray`.
        triangle = np.asarray(np.linalg.qr(self.full_jacobian, mode="r"))
        columns = triangle[:, shown]
        if not shown.all():  # project out the initial states of windows
            hidden = triangle[:, ~shown]
            columns = columns - hidden @ np.linalg.lstsq(hidden, columns, rcond=None)[0]
        entries = Entries(
            list(self.names),
            self.active[shown],
            np.asarray(self.problem.x0)[shown],
            self.x[shown],
            self.spread.half_width(self.level, np.eye(len(shown))[shown]),
            bounds(unknowns)[shown],
            upper_bounds(unknowns)[shown],
        )
        least = 1e-3 * self.noise_scale * np.sqrt(self.dof + np.sum(self.active))
        if not self.of_sweep:
            return judge_columns(columns, entries, least)
        doubts = functools.partial(doubtful_dips, self._steady_fit())
        return judge_columns(columns, entries, least, doubts)

    def _steady_fit(self) -> SteadyFit:
        return SteadyFit(
            self.model,
            self.sweep,
            list(self.names),
            self.x,
            self.full_jacobian[: self.n],
            self.full_residuals,
            self.noise_scale,
            self.loss,
        )

    @functools.cached_property
    def notices(self) -> tuple[Notice, ...]:
        return self._collect_notices(self._direction_notices if self.of_sweep else self._looked_for)

    def _looked_for(self) -> tuple[Notice, ...]:
        """Simulate, and return notices that records differ or that the model lacks a force."""
        return self._records_apart() or self._first_look()

    @functools.cached_property
    def notices_at_hand(self) -> tuple[Notice, ...]:
        """All `notices` that do not need further simulations."""
        return self._collect_notices(tuple)

    def _collect_notices(self, look: Callable[[], tuple[Notice, ...]]) -> tuple[Notice, ...]:
        known, norms = self.identifiability, np.linalg.norm(self.full_jacobian, axis=0)
        problem, out, notes = self.problem, [], self.notes
        out += too_large(problem, self.records, self.noise_scale)
        of_directions = look() if self.of_sweep else ()
        out += of_directions
        if self.of_sweep and not problem.priors:
            out += sweep_checks(self._steady_fit(), self.active)
        if not self.of_sweep:
            explained = worth(problem, self.records, self.full_residuals, self.x)
            notes, explained = replace_by_rounds(notes, explained, out)
            out = standing_still(problem, norms) + (out if norms.any() else [])
            out += [n for n in explained if norms.any() or n.code == "explains-nothing"]
            out += look() if norms.any() else ()
            out += self._tables_left()
            error = np.sqrt(np.maximum(np.diag(self.spread.covariance), 0.0)) * self.active
            out += far_from_start(problem, self.x, error, self.unit_of)
            if has_bristles(self.start):
                out += presliding(problem, self.model, self.records, self.x)
            if np.any(self.active) and known.condition > 100 and not known.null_directions:
                out.append(Notice("ill-conditioned", "", {"condition": known.condition}))
        still = [n for n, norm in zip(self.names, norms[self.shown], strict=True) if norm == 0]
        said = held_breakaways(known.notices, still, self.records)
        of_search = [n for n in notes if n.code.startswith("search-")]
        rest = [
            n
            for n in notes
            if n not in of_search
            and not (
                n.code == "starts-at-another-speed"
                and begins_well(n, problem, self.records, self.full_residuals)
            )
        ]
        of_records = [
            notice.of_record(label)
            for label, record in self.records.items()
            for notice in record.notices
        ]
        # If friction differs by direction, notices of autocorrelated residuals only repeat this.
        of_errors = () if of_directions else self.spread.notices
        if any(n.code == "records-differ" for n in out):  # the notice in `out` is more detailed
            of_errors = [n for n in of_errors if n.code != "records-differ"]
        return (*of_records, *of_search, *out, *said, *of_errors, *rest)

    @functools.cached_property
    def unit_of(self) -> Callable[[Unknown | Parameter], str]:
        """Function that returns the unit of a parameter."""
        return unit_of(self.records, self.problem.setup.machine)

    def in_declared_unit(
        self, unit: str, path: str, record: int | None, value: float
    ) -> tuple[str, float] | None:
        """Return the unit in which tables show a parameter, and the SI value of this unit. The data
        (or only record number `record`) determine the unit. Return None for the SI unit with a
        suitable prefix.
        """
        if self.of_sweep:
            speed = self.sweep.velocity_unit
            shown = (speed.name, speed.si) if unit == speed.si_name else None
            return shown or display_unit(unit, self.shown_force)
        labels = list(self.records) if record is None else [list(self.records)[record]]
        return in_records({n: self.records[n] for n in labels}, unit, path, value)

    def rms_units(self, label: str) -> dict[str, str]:
        """Return the SI unit of the residuals of each channel of record `label`."""
        return rms_units(self.records, self.model, label, self.rms[label])

    def rms_in_words(self, label: str) -> dict[str, str]:
        """Return a dict from channel to the rms of its residuals in record `label`, as text."""
        units, record = self.rms_units(label), {label: self.records[label]}
        return {
            name: amount(x, units[name], in_records(record, units[name], name, x))
            for name, x in self.rms[label].items()
        }

    @property
    def of_sweep(self) -> bool:
        """True if a friction law was fitted to a sweep, instead of a machine to records."""
        return self.problem.is_steady

    @property
    def sweep(self) -> Sweep:
        """The sweep to which a friction law was fitted."""
        if not self.of_sweep:
            raise AttributeError(
                f"This fit is of a machine to {', '.join(self.records)}, not of a law to a sweep."
                " Look at `records`."
            )
        return next(iter(self.records.values()))

    @property
    def law(self) -> AbstractLaw:
        """The fitted law of a sweep for v > 0."""
        assert self.sweep  # fails if a machine was fitted
        return as_steady(self.model).f_pos

    @property
    def loss(self) -> AbstractLoss:
        """The loss function of the residuals."""
        return self.problem.loss

    @property
    def n(self) -> int:
        """The number of residuals of data, without those of priors."""
        return len(self.full_residuals)

    @property
    def units(self) -> tuple[str, ...]:
        """SI units of the estimates, in the order of `names`."""
        return tuple(e.unit for e in self.estimates)

    @property
    def quantile(self) -> float:
        """Half the width of an interval [standard errors], for white residuals."""
        return float(quantile(self.level, max(self.dof, 1), self.problem.noise_known))

    @property
    def weighted_residuals(self) -> Float[np.ndarray, " n"]:
        """Residuals (measured - predicted) / sd, which are 0 for samples with weight 0."""
        return -self.full_residuals

    @property
    def residuals(self) -> Float[np.ndarray, " n"]:
        """Residuals (measured - predicted) [SI], in the order of records, samples and outputs."""
        weight = self.problem.weights()
        return np.divide(-self.full_residuals, weight, out=np.zeros_like(weight), where=weight > 0)

    @property
    def aicc(self) -> float:
        """Small-sample Akaike criterion of a sweep. A fit with a smaller value is better."""
        return self._criteria[0]

    @property
    def bic(self) -> float:
        """Bayes criterion of a sweep. A fit with a smaller value is better."""
        return self._criteria[1]

    @functools.cached_property
    def _criteria(self) -> tuple[float, float]:
        """AICc and BIC from the normal likelihood. With a robust loss, the likelihood is that of
        the loss, for the noise scale of the fit.

        **Source:** N. Sugiura (1978); C. M. Hurvich, C.-L. Tsai, Biometrika 76 (1989); E.
        Ronchetti, Statistics & Probability Letters 3 (1985) for other losses.
        """
        sweep, weighted, p = self.sweep, self.weighted_residuals, self.x.size
        n, sigma = sweep.n, 1.0 if sweep.sigma is None else sweep.sigma
        floor = 1e-12 * float(np.sqrt(np.mean((sweep.force / sigma) ** 2)))
        rho = lambda x: 2.0 * float(jnp.sum(self.loss.rho(jnp.asarray(x))))  # noqa: E731
        k, size = p + 1, max(self.noise_scale, floor)
        if sweep.sigma_known:
            k, minus2log = p, rho(weighted) + n * np.log(2 * np.pi)
        elif self.loss.rounds == 1:
            mean_square = max(float(np.mean(weighted**2)), floor**2)
            minus2log = n * (np.log(2 * np.pi * mean_square) + 1.0)
        else:
            minus2log = rho(weighted / size) + n * np.log(2 * np.pi * size**2)
        minus2log += 2.0 * float(np.sum(np.log(np.broadcast_to(sigma, n))))
        aicc = minus2log + 2 * k * n / (n - k - 1) if n > k + 1 else np.inf
        return float(aicc), float(minus2log + k * np.log(n))

    @property
    def rms_force(self) -> float:
        """Root mean square of a sweep's residuals [N or N.m], unweighted."""
        return self.rms[self.sweep.name]["f"]

    @property
    def shown_force(self) -> Unit:
        """The unit of forces in tables: the sweep's unit, or the SI unit with a prefix."""
        return shown_force(self.sweep.force_unit, float(np.median(np.abs(self.sweep.force))))

    @functools.cached_property
    def jacobian(self) -> Float[np.ndarray, "m p"]:
        """Derivatives of (predicted - measured) / sd with respect to the estimates."""
        return self.full_jacobian[:, self.shown]

    @functools.cached_property
    def shown(self) -> Bool[np.ndarray, " q"]:
        """Mask of the entries of `x` that are estimates, not initial states of windows."""
        return np.asarray([not u.hidden for u in self.problem.unknowns for _ in u.names])

    @functools.cached_property
    def fixed(self) -> tuple[Estimate, ...]:
        """The parameters that were not fitted."""
        fitted = {u.path for u in (*self.problem.unknowns, *self.problem.ties)}
        nan, out = float("nan"), []
        for p in [p for p in parameters(self.model) if p.path not in fitted]:
            value = np.asarray(p.value, dtype=float)
            names = Unknown(p.path, None, "", p.declaration, value.shape, 0).names
            unit = self.unit_of(p)
            for name, x in zip(names, np.ravel(value).tolist(), strict=True):
                declared = self.in_declared_unit(unit, p.path, None, x)
                known = Knowledge.FIXED
                out.append(Estimate(name, p.path, x, nan, nan, nan, unit, known, nan, declared))
        return tuple(out)

    @functools.cached_property
    def tied(self) -> tuple[Estimate, ...]:
        """The tied parameters with their standard errors."""
        return self._tied()

    def with_all_active(self) -> "FitResult":
        """Return the fit with standard errors that ignore the bounds of parameters."""
        norms = np.linalg.norm(self.full_jacobian, axis=0)
        covariance = self.noise_scale**2 * inverse_gram(self.full_jacobian, norms, norms > 0)
        return dataclasses.replace(self, full_covariance=covariance, active=norms > 0)

    @functools.cached_property
    def model(self) -> Model:
        """The machine or law with the fitted values that all records share."""
        here = {p.path for p in parameters(self.start)}
        shared = [u for u in self.problem.unknowns if u.record is None and u.path in here]
        values = {u.path: np.reshape(self.x[u.place], u.shape) for u in shared}
        ties = [tie.path for tie in self.problem.ties if tie.path in here]
        if ties:
            setup = self.problem.setup_at(jnp.asarray(self.x), None)
            values |= {path: np.asarray(get(setup, path)) for path in ties}
        return replace(self.start, values)

    def model_for(self, label: str) -> Model:
        """Return the machine with all values of the record called `label`."""
        return self.problem.setup_at(jnp.asarray(self.x), self.number(label)).machine

    def predicted(self, label: str) -> Float[np.ndarray, "*w n c"]:
        """Return the prediction that the objective compares with record `label`."""
        return np.asarray(predictions(self.problem, jnp.asarray(self.x), self.number(label)))

    def number(self, label: str) -> int:
        """Return the index of the record called `label`."""
        if label not in self.records:
            known = ", ".join(self.records)
            raise UnknownName(f"There is no record {label!r} in this fit. It has: {known}.")
        return list(self.records).index(label)

    _repr_html_ = Verb("frictax.report.cards:fit_html")
    _tied = Verb("frictax.analysis.derived.derived:tied_estimates")
    _by_bends = Verb("frictax.fitting.result.step_error:by_bends")
    _usual_spread = Verb("frictax.analysis.errors.uncertainty:usual_spread")
    _direction_notices = Verb("frictax.analysis.selection.directions:direction_notices")
    _records_apart = Verb("frictax.analysis.errors.clusters:records_apart")
    _first_look = Verb("frictax.analysis.missing.screening:screen_missing_force")
    _tables_left = Verb("frictax.analysis.missing.screening:check_table_range")
    _summary = Verb("frictax.fitting.result.text:fit_summary")


def make_fit_result(
    model: Any,
    problem: Problem,
    records: Mapping[str, Any],
    end: Searched,
    method: AbstractMethod,
    level: float,
    notes: list[Notice],
    seconds: float = 0.0,
) -> FitResult:
    """Build the result of a fit from the end of its search. `notes`: notices of the search."""
    state, noise = end.state, end.noise
    x, slope = np.array(state.x), np.asarray(state.slope)
    # For a value very close to its bound, `slope` can be too small to divide by.
    if problem.loss.rounds == 1 and not problem.priors and np.all(np.abs(slope) > 1e-150):
        r = np.asarray(state.residuals)
        jacobian = np.asarray(state.jacobian) / slope
    else:
        r, jacobian = (np.array(a) for a in residuals_and_jacobian(problem, x))
    counted = problem.weights() > 0
    data, rows = counted.size, int(counted.sum())
    # Residuals of priors have the standard deviation 1, so multiply them by the noise scale of the
    # data.
    jacobian = np.concatenate([jacobian[:data], noise * jacobian[data:]])
    lower, upper = bounds(problem.unknowns), upper_bounds(problem.unknowns)
    # J = QR gives J'J = R'R, so only R is needed. NumPy's types lack mode="r", hence `asarray`.
    triangle = np.asarray(np.linalg.qr(jacobian, mode="r"))
    norms = np.linalg.norm(triangle, axis=0)
    robust, squares = problem.loss.rounds > 1, float(np.sum(r[:data] ** 2))
    scale = np.sqrt(squares / max(rows - x.size, 1))
    scale = 1.0 if problem.noise_known else noise if robust else max(float(scale), 1e-300)
    # A value is at its bound if moving it to the bound changes the prediction by less than a
    # thousandth of the noise.
    effect = np.fmin(x - lower, upper - x) * np.where(norms > 0, norms, 1.0) / np.sqrt(rows)
    active = (norms > 0) & (effect > 1e-3 * scale)
    dof = max(rows - int(active.sum()), 1)
    if robust:
        scaled = r[:data][counted] / scale
        variance = robust_variance(problem.loss, scaled, dof, problem.noise_known) * scale**2
    else:
        least = 1.0 if problem.objective.whitens() else 0.0
        variance = 1.0 if problem.noise_known else max(squares / dof, least)
        scale = float(np.sqrt(variance))
    covariance = variance * inverse_gram(triangle, norms, active)
    ends = np.where(upper - x < x - lower, upper, lower)
    left, before = np.abs(x - ends), np.abs(np.asarray(problem.x0) - ends)
    names = [u.path for u in problem.unknowns for _ in range(u.size)]
    relevant = 1e-3 * scale * np.sqrt(rows)
    at_bound = is_at_bound(names, active, norms, left, before, relevant)
    x = np.where(at_bound, ends, x)
    if problem.is_steady and records:
        fitted, sweep = problem.setup_at(jnp.asarray(x), None).machine, next(iter(records.values()))
        paths = [u.path for u in problem.unknowns]
        notes = [*notes, *weight_notices(fitted, sweep, paths)]
    # If the search ended at a jump of the cost, the notice `search-edge` is sufficient.
    if not state.settled and not any(n.code == "search-edge" for n in notes):
        notes = [not_settled(method, state, problem.objective), *notes]
    return FitResult(
        start=model,
        records=records,
        full_covariance=covariance,
        full_jacobian=jacobian,
        active=active,
        full_residuals=r[:data],
        rms=_rms(problem, list(records), r),
        noise_scale=scale,
        dof=dof,
        level=level,
        converged=bool(state.settled),
        iterations=int(state.steps),
        seconds=seconds,
        costs=end.costs,
        notes=tuple(notes),
        problem=problem,
        method=method,
        x=x,
        z=np.asarray(state.z),
    )


def _rms(problem: Problem, labels: list[str], r: np.ndarray) -> dict[str, dict[str, float]]:
    """Return the root mean square of the unweighted residuals of each output of each record."""
    out = {}
    for label, (prepared, w, mine) in zip(labels, problem.by_record(r), strict=bool(labels)):
        plain = np.divide(mine, w, out=np.zeros_like(mine), where=w > 0)
        for c, name in enumerate(prepared.names):
            if name in getattr(prepared, "tick_noise", ()):  # time error of an encoder tick [s]
                plain[..., c] = mine[..., c]
        counts = [max(int(np.sum(w[..., c] > 0)), 1) for c in range(w.shape[-1])]
        out[label] = {
            n: float(np.sqrt(np.sum(plain[..., c] ** 2) / counts[c]))
            for c, n in enumerate(prepared.names)
        }
    return out
