"""Single samples that lie far off their neighbours, as a glitch of a logger makes them."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from .diagnostics import quantum

_FEWEST = 100  # samples in which glitches are looked for
_DOUBTED = 4.0  # times the noise off the straight line of both neighbours: looked at more closely
_FAR = 8.0  # standard errors off the cubic of six neighbours; white normal noise never gets there
_SMOOTH = 3.0  # times the noise: how far the neighbours may be from their cubic
_MOST = 0.05  # share of the samples: more are a motion, such as pulses
_BESIDE = np.array([-3, -2, -1, 1, 2, 3])


def find_glitches(
    t: Float[np.ndarray, " n"], x: Float[np.ndarray, " n"]
) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Return the glitches of `x` at the times `t` [s], and what their neighbours show there.

    A glitch is one sample far off the cubic through its six neighbours, which themselves lie on it.
    A kink or a step is not a glitch, since its neighbours do not lie on one cubic.
    """
    none = np.zeros(0, int), np.zeros(0)
    if t.size < _FEWEST:
        return none
    line = x[:-2] + (x[2:] - x[:-2]) * (t[1:-1] - t[:-2]) / (t[2:] - t[:-2])
    off = np.abs(x[1:-1] - line)
    noise = max(float(np.median(off)) / 0.6745 / np.sqrt(1.5), quantum(x) / np.sqrt(12.0))
    if not noise > 0:
        return none
    at = np.flatnonzero(off > _DOUBTED * noise) + 1
    at = at[(at >= 3) & (at < t.size - 3)]
    beside = at[:, None] + _BESIDE
    s = t[beside] - t[at, None]
    powers = (s / np.ptp(s, axis=1)[:, None])[..., None] ** np.arange(4)
    pseudo = np.linalg.pinv(powers) if at.size else np.zeros((0, 4, 6))
    shown = np.einsum("kiw,kw->ki", pseudo, x[beside])
    left = x[beside] - np.einsum("kwi,ki->kw", powers, shown)
    error = noise * np.sqrt(1.0 + np.sum(pseudo[:, 0] ** 2, axis=1))
    far = np.abs(x[at] - shown[:, 0]) > _FAR * error
    far &= np.sqrt(np.sum(left**2, axis=1) / 2.0) < _SMOOTH * noise
    return (at[far], shown[far, 0]) if 0 < far.sum() <= _MOST * t.size else none


def without_glitches(record: Any) -> dict[str, Float[np.ndarray, " n"]]:
    """Return the outputs of a `Record`, with what the neighbours show in the place of glitches."""
    out = {}
    for name, x in record.outputs.items():
        at, shown = find_glitches(record.t, x)
        out[name] = x.copy()
        out[name][at] = shown
    return out
