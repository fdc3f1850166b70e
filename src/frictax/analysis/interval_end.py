"""Where the interval of a profile ends."""

from collections.abc import Callable

import numpy as np

_NEAR = 1e-3  # of the threshold's root: where the search stops
_FAR = 100  # standard errors: what does not end within these counts as open


def interval_end(
    at: Callable[[list[float]], float], best: float, step: float, bound: float, threshold: float
) -> float:
    """Where the ratio reaches the threshold, from `best` on in the direction of `step`: its root is
    nearly a straight line.
    """
    aim, inside, outside, reach = np.sqrt(threshold), (best, 0.0), None, step
    x = best + step * aim
    for _ in range(60):
        if (step < 0 and x <= bound) or (step > 0 and x >= bound):
            x = bound + 1e-3 * (inside[0] - bound)
        root = float(np.sqrt(max(at([x]), 0.0)))
        if abs(root - aim) <= _NEAR * aim:
            return x
        if root < aim:
            inside = (x, root)
            if outside is None:
                reach = 1.5 * reach  # where it is no straight line, ever longer strides
                x = x + reach * max(aim - root, 0.3 * aim)
                if abs(x - best) > _FAR * abs(step):
                    return bound
                continue
        else:
            outside = (x, root)
        # At a kink the root jumps: between regula falsi's point and the middle, whichever is nearer
        # to the middle.
        share = (
            (aim - inside[1]) / max(outside[1] - inside[1], 1e-300)
            if np.isfinite(outside[1])
            else 0.5
        )
        x = inside[0] + (outside[0] - inside[0]) * float(np.clip(share, 0.1, 0.9))
        if abs(outside[0] - inside[0]) <= 1e-3 * abs(step):
            return outside[0]
    return x if outside is not None else bound
