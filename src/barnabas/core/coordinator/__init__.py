"""Coordinators: what they know is what stands in the records of their partitions."""
