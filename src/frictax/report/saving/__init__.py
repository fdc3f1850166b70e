"""Save and load fits and posteriors: numbers are exact, and loading does not run code of a file."""

from .fit_file import load_fit as load_fit, load_posterior as load_posterior
