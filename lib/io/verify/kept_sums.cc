// Finds sums by the names of files, and compares. A file that several sources name is read once for each kind
// of sum.
#include "io/verify/kept_sums.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/file/parallel.h"
#include "io/file/path_stat.h"
#include "io/listing/listed_file.h"
#include "io/listing/manifest.h"
#include "io/listing/sum_list.h"
#include "io/store/findings.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kHubFolder = ".cache/huggingface/download", kHubEnding = ".metadata";
constexpr std::string_view kBlobs = "the names of the hub's blobs", kDownloads = "what hf download kept";
constexpr i64 kMostListBytes = i64{64} << 20, kMostHubBytes = 4096;
constexpr int kMostDepth = 8;
constexpr std::ptrdiff_t kBatch = 4096;

std::string text_of(const Folder& folder, const std::string& name, i64 most) {
  InputFile file = folder.open_file(name);
  if (file.size() > most)
    throw Error(Code::kBadJson, "the list of sums is too large").found(human_bytes(file.size()));
  std::vector<u8> bytes = file.read(0, file.size());
  return {bytes.begin(), bytes.end()};
}

// One look at a folder.
class SumFinder {
 public:
  SumFinder(const Folder& folder, i64 most_files) : folder_(folder), most_files_(most_files) {}

  // Lists are where the folder's own files are, and are found however many files there are.
  KeptSums find() {
    const std::vector<FolderEntry> top = entries_of("");
    for (const FolderEntry& e : top)
      if (!e.folder && !e.name.starts_with('.') && is_list_name(e.name)) add_list(e.name);
    look_below("", [&](const std::string& path, std::string_view) { add_blob(path); });
    look_below(kHubFolder, [&](const std::string& path, std::string_view name) {
      if (name.ends_with(kHubEnding)) add_download(path);
    });
    out_.findings = findings_.take();
    return std::move(out_);
  }

 private:
  std::vector<FolderEntry> entries_of(std::string_view name) {
    try {
      return folder_.entries(name);
    } catch (const Error& e) {
      if (e.code() == Code::kNotFound && !name.empty()) return {};
      // The folder itself is listed twice; folders below it are reported as not read.
      const bool may_have = name.empty() || name.starts_with(kHubFolder);
      const std::string shown(name.empty() ? "." : name);
      if (may_have && std::ranges::find(out_.unlisted, shown) == out_.unlisted.end()) {
        out_.unlisted.push_back(shown);
        fault(shown, Error(e.code(), cat("sums may be here, and were not looked for: ", e.message())));
      }
      return {};
    }
  }

  // walk() with a bound of its own, and a finding where there is more.
  template <typename Visit>
  void look_below(std::string_view name, const Visit& visit) {
    seen_ = 0;
    walk(name, 0, visit);
    if (seen_ <= most_files_) return;
    findings_.add({.code = Code::kWrongSum,
                   .message = cat("sums were looked for among the first ", with_commas(most_files_),
                                  " files and folders of ", name.empty() ? "the folder" : name,
                                  " alone: ", name.empty() ? kBlobs : kDownloads, " may have more of them"),
                   .warning = true});
  }

  // Calls `visit` for each file below the folder `name`. Hidden names belong to tools.
  template <typename Visit>
  void walk(std::string_view name, int depth, const Visit& visit) {
    if (seen_ > most_files_) return;
    for (const FolderEntry& e : entries_of(name)) {
      if (e.name.starts_with('.')) continue;
      if (++seen_ > most_files_) return;
      const std::string path = name.empty() ? e.name : cat(name, "/", e.name);
      if (!e.folder)
        visit(path, e.name);
      else if (depth < kMostDepth && !is_link(cat(folder_.path(), "/", path)))
        walk(path, depth + 1, visit);
    }
  }

  void note_source(std::string_view words) {
    if (std::ranges::find(out_.sources, words) == out_.sources.end()) out_.sources.emplace_back(words);
  }

