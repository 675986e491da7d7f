// Any bytes as a safetensors file: as they are, and as a header before as many bytes of data as the input
// says.
#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/file/file.h"
#include "io/safetensors/table.h"
#include "tests/fuzz/mutate/mixed.h"

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

namespace {

// A whole file; or, behind two bytes that say how much data follows, a header.
bool file_or_header(std::string& input, const std::string* other, mutate::Choice& choice) {
  if (mutate::safetensors(input, other, choice)) return true;
  if (input.size() < 2) return false;
  std::string header = input.substr(2), there = other && other->size() >= 2 ? other->substr(2) : "";
  i64 data_bytes = static_cast<u8>(input[0]) + static_cast<u8>(input[1]) * i64{256};
  if (!mutate::safetensors_header(header, data_bytes, other ? &there : nullptr, choice)) return false;
  input = {static_cast<char>(data_bytes), static_cast<char>(data_bytes >> 8)};
  input += header;
  return true;
}

}  // namespace

MCKPT_MUTATED_AS(file_or_header)
