"""Notices are data: one table of texts holds every code that the source uses and no other, the
page lists it, and nothing reads sentences.
"""

import ast
import functools
import json
import pickle
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import numpy as np
import pytest

import frictax as fx
from frictax.notice import OLD_CODES, SECTIONS, TEXTS, Notice
from frictax.report.json_text import as_text

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "frictax"
PAGE = (ROOT / "docs" / "notices.md").read_text(encoding="utf-8")
FILES = [p for p in sorted(SOURCE.rglob("*.py")) if p.name != "notice.py"]
KEBAB = re.compile(r"[a-z]+(-[a-z]+)*")
SAID = {"warnings", "sentences", "notes", "notices"}


@functools.cache
def _trees() -> dict[str, ast.Module]:
    return {
        path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in FILES
    }


def _called(call: ast.Call) -> str:
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def _texts(tree: ast.AST) -> set[str]:
    return {
        n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }


def _functions() -> list[ast.FunctionDef]:
    """Those that make a notice."""
    return [
        f
        for tree in _trees().values()
        for f in ast.walk(tree)
        if isinstance(f, ast.FunctionDef)
        and any(isinstance(n, ast.Call) and _called(n) == "Notice" for n in ast.walk(f))
    ]


def _codes() -> Iterator[tuple[str, ast.Call, ast.FunctionDef]]:
    """Each code that is written in the source, where, and what makes the notice of it."""
    makers = {"Notice": (0, None)} | {
        f.name: (names.index("code"), f)
        for f in _functions()
        if "code" in (names := [a.arg for a in f.args.args])
    }
    for outer in [
        f for t in _trees().values() for f in ast.walk(t) if isinstance(f, ast.FunctionDef)
    ]:
        for call in [n for n in ast.walk(outer) if isinstance(n, ast.Call)]:
            at, maker = makers.get(_called(call), (None, None))
            if at is None or getattr(call.args[at], "id", "") == "code":
                continue
            values = dict.fromkeys(_texts(call.args[at]))
            if isinstance(call.args[at], ast.Name):  # given a name one line above
                values = {
                    text
                    for n in ast.walk(outer)
                    if isinstance(n, ast.Assign)
                    and getattr(n.targets[0], "id", "") == getattr(call.args[at], "id", None)
                    for text in _texts(n.value)
                }
            assert values, f"{outer.name} line {call.lineno}: write the code of the notice here"
            for code in values:
                yield code, call, maker or outer


def _fields(code: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(TEXTS[code]) if name}


def test_every_code_in_the_source_has_a_text_and_every_text_is_used() -> None:
    assert {code for code, _, _ in _codes()} == set(TEXTS) - OLD_CODES


def test_codes_are_unique_and_in_kebab_case() -> None:
    assert sum(map(len, SECTIONS.values())) == len(TEXTS)
    assert all(KEBAB.fullmatch(code) for code in TEXTS)


def test_each_notice_is_made_with_the_numbers_that_its_text_needs() -> None:
    for code, call, maker in _codes():
        missing = _fields(code) - {"subject"} - _texts(maker)
        assert not missing, f"{code}: {maker.name} gives no {missing}"
        if _called(call) == "Notice" and "subject" in _fields(code):
            assert [getattr(a, "value", None) for a in call.args[1:2]] not in ([], [""]), code


def test_the_page_has_every_sentence_cause_and_remedy_of_the_table() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "notices.py"))
    assert script["with_tables"](PAGE) == PAGE, "run python docs/notices.py"
    notices = [one for section in SECTIONS.values() for one in section.values()]
    assert all(set(one) == {"sentence", "cause", "remedy"} for one in notices)
    for text in [one[part] for one in notices for part in ("cause", "remedy")]:
        assert re.fullmatch(r"[A-Z`][^;]*\.", text), text


def test_a_sentence_on_a_parameter_of_a_record_or_a_sweep_does_not_name_a_record() -> None:
    ends = ("near-bound", "at-lower-bound", "at-upper-bound", "ran-away")
    for code in (*ends, "no-effect", "little-effect", "null-direction"):
        assert "record" not in TEXTS[code], code


def test_the_page_is_linked_from_the_pages_that_speak_of_warnings() -> None:
    for page in (
        ROOT / "README.md",
        ROOT / "docs" / "uncertainty.md",
        ROOT / "docs" / "records.md",
    ):
        assert "notices.md" in page.read_text(encoding="utf-8"), page.name


