// The dialects of DCP folders. The container is the same for all; the names show who wrote it:
//
//   fsdp_dtensor   model.module.<param>   optimizer.state.module.module.module.<param>.exp_avg
//                                         optimizer.param_to_group_meta.module.module.module.<param>.<field>
//   megatron_fsdp  model.module.<param>   optimizer.state.<number>.exp_avg    (fully_shard's hooks)
//   state_dict     model.<param>          optimizer.state.<param>.exp_avg       (FSDP2, Megatron-FSDP v2)
//   torch_dist     <param>                optimizer.state.exp_avg.<param>     objects <name>/shard_0_1
//   plain          anything else
#pragma once

#include <string_view>

#include "core/base/int.h"
#include "io/store/dcp_dialect.h"

namespace mckpt::impl {

enum class Format : u8;

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

}  // namespace mckpt::impl
