"""Files: checks before writing, safe replacement, and folders that only the user writes to."""
