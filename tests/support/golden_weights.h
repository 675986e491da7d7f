// The weights of the golden models, drawn again as the program drew them that made the golden data. Each line
// of a model's tensors.txt is a tensor, its shape and its recipe:
//
//   NAME BF16 517x96 perm SEED FIRST      items FIRST, FIRST+1, ... of the permutation of the bit patterns
//                                         that SEED names
//   NAME BF16 16x96x40 slices SEED 0      the same for every slice e of dimension 0, named SEED[e]
//   NAME BF16 256x256 rand SEED 0         patterns drawn with repetition
//   NAME BF16 96 norm SEED 0              a permutation of the values of [0.5, 2)
//   NAME F32 16 hex BYTES 0               as they are
//
// SEED is a name, "=" for the tensor's own; its CRC-32 seeds a Mersenne twister, as torch.manual_seed does,
// and the permutation is torch.randperm's.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace mckpt::impl {

struct GoldenTensor {
  std::string name, dtype;  // "BF16"
  std::vector<std::size_t> dims;
  std::string bytes;
};

// In the order of the lines. Empty when a line is not as above.
std::vector<GoldenTensor> draw_golden(std::istream& tensors);

}  // namespace mckpt::impl
