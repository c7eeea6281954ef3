"""Barnabas: a Kafka-wire-compatible replicated log in Python."""

from barnabas import compiled

compiled.install()
