"""The result of a fit, and its tables and notices as text."""
