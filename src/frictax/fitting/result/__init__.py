"""The answer of a fit, and what it says in words."""
