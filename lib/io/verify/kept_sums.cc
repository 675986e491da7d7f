// Finds sums by the names of files, and compares. A file that several sources name is read once for each kind
// of sum.
#include "io/verify/kept_sums.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/file/parallel.h"
#include "io/file/sha1.h"
#include "io/file/sha256.h"
#include "io/output/manifest.h"
#include "io/store/findings.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kHubFolder = ".cache/huggingface/download", kHubEnding = ".metadata";
constexpr std::string_view kBlobs = "the names of the hub's blobs", kDownloads = "what hf download kept";
constexpr std::size_t kSha256Digits = 64, kSha1Digits = 40;
constexpr i64 kMostListBytes = i64{64} << 20, kMostHubBytes = 4096, kPiece = i64{1} << 20;
constexpr int kMostDepth = 8;
constexpr std::size_t kMostFiles = 100'000;

// The digits in small letters if the text is a sum; otherwise "".
std::string as_sum(std::string_view text) {
  if (text.size() != kSha256Digits && text.size() != kSha1Digits) return "";
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return "";
  }
  return out;
}

std::string as_sha256(std::string_view text) { return text.size() == kSha256Digits ? as_sum(text) : ""; }

// The name of a line that begins with a backslash: sha256sum escapes line ends and backslashes so.
std::string unescaped(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); i++) {
    if (name[i] != '\\' || i + 1 == name.size()) {
      out += name[i];
      continue;
    }
    const char c = name[++i];
    out += c == 'n' ? '\n' : c == 'r' ? '\r' : c;
  }
  return out;
}

