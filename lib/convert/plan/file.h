// The tensors of a .pt file in a safetensors file, and the way back: each bit for bit under its own name.
//
//   model.pt                 -->  model.safetensors     objects have no place there
//   model.safetensors, ...   -->  model.pt              metadata in headers has no place there
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct Conversion;

struct FileOptions {
  std::string source;                             // a file, or a folder of files
  std::string target;                             // one file
  std::vector<std::string> include{}, exclude{};  // globs of tensors; no include: all
  int threads = 1;
  i64 memory_bytes = i64{256} << 20;
};

// `tensors_only`: what is not a tensor is left out. Without it, it is refused with kNotHeld.
Conversion plan_pt_to_safetensors(const FileOptions& options, bool tensors_only);
Conversion plan_safetensors_to_pt(const FileOptions& options);

}  // namespace mckpt::impl
