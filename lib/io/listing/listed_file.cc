// Sizes cost nothing and are compared first: a file of another size is not read.
#include "io/listing/listed_file.h"

#include <algorithm>
#include <span>
#include <vector>

#include "core/base/text.h"
#include "io/file/folder.h"
#include "io/store/missing_file.h"
#include "io/sums/sha1.h"
#include "io/sums/sha256.h"

namespace mckpt::impl {
namespace {

constexpr i64 kPiece = i64{1} << 20;

bool is_hidden(std::string_view name) { return name.starts_with('.') || name.find("/.") != name.npos; }

}  // namespace

template <typename Sum>
std::string FileSum::sum_of(Sum sum) const {
  std::vector<u8> window(static_cast<std::size_t>(std::min(kPiece, file_.size())));
  for (i64 at = 0; at < file_.size(); at += kPiece) {
    const i64 bytes = std::min(kPiece, file_.size() - at);
    const std::span<u8> piece = std::span(window).first(static_cast<std::size_t>(bytes));
    file_.read(at, piece);
    sum.update(piece);
    progress_(bytes);
  }
  return sum.hex_digest();
}

const std::string& FileSum::sha256() {
  if (sha256_.empty()) sha256_ = sum_of(Sha256());
  return sha256_;
}

const std::string& FileSum::git_sha1() {
  if (!git_sha1_.empty()) return git_sha1_;
  Sha1 sum;
  const std::string head = cat("blob ", file_.size());
  sum.update({reinterpret_cast<const u8*>(head.c_str()), head.size() + 1});  // with its NUL
  return git_sha1_ = sum_of(std::move(sum));
}

std::optional<Finding> unlike_size(std::optional<i64> bytes, const ListedFile& listed, const FileList& list) {
  if (!bytes)
    return missing_file(
        list.missing, listed.name,
        cat(", but ", list.name, " lists it",
            is_hidden(listed.name) ? ": lost in copying, `*` leaves out names that begin with a dot" : ""),
        std::string(list.help));
  if (listed.bytes < 0 || *bytes == listed.bytes) return std::nullopt;
  return Finding{.code = list.unlike,
                 .file = listed.name,
                 .message = cat("the file has ", *bytes, " bytes, but ", list.name, " says ", listed.bytes),
                 .help = std::string(list.help)};
}

Finding unlike_sum(std::string_view kind, std::string_view found, std::string_view listed,
                   const std::string& file, const FileList& list) {
  return {
      .code = list.unlike,
      .file = file,
      .message = cat("the file's ", kind, " is ", found, ", but ", list.name, " says ", escaped(listed, 80)),
      .help = std::string(list.help)};
}

std::optional<Finding> unlike_listed(const Folder& folder, const ListedFile& listed, const FileList& list) {
  if (std::optional<Finding> unlike = unlike_size(folder.file_bytes(listed.name), listed, list))
    return unlike;
  if (listed.sha256.empty()) return std::nullopt;
  const InputFile file = folder.open_file(listed.name);
  FileSum sum(file, [](i64) {});
  if (sum.sha256() == listed.sha256) return std::nullopt;
  return unlike_sum("SHA-256", sum.sha256(), listed.sha256, listed.name, list);
}

}  // namespace mckpt::impl
