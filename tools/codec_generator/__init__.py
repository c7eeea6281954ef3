"""Turns the schemas of barnabas.formats.wire.apis into the text of plain modules."""
