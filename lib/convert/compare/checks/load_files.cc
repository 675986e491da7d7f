// Opening a store has noticed what the folder lacks (io/dcp/dcp.h); nothing is read here.
#include "convert/compare/checks/load_files.h"

#include <algorithm>
#include <string>
#include <vector>

#include "convert/compare/differences/one_side.h"
#include "core/base/error_code.h"
#include "core/base/text.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/file/folder.h"
#include "io/store/finding.h"
#include "io/store/missing_file.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {

bool compare_load_files(const Store& tested, const Store& source, VerifyReport& report) {
  if (dcp_dialect(tested) != DcpDialect::kTorchDist) return true;
  constexpr const char* kWhy = "without which Megatron does not load a checkpoint";
  const Folder folder(tested.root(), tested.opening());
  const std::vector<std::string> here = lost_load_files(tested), there = lost_load_files(source);
  std::vector<Finding> found;
  for (const std::string& file : here) {
    if (std::ranges::count(there, file) == 0)
      found.push_back(
          {.code = Code::kUnequal,
           .file = file,
           .message = folder.has_file(file)
                          ? cat("Megatron does not load a checkpoint with this file, but that of ",
                                side_path(source))
                          : cat(kFileIsMissing, ", ", kWhy)});
    else
      found.push_back({.code = Code::kIncomplete,
                       .file = file,
                       .message = cat("neither side has this file, ", kWhy),
                       .warning = true});
  }
  for (const std::string& file : there)
    if (std::ranges::count(here, file) == 0)
      found.push_back(
          {.code = Code::kUnequal, .file = file, .message = cat(only_in(tested, "file"), ", ", kWhy)});
  if (found.empty()) return true;
  const bool equal = std::ranges::all_of(found, &Finding::warning);
  Check check{.name = "files",
              .status = equal ? Check::Status::kWarn : Check::Status::kFail,
              .count = std::ssize(found),
              .unit = "files"};
  report.add(std::move(check), std::move(found));
  return equal;
}

}  // namespace mckpt::impl
