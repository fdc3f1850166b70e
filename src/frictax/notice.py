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
    friction.peak cannot be told from 1: its interval reaches that bound.
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
    The search ended after {steps} steps: no step makes the misfit less although its slope says so,
    as where parameters can hardly be told apart. Fit fewer.

search-kink
    The search ended after {steps} steps at a kink: no step makes the misfit less although its slope
    says so, for a stop or a breakaway appears or vanishes there. Compare a free run with rounds=12;
    the errors hold on one side of the kink only.

search-edge
    The search ended at an edge of the misfit: {away:.2g} standard errors farther {subject} {does}
    at {time:.4g} s, and the sum of squares rises by {jump:.2g} times the variance of the noise.
    None of {looked} neighbouring sequences of events ends lower. The errors are those of this side.
    {verdict}

search-by-stages
    From the start the run missed swings of the record: {stages} stages searched it by its first
    {percent:.2g} %, then three times as much each time. Look at the start values.

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
    {method} stopped after {steps} steps without meeting its tolerance: allow more, or give a better
    start.

search-interrupted
    Interrupted after {steps} steps: these are the best values so far, their errors those of an
    unfinished search.

fits-unsettled
    {open} of {count} fits did not meet their tolerance: their values are where the search ended,
    and they have no errors. Give a better start, or allow more steps.

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
    Inputs are taken as straight between samples. Were they smooth curves, {subject} would move by
    {moved:.2g} {unit} or {errors:.2g} standard errors, and samples do not tell which they are: its
    interval reaches that far. Record faster, or fit by `ClosedLoop` what a controller drives.

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
    Input {subject!r} is {value:.4g} {unit} all the time: check the column, if that is not so.

levels-held
    Input {subject!r} jumps between {levels} levels and is held from sample to sample. Read the
    record with hold=False if it goes straight from one sample to the next.

levels-joined
    Input {subject!r} jumps between {levels} levels and is joined by straight lines, as the other
    inputs are. Read the record with hold=True if all are held from sample to sample.

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
    {subject} of record {record!r} is not explained: the fit leaves {misfit:.3g} {unit} of it, and
    there is no more to explain than {spread:.3g} {unit}, {beside}. Look at its sign, unit and
    column, then compare a free run with rounds=12, and a fit on `Windows` first; else the machine
    lacks what moves it.

force-unexplained
    The fit leaves {percent:.0f} % of the largest force that is known as {subject} of record
    {record!r}, {misfit:.3g} {unit}, and the noise of the measured motion makes less than a tenth of
    that. Look at the signs, units and columns of motion and forces; else the machine lacks a term:
    print found.missing().

no-better-than-line
    A straight line through {subject} of record {record!r} leaves {line:.3g} {unit}, the fit leaves
    {misfit:.3g} {unit}. Look at its unit and at where the run begins, then compare a free run with
    rounds=12, and a fit on `Windows` first.

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
    The fit explains no more of the records than their mean, and what they show is hardly more than
    noise: {subject} of record {record!r} has {spread:.3g} {unit}, {beside}, and noise of
    {noise:.2g} {unit}. The numbers tell next to nothing; record a larger motion.

windows-too-short
    {subject} of record {record!r} moves by {range:.3g} {unit}, but by hardly more than noise in
    windows of {length:.2g} s: {spread:.3g} {unit}, {beside}, and noise of {noise:.2g} {unit}.
    Therefore the fit explains no more than the mean of each window. Give longer windows.

nothing-moves
    Nothing of the machine that may move changes what was measured: does the machine stand still
    with the start values? Start from less friction, where the record begins (measured_start=True),
    or from `start=InverseDynamics()`.

drive-without-input
    {subject} is 0 all the time: no record has an input for it. Name its column,
    inputs={{{subject!r}: ...}}, or leave the part out.

cutoff-above-rate
    Record {subject!r} at {rate:.4g} Hz cannot be filtered at {cutoff:g} Hz, and at {used:.4g} Hz,
    as it is, nearly all noise passes and biases what is found: give a lower `cutoff`, a few times
    the fastest motion.

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
    {percent:.0f} % of the samples of record {subject!r} do not count: they come after a gap of more
    than 2.5 steps in their window. Shorter windows lose fewer.

