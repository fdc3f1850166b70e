"""Write a machine as C, JavaScript or structured text, with the loop over the samples."""

import itertools
import json
import math
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

import frictax
from frictax.annotations import Checked
from frictax.engine.options import OnSamples
from frictax.engine.result import FAILURES

from ..modelica_text import identifier
from .languages import C, JavaScript, StructuredText
from .machine import MachineCode
from .statements import REAL

PUBLIC = "fx_start", "fx_step", "fx_outputs"
# Words of structured text that cannot be the name of a variable
KEYWORDS = """
abs acos action add and any array asin at atan begin bool by byte case char class configuration
constant continue cos date dint div do dt dword else elsif end eq exit exp expt false for from
function ge goto gt if initial_step input int interface internal jmp le limit lint ln log lreal lt
lword max method min mod move mul mux namespace ne not null of on or output override pointer private
program property protected public real reference repeat resource ret retain return rol ror sel shl
shr sin sint sizeof sqrt step string struct sub super tan task then this time tod to transition true
trunc type udint uint ulint until usint using var while with word wstring xor
"""

C_RUN = """
/* Simulate n samples at the times ts [s]. inputs: n rows of FX_INPUTS values. outputs: n rows of
   FX_OUTPUTS values, NaN after a failure. events: the number of mode changes. Returns 0, or the
   number of the failure. p changes only where it holds the inputs. */
int32_t fx_run(double *p, int32_t n, const double *ts, const double *inputs, double *outputs,
               int32_t *events) {
  double y[FX_STATES + 1], o[2 * FX_STATES + 1];
  int32_t mode[FX_MODES + 1], k[2 * FX_MODES + 2], failure = 0;
  (void)inputs;
  *events = 0;
  for (int32_t i = 0; i < n; i++) {
    const double t = ts[i], t_end = i + 1 < n ? ts[i + 1] : t;
SET_INPUTS
    if (i == 0) fx_start(p, t, y, mode);
    for (int32_t s = 0; s < FX_SUBSTEPS && !failure; s++) {
      const double h = (t_end - t) / FX_SUBSTEPS;
      fx_step(p, t + s * h, s + 1 < FX_SUBSTEPS ? t + (s + 1) * h : t_end, y, mode, o, k);
      if (s == 0) fx_outputs(p, t, o, k, outputs + i * FX_OUTPUTS);
      for (int32_t j = 0; j < FX_STATES; j++) y[j] = o[FX_STATES + j];
      for (int32_t j = 0; j < FX_MODES; j++) mode[j] = k[FX_MODES + j];
      *events += k[2 * FX_MODES];
      failure = k[2 * FX_MODES + 1];
    }
    for (int32_t j = 0; failure && j < FX_OUTPUTS; j++) outputs[i * FX_OUTPUTS + j] = NAN;
  }
SET_DELAYS
  return failure;
}
"""
# `fx_delay` replaces a column of outputs by delayed values. A positive delay needs earlier rows, so
# `fx_delay` then runs from the last row to the first, otherwise from the first to the last.
C_DELAYS = """
static double fx_late(int32_t n, const double *ts, const double *x, int32_t width, int32_t column,
                      double t) {
  int32_t low = 0, high = n - 1;
  if (!(t > ts[0])) return x[column];
  if (!(t < ts[n - 1])) return x[(n - 1) * width + column];
  while (high - low > 1) {
    const int32_t middle = (low + high) / 2;
    if (ts[middle] <= t) low = middle;
    else high = middle;
  }
  const double a = x[low * width + column], b = x[high * width + column];
  return a + (b - a) * (t - ts[low]) / (ts[high] - ts[low]);
}
FX_MAYBE static void fx_delay(int32_t n, const double *ts, double *x, int32_t width, int32_t column,
                              double delay, double drift) {
  for (int32_t j = 0; j < n; j++) {
    const int32_t i = delay > 0 ? n - 1 - j : j;
    x[i * width + column] =
        fx_late(n, ts, x, width, column, ts[i] - delay) + drift * (ts[i] - ts[0]);
  }
}
"""
JAVASCRIPT_DELAYS = """
function fx_late(n,ts,x,width,column,t){
let low=0,high=n-1;if(!(t>ts[0]))return x[column];if(!(t<ts[n-1]))return x[high*width+column];
while(high-low>1){const middle=(low+high)>>1;if(ts[middle]<=t)low=middle;else high=middle}
const a=x[low*width+column],b=x[high*width+column];
return a+(b-a)*(t-ts[low])/(ts[high]-ts[low])}
function fx_delay(n,ts,x,width,column,delay,drift){
for(let j=0;j<n;j++){const i=delay>0?n-1-j:j;
x[i*width+column]=fx_late(n,ts,x,width,column,ts[i]-delay)+drift*(ts[i]-ts[0])}}
"""
JAVASCRIPT = """\
const fx_machine=(()=>{'use strict';
FUNCTIONS
const numbers=NUMBERS,parameters=PARAMETERS,outputs=OUTPUTS;
function run(p,ts,inputs){
const n=ts.length,y=new Float64Array(N_STATES),mode=new Int32Array(N_MODES),
out=new Float64Array(n*N_OUTPUTS).fill(NaN);let events=0,failure=0;
for(let i=0;i<n&&!failure;i++){const t=ts[i],t_end=i+1<n?ts[i+1]:t;SET_INPUTS
if(i===0){fx_start(p,t);FROM_START}
for(let s=0;s<SUBSTEPS&&!failure;s++){const h=(t_end-t)/SUBSTEPS;
fx_step(p,t+s*h,s+1<SUBSTEPS?t+(s+1)*h:t_end,y,mode);failure=fx_step_k[2*N_MODES+1];
if(s===0&&!failure){fx_outputs(p,t,fx_step_o,fx_step_k);out.set(fx_outputs_o,i*N_OUTPUTS)}
for(let j=0;j<N_STATES;j++)y[j]=fx_step_o[N_STATES+j];
for(let j=0;j<N_MODES;j++)mode[j]=fx_step_k[N_MODES+j];
events+=fx_step_k[2*N_MODES]}}
SET_DELAYS
return{outputs:out,events,failure}}
return{parameters,outputs,start:()=>Float64Array.from(numbers),run}})();
if(typeof module!=='undefined')module.exports=fx_machine;
"""
# `times` and `values` contain the latest samples of a channel (an input or output) in order of
# time. The first call of `fx_delay` fills them with the first sample.
TEXT_DELAY = """\
FUNCTION fx_delay : BOOL
VAR_IN_OUT
  times : ARRAY[0..LAST_KEPT] OF LREAL;
  values : ARRAY[0..LAST_KEPT] OF LREAL;
END_VAR
VAR_INPUT
  is_first : BOOL;
  t : LREAL;
  x : LREAL;
  delay : LREAL;
END_VAR
VAR_OUTPUT
  o0 : LREAL;
END_VAR
VAR
  i : DINT;
END_VAR
FOR i := 0 TO LAST_PAIR DO
  times[i] := SEL(is_first, times[i + 1], t);
  values[i] := SEL(is_first, values[i + 1], x);
END_FOR
times[LAST_KEPT] := t;
values[LAST_KEPT] := x;
o0 := values[0];
FOR i := 0 TO LAST_PAIR DO
  IF (times[i] <= t - delay) AND (times[i] < times[i + 1]) THEN
    o0 := MIN(1.0, (t - delay - times[i]) / (times[i + 1] - times[i]));
    o0 := values[i] + (values[i + 1] - values[i]) * o0;
  END_IF
END_FOR
fx_delay := TRUE;
END_FUNCTION

"""
STRUCTURED_TEXT = """\
(* Call this block once in each sample interval of dt seconds. *)
FUNCTION_BLOCK FX_Machine
VAR_INPUT
  dt : LREAL;
INPUTS
END_VAR
VAR_OUTPUT
OUTPUTS
  events : DINT;
  failure : DINT;
END_VAR
VAR
  t : LREAL := FIRST;
  h : LREAL;
  started : BOOL;
  s : DINT;
  fired : DINT;
  y : ARRAY[0..LAST_STATE] OF LREAL;
  y_at : ARRAY[0..LAST_STATE] OF LREAL;
  mode : ARRAY[0..LAST_MODE] OF DINT;
  mode_at : ARRAY[0..LAST_MODE] OF DINT;
MEMORY
  p : ARRAY[0..LAST_NUMBER] OF LREAL := [VALUES];
END_VAR
SET_INPUTS
IF NOT started THEN
  fx_start(p := p, t := t, START);
END_IF
FOR s := 0 TO LAST_STEP DO
  IF failure = 0 THEN
    h := dt / STEPS;
    fx_step(p := p, t := t + h * DINT_TO_LREAL(s), t_end := t + h * DINT_TO_LREAL(s + 1),
      y := y, mode := mode, STEP);
    IF s = 0 THEN
      fx_outputs(p := p, t := t, y := y_at, mode := mode_at, READ);
DELAY_OUTPUTS
    END_IF
    events := events + fired;
  END_IF
END_FOR
t := t + dt;
started := TRUE;
END_FUNCTION_BLOCK
"""


