// Any bytes behind the magic number of the legacy form.
#include "core/base/error.h"
#include "io/file/file.h"
#include "io/torch/file.h"
#include "tests/fuzz/mutate/mixed.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mckpt::impl;
  static constexpr std::string_view kMagic(
      "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.", 21);
  std::vector<u8> bytes(kMagic.begin(), kMagic.end());
  bytes.insert(bytes.end(), data, data + size);
  try {
    MemorySource source(bytes);
    TorchFile file = read_torch_file(source);
    for (i64 row = 0; row < file.table.size(); row++)
      if (file.table.offset(row) + file.table.extent_bytes(row) > source.size()) __builtin_trap();
  } catch (const Error&) {
  }
  return 0;
}

MCKPT_MUTATED_AS(mckpt::impl::mutate::pickles)
