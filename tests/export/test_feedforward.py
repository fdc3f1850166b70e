"""The friction of a contact as a function for a controller."""

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import frictax as fx
from frictax.export.code.feedforward import to_feedforward

STRIBECK = fx.Stribeck(F_prop=2.0, F_Coulomb=7.0, F_Stribeck=4.0, fexp=3.0)
GUIDE = fx.SupportFriction("mass", f_pos=STRIBECK, peak=1.1)
DIRECTIONS = fx.SupportFriction(
    "mass", f_pos=[[0, 5.0], [0.1, 4.0], [1, 6.0]], f_neg=[[0, 6.0], [1, 7.0]], peak=1.2
)
WARNINGS = "-Wall -Wextra -Wdouble-promotion -Wconversion -Werror".split()

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def compiled(text: str, folder: Path) -> Callable[..., float]:
    source, library = folder / "feed.c", folder / "feed.so"
    source.write_text(text)
    command = ["gcc", "-std=c99", "-O2", *WARNINGS, "-fPIC", "-shared", "-o", library, source]
    subprocess.run([*command, "-lm"], check=True)
    feed = ctypes.CDLL(str(library)).friction_feedforward
    feed.restype = ctypes.c_float
    return lambda *given: feed(None, *map(ctypes.c_float, given))


@needs_gcc
@pytest.mark.parametrize("contact", [GUIDE, DIRECTIONS], ids=["Stribeck", "directions"])
def test_in_motion_it_is_the_law_of_the_direction(
    contact: fx.SupportFriction, tmp_path: Path
) -> None:
    feed = compiled(to_feedforward(contact), tmp_path)
    for speed in np.random.default_rng(0).uniform(2e-3, 1.5, 200):
        for sign in (1, -1):
            force = sign * float(contact.law(sign)(speed))
            assert feed(sign * speed, sign * speed, 0.0, 1.0) == pytest.approx(force, rel=1e-6)


@needs_gcc
def test_at_rest_it_is_the_breakaway_force_and_never_faster_than_its_rate(tmp_path: Path) -> None:
    feed = compiled(to_feedforward(GUIDE, rate=1000.0), tmp_path)
    assert feed(0.1, 0.0, 0.0, 1.0) == pytest.approx(1.1 * 11.0, rel=1e-6)
    assert feed(-0.1, 0.0, 0.0, 1.0) == pytest.approx(-1.1 * 11.0, rel=1e-6)
    assert feed(0.0, 0.0, 0.0, 1.0) == 0.0
    assert feed(0.1, 0.0, -5.0, 1e-3) == pytest.approx(-4.0, rel=1e-6)


def test_the_default_rate_is_that_of_the_direction_with_more_friction() -> None:
    less, more = fx.Coulomb(F_Coulomb=1.0), fx.Coulomb(F_Coulomb=100.0)
    contact = fx.SupportFriction("m", f_pos=less, f_neg=more)
    assert "change of the force: 10000 N/s" in to_feedforward(contact)


def test_the_comment_names_each_number_with_its_unit_and_the_interval_of_a_fit() -> None:
    assert "// p[5] = peak: 1.1\n" in to_feedforward(GUIDE)
    assert "(* p[1] = f_pos.F_Coulomb: 7 N *)" in to_feedforward(GUIDE, language="st")


def test_the_comment_has_the_interval_of_each_table_entry() -> None:
    v = np.linspace(0.05, 2.0, 12)
    noise = 0.01 * np.random.default_rng(0).standard_normal(12)
    found = fx.fit(fx.Table([[0, 2], [1, 3], [2, 3]]), fx.Sweep(v, 5 + v + noise), free=["f"])
    text = to_feedforward(found)
    for e in found.estimates:
        assert f"{e.name}: {e.value:.9g} " in text
        assert f"({e.lower:.6g} to {e.upper:.6g})" in text


def test_the_page_on_controllers_shows_what_is_written() -> None:
    page = Path(__file__).parents[2] / "docs" / "howto" / "controller.md"
    text, names = page.read_text(encoding="utf-8"), dict[str, Any]()
    exec(text.partition("```python\n")[2].partition("```")[0], names)

    def rounded(text: str) -> str:  # The last digits of a fit depend on the processor.
        return re.sub(r"\d+\.\d{4,}", lambda number: f"{float(number[0]):.4g}", text)

    for language in ("c", "st", "javascript"):
        assert rounded(to_feedforward(names["found"], language=language).strip()) in rounded(text)


def test_what_it_cannot_write_is_refused_in_a_sentence() -> None:
    brake = fx.Brake("wheel", mu_pos=[[0, 0.5]], fn_max=20.0, f_normalized=1.0)
    with pytest.raises(ValueError, match="`Brake` has a normal force"):
        to_feedforward(brake)
    with pytest.raises(ValueError, match="must be one of c, st, javascript, got 'rust'"):
        to_feedforward(GUIDE, language="rust")
    with pytest.raises(ValueError, match="without friction at rest, got None. Write .* rate=100"):
        to_feedforward(fx.SupportFriction("mass", f_pos=fx.Coulomb(F_prop=2.0, F_Coulomb=0.0)))
    with pytest.raises(ValueError, match="`rate` must be a number > 0, got 0"):
        to_feedforward(GUIDE, rate=0.0)


@pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None, reason="arm-none-eabi-gcc is not installed"
)
def test_on_a_cortex_m4_it_takes_at_most_400_bytes(tmp_path: Path) -> None:
    (tmp_path / "feed.c").write_text(to_feedforward(GUIDE))
    cpu = "-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -std=c99 -Os -c".split()
    subprocess.run(["arm-none-eabi-gcc", *cpu, "feed.c"], cwd=tmp_path, check=True)
    sizes = subprocess.check_output(["arm-none-eabi-size", "feed.o"], cwd=tmp_path, text=True)
    assert int(sizes.splitlines()[1].split()[0]) <= 400
