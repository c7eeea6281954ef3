"""Barnabas: a Kafka-wire-compatible replicated log in Python."""

from barnabas import compiled

__version__ = "0.1.0"

compiled.install()
