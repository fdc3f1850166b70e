"""In the gallery, each study has the last picture that its page made while it was built."""

import re
from pathlib import Path
from typing import Any

_STUDY = re.compile(r'<a class="reference internal" href="(studies/\w+)\.html">')
_PICTURE = re.compile(r'src="\.\./\.\./(_images/[^"]+)"')


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", _add_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _add_pictures(app: Any, exception: Exception | None) -> None:
    page = Path(app.outdir) / "docs" / "gallery.html"
    if exception is not None or not page.exists():
        return
    shown = set[str]()

    def with_picture(link: re.Match[str]) -> str:
        study = link.group(1)
        made = _PICTURE.findall((page.parent / f"{study}.html").read_text(encoding="utf-8"))
        if study in shown or not made:
            return link.group(0)
        shown.add(study)
        return f'{link.group(0)}<img alt="" src="../{made[-1]}">'

    above, mark, below = page.read_text(encoding="utf-8").partition('class="gallery')
    page.write_text(above + mark + _STUDY.sub(with_picture, below), encoding="utf-8", newline="\n")
