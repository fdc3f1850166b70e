"""Quantities computed from fitted parameters by functions or formulas, with standard errors."""

import ast
import contextlib
import dataclasses
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.annotations import Checked
from frictax.contacts import AbstractContact, MassWithStopAndFriction
from frictax.contacts.contact import AbstractPressed
from frictax.fitting import Estimate, FitResult, Knowledge
from frictax.fitting.problem.steady import SteadyFriction, as_steady
from frictax.fitting.problem.ties import ByPath, differentiable
from frictax.fitting.result.estimates import Estimated, quantile
from frictax.fitting.result.spread import CovarianceEstimate
from frictax.laws import AbstractLaw
from frictax.measurements import Sweep
from frictax.mechanism import Fixed, Force, Inertia, Mass, Mechanism, Torque
from frictax.mechanism.layout import is_rotational
from frictax.notice import Notice
from frictax.parameters import LogScale, get, parameters
from frictax.programs import interruptible_jit
from frictax.text import align_columns, suggestion
from frictax.verbs import DerivedVerbs

from ..errors.posterior import Posterior
from ..friction_curve import differs_by_record
from .bounded import draws_within_bounds, ends_about, is_near_bound, is_on_bound

# A derived quantity: its name, the function that computes its value from a machine, its SI unit.
Quantity = tuple[str, Callable[[Any], Any], str]
# A derived quantity as a function of a machine, its SI unit, and the index of the record.
Usual = tuple[Callable[[Any], Any], str, int | None]
# A function that computes quantities (k,) from all fitted parameters, the names of the quantities,
# their SI units, and True if a single number was requested.
Requested = tuple[Callable[[Array], Array], list[str], list[str], bool]
EXACT = 1e-13  # [1] largest ratio of standard error to value at which a quantity counts as exact


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Derived(Estimated, DerivedVerbs):
    """Quantities derived from fitted parameters. `print` shows a table.

    - `estimates`: one `Estimate` for each quantity, with standard error, interval and degrees of
      freedom; `covariance` (k, k) of all quantities; `level`: probability of the intervals.
    - `value`, `standard_error`, `interval`: numbers for one quantity, or arrays (k,) and (k, 2).
    - `gradient` (k, q): derivatives of the quantities with respect to all fitted parameters. For a
      parameter at its bound the derivative is 0, as if the parameter were fixed.
    - `draws` (chains, n, k): the quantities for each draw of a `Posterior`, None for a fit. The
      draws give the probability of any event, for example ``(derived.draws > 6.0).mean()``.
      `fitted` (k,): for a `Posterior`, the quantities at the fitted values.

    **Example:** at `FitResult.derived`.
    """

    estimates: tuple[Estimate, ...]
    covariance: Float[np.ndarray, "k k"]
    gradient: Float[np.ndarray, "k q"]
    level: float
    scalar: bool = False
    notices: tuple[Notice, ...] = ()
    draws: Float[np.ndarray, "c n k"] | None = None
    fitted: Float[np.ndarray, " k"] | None = None

    @property
    def value(self) -> Any:
        return self._values(lambda e: e.value)

    @property
    def standard_error(self) -> Any:
        return self._values(lambda e: e.standard_error)

    @property
    def interval(self) -> Any:
        return self._values(lambda e: (e.lower, e.upper))

    def _values(self, ask: Callable[[Estimate], Any]) -> Any:
        return ask(self.estimates[0]) if self.scalar else np.array([ask(e) for e in self.estimates])

    def __str__(self) -> str:
        head = ("derived", "value", "unit", "std. error", f"{100 * self.level:g} % interval")
        return "\n".join(align_columns(head, [e.cells for e in self.estimates]))

    __repr__ = __str__


