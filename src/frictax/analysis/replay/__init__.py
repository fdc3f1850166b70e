"""Runs of a fitted machine beside its record."""
