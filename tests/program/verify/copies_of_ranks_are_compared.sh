#!/usr/bin/env bash
# Ranks that hold copies of one piece of a tensor, of which one differs: `verify` fails.
. "$MCKPT_SOURCE"/tests/support/common.inc
cat > ones.py <<'P'
import sys, zipfile
old = zipfile.ZipFile(sys.argv[1])
with zipfile.ZipFile(sys.argv[2], 'w') as new:
    for entry in old.infolist():
        data = old.read(entry)
        new.writestr(entry, b'\1' * len(data) if '/data/' in entry.filename else data)
P
cp -r "$MCKPT_SOURCE/test_data/pt/ranks" ranks
expect 0 "$mckpt" verify ranks
last=$(ls ranks/*.pt | tail -n 1)
cp "$last" old.pt
python ones.py old.pt "$last"
expect 1 "$mckpt" verify ranks
has out MC1113
has out "rank 3 has other values of the tensor than rank 0, of which it has a copy"
