(function () {
  "use strict";
  var root = document.documentElement, drawn = [], sliders = [];
  var narrow = window.matchMedia("(max-width: 600px)").matches;
  var system = window.matchMedia("(prefers-color-scheme: dark)");
  var dusk = {
    "#222222": "#e4e6ea", "#1B1B1B": "#e4e6ea", "#eceef1": "#2a2e35", "#c9cdd3": "#59606a",
    "white": "rgba(0,0,0,0)", "#0072B2": "#4db0ee", "#D55E00": "#f5813b", "#dddddd": "#4a5058"
  };
  function dark() { return root.dataset.theme ? root.dataset.theme === "dark" : system.matches; }
  function element(id) { return document.getElementById(id); }

  // Pictures: a copy in the colours of the day for each drawing.
  function coloured(figure, night) {
    return JSON.parse(JSON.stringify(figure), function (_, value) {
      return night && typeof value === "string" && dusk[value] || value;
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
    })).then(move);
  }

  // The library stands packed in the page.
  function unpacked(text) {
    var bytes = Uint8Array.from(atob(text), function (c) { return c.charCodeAt(0); });
    var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }
  function start(text) {
    var script = document.createElement("script");
    script.textContent = text;
    document.head.append(script);
    drawn = Object.keys(report.plots);
    return draw(dark());
  }

  // Sliders: base + sum of slope times position, the exact derivative; nothing is simulated here.
  function places() {
    return sliders.map(function (input) { return Number(input.value) / report.moving.steps; });
  }
  function move() {
    if (!report.moving) { return; }
    var at = places(), touched = at.map(function (u, k) { return u ? k : -1; }).filter(function (k) { return k >= 0; });
    var changes = {};
    report.moving.moves.forEach(function (one) {
      var change = touched.length ? one.slopes[0].map(function (_, i) {
        return touched.reduce(function (sum, k) { return sum + at[k] * one.slopes[k][i]; }, 0);
      }) : null;
      one.targets.forEach(function (target) {
        var ys = target.base.map(function (y, i) { return y === null || !change ? y : y + target.factor * change[i]; });
        var mine = changes[one.plot] = changes[one.plot] || { y: [], traces: [] };
        mine.y.push(ys);
        mine.traces.push(target.trace);
      });
    });
    report.moving.rms.forEach(function (channel, j) {
      var sum = channel.squares;
      touched.forEach(function (a) {
        sum -= 2 * at[a] * channel.cross[a];
        touched.forEach(function (b) { sum += at[a] * at[b] * channel.gram[a][b]; });
      });
      var now = Math.sqrt(Math.max(sum, 0) / channel.n), found = Math.sqrt(channel.squares / channel.n);
      element("rms-" + j).textContent = channel.says + ": rms " + now.toPrecision(3) + " " + channel.unit +
        (touched.length ? " (fit " + found.toPrecision(3) + ")" : "");
    });
    return Promise.all(Object.keys(changes).map(function (name) {
      return Plotly.restyle(element("plot-" + name), { y: changes[name].y }, changes[name].traces);
    }));
  }
  function say(input, k) {
    var one = report.moving.sliders[k], by = Number(input.value) * one.step, error = Number(input.dataset.error);
    var unit = input.dataset.unit ? " " + input.dataset.unit : "";
    var now = Number((one.value + by).toPrecision(6));
    var text = (now && Math.abs(now) < 1e-3 ? now.toExponential() : String(now)) + unit;
    if (by && error) { text += " (" + (by > 0 ? "+" : "−") + Math.abs(by / error).toPrecision(2) + " std. errors)"; }
    element("value-" + k).textContent = text;
    input.setAttribute("aria-valuetext", text);
  }
  var asked = false;
  function soon() {
    if (asked) { return; }
    asked = true;
    setTimeout(function () { asked = false; move(); }, 16);
  }
  function listen() {
    sliders = Array.from(document.querySelectorAll("input[type=range]"));
    sliders.forEach(function (input, k) {
      input.value = 0; // a browser may remember another place
      say(input, k);
      input.addEventListener("input", function () { say(input, k); soon(); });
    });
    var reset = element("reset");
    if (reset) {
      reset.addEventListener("click", function () {
        sliders.forEach(function (input, k) { input.value = 0; say(input, k); });
        soon();
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

  var packed = element("library");
  listen();
  if (packed && !window.DecompressionStream) { element("old").hidden = false; }
  else if (packed) { unpacked(packed.textContent).then(start).then(function () { root.dataset.ready = "yes"; }); }
})();