def derive_from_fit(
    found: FitResult,
    function: Any = None,
    *,
    name: str | Sequence[str] | None = None,
    unit: str | Sequence[str] = "",
    by: Any = None,
    label: Checked[str] | None = None,
) -> Derived:
    """Derive quantities from the fitted parameters, with standard errors by the delta method.

    The standard error of a function g of the fitted parameters x with covariance S is the root of
    (dg/dx) S (dg/dx)'. Intervals use Student's t at the fit's level, and the noise model of the
    estimates. The delta method is valid to first order. For a strongly nonlinear function, or for a
    quantity that cannot be negative, use draws: ``found.posterior().derived(...)``.

    If a quantity depends on a parameter within three standard errors of a bound, its standard error
    and interval come from random draws within the bounds. The draws follow the profile likelihood
    of this parameter. Intervals from draws are not symmetric and contain only possible values.

    **Arguments:**

    - `function`: computes one or several numbers from all parameters by path, with operations that
      JAX differentiates. Instead, `function` can be text: a formula such as ``"rotor.J /
      bearing.tau_pos.F_prop"``, or the name of a common quantity. The default is all common
      quantities of the machine: breakaway force or torque, Stribeck velocity, time constant.
    - `name`, `unit` (SI) of the quantity, or a list of them for several quantities.
    - `by`: another noise model, as for `FitResult.uncertainty`, or an `Uncertainty`.
    - `label` of a record, if parameters differ by record. Without `label`, the default list has one
      row for each record of each quantity that differs by record, such as ``mass: time
      constant@run2``.

    **Returns:** a `Derived`.

    **Raises:** `ValueError` for a value that is not finite, and for a quantity that differs by
    record if no record is named; `KeyError` for an unknown path.

    The record identifies the ratio of a mass and its viscous friction:

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 4.0, 401)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=2.0, v=3.0),
    ...     guide=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0, F_prop=0.5)),
    ... )
    >>> v = np.asarray(fx.simulate(block, t)["mass"].v)
    >>> v = v + 0.01 * np.random.default_rng(0).standard_normal(401)
    >>> found = fx.fit(block, fx.Record(t, outputs={"mass.v": v}), free="guide.f_pos")
    >>> print(found.derived(lambda p: p["mass.m"] / p["guide.f_pos.F_prop"], name="T", unit="s"))
    derived  value  unit  std. error  95 % interval
    T        ...    s     ...         ... to ...
    >>> print(found.derived())
    derived              value   unit  std. error  95 % interval
    guide: breakaway     ...     N     ...         ... to ...
    mass: time constant  ...     s     ...         ... to ...
    """
    return _derive(found, requested_quantities(found, function, name, unit, label), by)


def _derive(found: FitResult, asked: Requested, by: Any) -> Derived:
    of, names, units, scalar = asked
    spread = found.spread
    if by is not None:
        spread = by.spread if isinstance(by, Estimated) else by.spread(found)  # pyright: ignore
    made = differentiate_quantity(found, of, spread)
    out = made.with_names(found, names, units, scalar)
    # If a quantity depends on a parameter near a bound, draws determine its error and interval.
    depends, bound = made.slopes != 0, is_on_bound(found)
    unknown = np.array([e.knowledge is Knowledge.UNKNOWN for e in out.estimates])
    # Residuals may depend only on the square of the distance from a bound, as for `peak` at 1. Then
    # the residuals' derivative is 0: the quantity counts as unknown, but draws yield an interval.
    hardly = (depends & bound).any(axis=1) & ~(depends & ~found.active & ~bound).any(axis=1)
    uses = (~unknown | hardly) & (depends & is_near_bound(found, made.spread)).any(axis=1)
    if not uses.any():
        return out
    program = interruptible_jit(jax.vmap(of))
    estimates, covariance = list(out.estimates), out.covariance.copy()
    for i in np.flatnonzero(uses):
        draws = draws_within_bounds(found, made.spread, made.slopes[i], by, bool(unknown[i]))
        if draws is None:
            continue
        values = np.asarray(program(jnp.asarray(draws)))[:, i]
        e, drawn = estimates[i], values[np.isfinite(values)]
        if not np.ptp(drawn) > EXACT * abs(e.value):
            continue
        lower, upper = ends_about(e.value, values, found.level)
        error = float(np.std(drawn))
        estimates[i] = dataclasses.replace(
            e, standard_error=error, lower=lower, upper=upper, knowledge=Knowledge.KNOWN, dof=np.nan
        )
        ratio = error / np.sqrt(covariance[i, i]) if covariance[i, i] > 0 else 0.0
        covariance[i, :] *= ratio
        covariance[:, i] *= ratio
        covariance[i, i] = error**2
    return dataclasses.replace(out, estimates=tuple(estimates), covariance=covariance)


