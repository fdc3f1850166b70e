"""What to mind about a result, as data: a code to act on, what it is about, and its numbers."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Notice:
    """One thing to mind about a result. Print it for its sentence, with the remedy.

    - `code`: a key of `TEXTS`, which never changes its meaning; docs/notices.md lists them all.
    - `subject`: the parameter, channel, drive or record that it is about; "" for none or several.
    - `numbers`: what the sentence says, by name; in SI unless the sentence has another unit. A
      notice of a record that a result passes on names it by `in_record`.

    >>> notice = Notice("near-bound", "friction.peak", {"bound": 1.0})
    >>> print(notice)
    friction.peak may be 1: its interval includes this bound.
    """

    code: str
    subject: str = ""
    numbers: Mapping[str, int | float | str] = dataclasses.field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        # of Python's types, as in JSON
        plain = {name: np.asarray(x).item() for name, x in self.numbers.items()}
        object.__setattr__(self, "numbers", plain)

    def __str__(self) -> str:
        numbers = {**_ADDED.get(self.code, {}), **self.numbers}
        said = TEXTS[self.code].format(subject=self.subject, **numbers)
        record = numbers.get("in_record")
        return said if record is None else f"Record {record!r}: {said}"

    def of_record(self, label: str) -> "Notice":
        """Return the notice as one of the record `label` among others."""
        return dataclasses.replace(self, numbers={**self.numbers, "in_record": label})

    def to_dict(self) -> dict[str, Any]:
        """Its fields, and the sentence as `text`."""
        return {**dataclasses.asdict(self), "text": str(self)}


_TABLE = """
search-flat
    The search ended after {steps} steps where no step reduces the misfit, although its gradient is
    not zero. This happens if parameters are hardly identifiable. Fit fewer parameters.

search-kink
    The search ended after {steps} steps at a kink of the misfit, where a stop or a breakaway
    appears or disappears. The errors are valid on one side of the kink only. For a free run,
    compare a fit with rounds=12.

search-edge
    The search ended at an edge of the misfit: {away:.2g} standard errors farther {subject} {does}
    at {time:.4g} s, and the sum of squares rises by {jump:.2g} times the variance of the noise.
    None of {looked} neighbouring sequences of events ends lower. The errors are those of this side.
    {verdict}

search-by-stages
    The run from the start values missed oscillations of the record. Therefore {stages} stages of
    the search used its first {percent:.2g} %, and three times as much in each stage. Check the
    start values.

search-by-rounds
    The search from the start ended at {before:.3g} times the noise of {subject}. {runs} runs in
    {rounds} of at most {most} rounds found an end at {after:.3g} times.

search-above-noise
    After {rounds} rounds of {runs} runs the residuals of {subject} in record {record!r} are not
    white noise of the size that the record has. Their root mean square is {ratio:.3g} times that
    noise. The machine lacks something, the noise is autocorrelated, or a lower misfit exists. Look
    at found.residual_study() and found.missing(), or fit with rounds={more}.

starts-of-free-run
    Fits by `{subject}` will no longer take `starts` and `spread`. Give `rounds` instead, rounds=12
    for a start that is far off.

search-unfinished
    {method} stopped after {steps} steps without meeting its tolerance. Allow more steps, or give a
    better start.

search-interrupted
    The search was interrupted after {steps} steps. These are the best values so far, with the
    errors of an unfinished search.

fits-unsettled
    {open} of {count} fits did not meet their tolerance. Their values are the last ones of the
    search, and they have no errors. Give a better start, or allow more steps.

steps-too-long
    The steps are too long for this motion. Shorter steps would move {subject} by {moved:.2g} {unit}
    or {errors:.2g} standard errors. Fit with engine=OnSamples({option}).

run-inaccurate
    Shorter steps change a state of the simulation by {error:.2g} of its range. Give the times more
    samples, or simulate with engine=Adaptive().

run-unchecked
    Runs with shorter and with longer steps did not reach the end, so the error of this run, stated
    as {error:.2g} of the range of its states, could not be checked. Give the times more samples, or
    simulate with engine=Adaptive().

bent-between-samples
    Inputs are interpolated linearly between samples. With smooth interpolation {subject} would
    change by {moved:.2g} {unit} or {errors:.2g} standard errors. The record does not decide between
    the two, so the interval covers both. Record faster, or fit a controlled machine by
    `ClosedLoop`.

