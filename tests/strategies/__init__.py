"""Hypothesis strategies for values of the formats."""
