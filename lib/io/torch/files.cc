// Parses names of files, and reads headers on all cores: a rank's headers are a few megabytes of pickle.
#include "io/torch/files.h"

#include "core/base/error.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/file/parallel.h"

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
  std::string_view name = stem(file);
  std::size_t at = name.rfind("_rank_");
  if (at == name.npos || !is_number(name.substr(at + 6))) return std::nullopt;
  RankName out{std::string(name.substr(0, at)), -1, to_number(name.substr(at + 6))};
  std::size_t world = out.group.rfind("_world_size_");
  if (world != std::string::npos && is_number(std::string_view(out.group).substr(world + 12))) {
    out.world = to_number(std::string_view(out.group).substr(world + 12));
    out.group.resize(world);
  }
  return out;
}

i64 shard_count(std::string_view file) {
  std::string_view name = stem(file);
  std::size_t of = name.rfind("-of-");
  return of != name.npos && is_number(name.substr(of + 4)) ? to_number(name.substr(of + 4)) : -1;
}

std::vector<OpenedTorchFile> open_torch_files(const Folder& folder, std::vector<std::string> names) {
  std::vector<OpenedTorchFile> out(names.size());
  parallel_for(static_cast<i64>(names.size()), default_threads(), [&](int, i64 i) {
    OpenedTorchFile& o = out[static_cast<std::size_t>(i)];
    o.path = std::move(names[static_cast<std::size_t>(i)]);
    try {
      InputFile file = folder.open_file(o.path);
      o.bytes = file.size();
      o.file.emplace(with_file(o.path, [&] { return read_torch_file(file); }));
    } catch (const Error& e) {
      o.problem = to_finding(e);
      o.problem->file = o.path;
    }
  });
  return out;
}

}  // namespace mckpt::impl
