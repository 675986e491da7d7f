#!/usr/bin/env bash
# Names with controls of terminals or of the writing direction are escaped in JSON, and mean the same there.
. "$MCKPT_SOURCE"/tests/support/common.inc
cat > make.py <<'P'
import json, struct
text = json.dumps({'w\u009b2J\u202ex\u2066\u00e9\u2020': {'dtype': 'U8', 'shape': [1], 'data_offsets': [0, 1]}}, ensure_ascii=False).encode()
open('t.safetensors', 'wb').write(struct.pack('<Q', len(text)) + text + b'a')
P
cat > check.py <<'P'
import json
raw = open('out', 'rb').read().decode()
assert not set(raw) & set('\u009b\u202e\u2066'), raw
assert json.loads(raw)['tensors'][0]['name'] == 'w\u009b2J\u202ex\u2066\u00e9\u2020'
P
python make.py
expect 0 "$mckpt" ls --json t.safetensors
python check.py || fail "the name is another"
