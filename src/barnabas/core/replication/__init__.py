"""What a replica decides: a leader's watermark and in-sync set, a follower's truncation."""
