// Each part ends in a byte of its own, so that two parts never read like two others.
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
