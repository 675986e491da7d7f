// Lists of sums, as sha256sum writes them:
//
//   9c1f0e..  model.safetensors        9c1f0e.. *model.safetensors        SHA256 (model.safetensors) = 9c1f0e..
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Findings;

inline constexpr std::size_t kSha256Digits = 64, kSha1Digits = 40;

struct KeptSum {
  std::string file;  // relative to the folder
  std::string hex;   // 64 digits: SHA-256; 40: git's name of the content
  std::string from;  // where it stands, for messages: "SHA256SUMS"
};

// Whether a file is a list by its name: "SHA256SUMS", "model.sha256".
bool is_list_name(std::string_view name);
// Whether a text looks like such a list, for a file that a caller names.
bool is_sum_list(std::string_view text);

// Adds the sums of one list, and findings of names that lead elsewhere and of lines whose sum cannot be
// compared. `name`: of the list in the folder; a text that is one sum without a name is of the file without
// the ending of the list's name, unless that is SHA256SUMS or the like.
void add_lines(std::string_view text, const std::string& name, std::vector<KeptSum>& sums,
               Findings& findings);

// The digits in small letters if the text is a SHA-256 or git's SHA-1; otherwise "".
std::string as_sum(std::string_view text);
// Without line ends, and without the mark of UTF-8 before the first.
std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace mckpt::impl
