"""The default noise model: for each parameter, the widest interval of several noise models."""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.special import fdtrc, fdtri

from frictax.arguments import check_count
from frictax.fitting import FitResult, InverseDynamics
from frictax.fitting.problem.problem import PreparedSweep, Problem
from frictax.fitting.result.identifiability import join_names
from frictax.fitting.result.spread import CovarianceEstimate, Memoized
from frictax.fitting.result.sweep_checks import outliers, residuals_without
from frictax.notice import Notice
from frictax.pytree import pytree_dataclass, static

from .autoregression import Autoregression
from .clusters import Clustered, cluster_covariance, compare_records, has_windows
from .input_noise import (
    EncoderSteps,
    InputNoise,
    Whitened,
    are_rounded,
    input_noise_exceeds_sensors,
    motion_share,
    without_intervals,
)
from .linearization import Linearization, LinearNoiseModel, NoiseModel, White, linearize


@pytree_dataclass
class Guarded(NoiseModel):
    """The default noise model of `fit`. The interval of each parameter is the widest interval of
    several noise models. Each model has its own degrees of freedom of Student's t.

    - The usual model: `Clustered()` on `Windows`, and `Autoregression()` for a run. Residuals of
      `InverseDynamics` are whitened, so the covariance is their variance times inv(X'X), where X is
      their Jacobian. With `at_samples` the residuals are not whitened, and only the guard is used.
    - The guard, `Clustered(10)`: the differences between ten blocks of time. An F test decides
      whether the guard is used. If the usual model is right, this test selects the guard in three
      of ten records. Without the test, chance often selects the guard.
    - `InputNoise`, for a run whose misfit exceeds the noise of its sensors.
    - `EncoderSteps`, for a run with rounded outputs. `EncoderSteps` replaces the other models if
      all outputs are rounded and no other model gives an interval more than twice as wide.

    Between samples, inputs may follow straight lines or smooth curves. If straight lines and smooth
    curves lead to different estimates, the difference is added to the errors of each model.

    If a parameter differs between records by more than its standard errors (Welch's test), its
    interval follows from the differences between whole records. A notice names the parameter.

    The rows of a sweep do not have times. Therefore the usual model of a sweep is `White()`. Each
    of the following models is added if the residuals show the errors that it describes:

    - `Autoregression`, with rows in order of speed in each direction, and in table order;
    - `Autoregression` of the mean row of each speed, if the deviations of the mean rows from the
      fit exceed the scatter of the replicates (F test);
    - standard errors by the squares of single residuals ("HC2"), if this error of the parameter is
      larger than in four of five draws of white noise.

    **Arguments:** `blocks`: the number of time blocks of the guard, in all records together.

    **Source:** B. L. Welch, "On the comparison of several mean values", Biometrika 38 (1951); see
    `Clustered` and `Autoregression`.

    **Example:** `FitResult.uncertainty` compares all noise models.
    """

    blocks: int = static(default=10)

    def __post_init__(self) -> None:
        check_count("`Guarded.blocks`", self.blocks, 2, "10 are usual.")

    def spread(self, found: FitResult) -> CovarianceEstimate:
        linear = linearize(found)
        if all(isinstance(p, PreparedSweep) for p in found.problem.prepared):
            return _sweep_errors(linear)
        share = motion_share(found)
        if share < 0.8:  # In tests with a smaller share, intervals did not contain the true values.
            return without_intervals(found, share)
        guard = Clustered(self.blocks)
        usual = self.usual_model(found.problem) or guard
        made = [usual.estimate(linear)] + ([] if usual is guard else [guard.estimate(linear)])
        steps = (False, False)
        if isinstance(usual, Autoregression):
            if input_noise_exceeds_sensors(found):
                made.append(InputNoise().estimate(linear))
            steps = are_rounded(found)
            if any(steps):
                made.append(EncoderSteps().estimate(linear))
        differ, notices = compare_records(linear, usual)
        if share < 0.95:
            notices = (*notices, Notice("motion-near-noise", "", {"share": share}))
        if differ.any():
            record = linear.samples.record
            says = f"scatter between {record[-1] + 1} records"
            made.append(cluster_covariance(linear, record, says))
        # `bends`: standard deviations of the estimates due to the interpolation of the inputs.
        bends = np.zeros(len(linear.acts))
        if found.bends is not None:
            bends = found.bends.spread * np.array(list(found.bends.moved.values()))
        # Smaller variances of `bends` are left out: they increase each error by less than 1 %.
        if np.any(bends**2 > 0.02 * np.diag(made[0].covariance)):
            made = [
                dataclasses.replace(
                    one,
                    covariance=one.covariance + np.outer(bends, bends),
                    says=f"{one.says} and interpolation of the inputs",
                )
                for one in made
            ]
        parts = [linear.to_all_parameters(one) for one in made]
        if all(steps) and not differ.any():
            directions = np.eye(len(found.x))[found.shown & found.active]
            *others, last = [part.half_width(found.level, directions) for part in parts]
            # Errors from ten blocks vary by up to a factor of 2 by chance. If no error exceeds
            # twice the rounding error (`last`), rounding explains all errors.
            if np.all(np.max(others, axis=0, initial=0.0) <= 2.0 * last):
                return dataclasses.replace(parts[-1], notices=notices)
        # The scatter between whole records applies only to parameters in which the records differ.
        where = np.ones((len(parts), len(found.x)), bool)
        if differ.any():
            where[-1] = np.any(linear.follow[:, differ], axis=1)
        return _widest(found, parts, where, int(usual is not guard), notices)

    def usual_model(self, problem: Problem) -> LinearNoiseModel | None:
        """Return the usual noise model for the objective; None if only the guard is used."""
        if has_windows(problem):
            return Clustered()
        if problem.objective.whitens():
            return Whitened()
        return None if isinstance(problem.objective, InverseDynamics) else Autoregression()


