"""The picture of a machine: its parts and what joins them."""

import io

from matplotlib.figure import Figure

from frictax.mechanism import Mechanism

from .schematic.network import network
from .schematic.order import plans
from .schematic.sheet import sheet
from .style import Picture, pinned, style

_MARGIN, _BETWEEN = 10.0, 26.0  # around the picture, between machines that stand by themselves [pt]


def draw_mechanism(mechanism: Mechanism, *, width: float = 7.5) -> Figure:
    """Draw a machine's parts with their names and main values, and what joins them.

    The longest line of bodies runs from left to right, what branches off it lies below, and what
    closes a loop, or acts between the same two bodies as another part, above. What slides is a
    block, what turns a disc on its shaft; friction is orange, drives are green. What warms up
    stands apart, with what conducts its heat. A part of a class that has no symbol is a box with
    the name of that class. Laws and signals are named by their classes; a number that is traced, or
    one of a batch, is named without its value.

    **Arguments:** `width` [inch]: machines that are not joined with each other stand side by side
    up to there. A longer line of bodies makes a wider figure: letters keep their size.

    **Returns:** a matplotlib `Figure`, made without pyplot: `figure.savefig("machine.svg")`.

    >>> import frictax as fx
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0), wall=fx.Fixed(), spring=fx.Spring("wall", "mass", c=500.0)
    ... )
    >>> [text.get_text() for text in draw_mechanism(block).axes[0].texts]
    ['wall', 'mass', 'm = 1 kg', 'spring', 'c = 500 N/m']
    """
    with style():
        net = network(mechanism)
        sheets = [sheet(mechanism, net, plan) for plan in plans(net)]
        corners, size = _shelved(
            [(one.width, one.height) for one in sheets], 72 * width - 2 * _MARGIN
        )
        whole = [side + 2 * _MARGIN for side in size]
        figure = Picture(figsize=(whole[0] / 72, whole[1] / 72))
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set(xlim=(0, whole[0]), ylim=(-whole[1], 0), aspect="equal")
        axes.set_axis_off()
        for one, (x, y) in zip(sheets, corners, strict=True):
            one.draw(axes, _MARGIN + x, -_MARGIN - y)
    return figure


def mechanism_svg(mechanism: Mechanism) -> str:
    """The picture as a notebook shows it: an element ``<svg>``, the same letter for letter each
    time.
    """
    text = io.StringIO()
    figure = draw_mechanism(mechanism)
    with pinned():
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def _shelved(
    sizes: list[tuple[float, float]], width: float
) -> tuple[list[tuple[float, float]], tuple[float, float]]:
    """The upper left corners of boxes that stand side by side up to `width`, then below; and the
    size of the whole.
    """
    corners, x, y, high, wide = [], 0.0, 0.0, 0.0, 0.0
    for w, h in sizes:
        if x > 0 and x + w > width:
            x, y, high = 0.0, y + high + _BETWEEN, 0.0
        corners.append((x, y))
        x, high, wide = x + w + _BETWEEN, max(high, h), max(wide, x + w)
    return corners, (wide, y + high)
