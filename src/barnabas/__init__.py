"""Barnabas: a Kafka-wire-compatible replicated log in Python."""