def _sweep_errors(linear: Linearization) -> CovarianceEstimate:
    """Return for each parameter of a sweep the widest interval of the models in `Guarded`."""
    found = linear.found
    parts, where = [White().spread(found)], [np.ones(len(found.x), bool)]
    forces = np.concatenate([np.ravel(p.weight * p.measured) for p in found.problem.prepared])
    # Residuals below this limit are rounding errors.
    is_exact = bool(np.linalg.norm(linear.residuals) < 1e-9 * np.linalg.norm(forces))
    is_coloured, p = False, len(linear.acts)
    # At least 6 rows more than parameters are necessary to estimate an autocorrelation.
    is_long = np.sum(linear.counted) - np.sum(linear.acts) >= 6
    for one in [] if is_exact else _in_order(linear):
        by_replicates, is_autocorrelated = len(one.residuals) < len(linear.residuals), False
        if is_long and not by_replicates:
            # The autocorrelation must exceed the autocorrelation of 90 % of draws of white noise.
            # With few rows, the criterion for the order of an autoregression is not reliable.
            r = _with_white_draws(one)
            pairs = [np.stack([part[1:], part[:-1]]) for _, _, parts in one.rows for part in parts]
            after, before = np.concatenate(pairs, axis=1)
            products, squares = np.sum(r[after] * r[before], axis=0), np.sum(r**2, axis=0)
            likeness = products / np.maximum(squares, 1e-300)
            is_autocorrelated = float(np.mean(likeness >= likeness[0] - 1e-12)) <= 0.1
        if by_replicates or is_autocorrelated:
            errors = Autoregression().estimate(one)
            if by_replicates or errors.allows_autocorrelation:
                parts.append(linear.to_all_parameters(errors))
                where.append(np.ones(p, bool))
                is_coloured |= errors.allows_autocorrelation
    unequal = np.zeros(p, bool)
    if not is_exact and not found.problem.noise_known:
        # Find parameters whose error by the squares of single residuals ("HC2") is larger than in
        # four of five draws of white noise. With few rows, a stricter test rarely finds one.
        root, _ = linear.axes
        seen = linear.jacobian @ root
        left = 1.0 - np.sum(seen**2, axis=1)
        share = np.divide(1.0, left, out=np.zeros_like(left), where=left > 1e-6) * linear.counted
        weight = (seen @ root.T) ** 2 * share[:, None]
        squares = _with_white_draws(linear) ** 2
        ratio = weight.T @ (squares / np.maximum(squares.sum(axis=0), 1e-300))
        unequal = np.mean(ratio >= ratio[:, :1] * (1 - 1e-9), axis=1) <= 0.2
    if unequal.any():
        rows = np.arange(len(linear.residuals))
        errors = cluster_covariance(linear, rows, "rows with unequal errors")
        errors = dataclasses.replace(errors, allows_autocorrelation=False)
        parts.append(linear.to_all_parameters(errors))
        where.append(unequal)
    out = _widest(found, parts, np.array(where), 0, ())
    # The two orders of the rows (speed, table) can give the same notice. The first notice is used.
    first = {n.code: n for n in reversed(out.notices)}
    notices = tuple(reversed(first.values()))
    if not notices and not is_exact:
        notices = _autocorrelation_not_excluded(linear, out, is_coloured)
    return dataclasses.replace(out, notices=notices)