def requested_quantities(
    found: FitResult,
    function: Any,
    name: str | Sequence[str] | None,
    unit: str | Sequence[str],
    label: str | None,
) -> Requested:
    """Return the requested quantities, for the record `label` (None: for the shared values)."""
    record = None if label is None else found.number(label)
    x, text = jnp.asarray(found.x), isinstance(function, str)
    known = _usual(found, record) if function is None or text else {}
    if function is None:  # Infinite quantities such as 1/fexp at fexp = 0 are left out.
        known = {n: q for n, q in known.items() if np.isfinite(float(_stack_all(found, [q])(x)[0]))}
    if function is None or (text and function in known):
        asked = known if function is None else {function: known[function]}
        if not asked:
            raise ValueError(
                "`derived`: this machine has no common quantity that is well defined. Give a"
                " function, such as lambda p: p['rotor.J'] / p['bearing.tau_pos.F_prop']."
            )
        names = list(asked) if name is None else _each(name, len(asked), "name")
        units = [si for _, si, _ in asked.values()]
        return _stack_all(found, list(asked.values())), names, units, function is not None
    title = getattr(function, "__name__", "derived").replace("<lambda>", "derived")
    title = function if text else title
    by_record = ValueError(
        f"`derived`: {title!r} depends on parameters of each record's own. Name the record,"
        f" derived(..., label={next(iter(found.records))!r})."
    )
    if f"{function}@{next(iter(found.records))}" in known:
        raise by_record
    compute = _function_of(function, known)

    def value(setup: Any) -> Array:
        return jnp.asarray(compute(ByPath(setup)), dtype=float)

    def at(setup: Any) -> Array:
        return jnp.ravel(value(setup))

    problem = found.problem
    shape = differentiable(value, problem.setup_at(x, record), "`derived`").shape
    if label is None and differs_by_record(problem, found.x, at).any():
        raise by_record
    count = int(np.prod(shape))
    plain = [title] if shape == () else [f"{title}[{i}]" for i in range(count)]
    names, units = plain if name is None else _each(name, count, "name"), _each(unit, count, "unit")
    return lambda x: at(problem.setup_at(x, record)), names, units, shape == ()


def _function_of(function: Any, known: Iterable[str]) -> Callable[[Any], Any]:
    """Return `function`, or the function for arithmetic as text. Raise `ValueError` for others."""
    if isinstance(function, str):
        if is_title(function):
            raise ValueError(
                f"`derived` has no common quantity {function!r} here.{suggestion(function, known)}"
                f" There are: {', '.join(known) or 'none'}."
            )
        function = expression(function)
    if not callable(function):
        raise ValueError(
            "`derived` takes a function of all parameters by path, or text such as 'rotor.J /"
            f" bearing.tau_pos.F_prop', got {function!r}."
        )
    return function


def is_title(text: str) -> bool:
    """Return whether a text has the form of a name of a common quantity, not of arithmetic."""
    return re.fullmatch(r"[\w.]+: [\w ]+", text) is not None


def depends_on_record(found: FitResult, text: str) -> bool:
    """Return whether a formula, or a common quantity given by its name, differs by record."""
    if is_title(text):
        return f"{text}@{next(iter(found.records))}" in _usual(found, None)
    of = expression(text)

    def at(setup: Any) -> Array:
        return jnp.ravel(jnp.asarray(of(ByPath(setup)), dtype=float))

    return bool(differs_by_record(found.problem, found.x, at).any())


