// Every target that takes a model with its table, of an Opened that is made in memory: a store of names and shapes and
// the map of a family. Each plan is proved; no folder on a disk is read.
#include <gtest/gtest.h>

#include "convert/open/opened.h"
#include "convert/plan/target.h"
#include "convert/plan/targets/fsdp.h"
#include "convert/plan/targets/ranks.h"
#include "convert/plan/targets/torch_dist.h"
#include "core/base/text.h"
#include "hf/model.h"
#include "io/copy/read_sums.h"
#include "mappings/model/source_table.h"
#include "tests/support/golden_config.h"
#include "tests/support/table_store.h"

namespace mckpt::impl {
namespace targets_test {

// A model of the family with the tensors that its table promises, in bfloat16.
Opened model_in_memory(const std::string& name) {
  Opened out;
  out.table = std::make_unique<HfModel>();
  HfModel& model = *out.table;
  model.config = golden_config(name);
  const ModelMap promised = ModelMap::promised(model.config.model, *model.config.family);
  const std::vector<Shape> shapes = promised.source_shapes();
  auto store = std::make_unique<TableStore>("memory");
  i64 at = 0;
  for (i32 t = 0; t < promised.sources().size(); t++) {
    const std::vector<i64> dims(shapes[t].dims().begin(), shapes[t].dims().end());
    store->tensors.push_back({std::string(promised.sources()[t].name), DType::kBF16, dims, {}});
    store->tensors.back().pieces.push_back(
        {std::vector<i64>(dims.size()), dims, {.file = 0, .offset = at, .dtype = DType::kBF16}});
    at += 2 * shapes[t].items();
  }
  SourceTable table;  // refers to the names of the store
  for (const TableStore::Tensor& t : store->tensors) table.add({t.name, t.dims, t.dtype, true});
  model.map = std::make_unique<ModelMap>(model.config.model, *model.config.family, std::move(table));
  model.store = std::move(store);
  out.folders = {"memory"};
  out.has_sums = false;
  return out;
}

constexpr const char* kModels[] = {"qwen3_moe", "gpt_oss", "deepseek_v3"};

struct PlanOfFormat {
  const char* format;
  Conversion conversion;
};

std::vector<PlanOfFormat> plans_of(const std::string& name) {
  std::vector<PlanOfFormat> out;
  const Grid two{.tp = 2, .ep = 2, .dp = 2};
  out.push_back({"fsdp_dtensor",
                 plan_hf_to_fsdp(model_in_memory(name), {.source = "memory", .target = "out", .grid = two})});
  out.push_back({"torch_dist",
                 plan_to_mcore(model_in_memory(name), {.source = "memory", .target = "out", .grid = two})});
  out.push_back({"Megatron rank files",
                 plan_to_ranks(model_in_memory(name), {.source = "memory", .target = "out", .grid = two})});
  return out;
}

TEST(Targets, PlanAModelThatIsInMemory) {
  for (const char* name : kModels)
    for (PlanOfFormat& plan : plans_of(name)) {
      SCOPED_TRACE(cat(name, " as ", plan.format));
      Conversion& c = plan.conversion;
      EXPECT_EQ(c.format, plan.format);
      EXPECT_EQ(c.path, "out/release");
      i64 stored = 0;
      for (i64 t = 0; t < c.store->tensor_count(); t++)
        stored += dtype_bytes(c.store->dtype(t), c.store->shape(t).items());
      EXPECT_FALSE(c.files.empty());
      EXPECT_GE(c.bytes, stored);  // all sizes are final
      EXPECT_EQ(c.sources, std::vector<std::string>{"memory"});
      EXPECT_FALSE(c.sums);
      prove(c, 2);
      EXPECT_EQ(c.account.tensors_in, c.store->tensor_count());
      EXPECT_GT(c.account.tensors_out, 0);
      EXPECT_EQ(c.account.invented, 0);
      const i64 made = c.account.copied + c.account.fused + c.account.split + c.account.tied;
      EXPECT_EQ(made, c.account.tensors_out);
    }
}

// The same source, another grid: another result, which an interrupted run of the first must not go on with.
TEST(Targets, IdentityTellsGridsApart) {
  auto identity = [](i64 dp) {
    const Grid grid{.dp = dp};
    return plan_hf_to_fsdp(model_in_memory("qwen3_moe"), {.source = "memory", .target = "out", .grid = grid})
        .identity;
  };
  EXPECT_EQ(identity(2), identity(2));
  EXPECT_NE(identity(2), identity(4));
}

}  // namespace targets_test
}  // namespace mckpt::impl
