"""A run that steps from sample to sample: the loop, its events, its derivatives, its lanes."""

from .derivatives import run_samples as run_samples
