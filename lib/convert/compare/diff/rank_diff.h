// A diff of a live rank: its dump (io/rank_dump) against what the mapping of the model gives that rank. A
// rule that is wrong in both directions passes every round trip; here the other side is Megatron itself.
//
//   dump of rank 1                                   model, by rule                     row
//   decoder.layers.0.mixer.norm.weight  [80]         [160]                              shape
//   decoder.layers.0.mixer.D            partition 0  partition -1                       attribute
//   decoder.layers.1.mlp.linear_fc1...  sha256 a     sha256 b                           values
#pragma once

#include <string>

namespace mckpt::impl {

class Observer;
struct Diff;
struct DiffOptions;

// pre: options.live. One of the two paths is a dump, the other the folder of a Hugging Face model. Throws
// kUsage if not, and for options that a comparison of digests cannot have; what reading the dump and
// RankShare throw; kNotFound for a folder without weights.
Diff diff_with_rank(const std::string& a, const std::string& b, const DiffOptions& options,
                    Observer& observer);

}  // namespace mckpt::impl
