// The dialects of DCP folders. The container is the same for all; the names show who wrote it:
//
//   fsdp_dtensor   model.module.<param>   optimizer.state.module.module.module.<param>.exp_avg
//                                         optimizer.param_to_group_meta.module.module.module.<param>.<field>
//   megatron_fsdp  model.module.<param>   optimizer.state.<number>.exp_avg    (fully_shard's hooks)
//   state_dict     model.<param>          optimizer.state.<param>.exp_avg       (FSDP2, Megatron-FSDP v2)
//   torch_dist     <param>                optimizer.state.exp_avg.<param>     objects <name>/shard_0_1
//   plain          anything else
#pragma once

#include <optional>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

enum class Format : u8;

enum class DcpDialect : u8 { kPlain, kFsdpDtensor, kMegatronFsdp, kStateDict, kTorchDist };
Format dcp_format(DcpDialect dialect);

// Collects evidence name by name: feed it all names, in any order, then ask for the dialect.
class DialectVotes {
 public:
  void tensor(std::string_view name);
  void object(std::string_view name);
  // has_metadata_json: the marker file of torch_dist is there.
  DcpDialect dialect(bool has_metadata_json) const;

 private:
  bool model_module_ = false, model_other_ = false;
  bool state_module_ = false, state_number_ = false, state_name_ = false, group_meta_ = false;
  bool megatron_item_ = false, split_half_ = false, shard_object_ = false, other_tensor_ = false;
};

// A key in its parts. The views point into the key.
struct DcpKey {
  enum class Section : u8 { kOther, kModel, kState, kGroupMeta };
  Section section = Section::kOther;
  std::string_view
      parameter;           // without "model." and any "module.": "decoder.layers.0.mlp.linear_fc1.weight_w"
  std::string_view field;  // of kState "exp_avg" and the like, of kGroupMeta "lr" and the like
};
// Splits a key of that dialect; kOther for a key that is none of model, state or group meta.
DcpKey split_key(DcpDialect dialect, std::string_view key);

// The length of "chained_0." in front of a key of torch_dist, 0 without it. Models with experts have two
// optimizers, and Megatron chains them.
std::size_t chain_bytes(std::string_view key);

// The parameter that a half of a gated tensor ("..._w", "..._v") was split from; the same text for any
// other name. `half` becomes 'w', 'v' or 0.
std::string_view unsplit(std::string_view parameter, char& half);

// The number behind the first `stem` that is followed by one: numbered("decoder.layers.12.mlp", "layers.")
// is 12, with the text before it ("decoder.layers.") and after it (".mlp").
struct Numbered {
  std::string_view before, after;
  i64 number = 0;
};
std::optional<Numbered> numbered(std::string_view name, std::string_view stem);

}  // namespace mckpt::impl