def _reads(name: str, tree: ast.AST) -> bool:
    """Whether the text called `name` is looked into."""
    for n in ast.walk(tree):
        if isinstance(n, ast.Compare) and any(
            isinstance(op, ast.In | ast.NotIn) and getattr(right, "id", "") == name
            for op, right in zip(n.ops, n.comparators, strict=True)
        ):
            return True
        if (
            isinstance(n, ast.Call)
            and isinstance(n.func, ast.Attribute)
            and getattr(n.func.value, "id", "") == name
            and n.func.attr in {"startswith", "endswith", "find", "index", "partition", "split"}
        ):
            return True
    return False


def _sentences_read(tree: ast.AST) -> list[int]:
    """Lines of loops over sentences that look into them."""
    lines = []
    for n in ast.walk(tree):
        loops = [n] if isinstance(n, ast.For) else getattr(n, "generators", [])
        for loop in loops:
            over = {getattr(x, "attr", getattr(x, "id", "")) for x in ast.walk(loop.iter)}
            if over & SAID and _reads(getattr(loop.target, "id", ""), n):
                lines.append(getattr(n, "lineno", 0))
    return lines


def test_the_search_for_compared_sentences_finds_them() -> None:
    for code in (
        "[s for s in sentences if s.startswith(name)]",
        "[s for s in found.warnings if any(n in s for n in unknown)]",
        "for s in found.notes:\n    if 'peak' in s: print(s)",
    ):
        assert _sentences_read(ast.parse(code)) == [1]
    assert not _sentences_read(ast.parse("[n for n in notices if n.code in kept]"))


@pytest.mark.parametrize("path", [p.relative_to(SOURCE).as_posix() for p in FILES])
def test_nothing_compares_sentences(path: str) -> None:
    assert not _sentences_read(_trees()[path])


@pytest.mark.parametrize("code", TEXTS)
def test_each_text_is_a_sentence_for_any_numbers_of_its_kinds(code: str) -> None:
    numbers = {
        name: 2.0 if spec else "A sentence." if name == "told" else "words"
        for _, name, spec, _ in Formatter().parse(TEXTS[code])
        if name
    }
    numbers.pop("subject", None)
    text = str(Notice(code, "mass.m", numbers))
    assert text[0].isupper() or text.startswith(("mass.m ", "2 ", "words ", "peak", "offset"))
    assert text.endswith((".", "words"))
    assert not re.search(r"\n|  |[{}]", text.replace("inputs={", "").replace("...}", ""))


def test_numbers_are_pythons_own_and_what_is_not_finite_is_null_in_json() -> None:
    made = Notice("near-bound", "mass.m", {"bound": np.float64(0.5), "k": 3, "s": "x"})
    assert [type(x) for x in made.numbers.values()] == [float, int, str]
    one = Notice("ill-conditioned", "", {"condition": np.inf})
    read = json.loads(as_text({"notices": [one.to_dict()]}))["notices"]
    assert read == [
        {"code": one.code, "subject": "", "numbers": {"condition": None}, "text": str(one)}
    ]


def test_equal_notices_are_one_and_pickle() -> None:
    notices = [Notice("no-effect", "a"), Notice("no-effect", "a"), Notice("no-effect", "b")]
    assert len(dict.fromkeys(notices)) == 2
    one = Notice("near-bound", "a", {"bound": 1.0})
    assert pickle.loads(pickle.dumps(one)) == one != Notice("near-bound", "a", {"bound": 2.0})


def test_a_fit_carries_notices_and_their_sentences_are_its_warnings() -> None:
    v = np.array([0.5, 1.0, 2.0, 4.0, 8.0])
    sweep = fx.Sweep(v, 7 + 0.5 * v, velocity_unit="m/s", force_unit="N", name="line")
    found = fx.fit(fx.Coulomb, sweep)
    (peak,) = (n for n in found.notices if n.code == "peak-unseen")
    assert (peak.subject, peak.numbers) == ("peak", {"peak": 1.0})
    assert found.warnings == tuple(map(str, found.notices))
    read = json.loads(found.to_json())
    assert read["warnings"] == list(found.warnings)
    assert [n["text"] for n in read["notices"]] == read["warnings"]
    assert read["notices"][0].keys() == {"code", "subject", "numbers", "text"}
