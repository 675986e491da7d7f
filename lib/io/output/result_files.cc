// Lists the files below a folder and separates parts of a result from the user's own files. With a manifest:
// a file is part of the result if it is listed. Without one, or with a damaged one: if its name is in the
// lists below and it is in the folder itself or in hf_assets/, or the file of a rank. A name that is missing
// from the lists costs the user a step by hand; a name too many could cost a file.
#include "io/output/result_files.h"

#include <algorithm>
#include <cerrno>

#include "core/base/error.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "io/archive/archive_index.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/listing/manifest.h"
#include "io/output/staging_marks.h"
#include "runtime/system/folder_names.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kAssets = "hf_assets";
// The file of a rank, in the folder of that rank.
constexpr std::string_view kRankFolder = "mp_rank_", kRankFile = "/model_optim_rng.pt";

constexpr std::string_view kSuffixes[] = {".safetensors", ".safetensors.index.json", ".distcp", ".metadata",
                                          ".tiktoken"};

constexpr std::string_view kNames[] = {
    // Files of an iteration of a training run.
    "common.pt", "metadata.json", "integrity.json", "train_state.pt", "run_config.yaml",
    "modelopt_run_config.yaml", "mckpt_tensors.json", "mckpt_manifest.json",
    // Files of a Hugging Face model.
    "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model",
    "spiece.model", "sentencepiece.bpe.model", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "vocab.txt", "merges.txt", "chat_template.json", "chat_template.jinja", "preprocessor_config.json",
    "processor_config.json", "video_preprocessor_config.json", "hf_quant_config.json", "README.md", "LICENSE",
    "LICENSE.txt", "LICENSE.md", "NOTICE", "NOTICE.txt", "USE_POLICY.md", ".gitattributes"};

bool is_known(std::string_view name) {
  return is_staging_mark(name) || std::ranges::find(kNames, name) != std::end(kNames) ||
         std::ranges::any_of(kSuffixes, [&](std::string_view s) { return name.ends_with(s); });
}

// A folder with at least one such file is a checkpoint.
bool is_data_or_config(std::string_view name) {
  return name == ".metadata" || name == "config.json" || name == kArchiveName ||
         name.ends_with(".safetensors") || name.ends_with(".distcp");
}

// The list of what mckpt wrote into the folder; nothing if the folder has no manifest or a damaged one.
std::optional<Manifest> manifest_of(const std::string& folder) {
  try {
    const OpenOptions plain{.containers = nullptr};  // what is in the folder, not in an archive
    return has_manifest(folder, plain) ? read_manifest(Folder(folder, plain)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// A folder that was there a moment ago and is not any more: another program has replaced it meanwhile.
[[noreturn]] void throw_unlisted(const std::string& path, int error) {
  if (error == ENOENT) throw Error(Code::kOutputBusy, "another program is replacing this folder").file(path);
  throw_open_failed(path, error);
}

bool is_empty(const std::string& folder) {
  std::vector<ListedEntry> entries;
  if (int error = list_folder(folder, entries); error != 0) throw_unlisted(folder, error);
  return entries.empty();
}

}  // namespace

std::vector<std::string> foreign_files(const std::string& folder, const FileNames& copied) {
  std::vector<std::string> all, foreign;
  bool checkpoint = false;
  std::optional<Manifest> manifest = manifest_of(folder);
  int error = walk_folder(folder, [&](std::string path, EntryKind kind) {
    const auto depth = std::ranges::count(path, '/');
    const std::string name = path.substr(path.rfind('/') + 1);
    if (kind == EntryKind::kFolder) {
      if (path == kOwnerProbe || !is_empty(cat(folder, "/", path)) || path == kAssets) return true;
      path += '/';
    }
    bool file = kind == EntryKind::kFile, on_top = depth == 0;
    bool in_assets = depth == 1 && path.starts_with(cat(kAssets, "/"));
    bool of_rank = depth == 1 && path.starts_with(kRankFolder) && path.ends_with(kRankFile);
    bool by_name = ((on_top || in_assets) && is_known(name)) || of_rank || copied.contains(path);
    bool written =
        manifest && (manifest->find(path) || path == kManifestName || (on_top && is_staging_mark(name)));
    if (!file || !(manifest ? written : by_name)) foreign.push_back(path);
    checkpoint |= file && (of_rank || (on_top && is_data_or_config(name)));
    all.push_back(std::move(path));
    return true;
  });
  if (error != 0) throw_unlisted(folder, error);
  std::vector<std::string>& out = checkpoint ? foreign : all;
  std::sort(out.begin(), out.end(), natural_less);
  return out;
}

}  // namespace mckpt::impl
