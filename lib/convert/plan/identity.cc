// Each part ends in a zero byte, so that {"ab", "c"} and {"a", "bc"} have different digests. The first part
// is the version of the program: an unfinished result is continued by the version that began it.
#include "convert/plan/identity.h"

#include <array>

namespace mckpt::impl {

PlanIdentity::PlanIdentity(std::string_view mode) : mode_(mode) { add(MCKPT_VERSION); }

PlanIdentity& PlanIdentity::add(std::string_view part) {
  sha_.update({reinterpret_cast<const u8*>(part.data()), part.size()});
  sha_.update(std::array<u8, 1>{0});
  return *this;
}

}  // namespace mckpt::impl
