"""Everything in a log directory that is not a record batch: bytes to values and back."""
