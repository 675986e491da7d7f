// Any bytes as the data.pkl of an otherwise good archive: walks, tensors, views, shardings.
#include "core/base/error.h"
#include "io/file/file.h"
#include "io/torch/file.h"
#include "io/torch/placing.h"
#include "tests/fuzz/mutate/mixed.h"
#include "tests/support/torch_builder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mckpt::impl;
  std::string pickle(reinterpret_cast<const char*>(data), size);
  std::vector<u8> bytes = torch_zip({{"data.pkl", pickle},
                                     {"byteorder", "little"},
                                     {"data/0", six_floats()},
                                     {"data/1", std::string(64, 'x')}});
  try {
    MemorySource source(bytes);
    TorchFile file = read_torch_file(source);
    for (i64 row = 0; row < file.table.size(); row++) {
      i64 end = file.table.offset(row) + file.table.extent_bytes(row);
      if (file.table.offset(row) < 0 || end > static_cast<i64>(bytes.size())) __builtin_trap();
      if (const TorchSharding* s = file.table.sharding(row)) {
        if (s->boxes && s->offsets.size() != file.table.dims(row).size()) __builtin_trap();
        if (s->boxes) continue;
        even_stretches(*s, s->mesh->rank, file.table.dims(row));
        TorchPiece piece{.rank = s->mesh->rank, .sizes = file.table.dims(row), .sharding = s};
        place_pieces({&piece, 1});
      }
    }
  } catch (const Error&) {
  }
  return 0;
}

MCKPT_MUTATED_AS(mckpt::impl::mutate::pickle)
