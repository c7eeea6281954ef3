"""Record batches: the bytes of a log and of produce and fetch, version 2 and what came before."""
