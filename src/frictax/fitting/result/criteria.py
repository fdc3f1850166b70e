"""Information criteria of a sweep's fit: AICc and BIC."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.measurements.sweep import Sweep

from ..problem.losses import AbstractLoss


def criteria(
    sweep: Sweep, weighted: Float[np.ndarray, " n"], loss: AbstractLoss, scale: float, p: int
) -> tuple[float, float]:
    """Return AICc and BIC of a sweep fitted with `p` parameters, from the normal likelihood.

    For another loss they follow from this loss at its noise scale. `weighted`: residuals over
    sigma.

    **Source:** N. Sugiura (1978); C. M. Hurvich, C.-L. Tsai, Biometrika 76 (1989); E. Ronchetti,
    Statistics & Probability Letters 3 (1985) for other losses.
    """
    n, sigma = sweep.n, 1.0 if sweep.sigma is None else sweep.sigma
    floor = 1e-12 * float(np.sqrt(np.mean((sweep.force / sigma) ** 2)))
    rho = lambda x: 2.0 * float(jnp.sum(loss.rho(jnp.asarray(x))))  # noqa: E731
    k, size = p + 1, max(scale, floor)
    if sweep.sigma_known:
        k, minus2log = p, rho(weighted) + n * np.log(2 * np.pi)
    elif loss.rounds == 1:
        mean_square = max(float(np.mean(weighted**2)), floor**2)
        minus2log = n * (np.log(2 * np.pi * mean_square) + 1.0)
    else:
        minus2log = rho(weighted / size) + n * np.log(2 * np.pi * size**2)
    minus2log += 2.0 * float(np.sum(np.log(np.broadcast_to(sigma, n))))
    aicc = minus2log + 2 * k * n / (n - k - 1) if n > k + 1 else np.inf
    return float(aicc), float(minus2log + k * np.log(n))
