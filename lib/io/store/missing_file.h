// The words for a file that is named and not there, wherever it is found out: by a list of files, by the
// format, by a tensor whose bytes are asked for. Who writes them elsewhere makes one fact that is searched
// under two texts.
//
//   the file is missing, but SHA256SUMS lists it
//   the rank's file is missing: its folder has no model_optim_rng.pt
//   .metadata names the file, but it is missing
#pragma once

#include <string>
#include <string_view>

#include "core/base/error.h"
#include "io/store/finding.h"

namespace mckpt::impl {

inline constexpr std::string_view kFileIsMissing = "the file is missing";
inline constexpr std::string_view kAFileIsMissing = "a file is missing";

// `rest`: what follows the three words, who names the file or what it is for; `whose`: "the", "the rank's".
inline Finding missing_file(Code code, std::string path, std::string_view rest = "", std::string help = "",
                            std::string_view whose = "the") {
  return {.code = code,
          .file = std::move(path),
          .message = cat(whose, kFileIsMissing.substr(3), rest),
          .help = std::move(help)};
}

// For a file that `list_names`: ".metadata names", "integrity.json lists".
inline Finding named_file_missing(Code code, std::string path, std::string_view list_names,
                                  std::string help = "") {
  return {.code = code,
          .file = std::move(path),
          .message = cat(list_names, " the file, but it is missing"),
          .help = std::move(help)};
}

// For who needs the file.
inline Error missing_file_error() { return Error(Code::kNotFound, std::string(kFileIsMissing)); }

}  // namespace mckpt::impl
