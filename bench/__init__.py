"""The figures of docs/performance.md: what a request costs, beside a reference broker in C."""