starts-elsewhere
    {subject} starts at {start:.4g}, record {record!r} at {measured:.4g}: the run begins elsewhere
    than the measurement. Fit the start by own=[{subject!r}]. For a record with little noise
    {objective}(..., measured_start=True) is enough.

starts-at-another-speed
    {subject} starts at {start:.4g}, and by {channel} record {record!r} at about {measured:.2g}: the
    run begins at another speed than the measurement. Write {objective}(..., measured_start=True),
    or fit the start by own=[{subject!r}].

left-at-bound
    {subject} stays at its bound {value:g}, from which no search moves it. Start it elsewhere to fit
    it.

near-bound
    {subject} cannot be told from {bound:g}: its interval reaches that bound.

at-lower-bound
    {subject} lies on its bound {bound:g}: the data ask for no more of it. No symmetric interval
    applies.

at-upper-bound
    {subject} lies on its bound {bound:g}: the data ask for more than that. No symmetric interval
    applies.

ran-away
    {subject} went from {start:.3g} to {value:.3g}, where it hardly acts: the data ask for ever more
    of it. Look at the signs and units of the record.

far-from-start
    {subject} is {times:.3g} times its start, {value:.3g} for {start:.3g} {unit}. Look at the units
    of the record and of the start. If both are right, compare a fit that starts there.

presliding-coarse
    {subject} is a guess: between its two directions the bristle gives way by {way:.2g} {unit},
    {counts:.2g} steps of {channel} in record {record!r}, and should by 20. Record it by a finer
    sensor, or take it from elsewhere.

stiffness-in-series
    {subject} is a lower bound: in record {record!r} friction rises along a straight line to its
    limit, to 90 % of its swing after {far:.2g} {unit} and to half after {half:.2g}, as where
    something else gives way in series. What is found is the stiffness of both.

bristle-swings-unseen
    {subject} hardly shows: at rest the bristle swings at {frequency:.3g} Hz, and record {record!r}
    has {rate:.3g} samples a second, less than four a swing. Record faster, or hold it at
    2*sqrt(sigma_0*m) - F_prop.

bristle-undamped
    {subject} went to 0: the record asks for no damping of the bristle, as where it never swings at
    rest, or where what gives way is no friction. Take `Dahl`, or hold it at 2*sqrt(sigma_0*m) -
    F_prop.

breakaway-unseen
    {subject} hardly shows: the bristle bears {most:.3g} {unit} at most, and would break away at
    {f0:.3g} {unit} if it were loaded slowly; the faster, the sooner. Load or reverse it slowly, or
    hold it.

no-effect
    {subject} has no effect on what was measured and is not identifiable.

little-effect
    {subject} has hardly any effect on what was measured and is not identifiable.

acts-in-jumps
    Held inputs change at samples only, for which a breakaway waits: {subject} acts in jumps, which
    no derivative sees. Compare fits with other values of it.

ill-conditioned
    The scaled Jacobian's condition is {condition:.3g}: some combinations of the parameters are told
    far worse than others. Fit fewer, on `Windows` or `ClosedLoop`, or record a richer motion.

null-direction
    {names} cannot be told apart: the data fix only a combination of them (null direction
    {direction}). Leave one of them out of `free`.

few-windows
    Only {windows}: intervals are an order of magnitude. Shorten them to have {enough} or more, or
    record longer.

records-differ
    The {records} records differ in {subject} by more than their errors, by {between:.2g} {unit} or
    {percent:.2g} % from one to the next (p = {probability:.2g}): its interval is that of the mean
    of such records. To have one for each, fit with own=["{subject}"].

memory-long
    The residuals remember {memory:.2g} {unit} and a {of} lasts {length:.3g} {unit}: intervals of
    {names} are an order of magnitude. {remedy}.

memory-as-long
    Nothing can be said of the errors of {names}, but that they are no less than printed: the
    residuals remember {memory:.2g} {unit} and a {of} lasts {length:.3g} {unit}. {remedy}.

autocorrelation-not-excluded
    {rows} rows are too few to exclude an autocorrelation of {correlation:g} between the errors of
    neighbouring rows. The intervals assume {assumed}. With this autocorrelation they are wider:
    {wider}. Measure more rows.

zero-wanders
    The zero of a sensor seems to wander, slowly, and a {of} of {length:.3g} {unit} shows little of
    how: intervals of {names} are an order of magnitude. {remedy}.

