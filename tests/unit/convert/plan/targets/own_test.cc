// The notes of one file of a model's tensors about types that it cannot hold, or does not change.
#include "convert/plan/targets/own.h"

#include <gtest/gtest.h>

#include "convert/plan/conversion.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace own_plan_test {

// model.a and model.b, of two items each.
std::unique_ptr<Store> two_tensors(TempFolder& folder, DType b) {
  folder.put("data", std::string(64, '\1'));
  auto store = std::make_unique<TableStore>(folder.path());
  store->add_file("data", 64);
  for (auto [name, type, at] :
       {std::tuple("model.a.weight", DType::kBF16, i64{0}), {"model.b.weight", b, i64{8}}})
    store->tensors.push_back({name, type, {2}, {{{0}, {2}, {.file = 0, .offset = at, .dtype = type}}}});
  return store;
}

OneFileOptions into(const TempFolder& folder, ExportTypes types) {
  return {
      .source = folder.path(), .target = cat(folder.path(), "/out.safetensors"), .types = std::move(types)};
}

TEST(PlanOneFile, NamesAnotherWayForTypesThatItCannotHold) {
  TempFolder folder;
  try {
    plan_one_file(two_tensors(folder, DType::kC128), into(folder, {.kind = ExportTypes::kStored}));
    FAIL() << "it was planned";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kNotHeld);
    EXPECT_NE(e.help().find("mckpt convert to-dcp"), std::string::npos) << e.help();
    EXPECT_EQ(e.help().find("exclude"), std::string::npos) << e.help();
  }
}

TEST(PlanOneFile, SaysWhichFloatsATypeForAllDoesNotChange) {
  TempFolder folder;
  Conversion c = plan_one_file(two_tensors(folder, DType::kF8E4M3),
                               into(folder, {.kind = ExportTypes::kGiven, .given = DType::kF32}));
  std::string notes;
  for (const Note& n : c.details) notes += cat(n.text, "\n");
  EXPECT_NE(notes.find("b.weight stays float8_e4m3fn"), std::string::npos) << notes;
  EXPECT_EQ(notes.find("model.a.weight"), std::string::npos) << notes;
}

}  // namespace own_plan_test
}  // namespace mckpt::impl
