// mckpt::load: the tensors of a checkpoint in the memory of a GPU, or of the host, for whoever computes
// there.
//
//   mckpt::Loaded all = mckpt::load("Qwen3-0.6B", {.device = "cuda:0"});
//   all.tensors()[0].data                              an address of the GPU
//   std::shared_ptr<void> kept = all.keep(0);          it stays valid as long as this, whatever becomes of `all`
//
//   mckpt::load_rank("Qwen3-0.6B", {.grid = {.tp = 2}, .rank = 1})     what that rank of a Megatron run has
//
// Files are read by many threads into pinned memory and uploaded from there. GPUs need NVIDIA's driver and
// the module `cuda`; casts and ranks of a grid are done on the GPU by a kernel that NVRTC compiles.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mckpt/export.h"
#include "mckpt/load_options.h"
#include "mckpt/observer.h"
#include "mckpt/plans.h"

namespace mckpt {

// A tensor in the memory of a device, row-major and contiguous.
struct LoadedTensor {
  std::string name{};
  std::string dtype{};  // as torch spells it
  std::vector<std::int64_t> shape{};
  std::int64_t bytes = 0;
  void* data = nullptr;  // of the device; null if there are no bytes
};

// Tensors that were loaded together. Their memory is freed when neither this nor anything that keep()
// returned needs it; tensors share blocks of about 1 GiB. Movable; const functions may be called from all
// threads.
class MCKPT_API Loaded {
 public:
  Loaded(Loaded&&) noexcept;
  Loaded& operator=(Loaded&&) noexcept;
  ~Loaded();

  const std::string& device() const;                 // "cpu", "cuda:0"
  const std::vector<LoadedTensor>& tensors() const;  // in the order of the files, or of the rank's parameters
  std::int64_t bytes() const;                        // of all tensors
  // The memory of tensors()[number].
  std::shared_ptr<void> keep(std::int64_t number) const;

 private:
  struct State;
  friend struct LoadedAccess;
  explicit Loaded(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Each throws Error if anything cannot be loaded; nothing stays in memory then. A file that changes meanwhile
// is an error too. Values that a cast takes out of range become infinite, as in torch.
MCKPT_API Loaded load(const std::string& path, const TensorsToLoad& what = {}, Observer* observer = nullptr);
MCKPT_API Loaded load_rank(const std::string& path, const RankToLoad& what = {},
                           Observer* observer = nullptr);

}  // namespace mckpt
