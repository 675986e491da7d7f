// The folder is opened as every conversion opens it, so verify and the conversions accept the same folders.
// Copies are read, because checksums that a writer stored prove nothing about what it wrote.
#include "convert/compare/checks/ranks.h"

#include <algorithm>

#include "convert/compare/checks/main_weights.h"
#include "convert/compare/checks/model_class.h"
#include "convert/compare/checks/optimizer.h"
#include "convert/dialects/ranks/copies.h"
#include "convert/open/checkpoint.h"
#include "convert/open/open.h"
#include "convert/open/shard_facts.h"
#include "convert/open/source_model.h"
#include "convert/open/unsaid_order.h"
#include "core/base/error.h"
#include "io/dcp/dcp.h"
#include "io/store/finding.h"
#include "io/store/lone_shard.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

constexpr const char* kNotCompared = "not compared with each other or with config.json";

constexpr const char* kStates = "not compared: ";

// Errors because of which the files cannot be compared, though nothing is wrong with them: mckpt does not
// know the model, or the folder does not say on which grid it was written.
bool is_unknown(Code code) {
  return code == Code::kUnknownModel || code == Code::kUnsupportedModel || code == Code::kUnknownAssets ||
         code == Code::kUnknownPartition || code == Code::kModuleMissing;
}

// A manifest that fits says which file is whose.
bool is_by_manifest(const VerifyReport& report) {
  auto manifest = std::ranges::find(report.checks, "manifest", &Check::name);
  return manifest != report.checks.end() && manifest->status == Check::Status::kPass;
}

// The note about files that could have changed places.
std::string order_note(const Store& store, const VerifyReport& report) {
  const bool unsaid = !is_by_manifest(report) && order_is_unsaid(store);
  return unsaid ? cat("order of the ranks: not checked (", kOrderUnsaid, ")") : "";
}

// Files of ranks that are compared when they are opened.
void note_order(const Store& store, VerifyReport& report) {
  if (store.ranks() > 1)
    report.add({.name = "ranks",
                .status = Check::Status::kPass,
                .count = std::ssize(store.files()),
                .unit = "files",
                .note = order_note(store, report)},
               {});
}

// Data files of a DCP folder, of which most say by their sizes that they have their own names.
void check_dcp_files(const Store& store, VerifyReport& report) {
  const i64 alike = report.sound() && !is_by_manifest(report) ? dcp_alike_files(store) : 0;
  if (alike == 0) return;
  report.add({.name = "ranks",
              .status = Check::Status::kPass,
              .count = std::ssize(store.files()),
              .unit = "files",
              .note = cat("order of the ranks: not checked for ", alike, " files of equal layout (",
                          kOrderUnsaid, ")")},
             {});
}

// A file of Megatron's ranks has plain tensors: its args and names alone say that there are other ranks.
// False for other files.
bool check_rank_file(const Store& store, VerifyReport& report) {
  const std::optional<ShardFacts> facts = is_lone_shard(store) ? std::nullopt : shard_facts(store);
  if (!facts) return false;
  const i64 parts = std::ranges::count_if(
      facts->tensors, [](const ShardTensor& t) { return t.whole.value_or(std::vector<i64>{-1}) != t.local; });
  std::vector<Finding> found(2);
  found[0].code = Code::kShardAlone, found[0].file = store.root(), found[0].warning = true;
  found[0].message = cat("the file has tensors of ", to_string(*facts)), found[0].help = kNameAllRanks;
  found[1].code = Code::kChunkHole, found[1].help = kNameAllRanks;
  found[1].message =
      cat(parts == 0 ? std::string() : cat("of ", counted(parts, "tensor"), " a part alone is here: "),
          "that the files of all ranks make the whole is not seen in one");
  report.add({.name = "ranks",
              .status = Check::Status::kFail,
              .count = store.tensor_count() - parts,
              .unit = "tensors",
              .unseen = parts,
              .unseen_is = "with a part alone"},
             std::move(found));
  return true;
}

}  // namespace

void check_ranks(const Store& store, const std::optional<std::string>& assets, std::span<const Code> accept,
                 int threads, Observer& observer, VerifyReport& report) {
  if (!is_sound(store) || check_rank_file(store, report)) return;
  if (store.driver().zero) return note_order(store, report);
  if (format_family(store.format()) == FormatFamily::kTorch && order_is_unsaid(store))
    return note_order(store, report);
  if (format_family(store.format()) == FormatFamily::kDcp) return check_dcp_files(store, report);
  if (!store.driver().ranks_apart) return;
  Check check{.name = "ranks", .unit = "tensors", .note = kNotCompared};
  auto fail = [&](const Error& e) {
    check.status = Check::Status::kFail;
    check.count = store.tensor_count(), check.note.clear();
    report.add(std::move(check), {to_finding(e)});
  };
  CheckpointOptions options;
  options.copies = CopyUse::kRead;
  options.assets = assets;
  options.accept.assign(accept.begin(), accept.end());
  options.states = StateUse::kRead;
  std::string states;           // why the optimizer's are not compared
  std::vector<Finding> unlike;  // facts of the run and of config.json
  auto open = [&] {
    const Opened opened =
        open_sharded(open_store(store.root(), options.model.files), {.source = store.root(), .how = options});
    if (!opened.sharded->left_states().empty() && states.empty())
      states = cat(kStates, "a distributed optimizer does not say which parameters its states are of");
    unlike = facts_unlike_config(*opened.sharded);
    check_main_weights(opened.store(), threads, observer, report);
    if (options.states != StateUse::kLeft) check_optimizer(*opened.sharded, report);
  };
  options.model.files = store.opening();
  try {
    if (!assets && own_assets(store).empty()) {
      refuse_equal_ranks(store);
      return report.add(std::move(check), {});
    }
    try {
      open();
    } catch (const Error& e) {
      if (e.code() != Code::kNotHeld) throw;
      states = cat(kStates, e.message());
      options.states = StateUse::kLeft;
      open();
    }
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    if (!is_unknown(e.code())) return fail(e);
    check.note = cat(kNotCompared, ": ", e.message());
    return report.add(std::move(check), {});
  }
  check.status = unlike.empty() ? Check::Status::kPass : Check::Status::kWarn;
  check.count = store.tensor_count(), check.note = order_note(store, report);
  report.add(std::move(check), std::move(unlike));
  if (!states.empty()) report.add({.name = "optimizer", .unit = "tensors", .note = std::move(states)}, {});
}

}  // namespace mckpt::impl