few-windows-tell
    Few windows tell {names}: such an interval is an order of magnitude. Record longer.

peak-unseen
    peak cannot be known from sliding rows alone and stays at {peak:g}: measure the force at which
    motion begins, and declare these rows with `breakaway`.

direction-unseen
    {subject} cannot be known and stays as given: the sweep has no rows in its direction.

weight-or-friction
    A payload's weight (a constant force) cannot be told from an asymmetry of Coulomb friction here:
    the two directions differ by {difference:.3g} {unit} at rest, which would be a constant force of
    {force:.3g} {unit} if friction were the same both ways. Measure with another payload to tell.

offset-if-symmetric
    offset is a payload's weight only if friction is the same in both directions, which this sweep
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
    found.residual_study(). Autocorrelated errors, as by temperature, look alike.

row-lies-off
    Row {row} (counted from 0) at {speed:.4g} {unit} lies {times:.2g} standard deviations off the
    law of the others (p = {probability:.2g}). Without it {subject} moves by {errors:.2g} standard
    errors. {remedy}.

doubtful-dip
    The Stribeck {terms} not identifiable: where there is no dip at all, noise alone shows one as
    deep in {percent:.0f} of 100 sweeps. Fit a Coulomb law, or measure slower speeds.

null-direction-always
    {names} cannot be told apart: what is measured fixes only a combination of them (null direction
    {direction}), whatever the motion. Leave one of them out of `free`.

hard-to-tell-apart
    {names} are hard to tell apart: to change {changes} together changes what is measured by no more
    than its errors.

hard-to-tell
    {subject} is hard to tell: to change {changes} changes what is measured by no more than its
    errors.

cure
    Cure: {experiment}; {gains}.

no-cure
    For {names} take a value from elsewhere: leave out of `free`, or give a prior.

draws-interrupted
    Interrupted: {drawn} of {asked} draws of each chain.

divergences
    {draws} draws end a path that the sampler could not follow: the density bends too sharply there,
    or has a corner, as where a stop appears or vanishes.

chains-apart
    The chains do not tell {names} well yet (R-hat should be below 1.01, ESS above 400): ask for
    more `draws`, or give priors or bounds to what the data do not tell.

force-unknown
    Record {subject!r}: the force that is missing cannot be told, so residuals of {objective} are
    studied: {why}

no-pattern-found
    The residuals are not white, and no pattern over speed, position, direction or time is found in
    them. Print found.missing(): its candidates also include delays, compliance and small forces.

record-not-studied
    Record {subject!r} is not studied: {why}

residuals-not-studied
    What the fit leaves was not studied: {why}

outlook-not-asked
    What the records can tell was not asked: {why}

population-left-out
    {count} of {records} records have no numbers and are left out: {reasons}.

population-near-bound
    {subject} is taken as it is and not by its logarithm: {count} of {records} records lie within
    two errors of its bound {bound:g}. The spread of such a number is no share of it.

population-unfinished
    The search for the spreads did not come to its end: they are where it stopped. Ask for fewer
    numbers.

population-few-machines
    {machines} machines hardly tell how {count} numbers vary together: spreads are an order of
    magnitude, and outliers are hardly told. Fit more machines, or ask for fewer numbers.

population-no-repeats
    No machine has two records: the spread between machines holds what differs from record to
    record, too. Name the machine of each record, and measure some of them twice.

population-no-spread
    {subject} differs between machines by no more than its errors: the spread may be 0 and is at
    most {most}.

population-unlike-its-machine
    {count} records are unlike the others of their machine, {record} among them: look at
    records["within_chance"].

drift-without-temperature
    The table has no temperatures: what is called drift may be the temperature, which moves friction
    more than wear does. Record it, as the column `temperature` [degC].

drift-temperature-missing
    {count} of {records} records have no temperature and are left out.

drift-too-few
    {machines} of {all} machines have fewer than three dates and are not judged.

drift-remembers
    What is left of {subject} remembers {days:.3g} days from record to record: slopes allow for it,
    and are told later than from as many records that forget.

drift-records-off
    {count} values lie more than four standard deviations off the line of their machine, of {names},
    and do not count for it.

drift-left-out
    {count} of {records} records have no numbers, or no date, and are left out.
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
