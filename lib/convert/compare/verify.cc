// Opens what is at a path and runs every check on it. A checkpoint that cannot be opened, or that changes
// while it is read, is a finding. A folder with several checkpoints has a report for each:
//
//   saved/  pytorch_model_fsdp_0/   optimizer_0/   scheduler.bin   README.md
//           a part                  a part         beside          not read
#include "convert/compare/verify.h"

#include <algorithm>

#include "convert/compare/by_card.h"
#include "convert/compare/checks/beside.h"
#include "convert/compare/checks/contents.h"
#include "convert/compare/checks/inside.h"
#include "core/base/error.h"
#include "core/base/observer.h"
#include "hf/adapter/adapted_store.h"
#include "hf/folder/model_folder.h"
#include "io/archive/archive.h"
#include "io/card/card_files.h"
#include "io/card/card_text.h"
#include "io/card/make_card.h"
#include "io/copy/observed_sink.h"
#include "io/file/folder.h"
#include "io/file/hub_cache.h"
#include "io/listing/manifest.h"
#include "io/store/names/iteration_names.h"
#include "io/store/names/torch_names.h"
#include "io/store/open/beside.h"
#include "io/store/state_part.h"
#include "io/store/store.h"
#include "io/verify/kept_sums.h"
#include "io/verify/manifest_findings.h"

