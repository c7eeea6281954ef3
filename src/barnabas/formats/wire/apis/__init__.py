"""One schema per API, read by tools/generate_codec.py and by tests, never by a running broker."""
