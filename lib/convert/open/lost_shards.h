// The shards of torch DCP's Hugging Face writer (io/safetensors/shards.h) that were lost from the end. No
// file says how many ranks there were or how large a tensor is, so the shards that are left look like a whole
// checkpoint; the config.json of the model knows better.
//
//   shard-00001...: "lm_head.weight" [27, 24] at [0, 0]   (shard-00002...: [26, 24] at [27, 0], lost)
//   config.json: vocab_size 53
#pragma once

namespace mckpt::impl {

class Notes;
class Store;
struct OwnModelOptions;

// Judges shards that a conversion takes as they are (`options.complete` is false) by the model's config, as
// one to a complete model does. Nothing happens for other formats. Throws as open_own().
void judge_shards(const Store& store, const OwnModelOptions& options, Notes& notes);

}  // namespace mckpt::impl
