"""The symbols of a machine's heat: what warms up, what conducts, and the surroundings.

They stand apart from what moves.
"""

from typing import Any

from matplotlib.axes import Axes

from .cells import Band, Cell, Row, labelled
from .pen import Length, Pen
from .symbols import Symbol
from .words import NAME, VALUE, Label, said, values

_WARM = "#F8E1D6"


def capacitor_cell(name: str, part: Any) -> Cell:
    """A body of one temperature, with the names of what heats it."""
    heated = [f"{'and' if k else 'heated by'} {source}" for k, source in enumerate(part.sources)]
    lines = [*values(part, False), *heated]
    text = Label(((name, NAME), *((line, VALUE) for line in lines)))
    half, height = text.width / 2 + 9, text.height / 2 + 5

    def draw(axes: Axes, x: Length, row: Row) -> None:
        pen = Pen(axes, name, x, row.y)
        corner = 6
        lower = [(x - half, y - height) for x, y in ((0, corner), (corner, 0))]
        lower += [(-x, y) for x, y in reversed(lower)]
        pen.shape(*lower, *((x, -y) for x, y in reversed(lower)), face=_WARM)
        pen.lines(text, text.height / 2)

    return Cell({Band.CORE: (half, half)}, draw, height, height)


def surroundings_cell(name: str, part: Any) -> Cell:
    """Where the heat goes that the conductor `name` leads away."""

    def draw(pen: Pen) -> None:
        for y in (-16, -4, 8):
            pen.line((0, y), (0, y + 8), width=1.6)

    return labelled(
        name,
        Symbol(2, 17, 17, draw),
        Label(((said("T_ambient", part.T_ambient, "K"), VALUE),)),
        Band.BELOW,
    )
