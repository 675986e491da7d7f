// One iteration of a Megatron run as mckpt writes it, beside the data files that a copy fills:
//
//   DST/latest_checkpointed_iteration.txt      "release", or the number
//   DST/release/.metadata  __0_0.distcp ...    what torch and Megatron read
//   DST/release/hf_assets/                     config, tokenizer, ...: what export needs
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/base/int.h"
#include "core/base/text.h"
#include "io/copy/side_files.h"
#include "io/file/result_files.h"

namespace mckpt::impl {

class Store;

// The file that names the iteration that a training run loads.
struct Tracker {
  std::string path, text;
};

class FsdpFolder {
 public:
  // No iteration: DST/release.
  FsdpFolder(const std::string& target, std::optional<i64> iteration);

  const std::string& path() const { return path_; }
  const Tracker& tracker() const { return tracker_; }
  // What the tracker names by now where that is a later iteration than this one; nothing else.
  std::optional<i64> later_tracked() const;

  // Files that are not of the layout: those beside the data, and those in hf_assets/.
  struct Beside {
    SideFiles files{}, assets{};

    std::string identity() const { return cat(files.identity(), "\n", assets.identity()); }
    i64 bytes() const { return files.bytes() + assets.bytes(); }
    FileNames names() const;  // relative to the iteration
    const std::vector<std::string>& left_out() const {
      return assets.left_out.empty() ? files.left_out : assets.left_out;
    }
  };

 private:
  std::string path_;
  Tracker tracker_;
  std::optional<i64> iteration_;
};

// What lies beside the data of a checkpoint that is resharded is copied: Megatron-Bridge's train_state.pt,
// run_config.yaml and the like, but no sums of the old files. `changed` has new contents of some.
using ChangedFiles = std::map<std::string, std::string, std::less<>>;
SideFiles files_beside(const Store& source, const ChangedFiles& changed);
// The same for a checkpoint that is another one under other names: with the mark of a whole torch_dist
// checkpoint, and all that mckpt put beside it.
FsdpFolder::Beside all_beside(const Store& source, const ChangedFiles& changed);

// Folders beside the data that all_beside() leaves out.
std::vector<std::string> folders_left_behind(const Store& source);

// The number of an iteration's folder, "iter_0000010"; nothing for "release" and other names.
std::optional<i64> iteration_of(std::string_view folder);

}  // namespace mckpt::impl
