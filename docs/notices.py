"""Write the tables of docs/notices.md from src/frictax/notices.toml.

Run: python docs/notices.py
"""

import re
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
PAGE = DOCS / "notices.md"
SOURCE = DOCS.parent / "src" / "frictax" / "notices.toml"
HEAD = "| code | sentence | cause | remedy |\n|---|---|---|---|"


def without_formats(sentence: str) -> str:
    """Return `sentence` with the names of its numbers alone: {ratio:.3g} becomes {ratio}.

    >>> without_formats("Output {subject!r} is {ratio:.3g} times its noise.")
    'Output {subject} is {ratio} times its noise.'
    """
    plain = re.sub(r"\{(\w+)[^{}]*\}", r"{\1}", sentence)
    return plain.replace("{{", "{").replace("}}", "}")


def with_tables(page: str) -> str:
    """Return `page` with the table of each section of the source below its heading."""
    for section, notices in tomllib.loads(SOURCE.read_text(encoding="utf-8")).items():
        rows = [
            f"| `{code}` | {without_formats(one['sentence'])} | {one['cause']} | {one['remedy']} |"
            for code, one in notices.items()
        ]
        table = "\n".join([HEAD, *rows])
        before, heading, after = page.partition(f"## {section}\n")
        if not heading:
            raise ValueError(f"docs/notices.md does not have the section {section!r}. Add it.")
        lead, _, rest = after.partition(HEAD)
        _, gap, rest = rest.partition("\n\n")
        page = before + heading + lead + table + (gap + rest if gap else "\n")
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(PAGE)
