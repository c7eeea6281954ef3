"""Kafka's own scripts: the same names, flags, output and messages."""
