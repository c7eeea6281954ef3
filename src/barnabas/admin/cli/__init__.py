"""The noun-verb commands, one module for each noun."""
