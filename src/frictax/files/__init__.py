"""Files: checks before reading and writing, safe replacement, locks, and private folders."""
