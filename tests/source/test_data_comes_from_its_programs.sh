#!/usr/bin/env bash
# Programs of the test data that need no library write the files that are there.
set -euo pipefail
[ -n "${MCKPT_PYTHON:-}" ] || { echo "skipped: there is no python3"; exit 77; }
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
"$MCKPT_PYTHON" "$MCKPT_SOURCE/test_data/models/make_tiny_qwen3_moe.py" "$t/tiny_qwen3_moe"
diff -r "$t/tiny_qwen3_moe" "$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe"
