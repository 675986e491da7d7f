// One sentence for files of all formats.
#include "io/saves/other_save.h"

#include "core/base/text.h"

namespace mckpt::impl {

std::string unlike_value(std::string_view name, std::string_view here, std::string_view there) {
  return cat(name, " is ", here, " here and ", there, " there");
}

Finding other_save(std::string file, std::string_view than, const std::vector<std::string>& differ,
                   std::string help, i64 rank) {
  constexpr std::size_t kMostNamed = 8;
  return {.code = Code::kMixedSaves,
          .file = std::move(file),
          .message = cat("the file is of another save than ", than, ": ", listed(differ, kMostNamed)),
          .help = std::move(help),
          .rank = static_cast<i32>(rank)};
}

}  // namespace mckpt::impl
