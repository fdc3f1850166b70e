"""How many independent samples the residuals of a fit are worth."""

import numpy as np

from frictax.fitting import FitResult
from frictax.measurements.noise import memory

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
