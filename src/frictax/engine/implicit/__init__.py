"""Linearly implicit steps."""
