(function () {
  "use strict";
  var root = document.documentElement, drawn = [], sliders = [], values = [];
  var narrow = window.matchMedia("(max-width: 600px)").matches;
  var system = window.matchMedia("(prefers-color-scheme: dark)");
  var dusk = {
    "#222222": "#e4e6ea", "#1B1B1B": "#e4e6ea", "#eceef1": "#2a2e35", "#c9cdd3": "#59606a",
    "white": "rgba(0,0,0,0)", "#0072B2": "#4db0ee", "#D55E00": "#f5813b", "#dddddd": "#4a5058"
  };
  function dark() { return root.dataset.theme ? root.dataset.theme === "dark" : system.matches; }
  function element(id) { return document.getElementById(id); }

  // Pictures: a copy in the colours of the day for each drawing. Only colours change, not names.
  function coloured(figure, night) {
    return JSON.parse(JSON.stringify(figure), function (key, value) {
      return night && /color$/.test(key) && dusk[value] || value;
    });
  }
  function draw(night) {
    return Promise.all(drawn.map(function (name) {
      var figure = coloured(report.plots[name], night), layout = figure.layout;
      if (narrow) { layout.font.size = 11; layout.margin.l = 48; layout.margin.r = 6; }
      return Plotly.react(element("plot-" + name), figure.data, layout, {
        responsive: true, displaylogo: false, displayModeBar: narrow ? false : "hover",
        modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"]
      });
    })).then(function () { return move(false); });
  }

  // The library and the simulation are packed in the page.
  function unpacked(text) {
    var bytes = Uint8Array.from(atob(text), function (c) { return c.charCodeAt(0); });
    var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }
  function start(texts) {
    texts.forEach(function (text) {
      var script = document.createElement("script");
      script.textContent = text;
      document.head.append(script);
    });
    drawn = Object.keys(report.plots);
    return draw(dark());
  }

  // A number > 0 without exponent where possible.
  function plain(x, figures) {
    return x >= 100 && x < 1e6 ? String(Number(x.toPrecision(figures))) : x.toPrecision(figures);
  }

  // Sliders: `values` are their numbers, in the units of the page.
  function changed(k) { return values[k] !== report.moving.sliders[k].value; }
  var resting;
  function move(moves) {
    if (!report.moving || !sliders.length) { return; } // without sliders the page shows no rms
    var changes = {}, touched = values.map(function (_, k) { return k; }).filter(changed);
    function change(plot, trace, ys) {
      var mine = changes[plot] = changes[plot] || { y: [], traces: [] };
      mine.y.push(ys);
      mine.traces.push(trace);
    }
    var rms = (window.simulation ? simulate : approximate)(touched, change);
    report.moving.rms.forEach(function (channel, j) {
      var found = Math.sqrt(channel.squares / channel.n);
      var now = isFinite(rms[j]) ? plain(rms[j], 3) + " " + channel.unit : "not known";
      element("rms-" + j).textContent = channel.says + ": " + (channel.word || "rms") + " " + now +
        (touched.length && channel.squares ? " (fit " + plain(found, 3) + ")" : "");
    });
    clearTimeout(resting);
    function redraw() {
      return Promise.all(Object.keys(changes).map(function (name) {
        return Plotly.restyle(element("plot-" + name), { y: changes[name].y }, changes[name].traces);
      }));
    }
    // While a slider moves, only the lines move. The axes follow when the slider rests.
    var sketched = moves && Object.keys(changes).every(function (name) {
      return changes[name].traces.every(function (trace, i) { return sketch(name, trace, changes[name].y[i]); });
    });
    if (!sketched) { return redraw(); }
    resting = setTimeout(redraw, 200);
  }
  // Move one line in the picture; false if the picture does not have one line for the trace.
  function sketch(name, trace, ys) {
    var plot = element("plot-" + name), full = plot._fullData && plot._fullData[trace];
    if (!full || full.mode !== "lines" || full.visible !== true) { return false; }
    var lines = plot.querySelectorAll(".trace" + full.uid + " path.js-line"), path = "", up = true;
    var x = plot._fullLayout[full.xaxis.replace("x", "xaxis")], y = plot._fullLayout[full.yaxis.replace("y", "yaxis")];
    if (!lines.length) { return false; }
    ys.forEach(function (value, i) {
      if (value !== null) { path += (up ? "M" : "L") + x.l2p(full.x[i]).toFixed(1) + "," + y.l2p(value).toFixed(1); }
      up = value === null;
    });
    lines.forEach(function (line, i) { line.setAttribute("d", i ? "M0,0" : path); });
    return true;
  }
  // The exact derivative: base + sum of slope times position. Returns the rms of all channels.
  function approximate(touched, change) {
    var at = values.map(function (value, k) {
      var one = report.moving.sliders[k];
      return (value - one.value) / one.step / report.moving.steps;
    });
    report.moving.moves.forEach(function (one) {
      var by = touched.length ? one.slopes[0].map(function (_, i) {
        return touched.reduce(function (sum, k) { return sum + at[k] * one.slopes[k][i]; }, 0);
      }) : null;
      one.targets.forEach(function (target) {
        change(one.plot, target.trace, target.base.map(function (y, i) {
          return y === null || !by ? y : y + target.factor * by[i];
        }));
      });
    });
    return report.moving.rms.map(function (channel) {
      var sum = channel.squares;
      touched.forEach(function (a) {
        sum -= 2 * at[a] * channel.cross[a];
        touched.forEach(function (b) { sum += at[a] * at[b] * channel.gram[a][b]; });
      });
      return Math.sqrt(Math.max(sum, 0) / channel.n);
    });
  }
  // All records again. Returns the rms of all channels.
  var absences = null; // for each channel, 1 for samples that do not count
  function simulate(touched, change) {
    var x = report.moving.x.slice();
    touched.forEach(function (k) {
      var one = report.moving.sliders[k];
      x[one.x] = values[k] * one.size;
    });
    var records = simulation.run(x), ended = [];
    report.moving.moves.forEach(function (one) {
      var record = records[one.record], seen = record.now.outputs[one.column];
      one.curves.forEach(function (curve, below) {
        change(one.plot, curve[0], one.rows.map(function (i) {
          if (i < 0 || !isFinite(seen[i])) { return null; }
          return (below ? record.measured[one.column][i] - seen[i] : seen[i]) / curve[1];
        }));
      });
    });
    records.forEach(function (record) {
      if (record.now.stopped !== null) { ended.push(record.now.stopped.toPrecision(4) + " s"); }
    });
    element("ended").textContent = ended.length ? "With these values a simulation ends early, at " + ended.join(", ") + "." : "";
    absences = absences || report.moving.rms.map(function (channel) {
      var absent = new Uint8Array(records[channel.record].measured[channel.column].length);
      channel.absent.forEach(function (i) { absent[i] = 1; });
      return absent;
    });
    var rms = report.moving.rms.map(function (channel, j) {
      var record = records[channel.record], seen = record.now.outputs[channel.column], sum = 0;
      var measured = record.measured[channel.column], absent = absences[j];
      for (var i = 0; i < seen.length; i++) {
        if (!absent[i]) { sum += (measured[i] - seen[i]) * (measured[i] - seen[i]); }
      }
      return Math.sqrt(sum / channel.n) / channel.size;
    });
    // At its own values the fit has the same curves, to rounding.
    report.moving.rms.forEach(function (channel, j) {
      if (touched.length || !(Math.abs(rms[j] - Math.sqrt(channel.squares / channel.n)) > channel.rounding)) { return; }
      element("ended").textContent += " The simulation of this page differs from the fit in " + channel.says + ".";
    });
    return rms;
  }
  function say(k) {
    var input = sliders[k], one = report.moving.sliders[k], error = Number(input.dataset.error);
    var by = values[k] - one.value, unit = input.dataset.unit ? " " + input.dataset.unit : "";
    var now = Number(values[k].toPrecision(6));
    var text = (now && Math.abs(now) < 1e-3 ? now.toExponential() : String(now)) + unit;
    if (by && error) { text += " (" + (by > 0 ? "+" : "−") + plain(Math.abs(by / error), 2) + " std. errors)"; }
    element("value-" + k).textContent = text;
    input.setAttribute("aria-valuetext", text);
  }
  var asked = false;
  function soon() {
    if (asked) { return; }
    asked = true;
    setTimeout(function () { asked = false; move(true); }, 16);
  }
  function set(k, value) {
    values[k] = value;
    say(k);
    soon();
  }
  // A field in place of the number, until Enter, Escape or another place of the page.
  function type(k) {
    var input = sliders[k], one = report.moving.sliders[k], output = element("value-" + k), done = false;
    if (output.hidden) { return; }
    var field = document.createElement("input");
    field.type = "number";
    field.step = "any";
    field.value = Number(values[k].toPrecision(6));
    var first = field.value;
    field.setAttribute("aria-label", input.labels[0].textContent + (input.dataset.unit ? " [" + input.dataset.unit + "]" : ""));
    function end(accepts) {
      if (done) { return; }
      done = true;
      var value = Number(field.value), place = (value - one.value) / one.step;
      if (accepts && field.value !== "" && isFinite(value) && field.value !== first) {
        if (!window.simulation) { place = Math.min(Math.max(place, Number(input.min)), Number(input.max)); value = one.value + place * one.step; }
        if (one.low !== undefined) { value = Math.max(value, one.low); }
        if (one.high !== undefined) { value = Math.min(value, one.high); }
        input.value = Math.round(place);
        set(k, value);
      }
      field.remove();
      output.hidden = false;
      input.focus();
    }
    field.addEventListener("keydown", function (event) {
      if (event.key === "Enter" || event.key === "Escape") { event.preventDefault(); end(event.key === "Enter"); }
    });
    field.addEventListener("blur", function () { end(true); });
    output.hidden = true;
    output.after(field);
    field.focus();
    field.select();
  }
  function listen() {
    sliders = Array.from(document.querySelectorAll("input[type=range]"));
    values = sliders.map(function (_, k) { return report.moving.sliders[k].value; });
    sliders.forEach(function (input, k) {
      input.value = 0; // a browser may keep another place
      say(k);
      input.addEventListener("input", function () {
        var one = report.moving.sliders[k], place = Number(input.value);
        set(k, place ? one.value + place * one.step : one.value);
      });
      input.addEventListener("dblclick", function () { type(k); });
      element("value-" + k).addEventListener("click", function () { type(k); });
      input.addEventListener("keydown", function (event) {
        if (event.key === "Enter") { event.preventDefault(); type(k); }
      });
    });
    var reset = element("reset");
    if (reset) {
      reset.addEventListener("click", function () {
        sliders.forEach(function (input, k) { input.value = 0; set(k, report.moving.sliders[k].value); });
      });
    }
  }

  // Light and dark: as the system says, until the switch says otherwise; paper is light.
  element("theme").hidden = false;
  element("theme").addEventListener("click", function () {
    root.dataset.theme = dark() ? "light" : "dark";
    draw(dark());
  });
  system.addEventListener("change", function () { draw(dark()); });
  window.addEventListener("beforeprint", function () { draw(false); });
  window.addEventListener("afterprint", function () { draw(dark()); });

  var packed = ["library", "simulation"].map(element).filter(Boolean);
  listen();
  if (packed.length && !window.DecompressionStream) { element("old").hidden = false; }
  else if (packed.length) {
    Promise.all(packed.map(function (one) { return unpacked(one.textContent); })).then(start)
      .then(function () { root.dataset.ready = "yes"; });
  }
})();
