// Comparing tensors of one store byte by byte, also across windows.
#include "io/values/same_bytes.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "io/store/store.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace {

TEST(SameBytes, SeesADifferenceInAnyWindow) {
  constexpr i64 kItems = 3 << 19;  // three windows of a megabyte
  std::string one(2 * kItems, 'a'), last = one, middle = one;
  last.back() = 'b', middle[2 * kItems / 2] = 'b';
  std::string header = "{", data;
  for (const auto& [name, dtype, shape, bytes] :
       {std::tuple("one", "BF16", cat(kItems), one), std::tuple("equal", "BF16", cat(kItems), one),
        std::tuple("last", "BF16", cat(kItems), last), std::tuple("middle", "BF16", cat(kItems), middle),
        std::tuple("type", "F16", cat(kItems), one),
        std::tuple("shape", "BF16", cat("2,", kItems / 2), one)}) {
    header += cat(header.size() > 1 ? "," : "", safetensors_entry(name, dtype, shape, std::ssize(data),
                                                                  std::ssize(data) + std::ssize(bytes)));
    data += bytes;
  }
  TempFolder folder;
  std::unique_ptr<Store> store =
      open_store(folder.put("model.safetensors", safetensors_file(header + "}", data)));
  std::vector<std::pair<i64, i64>> pairs;
  for (const char* name : {"one", "equal", "last", "middle", "type", "shape"})
    pairs.emplace_back(find_tensor(*store, "one"), find_tensor(*store, name));
  for (int threads : {1, 3})
    EXPECT_EQ(have_same_bytes(*store, pairs, threads),
              (std::vector<bool>{true, true, false, false, false, false}));
  EXPECT_TRUE(have_same_bytes(*store, {}, 2).empty());
}

}  // namespace
}  // namespace mckpt::impl
