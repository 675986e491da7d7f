#include "io/store/state_part.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "io/store/summary.h"
#include "tests/support/table_store.h"

namespace mckpt::impl {
namespace {

TEST(StatePart, IsToldByTheName) {
  for (auto [name, part] : {std::pair{"model.layers.0.mlp.weight", StatePart::kModel},
                            {"decoder.layers.0.mixer.A_log", StatePart::kModel},
                            {"model.module.decoder.layers.0.mlp.linear_fc1.weight", StatePart::kModel},
                            {"step_embedding.weight", StatePart::kModel},
                            {"lm_head.weight", StatePart::kModel},
                            {"pytorch_model_fsdp.bin:model.norm.weight", StatePart::kModel},
                            {"model_optim_rng.pt:model.norm.weight", StatePart::kModel},
                            {"optimizer.state.0.exp_avg", StatePart::kOptimizer},
                            {"app.optimizer.state.model.norm.weight.step", StatePart::kOptimizer},
                            {"optimizer_states.0.state.0.exp_avg", StatePart::kOptimizer},
                            {"state.0.exp_avg_sq", StatePart::kOptimizer},
                            {"state.0.step", StatePart::kOptimizer},
                            {"model.norm.weight.momentum_buffer", StatePart::kOptimizer},
                            {"optimizer.bin:state.model.norm.weight.step", StatePart::kOptimizer},
                            {"zero_pp_rank_0_mp_rank_00_optim_states.pt:base.0", StatePart::kOptimizer},
                            {"mp_rank_00/distrib_optim.pt:0.param", StatePart::kOptimizer},
                            {"rng_state.0.torch_rng_state", StatePart::kOther},
                            {"rank_3:rng", StatePart::kOther},
                            {"extra_state:rng.cpu", StatePart::kOther},
                            {"rng_state_0.pth:cpu", StatePart::kOther},
                            {"decoder.layers.0.mlp._extra_state", StatePart::kOther},
                            {"bn.num_batches_tracked", StatePart::kOther},
                            {"step", StatePart::kOther}})
    EXPECT_EQ(part_name(part_of(name)), part_name(part)) << name;
}

TEST(StatePart, IsToldByTheNameOfAFile) {
  for (auto [name, part] : {std::pair{"pytorch_model_fsdp_0", StatePart::kModel},
                            {"model_optim_rng.pt", StatePart::kModel},
                            {"optimal.safetensors", StatePart::kModel},
                            {"upsampler.pt", StatePart::kModel},
                            {"actor", StatePart::kModel},
                            {"optimizer_0", StatePart::kOptimizer},
                            {"run/optimizer.bin", StatePart::kOptimizer},
                            {"distrib_optim.pt", StatePart::kOptimizer},
                            {"scheduler.pt", StatePart::kOther},
                            {"random_states_0.pkl", StatePart::kOther},
                            {"rng_state_3.pth", StatePart::kOther},
                            {"training_args.bin", StatePart::kOther},
                            {"scaler.pt", StatePart::kOther},
                            {"train_dataloader.pt", StatePart::kOther},
                            {"dataloader_0.pt", StatePart::kOther},
                            {"data.pt", StatePart::kOther}})
    EXPECT_EQ(part_name(part_of_path(name)), part_name(part)) << name;
}

// Bytes count the files; parameters count the model.
TEST(StatePart, CountsPackedParametersOneByOne) {
  TableStore store("nowhere");
  auto add = [&](const char* name, DType dtype, const std::vector<i64>& dims) {
    TableStore::Tensor& t = store.tensors.emplace_back();
    t.name = name, t.dtype = dtype, t.dims = dims;
  };
  add("norm.weight", DType::kBF16, {10});
  add("experts.down_proj_blocks", DType::kU8, {4, 16});  // MXFP4
  add("experts.down_proj_scales", DType::kU8, {4, 1});
  add("a.weight_packed", DType::kI32, {8, 2});  // compressed-tensors
  add("a.weight_scale", DType::kBF16, {8, 1});
  add("a.weight_shape", DType::kI64, {2});
  add("b.qweight", DType::kI32, {2, 8});  // GPTQ
  add("b.qzeros", DType::kI32, {1, 1});
  add("b.scales", DType::kF16, {1, 8});
  add("c.weight", DType::kU8, {4, 8});  // NVFP4
  add("c.weight_scale", DType::kF8E4M3, {4, 1});
  add("c.weight_scale_2", DType::kF32, {});
  add("c.input_scale", DType::kF32, {});
  add("d.weight", DType::kU8, {32, 1});  // NF4
  add("d.weight.absmax", DType::kF32, {1});
  add("d.weight.quant_state.bitsandbytes__nf4", DType::kU8, {80});
  add("f.weight", DType::kI8, {4, 4});  // bitsandbytes, 8 bits
  add("f.SCB", DType::kF32, {4});
  add("f.weight_format", DType::kU8, {});
  add("self_attn.q_zero_point", DType::kF8E4M3, {1});
  add("self_attn.k_scale", DType::kBF16, {1});  // a quantised cache
  add("self_attn.v_scale", DType::kBF16, {4});
  add("mixer.k_proj.weight", DType::kBF16, {2});
  add("mixer.k_scale", DType::kBF16, {1});
  add("e.weight", DType::kF8E4M3, {4, 4});
  add("e.weight_scale_inv", DType::kF32, {1, 1});
  StoreSummary s = summarize(store);
  EXPECT_EQ(s.part(StatePart::kModel).items, 10 + 128 + 128 + 128 + 64 + 64 + 16 + 16 + 2);
  EXPECT_EQ(s.part(StatePart::kModel).tensors, 9);
  EXPECT_EQ(s.part(StatePart::kOther).tensors, 17);
  // As config.json says it.
  for (auto [bits, items] : {std::pair{4, 128}, {8, 64}, {2, 256}}) {
    TableStore of_bits = store;
    of_bits.add_fact("packed bits", cat(bits));
    EXPECT_EQ(summarize(of_bits).part(StatePart::kModel).items, 10 + 128 + 2 * items + 64 + 64 + 16 + 16 + 2);
  }
}

// 160 rows in as many words as their bits need, 3 columns: no width but 2, 4 and 8 fills each word by itself.
TEST(StatePart, CountsValuesOfEveryWidth) {
  for (i64 bits = 2; bits <= 8; bits++) {
    TableStore store("nowhere");
    store.tensors.push_back({"b.qweight", DType::kI32, {160 * bits / 32, 3}, {}});
    store.tensors.push_back({"b.scales", DType::kF16, {1, 3}, {}});
    store.add_fact("packed bits", cat(bits));
    EXPECT_EQ(StateParts(store).parameters(0), 160 * 3) << bits;
    EXPECT_TRUE(StateParts(store).is_packed(0));
    EXPECT_FALSE(StateParts(store).is_packed(1));
    EXPECT_EQ(summarize(store).part(StatePart::kModel).items, 160 * 3) << bits;
    // Who decodes the values knows better.
    EXPECT_EQ(summarize(store, {{"b.qweight", 155 * 3}, {"b.scales", 9}}).part(StatePart::kModel).items,
              155 * 3);
    StoreSummary beside = summarize(store, {{"b.qweight", std::nullopt}, {"b.scales", 9}});
    EXPECT_EQ(beside.part(StatePart::kModel).tensors, 0);
    EXPECT_EQ(beside.part(StatePart::kOther).items, 160 * bits / 32 * 3 + 3);
  }
}

TEST(StatePart, WordsOfQuantizationMeanNothingWithoutAWeight) {
  TableStore store("nowhere");
  for (const char* name : {"logit_scale", "blocks.scales"}) {
    TableStore::Tensor& t = store.tensors.emplace_back();
    t.name = name, t.dims = {4};
  }
  EXPECT_EQ(summarize(store).part(StatePart::kModel).items, 8);
}

}  // namespace
}  // namespace mckpt::impl
