"""What an observer found."""

import dataclasses

import numpy as np
from jaxtyping import Bool, Float

from frictax.parameters import Numbers
from frictax.text import aligned, figures, suggestion


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Filtered:
    """States and drifting parameters at each sample, as the samples up to it tell; what
    `kalman_filter` returns.

    - `t` (n,) [s]; `names` (k,): the states, then the parameters that were estimated; `outputs`
      (c,).
    - `mean` (n, k), `covariance` (n, k, k): after the sample. ``found["mass.v"]`` is one column,
      ``found.sd["mass.v"]`` its standard deviation.
    - `innovation` (n, c), `innovation_covariance` (n, c, c): measured minus predicted, before the
      sample was used.
    - `nis` (n,): the innovations squared in units of their covariance. Their mean is c where the
      filter is as sure as it may be, and larger where it is too sure.
    - `log_likelihood`: of all samples.
    - `stuck`: contact -> (n,), the probability that it sticks; of a single filter 0 or 1.

    **Example:** at `kalman_filter`.
    """

    t: Float[np.ndarray, " n"]
    names: tuple[str, ...]
    outputs: tuple[str, ...]
    mean: Float[np.ndarray, "n k"]
    covariance: Float[np.ndarray, "n k k"]
    innovation: Float[np.ndarray, "n c"]
    innovation_covariance: Float[np.ndarray, "n c c"]
    nis: Float[np.ndarray, " n"]
    log_likelihood: float
    stuck: dict[str, Float[np.ndarray, " n"]]

    def __getitem__(self, name: str) -> Float[np.ndarray, " n"]:
        if name not in self.names:
            raise KeyError(
                f"The filter did not estimate {name!r}.{suggestion(name, self.names)} It has:"
                f" {', '.join(self.names)}."
            )
        return self.mean[:, self.names.index(name)]

    @property
    def sd(self) -> dict[str, Float[np.ndarray, " n"]]:
        """Standard deviation of each state and parameter."""
        sd = np.sqrt(np.maximum(np.einsum("nii->in", self.covariance), 0.0))
        return dict(zip(self.names, sd, strict=True))

    @property
    def consistent(self) -> bool:
        """Whether the mean of `nis` lies where it does in 95 % of the records of a right model."""
        return bool(abs(float(np.mean(self.nis)) - len(self.outputs)) <= self._half)

    @property
    def _half(self) -> float:
        # nis summed over a record is chi-square distributed, with n*c degrees of freedom
        return 1.96 * float(np.sqrt(2.0 * len(self.outputs) / self.t.size))

    def within(self, name: str, truth: Float[Numbers, " n"], sds: float) -> Bool[np.ndarray, " n"]:
        """Where a `truth` that is known lies within `sds` standard deviations of the estimate, or a
        rounding from it: what sticks has none.
        """
        error = np.abs(np.asarray(truth) - self[name])
        return error <= sds * self.sd[name] + 1e-12 * (1.0 + np.abs(self[name]))

    def __str__(self) -> str:
        c, n = len(self.outputs), self.t.size
        head = ("", "at the end", "sd")
        rows = [
            (name, figures(self.mean[-1, i], 4), figures(self.sd[name][-1], 2))
            for i, name in enumerate(self.names)
        ]
        usual = f"95 % of the records of a right model have {c} +- {self._half:.3f}"
        nis = f"mean NIS {np.mean(self.nis):.3f}; {usual}"
        sticks = [f"{name} sticks {100 * p.mean():.1f} %" for name, p in self.stuck.items()]
        first = f"{n} samples of {', '.join(self.outputs)} filtered"
        return "\n".join([first, *aligned(head, rows), nis, *sticks])

    def __repr__(self) -> str:
        return f"Filtered({self.t.size} samples; {', '.join(self.names)})"