def to_c(
    machine: Any,
    ts: Any = None,
    *,
    engine: Checked[OnSamples] = OnSamples(),  # noqa: B008
    inputs: Checked[Mapping[str, str] | None] = None,
    outputs: Sequence[str] | None = None,
) -> str:
    """Return C99 code that simulates a machine and locates events between the samples.

    The code needs the C standard library only, and does not allocate memory. `fx_run` simulates a
    whole record, `fx_step` one interval between samples. All numbers of the machine are in the
    vector `p`, whose initial values are `fx_numbers`. For each number, the table `fx_parameters`
    lists the index in `p`, name, unit and value, and the interval (min, max) of a fitted number.

    **Arguments:**

    - `machine`: a `Mechanism`, an `AbstractHybridSystem`, or a fit. A fitted machine has the inputs
      of its first record. The outputs of a fitted machine are the values that its sensors measure.
    - `ts`, shape (n,): times of the samples [s]; by default the times of the record, or of the
      longest `Sampled` signal.
    - `engine`: the method and its tolerance. The code takes equal time steps without error control.
      The code uses the smallest number of time steps between samples (at most 64) that keeps the
      error below the allowed error. The error is the deviation of the states at `ts` from a
      reference simulation, relative to each state's range. The allowed error is 100 times the
      tolerance, or 1e-3 with 64 steps. A comment in the code reports the error.
    - `inputs`: signals whose values the caller gives, such as ``{"drive.f": "held"}``: ``"held"``
      keeps a value until the next sample, ``"linear"`` interpolates between samples. All other
      signals are part of the code.
    - `outputs`: names of variables; by default all positions, speeds and friction forces.

    **Raises:** `ValueError` if the simulation ends before the last sample, has an error above 1e-3,
    or needs an operation that C does not have.

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 3.0, 301)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0)),
    ...     drive=fx.Force("mass", fx.Sampled(t, 5.0 * np.sin(9.0 * t))),
    ... )
    >>> "int32_t fx_run(" in to_c(block)
    True
    """
    return c_text(MachineCode(machine, ts, engine, inputs or {}, outputs))


