// Numbers are looked for behind the last of the words that announce them.
#include "io/store/names/torch_names.h"

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

// Up to nine digits, so that it fits.
bool is_number(std::string_view s) {
  return !s.empty() && s.find_first_not_of("0123456789") == s.npos && s.size() < 10;
}

i64 to_number(std::string_view s) {
  i64 n = 0;
  for (char c : s) n = n * 10 + (c - '0');
  return n;
}

// The name without its suffix.
std::string_view stem(std::string_view name) { return name.substr(0, name.rfind('.')); }

}  // namespace

std::optional<RankName> rank_name(std::string_view file) {
  constexpr std::string_view kRank = "_rank";
  std::string_view name = stem(file);
  std::size_t at = name.rfind(kRank);
  if (at == name.npos || at == 0) return std::nullopt;
  std::string_view number = name.substr(at + kRank.size());
  if (number.starts_with('_')) number.remove_prefix(1);
  if (!is_number(number)) return std::nullopt;
  RankName out{std::string(name.substr(0, at)), -1, to_number(number)};
  std::size_t world = out.group.rfind("_world_size_");
  if (world != std::string::npos && is_number(std::string_view(out.group).substr(world + 12))) {
    out.world = to_number(std::string_view(out.group).substr(world + 12));
    out.group.resize(world);
  }
  return out;
}

std::string name_of_rank(std::string_view file, i64 rank) {
  const std::string_view name = stem(file);
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  return cat(name.substr(0, digits), rank, file.substr(name.size()));
}

i64 shard_count(std::string_view file) {
  std::string_view name = stem(file);
  std::size_t of = name.rfind("-of-");
  return of != name.npos && is_number(name.substr(of + 4)) ? to_number(name.substr(of + 4)) : -1;
}

bool has_torch_suffix(std::string_view name) {
  for (std::string_view suffix : {".pt", ".pth", ".bin", ".ckpt"})
    if (name.ends_with(suffix)) return true;
  return false;
}

bool is_pytorch_model(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name == "pytorch_model.bin" || (name.starts_with("pytorch_model-") && shard_count(name) > 0);
}

}  // namespace mckpt::impl
