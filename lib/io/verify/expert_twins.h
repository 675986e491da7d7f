// Experts of a mixture that hold the same bytes. A save in which ranks overwrote each other's experts looks
// whole; that expert 0 equals expert 32 is what is left to see of it. (A model grown from a dense one begins
// that way as well, so twins are a warning.)
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;
class TensorReader;
struct Finding;

class ExpertTwins {
 public:
  explicit ExpertTwins(const Store& store);

  // How many experts the tensor holds: one that is named by its number, or those of a fused tensor [experts,
  // ...]; 0 for all other tensors.
  i64 experts_in(i64 tensor) const { return experts_[static_cast<std::size_t>(tensor)]; }

  // Sums up the bytes of one tensor, which come in order.
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
  // Thread-safe where the tensors differ.
  void add(const Sums& sums);

  i64 compared() const;  // tensors that hold experts
  // Equal checksums are confirmed by reading again. Experts that are one value throughout, such as zeros, are
  // no twins.
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
