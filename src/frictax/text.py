"""Text that is shared by whatever prints: tables and rounding."""

import numpy as np


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Columns of text, the first left, the others right aligned as far as they hold numbers."""
    cells = [head, *rows]
    widths = [max(len(row[j]) for row in cells) for j in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def rounded(value: float, error: float) -> str:
    """`value` to the second digit of its error.

    >>> rounded(12.3456, 0.012), rounded(3.819003e-4, 5.8e-9)
    ('12.346', '0.0003819003')
    """
    if not np.isfinite(value):
        return "?"
    if not np.isfinite(error) or error <= 0:
        return f"{value:.4g}"
    digits = 1 - int(np.floor(np.log10(error)))
    if not -6 < digits < 10 or abs(value) * 10.0**digits > 1e9:
        # of the number's own digits
        known = digits + 1 + int(np.floor(np.log10(abs(value) or 1.0)))
        return f"{value:.{min(max(known, 4), 15)}g}"
    return f"{value:.{max(digits, 0)}f}"
