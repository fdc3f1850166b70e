"""How fast does a report simulate its records after a slider moves?

The report describes a block with Stribeck friction and four records of 2000 speeds. Chromium opens
it without a window, in real time. Each slider moves 20 times. The time of a move includes the
simulation of all records, all rms values, the lines in all pictures, and the layout of the page.

    python experiments/benchmarks/slider.py
"""

import json
import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import numpy as np
from sampled_problem import PARAMETERS, times

jax.config.update("jax_enable_x64", True)

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# After a move the page calls `setTimeout` with 16 ms. This script times the called functions.
PROBE = """
<script>
  var answers = [], later = window.setTimeout;
  window.setTimeout = function (f, ms) {
    if (ms !== 16) { return later(f, ms); }
    return later(function () {
      var begin = performance.now();
      f();
      document.body.getBoundingClientRect();
      answers.push(performance.now() - begin);
    }, ms);
  };
  var wait = setInterval(async function () {
    if (document.documentElement.dataset.ready !== "yes") { return; }
    clearInterval(wait);
    for (var input of document.querySelectorAll("input[type=range]")) {
      for (var i = 1; i <= 20; i++) {
        input.value = i * input.max / 40;
        input.dispatchEvent(new Event("input"));
        await new Promise(function (done) { later(done, 60); });
      }
    }
    console.log("ANSWERS" + JSON.stringify(answers));
  }, 20);
</script>
"""


def report(path: Path) -> None:
    """Write the report of a fit to four records."""
    import frictax as fx

    names = ("F_Coulomb", "F_prop", "F_Stribeck", "fexp")
    law = fx.Stribeck(**dict(zip(names, PARAMETERS.tolist(), strict=True)))
    ts, rng, records = times(1999), np.random.default_rng(0), []
    for k in range(4):
        force = (2.0 + 0.2 * k) * np.sin(2.0 * np.pi * (1.0 + 0.1 * k) * ts)
        block = fx.Mechanism(
            mass=fx.Mass(m=1.0),
            friction=fx.SupportFriction("mass", f_pos=law),
            drive=fx.Force("mass", fx.Sampled(ts, force)),
        )
        speed = np.asarray(fx.simulate(block, ts)["mass"].v)
        noisy = speed + 1e-3 * rng.standard_normal(ts.size)
        records.append(fx.Record(ts, {"drive": force}, {"mass.v": noisy}, name=f"run{k}"))
    free = ["mass.m", "friction.f_pos.F_Coulomb", "friction.f_pos.F_prop"]
    fx.fit(block, records, free=free).report(path)


def answers(page: Path) -> list[float]:
    """Return the time [ms] that the page needs for each move of a slider in Chromium."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        raise SystemExit(f"slider.py needs a browser on the PATH: one of {', '.join(BROWSERS)}.")
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("<body", f"{PROBE}<body", 1), encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    command += [f"--user-data-dir={page.parent / 'profile'}", page.as_uri()]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if found := re.search(r"ANSWERS(\[.*?\])", line):
                    return json.loads(found[1])
        finally:
            process.kill()
    raise SystemExit("The browser ended before the page was drawn.")


if __name__ == "__main__":
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page = Path(folder) / "report.html"
        report(page)
        ms = np.array(answers(page))
    middle, high = np.quantile(ms, [0.5, 0.95])
    print(f"{ms.size} moves: median {middle:.1f} ms, 95 % are faster than {high:.1f} ms")
