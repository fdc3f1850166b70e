"""The HTML report of a fleet."""
