"""What runs inside the worker: the measuring itself. Beside layers' build() and backends' apply(), the only room that
imports torch."""

import os

# Kineto writes a line for each profile otherwise; it reads this when torch is imported.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")
