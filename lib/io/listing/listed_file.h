// Whether a file in a folder is the one that a list of files names. There are four kinds of such lists:
// mckpt's manifest, a card, integrity.json of torch's DCP, and lists of sums; all of them say the same of a
// file that is not as listed:
//
//   config.json is missing, but mckpt_manifest.json lists it
//   the file has 655 bytes, but the card says 654
//   the file's SHA-256 is 9c1f0e..., but integrity.json says 71aa03...
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/int.h"
#include "io/listing/row.h"
#include "io/store/finding.h"

namespace mckpt::impl {

class ByteSource;
class Folder;

// The list, as findings name it.
struct FileList {
  std::string_view name;  // "mckpt_manifest.json", "the card"
  Code unlike, missing;   // codes of a file that is another one, and of a file that is not there
  std::string_view help;
};

using ReadProgress = std::function<void(i64 bytes)>;

// Sums of all bytes of a file, each computed when it is first asked for. Throws kReadFailed, and what
// `progress` throws, which is called after each read.
class FileSum {
 public:
  FileSum(const ByteSource& file, ReadProgress progress) : file_(file), progress_(std::move(progress)) {}
  const std::string& sha256();
  const std::string& git_sha1();  // as git names the content

 private:
  template <typename Sum>
  std::string sum_of(Sum sum) const;

  const ByteSource& file_;
  ReadProgress progress_;
  std::string sha256_, git_sha1_;
};

// Whether a file of so many bytes, or none at all, is the one that is listed: a finding if it is not.
std::optional<Finding> unlike_size(std::optional<i64> bytes, const ListedFile& listed, const FileList& list);
// "the file's SHA-256 is X, but SHA256SUMS says Y"
Finding unlike_sum(std::string_view kind, std::string_view found, std::string_view listed,
                   const std::string& file, const FileList& list);
// Presence, then size, then the SHA-256 as far as the list says it, which reads the whole file. Throws what
// opening and reading throw.
std::optional<Finding> unlike_listed(const Folder& folder, const ListedFile& listed, const FileList& list);

}  // namespace mckpt::impl