table-left
    {subject} has rows from {first:.4g} to {last:.4g} {unit}, and the motion is at {reached:.4g}
    {unit}. The friction there is extrapolated from the table. Add rows up to this speed, or choose
    the `extrapolation` of the `Table`.

law-below-zero
    {subject} is {least:.3g} at a speed of {speed:.4g} {unit}. Friction does not drive, so its force
    there is taken as 0. Correct the law.

residuals-too-large
    The residuals are {ratio:.3g} times as large as the given standard deviations. The machine lacks
    something, these are too small, or a lower misfit exists. Look at found.residual_study(), and
    compare a free run with rounds=12 or `Windows(free_starts=True)`.

record-gaps
    Time has {gaps} of {length:.3g} s after {time:.6g} s, {then}.

record-twice
    Record {subject!r} has the same samples as record {first!r} and does not count. Give each record
    once.

record-ticks
    Output {subject!r} has one sample for each step of {step:.4g} {unit}, at uneven times, as of
    ticks. Its positions are taken as exact and its times as noisy. If its positions err, give
    their standard deviation as `sd`.

record-ticks-turn
    Output {subject!r} has one sample for each step of {step:.4g} {unit}, but its motion turns back.
    Its errors are taken as rounding to these steps, so intervals are too wide. Cut the record
    where the motion turns, `Record.trim`, and fit the parts as records.

record-long-steps
    Time steps are {step:.4g} s, {length:.4g} s in all: declare unit="ms" if the column holds
    milliseconds, else "s".

record-short-steps
    Time steps are {step:.3g} s, {length:.3g} s in all: declare the unit of the time, "s" if that is
    right.

record-begins-late
    Time begins at {time:.10g} s, so that few digits are left for its steps: use
    `trim(reset=True)`.

record-constant-input
    Input {subject!r} is {value:.4g} {unit} all the time. Check the column if the input moved.

levels-held
    Input {subject!r} jumps between {levels} levels and is held from sample to sample. If it is
    linear between samples, read the record with hold=False.

levels-joined
    Input {subject!r} jumps between {levels} levels and is interpolated linearly, like the other
    inputs. If all inputs are held from sample to sample, read the record with hold=True.

record-saturated
    {kind} {subject!r} stays at its {extreme} value, {value:.4g} {unit}, for {samples} samples from
    {time:.6g} s: {then}.

record-coarse
    Output {subject!r} has only {steps} steps of {step:.3g} {unit} between its least and greatest
    value: its sd is {least:.2g} {unit} at least.

record-sd-too-small
    Output {subject!r} has an sd of {sd:.3g} {unit}, less than its resolution allows (steps of
    {step:.3g} {unit}): give sd >= {least:.2g}.

record-sd-too-large
    Output {subject!r} has an sd of {sd:.3g} {unit}, more than it moves ({range:.3g} {unit} in all):
    check the unit of the sd.

record-unit-doubted
    Output {subject!r} {moves}: declare unit="{other}" if the column holds {whose}, else "{unit}".

record-wrapped
    Output {subject!r} jumps by a full turn after {time:.6g} s: unwrap it, `numpy.unwrap`.

record-lone-samples
    Output {subject!r}: {count} far from both neighbours, {value:.4g} {unit} at {time:.6g} s{more}:
    delete what no machine can do.

record-rate-unlike
    Output {subject!r} does not follow {other!r} (correlation {correlation:.2f}): check that both
    belong to {part!r}.

record-rate-against
    Output {subject!r} moves against {other!r} ({times:.3g} times what its integral gives): give one
    of the two sign=-1.

record-rate-size
    Output {subject!r} moves {times:.3g} times what the integral of {other!r} gives{slip}: correct
    one of the units.

record-read
    {told}

explains-nothing
    The fit does not explain {subject} of record {record!r}: the residuals are {misfit:.3g} {unit},
    and the deviation is {spread:.3g} {unit}, {beside}. Check its sign, unit and column. Then
    compare a free run with rounds=12, and a fit on `Windows` first. Otherwise the machine lacks a
    cause of the motion.

force-unexplained
    The residuals of {subject} in record {record!r} are {misfit:.3g} {unit}, {percent:.0f} % of the
    largest known force, and the noise of the measured motion explains less than a tenth of them.
    Check the signs, units and columns of motion and forces. Otherwise the machine lacks a term:
    print found.missing().

