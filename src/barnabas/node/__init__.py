"""The real world around a broker: sockets, files, clocks, processes."""
