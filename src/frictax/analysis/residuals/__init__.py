"""What a fit leaves, and what it looks like."""