@dataclasses.dataclass(frozen=True)
class _Widest(CovarianceEstimate):
    """A covariance whose intervals are the widest of several noise models. `of_each`: function of
    directions (m, q) and level that returns half the interval width of each model (parts, m).
    """

    of_each: Callable[[np.ndarray, float], np.ndarray] = dataclasses.field(kw_only=True)

    def half_width(
        self, level: float, directions: Float[np.ndarray, "m q"]
    ) -> Float[np.ndarray, " m"]:
        return self.of_each(directions, level).max(axis=0)


def _widest(
    found: FitResult,
    parts: list[CovarianceEstimate],
    where: np.ndarray,
    guard: int,
    notices: tuple[Notice, ...],
) -> CovarianceEstimate:
    """Return the widest intervals of the noise models `parts`. `where` (parts, q): true if a model
    applies to a parameter. `guard`: index of the guard (`Clustered`) in `parts`; 0 without a guard.
    """
    level = found.level
    of_each = Memoized(functools.partial(_half_widths_of_parts, parts, where, guard))
    dof = Memoized(functools.partial(_dof_of_widest, parts, of_each, level))
    wins = of_each(np.eye(len(found.x)), level).argmax(axis=0)
    size = np.sqrt([np.maximum(np.diag(part.covariance), 0.0) for part in parts])
    own = size[wins, np.arange(len(wins))]
    # The correlations are those of the noise model that applies to most parameters. Each standard
    # error is that of the noise model that applies to its parameter.
    shown, active = found.shown, found.active
    most = int(np.argmax(np.bincount(wins[shown & active], minlength=len(parts))))
    scale = np.divide(own, size[most], out=np.ones_like(own), where=size[most] > 0)
    covariance = parts[most].covariance * np.outer(scale, scale)
    # Name the assumption for the error of each parameter, the usual model first.
    names = [
        [n for n, w, a in zip(found.names, wins[shown], active[shown], strict=True) if a and w == k]
        for k in range(len(parts))
    ]
    used = [k for k in range(len(parts)) if names[k]] or [0]
    says = parts[used[0]].says
    if len(used) > 1:
        says = "; ".join(f"{parts[k].says}, for {join_names(names[k])}" for k in used)
    more = (n for part in parts for n in part.notices)
    return _Widest(covariance, dof, says, (*notices, *more), of_each=of_each)


def _half_widths_of_parts(
    parts: list[CovarianceEstimate],
    where: np.ndarray,
    guard: int,
    directions: Float[np.ndarray, "m q"],
    level: float,
) -> Float[np.ndarray, "k m"]:
    """Return half the interval width for each model and direction; 0 if a model is not used."""
    applies = ((directions != 0) @ where.T).T
    # The guard applies if it has at least 2 degrees of freedom and passes the F test.
    if guard:
        free, usual = parts[guard].dof(directions), parts[0].dof(directions)
        rounded = np.minimum(np.nan_to_num([free, usual], nan=1.0), 1e6)
        # If both variances are equal, their estimated ratio is below this limit in 7 of 10 cases.
        most = fdtri(*np.maximum(rounded, 1.0), 0.7)
        mine, theirs = (
            np.einsum("mi,ij,mj->m", directions, part.covariance, directions)
            for part in (parts[0], parts[guard])
        )
        applies[guard] &= (free >= 2.0) & (theirs > most * mine)
    return np.where(applies, [part.half_width(level, directions) for part in parts], 0.0)