no-better-than-line
    A straight line through {subject} of record {record!r} has residuals of {line:.3g} {unit}, and
    the fit has {misfit:.3g} {unit}. Check the unit and the start of the run. Then compare a free
    run with rounds=12, and a fit on `Windows` first.

misfit-above-noise
    The misfit of {subject} in record {record!r} is {misfit:.3g} {unit}, {ratio:.3g} times its noise
    of {noise:.2g} {unit}. The machine lacks something, the noise is autocorrelated, or a lower
    misfit exists. Print found.missing(), and compare a free run with rounds=12 or
    `Windows(free_starts=True)`.

term-missing
    The residuals are not noise: {subject} would explain {percent:.0f} % of their squares, and noise
    explains as much in {chance:.1g} of all records. The machine lacks this term, or one that acts
    like it. Print found.missing().

residuals-unexplained
    The residuals are not noise, and none of the candidates of found.missing() explains them.
    Therefore the estimates may be off by more than their intervals. Look at found.residual_study().

remembers
    The residuals are autocorrelated over {percent:.2g} % of a record: an error of a sensor or of an
    input lasts that long, or the machine lacks a term. {allowed} Print found.missing() to look for
    a term.

tells-next-to-nothing
    The fit explains no more of the records than their mean, and the records contain hardly more
    than noise: {subject} of record {record!r} has {spread:.3g} {unit}, {beside}, and noise of
    {noise:.2g} {unit}. The estimates contain almost no information. Record a larger motion.

nothing-moves
    No free parameter of the machine changes what was measured. Probably the machine stands still
    with the start values. Start with less friction, from the measured start (measured_start=True),
    or from `start=InverseDynamics()`.

drive-without-input
    {subject} is 0 all the time, because no record has an input for it. Name its column,
    inputs={{{subject!r}: ...}}, or remove the part.

cutoff-above-rate
    Record {subject!r} at {rate:.4g} Hz cannot be filtered at {cutoff:g} Hz. At {used:.4g} Hz nearly
    all noise passes and biases the estimates. Give a lower `cutoff`, a few times the fastest
    motion.

forces-at-samples
    Forces are compared at samples, because {why}. Therefore the noise of the measured motion biases
    the estimates, and the intervals do not contain that bias. Use this fit as a start:
    objective=Windows(), start=InverseDynamics().

no-stretch
    Record {subject!r} has no stretch that is long enough in which every contact slides in one
    direction. Therefore forces are compared at samples, and there is no interval. Use this fit as a
    start, objective=Windows(), start=InverseDynamics(), or record fewer reversals.

motion-within-noise
    Only {share:.2g} of what identifies the parameters is motion, in the worst direction, and the
    rest is noise of the measured positions. Therefore there is no interval. Use this fit as a
    start, objective=Windows(), start=InverseDynamics(), or record a larger motion.

motion-near-noise
    Only {share:.2g} of what identifies the parameters is motion, in the worst direction, and the
    rest is noise of the measured positions. Therefore the intervals are less certain than usual.
    Compare them with those of objective=Windows().

samples-uncounted
    {percent:.0f} % of the samples of record {subject!r} do not count, because they follow a gap of
    more than 2.5 steps in their window. Shorter windows lose fewer samples.

starts-elsewhere
    {subject} starts at {start:.4g}, but record {record!r} starts at {measured:.4g}. Fit the start
    by own=[{subject!r}]. For a record with little noise {objective}(..., measured_start=True) is
    enough.

starts-at-another-speed
    {subject} starts at {start:.4g}, but {channel} of record {record!r} gives about {measured:.2g}.
    Write {objective}(..., measured_start=True), or fit the start by own=[{subject!r}].

left-at-bound
    {subject} stays at its bound {value:g}, because a search cannot leave this bound. Give it
    another start value to fit it.

near-bound
    {subject} may be {bound:g}: its interval includes this bound.

at-lower-bound
    {subject} is at its bound {bound:g}, and the data ask for a smaller value. It has no symmetric
    interval.

at-upper-bound
    {subject} is at its bound {bound:g}, and the data ask for a larger value. It has no symmetric
    interval.

ran-away
    {subject} went from {start:.3g} to {value:.3g}, where it has hardly any effect, and the data ask
    for even more. Check the signs and units of the record.

far-from-start
    {subject} is {times:.3g} times its start, {value:.3g} for {start:.3g} {unit}. Look at the units
    of the record and of the start. If both are right, compare a fit that starts there.

