"""A designed experiment, drawn and as a page."""
