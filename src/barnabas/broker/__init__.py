"""One broker: inputs in, answers and requests out, no clock and no I/O of its own."""
