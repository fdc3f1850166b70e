"""What a notebook shows of an object."""
