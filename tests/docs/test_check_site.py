"""The check of the built site sees links that lead nowhere and whatever a network would bring."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

GOOD = '<html><body id="top"><a href="sub/b.html#there">b</a><img src="p.png"></body></html>'
OTHER = '<html><body><h1 id="there">b</h1><a href="../a.html#top">a</a></body></html>'


@pytest.fixture(scope="module")
def check(root: Path) -> Any:
    spec = importlib.util.spec_from_file_location(
        "check_site", root / "docs" / "extensions" / "check_site.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.html").write_text(GOOD)
    (tmp_path / "sub" / "b.html").write_text(OTHER)
    (tmp_path / "p.png").write_bytes(b"")
    return tmp_path


def test_a_site_whose_links_lead_somewhere_has_no_fault(check: Any, site: Path) -> None:
    assert check.faults(site) == []


def test_an_empty_folder_is_no_site(check: Any, tmp_path: Path) -> None:
    assert check.faults(tmp_path) == [f"{tmp_path} holds no page"]


@pytest.mark.parametrize(
    ("piece", "says"),
    [
        ('<a href="c.html">c</a>', "a.html links to c.html, and there is no such file"),
        (
            '<a href="sub/b.html#here">b</a>',
            "a.html links to sub/b.html#here, and that page has no such anchor",
        ),
        ('<a href="#gone">up</a>', "a.html links to #gone, and that page has no such anchor"),
        (
            '<script src="https://cdn.example/x.js"></script>',
            "a.html loads https://cdn.example/x.js",
        ),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', "a.html loads //cdn.example/x.css"),
        (
            "<style>@import url('https://fonts.example/x');</style>",
            "a.html loads https://fonts.example/x",
        ),
    ],
)
def test_what_is_wrong_with_a_page_is_said_with_its_name(
    check: Any, site: Path, piece: str, says: str
) -> None:
    (site / "a.html").write_text(GOOD.replace("</body>", f"{piece}</body>"))
    assert check.faults(site) == [says]


def test_a_style_sheet_that_asks_a_network_for_fonts_is_seen(check: Any, site: Path) -> None:
    (site / "x.css").write_text("@font-face { src: url(https://fonts.example/f.woff2); }")
    assert check.faults(site) == ["x.css loads https://fonts.example/f.woff2"]


def test_a_link_to_the_network_that_a_reader_follows_is_none(check: Any, site: Path) -> None:
    (site / "a.html").write_text(GOOD.replace("</body>", '<a href="https://x.org">x</a></body>'))
    assert check.faults(site) == []
