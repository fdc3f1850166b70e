"""The residual study of a fit: the patterns in the residuals of all records, as sentences."""

import dataclasses
from typing import Literal, get_args

from frictax.annotations import Checked
from frictax.fitting import FitResult, InverseDynamics, Windows
from frictax.handover import Verb
from frictax.measurements import Sweep
from frictax.notice import Notice
from frictax.parameters import UnknownName
from frictax.summary import Summarised, Summary
from frictax.verbs import ResidualStudyVerbs

from .patterns import (
    Columns,
    direction_means,
    position_curve,
    ripple,
    speed_curve,
    time_drift,
    whiteness,
)
from .regression import Finding
from .series import Series, channel_series, force_series, left, sweep_series

Kind = Literal["whiteness", "speed", "position", "direction", "time", "ripple"]
NAMES: tuple[Kind, ...] = get_args(Kind)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ResidualStudy(Summarised, ResidualStudyVerbs):
    """Patterns in the residuals of a fit, one sentence for each finding, the strongest first.
    `print` shows the sentences, and `plot()` a figure.

    The study tests the whiteness of the objective's own residuals. It tests all other patterns in
    the residual force, m*a - (sum of forces), at the fitted values. Positions and forces pass the
    same filter (as in `InverseDynamics`), and samples at standstill are left out. If forces are not
    determined, the study uses the objective's residuals, and `notices` contains the reason.

    A **strong** finding has a p value below 0.5 %, and explains more than 0.5 % of the residual's
    mean square beyond the other patterns. The test removes the part of the residual that other
    patterns explain, and regresses the residual on functions such as a sine. The covariance
    accounts for autocorrelation [1]. The effective sample size gives the degrees of freedom. The
    power of a ripple is also compared with the powers at neighbouring periods. The p value of a
    ripple accounts for the search over periods [2]. The whiteness test is that of Ljung and Box
    [3].

    **Source:** [1] D. W. K. Andrews, J. C. Monahan, Econometrica 60 (1992); [2] J. D. Scargle,
    Astrophysical Journal 263 (1982); [3] Biometrika 65 (1978).

    A pattern with a fitted parameter, such as an offset, is absent from the residuals. If residuals
    are not white and no other finding is strong, the notice `no-pattern-found` refers to `missing`,
    which also tests delays, compliance and small forces.

    - `findings`: all findings, the strongest first; ``study["speed"]``: strongest finding on speed.
    - `series`: the residuals that were studied; `notices`: remarks; `notes`: their texts.

    The model of this sledge lacks a ripple of its screw, 0.2 N every 0.1 m:

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 20.0, 4001)
    >>> s, v, a = np.sin(0.9 * t), 0.9 * np.cos(0.9 * t), -0.81 * np.sin(0.9 * t)
    >>> noise = 0.1 * np.random.default_rng(0).standard_normal(t.size)
    >>> pull = 2.0 * a + np.sign(v) + 0.2 * np.sin(2 * np.pi * s / 0.1) + noise
    >>> sledge = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0)),
    ...     drive=fx.Force("mass", 0.0),
    ... )
    >>> record = fx.Record(t, {"drive": pull}, {"mass.s": s}, name="run")
    >>> free = ["mass.m", "friction.f_pos.F_Coulomb"]
    >>> found = fx.fit(sledge, record, free=free, objective=fx.InverseDynamics(20.0))
    >>> study = found.residual_study()
    >>> print(study["ripple"])
    Residual force on mass repeats every ... mm (std. error ... mm) with an amplitude of
    ... N forward, ...
    >>> round(study["ripple"].numbers["period"], 3), round(study["ripple"].effect, 1)
    (0.1, 0.2)
    >>> study["ripple"].strong, study["time"].strong
    (True, False)
    """

    findings: tuple[Finding, ...]
    series: tuple[Series, ...]
    notices: tuple[Notice, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(map(str, self.notices))

    def __getitem__(self, name: Checked[Kind]) -> Finding:
        mine = [finding for finding in self.findings if finding.name == name]
        if not mine:
            raise UnknownName(
                f"There is no finding {name!r} in this study. It has: {', '.join(NAMES)}."
            )
        return mine[0]

    def _ipython_key_completions_(self) -> list[str]:
        return list(dict.fromkeys(finding.name for finding in self.findings))

    _repr_html_ = Verb("frictax.report.cards:study_html")

    def _summary(self) -> Summary:
        many = len({finding.record for finding in self.findings}) > 1
        head = lambda f: f"{f.name:<9}  " + (f"{f.record}: " if many else "")  # noqa: E731
        lines = [f"{'* ' if f.strong else '  '}{head(f)}{f.sentence}" for f in self.findings]
        return Summary(sentences=lines, notices=self.notes)


def residual_study(
    found: FitResult, label: str | None = None, *, cutoff: float | None = None
) -> ResidualStudy:
    """Return the patterns in the residuals of a fit: autocorrelation, and dependence on speed,
    position, direction and time, and a ripple over position. See `ResidualStudy`.

    For a sweep, the study tests speed and, if both directions were measured, also direction.
    `label`: name of one record, by default all records; `cutoff` [Hz] of the filter for the missing
    force, by default that of the objective `InverseDynamics`, otherwise as for `FreeRun`.
    """
    names = list(found.records)
    if label is not None:
        found.number(label)  # raises an error for an unknown label
        names = [label]
    objective = found.problem.objective
    if cutoff is None:
        cutoff = objective.cutoff if isinstance(objective, InverseDynamics) else None
    elif not cutoff > 0:
        raise ValueError(
            f"`residual_study` cutoff must be > 0 Hz, got {cutoff!r}. Leave it out for 50 Hz."
        )
    findings, studied, notices = [], [], []
    for name in names:
        record = found.records[name]
        if isinstance(record, Sweep):
            x = sweep_series(found, name)
            columns = Columns.from_series(x)
            findings.append(speed_curve(x, columns))
            if record.both_directions:
                findings.append(direction_means(x, columns))
            studied.append(x)
            continue
        for channel, at, e in left(found, name):
            findings.append(whiteness(name, channel, record.t[at], e))
        try:
            series = force_series(found, name, cutoff)
        except ValueError as why:
            numbers = {"objective": type(objective).__name__, "why": str(why)}
            notices.append(Notice("force-unknown", name, numbers))
            try:
                series = channel_series(found, name, cutoff)
            except ValueError as too:
                notices.append(Notice("record-not-studied", name, {"why": str(too)}))
                series = []
        for x in series:
            of_ripple, columns = ripple(x, Columns.from_series(x), 1.0 / record.rate)
            kinds = (speed_curve, position_curve, direction_means, time_drift)
            findings += [of_ripple, *(kind(x, columns) for kind in kinds)]
        studied += series
    strong = {f.name for f in findings if f.strong}
    # A filter makes even white noise autocorrelated, so `no-pattern-found` would be misleading.
    is_filtered = isinstance(objective, Windows) and not objective.free_starts
    is_filtered |= isinstance(objective, InverseDynamics) and objective.at_samples
    if strong == {"whiteness"} and not found.of_sweep and not is_filtered:
        notices.append(Notice("no-pattern-found"))
    findings.sort(key=lambda f: (not f.strong, -f.share))
    return ResidualStudy(tuple(findings), tuple(studied), tuple(notices))
