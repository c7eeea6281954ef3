"""What the znodes add up to."""
