"""Quantities that follow from fitted numbers, with errors: what is tied, and what is asked for."""
