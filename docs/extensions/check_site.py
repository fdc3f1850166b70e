"""Check that links of the built site have targets, and that pages load nothing from a network.

Run: python docs/extensions/check_site.py build/docs
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
NETWORK = re.compile(r"^(?:https?:)?//")
IN_STYLE = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")]*)")


class Page(HTMLParser):
    """The links of a page, the files that it loads, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.texts: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value for key, value in attrs if value is not None}
        self.anchors |= {values[key] for key in ("id", "name") if key in values}
        if target := values.get("href"):
            self.links.append(target)
        if target := values.get(LOADS.get(tag, "")):
            self.loads.append(target)
            self.links.append(target)

    def handle_data(self, data: str) -> None:
        if self.lasttag == "style":
            self.texts.append(data)


def faults(site: Path) -> list[str]:
    """Return a sentence for each link without a target, and for each file from a network."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        here = path.relative_to(site.resolve())
        found += [f"{here} loads {url}" for url in page.loads if NETWORK.match(url)]
        found += [f"{here} loads {url}" for text in page.texts for url in IN_STYLE.findall(text)]
        for link in page.links:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            if not target.is_file():
                found.append(f"{here} links to {link}, and there is no such file")
            elif url.fragment and target in pages:
                if unquote(url.fragment) not in pages[target].anchors:
                    found.append(f"{here} links to {link}, and that page has no such anchor")
    for path in sorted(site.rglob("*.css")):
        text = path.read_text(encoding="utf-8")
        found += [f"{path.relative_to(site)} loads {url}" for url in IN_STYLE.findall(text)]
    if not pages:
        found.append(f"{site} holds no page")
    return sorted(set(found))


if __name__ == "__main__":
    wrong = faults(Path(sys.argv[1]))
    print(
        "\n".join(wrong) or f"{sys.argv[1]}: all links lead somewhere, nothing comes from a network"
    )
    raise SystemExit(bool(wrong))