def _dof_of_widest(
    parts: list[CovarianceEstimate],
    of_each: Callable[[np.ndarray, float], np.ndarray],
    level: float,
    directions: Float[np.ndarray, "m q"],
) -> Float[np.ndarray, " m"]:
    """Return for each direction the degrees of freedom of the model with the widest interval."""
    wins = of_each(directions, level).argmax(axis=0)
    return np.array([part.dof(directions) for part in parts])[wins, np.arange(len(wins))]


def _in_order(linear: Linearization) -> list[Linearization]:
    """Return linearised fits whose series are the rows of sweeps: in order of speed, and also in
    the order of the table if the two orders differ. The residuals of outliers are set to 0, because
    two neighbouring outliers look like autocorrelation."""
    found, record = linear.found, linear.samples.record
    sweeps, r = list(found.records.values()), linear.residuals
    off = outliers(sweeps, found.full_residuals[: len(r)], linear.jacobian)
    # The residuals of other rows are scaled, so that the mean square stays equal.
    if off.any():
        others = np.where(off, 0.0, residuals_without(off, r, linear.jacobian))
        r = others * (np.linalg.norm(r) / max(np.linalg.norm(others), 1e-300))
        linear = dataclasses.replace(linear, residuals=r)
    as_they_stand, by_speed, differ = [], [], False
    for i, sweep in enumerate(sweeps):
        first, mine = int(np.argmax(record == i)), np.flatnonzero(linear.counted & (record == i))
        rows = mine - first
        order = mine[np.lexsort((np.abs(sweep.velocity[rows]), sweep.direction[rows]))]
        cut = np.flatnonzero(np.diff(sweep.direction[order - first])) + 1
        as_they_stand.append((i, 1.0, [mine]))
        by_speed.append((i, 1.0, np.split(order, cut)))
        differ |= any(np.any(np.abs(np.diff(part)) != 1) for part in by_speed[-1][2])
    of_speed = _average_replicates(linear, by_speed) or dataclasses.replace(
        linear, rows=tuple(by_speed)
    )
    stand = dataclasses.replace(
        linear, rows=tuple(as_they_stand), order="in the order of the table"
    )
    return [of_speed, stand] if differ else [of_speed]


def _average_replicates(
    linear: Linearization, series: list[tuple[int, float, list[np.ndarray]]]
) -> Linearization | None:
    """Replace replicates (rows with equal speed) by their weighted mean. Return None if the scatter
    of the replicates explains the deviations of the means from the fit (test of lack of fit).

    **Source:** N. R. Draper, H. Smith, *Applied Regression Analysis*, 3rd ed. (1998), section 2.1.
    """
    sweeps = list(linear.found.records.values())
    starts = np.concatenate([[0], np.cumsum([s.n for s in sweeps])])
    count, parts = np.zeros(len(linear.residuals), int), []
    last = -1
    for i, _, stretches in series:
        mine = []
        for rows in stretches:
            speed = sweeps[i].velocity[rows - starts[i]]
            number = last + 1 + np.concatenate([[0], np.cumsum(np.diff(speed) != 0)])
            count[rows], last = number, int(number[-1])
            mine.append(np.arange(number[0], last + 1))
        parts.append((i, 1.0, mine))
    counted = np.flatnonzero(linear.counted)
    size = np.bincount(count[counted], minlength=last + 1)
    n, m, p = counted.size, last + 1, int(np.sum(linear.acts))
    if n - m < 3 or m - p < 1:  # too few replicates, or too few speeds
        return None
    both = np.column_stack([linear.jacobian, linear.residuals])[counted]
    sums = np.zeros((m, both.shape[1]))
    np.add.at(sums, count[counted], both)
    sums /= np.sqrt(size)[:, None]
    between = float(np.sum(sums[:, -1] ** 2))
    within = max(float(np.sum(both[:, -1] ** 2)) - between, 1e-300)
    if fdtrc(m - p, n - m, between / (m - p) / (within / (n - m))) > 0.05:
        return None
    return dataclasses.replace(
        linear,
        jacobian=sums[:, :-1],
        residuals=sums[:, -1],
        counted=np.ones(m, bool),
        rows=tuple(parts),
        noise=float(np.sqrt(between / (m - p))),
        order="in order of speed, with rows of one speed as one row",
    )


