// One iteration of a Megatron run as mckpt writes it, beside the data files that a copy fills:
//
//   DST/latest_checkpointed_iteration.txt      "release", or the number
//   DST/release/.metadata  __0_0.distcp ...    what torch and Megatron read
//   DST/release/hf_assets/                     config, tokenizer, ...: what export needs
//
// The class computes names and reads the tracker; it writes nothing. The functions below choose the files
// beside the data that go from a source into such a folder.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/base/int.h"
#include "core/base/text.h"
#include "io/copy/side_files.h"
#include "io/output/result_files.h"

namespace mckpt::impl {

class Store;

// The file that names the iteration that a training run loads.
struct Tracker {
  std::string path, text;
};

// Throws kUsage for a number that Megatron does not read as the number of a checkpoint.
void check_iteration(std::optional<i64> iteration);

// The paths of one iteration. A value.
class FsdpFolder {
 public:
  // No iteration: DST/release.
  FsdpFolder(const std::string& target, std::optional<i64> iteration);

  const std::string& path() const { return path_; }
  const Tracker& tracker() const { return tracker_; }
  // The iteration that the tracker file names now, if it is a later one than this; else nothing.
  std::optional<i64> later_tracked() const;

  // Files of the result that contain no tensors: `files` beside the data, `assets` in hf_assets/.
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

// The files beside the data of a checkpoint that is resharded: Megatron-Bridge's train_state.pt,
// run_config.yaml and the like are copied; checksums and hashes of the old files are not. `changed` has new
// contents of some, by name.
using ChangedFiles = std::map<std::string, std::string, std::less<>>;
SideFiles files_beside(const Store& source, const ChangedFiles& changed);
// The files beside the data that are parts of the checkpoint itself: objects that are files of their own,
// such as the common.pt of torch_dist, and the file that marks a complete torch_dist checkpoint.
SideFiles object_files(const Store& source);
// The files beside the data for a result that has the source's tensors under other names: the files of
// files_beside(), the file that marks a complete torch_dist checkpoint, and the assets that mckpt put into
// the source.
FsdpFolder::Beside all_beside(const Store& source, const ChangedFiles& changed);

// Folders beside the data that all_beside() leaves out.
std::vector<std::string> folders_left_behind(const Store& source);

// The number of an iteration's folder, "iter_0000010"; nothing for "release" and other names.
std::optional<i64> iteration_of(std::string_view folder);

}  // namespace mckpt::impl
