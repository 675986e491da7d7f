#include "convert/compare/checks/carried.h"

#include "core/base/text.h"
#include "io/dcp/dcp.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {

void name_carried_values(const Store& tested, const Store& source, VerifyReport& report) {
  std::string sides;
  for (const Store* side : {&tested, &source})
    if (dcp_carries_values(*side)) sides += cat(sides.empty() ? "" : " and ", escaped(side->root()));
  if (sides.empty()) return;
  report.add({.name = "carried",
              .unit = "records",
              .note = cat("not compared: attributes and quantizers in records of torch DCP of ", sides)},
             {});
}

}  // namespace mckpt::impl
