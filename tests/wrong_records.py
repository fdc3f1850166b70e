"""Records that a user gets wrong, and what is asked of the sentence that tells it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

NAN = float("nan")
T = np.linspace(0.0, 1.0, 11)
F, Q = np.cos(5 * T), np.sin(5 * T)
FRAME = pd.DataFrame({"t": T, "F": F, "q": Q, "name": ["a"] * 11})
GOOD = "t,F,q\n" + "".join(
    f"{t!r},{f!r},{q!r}\n" for t, f, q in zip(T.tolist(), F.tolist(), Q.tolist(), strict=True)
)
Case = Callable[[Path], object]


def assert_told(case: tuple[Case, list[str]], folder: Path) -> None:
    """A mistake is told with object, rule, value and remedy."""
    act, pieces = case
    with pytest.raises((ValueError, FileNotFoundError, ImportError)) as error:
        act(folder)
    message = str(error.value)
    assert [piece for piece in pieces if piece not in message] == [], message
    assert "\n" not in message
    assert message.endswith((".", "?"))
    assert len(message) <= 340
    # No message of numpy, pandas, scipy or pyarrow behind it.
    assert error.value.__cause__ is None
    assert error.value.__context__ is None or error.value.__suppress_context__
