"""Patterns in the residuals of a fit."""
