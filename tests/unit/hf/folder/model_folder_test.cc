// The tensors that a config promises by its family's table have the shapes that the real folders have: the
// folders of every golden model, whose shapes test_data/golden/*/*/tensors.txt lists.
#include "hf/folder/model_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "core/base/notes.h"
#include "core/base/text.h"
#include "hf/folder/known_tensors.h"
#include "tests/support/table_store.h"

namespace mckpt::impl {
namespace model_folder_test {

// The tensors of a recipe: "lm_head.weight BF16 520x96 perm = 0". A scalar has "-" for its shape.
void read_tensors(const std::filesystem::path& recipe, TableStore& store) {
  std::ifstream lines(recipe);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, dtype, shape, size;
    if (!(words >> name >> dtype >> shape)) continue;
    TableStore::Tensor t{name, DType::kBF16, {}, {}};
    for (std::istringstream sizes(shape); std::getline(sizes, size, 'x');)
      if (size != "-") t.dims.push_back(std::stoll(size));
    store.tensors.push_back(std::move(t));
  }
}

TEST(KnownTensors, HaveTheShapesOfEveryGoldenModel) {
  i64 models = 0;
  for (const char* kind : {"models", "families"})
    for (const auto& entry : std::filesystem::directory_iterator(cat(MCKPT_TEST_DATA, "/golden/", kind))) {
      if (!entry.is_directory()) continue;
      TableStore store("nowhere");
      read_tensors(entry.path() / "tensors.txt", store);
      Notes notes;
      KnownTensors known = known_tensors(find_model_folder(store, "", entry.path()), {}, store, notes);
      std::map<std::string, std::vector<i64>> real;
      for (const TableStore::Tensor& t : store.tensors) real[t.name] = t.dims;
      i64 compared = 0;
      for (const KnownTensors::Tensor& t : known.tensors) {
        if (!t.dims || !real.contains(t.name)) continue;
        EXPECT_EQ(*t.dims, real[t.name]) << entry.path() << " " << t.name;
        compared++;
      }
      EXPECT_GT(10 * compared, 9 * std::ssize(real)) << entry.path();
      models++;
    }
  EXPECT_GT(models, 50);
}

}  // namespace model_folder_test
}  // namespace mckpt::impl
