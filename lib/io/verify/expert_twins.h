// Experts of a mixture-of-experts layer that contain the same bytes. A save in which ranks overwrote each
// other's experts has all its files, sizes and sums; that expert 0 equals expert 32 is the only trace of it:
//
//   layers.3.mlp.experts.0.gate_proj.weight    = layers.3.mlp.experts.32.gate_proj.weight     warning[MC1009]
//
// A model that was grown from a dense one begins with equal experts too, so twins are a warning and not a
// problem.
//
// In use: ExpertTwins looks at all names; then all tensors are read once, in any order and by any thread,
// each through a Sums; findings() compares the sums, and reads again only what seems equal.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;
class TensorReader;
struct Finding;

// Memory: a few numbers for each tensor, and a sum for each expert of each tensor. The store outlives it.
class ExpertTwins {
 public:
  explicit ExpertTwins(const Store& store);

  // The number of experts in the tensor: 1 for an expert that is named by its number, the first dimension of
  // a fused tensor [experts, ...] (times the layers, for a tensor [layers, experts, ...]); 0 for other
  // tensors.
  i64 experts_in(i64 tensor) const { return experts_[tensor]; }

  // The sums of one tensor's experts. take() is called with all bytes of the tensor, in order, by one thread.
  class Sums {
   public:
    Sums(const ExpertTwins& twins, i64 tensor);
    void take(std::span<const u8> bytes);

   private:
    friend class ExpertTwins;
    i64 tensor_, expert_bytes_, left_;
    u8 first_byte_ = 0;
    bool constant_ = true;  // so far, all bytes of the expert are the same
    std::vector<u32> crcs_;
    std::vector<bool> constants_;
  };
  // Adds the sums of a tensor that was read completely. Thread-safe for different tensors.
  void add(const Sums& sums);

  i64 compared() const;  // the number of tensors with experts that were added
  // A warning for each set of experts of one layer and weight with equal bytes. Experts with equal sums are
  // read again and compared by SHA-256. Experts that are one byte throughout, such as zeros, are not
  // reported. Throws what TensorReader::read() throws.
  std::vector<Finding> findings(TensorReader& reader) const;

 private:
  struct Expert {
    i64 tensor, slice, number;
  };
  std::string content_digest(TensorReader& reader, const Expert& e) const;

  const Store& store_;
  std::vector<i64> experts_;            // by tensor
  std::vector<std::vector<u32>> crcs_;  // by tensor and slice
  std::vector<std::vector<bool>> constants_;
};

}  // namespace mckpt::impl
