// Files are compared byte by byte.
#include "hf/adapter/own_tokenizer.h"

#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/file/file.h"
#include "io/file/folder.h"

namespace mckpt::impl {
namespace {

constexpr const char* kFiles[] = {"tokenizer.json",      "tokenizer_config.json",
                                  "tokenizer.model",     "vocab.json",
                                  "vocab.txt",           "merges.txt",
                                  "added_tokens.json",   "special_tokens_map.json",
                                  "chat_template.jinja", "chat_template.json"};
constexpr i64 kMostBytes = i64{1} << 28;

bool are_equal(const InputFile& a, const InputFile& b) {
  if (a.size() != b.size() || a.size() > kMostBytes) return false;
  return a.read(0, a.size()) == b.read(0, b.size());
}

}  // namespace

std::string own_tokenizer(const Folder& adapter, const std::string& base) {
  if (!is_folder(base, adapter.opening())) return "";
  const Folder other(base, adapter.opening());
  std::vector<std::string> names;
  for (const char* name : kFiles)
    if (adapter.has_file(name) &&
        !(other.has_file(name) && are_equal(adapter.open_file(name), other.open_file(name))))
      names.emplace_back(name);
  if (names.empty()) return "";
  return cat("the folder of the adapter has files of a tokenizer that the base has not, or has otherwise: ",
             listed(names), "; the files of the result are those of the base");
}

}  // namespace mckpt::impl
