// Any bytes as an item of a .distcp file: a tensor of 5 x 4 float32, or an object.
#include <array>

#include "core/base/error.h"
#include "core/items/dtype.h"
#include "io/dcp/item.h"
#include "tests/fuzz/mutate/mixed.h"

using namespace mckpt::impl;

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  MemorySource record({data, size});
  constexpr std::array<i64, 2> kSizes = {5, 4};
  try {
    read_dcp_item(record, DType::kF32, kSizes);
  } catch (const Error&) {
  }
  try {
    read_dcp_object(record);
  } catch (const Error&) {
  }
  return 0;
}

namespace {

bool archive_or_stream(std::string& input, const std::string* other, mutate::Choice& choice) {
  return mutate::zip(input, other, choice) || mutate::pickles(input, other, choice);
}

}  // namespace

MCKPT_MUTATED_AS(archive_or_stream)
