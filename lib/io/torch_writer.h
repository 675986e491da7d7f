// Writes a .pt file that torch.load(weights_only=True) takes, from the bytes of its tensors.
#pragma once

#include "io/atomic_file.h"
#include "io/torch_layout.h"

namespace mckpt {

// The file appears under its name when it is whole.
class TorchWriter {
 public:
  TorchWriter(std::string path, std::span<const TorchTensorSpec> tensors, AtomicFile::Options options);
  // The next bytes of the tensor. Tensors may be written in any order.
  void write(i64 tensor, std::span<const u8> bytes);
  // pre: every tensor was written to its end.
  void commit();

 private:
  TorchLayout layout_;
  AtomicFile file_;
  std::vector<u32> crc32_;
  std::vector<i64> written_;
};

}  // namespace mckpt