def _with_white_draws(linear: Linearization) -> Float[np.ndarray, "n k"]:
    """Return 200 columns: the residuals, and the residuals of fits to 199 draws of white noise."""
    root, _ = linear.axes
    basis, _ = np.linalg.qr(linear.jacobian @ root)
    noise = np.random.default_rng(0).standard_normal((len(linear.residuals), 199))
    noise = np.where(linear.counted[:, None], noise, 0.0)
    return np.column_stack([linear.residuals, noise - basis @ (basis.T @ noise)])


def _autocorrelation_not_excluded(
    linear: Linearization, spread: CovarianceEstimate, allows: bool
) -> tuple[Notice, ...]:
    """Return a notice if the rows are compatible with an autocorrelation of 0.8, and the intervals
    of `spread` are too narrow for it. `allows`: True if `spread` accounts for autocorrelation.

    The test uses the ratio of the sums of squares of generalised and of ordinary least squares.
    Quantiles of the ratio, and interval widths, come from 999 simulated draws of autocorrelated
    errors. The test rejects a true autocorrelation of 0.8 in 3 % of sweeps.
    """
    found, wider = linear.found, np.zeros(len(linear.acts))
    rows, told = int(np.sum(linear.counted)), linear.acts
    if rows - np.sum(told) > 100:  # With more rows, the test can always decide.
        return ()
    half, level = spread.half_width(found.level, np.eye(len(told))), found.level
    correlation = 0.8  # correlation of neighbouring rows; typical if a machine warms up in a sweep
    for one in _in_order(linear):
        if not one.residuals.any():
            continue
        n, root = len(one.residuals), np.eye(len(one.residuals))
        for stretch in (stretch for _, _, stretches in one.rows for stretch in stretches):
            at = np.arange(len(stretch))
            lags = np.abs(np.subtract.outer(at, at))
            root[np.ix_(stretch, stretch)] = np.linalg.cholesky(correlation**lags)
        noise = np.random.default_rng(0).standard_normal((n, 999))
        errors = np.where(one.counted[:, None], np.column_stack([one.residuals, root @ noise]), 0.0)
        axes, _ = one.axes
        columns = one.jacobian @ axes
        ordinary = _residual_squares(columns, errors)
        general = _residual_squares(np.linalg.solve(root, columns), np.linalg.solve(root, errors))
        ratio = general / np.maximum(ordinary, 1e-300)
        if np.mean(ratio >= ratio[0] * (1 - 1e-9)) < 0.03:  # the test excludes the correlation
            continue
        moved, size = np.abs(axes @ (columns.T @ errors[:, 1:])), 1.0
        if not found.problem.noise_known:
            scale = np.sqrt(ordinary)
            moved, size = moved / np.maximum(scale[1:], 1e-300), scale[0]
        half_with = np.quantile(moved, level, axis=1) * size
        wider = np.fmax(wider, np.divide(half_with, half, out=np.zeros_like(half), where=told))
    named = [i for i in np.flatnonzero(wider > 1.2) if np.isfinite(wider[i])]
    if not named:
        return ()
    factors = ", ".join(f"{found.names[i]} {wider[i]:.2g} times" for i in named)
    assumed = "the autocorrelation that residuals show" if allows else "independent rows"
    numbers = {"rows": rows, "assumed": assumed, "correlation": correlation, "wider": factors}
    return (Notice("autocorrelation-not-excluded", "", numbers),)


def _residual_squares(
    columns: Float[np.ndarray, "n s"], y: Float[np.ndarray, "n k"]
) -> Float[np.ndarray, " k"]:
    """Fit each column of `y` by `columns` (least squares). Return the sums of squared residuals."""
    basis, _ = np.linalg.qr(columns)
    return np.sum((y - basis @ (basis.T @ y)) ** 2, axis=0)
