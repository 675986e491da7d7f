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

#include "io/dcp_layout.h"
#include "io/store.h"
#include "tools/hf_assets.h"

namespace mckpt {

class FsdpFolder {
 public:
  // No iteration: DST/release.
  FsdpFolder(std::string target, std::optional<i64> iteration, bool durable);

  const std::string& path() const { return path_; }
  // Objects, assets and, last, .metadata; `folder` is where the iteration is being made. No assets: "", and
  // no list of their tensors likewise.
  void write_rest(const DcpLayout& layout, OutputFiles& out, const std::string& folder,
                  const std::string& assets_from, std::string_view tensor_table) const;
  // What lies beside the data of a checkpoint that is resharded goes along: Megatron-Bridge's train_state.pt,
  // run_config.yaml and the like. `changed` has new contents of some. To be written before .metadata is.
  using Changed = std::map<std::string, std::string, std::less<>>;
  void write_beside(const Store& source, const std::string& folder, const Changed& changed) const;
  // The same of a checkpoint that is another one under other names: what lies beside its data goes along,
  // apart from files that the names are in (integrity.json); `common`, if not empty, is the new common.pt.
  void write_rest_of(const Store& source, const DcpLayout& layout, OutputFiles& out,
                     const std::string& folder, std::string_view common) const;
  std::string tracker_path() const;
  void write_tracker() const;
  // What the tracker names by now where that is a later iteration than this one; nothing else.
  std::optional<i64> later_tracked() const;

 private:
  void copy_beside(const Folder& from, const std::string& folder, const Changed& changed) const;
  void write_file(const std::string& folder, std::string_view name,
                  const std::function<void(const std::function<void(std::string_view)>&)>& fill) const;

  std::string target_, path_;
  std::optional<i64> iteration_;
  bool durable_;
};

// Folders beside the data that write_rest_of() does not take along.
std::vector<std::string> folders_left_behind(const Store& source);

// The number of an iteration's folder, "iter_0000010"; nothing for "release" and other names.
std::optional<i64> iteration_of(std::string_view folder);

}  // namespace mckpt
