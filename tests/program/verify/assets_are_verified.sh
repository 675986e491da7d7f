#!/usr/bin/env bash
# Files beside the weights that mckpt needs or copies: `verify` reads them, `--against` compares those that a
# conversion copies.
. "$MCKPT_SOURCE"/tests/support/common.inc
cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe model
echo '{"eos_token_id": 1}' > model/generation_config.json
echo '[1, 2]' > model/modules.json
expect 0 "$mckpt" verify model
expect 0 "$mckpt" convert hf-to-fsdp model run --no-sync -q
expect 0 "$mckpt" export run back --no-sync -q
expect 0 "$mckpt" verify run
has out "pass  assets"
expect 0 "$mckpt" verify run --against model
expect 0 "$mckpt" verify back --against run

# Numbers that Python writes and JSON has not: configs of transformers have them.
cp -r model with_numbers
sed -i 's/^{/{"time_step_limit": [0.0, Infinity], "of_nothing": NaN,/' with_numbers/config.json
expect 0 "$mckpt" verify with_numbers
lacks out "MC1003"

# Each broken in turn: PATH, the file, what stands in it.
broken() {
  cp "$1/$2" kept
  printf '%s' "$3" > "$1/$2"
  expect 1 "$mckpt" verify "$1"
  has out "${2#release/}: "
  has out "MC1003"
  cp kept "$1/$2"
}
for text in '{"a": ' '' '[1]'; do
  broken back generation_config.json "$text"
  broken run release/hf_assets/config.json "$text"
  broken run release/hf_assets/mckpt_tensors.json "$text"
done
broken back config.json '{"a": '
expect 0 "$mckpt" verify back
rm back/mckpt_manifest.json  # from here on it is changed on purpose
# Faults that others read are theirs to judge: a name twice, a line of JSON after another.
printf '%s' '{"a": 1, "a": 2}' > back/vocab.json
printf '%s\n' '[1]' '[2]' > back/modules.json
expect 0 "$mckpt" verify back
has out "warn  assets"
has out "vocab.json: "
has out "modules.json: "
rm back/vocab.json
cp model/modules.json back/modules.json

echo '{"eos_token_id": 2}' > back/generation_config.json
expect 1 "$mckpt" verify back --against run
has out "generation_config.json: the file differs at .eos_token_id: expected 1, found 2"
has out "back: not equal"
expect 1 "$mckpt" verify run --against back
# Exported with other assets, it has those.
cp -r model others
echo '{"eos_token_id": 3}' > others/generation_config.json
expect 0 "$mckpt" export run with_others --assets others --no-sync -q
expect 0 "$mckpt" verify with_others --against run --assets others
expect 1 "$mckpt" verify with_others --against run
# Under another number it is another iteration.
expect 0 "$mckpt" convert reshard run later --iteration 5 --no-sync -q
expect 0 "$mckpt" verify later --against run
has out "not compared: iteration"
rm back/generation_config.json
expect 0 "$mckpt" verify back --against run
has out "not compared: generation_config.json, which only run/release has"

# A file that cannot be opened is a finding; the rest is judged all the same.
cp -r model odd
ln -s /etc/passwd odd/tokenizer.json
mkfifo odd/pipe.json
expect 1 "$mckpt" verify odd
has out "tokenizer.json: "
has out "pipe.json: "
has out "pass  values"

# Two models with the same weights: that their configs differ is a warning.
cp -r model other
expect 0 "$mckpt" verify other --against model
lacks out "warn"
sed -i 's/1000000\.0/5.0/' other/config.json
expect 0 "$mckpt" verify other --against model
has out "warning[MC1010]: config.json: the file differs at .rope_theta: expected 1000000.0, found 5.0"
has out "other: equal"

# Two models: one that lost its config.json still has its other files.
cp -r model bare
rm bare/config.json
expect 0 "$mckpt" verify bare --against model
has out "not compared: config.json, which only model has"
echo '{"eos_token_id": 4}' > bare/generation_config.json
expect 1 "$mckpt" diff model bare
has out "file     generation_config.json.eos_token_id  1 | 4"
has out "file     config.json  only model has this file"
