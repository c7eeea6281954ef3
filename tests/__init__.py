"""The tests: one folder per kind, what they share beside this file."""
