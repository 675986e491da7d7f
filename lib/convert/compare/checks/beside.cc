// Walks through everything beside a checkpoint, and through everything beside the checkpoints found there.
// The walk ends because the real path of every visited checkpoint is remembered.
#include "convert/compare/checks/beside.h"

#include <algorithm>
#include <set>

#include "convert/compare/checks/adapter.h"
#include "convert/compare/checks/assets.h"
#include "convert/compare/checks/main_weights.h"
#include "convert/compare/checks/model.h"
#include "convert/compare/checks/optimizer.h"
#include "convert/compare/checks/own_config.h"
#include "convert/compare/checks/quantized.h"
#include "convert/compare/checks/ranks.h"
#include "convert/compare/checks/unknown_files.h"
#include "core/base/error.h"
#include "io/archive/archive.h"
#include "io/copy/observed_sink.h"
#include "io/dcp/run/args.h"
#include "io/dcp/run/run_config.h"
#include "io/file/folder.h"
#include "io/file/hub_cache.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/pickle/pickle.h"
#include "io/store/finding.h"
#include "io/store/open/beside.h"
#include "io/store/open/sniff.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/verify/archive_check.h"
#include "io/verify/manifest_findings.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostBytes = i64{1} << 30;

// Errors because of which a file cannot be checked, but which are not faults of the file.
bool is_unknown(Code code) {
  return code == Code::kUnsupportedTorchFile || code == Code::kUnsupportedHdf5 ||
         code == Code::kModuleMissing;
}

// Whether both paths lead into one archive.
bool is_in_archive_of(const std::string& path, const std::string& other, const OpenOptions& opening) {
  const std::optional<ArchivePlace> place = find_in_archive(path, opening);
  const std::optional<ArchivePlace> around = place ? find_in_archive(other, opening) : std::nullopt;
  return around && place->archive == around->archive;
}

// Whether the sizes and facts of the run are read from run_config.yaml: a DCP folder without args takes them
// there.
bool reads_run_config(const Store& store) {
  if (format_family(store.format()) != FormatFamily::kDcp) return false;
  try {
    if (args_of(store)) return false;
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted || e.is_of_the_moment()) throw;
    return false;
  }
  return model_entry(run_config_text(store), "num_layers").has_value();
}

// One walk: look() adds findings, finish() adds the check to the report.
class BesideCheck {
 public:
  BesideCheck(int threads, const OpenOptions& opening, Observer& observer, VerifyReport& report,
              std::span<const Code> accept)
      : threads_(threads),
        opening_(opening),
        observer_(observer),
        report_(report),
        accept_(accept.begin(), accept.end()) {}

  // `prefix`: what the paths of findings begin with, "" or "optimizer_0/".
  void look(const std::string& path, const std::string& prefix, const Store& store,
            const NameSet<std::string>& seen) {
    const std::string& root = root_ = store.root();
    visited_.insert({real_path_of(path), real_path_of(root)});
    const std::optional<HubSnapshot> snapshot = hub_snapshot(path);
    const std::string folder = snapshot ? cat(path, "/", snapshot->name) : path;
    for (const Beside& b : list_beside(folder, &store, opening_)) {
      std::string full = cat(folder, "/", b.path);
      bool judged = full.starts_with(cat(root, "/")) && seen.contains(full.substr(root.size() + 1));
      if (!judged) look_at(b, full, prefix + b.path);
    }
  }

  void look(const std::string& path, const std::vector<Beside>& some) {
    root_ = path;
    for (const Beside& b : some) look_at(b, cat(path, "/", b.path), b.path);
  }

  void finish() {
    if (count_ == 0 && found_.empty()) return;
    const Check::Status status = status_of(found_);
    report_.add({"beside", status, count_, "files"}, std::move(found_));
  }

 private:
  void look_at(const Beside& b, const std::string& path, const std::string& name) {
    try {
      if (b.kind == Beside::Kind::kCheckpoint) return look_at_checkpoint(path, name);
      if (b.kind == Beside::Kind::kJson) return look_at_json(path);
      if (!b.reason.empty() || !look_at_unknown(path, name))
        report_.unread.push_back({name, b.reason.empty() ? code_reason(name) : b.reason, b.folder});
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;
      if (is_unknown(e.code())) return report_.unread.push_back({name, e.message(), b.folder});
      Finding finding = to_finding(e);
      finding.file = name;
      finding.warning = b.kind == Beside::Kind::kJson;  // what the file must contain is not known here
      found_.push_back(std::move(finding));
      count_++;
    }
  }

  // Why a file of code is not read; "" for other names. Code that programs run is told once for each folder.
  std::string code_reason(const std::string& name) {
    if (!name.ends_with(".py")) return "";
    const std::string config = config_with_code(root_, opening_);
    if (config.empty()) return "code";
    if (told_.insert(root_).second)
      found_.push_back(
          {.code = Code::kRemoteCode,
           .file = config,
           .message = "auto_map names code: the Python files of the folder run with trust_remote_code",
           .warning = true});
    return "code, which runs with trust_remote_code";
  }