def c_text(code: MachineCode) -> str:
    language = C(PUBLIC)
    number = lambda x: language.literal(x, REAL)  # noqa: E731
    functions = language.print(code.program)
    heads = [language.signature(f) + ";" for f in code.program.functions if f.name in PUBLIC]
    rows = [
        f"  {{{i}, {json.dumps(n.name)}, {json.dumps(n.unit)}, {number(n.value)},"
        f" {number(n.lower)}, {number(n.upper)}}},"
        for i, n in enumerate(code.numbers)
        if n.listed
    ]
    values = ", ".join(number(n.value) for n in code.numbers) or "0"
    sets = _set_inputs(code, ("t", "t_end > t ? t_end : t + 1.0"), _inputs_of_run(code))
    parts = {
        "SET_INPUTS": "\n".join(f"    p[{i}] = {x};" for i, x in sets),
        "SET_DELAYS": "\n".join(_delays(code, "outputs", "FX_OUTPUTS")),
    }
    return "\n".join(
        [
            *(f"// {line}" for line in _comment(code)),
            language.head(functions),
            f"enum {{ FX_STATES = {code.states}, FX_MODES = {code.modes}, FX_NUMBERS ="
            f" {len(code.numbers)},\n       FX_PARAMETERS = {len(rows)}, FX_OUTPUTS ="
            f" {len(code.outputs)}, FX_INPUTS = {len(code.inputs)},"
            f" FX_SUBSTEPS = {code.substeps} }};",
            "typedef struct { int32_t place; const char *name, *unit; double value, min, max; }"
            " fx_parameter;",
            "typedef struct { const char *name, *unit; } fx_output;",
            "extern const fx_parameter fx_parameters[];",
            "extern const double fx_numbers[];",
            "extern const fx_output fx_columns[];",
            *heads,
            C_RUN[C_RUN.index("int32_t fx_run") : C_RUN.index(" {\n  double")] + ";",
            "",
            "const fx_parameter fx_parameters[] = {",
            *(rows or ["  {0},"]),
            "};",
            *textwrap.wrap(f"const double fx_numbers[] = {{{values}}};", 98),
            "const fx_output fx_columns[] = {",
            *(f"  {{{json.dumps(n)}, {json.dumps(unit)}}}," for n, unit in code.outputs.items()),
            "};",
            "",
            functions,
            C_DELAYS.strip() if code.delayed else "",
            re.sub(r"\n\s*\n", "\n", _fill(C_RUN, parts)).strip(),
            "",
        ]
    )