presliding-coarse
    {subject} is a guess: between its two directions the bristle moves by {way:.2g} {unit},
    {counts:.2g} steps of {channel} in record {record!r}, and an estimate needs 20. Record with a
    finer sensor, or take the value from elsewhere.

stiffness-in-series
    {subject} is a lower bound. In record {record!r} friction rises linearly to its limit: to 90 %
    of its change after {far:.2g} {unit} and to half after {half:.2g}. This indicates another
    stiffness in series. The estimate is the stiffness of both.

bristle-swings-unseen
    {subject} has hardly any effect: at rest the bristle oscillates at {frequency:.3g} Hz, and
    record {record!r} has {rate:.3g} samples a second, fewer than four in a period. Record faster,
    or fix it at 2*sqrt(sigma_0*m) - F_prop.

bristle-undamped
    {subject} went to 0: the record asks for no damping of the bristle. Either it never oscillates
    at rest, or the deflection is not in the friction. Use `Dahl`, or fix it at 2*sqrt(sigma_0*m) -
    F_prop.

breakaway-unseen
    {subject} has hardly any effect: the bristle carries at most {most:.3g} {unit}, and would break
    away at {f0:.3g} {unit} under a slow load, and earlier under a faster one. Load or reverse it
    slowly, or fix the parameter.

no-effect
    {subject} has no effect on what was measured and is not identifiable.

little-effect
    {subject} has hardly any effect on what was measured and is not identifiable.

acts-in-jumps
    The inputs are held between samples, so breakaway happens only at a sample. The simulation
    depends on {subject} in steps, and its derivative is zero. Compare fits with other values of
    {subject}.

ill-conditioned
    The condition number of the scaled Jacobian is {condition:.3g}: some combinations of the
    parameters are identified far worse than others. Fit fewer parameters, use `Windows` or
    `ClosedLoop`, or record a richer motion.

null-direction
    Only a combination of {names} can be determined (null direction {direction}). Fix one of them:
    leave it out of `free`.

few-windows
    There are only {windows}, so the intervals are accurate to an order of magnitude only. Shorten
    the windows to have at least {enough}, or record for longer.

records-differ
    The {records} records differ in {subject} by more than their errors, by {between:.2g} {unit} or
    {percent:.2g} % from one to the next (p = {probability:.2g}). Its interval is that of the mean
    of such records. To have one for each record, fit with own=["{subject}"].

memory-long
    The residuals are autocorrelated over {memory:.2g} {unit}, and a {of} lasts {length:.3g} {unit}.
    Therefore the intervals of {names} are accurate to an order of magnitude only. {remedy}.

memory-as-long
    The printed errors of {names} are lower limits: the residuals are autocorrelated over
    {memory:.2g} {unit}, and a {of} lasts {length:.3g} {unit}. {remedy}.

autocorrelation-not-excluded
    {rows} rows are too few to exclude an autocorrelation of {correlation:g} between the errors of
    neighbouring rows. The intervals assume {assumed}. With this autocorrelation they are wider:
    {wider}. Measure more rows.

zero-wanders
    The zero of a sensor seems to drift slowly, and a {of} of {length:.3g} {unit} contains little of
    the drift. Therefore the intervals of {names} are accurate to an order of magnitude only.
    {remedy}.

few-windows-tell
    Only a few windows contain information on {names}, so its interval is a rough estimate. Record
    for longer.

peak-unseen
    The data contain no breakaway rows, so peak is kept at {peak:g}. Measure the force at which
    motion begins, and declare these rows with `breakaway`.

direction-unseen
    The sweep has no rows in the direction of {subject}, so {subject} keeps its given value.

weight-or-friction
    The weight of a payload (a constant force) and an asymmetry of Coulomb friction have the same
    effect here. The two directions differ by {difference:.3g} {unit} at rest. This would be a
    constant force of {force:.3g} {unit} if friction were equal in both directions. Measure with
    another payload to separate the two.

offset-if-symmetric
    offset is the weight of a payload only if friction is equal in both directions, which this sweep
    cannot show.

offset-missing
    The two directions differ, and the model of this fit has no offset. With an offset AICc is
    {gain:.3g} lower: {difference}. Fit the offset: {call}. Coulomb friction that differs by
    direction has the same effect. Fit it with `f_neg` instead of `offset`.

directions-differ
    The two directions differ, and the model of this fit has one law for both. With a law for each
    direction AICc is {gain:.3g} lower: {difference}. Fit both laws: {call}.

