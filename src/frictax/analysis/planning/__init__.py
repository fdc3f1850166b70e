"""What a record can tell before it is fitted, and which motion would tell more."""
