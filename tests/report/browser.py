"""Pages looked at by a browser without a window: what a script in them sees, and what the console
says.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FOUND = next((path for name in NAMES if (path := shutil.which(name))), None)
needs_browser = pytest.mark.skipif(
    FOUND is None, reason=f"needs a browser on the PATH: one of {', '.join(NAMES)}"
)


def look(page: Path, probe: str, *, width: int = 1300, dark: bool = False) -> tuple[Any, list[str]]:
    """What `probe`, the body of an asynchronous function, returns once a copy of `page` is drawn
    at `width` [px]; and every other message on the console.
    """
    assert FOUND is not None
    script = (
        "<script>(function () { var wait = setInterval(async function () {"
        " if (document.documentElement.dataset.ready !== 'yes') { return; } clearInterval(wait);"
        " var pause = function (ms) { return new Promise(function (f) { setTimeout(f, ms); }); };"
        f" var seen = await (async function () {{ {probe} }})();"
        " console.log('SEEN' + JSON.stringify(seen)); }, 20); })();</script>"
    )
    text = page.read_text(encoding="utf-8")
    if dark:
        text = text.replace('<html lang="en">', '<html lang="en" data-theme="dark">', 1)
    inner = page.with_name(f"{page.stem}-copy.html")
    inner.write_text(script.join(text.rsplit("</body>", 1)) + "</body>", encoding="utf-8")
    # A browser's own window is never narrower than 500 px: a frame can be.
    outer = page.with_name(f"{page.stem}-frame.html")
    size = f"border:0;width:{width}px;height:900px"
    outer.write_text(f'<body style="margin:0"><iframe src="{inner.name}" style="{size}"></iframe>')
    command = [FOUND, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += ["--enable-logging=stderr", "--v=0", "--virtual-time-budget=20000", "--dump-dom"]
    command += [f"--user-data-dir={page.parent / 'profile'}", "--window-size=1300,900"]
    done = subprocess.run(
        [*command, outer.as_uri()], capture_output=True, text=True, check=False, timeout=120
    )
    said = re.findall(r'CONSOLE\S* "(.*)", source:', done.stderr)
    seen = [line.removeprefix("SEEN") for line in said if line.startswith("SEEN")]
    assert len(seen) == 1, f"the page was not drawn: {done.stderr[-2000:]}"
    return json.loads(seen[0]), [line for line in said if not line.startswith("SEEN")]


WIDTHS = """
    var all = document.documentElement, wide = [];
    document.querySelectorAll(".scroll").forEach(function (one) {
      if (one.scrollWidth > one.clientWidth + 1) { wide.push(one.closest("section").id); }
    });
    return { wide: wide, page: all.scrollWidth, room: all.clientWidth };
"""
SWITCH = """
    function paper() { return getComputedStyle(document.body).backgroundColor; }
    function ink() {
      var text = document.querySelector("#plot-fit-0 .xtick text");
      return getComputedStyle(text).fill;
    }
    var before = [paper(), ink()];
    document.getElementById("theme").click();
    await pause(400);
    return [before, [paper(), ink()]];
"""
SLIDE = """
    var input = document.getElementById("move-%d"), plot = document.getElementById("plot-fit-0");
    function text(one) { return one.textContent; }
    function told() {
      return { y: plot.data.map(function (one) { return Array.from(one.y); }),
        value: text(document.getElementById("value-%d")),
        rms: Array.from(document.querySelectorAll(".now span"), text) };
    }
    var before = told();
    input.value = input.max;
    input.dispatchEvent(new Event("input"));
    await pause(400);
    var after = told();
    document.getElementById("reset").click();
    await pause(400);
    return { x: Array.from(plot.data[0].x), before: before, after: after, back: told(),
      by: Number(input.max) * report.moving.sliders[%d].step };
"""


def slide(page: Path, k: int) -> tuple[Any, list[str]]:
    """Slider `k` to its upper end, and back: curves, values and rms before, there and after."""
    return look(page, SLIDE % (k, k, k))
