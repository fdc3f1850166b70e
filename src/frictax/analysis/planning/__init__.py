"""Accuracy that a record allows, predicted before the fit, and motions that improve it."""
