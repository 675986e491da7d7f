// Any bytes as a safetensors file: as they are, and as a header before as many bytes of data as the input
// says.
#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/file/file.h"
#include "io/safetensors/table.h"

namespace {

using namespace mckpt::impl;

void check(const SafetensorsTable& table, i64 file_bytes) {
  i64 end = -1;
  for (i64 row = 0; row < table.size(); row++) {
    if (row > 0 && table.offset(row) != end) __builtin_trap();
    end = table.offset(row) + table.bytes(row);
    i64 items = Shape(table.dims(row)).items();
    if (dtype_bytes(table.dtype(row), items) != table.bytes(row)) __builtin_trap();
  }
  if (table.size() > 0 && end != file_bytes) __builtin_trap();
}

void read(std::span<const u8> bytes) {
  try {
    MemorySource source(bytes);
    check(SafetensorsTable(source), source.size());
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read({data, size});
  if (size < 2) return 0;
  std::vector<u8> file = {static_cast<u8>(size - 2), static_cast<u8>((size - 2) >> 8), 0, 0, 0, 0, 0, 0};
  file.insert(file.end(), data + 2, data + size);
  file.resize(file.size() + data[0] + data[1] * std::size_t{256});
  read(file);
  return 0;
}
