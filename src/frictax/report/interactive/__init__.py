"""The interactive pictures of a report, what moves them, and what can be downloaded."""