def common_estimates(found: FitResult, by: Any = None) -> tuple[Estimate, ...]:
    """Return estimates of the quantities that `common` lists, if they have a finite value."""
    out: list[Estimate] = []
    for name, one in _usual(found, None).items():
        with contextlib.suppress(ValueError):
            asked = _stack_all(found, [one]), [name], [one[1]], True
            out += _derive(found, asked, by).estimates
    return tuple(out)


def _usual(found: FitResult, record: int | None) -> dict[str, Usual]:
    """Return the quantities that `common` lists, by name. Without `record`, a quantity that differs
    by record occurs once for each record, with the record's label in its name."""
    all_of_them = list(common(found.model, found.sweep if found.of_sweep else None))
    differ = np.zeros(len(all_of_them), bool)
    if record is None and all_of_them:

        def at(setup: Any) -> Array:
            return jnp.stack([jnp.asarray(of(setup.machine)) for _, of, _ in all_of_them])

        differ = differs_by_record(found.problem, found.x, at)
    out = dict[str, Usual]()
    for (title, of, si), differs in zip(all_of_them, differ, strict=True):
        if differs:
            out |= {f"{title}@{label}": (of, si, i) for i, label in enumerate(found.records)}
        else:
            out[title] = of, si, record
    return out


def _stack_all(found: FitResult, asked: Sequence[Usual]) -> Callable[[Array], Array]:
    """Return a function that computes the quantities `asked` from all fitted parameters."""

    def at(x: Array) -> Array:
        machines = {i: found.problem.setup_at(x, i).machine for i in {i for _, _, i in asked}}
        return jnp.stack([jnp.asarray(of(machines[i])) for of, _, i in asked])

    return at


def _each(given: str | Sequence[str], count: int, what: str) -> list[str]:
    out = [given] * (count if what == "unit" else 1) if isinstance(given, str) else list(given)
    if what == "name" and isinstance(given, str) and count > 1:
        out = [f"{given}[{i}]" for i in range(count)]
    if len(out) != count or not all(isinstance(x, str) for x in out):
        raise ValueError(
            f"`derived` gives {count} numbers, so that `{what}` must be a text or {count} of them,"
            f" got {given!r}."
        )
    return out


@dataclasses.dataclass(frozen=True, eq=False)
class DerivedValues:
    """Values (k,) of derived quantities, and their derivatives.

    `slopes` (k, q): derivatives with respect to all fitted parameters; `gradient` (k, q): `slopes`
    with 0 for each parameter without a standard error. `held`: the `Knowledge` of each quantity if
    it depends only on parameters without standard errors; `spread`: covariance of the parameters.
    """

    value: Float[np.ndarray, " k"]
    gradient: Float[np.ndarray, "k q"]
    slopes: Float[np.ndarray, "k q"]
    held: tuple[Knowledge, ...]
    spread: CovarianceEstimate

    def with_names(
        self, found: FitResult, names: Sequence[str], units: Sequence[str], scalar: bool
    ) -> Derived:
        g, k = self.gradient, len(self.value)
        half, dof = np.zeros(k), np.full(k, np.inf)
        moves = np.any(g != 0, axis=1)
        if moves.any():
            half[moves] = self.spread.half_width(found.level, g[moves])
            dof[moves] = self.spread.dof(g[moves])
        # `half`: half the width of an interval; divided by Student's t, it is the standard error.
        t = np.array([float(quantile(found.level, d, not np.isfinite(d))) for d in dof])
        error = half / t
        covariance = g @ self.spread.covariance @ g.T
        size = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        scale = np.divide(error, size, out=np.ones(k), where=size > 0)
        estimates = []
        for i, (name, unit) in enumerate(zip(names, units, strict=True)):
            value, sd, known = float(self.value[i]), float(error[i]), Knowledge.KNOWN
            if self.held[i] is Knowledge.UNKNOWN or not sd > EXACT * abs(value):
                known, sd, half[i], dof[i] = self.held[i], np.nan, np.nan, np.nan
            # With an error this large, the order of magnitude of the quantity is unknown.
            elif sd >= 1e4 * (abs(value) or 1.0):
                known = Knowledge.UNKNOWN
            ends = float(value - half[i]), float(value + half[i])
            shown = found.in_declared_unit(unit, "", None, value) if unit else None
            estimates.append(
                Estimate(name, name, value, sd, *ends, unit, known, float(dof[i]), shown)
            )
        return Derived(
            tuple(estimates), covariance * np.outer(scale, scale), g, found.level, scalar
        )


