"""The log engine, on the Disk port."""
