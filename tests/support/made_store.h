// A store of made tensors: every item of every tensor has a value of its own, 0, 1, 2 and so on in the order
// of the list, as float32. Tensors may be cut into chunks by rows, which are then in the file from the last
// to the first, so that nothing is where it would be by chance.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {

struct MadeTensor {
  std::string name;
  std::vector<i64> dims{};
  i64 first = -1;           // the value of its first item; -1: the next that no tensor has
  std::vector<i64> cuts{};  // the rows at which a chunk ends and the next begins
};

inline std::unique_ptr<Store> made_store(const TempFolder& folder, const std::vector<MadeTensor>& tensors) {
  auto out = std::make_unique<TableStore>(folder.path());
  std::string bytes;
  i64 next = 0;
  for (const MadeTensor& m : tensors) {
    i64 first = m.first < 0 ? next : m.first;
    Shape shape(m.dims);
    next = std::max(next, first + shape.items());
    TableStore::Tensor t{m.name, DType::kF32, m.dims, {}};
    std::vector<i64> ends = m.cuts;
    ends.push_back(m.dims.empty() ? 1 : m.dims[0]);
    for (std::size_t c = ends.size(); c-- > 0;) {
      i64 begin = c == 0 ? 0 : ends[c - 1], items = shape.row_items();
      std::vector<i64> offsets(m.dims.size()), sizes = m.dims;
      if (!m.dims.empty()) offsets[0] = begin, sizes[0] = ends[c] - begin;
      ChunkData data;
      data.file = 0, data.dtype = DType::kF32, data.offset = std::ssize(bytes);
      for (i64 i = begin * items; i < ends[c] * items; i++) {
        float value = static_cast<float>(first + i);
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
      }
      t.pieces.push_back({offsets, sizes, data});
    }
    out->tensors.push_back(std::move(t));
  }
  folder.put("data", bytes);
  out->add_file("data", std::ssize(bytes));
  return out;
}

// The values of a tensor of such a store, or of a view of it.
inline std::vector<i64> values_of(const Store& store, i64 tensor) {
  StoreFiles files(store);
  TensorReader reader(store, files);
  std::vector<i64> out;
  reader.read(tensor, [&](std::span<const u8> bytes, i64) {
    for (std::size_t i = 0; i < bytes.size(); i += 4) {
      float value;
      std::memcpy(&value, bytes.data() + i, 4);
      out.push_back(static_cast<i64>(value));
    }
  });
  return out;
}

}  // namespace mckpt::impl