  void fault(const std::string& file, const Error& e) {
    Finding finding = to_finding(e);
    finding.file = file, finding.warning = true;
    findings_.add(std::move(finding));
  }

  void add_list(const std::string& path) {
    out_.lists.push_back(path);
    try {
      const std::size_t before = out_.sums.size();
      add_lines(text_of(folder_, path, kMostListBytes), path, out_.sums, findings_);
      if (out_.sums.size() > before) note_source(path);
    } catch (const Error& e) {
      fault(path, e);
    }
  }

  // A link of the hub's cache, whose target's name is a sum.
  void add_blob(const std::string& path) {
    const std::filesystem::path target =
        std::filesystem::read_symlink(cat(folder_.path(), "/", path), failed_);
    if (failed_ || target.parent_path().filename() != "blobs") return;
    const std::string hex = as_sum(target.filename().string());
    if (hex.empty()) return;
    note_source(kBlobs);
    out_.sums.push_back({path, hex, "the name of its blob"});
  }

  // Three lines: the commit, the sum, the time of the download.
  void add_download(const std::string& path) {
    try {
      const std::string text = text_of(folder_, path, kMostHubBytes);
      const std::vector<std::string_view> lines = lines_of(text);
      if (lines.size() < 2) return;
      std::string_view tag = lines[1];
      if (tag.starts_with("W/")) tag.remove_prefix(2);
      if (tag.size() > 2 && tag.starts_with('"') && tag.ends_with('"')) tag = tag.substr(1, tag.size() - 2);
      const std::string hex = as_sum(tag);
      if (hex.empty()) return;
      note_source(kDownloads);
      const std::size_t front = kHubFolder.size() + 1;
      out_.sums.push_back({path.substr(front, path.size() - front - kHubEnding.size()), hex, path});
    } catch (const Error& e) {
      fault(path, e);
    }
  }

  const Folder& folder_;
  i64 most_files_;
  KeptSums out_;
  Findings findings_;
  std::error_code failed_;
  i64 seen_ = 0;  // files and folders of one walk
};

// The fault of one file by the sums that name it; whether it was read.
bool compare_file(const Folder& folder, const std::string& name, const std::vector<const KeptSum*>& sums,
                  const std::function<void(i64)>& going_on, std::vector<Finding>& found) {
  auto list_of = [](std::string_view from, std::string_view help) {
    return FileList{from, Code::kWrongSum, Code::kWrongSum, help};
  };
  try {
    if (!folder.has_file(name)) {
      const std::string from = escaped(sums[0]->from, 4096);
      found.push_back(*unlike_size(std::nullopt, {name}, list_of(from, "fetch or copy the file again")));
      // A downloaded file may have been removed on purpose; a list is of files that are there.
      found.back().warning = sums[0]->from.starts_with(kHubFolder);
      return false;
    }
    const InputFile file = folder.open_file(name);
    FileSum own(file, going_on);
    for (const KeptSum* sum : sums) {
      const bool git = sum->hex.size() == kSha1Digits;
      const std::string &here = git ? own.git_sha1() : own.sha256(), from = escaped(sum->from, 4096);
      if (here == sum->hex) continue;
      const std::string help =
          cat("fetch or copy the file again; if it was changed on purpose, ", from, " is no longer true");
      found.push_back(unlike_sum(git ? "git SHA-1" : "SHA-256", here, sum->hex, name, list_of(from, help)));
    }
    return true;
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    found.push_back(to_finding(e));
    found.back().file = name;
    return false;
  }
}

// A store of one file alone takes the sums of that file.
void keep_sums_of(std::string_view name, KeptSums& kept) {
  std::erase_if(kept.sums, [&](const KeptSum& s) { return s.file != name; });
  kept.findings.clear();
}