def differentiate_quantity(
    found: FitResult,
    function: Callable[[Array], Array],
    spread: CovarianceEstimate,
) -> DerivedValues:
    """Return values and derivatives of `function`, a function of all fitted parameters."""

    def at(x: Array) -> tuple[Array, Array]:
        value = function(x)
        return value, value

    x = jnp.asarray(found.x)
    gradient, value = (np.asarray(a, float) for a in jax.jacfwd(at, has_aux=True)(x))
    if not np.all(np.isfinite(value)) or not np.all(np.isfinite(gradient)):
        raise ValueError(
            f"`derived` must be a finite number with a derivative, got {value.tolist()} at the"
            " fitted values. Write it by operations that JAX differentiates, away from 0/0."
        )
    known, held = found.identifiability.knowledge, []
    names = [n for u in found.problem.unknowns for n in u.names]
    # A quantity is unknown if one of its parameters is unknown, at a bound if one is at its bound.
    for row in gradient:
        on = [n for n, g, a in zip(names, row, found.active, strict=True) if g != 0 and not a]
        kinds = {known[n] for n in on if n in known}
        at_bound = Knowledge.AT_BOUND if kinds else Knowledge.FIXED
        held.append(Knowledge.UNKNOWN if Knowledge.UNKNOWN in kinds else at_bound)
    return DerivedValues(value, gradient * found.active, gradient, tuple(held), spread)


def tied_estimates(
    found: FitResult, spread: CovarianceEstimate | None = None
) -> tuple[Estimate, ...]:
    """Return an estimate of each tied parameter, with errors from the fitted parameters to which it
    is tied. A tied parameter that differs by record has one estimate for each record.
    """
    problem, out = found.problem, list[Estimate]()
    if not problem.ties:
        return ()
    spread = found.spread if spread is None else spread
    declared = {p.path: p for p in parameters(problem.setup)}
    domains = {u.path: u.declaration.domain for u in problem.unknowns}
    sources = {tie.path: tie.source for tie in problem.ties}
    for tie in problem.ties:
        p = declared[tie.path]
        at = lambda setup, path=tie.path: jnp.ravel(jnp.asarray(get(setup, path)))  # noqa: E731
        records: Mapping[str, int | None] = {"": None}
        if differs_by_record(problem, found.x, at).any():
            records = {f"@{n}": i for i, n in enumerate(found.records)}
        unit, domain, source = found.unit_of(p), p.declaration.domain, tie.source
        # If the source itself is tied, continue with its source. The source of a function is "".
        while source in sources:
            source = sources[source]
        if domains.get(source) == LogScale():  # log scale: from value/factor to value*factor
            domain = LogScale()
        for label, record in records.items():
            of = lambda x, i=record, at=at: at(problem.setup_at(x, i))  # noqa: E731
            made = differentiate_quantity(found, of, spread)
            plain, count = np.shape(p.value) == (), len(made.value)
            names = [f"{tie.path}{'' if plain else f'[{i}]'}{label}" for i in range(count)]
            for e in made.with_names(found, names, [unit] * count, plain).estimates:
                lower, upper = domain.interval(e.value, e.upper - e.value)
                shown = found.in_declared_unit(unit, tie.path, record, e.value)
                path = tie.path + label
                out.append(
                    dataclasses.replace(
                        e, path=path, lower=lower, upper=upper, declared=shown, tied=tie.says
                    )
                )
    return tuple(out)


