// Sums name tensors of the source, and get the numbers of the view.
#include "hf/adapter/renamed_store.h"

#include <cstring>

#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/file/file.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {
namespace {

// The row-major bytes of a tensor, whatever it is stored in.
class WholeBytes final : public ByteSource {
 public:
  WholeBytes(const Store& store, const StoreFiles& files, i64 tensor)
      : ByteSource(TensorReader::tensor_bytes(store, tensor)),
        store_(store),
        files_(files),
        tensor_(tensor),
        width_(dtype_bytes(store.dtype(tensor), 1)) {}

 private:
  void read_inside(i64 offset, std::span<u8> to) const override {
    if (to.empty()) return;
    const i64 end = offset + std::ssize(to);
    TensorReader reader(store_, files_);
    reader.read(tensor_, offset / width_, ceil_div(end, width_), [&](std::span<const u8> bytes, i64 at) {
      const i64 from = std::max(at, offset), until = std::min(at + std::ssize(bytes), end);
      if (from < until)
        std::memcpy(to.data() + (from - offset), bytes.data() + (from - at),
                    static_cast<std::size_t>(until - from));
    });
  }

  const Store& store_;
  const StoreFiles& files_;
  i64 tensor_, width_;
};

}  // namespace

RenamedStore::RenamedStore(std::shared_ptr<const Store> whole, std::vector<Tensor> tensors, bool objects)
    : StoreView(std::move(whole)),
      tensors_(std::move(tensors)),
      own_number_(static_cast<std::size_t>(source().tensor_count()), -1),
      files_(source()) {
  for (i64 t = 0; t < tensor_count(); t++) own_number_[of(t)] = t;
  if (!objects) return;
  take_objects();
  take_findings();
}

Chunk RenamedStore::chunk(i64 t, i64 index) const {
  if (!tensors_[t].whole) return source().chunk(of(t), index);
  const std::span<const i64> dims = source().dims(of(t));
  return {.offsets = zero_offsets(dims.size()),
          .sizes = dims,
          .file = source().chunk(of(t), 0).file,
          .record_offset = -1};
}

ChunkData RenamedStore::resolve(i64 t, i64 index) const {
  ChunkData out;
  if (tensors_[t].whole) {
    out = {.file = source().chunk(of(t), 0).file,
           .offset = 0,
           .dtype = dtype(t),
           .unpacked = std::make_shared<const WholeBytes>(source(), files_, of(t))};
    add_sums(source(), of(t), out.beneath);
  } else {
    out = source().resolve(of(t), index);
  }
  if (out.checksum) out.checksum->tensor = t;
  for (Checksum& sum : out.beneath) sum.tensor = t;
  return out;
}

void RenamedStore::each_checksum(const std::function<void(const Checksum&)>& visit) const {
  source().each_checksum([&](const Checksum& of_source) {
    Checksum own = of_source;
    if (own.tensor >= 0) own.tensor = own_number_[own.tensor];
    visit(own);
  });
}

}  // namespace mckpt::impl
