"""A fit in a file, and back: numbers bit for bit, and no code of the file's."""

from .fit_file import load_fit as load_fit, load_posterior as load_posterior
