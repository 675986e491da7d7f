// Prints a Diff: the verdict first, then which kinds of tensors changed and which did not, then the tensors,
// the most different first.
//
//   3 of 291 tensors differ, 288 are bit-equal; the largest relative difference is 2.1e-3 in model.layers.3...
//   changed  model.layers.*.mlp.down_proj.weight   3 of 36: 3, 7..8
//   same     lm_head.weight, model.embed_tokens.weight, model.layers.*.input_layernorm.weight and 7 more kinds
//   relative L2   largest  cosine   items  first    tensor
//        2.1e-3   0.00391  0.99999     12  [3, 17]  model.layers.3.mlp.down_proj.weight
#pragma once

#include <cstddef>
#include <string>

namespace mckpt::impl {

class JsonWriter;
class Output;
struct Diff;
struct GlobalFlags;

struct DiffShown {
  enum class Only { kAll, kChanged, kEqual };
  Only only = Only::kAll;
  std::size_t top = 20;  // rows of tensors; all with -v
};

// `a` and `b`: the paths as the user gave them.
void write_diff_text(Output& out, const Diff& diff, const std::string& a, const std::string& b,
                     const DiffShown& how, const GlobalFlags& flags);
// The fields behind "a" and "b".
void write_diff_json(JsonWriter& json, const Diff& diff);

}  // namespace mckpt::impl
