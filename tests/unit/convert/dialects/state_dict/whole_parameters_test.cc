// Parameters made whole from their parts, from a table of tensors that is written by hand: what is one value
// for each part is compared, and not only taken from the first.
#include "convert/dialects/state_dict/whole_parameters.h"

#include <gtest/gtest.h>

#include <bit>

#include "convert/views/piece_store.h"
#include "core/base/text.h"
#include "hf/model.h"
#include "mappings/model/expand.h"
#include "mappings/model/run_setup.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace whole_parameters_test {

const std::string kLlama = std::string(MCKPT_TEST_DATA) + "/golden/models/tiny_llama1";
const std::string kPart = "optimizer.state.module.module.module.decoder.layers.0.mlp.linear_fc1.weight";

// The states `field` of the two halves of a gated parameter: one value each, or two rows.
struct Halves {
  std::string field;
  float w, v;
  std::vector<i64> dims_of_v{};
};

class WholeParametersOf : public testing::Test {
 protected:
  std::unique_ptr<Store> store(const std::vector<Halves>& states) {
    std::string bytes;
    auto out = std::make_unique<TableStore>(folder_.path());
    auto add = [&](std::string name, float value, std::vector<i64> dims) {
      ChunkData data;
      data.file = 0;
      data.dtype = DType::kF32;
      data.offset = std::ssize(bytes);
      u32 bits = std::bit_cast<u32>(value);
      for (i64 i = 0; i < Shape(dims).items(); i++) bytes.append(reinterpret_cast<const char*>(&bits), 4);
      out->tensors.push_back({name, DType::kF32, dims, {{std::vector<i64>(dims.size()), dims, data}}});
    };
    for (const Halves& s : states) {
      add(cat(kPart, "_w.", s.field), s.w, {});
      add(cat(kPart, "_v.", s.field), s.v, s.dims_of_v);
    }
    folder_.put("data", bytes);
    out->add_file("data", std::ssize(bytes));
    return out;
  }

  // The names of the view.
  std::vector<std::string> names_of(const std::vector<Halves>& states, bool weights_only = false) {
    WholeParameters whole = whole_parameters(store(states), *model_.map, RunSetup{}, weights_only);
    std::vector<std::string> out;
    for (i64 t = 0; t < whole.store->tensor_count(); t++)
      out.push_back(cat(whole.store->name(t), dims_to_string(whole.store->dims(t))));
    return out;
  }

 private:
  TempFolder folder_;
  HfModel model_ = open_hf_model(kLlama);
};

TEST_F(WholeParametersOf, TakesAValueThatAllPartsHave) {
  EXPECT_EQ(names_of({{"step", 17, 17}, {"scale", -2, -2}}),
            (std::vector<std::string>{kPart + ".step[]", kPart + ".scale[]"}));
}

TEST_F(WholeParametersOf, RefusesValuesThatDiffer) {
  std::string told = thrown_by([&] { names_of({{"scale", 4, 4}, {"step", 17, 18}}); });
  EXPECT_NE(told.find("MC2005"), told.npos) << told;
  EXPECT_NE(told.find("the parts of one parameter have different values of a state"), told.npos) << told;
  EXPECT_NE(told.find(kPart + "_v.step"), told.npos) << told;
  EXPECT_EQ(names_of({{"scale", 4, 4}, {"step", 17, 18}}, true).size(), 2u);
}

TEST_F(WholeParametersOf, LeavesAValueBesideRowsAsItIs) {
  EXPECT_EQ(names_of({{"step", 17, 18, {14, 12}}}),
            (std::vector<std::string>{kPart + "_w.step[]", kPart + "_v.step[14, 12]"}));
}

}  // namespace whole_parameters_test
}  // namespace mckpt::impl