namespace mckpt::impl {
namespace {

// Whether an error of opening is an answer: the checkpoint exists and is broken. Other errors are thrown,
// because nothing can be checked.
bool is_an_answer(Code code) {
  return code_info(code).exit == Exit::kInput && code != Code::kNotFound && code != Code::kReadFailed &&
         code != Code::kUnknownFormat && code != Code::kModuleMissing;
}

const OpenOptions& files_of(const VerifyOptions& options) { return options.compare.opening.model.files; }

// The contents of a folder: its checkpoints, and the files beside them.
struct FolderParts {
  std::vector<std::string> checkpoints;  // relative to the folder
  std::vector<Beside> beside;
};

// `store`: the checkpoint that the folder `path` was opened as; null: it is none. Files are checkpoints of
// their own only in a folder that is none, and only if they hold more than a state of a run: files of HDF5.
FolderParts parts_of(const std::string& path, const Store* store, const OpenOptions& opening) {
  FolderParts out;
  std::string own = store ? store->root() : "";
  if (own.starts_with(cat(path, "/"))) own.erase(0, path.size() + 1);
  if (store) out.checkpoints.push_back(own);
  for (Beside& b : list_beside(path, store, opening)) {
    // It is beside that checkpoint, whose report has it
    if (store && b.path.starts_with(cat(own, "/"))) continue;
    bool file_of_its_own = !store && (b.path.ends_with(".h5") || b.path.ends_with(".hdf5"));
    bool part = b.kind == Beside::Kind::kCheckpoint &&
                (file_of_its_own || is_folder(cat(path, "/", b.path), opening));
    part ? out.checkpoints.push_back(std::move(b.path)) : out.beside.push_back(std::move(b));
  }
  return out;
}

// The same of a run whose tracker names the folder `newest`, which holds several: its other iterations are
// not read.
FolderParts parts_of_newest(const std::string& path, const std::string& newest, const OpenOptions& opening,
                            VerifyReport& report) {
  if (newest == path) return parts_of(path, nullptr, opening);
  const std::string front = newest.substr(path.size() + 1) + "/";
  FolderParts out = parts_of(newest, nullptr, opening), around = parts_of(path, nullptr, opening);
  for (std::string& name : out.checkpoints) name.insert(0, front);
  for (Beside& b : out.beside) b.path.insert(0, front);
  for (std::string& name : around.checkpoints)
    if (!name.starts_with(front)) report.unread.push_back({std::move(name), "another iteration", true});
  for (Beside& b : around.beside)
    if (!b.path.starts_with(front)) out.beside.push_back(std::move(b));
  return out;
}

// Which folder the error of opening `path` is about: the folder of an iteration in it, or `path`.
std::string folder_of_error(const std::string& path, const Error& e, const OpenOptions& opening) {
  return e.file().starts_with(cat(path, "/")) && is_folder(e.file(), opening) ? e.file() : path;
}

// The report of what is at a path, and the root of the checkpoint there; the path itself if it is none.
struct ReportAt {
  VerifyReport report;
  std::string root;
};
ReportAt report_at(std::string path, const VerifyOptions& options, Observer& observer);

// The report of one part. An error of it is a finding: the other parts have reports all the same.
VerifyReport verify_part(const std::string& path, const VerifyOptions& options, Observer& observer) {
  try {
    return report_at(path, options, observer).report;
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    return unreadable_report(e);
  }
}

// Adds the reports of the parts, and the check "below" with all that they found.
void verify_parts(const std::string& path, FolderParts parts, const VerifyOptions& options,
                  Observer& observer, VerifyReport& report) {
  Check check{.name = "below", .status = Check::Status::kPass, .unit = "checkpoints"};
  std::vector<Finding> found;
  for (const std::string& name : parts.checkpoints) {
    std::string front = cat(name, "/");
    VerifiedPart part{name, verify_part(cat(path, "/", name), options, observer)};
    for (const Check& c : part.report.checks) check.status = std::max(check.status, c.status);
    for (Finding f : part.report.findings) {
      f.file = f.file.empty() ? part.path : front + f.file;
      found.push_back(std::move(f));
    }
    for (NotRead n : part.report.unread) {
      n.path.insert(0, front);
      report.unread.push_back(std::move(n));
    }
    report.parts.push_back(std::move(part));
  }
  check.count = std::ssize(report.parts);
  report.add(std::move(check), std::move(found));
  check_beside(path, parts.beside, options.threads, files_of(options), observer, report,
               options.compare.opening.accept);
}

// The open checkpoint. Null if it cannot be opened: the report then has the reason, or the reasons of its
// parts.
std::unique_ptr<Store> open_for_report(const std::string& path, const VerifyOptions& options,
                                       Observer& observer, VerifyReport& report) {
  try {
    return open_store(path, files_of(options));
  } catch (const Error& e) {
    const std::string place = folder_of_error(path, e, files_of(options));
    if (e.code() == Code::kUnknownFormat && !options.against && is_folder(place, files_of(options)) &&
        is_folder_of_folders(Folder(place, files_of(options)))) {
      FolderParts parts = parts_of_newest(path, place, files_of(options), report);
      if (!parts.checkpoints.empty() && !options.compare.opening.assets) {
        verify_parts(path, std::move(parts), options, observer, report);
        return nullptr;
      }
    }
    const OpenOptions plain = as_files(files_of(options));
    const bool listed = !options.against && is_folder(path, plain) && has_manifest(path, plain);
    if (!is_an_answer(e.code()) && !listed) throw;
    report = unreadable_report(e);
    return nullptr;
  }
}

// Notes a folder of iterations without the file that says which of them Megatron loads.
void note_tracker(const std::string& path, const OpenOptions& opening, VerifyReport& report) {
  if (!is_folder(path, opening)) return;
  Folder folder(path, opening);
  const std::vector<FolderEntry> entries = folder.entries();
  auto is_iteration = [](const FolderEntry& e) { return e.folder && is_iteration_folder(e.name); };
  bool tracked = std::ranges::find(entries, kTrackerName, &FolderEntry::name) != entries.end();
  if (tracked || std::ranges::none_of(entries, is_iteration)) return;
  report.add({.name = "tracker",
              .unit = "files",
              .note = cat("there is no ", kTrackerName, ", so Megatron loads none of the iterations")},
             {});
}

// The folders from the checkpoint up to the path that was opened.
std::vector<std::string> folders_of(const std::string& path, const Store& store) {
  std::vector<std::string> out{path};
  for (std::string inner = store.root(); inner.starts_with(cat(path, "/")); inner.resize(inner.rfind('/')))
    out.push_back(inner);
  std::erase_if(out, [&](const std::string& p) { return !is_folder(p, store.opening()); });
  return out;
}

// Whether the folder, or one in it (global_step7/ of DeepSpeed), has files of an optimizer by their names.
bool has_optimizer(const Folder& folder) {
  auto is_of_it = [](const FolderEntry& e) { return part_of_path(e.name) == StatePart::kOptimizer; };
  const std::vector<FolderEntry> entries = folder.entries();
  return std::ranges::any_of(entries, is_of_it) || std::ranges::any_of(entries, [&](const FolderEntry& e) {
           return e.folder && std::ranges::any_of(folder.entries(e.name), is_of_it);
         });
}

// Notes a schedule without the optimizer that it is of: training programs save both, or none.
void note_optimizer(const std::string& path, const Store& store, VerifyReport& report) {
  const StateParts parts(store);
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (parts.part(t) == StatePart::kOptimizer) return;
  std::string schedule;
  try {
    for (const std::string& name : folders_of(path, store)) {
      const Folder folder(name, store.opening());
      if (has_optimizer(folder)) return;
      for (const FolderEntry& e : folder.entries())
        if (!e.folder && is_schedule(e.name) && has_torch_suffix(e.name)) schedule = e.name;
    }
  } catch (const Error&) {  // a folder that cannot be listed is reported as one beside the checkpoint
    return;
  }
  if (schedule.empty()) return;
  report.add({.name = "states",
              .unit = "files",
              .note = cat("no optimizer was found beside ", schedule, ", which is saved together with one")},
             {});
}

// Notes that a file is one of several by its name: model-00001-of-00002.safetensors.
void note_shards(const Store& store, VerifyReport& report) {
  if (store.files().size() != 1 || !store.files()[0].path.empty()) return;
  const std::string& path = store.root();
  const i64 count = shard_count(std::string_view(path).substr(path.rfind('/') + 1));
  if (count < 2) return;
  report.add({.name = "shards",
              .unit = "files",
              .note = cat("one of ", count, " files of a model by its name; the others were not read")},
             {});
}

// The checkpoint at `path`, or each of those in the folder.
void verify_store_at(const std::string& path, const Store& store, const VerifyOptions& options,
                     Observer& observer, VerifyReport& report) {
  const OpenOptions& opening = files_of(options);
  if (store.root() != path && is_folder(path, opening)) {
    FolderParts parts = parts_of(path, &store, opening);
    if (parts.checkpoints.size() > 1 && !options.compare.opening.assets)
      return verify_parts(path, std::move(parts), options, observer, report);
  }
  NameSet<std::string> judged = check_checkpoint(store, "verify", options.threads, observer, report,
                                                 {.assets = options.compare.opening.assets,
                                                  .model_dict = options.compare.model_dict,
                                                  .accept = options.compare.opening.accept});
  note_shards(store, report);
  check_contents(path, store, report);
  note_inside(store, report);
  note_optimizer(path, store, report);
  // A damaged file that is therefore not a part of the checkpoint is not read a second time.
  for (const Finding& f : report.findings)
    if (!f.warning && !f.file.empty()) judged.insert(f.file);
  check_beside(path, store, judged, options.threads, opening, observer, report,
               options.compare.opening.accept);
}

// Compares the files with sums that came with the folders from the path to the checkpoint.
void check_sums(const std::string& path, const Store* store, const VerifyOptions& options, Observer& observer,
                VerifyReport& report) {
  const OpenOptions& opening = files_of(options);
  std::vector<std::string> places{path};
  if (store && store->root() != path && store->root().starts_with(cat(path, "/"))) {
    if (hub_snapshot(path)) places.clear();  // the sums of a cache folder are its snapshot's
    places.push_back(store->root());
  }
  observer.begin("verify sums", 0);
  for (const std::string& place : places)
    check_kept_sums(
        place, place == (store ? store->root() : "") ? store : nullptr, opening, options.threads,
        [&](i64 bytes) {
          check_stop(observer);
          observer.done(bytes);
        },
        place == path ? "" : cat(place.substr(path.size() + 1), "/"), report);
  observer.end();
}

// A folder that mckpt wrote is judged by its manifest, whatever it is taken for: an archive without its main
// file looks like several checkpoints.
void check_outer_manifest(const std::string& path, const Store* store, const VerifyOptions& options,
                          VerifyReport& report) {
  const OpenOptions plain = as_files(files_of(options));
  if (!is_folder(path, plain) || (store && store->root() == path)) return;
  try {
    if (store && open_archive(path, files_of(options))) return;  // its own check has all bytes
  } catch (const Error&) {                                       // a damaged archive is judged by its list
  }
  check_manifest_of_folder(path, plain, options.threads, report);
}

ReportAt report_at(std::string path, const VerifyOptions& options, Observer& observer) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  ReportAt out{{}, path};
  std::unique_ptr<Store> store = open_for_report(path, options, observer, out.report);
  if (store) {
    if (adapted_view(*store)) out.root = path = store->root();
    verify_store_at(path, *store, options, observer, out.report);
    if (out.report.parts.empty()) out.root = store->root();
  }
  check_outer_manifest(path, store.get(), options, out.report);
  check_sums(path, store.get(), options, observer, out.report);
  note_tracker(path, files_of(options), out.report);
  return out;
}

// The card of what was found. Its files are read here.
Card card_of(const std::string& path, const VerifyOptions& options, const Verified& verified,
             Observer& observer) {
  Card card =
      make_card(path, {.opening = files_of(options), .threads = options.threads, .left_out = options.reports},
                observer);
  card.version = MCKPT_VERSION;
  card.command = options.command;
  card.checks = verified.report.checks;
  card.findings = verified.report.findings;
  card.unread = verified.report.unread;
  if (!options.against) return card;
  card.comparison = CardComparison{.source = *options.against,
                                   .equal = verified.equal.value_or(false),
                                   .rounded = verified.report.rounded()};
  auto values = std::ranges::find(card.checks, "against", &Check::name);
  if (values != card.checks.end()) card.comparison->tensors = values->count;
  return card;
}

void make_strict(VerifyReport& report) {
  for (Finding& f : report.findings) f.warning = false;
  for (Check& c : report.checks)
    if (c.status == Check::Status::kWarn) c.status = Check::Status::kFail;
  for (VerifiedPart& part : report.parts) make_strict(part.report);
}

// A card lists files and their tensors, and an adapter's model is in no file.
void refuse_card_of_view(const std::string& path, const OpenOptions& opening) {
  if (model_path(path, opening) == path) return;
  throw Error(Code::kUsage,
              "a card is of a checkpoint as its files are, and not of one with an adapter in it")
      .file(path)
      .help("`mckpt export` makes a folder of it, which can have a card");
}

// An adapter and a model that share no tensor: the base is missing, with which the adapter is a model.
void refuse_adapter_alone(const std::string& a, const std::string& b, const VerifyReport& report,
                          const OpenOptions& opening) {
  auto against = std::ranges::find(report.checks, "against", &Check::name);
  if (opening.base || against == report.checks.end() || against->count > 0) return;
  const std::string of_a = adapter_folder_at(a, opening), of_b = adapter_folder_at(b, opening);
  if (of_a.empty() != of_b.empty()) throw adapter_alone(Folder(of_a.empty() ? of_b : of_a, opening));
}

}  // namespace

