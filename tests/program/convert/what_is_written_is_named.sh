#!/usr/bin/env bash
# Every conversion says which format it writes, and which command writes another one; a grid that is refused is not announced.
. "$MCKPT_SOURCE"/tests/support/common.inc
data=$MCKPT_SOURCE/test_data model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
says() { # says FORMAT COMMAND...
  format=$1
  shift
  expect 0 "$mckpt" "$@"
  has err "writes  $format"
}
says 'fsdp_dtensor: 2 ranks (tp=2 ' convert hf-to-fsdp "$model" fsdp --tp 2
has err 'dp=1 chosen, '
says 'torch_dist: 2 ranks (tp=2 ' convert to-mcore "$model" core --tp 2
says 'Megatron rank files: 2 files (tp=1 ' convert to-pt "$model" pt --pp 2
says 'torch DCP' convert to-dcp fsdp dcp --dp 3
says 'Hugging Face safetensors' export core hf
says 'safetensors' convert pt-to-safetensors "$data/pt/one_tensor.pt" one.safetensors
says 'torch.save' convert safetensors-to-pt one.safetensors one.pt
expect 0 "$mckpt" convert to-mcore core again --tp 1 --dry-run --json
has out '"format": "torch_dist"'

# The format of the source stays.
for source in 'fsdp fsdp_dtensor: 3 ranks' 'core torch_dist: 3 ranks' 'pt Megatron rank files: 1 file'; do
  says "${source#* }" convert reshard ${source%% *} resharded --dp 3 --dry-run
done
expect 0 "$mckpt" convert reshard --help
has out 'The format of SRC stays'

# Stages: the option is on the short page, and a number that does not divide has another way.
for mode in to-mcore to-pt; do
  expect 0 "$mckpt" convert $mode --help
  has out '--pp '
  expect 0 "$mckpt" convert $mode --help-all
  has out '--transformer-impl local'
  expect 4 "$mckpt" convert $mode "$model" no --pp 3
  lacks err 'chosen'
  has err 'MC2007'
done

# Each rank of a DCP folder has a file: more ranks than rows are refused.
for dp in 0 1025 1000000; do
  expect 2 "$mckpt" convert to-dcp fsdp no --dp $dp
  has err 'MC0201'
  has err 'expected 1 to 1,024'
  has err 'no tensor has more than 64 rows'
done
[ ! -e no ] || fail 'a refused folder is there'
expect 0 "$mckpt" convert to-dcp fsdp no --dp 1024 --dry-run
