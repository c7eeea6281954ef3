"""Commands for people who run a cluster: everything goes over the wire, or reads files offline."""
