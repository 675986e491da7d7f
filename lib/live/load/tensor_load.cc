// Places are given in the order of the tensors, so that what follows each other in a file also does so on the
// device: a block that was read is then uploaded in one piece.
#include "live/load/tensor_load.h"

#include "core/base/error.h"
#include "core/base/observer.h"
#include "io/copy/tensor_copy.h"
#include "io/store/store.h"
#include "io/values/tensor_reader.h"
#include "live/device/device.h"
#include "live/load/block_loader.h"
#include "live/load/block_places.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {
namespace {

// A type that was asked for applies to numbers which can be cast; others, such as indices and quantised
// values, keep theirs.
DType loaded_type(DType stored, std::optional<DType> wanted) {
  return wanted && is_castable(stored) ? *wanted : stored;
}

// Memory of a device, which is freed before the device.
struct OwnedBlock {
  std::shared_ptr<Device> device;
  Block block;
};

}  // namespace

TensorLoad plan_tensors(const Store& store, std::span<const i64> tensors, std::optional<DType> dtype) {
  TensorLoad load;
  BlockPlaces places(load);
  std::vector<TensorCopy::Place> wanted;
  for (i64 t : tensors) {
    DType stored = store.dtype(t), to = loaded_type(stored, dtype);
    i64 bytes = to == stored ? TensorReader::tensor_bytes(store, t) : dtype_bytes(to, store.shape(t).items());
    const TensorLoad::Tensor& placed = places.add(std::string(store.name(t)), to, store.shape(t), bytes);
    if (placed.block >= 0) wanted.push_back({t, placed.block, placed.offset, to});
  }
  load.job = std::make_unique<TensorCopy>(store, std::move(wanted));
  return load;
}

LoadedTensors load_tensors(TensorLoad load, const std::shared_ptr<Device>& device,
                           const BlockLoadOptions& options) {
  LoadedTensors loaded;
  if (options.observer) options.observer->begin("load", load.bytes);
  for (i64 bytes : load.block_bytes) {
    auto block = std::make_shared<OwnedBlock>(OwnedBlock{device, Block(device->weights(), bytes)});
    loaded.blocks.emplace_back(block, block->block.data());
  }
  std::unique_ptr<Comm> alone = local_comm();
  std::unique_ptr<DeviceRanks> ranks = device->ranks(*alone);
  loaded.counts = load_blocks(
      *load.job, [&](i32 file) { return loaded.blocks[file].get(); }, *device, *alone, *ranks, options);
  if (options.observer) options.observer->end();
  loaded.tensors = std::move(load.tensors);
  return loaded;
}

}  // namespace mckpt::impl
