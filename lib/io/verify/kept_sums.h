// Sums that came with a folder, by which a flipped bit is found without asking a server:
//
//   SHA256SUMS, x.sha256                                   lines of sha256sum: the SHA-256 of files
//   .cache/huggingface/download/config.json.metadata       what `hf download --local-dir` keeps: line 2 has a sum
//   snapshots/abc/model.safetensors -> ../../blobs/9c1f..  the cache of the hub: the name of the blob is a sum
//
// The hub's sums are the SHA-256 of large files (64 digits) and git's SHA-1 of small ones (40 digits,
// io/sums/sha1.h). No file but those that the sums name is looked at.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "io/listing/sum_list.h"
#include "io/store/finding.h"

namespace mckpt::impl {

class Folder;
class Store;
struct OpenOptions;
struct VerifyReport;

struct KeptSums {
  std::vector<KeptSum> sums;
  std::vector<std::string> sources;  // in words, each once: "SHA256SUMS", "the names of the hub's blobs"
  std::vector<std::string> lists;    // files of the folder that are lists of sums
  std::vector<std::string>
      unlisted;                   // folders that may have some, and cannot be listed; ".": the folder itself
  std::vector<Finding> findings;  // of lines that are none, and of names that lead out of the folder
};

// All sums of the folder. Lists that cannot be read are findings. Links of the hub's cache and what it keeps
// are each looked for among so many files and folders, and a warning says that there are more.
KeptSums kept_sums(const Folder& folder, i64 most_files = 100'000);

// The sums in the text of one list. `name`: of the list in the folder; a text that is one sum without a name
// is of the file without the ending of the list's name.
KeptSums listed_sums(std::string_view text, const std::string& name);

// Compares each file with its sums. `going_on` is called after each read, from any thread, with the bytes;
// what it throws ends the work. Findings in the order of the sums; `compared`: how many files were read.
std::vector<Finding> unlike_sums(const Folder& folder, const KeptSums& kept, int threads,
                                 const std::function<void(i64)>& going_on, i64& compared);

// Adds the check "sums" about a folder to the report, if the folder has sums; of a path that is a file, the
// check of that file by the sums of its folder. `store`: whose files the note counts that have no sum; null:
// nothing is counted. Files that were compared, and the lists, are no longer among those that were not read:
// their names there begin with `prefix`.
void check_kept_sums(const std::string& path, const Store* store, const OpenOptions& opening, int threads,
                     const std::function<void(i64)>& going_on, std::string_view prefix, VerifyReport& report);

}  // namespace mckpt::impl
