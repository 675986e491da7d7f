// Reads headers on all cores: a rank's headers are a few megabytes of pickle.
#include "io/torch/files.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/file/parallel.h"

namespace mckpt::impl {

std::vector<OpenedTorchFile> open_torch_files(const Folder& folder, std::vector<std::string> names) {
  std::vector<OpenedTorchFile> out(names.size());
  parallel_for(static_cast<i64>(names.size()), default_threads(), [&](int, i64 i) {
    OpenedTorchFile& o = out[i];
    o.path = std::move(names[i]);
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

std::string saved_as(const OpenedTorchFile& file) {
  const std::string& stem = file.file->saved_name;
  return stem.empty() ? "" : stem + file.path.substr(std::min(file.path.size(), file.path.rfind('.')));
}

Finding moved_file(const OpenedTorchFile& file, i64 rank) {
  return {.code = Code::kBadShards,
          .file = file.path,
          .message = cat("this is another file of the save: it was saved as ", escaped(saved_as(file))),
          .help = "copy the folder again, each file under its own name",
          .rank = static_cast<i32>(rank)};
}

}  // namespace mckpt::impl
