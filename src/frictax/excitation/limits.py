"""`Limits` of the machine in an experiment, and `Margins` from changes of the event sequence."""

import dataclasses
from collections.abc import Iterable

from frictax.arguments import is_finite_number


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of the machine and its drive during an experiment.

    For a rotating body, read rad for m and N.m for N. The default None means no limit.

    **Arguments:**

    - `travel` > 0 [m]: distance from one end of the motion to the other end.
    - `speed`, `acceleration` > 0 [m/s, m/s2]: largest absolute speed and acceleration of the body.
    - `force` > 0 [N]: largest absolute force of the drive.
    - `band`: lowest and highest frequency [Hz] of the excitation.
    - `body`: the body whose motion is limited; by default the body that the drive acts on.

    **Raises:** `ValueError` for a value that is not > 0, and for a `band` without low < high.

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
        band = tuple(self.band) if isinstance(self.band, Iterable) else ()
        low, high = band if len(band) == 2 else (0.0, 0.0)
        if not (_is_positive(low) and _is_positive(high) and low < high):
            raise ValueError(
                f"`Limits.band` must be two frequencies [Hz] that rise, got {self.band!r}. Write"
                " band=(0.1, 5.0)."
            )


@dataclasses.dataclass(frozen=True)
class Margins:
    """Smallest distances of an experiment from changes of the event sequence.

    Near a change of the event sequence, the cost of a later fit has jumps or kinks. The search of
    the fit may end at a jump or kink. The errors of the fit then differ from the prediction.

    **Arguments:**

    - `slip` >= 0: smallest duration of a slip, from breakaway to standstill [samples].
    - `miss` >= 0: smallest value of the event function of an event that does not happen, divided by
      the largest value of this function in the run. The event function is for example the force
      that is missing for breakaway, or the speed before a reversal. When a contact comes to rest,
      the load's relative distance from breakaway, above or below, must be >= `miss`.

    >>> import frictax as fx
    >>> fx.Margins(slip=8.0).miss
    0.065
    """

    slip: float = 5.0
    miss: float = 0.065

    def __post_init__(self) -> None:
        for name in ("slip", "miss"):
            value = getattr(self, name)
            if not is_finite_number(value) or value < 0:
                raise ValueError(
                    f"`Margins.{name}` must be a number >= 0, got {value!r}. 0 switches it off."
                )


def _is_positive(value: object) -> bool:
    return is_finite_number(value) and value > 0  # type: ignore[operator]
