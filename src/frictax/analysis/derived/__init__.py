"""Tied and derived quantities of fitted parameters, with their errors."""
