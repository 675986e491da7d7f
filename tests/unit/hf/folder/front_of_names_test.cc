// Names get the front of the class, or lose it, only where transformers gives a model of text the same tensors;
// tests/judges/fronts_of_names.py asks it.
#include "hf/folder/front_of_names.h"

#include <gtest/gtest.h>

#include "../quantized/made_folder.h"

namespace mckpt::impl::folder_test {
namespace {

using Names = std::vector<std::string_view>;

// The names that a store of these gets, behind the words for them; "" where it stays as it is.
std::string fronted(const Names& stored, const Names& expected, bool base_class = false) {
  TempFolder folder;
  std::vector<quantized_test::MadePart> parts;
  for (std::string_view name : stored) parts.push_back({std::string(name), DType::kF32, {1}});
  quantized_test::put_model(folder, parts, "");
  const std::shared_ptr<const Store> store = open_store(folder.at("model.safetensors"));
  const FrontedStore view = with_front_of_class(store, expected, base_class);
  std::string out(view.how);
  for (i64 t = 0; view.store && t < view.store->tensor_count(); t++)
    out += cat(t == 0 ? ": " : " ", view.store->name(t));
  return out;
}

const Names kText = {"model.embed_tokens.weight", "model.layers.0.w", "model.norm.weight", "lm_head.weight"};

TEST(FrontOfNames, IsThatOfTheClass) {
  EXPECT_EQ(fronted({"embed_tokens.weight", "layers.0.experts.3.w", "lm_head.weight", "norm.weight"}, kText),
            "lack the 'model.' in front that the class has: model.embed_tokens.weight "
            "model.layers.0.experts.3.w lm_head.weight model.norm.weight");
  EXPECT_EQ(fronted({"model.lm_head.weight", "model.model.layers.0.w"}, kText),
            "have one 'model.' more in front than the class has: lm_head.weight model.layers.0.w");
  EXPECT_EQ(fronted({"layers.0.w", "model.norm.weight"}, kText),
            "lack the 'model.' in front that the class has: model.layers.0.w model.norm.weight");
  EXPECT_EQ(
      fronted({"layers.0.w", "model.lm_head.weight"}, kText),
      "lack the 'model.' in front that the class has, or have one more: model.layers.0.w lm_head.weight");
  EXPECT_EQ(fronted({"model.layers.0.w", "model.other.w", "visual.w"}, kText), "");
  EXPECT_EQ(fronted({"model.norm.weight", "norm.weight"}, kText), "");  // one tensor of two names
}

TEST(FrontOfNames, AreInOneSentenceForAllModels) {
  EXPECT_EQ(fronted_text({{"the files", "lack it"}}),
            "names in the files lack it: read as transformers loads them, under the names of the class");
  EXPECT_EQ(
      fronted_text({{"a", "lack it"}, {"b", "have one more"}}),
      "names in a lack it, names in b have one more: read as transformers loads them, under the names of the class");
}

TEST(FrontOfNames, IsLeftAloneWhereTransformersHasOtherNames) {
  const Names images = {"model.layers.0.w", "visual.w"},
              inside = {"model.language_model.layers.0.w", "lm_head.weight"},
              base = {"layers.0.w", "norm.weight"};
  EXPECT_EQ(fronted({"layers.0.w"}, images), "");
  EXPECT_EQ(fronted({"language_model.layers.0.w"}, inside), "");
  EXPECT_EQ(fronted({"model.layers.0.w"}, base), "");
  EXPECT_EQ(fronted({"model.layers.0.w"}, base, true),
            "have one 'model.' more in front than the class has: layers.0.w");
}

}  // namespace
}  // namespace mckpt::impl::folder_test
