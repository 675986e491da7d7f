// A card names the folder that it is of; a list of sums is of the files of the path.
#include "convert/compare/by_card.h"

#include <algorithm>
#include <iterator>

#include "convert/compare/verify.h"
#include "core/base/error.h"
#include "core/base/observer.h"
#include "io/card/card_files.h"
#include "io/card/card_json.h"
#include "io/card/check_card.h"
#include "io/copy/observed_sink.h"
#include "io/file/folder.h"
#include "io/file/path_stat.h"
#include "io/listing/manifest.h"
#include "io/listing/sum_list.h"
#include "io/store/store.h"
#include "io/verify/kept_sums.h"

namespace mckpt::impl {
namespace {

const OpenOptions& files_of(const VerifyOptions& options) { return options.compare.opening.model.files; }

// Whether the folder has the name, for a file or for something else, such as a link out of the folder.
bool has_name(const Folder& folder, const std::string& name) {
  try {
    return folder.has_file(name);
  } catch (const Error& e) {
    if (e.code() != Code::kNotAFile && e.code() != Code::kBadPath) throw;
    return true;
  }
}

// The folder that the card is of: the path, or the iteration in it that the tracker file names.
std::string folder_of_card(const Card& card, const std::string& path, const OpenOptions& opening) {
  if (card.single_file || !is_folder(path, opening)) return path;
  Folder folder(path, as_files(opening));
  if (std::ranges::any_of(card.files, [&](const CardFile& f) { return has_name(folder, f.name); }))
    return path;
  try {
    return open_store(path, opening)->root();
  } catch (const Error&) {
    return path;  // whose missing files are then reported
  }
}

Card card_at(const std::string& path) {
  try {
    return read_card(InputFile(path));
  } catch (Error& e) {
    if (e.code() == Code::kNotFound)
      e.help("with `report` in place of `card`, `mckpt verify` writes a card to this path");
    throw;
  }
}

// `others`: the list has sums of other files than the one at `file`; "" there: of a folder.
[[noreturn]] void refuse_list(const KeptSums& kept, bool others, const std::string& file,
                              const std::string& list) {
  Error error(Code::kBadCard,
              file.empty() ? "the list has no sum of a file" : "the list has no sum of this file");
  error.file(file.empty() ? list : file)
      .expected("lines of sha256sum: a SHA-256, two blanks and a name")
      .found(others                  ? cat(list, ", which names other files")
             : kept.findings.empty() ? cat(list, ", which has no such line")
                                     : cat(list, ": ", kept.findings[0].message));
  throw error;
}

// A list of sums, such as SHA256SUMS, in place of a card: its files belong to the path, or to the folder that
// the path is in.
Verified verify_by_list(std::string_view text, const std::string& path, const VerifyOptions& options,
                        Observer& observer) {
  const OpenOptions plain = as_files(files_of(options));
  const ListedPlace place = listed_place(path, plain);
  KeptSums kept = listed_sums(text, *options.card);
  const bool any = !kept.sums.empty();
  if (!place.name.empty()) std::erase_if(kept.sums, [&](const KeptSum& s) { return s.file != place.name; });
  if (kept.sums.empty()) refuse_list(kept, any, place.name.empty() ? "" : path, *options.card);
  Verified out;
  Check check{.name = "digests", .status = Check::Status::kPass, .unit = "files"};
  observer.begin("verify by the list", 0);
  std::vector<Finding> found = unlike_sums(
      Folder(place.folder, plain), kept, options.threads,
      [&](i64 bytes) {
        check_stop(observer);
        observer.done(bytes);
      },
      check.count);
  observer.end();
  std::ranges::move(kept.findings, std::back_inserter(found));
  check.status = status_of(found);
  out.report.add(std::move(check), std::move(found));
  note_changed(place.folder, files_of(options), out.report);
  out.as_card = out.report.sound();
  return out;
}

// The text of a list of sums, by its name or by its lines; nothing if the file is a card in JSON, or none of
// both.
std::optional<std::string> sum_list(const std::string& path) {
  constexpr i64 kMostBytes = i64{64} << 20;
  const std::optional<struct stat> st = stat_of(path);
  if (!st || !S_ISREG(st->st_mode) || st->st_size > kMostBytes) return std::nullopt;
  const InputFile file(path);
  std::vector<u8> bytes = file.read(0, file.size());
  std::string text(bytes.begin(), bytes.end());
  const bool named = is_list_name(std::string_view(path).substr(path.find_last_of('/') + 1));
  return is_sum_list(text) || (named && !text.starts_with('{')) ? std::optional(std::move(text))
                                                                : std::nullopt;
}

}  // namespace

Verified verify_by_card(const std::string& path, const VerifyOptions& options, Observer& observer) {
  if (options.against || !options.reports.empty() || options.compare.opening.assets)
    throw Error(Code::kUsage,
                "`card` checks a checkpoint by itself and without `assets`, and writes no other card");
  if (std::optional<std::string> list = sum_list(*options.card))
    return verify_by_list(*list, path, options, observer);
  Card card = card_at(*options.card);
  Verified out;
  CardCheck how{.opening = files_of(options), .threads = options.threads, .card_path = *options.card};
  const std::string folder = folder_of_card(card, path, files_of(options));
  out.report = check_card(card, folder, how, observer);
  note_changed(folder, files_of(options), out.report);
  out.as_card = out.report.sound();
  return out;
}

bool note_changed(const std::string& path, const OpenOptions& opening, VerifyReport& report) {
  try {
    check_unchanged(opening);
    return true;
  } catch (const Error& e) {
    Finding finding = to_finding(e);
    if (std::string root = path + "/"; finding.file.starts_with(root)) finding.file.erase(0, root.size());
    auto files = std::ranges::find(report.checks, "files", &Check::name);
    if (files == report.checks.end()) files = report.checks.insert(files, {.name = "files", .unit = "files"});
    files->status = Check::Status::kFail;
    // It becomes the first finding: the others may be its consequences, and only the first ones are shown.
    report.check_of.insert(report.check_of.begin(), files - report.checks.begin());
    report.findings.insert(report.findings.begin(), std::move(finding));
    return false;
  }
}

}  // namespace mckpt::impl
