#!/usr/bin/env bash
# A tensor that cannot be taken is not an unknown name: whoever asks for it is told why
. "$MCKPT_SOURCE"/tests/support/common.inc
python -c "import torch" || skip "there is no torch"
python - <<'PY'
import torch
z, y = torch.tensor([1 + 2j, 3 + 4j]), torch.tensor([1 + 2j, 3 + 4j])
torch.save({"conjugate": z.conj(), "negative": y.conj().imag, "plain": torch.ones(2)}, "x.pt")
torch.save({"conjugate": z.conj().resolve_conj(), "negative": y.conj().imag.resolve_neg()}, "y.pt")
PY
expect 3 "$mckpt" cat x.pt conjugate
has err "not the values of the tensor but their conjugate"
has err "resolve_conj()"
expect 3 "$mckpt" cat x.pt negative
has err "the file stores not the values of the tensor but their negative"
expect 1 "$mckpt" ls x.pt
has out plain
has err "tensor 'negative': the file stores not the values"
expect 0 "$mckpt" verify x.pt
has out "sound, with warnings"
expect 3 "$mckpt" convert pt-to-safetensors x.pt x.safetensors

expect 0 "$mckpt" cat y.pt negative
has out "-2  -4"
expect 0 "$mckpt" cat y.pt conjugate
