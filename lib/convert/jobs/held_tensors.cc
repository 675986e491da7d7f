// Lists what a rank holds. Digests are made from the files of the model: a HoldingReader for each thread
// gathers the items of a tensor piece by piece, so that the memory does not depend on the size of a tensor.
#include "convert/jobs/held_tensors.h"

#include "convert/jobs/holding_reader.h"
#include "io/file/parallel.h"
#include "io/file/sha256.h"

namespace mckpt::impl {
namespace {

// The parameter as one tensor that the rank holds completely, under its name at run time.
HeldTensor whole(const ModelParameter& p, DType dtype) {
  const Shape& shape = p.shape();
  std::vector<i64> sizes(shape.dims().begin(), shape.dims().end());
  return {p.name, &p, shape, std::vector<i64>(sizes.size(), 0), sizes, {0, shape.items()}, dtype};
}

}  // namespace

std::vector<HeldTensor> held_at_run_time(const std::vector<ModelParameter>& parameters,
                                         const StoredTypes& types) {
  std::vector<HeldTensor> out;
  for (const ModelParameter& p : parameters) out.push_back(whole(p, types.of(p, p.name)));
  return out;
}

std::vector<HeldTensor> held_as_saved(const std::vector<ModelParameter>& parameters, const FsdpLayout& layout,
                                      const Cell& cell, const StoredTypes& types) {
  std::vector<HeldTensor> out;
  for (FsdpTensor& t : layout.tensors(cell)) {
    const ModelParameter& p = parameters[t.parameter];
    DType dtype = types.of(p, t.key);
    out.push_back({std::move(t.key), &p, t.global, std::move(t.offsets), std::move(t.sizes), t.items, dtype});
  }
  return out;
}

std::vector<std::string> held_digests(const Store& store, std::span<const HeldTensor> held, int threads) {
  StoreFiles files(store);
  std::vector<std::unique_ptr<HoldingReader>> readers;
  for (int i = 0; i < threads; i++) readers.push_back(std::make_unique<HoldingReader>(store, files));
  std::vector<std::string> digests(held.size());
  parallel_for(std::ssize(held), threads, [&](int worker, i64 i) {
    const HeldTensor& h = held[i];
    Sha256 sha;
    readers[worker]->read(*h.parameter, h.items, h.dtype,
                          [&](std::span<const u8> bytes) { sha.update(bytes); });
    digests[i] = sha.hex_digest();
  });
  return digests;
}

}  // namespace mckpt::impl