def to_javascript(
    machine: Any,
    ts: Any = None,
    *,
    engine: Checked[OnSamples] = OnSamples(),  # noqa: B008
    inputs: Checked[Mapping[str, str] | None] = None,
    outputs: Sequence[str] | None = None,
) -> str:
    """Return JavaScript that simulates a machine from sample to sample: an object `fx_machine`.

    `fx_machine.parameters` lists for each number its index in `p`, name, unit, value, min and max.
    `fx_machine.outputs` lists the name and the unit of each output.
    ``fx_machine.run(fx_machine.start(), ts, inputs)`` returns `outputs` (one row for each sample),
    the number of `events`, and `failure` (0 for success). `to_c` describes arguments and errors.

    **Example:** at `to_c`.
    """
    return javascript_text(MachineCode(machine, ts, engine, inputs or {}, outputs))


def javascript_text(code: MachineCode) -> str:
    parameters = [
        {"place": i, "name": n.name, "unit": n.unit, "value": n.value}
        | {k: v for k, v in (("min", n.lower), ("max", n.upper)) if math.isfinite(v)}
        for i, n in enumerate(code.numbers)
        if n.listed
    ]
    sets = _set_inputs(code, ("t", "t_end>t?t_end:t+1"), _inputs_of_run(code))
    from_start = ["y.set(fx_start_o);"] * (code.states > 0) + ["mode.set(fx_start_k)"] * (
        code.modes > 0
    )
    parts = {
        "FUNCTIONS": JavaScript().print(code.program).strip()
        + (JAVASCRIPT_DELAYS.rstrip() if code.delayed else ""),
        "PARAMETERS": json.dumps(parameters, separators=(",", ":")),
        "NUMBERS": json.dumps([n.value for n in code.numbers], separators=(",", ":")),
        "OUTPUTS": json.dumps([{"name": n, "unit": u} for n, u in code.outputs.items()]),
        "SET_INPUTS": "".join(f"p[{i}]={x};" for i, x in sets),
        "SET_DELAYS": "".join(_delays(code, "out", str(len(code.outputs)))),
        "FROM_START": "".join(from_start),
        "SUBSTEPS": str(code.substeps),
        "N_STATES": str(code.states),
        "N_MODES": str(code.modes),
        "N_OUTPUTS": str(len(code.outputs)),
    }
    comment = "".join(f"// {line}\n" for line in _comment(code))
    return comment + _fill(JAVASCRIPT, parts)


def to_structured_text(
    machine: Any,
    ts: Any = None,
    *,
    engine: Checked[OnSamples] = OnSamples(),  # noqa: B008
    inputs: Checked[Mapping[str, str] | None] = None,
    outputs: Sequence[str] | None = None,
) -> str:
    """Return structured text of IEC 61131-3 that simulates a machine from sample to sample.

    Each call of the function block `FX_Machine` simulates one interval between samples. The block's
    arguments are the length of the interval and the inputs; a linear input has a second argument,
    its value at the end of the interval. A program may change the numbers `p` of the machine. In
    the text, 1.0E+300 replaces infinity and NaN. A comment names each variable whose name the
    language does not allow, such as `größe.s`. `to_c` describes arguments and errors.

    **Example:** at `to_c`.
    """
    return structured_text(MachineCode(machine, ts, engine, inputs or {}, outputs))