def derive_from_draws(
    drawn: Posterior,
    function: Any = None,
    *,
    name: str | Sequence[str] | None = None,
    unit: str | Sequence[str] = "",
    label: Checked[str] | None = None,
) -> Derived:
    """Derive quantities from the draws of a posterior. The estimates are the medians, standard
    deviations and intervals of the draws, for any nonlinear function.

    The arguments are those of `FitResult.derived`. In the result, `draws` contains the quantities
    for each draw. `print` shows a table of the result, and `plot()` shows a figure.
    """
    found = drawn.found
    record = None if label is None else found.number(label)
    of, names, units, scalar = requested_quantities(found, function, name, unit, label)
    # One call computes the quantities at the fit and at all draws, so only one program is compiled.
    x = jnp.vstack([found.x, drawn.all_draws.reshape(-1, drawn.all_draws.shape[-1])])
    made = np.asarray(interruptible_jit(jax.vmap(of))(x), float)
    fitted, values = made[0], made[1:]
    tail = 0.5 * (1.0 - drawn.level)
    low, middle, high = np.quantile(values, (tail, 0.5, 1.0 - tail), axis=0)
    covariance = np.atleast_2d(np.cov(values, rowvar=False))
    error, estimates = np.sqrt(np.diag(covariance)), []
    for i, (title, si) in enumerate(zip(names, units, strict=True)):
        number, sd, *ends = (float(a[i]) for a in (middle, error, low, high))
        known = Knowledge.KNOWN if sd > EXACT * abs(number) else Knowledge.FIXED
        shown = found.in_declared_unit(si, "", record, number) if si else None
        estimates.append(
            Estimate(title, title, number, sd, ends[0], ends[1], si, known, np.nan, shown)
        )
    return Derived(
        tuple(estimates),
        covariance,
        np.zeros((len(names), 0)),
        drawn.level,
        scalar,
        draws=values.reshape(*drawn.all_draws.shape[:-1], len(names)),
        fitted=fitted,
    )


def common(model: Any, sweep: Sweep | None = None) -> Iterator[Quantity]:
    """Return characteristic quantities of a machine, or of the friction that a sweep measures.

    - breakaway force or torque: `peak` times the friction at speed 0. For a contact under a normal
      force, the normal force is `fn_max`.
    - Stribeck velocity: 1/fexp, the speed at which the Stribeck part of the friction has decreased
      to 1/e; for a law of the user, v_s of its `stribeck_dip`.
    - time constant with which the speed decays without dry friction: inertia divided by viscous
      friction. It requires a body that slides on a fixed support and on which only drives act.
    """
    if sweep is not None:
        yield from _of_sweep(model, sweep)
    if not isinstance(model, Mechanism):
        return
    for name, part in model.named_parts():
        if not isinstance(part, AbstractContact) or part.depends_on_torque:
            continue
        turns, pressed = is_rotational(part), isinstance(part, AbstractPressed)
        if turns is None:
            turns = is_rotational(model[part.between()[0].partition(".")[0]])
        field = getattr(type(part), "forward", "f_pos")
        ways = [(1, " forward", field), (-1, " backward", field.replace("_pos", "_neg"))]
        if part.law(-1) is part.law(1) or part.blocks_backward:
            ways = [(1, "", field)]
        for way, where, of in ways:

            def breakaway(m: Any, n: str = name, w: int = way, pressed: bool = pressed) -> Any:
                return m[n].holds(w, m[n].scale(m[n].fn_max) if pressed else 1.0)

            title = f"{name}: breakaway{where}{' at fn_max' if pressed else ''}"
            yield title, breakaway, "N.m" if turns else "N"
            path = f"{name}.{of}"
            law = part.law(way)
            if law.stribeck_dip is not None and float(law.stribeck_dip[1]) > 0:
                title = f"{path}: Stribeck velocity"
                yield (
                    title,
                    lambda m, n=name, w=way: 1.0 / m[n].law(w).stribeck_dip[1],
                    "rad/s" if turns else "m/s",
                )
            body = _carried_body(model, name, part)
            if body is not None and float(law.viscous_slope) > 0:
                title = f"{body}: time constant{where}"
                yield (
                    title,
                    lambda m, n=name, b=body, w=way: m[b].inertia() / m[n].law(w).viscous_slope,
                    "s",
                )


