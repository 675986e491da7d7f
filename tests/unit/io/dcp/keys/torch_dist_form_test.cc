// Facts from the keys of a torch_dist folder about the version and the settings that saved it.
#include "io/dcp/keys/torch_dist_form.h"

#include <gtest/gtest.h>

#include "core/base/text.h"

namespace mckpt::impl {
namespace torch_dist_form_test {

std::string form_of(const std::vector<std::string_view>& tensors,
                    const std::vector<std::string_view>& objects = {}) {
  TorchDistForm form;
  for (std::string_view name : tensors) form.tensor(name);
  for (std::string_view name : objects) form.object(name);
  std::string out;
  for (const auto& [name, value] : form.facts()) out += cat(out.empty() ? "" : "; ", name, ": ", value);
  return out;
}

TEST(TorchDistForm, IsThatOfItsKeys) {
  struct Case {
    std::vector<std::string_view> tensors, objects;
    std::string_view expected;
  };
  const Case cases[] = {
      {{"decoder.layers.mlp.linear_fc1.weight"},
       {"decoder.layers.mlp.linear_fc1._extra_state/shard_0_2"},
       "layers: one tensor"},
      {{"decoder.layers.0.mlp.experts.experts.linear_fc1.weight", "decoder.layers.1.mlp.router.weight"},
       {"decoder.layers.0.mlp.experts.experts.linear_fc1._extra_state/shard_3_4"},
       "layers: a tensor each; experts: one tensor"},
      // singleton_local_shards of a version without extra states
      {{"decoder.layers.0.mlp.experts.experts.7.linear_fc1.weight_w"},
       {},
       "layers: a tensor each; experts: a tensor each; extra states: none"},
      {{"vision_model.decoder.layers.mlp.linear_fc1.weight",
        "language_model.decoder.layers.11.mlp.linear_fc2.weight"},
       {"x._extra_state/shard_0_1"},
       "layers: one tensor, and a tensor each"},
      {{"optimizer.state.fp32_param.decoder.layers.mlp.linear_fc1.weight"},
       {},
       "optimizer: fully_sharded_model_space"},
      {{"chained_0.optimizer.state.param.decoder.layers.mlp.linear_fc1.weight"},
       {},
       "optimizer: fully_reshardable"},
      {{"optimizer.state.exp_avg.decoder.layers.mlp.linear_fc1.weight"}, {}, "optimizer: by parameter"},
      {{"optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(torch.bfloat16, "
        "torch.float32).bucket_idx_0.exp_avg"},
       {},
       "optimizer: dp_reshardable, by buckets of the run"},
      {{},
       {"optimizer.distributed.dp_group_idx_0.param_state/shard_0_1"},
       "optimizer: dp_zero_gather_scatter, by ranks of the run"},
      {{"chained_0.optimizer.state.momentum_buffer.decoder.layers.mlp.linear_fc1.weight",
        "chained_0.optimizer.state.fp32_param.decoder.layers.mlp.linear_fc1.weight",
        "chained_1.optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_x.bucket_idx_0.param"},
       {},
       "optimizer: by parameter, and dp_reshardable, by buckets of the run"},
      // Layers of MTP are never one tensor.
      {{"mtp.layers.0.transformer_layer.mlp.linear_fc1.weight"}, {"y._extra_state/shard_0_1"}, ""},
  };
  for (const Case& c : cases) EXPECT_EQ(form_of(c.tensors, c.objects), c.expected);
}

}  // namespace torch_dist_form_test
}  // namespace mckpt::impl
