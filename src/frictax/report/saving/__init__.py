"""Save and load fits and posteriors with exact numbers. Loading does not run code of the file."""

from .fit_file import load_fit as load_fit, load_posterior as load_posterior
