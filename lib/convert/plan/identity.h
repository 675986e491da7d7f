// The identity of a conversion: a digest of all that decides the bytes of its result. The identity is stored
// with an unfinished result, so that a later run continues the same conversion and no other.
//
//   PlanIdentity("reshard").add(source).add(metadata).text()     "reshard 3f5a...e1\n"
#pragma once

#include <string>
#include <string_view>

#include "io/file/sha256.h"

namespace mckpt::impl {

// Collects the parts one after the other; the order counts. text() is called once, at the end.
class PlanIdentity {
 public:
  explicit PlanIdentity(std::string_view mode);  // with the version of the program
  PlanIdentity& add(std::string_view part);
  std::string text() { return mode_ + ' ' + sha_.hex_digest() + '\n'; }

 private:
  std::string mode_;
  Sha256 sha_;
};

}  // namespace mckpt::impl
