"""A compiler of Modelica, which runs the text that frictax writes; without it tests skip."""

from typing import Any

import pytest

rumoca = pytest.importorskip(
    "rumoca",
    reason="rumoca, the Modelica compiler of the extra `test`, has no wheel for this platform",
)


def compiled(text: str) -> Any:
    return rumoca.Session().loads(text, model="Machine")
