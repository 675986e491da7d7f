// Files whose names say nothing: what they are by their first bytes, and code.
//
//   weights.joblib    80 04 95 ...       a pickle: read to its end, and nothing in it is executed
//   weights           PK 03 04 ...       a file of torch.save without its ending
//   modeling_x.py                        code, which programs run where auto_map of a config names it
#pragma once

#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

class InputFile;
struct OpenOptions;

enum class UnknownFile : u8 {
  kNothing,     // that mckpt reads
  kPickle,      // a bare pickle
  kCheckpoint,  // a file of torch.save
};

// By its first bytes; of a pickle in the oldest form, which has no mark, by reading it.
UnknownFile unknown_file(const InputFile& file);

// The first config of a checkpoint's folder with an auto_map, for whose code the Python files there are; ""
// if none has one.
std::string config_with_code(const std::string& root, const OpenOptions& opening);

}  // namespace mckpt::impl
