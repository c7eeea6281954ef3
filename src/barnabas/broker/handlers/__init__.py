"""One module per API: the request's values in, the response's values out."""