// "9c1f...  name" and "9c1f... *name" of sha256sum, "SHA256 (name) = 9c1f..." of BSD. False for other lines.
bool parse_line(std::string_view line, KeptSum& sum) {
  const bool odd_name = line.starts_with('\\');
  if (odd_name) line.remove_prefix(1);
  constexpr std::string_view kBsd = "SHA256 (", kEnd = ") = ";
  if (line.starts_with(kBsd)) {
    const std::size_t end = line.rfind(kEnd);
    if (end == line.npos) return false;
    sum.file = line.substr(kBsd.size(), end - kBsd.size());
    sum.hex = as_sha256(line.substr(end + kEnd.size()));
  } else {
    if (line.size() < kSha256Digits + 3 || line[kSha256Digits] != ' ') return false;
    const char mark = line[kSha256Digits + 1];
    if (mark != ' ' && mark != '*') return false;
    sum.file = line.substr(kSha256Digits + 2);
    sum.hex = as_sha256(line.substr(0, kSha256Digits));
  }
  if (odd_name) sum.file = unescaped(sum.file);
  if (sum.file.starts_with("./")) sum.file.erase(0, 2);
  return !sum.hex.empty() && !sum.file.empty();
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_list_name(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames = {"SHA256SUMS",     "SHA256SUMS.txt", "sha256sums",
                                                      "sha256sums.txt", "sha256sum.txt",  "checksums.sha256"};
  return std::ranges::find(kNames, name) != kNames.end() || name.ends_with(".sha256") ||
         name.ends_with(".sha256sum");
}

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
  explicit SumFinder(const Folder& folder) : folder_(folder) {}

  KeptSums find() {
    walk("", 0, [&](const std::string& path, const std::string& name, int depth) {
      if (depth == 0 && is_list_name(name)) add_list(path);
      add_blob(path);
    });
    walk(kHubFolder, 0, [&](const std::string& path, const std::string& name, int) {
      if (name.ends_with(kHubEnding)) add_download(path);
    });
    return std::move(out_);
  }

 private:
  // Calls `visit` for each file below the folder `name`. Hidden names belong to tools.
  template <typename Visit>
  void walk(std::string_view name, int depth, const Visit& visit) {
    std::vector<FolderEntry> entries;
    try {
      if (depth > 0 || name.empty() || std::filesystem::is_directory(cat(folder_.path(), "/", name), failed_))
        entries = folder_.entries(name);
    } catch (const Error&) {
      return;  // reported as a folder that cannot be listed
    }
    for (const FolderEntry& e : entries) {
      if (e.name.starts_with('.') || seen_++ > kMostFiles) continue;
      const std::string path = name.empty() ? e.name : cat(name, "/", e.name);
      if (!e.folder)
        visit(path, e.name, depth);
      else if (depth < kMostDepth && !std::filesystem::is_symlink(cat(folder_.path(), "/", path), failed_))
        walk(path, depth + 1, visit);
    }
  }

  void note_source(std::string_view words) {
    if (std::ranges::find(out_.sources, words) == out_.sources.end()) out_.sources.emplace_back(words);
  }

  void fault(const std::string& file, const Error& e) {
    Finding finding = to_finding(e);
    finding.file = file, finding.warning = true;
    out_.findings.push_back(std::move(finding));
  }

  void add_list(const std::string& path) {
    out_.lists.push_back(path);
    try {
      KeptSums of_list = listed_sums(text_of(folder_, path, kMostListBytes), path);
      if (!of_list.sums.empty()) note_source(path);
      std::ranges::move(of_list.sums, std::back_inserter(out_.sums));
      std::ranges::move(of_list.findings, std::back_inserter(out_.findings));
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
  KeptSums out_;
  std::error_code failed_;
  std::size_t seen_ = 0;
};

std::string sha256_sum(const InputFile& file, const std::function<void(i64)>& going_on) {
  Sha256 sum;
  for (i64 at = 0; at < file.size(); at += kPiece) {
    std::vector<u8> piece = file.read(at, std::min(kPiece, file.size() - at));
    sum.update(piece);
    going_on(std::ssize(piece));
  }
  return sum.hex_digest();
}

std::string git_sum(const InputFile& file, const std::function<void(i64)>& going_on) {
  Sha1 sum;
  const std::string head = cat("blob ", file.size());
  sum.update({reinterpret_cast<const u8*>(head.c_str()), head.size() + 1});  // with its NUL
  for (i64 at = 0; at < file.size(); at += kPiece) {
    std::vector<u8> piece = file.read(at, std::min(kPiece, file.size() - at));
    sum.update(piece);
    going_on(std::ssize(piece));
  }
  return sum.hex_digest();
}

// What is wrong with one file by the sums that name it.
void compare(const Folder& folder, const std::string& name, const std::vector<const KeptSum*>& sums,
             const std::function<void(i64)>& going_on, std::vector<Finding>& found) {
  auto finding = [&](std::string message, std::string help, bool warning = false) {
    found.push_back({.code = Code::kWrongSum,
                     .file = name,
                     .message = std::move(message),
                     .help = std::move(help),
                     .warning = warning});
  };
  std::string sha256, sha1;
  const InputFile file = folder.open_file(name);
  for (const KeptSum* sum : sums) {
    const bool git = sum->hex.size() == kSha1Digits;
    std::string& own = git ? sha1 : sha256;
    if (own.empty()) own = git ? git_sum(file, going_on) : sha256_sum(file, going_on);
    if (own != sum->hex)
      finding(cat("the file's ", git ? "git SHA-1" : "SHA-256", " is ", own, ", but ",
                  escaped(sum->from, 4096), " says ", sum->hex),
              cat("fetch or copy the file again; if it was changed on purpose, ", escaped(sum->from, 4096),
                  " is no longer true"));
  }
}

// A store of one file alone takes the sums of that file.
void keep_sums_of(std::string_view name, KeptSums& kept) {
  std::erase_if(kept.sums, [&](const KeptSum& s) { return s.file != name; });
  kept.findings.clear();
}

// What the check says behind its name: whence the sums are, and whether some files of the store have none.
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

bool is_sum_list(std::string_view text) {
  KeptSum sum;
  if (text.starts_with('{')) return false;  // a card in JSON has no such lines
  return std::ranges::any_of(lines_of(text), [&](std::string_view line) { return parse_line(line, sum); });
}

KeptSums listed_sums(std::string_view text, const std::string& name) {
  KeptSums out;
  for (std::string_view line : lines_of(text)) {
    if (line.empty() || line.starts_with('#')) continue;
    KeptSum sum;
    sum.from = name;
    if (!parse_line(line, sum)) {
      const std::string own = name.substr(name.rfind('/') + 1);
      sum.hex = as_sha256(line), sum.file = own.substr(0, own.rfind('.'));
      if (sum.hex.empty()) continue;  // as sha256sum does: a page of text may have the lines among others
    }
    try {
      check_inside_name(sum.file);
      out.sums.push_back(std::move(sum));
    } catch (const Error& e) {
      // A list may be of more than this folder: what is elsewhere is not looked at.
      out.findings.push_back(to_finding(e));
      out.findings.back().file = name, out.findings.back().warning = true;
    }
  }
  if (!out.sums.empty()) out.sources.push_back(name);
  return out;
}

KeptSums kept_sums(const Folder& folder) { return SumFinder(folder).find(); }

std::vector<Finding> unlike_sums(const Folder& folder, const KeptSums& kept, int threads,
                                 const std::function<void(i64)>& going_on, i64& compared) {
  std::map<std::string_view, std::vector<const KeptSum*>> by_file;
  for (const KeptSum& sum : kept.sums) by_file[sum.file].push_back(&sum);
  const std::vector<std::pair<std::string_view, std::vector<const KeptSum*>>> files(by_file.begin(),
                                                                                    by_file.end());
  std::vector<std::vector<Finding>> found(files.size());
  std::vector<char> read(files.size());
  parallel_for(std::ssize(files), threads, [&](int, i64 i) {
    const std::string name(files[i].first);
    try {
      if (!folder.has_file(name)) {
        const std::string& from = files[i].second[0]->from;
        // What was downloaded may have been removed on purpose; a list is of files that are there.
        found[i].push_back({.code = Code::kWrongSum,
                            .file = name,
                            .message = cat("the file is missing, but ", escaped(from, 4096), " has its sum"),
                            .help = "fetch or copy the file again",
                            .warning = from.starts_with(kHubFolder)});
        return;
      }
      compare(folder, name, files[i].second, going_on, found[i]);
      read[i] = 1;
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;
      found[i].push_back(to_finding(e));
      found[i].back().file = name;
    }
  });
  Findings out;
  for (std::vector<Finding>& of_file : found)
    for (Finding& f : of_file) out.add(std::move(f));
  compared = std::ranges::count(read, 1);
  return out.take();
}

void check_kept_sums(const std::string& path, const Store* store, const OpenOptions& opening, int threads,
                     const std::function<void(i64)>& going_on, std::string_view prefix,
                     VerifyReport& report) {
  OpenOptions plain = opening;
  plain.archives = nullptr;  // sums are of the files on the disk
  const ListedPlace place = listed_place(path, plain);
  std::error_code failed;
  if (!std::filesystem::is_directory(place.folder, failed)) return;
  const Folder folder(place.folder, plain);
  KeptSums kept = kept_sums(folder);
  if (!place.name.empty()) keep_sums_of(place.name, kept);
  if (kept.sums.empty() && kept.findings.empty()) return;
  Check check{.name = "sums", .status = Check::Status::kPass, .unit = "files"};
  std::vector<Finding> found = unlike_sums(folder, kept, threads, going_on, check.count);
  std::ranges::move(kept.findings, std::back_inserter(found));
  for (const Finding& f : found)
    check.status = std::max(check.status, f.warning ? Check::Status::kWarn : Check::Status::kFail);
  if (!kept.sums.empty()) check.note = note_of(store, place.name, kept);
  report.add(std::move(check), std::move(found));
  std::set<std::string> read;
  for (const std::string& list : kept.lists) read.insert(cat(prefix, list));
  for (const KeptSum& sum : kept.sums) read.insert(cat(prefix, sum.file));
  std::erase_if(report.unread, [&](const NotRead& u) { return read.contains(u.path); });
}

}  // namespace mckpt::impl