lack-of-fit
    The law does not follow the sweep over speed ({test}, p = {probability:.2g}). It lies {side} the
    measured forces {where}, and white noise hardly does that. Compare laws, and look at
    found.residual_study(). Autocorrelated errors, for example from temperature, have the same
    effect.

row-lies-off
    Row {row} (counted from 0) at {speed:.4g} {unit} is an outlier: it is {times:.2g} standard
    deviations away from the law of the other rows (p = {probability:.2g}). Without it {subject}
    changes by {errors:.2g} standard errors. {remedy}.

doubtful-dip
    The Stribeck {terms} not identifiable: without Stribeck friction, noise alone gives an equal
    improvement in {percent:.0f} of 100 sweeps. Fit a Coulomb law, or measure lower speeds.

null-direction-always
    Only a combination of {names} can be determined for any motion (null direction {direction}). Fix
    one of them: leave it out of `free`.

hard-to-tell-apart
    {names} are strongly correlated: changing {changes} together changes what is measured by no more
    than its errors.

hard-to-tell
    {subject} is hardly identifiable: changing {changes} changes what is measured by no more than
    its errors.

cure
    Remedy: {experiment}; {gains}.

no-cure
    The values of {names} must come from elsewhere: leave them out of `free`, or give a prior.

draws-interrupted
    The sampling was interrupted after {drawn} of {asked} draws of each chain.

divergences
    {draws} draws end a path that the sampler could not follow. The density is too strongly curved
    there, or has a corner where a stop appears or disappears.

chains-apart
    The chains do not agree on {names} yet (R-hat should be below 1.01, ESS above 400). Ask for more
    `draws`, or give priors or bounds to what the data do not identify.

force-unknown
    Record {subject!r}: the missing force cannot be computed, so residuals of {objective} are
    studied: {why}

no-pattern-found
    The residuals are not white, and they have no pattern over speed, position, direction or time.
    Print found.missing(): its candidates also include delays, compliance and small forces.

record-not-studied
    Record {subject!r} is not studied: {why}

residuals-not-studied
    The residuals were not studied: {why}

outlook-not-asked
    The expected accuracy was not computed: {why}

population-left-out
    {count} of {records} records have no estimates and are left out: {reasons}.

population-near-bound
    {subject} has a normal and not a lognormal distribution here, because {count} of {records}
    records are within two errors of its bound {bound:g}. Its standard deviation is not relative.

population-unfinished
    The search for the standard deviations did not converge, so they are those of its last step. Ask
    for fewer parameters.

population-few-machines
    {machines} machines are too few for the covariance of {count} parameters. Standard deviations
    are accurate to an order of magnitude only, and outliers are hardly detected. Fit more machines,
    or ask for fewer parameters.

population-no-repeats
    No machine has two records, so the standard deviation between machines includes the differences
    between records. Name the machine of each record, and measure some machines twice.

population-no-spread
    {subject} differs between machines by no more than its errors: its standard deviation between
    machines may be 0 and is at most {most}.

population-unlike-its-machine
    {count} records differ from the others of their machine, {record} among them: look at
    records["within_chance"].

drift-without-temperature
    The table has no temperatures, so a drift may be caused by temperature, which changes friction
    more than wear does. Record it as the column `temperature` [degC].

drift-temperature-missing
    {count} of {records} records have no temperature and are left out.

drift-too-few
    {machines} of {all} machines have fewer than three dates and are not judged.

drift-remembers
    The residuals of {subject} are autocorrelated over {days:.3g} days. The errors of the slopes
    allow for this, so a drift is detected later than from as many independent records.

drift-records-off
    {count} values are more than four standard deviations away from the line of their machine
    ({names}) and do not count.

drift-left-out
    {count} of {records} records have no estimates or no date, and are left out.
"""
# Numbers of a sentence that notices in files of older versions do not have.
_ADDED = {
    "record-lone-samples": {"more": ""},
    "remembers": {"allowed": "The intervals allow for such an error."},
    "search-edge": {"verdict": "This fit did not compare its misfit with the noise."},
    "lack-of-fit": {"where": "at some speeds"},
    "row-lies-off": {"remedy": "Look at how it was measured, or fit with loss=Huber()"},
}
# Codes that results of older versions have and no fit makes any more.
OLD_CODES = frozenset({"search-by-stages"})
TEXTS = {code: " ".join(words) for code, *words in map(str.split, _TABLE.split("\n\n"))}
