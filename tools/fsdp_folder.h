// One iteration of a Megatron run as mckpt writes it, beside the data files that a copy fills:
//
//   DST/latest_checkpointed_iteration.txt      "release", or the number
//   DST/release/.metadata  __0_0.distcp ...    what torch and Megatron read
//   DST/release/hf_assets/                     config, tokenizer, ...: what export needs
#pragma once

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
  // Objects, assets and, last, .metadata; `folder` is where the iteration is being made.
  void write_rest(const DcpLayout& layout, OutputFiles& out, const std::string& folder,
                  const std::string& assets_from, std::string_view tensor_table) const;
  // The same of a checkpoint that is another one under other names: what lies beside its data goes along,
  // apart from files that the names are in (integrity.json); `common`, if not empty, is the new common.pt.
  void write_rest_of(const Store& source, const DcpLayout& layout, OutputFiles& out,
                     const std::string& folder, std::string_view common) const;
  void write_tracker() const;

 private:
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

// The size of .metadata and a digest of it, which knows every key, type, chunk and place.
struct MetadataSummary {
  i64 bytes = 0;
  std::string sha256;
};
MetadataSummary summarize_metadata(const DcpLayout& layout);

}  // namespace mckpt