Verified verify(const std::string& path, const VerifyOptions& given, Observer& observer) {
  VerifyOptions options = given;
  // By itself, a folder with two models is an answer: one problem among others.
  if (!options.against) options.compare.opening.model.files.two_models = TwoModels::kFinding;
  if (!options.compare.model_dict.empty() && !options.against && !options.compare.opening.assets)
    throw Error(Code::kUsage, "`model_dict` is for the check by `assets`, and for comparisons")
        .found(escaped(options.compare.model_dict));
  if (options.card && !options.compare.opening.accept.empty())
    throw Error(Code::kUsage, "`accept` has no meaning with `card`, which compares files alone");
  if (!options.against)
    for (Code code : options.compare.opening.accept)
      if (code != Code::kContradiction)
        throw Error(Code::kUsage, cat("`accept` ", code_name(code), " has a meaning only with `against`"));
  if (options.card || !options.reports.empty()) refuse_card_of_view(path, files_of(options));
  if (options.card) return verify_by_card(path, options, observer);
  check_card_places(options.reports);
  if (const auto& assets = options.compare.opening.assets; assets && !options.against)
    require_config(*assets, files_of(options));
  Verified out;
  std::string root = path;
  if (options.against) {
    out.equal = false;
    if (std::unique_ptr<Store> store = open_for_report(path, options, observer, out.report)) {
      CompareOptions how = options.compare;
      how.threads = options.threads;
      std::unique_ptr<Store> source = open_store(*options.against, files_of(options));
      Compared compared =
          compare({path, std::move(store)}, {*options.against, std::move(source)}, how, observer);
      refuse_adapter_alone(path, *options.against, compared.report, files_of(options));
      out = {.report = std::move(compared.report),
             .equal = compared.equal,
             .oddities = std::move(compared.oddities)};
    }
  } else {
    ReportAt found = report_at(path, options, observer);
    out.report = std::move(found.report);
    root = std::move(found.root);
  }
  if (options.strict) make_strict(out.report);
  std::optional<Card> card;
  if (!options.reports.empty()) card = card_of(path, options, out, observer);
  if (!note_changed(root, files_of(options), out.report)) {
    if (out.equal) out.equal = false;
    if (card) card->checks = out.report.checks, card->findings = out.report.findings;
    if (card && card->comparison) card->comparison->equal = false;
  }
  for (const std::string& report : options.reports) write_card(report, *card, true);
  return out;
}

}  // namespace mckpt::impl
