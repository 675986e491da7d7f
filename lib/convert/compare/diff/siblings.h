// Values of a sibling: a tensor that has on one side what the other side has under a name that differs from
// its own in one number. An expert or a layer that was written over another one looks like that; both of them
// may be whole on the other side.
//
//   A  experts.0.up  1 2   experts.1.up  3 4         B  experts.0.up  1 2   experts.1.up  1 2
//      experts.1.up: "B has the values of experts.0.up of A here"
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/int.h"
#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {

class Store;

// For one thread; the stores outlive it.
class Siblings {
 public:
  Siblings(const Store& a, const Store& b);

  // For a tensor of A and the tensor of the same name in B, which differ: whose values it has, in words; ""
  // if no sibling's. Reads the beginning of all siblings, and what begins alike as a whole; both once,
  // however many tensors are asked for. Throws what TensorReader::read() throws of the two tensors; siblings
  // that cannot be read are left out.
  std::string hint(i64 of_a, i64 of_b);

 private:
  // Siblings that begin alike. Each is summed once, in their order, when the sum of another tensor is looked
  // for.
  struct Alike {
    std::vector<i64> tensors{};
    std::size_t summed = 0;                            // how many of them
    std::map<std::string, std::vector<i64>> by_sum{};  // the first two of each
  };
  // Siblings of one type and shape. Their beginnings are read when the first of them is asked for.
  struct Family {
    std::vector<i64> members{};
    std::size_t read = 0;             // how many of them
    std::map<u64, Alike> by_begin{};  // hashes of the first items
  };
  // One of the two.
  struct Side {
    explicit Side(const Store& s);
    const Store& store;
    StoreFiles files;
    TensorReader reader;
    std::map<std::string, Family, std::less<>> families{};
    std::unordered_map<i64, u64> begins{};        // of tensors that were asked for
    std::unordered_map<i64, std::string> sums{};  // of the whole

    u64 begin(i64 tensor);
    const std::string& sum(i64 tensor);
    // The siblings that begin so; null: none.
    Alike* alike(const std::string& family, u64 begin);
    // The first of them that has the sum and is not `own`; -1: none.
    i64 with_sum(Alike& siblings, const std::string& sum, i64 own);
  };
  // The sibling in `in` of the tensor `own` whose values `of` has; -1: none.
  static i64 found(Side& of, i64 tensor, Side& in, i64 own);

  Side a_, b_;
};

}  // namespace mckpt::impl