def _of_sweep(model: Any, sweep: Sweep) -> Iterator[Quantity]:
    steady, turns = as_steady(model), sweep.rotational
    ways: list[tuple[str, AbstractLaw]] = [("f_pos", steady.f_pos)]
    ways += [("f_neg", steady.f_neg)] if steady.f_neg is not None else []
    for branch, law in ways:
        title = branch if len(ways) > 1 else type(law).__name__
        if isinstance(model, SteadyFriction) and sweep.breakaway.any():
            yield (
                f"{title}: breakaway",
                lambda m, b=branch: m.peak * getattr(m, b).f0,
                "N.m" if turns else "N",
            )
        if law.stribeck_dip is not None and float(law.stribeck_dip[1]) > 0:
            yield (
                f"{title}: Stribeck velocity",
                lambda m, b=branch: 1.0 / getattr(as_steady(m), b).stribeck_dip[1],
                "rad/s" if turns else "m/s",
            )


def _carried_body(model: Mechanism, name: str, part: Any) -> str | None:
    """Return the name of the body that slides on a fixed support with friction of contact `name`.
    Return None if the support moves, if a normal force or a stop belongs to the contact, or if
    parts other than drives act on the body."""
    if isinstance(part, AbstractPressed | MassWithStopAndFriction):
        return None
    body, support = part.between()
    body = body.partition(".")[0]
    grounded = support is None or isinstance(model[support.partition(".")[0]], Fixed)
    held = any(
        isinstance(value, str) and value.partition(".")[0] == body
        for other, acting in model.named_parts()
        if other != name and not isinstance(acting, Force | Torque)
        for value in vars(acting).values()
    )
    return body if grounded and not held and isinstance(model[body], Mass | Inertia) else None


_TWO: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


@dataclasses.dataclass(frozen=True)
class Expression:
    """An arithmetic expression as a function. Its argument maps parameter paths to values. `paths`:
    the paths that occur in the expression."""

    function: Callable[[Mapping[str, Any]], Any]
    paths: tuple[str, ...]

    def __call__(self, by: Mapping[str, Any]) -> Any:
        return self.function(by)


def expression(text: str) -> Expression:
    """Convert `text` to an `Expression`. The text can contain numbers, paths, table entries such as
    ``friction.f_pos.f[2]``, ``+ - * / **`` and parentheses. The text is never run as Python code.

    >>> expression("2 * (rotor.J + load.J) / rotor.d**2")({"rotor.J": 3, "load.J": 1, "rotor.d": 2})
    2.0
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        raise _expression_error(text, "that is no arithmetic") from None
    paths: list[str] = []
    return Expression(_meaning(tree, text, paths), tuple(dict.fromkeys(paths)))


def _meaning(node: ast.AST, text: str, paths: list[str]) -> Callable[[Mapping[str, Any]], Any]:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        number = float(node.value)
        return lambda by: number
    if isinstance(node, ast.BinOp) and type(node.op) in _TWO:
        left, right, do = (
            _meaning(node.left, text, paths),
            _meaning(node.right, text, paths),
            _TWO[type(node.op)],
        )
        return lambda by: do(left(by), right(by))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        of, sign = (
            _meaning(node.operand, text, paths),
            -1.0 if isinstance(node.op, ast.USub) else 1.0,
        )
        return lambda by: sign * of(by)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        of, k = _meaning(node.value, text, paths), node.slice.value
        if isinstance(k, int):
            return lambda by: of(by)[k]
    path = _path(node)
    if path is None:
        raise _expression_error(text, f"{ast.unparse(node)!r} is none of these")
    paths.append(path)
    return lambda by: by[path]


def _path(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    before = _path(node.value) if isinstance(node, ast.Attribute) else None
    return f"{before}.{node.attr}" if before and isinstance(node, ast.Attribute) else None


def _expression_error(text: str, why: str) -> ValueError:
    return ValueError(
        f"A derived quantity must be numbers and paths of parameters joined by + - * / ** and"
        f" parentheses, got {text!r}: {why}. Write 'rotor.J / bearing.tau_pos.F_prop', say."
    )
