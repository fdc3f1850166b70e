"""What an excitation must keep: limits of the machine, and distances from the edges of events."""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Limits:
    """What the machine and its drive bear during an experiment.

    Of a body that turns read rad for m and N.m for N. What is None is not limited.

    **Arguments:**

    - `travel` > 0 [m]: from the one end of the motion to the other.
    - `speed`, `acceleration` > 0 [m/s, m/s2]: of the body, either way.
    - `force` > 0 [N]: of the drive, either way.
    - `band`: lowest and highest frequency [Hz] of the excitation.
    - `body`: the body whose motion is limited; the one that the drive acts on unless given.

    **Raises:** `ValueError` for a value that is no number > 0, and for a band that does not rise.

    >>> import frictax as fx
    >>> fx.Limits(travel=0.2, force=3.0, band=(0.1, 3.0)).travel
    0.2
    """

    travel: float | None = None
    speed: float | None = None
    acceleration: float | None = None
    force: float | None = None
    band: tuple[float, float] | None = None
    body: str | None = None

    def __post_init__(self) -> None:
        for name in ("travel", "speed", "acceleration", "force"):
            value = getattr(self, name)
            if value is not None and not _is_positive(value):
                raise ValueError(
                    f"`Limits.{name}` must be a number > 0, got {value!r}. Leave it out for none."
                )
        if self.band is None:
            return
        low, high = self.band if len(self.band) == 2 else (0.0, 0.0)
        if not (_is_positive(low) and _is_positive(high) and low < high):
            raise ValueError(
                f"`Limits.band` must be two frequencies [Hz] that rise, got {self.band!r}. Write"
                " band=(0.1, 5.0)."
            )


@dataclasses.dataclass(frozen=True)
class Margins:
    """How far an experiment stays away from where another sequence of events begins: near there the
    misfit of a later fit has edges, a search may end at one, and errors are no longer as predicted.

    **Arguments:**

    - `slip` >= 0: the least number of samples from breakaway to standstill.
    - `miss` >= 0: how near to its end a mode may come without ending: what is left, as a share of
      the largest that this margin has in the run, such as of the force that a stuck contact still
      bears, or of speed before a turn. And how near to breakaway, on either side, a load may be
      when a contact comes to rest: it would barely stick, or barely go on.

    >>> import frictax as fx
    >>> fx.Margins(slip=8.0).miss
    0.065
    """

    slip: float = 5.0
    miss: float = 0.065

    def __post_init__(self) -> None:
        for name in ("slip", "miss"):
            value = getattr(self, name)
            if not (_is_positive(value) or value == 0) or isinstance(value, bool):
                raise ValueError(
                    f"`Margins.{name}` must be a number >= 0, got {value!r}. 0 switches it off."
                )


def _is_positive(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and value > 0
    )
