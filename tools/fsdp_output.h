// What an iteration's folder is going to hold, final before anything is written: the same tail of every plan
// that ends in one.
#pragma once

#include "convert/output/fsdp_folder.h"
#include "tools/options/convert_options.h"
#include "tools/render/convert_report.h"

namespace mckpt {

struct FsdpOutput {
  FsdpFolder folder;
  std::vector<OutputFile> files;
  std::string metadata_sha256;  // which knows every key, type, chunk and place
};

// Puts the sizes and the place into the report, and says the plan. No iteration: "release".
FsdpOutput plan_output(const DcpLayout& layout, const ConvertOptions& options, std::optional<i64> iteration,
                       ConvertReport& report, const GlobalFlags& flags);

}  // namespace mckpt
