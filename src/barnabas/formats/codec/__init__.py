"""Schema notation for bytes and values, and the small functions that generated codecs call."""
