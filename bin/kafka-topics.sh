#!/bin/sh
# Kafka's script of that name, on Barnabas: the clone's own environment, or the one on PATH.
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
python=$root/.venv/bin/python
[ -x "$python" ] && exec "$python" -m barnabas kafka-topics "$@"
exec barnabas kafka-topics "$@"