  // A file whose name says nothing; false if its bytes say nothing either. A file that cannot be read to its
  // end is reported: many programs put other bytes behind or between pickles, and zip archives are of any
  // kind.
  bool look_at_unknown(const std::string& path, const std::string& name) {
    const UnknownFile kind = unknown_file(InputFile(path, opening_));
    if (kind == UnknownFile::kNothing) return false;
    try {
      if (kind == UnknownFile::kCheckpoint) return look_at_checkpoint(path, name), true;
      look_at_pickle(path, name);
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted || e.code() == Code::kReadFailed) throw;
      if (kind == UnknownFile::kCheckpoint) return false;
      Finding finding = to_finding(e);
      finding.file = name, finding.warning = true;
      finding.message = cat("a pickle by its first bytes, which is not read to its end: ", finding.message);
      found_.push_back(std::move(finding));
      count_++;
    }
    return true;
  }

  void look_at_checkpoint(const std::string& path, const std::string& name) {
    if (visited_.contains(real_path_of(path))) return;  // a link led here again
    if (name.ends_with(".pkl") && sniff(InputFile(path, opening_)) == FileKind::kPickle)
      return look_at_pickle(path, name);
    std::unique_ptr<Store> store = open_store(path, opening_);
    VerifyReport report;
    NameSet<std::string> judged =
        check_checkpoint(*store, cat("verify ", name), threads_, observer_, report,
                         {.accept = accept_, .archive = !is_in_archive_of(path, root_, opening_)});
    std::string inside = store->root().starts_with(path) ? store->root().substr(path.size()) : "";
    // Pieces of one rank leave holes where the pieces of the others are: the warning says that they are
    // alone.
    if (std::ranges::find(report.findings, Code::kShardAlone, &Finding::code) != report.findings.end())
      std::erase_if(report.findings, [](const Finding& f) { return f.code == Code::kChunkHole; });
    for (Finding& f : report.findings) {
      if (f.file.starts_with(store->root())) f.file.erase(0, store->root().size());
      if (f.file.starts_with("/")) f.file.erase(0, 1);
      bool of_file = store->files().size() == 1 && store->files()[0].path.empty();
      f.file = f.file.empty() || of_file ? name + inside : cat(name, inside, "/", f.file);
      found_.push_back(std::move(f));
    }
    const std::string outer = root_;
    look(path, name + "/", *store, judged);
    root_ = outer;
    for (const StoreFile& f : store->files()) judged.insert(f.path);
    count_ += std::ssize(judged);
  }

  // A pickle that torch did not write, such as random states: it is parsed to its end, and nothing in it is
  // executed.
  void look_at_pickle(const std::string& path, const std::string& name) {
    InputFile file(path, opening_);
    auto pickle = Pickle::own(file.read(0, std::min(file.size(), PickleArena::kMostBytes)));
    for (const PickleNote& n : pickle->notes())
      found_.push_back(
          {.code = n.code, .file = name, .message = n.message, .offset = n.offset, .warning = n.warning});
    count_++;
  }

  void look_at_json(const std::string& path) {
    check_json(json_text(InputFile(path, opening_), kMostBytes), JsonNumbers::kPython);
    count_++;
  }

  int threads_;
  const OpenOptions& opening_;
  Observer& observer_;
  VerifyReport& report_;
  std::vector<Code> accept_;
  std::vector<Finding> found_;
  i64 count_ = 0;
  std::set<std::string> told_;     // folders whose code was told
  std::string root_;               // of the checkpoint whose folder is looked at
  std::set<std::string> visited_;  // real paths of the checkpoints that were looked at
};

}  // namespace

NameSet<std::string> check_checkpoint(const Store& store, const std::string& phase, int threads,
                                      Observer& observer, VerifyReport& report, const CheckedAs& as) {
  observer.begin(phase, verify_bytes(store));
  report = verify_store(store, threads, [&](i64 bytes) {
    check_stop(observer);
    observer.done(bytes);
  });
  observer.end();
  NameSet<std::string> judged = check_assets(store, report);
  if (reads_run_config(store)) judged.insert(std::string(kRunConfigName));
  check_adapter(store, judged, report);
  check_merged_adapter(
      store, threads, [&](i64) { check_stop(observer); }, report);
  check_manifest(store, threads, judged, report);
  if (as.archive)
    check_archive(
        store, threads, [&] { check_stop(observer); }, report);
  // The digests of the manifest are sums of all bytes.
  auto named = [&](std::string_view name) { return std::ranges::find(report.checks, name, &Check::name); };
  if (auto m = named("manifest"); m != report.checks.end() && m->count > 0) named("crc32")->note.clear();
  if (as.assets)
    check_by_assets(store, *as.assets, as.model_dict, as.accept, threads, report);
  else if (!check_model_folder(store, threads, report))
    check_own_config(store, as.accept, threads, report);
  check_quantized(store, threads, report);
  if (is_sound(store) && (store.driver().dialect || store.driver().zero))
    check_main_weights(store, threads, observer, report);
  check_ranks(store, as.assets, as.accept, threads, observer, report);
  const bool done = std::ranges::find(report.checks, "groups", &Check::name) != report.checks.end();
  if (!done && is_sound(store)) check_optimizer(store, report);
  return judged;
}

void check_beside(const std::string& path, const Store& store, const NameSet<std::string>& seen, int threads,
                  const OpenOptions& opening, Observer& observer, VerifyReport& report,
                  std::span<const Code> accept) {
  BesideCheck check(threads, opening, observer, report, accept);
  check.look(path, "", store, seen);
  check.finish();
}

void check_beside(const std::string& path, const std::vector<Beside>& some, int threads,
                  const OpenOptions& opening, Observer& observer, VerifyReport& report,
                  std::span<const Code> accept) {
  BesideCheck check(threads, opening, observer, report, accept);
  check.look(path, some);
  check.finish();
}

void name_beside(const std::string& path, const Store& store, bool whole, VerifyReport& report) {
  const std::string front = whole ? cat(path, path.ends_with('/') ? "" : "/") : "";
  for (const Beside& b : list_beside(path, &store, store.opening()))
    if (b.kind == Beside::Kind::kCheckpoint || b.kind == Beside::Kind::kUnread)
      report.unread.push_back({front + b.path, b.reason, b.folder, b.kind == Beside::Kind::kCheckpoint});
}

}  // namespace mckpt::impl
