"""The controller's decisions: events and what the store said in, writes and requests out."""
