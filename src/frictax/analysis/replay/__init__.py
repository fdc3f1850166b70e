"""Simulations of a fitted machine, compared with its record."""
