"""How many independent samples the residuals of a fit are worth."""

import numpy as np
from jaxtyping import Float

from frictax.fitting import FitResult

from .refits import Samples


def effective_samples(found: FitResult) -> float:
    """n / (1 + 2 sum of the autocorrelations) of the residuals in the order of time, summed over
    records.

    A residual that remembers its past tells again what is known: of 1000 samples a second with a
    memory of 50 ms some 10 count. The sum of the autocorrelations runs over pairs of lags as long
    as these are positive and do not rise (beyond, it is noise).

    **Source:** H. J. Thiébaux, F. W. Zwiers, "The interpretation and estimation of effective sample
    size", Journal of Climate and Applied Meteorology 23 (1984); where to end the sum: C. J. Geyer,
    "Practical Markov chain Monte Carlo", Statistical Science 7 (1992).
    """
    samples, out = Samples(found.problem), 0.0
    for i, prepared in enumerate(found.problem.prepared):
        mine = (samples.record == i) & samples.counted
        channels = np.asarray(prepared.weight).shape[-1]
        column = np.arange(samples.record.size)[mine] - int(np.argmax(samples.record == i))
        for c in range(channels):
            r = found.full_residuals[mine][column % channels == c]
            out += r.size / memory(r)
    return max(out, len(found.estimates) + 2.0)


def memory(r: Float[np.ndarray, " n"]) -> float:
    """1 + 2 sum of the autocorrelations, at least 1: how many samples tell as much as one
    independent one.

    >>> import numpy as np
    >>> slow = np.repeat(np.random.default_rng(0).standard_normal(2000), 10)
    >>> round(memory(slow))
    10
    """
    if r.size < 4 or not np.any(r):
        return 1.0
    size = 2 ** int(np.ceil(np.log2(2 * r.size)))
    spectrum = np.abs(np.fft.rfft(r, size)) ** 2
    rho = np.fft.irfft(spectrum)[: r.size]
    rho = rho / rho[0]
    pairs = rho[: r.size // 2 * 2].reshape(-1, 2).sum(axis=1)
    end = int(np.argmax(pairs <= 0)) if np.any(pairs <= 0) else pairs.size
    return max(2.0 * float(np.sum(np.minimum.accumulate(pairs[:end]))) - 1.0, 1.0) if end else 1.0