// The note of the check behind its name: whence the sums are, and whether some files of the store have none.
std::string note_of(const Store* store, std::string_view single, const KeptSums& kept) {
  std::set<std::string_view> named;
  for (const KeptSum& s : kept.sums) named.insert(s.file);
  i64 without = 0;
  if (store != nullptr)
    for (const StoreFile& f : store->files())
      without += !named.contains(single.empty() ? std::string_view(f.path) : single);
  return cat("by ", listed(kept.sources),
             without == 0 ? ""
                          : cat("; ", counted(without, "file"), " of tensors ", without == 1 ? "has" : "have",
                                " none"));
}

}  // namespace

KeptSums listed_sums(std::string_view text, const std::string& name) {
  KeptSums out;
  Findings findings;
  add_lines(text, name, out.sums, findings);
  out.findings = findings.take();
  if (!out.sums.empty()) out.sources.push_back(name);
  return out;
}

KeptSums kept_sums(const Folder& folder, i64 most_files) { return SumFinder(folder, most_files).find(); }

std::vector<Finding> unlike_sums(const Folder& folder, const KeptSums& kept, int threads,
                                 const std::function<void(i64)>& going_on, i64& compared) {
  std::map<std::string_view, std::vector<const KeptSum*>> by_file;
  for (const KeptSum& sum : kept.sums) by_file[sum.file].push_back(&sum);
  const std::vector<std::pair<std::string_view, std::vector<const KeptSum*>>> files(by_file.begin(),
                                                                                    by_file.end());
  Findings out;
  compared = 0;
  // A list may name a million files that are not there: findings are kept of one batch at a time.
  for (i64 begin = 0; begin < std::ssize(files); begin += kBatch) {
    const i64 count = std::min(kBatch, std::ssize(files) - begin);
    std::vector<std::vector<Finding>> found(static_cast<std::size_t>(count));
    std::vector<char> read(found.size());
    parallel_for(count, threads, [&](int, i64 i) {
      const auto& [name, sums] = files[begin + i];
      read[i] = compare_file(folder, std::string(name), sums, going_on, found[i]);
    });
    for (std::vector<Finding>& of_file : found)
      for (Finding& f : of_file) out.add(std::move(f));
    compared += std::ranges::count(read, 1);
  }
  return out.take();
}

void check_kept_sums(const std::string& path, const Store* store, const OpenOptions& opening, int threads,
                     const std::function<void(i64)>& going_on, std::string_view prefix,
                     VerifyReport& report) {
  OpenOptions plain = opening;
  plain.containers = nullptr;  // sums are of the files on the disk
  const ListedPlace place = listed_place(path, plain);
  if (!leads_to_folder(place.folder)) return;
  const Folder folder(place.folder, plain);
  KeptSums kept = kept_sums(folder);
  if (!place.name.empty()) keep_sums_of(place.name, kept);
  if (kept.sums.empty() && kept.findings.empty()) return;
  Check check{.name = "sums", .status = Check::Status::kPass, .unit = "files"};
  std::vector<Finding> found = unlike_sums(folder, kept, threads, going_on, check.count);
  // A shard that is missing is a problem already, with its cause.
  std::erase_if(found, [&](const Finding& f) {
    return std::ranges::any_of(report.findings, [&](const Finding& o) {
      return o.code == Code::kShardMissing && !o.file.empty() && o.file == f.file;
    });
  });
  std::ranges::move(kept.findings, std::back_inserter(found));
  check.status = status_of(found);
  if (!kept.sums.empty()) check.note = note_of(store, place.name, kept);
  report.add(std::move(check), std::move(found));
  std::set<std::string> read;
  for (const std::string& list : kept.lists) read.insert(cat(prefix, list));
  for (const KeptSum& sum : kept.sums) read.insert(cat(prefix, sum.file));
  std::erase_if(report.unread, [&](const NotRead& u) { return read.contains(u.path); });
  for (const std::string& folder_name : kept.unlisted)
    if (const std::string shown = cat(prefix, folder_name);
        std::ranges::find(report.unread, shown, &NotRead::path) == report.unread.end())
      report.unread.push_back({.path = shown, .reason = "it cannot be listed", .folder = true});
}

}  // namespace mckpt::impl
