"""Find terms that a fitted machine lacks."""
