"""Unmodified clients of Kafka behind one small interface, each in its own words."""
