"""What any broker decides for a client about topics and their settings."""
