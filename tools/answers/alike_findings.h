// Findings of one check that are one line: they differ in nothing but the tensor that they name.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "io/store/finding.h"

namespace mckpt::impl {

struct VerifyReport;

struct Alike {
  Finding first;
  std::vector<std::string> tensors;
};

// `apart`: each finding by itself.
std::vector<Alike> alike(const VerifyReport& report, std::size_t check, bool apart);

// `objects`: what the findings name are objects and not tensors.
std::string line_of(const Alike& findings, bool objects);

}  // namespace mckpt::impl
