// The tensors of a .pt file in a safetensors file, and the way back: each bit for bit under its own name.
//
//   model.pt                 -->  model.safetensors     objects have no place there
//   model.safetensors, ...   -->  model.pt              metadata in headers has no place there
//
// The result is one file, whatever the number of source files. A tensor that shares storage with another one
// is written in full.
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"
#include "io/file/open_options.h"

namespace mckpt::impl {

struct Conversion;

// Plain values.
struct FileOptions {
  std::string source;                             // a file, or a folder of files
  std::string target;                             // one file
  std::vector<std::string> include{}, exclude{};  // globs of tensors; no include: all
  OpenOptions files{};                            // how the files of the source are opened
};

// `tensors_only`: everything that is not a tensor is left out; without it such a source is refused with
// kNotHeld. Both functions throw kUnknownFormat for another format, kNoSuchTensor if the globs leave no
// tensor, and the first problem of a damaged source.
Conversion plan_pt_to_safetensors(const FileOptions& options, bool tensors_only);
Conversion plan_safetensors_to_pt(const FileOptions& options);

}  // namespace mckpt::impl