def structured_text(code: MachineCode) -> str:
    language = StructuredText()
    functions = language.print(code.program)
    by = {f.name: f for f in code.program.functions}

    def taken(name: str, o: Sequence[str], k: Sequence[str]) -> str:
        """Return text that assigns real results to variables `o`, and other results to `k`."""
        to = {"o": o, "k": k}
        results = by[name].places
        return ", ".join(f"{letter}{i} => {to[letter][i]}" for _, letter, i in results)

    y, y_at = ([f"{x}[{i}]" for i in range(code.states)] for x in ("y", "y_at"))
    mode, mode_at = ([f"{x}[{i}]" for i in range(code.modes)] for x in ("mode", "mode_at"))
    variables = _variables(code)
    words, columns = variables[: len(code.inputs)], variables[len(code.inputs) :]
    arguments = words + [
        f"{word}_end"
        for word, (how, *_) in zip(words, code.inputs.values(), strict=True)
        if how == "linear"
    ]
    since = f"(t - {language.literal(code.first, REAL)})"
    delays = {c: code.numbers[code.instruments[c] + 3].value for c in code.delayed}
    kept = 2 * math.ceil(max(delays.values(), default=0.0) / np.min(np.diff(code.ts))) + 4
    before, values = _inputs_of_text(code, words, {c for c in delays if delays[c] > 0}, since)
    sets = _set_inputs(code, ("t", "t + dt"), values)
    after = _outputs_of_text(code, columns, delays, since)
    memory = _memory_of_text("\n".join(before + after), f"ARRAY[0..{kept - 1}] OF LREAL")
    parts = {
        "INPUTS": "\n".join(f"  {word} : LREAL;" for word in arguments),
        "OUTPUTS": "\n".join(f"  {word} : LREAL;" for word in columns),
        "MEMORY": "\n".join(memory),
        "SET_INPUTS": "\n".join([*before, *(f"p[{i}] := {x};" for i, x in sets)]),
        "VALUES": ", ".join(language.literal(n.value, REAL) for n in code.numbers) or "0.0",
        "FIRST": language.literal(code.first, REAL),
        "LAST_STATE": str(max(code.states - 1, 0)),
        "LAST_MODE": str(max(code.modes - 1, 0)),
        "LAST_NUMBER": str(max(len(code.numbers) - 1, 0)),
        "LAST_STEP": str(code.substeps - 1),
        "LAST_KEPT": str(kept - 1),
        "LAST_PAIR": str(kept - 2),
        "STEPS": f"{code.substeps}.0",
        "START": taken("fx_start", y, mode),
        "STEP": taken("fx_step", [*y_at, *y], [*mode_at, *mode, "fired", "failure"]),
        "READ": taken("fx_outputs", columns, []),
        "DELAY_OUTPUTS": "\n".join(f"      {line}" for line in after),
    }
    left = [
        f"The fit has a delay of {delay:.6g} s in {channel}, which this code leaves out, because it"
        " would need future samples."
        for channel, delay in delays.items()
        if delay < 0
    ]
    left += [
        f"The variable {word} is {name.replace('*)', '* )')}."
        for name, word in zip((*code.inputs, *code.outputs), variables, strict=True)
        if word != name.replace(".", "_")
    ]
    if memory:
        left.append(f"Delays can be at most {kept // 2 - 1} times dt.")
    comment = "".join(f"(* {line} *)\n" for line in [*_comment(code), *left])
    return comment + functions + _fill(TEXT_DELAY * bool(memory) + STRUCTURED_TEXT, parts)


def _variables(code: MachineCode) -> list[str]:
    """Return a variable of structured text for each input, and then for each output. The language
    has ASCII names, ignores their case, and does not allow `_` at the end or twice in succession.
    """
    taken = {*KEYWORDS.split(), *(f.name for f in code.program.functions), "fx_machine", "fx_delay"}
    taken |= set(re.findall(r"^  (\w+) : ", STRUCTURED_TEXT, re.MULTILINE))
    out = list[str]()
    for name in (*code.inputs, *code.outputs):
        plain = re.sub("_+", "_", identifier(name.replace(".", "_"))).rstrip("_")
        plain = plain if plain[:1].isalpha() else f"x{plain}"
        words = itertools.chain([plain], (f"{plain}_{i}" for i in itertools.count(2)))
        word = next(x for x in words if x.lower() not in taken)
        taken |= {word.lower() + end for end in ("", "_end", "_times", "_values", "_late")}
        out.append(word)
    return out


def _late(code: MachineCode, channel: str, word: str, value: str, to: str, t: str = "t") -> str:
    """Return a call of `fx_delay`: it stores `value` at time `t` and sets `to` to a past value.
    `word`: the variable of the channel.
    """
    is_first = "NOT started" if t == "t" else "FALSE"
    return (
        f"fx_delay(times := {word}_times, values := {word}_values, is_first := {is_first},"
        f" t := {t}, x := {value}, delay := p[{code.instruments[channel] + 3}], o0 => {to});"
    )


def _fill(text: str, parts: Mapping[str, str]) -> str:
    """Return `text` with each word in capitals that is a key of `parts` replaced by its value."""
    return re.sub(r"\b[A-Z][A-Z_]+\b", lambda match: parts.get(match[0], match[0]), text)


