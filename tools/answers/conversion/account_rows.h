// The account of a conversion tensor by tensor: what each tensor of the result is made of, by which rule, and
// what was done to its values; what of the source the result does not have. As JSON in the file of --report,
// and as text with -v.
//
//   {"name": "decoder.layers.0.self_attention.linear_qkv.weight", "made": "fused", "rule": "qkv", "items": 1024,
//    "from": [{"name": "model.layers.0.self_attn.q_proj.weight", "items": 512, "cast": null, "added": 0}, ...],
//    "zeros": 0, "changed_items": 0}
//
//   fused     decoder.layers.{0-47}.self_attention.linear_qkv.weight  (48)  qkv of model.layers.{0-47}...q_proj.weight, ...
#pragma once

#include <span>
#include <string>
#include <vector>

#include "convert/jobs/tensor_account.h"

namespace mckpt::impl {

class JsonWriter;
struct Conversion;
struct GlobalFlags;

// One tensor of the result.
struct AccountRow {
  i64 target = -1;
  Made made = Made::kCopied;
  std::string_view rule;            // "" if no rule makes it
  std::span<const TensorUse> from;  // without zeros
  i64 zeros = 0, changed = 0;       // items
};
// A tensor of the source of which the result has not all items.
struct UnreadRow {
  i64 source = -1, items = 0;
  std::string reason;
  i64 copy_of = -1;
};

// The rows in the natural order of their names. pre, for all functions: the conversion has `tensors`.
std::vector<AccountRow> account_rows(const Conversion& conversion);
std::vector<UnreadRow> unread_rows(const Conversion& conversion);
std::string_view made_name(Made made);  // "fused"
// "float32 to bfloat16", "float32 through bfloat16 to float32"; "" if types stay.
std::string cast_text(const ItemCast& cast);
inline float added(const ItemCast& cast) { return cast.add_before + cast.add_after; }

// The fields `tensors` and `left_out` of the object that is open.
void write_account_rows(JsonWriter& json, const Conversion& conversion);
// Prints these rows to stderr, one line for tensors whose names differ in numbers alone.
void note_tensors(const GlobalFlags& flags, const Conversion& conversion);

}  // namespace mckpt::impl
