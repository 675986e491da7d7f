// Only the numbers of the grid are replaced, line by line; all other text stays as it is.
#include "convert/plan/run_config.h"

#include <algorithm>

#include "convert/facts/megatron_args.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "io/dcp/run/run_config.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostConfigBytes = i64{4} << 20;

// Replaces the value in each line "  key: value" of the configuration's sections.
void set_yaml_number(std::string& text, std::string_view key, i64 value) {
  std::string front = cat("\n  ", key, ": ");
  for (std::size_t at = text.find(front); at != text.npos; at = text.find(front, at + 1)) {
    std::size_t begin = at + front.size(), end = std::min(text.find('\n', begin), text.size());
    text.replace(begin, end - begin, cat(value));
  }
}

}  // namespace

ChangedFiles files_with_grid(const Store& store, const Grid& grid) {
  const std::string name(kRunConfigName);
  Folder folder(store.root(), store.opening());
  std::optional<i64> bytes = folder.file_bytes(name);
  if (!bytes || *bytes > kMostConfigBytes) return {};
  std::string text(static_cast<std::size_t>(*bytes), '\0');
  folder.open_file(name).read(0, std::span(reinterpret_cast<u8*>(text.data()), text.size()));
  for (auto [field, value] : grid_args(grid)) set_yaml_number(text, field, value);
  return {{name, std::move(text)}};
}

}  // namespace mckpt::impl
