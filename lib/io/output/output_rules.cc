// Checks outputs against sources. Whether a path is inside a folder is decided in two ways, since neither
// suffices: by the parts of both paths with all links resolved (also for paths that do not exist yet), and by
// device and inode of the path and each folder above it (a folder that is mounted twice has two such paths).
//
// A report is recognised by its content: a JSON object whose "schema" is a report's, or the first bytes of a
// card. Anything else that has the name of a report, such as a file of notes, is not replaced.
#include "io/output/output_rules.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "io/file/file.h"
#include "io/file/place.h"
#include "io/json/json.h"
#include "io/output/staged_folder.h"
#include "io/store/names/torch_names.h"

namespace mckpt::impl {
namespace {

namespace fs = std::filesystem;

// Larger than any report: most of a large one are the names of tensors whose values overflowed.
constexpr i64 kMostReportBytes = i64{64} << 20;

// The path from the root, without links and dots. If the system cannot resolve the path, the path as given:
// opening or creating it then reports what is wrong.
std::string whole_path(const std::string& path) {
  std::error_code ec;
  fs::path whole = fs::weakly_canonical(fs::absolute(path, ec), ec);
  if (ec) return path;
  return whole.has_filename() ? whole.string() : whole.parent_path().string();
}

// True if `path` is `folder` or is inside it, under this path or another: a mount may give a folder two
// paths. pre: both are from whole_path().
bool lies_in(const fs::path& folder, const fs::path& path) {
  if (std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end())
    return true;
  struct stat wanted, st;
  if (::stat(folder.c_str(), &wanted) != 0) return false;
  for (fs::path at = path; at.has_relative_path(); at = at.parent_path())
    if (::stat(at.c_str(), &st) == 0 && st.st_dev == wanted.st_dev && st.st_ino == wanted.st_ino) return true;
  return false;
}

Error refused(const std::string& message, const std::string& output, const std::string& other) {
  return Error(Code::kOutputExists, message).file(output).found(escaped(other, 4096));
}

// How cards begin, in their three forms (io/card/card_text.h).
constexpr std::string_view kCardBegins[] = {"{\"schema\": \"mckpt.card/", "<!-- mckpt.card/",
                                            "# mckpt.card/"};

bool is_card(const InputFile& file) {
  std::vector<u8> begin = file.read(0, std::min<i64>(file.size(), 64));
  std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
  return std::ranges::any_of(kCardBegins, [&](std::string_view b) { return text.starts_with(b); });
}

bool is_report(const std::string& path) {
  try {
    InputFile file(path);
    if (is_card(file)) return true;
    if (file.size() > kMostReportBytes) return false;
    std::vector<u8> bytes = file.read(0, file.size());
    JsonValue json = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const JsonValue* schema = json.find("schema");
    if (!schema || !schema->is(JsonType::kString)) return false;
    const std::string& name = schema->string("schema");
    return name == "mckpt.convert/1" || name == "mckpt.export/1";
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

OutputRules::OutputRules(const std::vector<std::string>& sources, const std::vector<std::string>& files) {
  for (const std::string& s : sources) sources_.push_back(whole_path(s));
  for (const std::string& f : files) file_folders_.insert(parent_folder(whole_path(f)));
}

void refuse_empty_path(const std::string& path, const char* of) {
  if (path.empty()) throw Error(Code::kUsage, cat("the path of ", of, " is empty"));
  if (path == "~" || (path.starts_with('~') && path.find('/') != path.npos))
    throw Error(Code::kUsage, cat("the path of ", of, " begins with a `~` that no shell has replaced"))
        .found(escaped(path, 4096))
        .help("only a shell makes `~` the home folder: give its whole path");
}

// The source, or another folder, into which the result would be written.
Error OutputRules::inside(const std::string& path, const std::string& source) const {
  const bool first = source == sources_[0];
  return refused(cat("the result would be written into ", words_of(source)), path, found_of(source))
      .help(cat("choose an output outside of ", first ? "the source" : "this folder"));
}

std::string OutputRules::words_of(const std::string& source) const {
  return source == sources_[0] ? "the source from which it is made"
                               : "a folder that is read, such as that of the assets";
}

std::string OutputRules::found_of(const std::string& source) const {
  return cat(source == sources_[0] ? "the source " : "the folder ", source);
}

void OutputRules::check_folder(const std::string& path) const {
  refuse_empty_path(path, "the output");
  std::string to = whole_path(path);
  for (const std::string& source : sources_) {
    if (lies_in(source, to)) throw inside(path, source);
    if (lies_in(to, source))
      throw refused(cat("the result would replace ", words_of(source)), path, found_of(source))
          .help("choose another output");
  }
  for (const std::string& folder : file_folders_)
    if (lies_in(to, folder))
      throw refused("the result would replace the source from which it is made", path,
                    cat("links of the source lead to files in ", folder))
          .help("choose another output");
}

void OutputRules::check_file(const std::string& path) const {
  refuse_empty_path(path, "the output");
  std::error_code ec;
  std::string to = whole_path(path);
  if (!fs::exists(fs::symlink_status(path, ec))) {
    if (!to.ends_with(".safetensors") && !has_torch_suffix(to)) return;
    for (const std::string& source : sources_)
      if (lies_in(source, to))
        throw inside(path, source).note("a file of weights in it would be taken for a part of it, or for it");
    return;
  }
  for (const std::string& source : sources_)
    if (lies_in(source, to) || fs::equivalent(source, to, ec))
      throw refused("the result would replace a file of the source from which it is made", path,
                    cat("the source ", source))
          .help("choose another output, or remove the file first");
}

void OutputRules::check_report(const std::string& path, const std::vector<std::string>& results) const {
  std::string to = whole_path(path);
  for (const std::string& source : sources_)
    if (lies_in(source, to))
      throw refused("a report is never written into the source", path, cat("the source ", source))
          .help("name a file outside of the source");
  for (const std::string& result : results)
    for (const std::string& folder : {whole_path(result), whole_path(StagedFolder::staging_path(result))})
      if (lies_in(folder, to))
        throw refused("a report is never written into the result", path, cat("the result ", folder))
            .help("name a file outside of the result");
  refuse_other_than_report(path);
}

void refuse_other_than_report(const std::string& path) {
  refuse_empty_path(path, "the report");
  struct stat st;
  if (::lstat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode) || is_report(path)) return;
  throw Error(Code::kOutputExists, "the name of the report belongs to a file that is not a report of mckpt")
      .file(path)
      .expected("no file, or an earlier report")
      .help("choose another name, or remove the file first");
}

bool same_place(const std::string& one, const std::string& other) {
  return whole_path(one) == whole_path(other);
}

void refuse_shared_places(const std::vector<std::string>& files) {
  for (std::size_t i = 0; i < files.size(); i++)
    for (std::size_t j = 0; j < i; j++)
      if (same_place(files[i], files[j]))
        throw Error(Code::kUsage, "two outputs have one name, and the second would replace the first")
            .file(files[i])
            .expected("a file of its own for each report and card")
            .found(files[i] == files[j] ? "the same file twice"
                                        : cat("the same file as ", escaped(files[j], 4096)));
}

}  // namespace mckpt::impl
