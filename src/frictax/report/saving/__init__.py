"""Fits and posteriors in files: numbers are exact, and reading a file does not run code."""

from .fit_file import load_fit as load_fit, load_posterior as load_posterior
