"""Fits and posteriors in files: numbers are kept bit for bit, and reading does not run code."""

from .fit_file import load_fit as load_fit, load_posterior as load_posterior