def _inputs_of_run(code: MachineCode) -> list[tuple[str, str]]:
    """Return two expressions for each input: its values at sample i and at the next sample."""
    width, pairs = len(code.inputs), list[tuple[str, str]]()
    for column, name in enumerate(code.inputs):
        pair = list[str]()
        for row in ("i", "(i+1<n?i+1:i)"):
            read, delay = f"inputs[{row}*{width}+{column}]", f"p[{_place(code, name) + 3}]"
            if f"inputs.{name}" in code.delayed:
                read = f"fx_late(n,ts,inputs,{width},{column},ts[{row}]-{delay})"
            pair.append(_acting(code, name, read, f"(ts[{row}]-ts[0])"))
        pairs.append((pair[0], pair[1]))
    return pairs


def _inputs_of_text(
    code: MachineCode, words: Sequence[str], late: Collection[str], since: str
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the calls that delay inputs, and two expressions for each input (at the start and the
    end of a cycle). `late`: delayed channels; `since`: expression for the elapsed time.
    """
    calls, values = list[str](), list[tuple[str, str]]()
    for (name, (how, *_)), word in zip(code.inputs.items(), words, strict=True):
        now, end, channel = word, f"{word}_end", f"inputs.{name}"
        if channel in late:
            now, end = f"{now}_late", f"{end}_late"
            calls.append(_late(code, channel, word, word, now))
            if how == "linear":
                calls.append(_late(code, channel, word, f"{word}_end", end, "t + dt"))
        both = _acting(code, name, now, since), _acting(code, name, end, f"({since} + dt)")
        values.append(both)
    return calls, values


def _outputs_of_text(
    code: MachineCode, columns: Sequence[str], delays: Mapping[str, float], since: str
) -> list[str]:
    """Return the lines of code that delay outputs and add the drift of their sensors."""
    lines = list[str]()
    for name, word in zip(code.outputs, columns, strict=True):
        if (channel := f"outputs.{name}") in delays:
            lines += [_late(code, channel, word, word, word)] * (delays[channel] > 0)
            lines.append(f"{word} := {word} + p[{code.instruments[channel] + 2}] * {since};")
    return lines


def _memory_of_text(lines: str, array: str) -> list[str]:
    """Return declarations of the variables that the calls of `fx_delay` in `lines` use."""
    names = dict.fromkeys(re.findall(r"\w+(?:_times|_values|_late)\b", lines))
    return [f"  {x} : {'LREAL' if x.endswith('_late') else array};" for x in names]


def _place(code: MachineCode, name: str) -> int:
    return code.instruments.get(f"inputs.{name}", 0)


def _acting(code: MachineCode, name: str, read: str, since: str) -> str:
    """Return an expression for the input `read` after gain, offset, and drift over time `since`."""
    if f"inputs.{name}" not in code.instruments:
        return read
    at = _place(code, name)
    return f"p[{at}]*{read} + p[{at + 1}] + p[{at + 2}]*{since}"


def _delays(code: MachineCode, array: str, width: str) -> list[str]:
    columns = {f"outputs.{name}": column for column, name in enumerate(code.outputs)}
    places = [(columns[c], code.instruments[c]) for c in code.delayed if c in columns]
    return [
        f"  fx_delay(n,ts,{array},{width},{column},p[{at + 3}],p[{at + 2}]);"
        for column, at in places
    ]


def _set_inputs(
    code: MachineCode, times: tuple[str, str], values: Sequence[tuple[str, str]]
) -> list[tuple[int, str]]:
    """Return (index in `p`, expression) for each number in `p` that is set from an input."""
    out: list[tuple[int, str]] = []
    for (how, time, value), now in zip(code.inputs.values(), values, strict=True):
        if how == "held":
            out.append((value, now[0]))
        else:
            out += [(time + i, times[i]) for i in (0, 1)] + [(value + i, now[i]) for i in (0, 1)]
    return out


def _comment(code: MachineCode) -> list[str]:
    failures = [f"{i}: {text.partition('. ')[0].rstrip('.')}." for i, text in FAILURES.items()]
    steps = "one step" if code.substeps == 1 else f"{code.substeps} steps"
    return [
        f"Written by frictax {frictax.__version__}: {steps} from each sample to the next.",
        f"Error of the run that was exported: {code.error:.1e} of the range of a state.",
        "Failures:",
        *(f"  {line}" for line in failures),
    ]
