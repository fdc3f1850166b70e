var simulation = (function () {
"use strict";
// The loop over the samples of a record, as of a run of frictax on samples.
function decode(text) {
  return new Float64Array(Uint8Array.from(atob(text), function (c) { return c.charCodeAt(0); }).buffer);
}
// Linear interpolation; before and after all times the first and the last value.
function interpolate(ts, first, n, read, t) {
  var low = first, high = first + n - 1;
  if (!(t > ts[low])) { return read(low); }
  if (!(t < ts[high])) { return read(high); }
  while (high - low > 1) {
    var middle = (low + high) >> 1;
    if (ts[middle] <= t) { low = middle; } else { high = middle; }
  }
  return read(low) + (t - ts[low]) / (ts[high] - ts[low]) * (read(high) - read(low));
}
// The outputs of a record with the parameters x: an array for each, the windows one after another.
// `stopped`: the time at which a run failed, or null.
function simulate(code, record, x) {
  var facts = code.facts, ts = record.t, n = ts.length, windows = record.windows, size = record.size;
  var states = facts.states, modes = facts.modes, judged = facts.judged, outputs = facts.outputs;
  var y = new Float64Array(states), mode = new Int32Array(modes), stopped = null;
  var start = new Float64Array(judged), ranges = new Float64Array(judged), inverse = new Float64Array(judged);
  code.numbers.call(x);
  var p = code.numbers.o;
  code.delays.call(p);
  var delays = Array.from(code.delays.o), given = new Float64Array(2 + 2 * record.inputs.length);
  var acting = record.inputs.map(function () { return new Float64Array(n); });
  var read = new Float64Array(record.inputs.length), raw = new Float64Array(outputs);
  for (var i = 0; i < n && read.length; i++) {
    record.inputs.forEach(function (values, j) {
      var at = function (k) { return values[k]; };
      read[j] = facts.late[0][j] ? interpolate(ts, 0, n, at, ts[i] - delays[j]) : values[i];
    });
    code.acting.call(p, ts[i] - ts[0], read);
    acting.forEach(function (values, j) { values[i] = code.acting.o[j]; });
  }
  var seen = [];
  for (i = 0; i < outputs; i++) { seen.push(new Float64Array(windows.length * size).fill(NaN)); }
  var since = new Float64Array(facts.starts.length), known = new Float64Array(since.length);
  windows.forEach(function (first, w) {
    var here = w * size, failure = 0, width, slack = 0;
    function give(i, last) {
      given[0] = ts[i];
      given[1] = last ? ts[i] + 1 : ts[i + 1];
      acting.forEach(function (values, j) {
        given[2 + 2 * j] = values[i];
        given[3 + 2 * j] = values[last ? i : i + 1];
      });
    }
    facts.starts.forEach(function (output, k) {
      var values = record.known[k], late = output >= 0 && facts.late[1][output];
      var at = ts[first] + (late ? delays[read.length + output] : 0);
      since[k] = at - ts[0];
      known[k] = late ? interpolate(ts, 0, n, function (j) { return values[j]; }, at) : values[w];
    });
    give(first, size === 1);
    code.begin.call(p, given, ts[first], since, known);
    var begun = code.begin.o || [], taken = code.step.o || [], whole = code.step.k;
    for (i = 0; i < states; i++) { y[i] = begun[i]; }
    for (i = 0; i < judged; i++) {
      start[i] = begun[states + i];
      ranges[i] = begun[states + judged + i];
      inverse[i] = begun[states + 2 * judged + i];
    }
    for (i = 0; i < modes; i++) { mode[i] = code.begin.k[i]; }
    width = code.begin.k[modes];
    for (var s = 0; s < size && !failure; s++) {
      var g = first + s, last = s === size - 1, t = ts[g], h = last ? 0 : ts[g + 1] - t;
      var parts = last ? 1 : record.steps[g] || record.substeps;
      give(g, last);
      for (var part = 0; part < parts && !failure; part++) {
        var from = part ? t + h * (part / parts) : t;
        var to = last ? t : part + 1 < parts ? t + h * ((part + 1) / parts) : ts[g + 1];
        if (!last) { slack = Math.min(1e-9 * (to - from) + 4 * 2.220446049250313e-16 * Math.abs(to), 0.1 * (to - from)); }
        code.step.call(p, given, from, to, slack, y, mode, width, start, ranges, inverse);
        if (part === 0) {
          code.outputs.call(p, given, t, taken, whole);
          for (i = 0; i < outputs; i++) { seen[i][here + s] = code.outputs.o[i]; }
        }
        for (i = 0; i < states; i++) { y[i] = taken[states + i]; }
        for (i = 0; i < judged; i++) {
          ranges[i] = taken[2 * states + i];
          inverse[i] = taken[2 * states + judged + i];
        }
        for (i = 0; i < modes; i++) { mode[i] = whole[modes + i]; }
        failure = whole[2 * modes + 1];
        width = whole[2 * modes + 2];
        if (failure && stopped === null) { stopped = from; }
      }
    }
    // What the sensors show. A delayed one shows the measurement of times before or after the run.
    var machine = seen.map(function (values) { return values.slice(here, here + size); });
    for (s = 0; s < size; s++) {
      var now = ts[first + s], span = ts[first + size - 1] - ts[first];
      machine.forEach(function (values, j) {
        var at = function (k) { return values[k - first]; };
        raw[j] = facts.late[1][j] ? interpolate(ts, first, size, at, now - delays[read.length + j]) : values[s];
      });
      code.shown.call(p, now - ts[0], raw);
      for (i = 0; i < outputs; i++) {
        var delay = delays[read.length + i], of = now - delay, value = code.shown.o[i];
        var unknown = facts.late[1][i] && (of < ts[first] || of > ts[first + size - 1]) && Math.abs(delay) <= 0.25 * span;
        seen[i][here + s] = unknown && isFinite(value) ? record.measured[i][here + s] : value;
      }
    }
  });
  return { outputs: seen, stopped: stopped };
}

var codes = [{{ codes | safe }}], page = {{ data | safe }};
page.records.forEach(function (record) {
  record.t = decode(record.t);
  ["inputs", "measured", "known"].forEach(function (name) { record[name] = record[name].map(decode); });
});
// Simulate the records again that the changed entries of x concern.
function run(x) {
  page.records.forEach(function (record) {
    var own = Float64Array.from(record.x, function (k) { return x[k]; });
    if (record.now && own.every(function (value, k) { return value === record.at[k]; })) { return; }
    record.now = simulate(codes[record.code], record, own);
    record.at = own;
  });
  return page.records;
}
return { run: run };
})();
