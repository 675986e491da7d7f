// Every phase is timed in every rank, and the slowest rank counts. A rank collects the differences that it
// finds, and the ranks bring them together at the end. A phase is a collective: it ends with a reduction of
// bytes and times.
#include "live/round_trip/round_trip.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>

#include "convert/keys/stored_chunks.h"
#include "convert/open/checkpoint.h"
#include "convert/open/open.h"
#include "convert/open/options.h"
#include "core/base/error.h"
#include "core/base/observer.h"
#include "core/base/text.h"
#include "hf/model.h"
#include "io/copy/counts.h"
#include "io/file/open_options.h"
#include "io/file/source_stamps.h"
#include "io/store/store.h"
#include "live/device/device.h"
#include "live/device/kept_memory.h"
#include "live/load/block_loader.h"
#include "live/load/load.h"
#include "live/model/check.h"
#include "live/model/model.h"
#include "live/round_trip/exported_folder.h"
#include "live/save/folders.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/expand.h"
#include "runtime/comm/claim.h"

namespace mckpt::impl {
namespace {

using Until = RoundTripOptions::Until;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostDifferences = 20;  // that are named

// The observer of a phase's steps: passes on bytes and the wish to stop, but not the names of the steps,
// because the user of a round trip sees its phases only.
class WithinPhase final : public Observer {
 public:
  explicit WithinPhase(Observer& outer) : outer_(outer) {}
  void done(i64 bytes) override { outer_.done(bytes); }
  bool stop() override { return outer_.stop(); }

 private:
  Observer& outer_;
};

// One round trip of one rank: go(), then result(). All ranks make the same calls.
class RoundTrip {
 public:
  RoundTrip(LiveModel& model, const HfModel& source, const RoundTripOptions& options, Observer& observer)
      : model_(model),
        ranks_(model.world()),
        source_(source),
        options_(options),
        observer_(observer),
        within_(observer),
        keys_(live_keys(model)) {}

  void go() {
    load();
    check_unchanged(source_.opening);
    if (options_.until == Until::kLoad) return;
    unshard_all();
    if (options_.until == Until::kUnshard) return;
    check_all();
    check_unchanged(source_.opening);
    if (options_.until == Until::kCheck) return;
    for (i64 time = 0; options_.checkpoint && time < options_.repeat; time++)
      through_checkpoint(*options_.checkpoint, time > 0);
    export_and_compare();
  }

  RoundTripResult result(const KeptMemory& gathered) {
    gather_differences();
    i64 most[] = {model_.weight_bytes(), gathered.most_held_bytes()};
    ranks_.all_reduce(most, Reduce::kMax);
    result_.weights_bytes = most[0], result_.gathered_bytes = most[1];
    ranks_.all_reduce({&cp_slices_, 1}, Reduce::kSum);
    result_.cp_slices = cp_slices_;
    result_.compared = options_.until == Until::kCompare;
    return std::move(result_);
  }

 private:
  BlockLoadOptions loading() {
    return {.threads = options_.threads, .most_threads = options_.most_threads, .observer = &within_};
  }
  LiveCheckOptions checking() { return {.threads = options_.threads, .observer = &within_}; }

  void stop_if_asked() {
    if (observer_.stop()) throw Error(Code::kInterrupted, "the round trip was stopped before it was done");
  }

  // The counts of all ranks together. The ranks of a job call different collectives where their groups
  // differ.
  CallCounts over_all_ranks(CallCounts mine) {
    i64 calls[kCommCalls], received[kCommCalls];
    for (std::size_t c = 0; c < kCommCalls; c++)
      calls[c] = mine.of[c].calls, received[c] = mine.of[c].received;
    ranks_.all_reduce(calls, Reduce::kMax);
    ranks_.all_reduce(received, Reduce::kSum);
    for (std::size_t c = 0; c < kCommCalls; c++) mine.of[c] = {calls[c], received[c]};
    return mine;
  }

  // Runs one phase and adds it to the result. fn returns the bytes that this rank moved.
  void phase(const char* name, const std::function<i64()>& fn) {
    observer_.begin(name, 0);
    auto begin = Clock::now();
    const CallCounts before = ranks_.activity().collectives().counts();
    i64 bytes = fn();
    const CallCounts mine = ranks_.activity().collectives().counts().since(before);
    i64 micros = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin).count();
    observer_.end();
    ranks_.all_reduce({&bytes, 1}, Reduce::kSum);
    ranks_.all_reduce({&micros, 1}, Reduce::kMax);
    result_.phases.push_back({name, static_cast<double>(micros) / 1e6, bytes, over_all_ranks(mine)});
    stop_if_asked();
  }

  void load() {
    for (i64 time = 0; time < options_.repeat; time++)
      phase("load", [&] { return load_from_model(model_, keys_, *source_.store, loading()).bytes_read; });
  }

  // Unshards every module once and calls `visit` with it, while the gather of the next module runs: what is
  // visited must be right although the next module's buffer is being filled.
  void each_module(const std::function<void(i32)>& visit) {
    const std::vector<i32>& modules = model_.sharded_modules();
    for (std::size_t i = 0; i < modules.size(); i++) {
      model_.unshard(modules[i]);
      if (i + 1 < modules.size()) model_.prefetch(modules[i + 1]);
      visit(modules[i]);
      model_.reshard(modules[i]);
      ranks_.activity().made_progress();
      stop_if_asked();
    }
  }

  void unshard_all() {
    for (i64 time = 0; time < options_.repeat; time++)
      phase("unshard", [&] {
        i64 before = model_.received_bytes(), reported = before;
        each_module([&](i32) {
          observer_.done(model_.received_bytes() - reported);
          reported = model_.received_bytes();
        });
        return model_.received_bytes() - before;
      });
  }

  // The layers of a stack compute one after the other: each is unsharded and resharded as if it were alone,
  // and the stack must keep the values of all of them.
  void compute_layers(i32 module) {
    for (i32 layer : model_.modules().layers_inside(module)) {
      if (model_.sharded_with(layer) != module) continue;
      model_.unshard(layer);
      model_.reshard(layer);
    }
  }

  void check_all() {
    phase("check", [&] {
      LiveCheck check(model_, *source_.store, checking());
      check.check_stored();
      each_module([&](i32 module) {
        compute_layers(module);
        check.check_live(module);
      });
      note_differences(check);
      cp_slices_ += check.cp_slices();
      return check.bytes();
    });
  }

  // Saves the model, frees its memory, and loads it from the checkpoint, so that the export that follows
  // shows what the checkpoint contains.
  void through_checkpoint(const std::string& folder, bool again) {
    phase("save", [&] {
      LiveFolderOptions how{options_.threads, options_.durable, again};
      i64 bytes = save_to_folder(model_, keys_, source_, folder, how, within_);
      return ranks_.rank() == 0 ? bytes : 0;
    });
    model_.drop();
    phase("reload", [&] {
      OpenOptions opening = source_.opening;
      opening.stamps = std::make_shared<SourceStamps>();  // a repeated save replaces these files
      HfModelOptions reading = options_.model;
      reading.leave_unlike_copies = true;  // they were compared when the source was opened
      auto table = std::make_shared<const HfModel>(open_hf_model(source_.path, reading));
      OpenAs how{.source = folder};
      how.how.model = options_.model;
      const Opened opened = open_sharded(open_store(folder, opening), std::move(table), how,
                                         {0, std::nullopt, model_.setup().run.groups});
      const CheckpointModel& saved = *opened.sharded;
      result_.oddities = saved.oddities();
      return load_from_checkpoint(model_, keys_, saved.store(), saved.keys(), saved.chunks(), loading())
          .bytes_read;
    });
    observer_.begin("check", 0);
    LiveCheck check(model_, *source_.store, checking());
    check.check_stored();
    note_differences(check);
    observer_.end();
  }

  void export_and_compare() {
    std::optional<ScratchFolder> scratch;
    if (!options_.output) scratch.emplace(ranks_);
    std::string folder = options_.output ? *options_.output : cat(scratch->path(), "/model");
    claiming_errors(ranks_, [&] {  // the folder goes when it is left with an error
      phase("export", [&] {
        LiveFolderOptions how{options_.threads, options_.output && options_.durable, false};
        i64 bytes = export_to_folder(model_, keys_, source_, folder, how, within_);
        return ranks_.rank() == 0 ? bytes : 0;
      });
      phase("compare", [&] {
        FolderComparison found = compare_share(source_, folder, ranks_, options_.threads, within_);
        std::ranges::move(found.differences, std::back_inserter(differences_));
        return found.bytes;
      });
      if (options_.logits)
        phase("logits", [&] {
          std::string wrong = ranks_.rank() == 0 ? options_.logits(folder) : std::string();
          if (!wrong.empty()) differences_.push_back(std::move(wrong));
          return i64{0};
        });
      check_unchanged(source_.opening);
      ranks_.barrier();  // no rank looks at the folder any more
    });
  }

  void note_differences(const LiveCheck& check) {
    for (const LiveCheck::Difference& d : check.differences())
      differences_.push_back(cat(d.what, " of ", escaped(d.parameter), " on rank ", ranks_.rank(),
                                 " from item ", d.item, " on"));
  }

  // Collective: rank 0's differences come first, then the differences of the next ranks, up to
  // kMostDifferences in all.
  void gather_differences() {
    std::string text;
    for (std::size_t i = 0; i < std::min(differences_.size(), kMostDifferences); i++)
      text += differences_[i] + '\n';
    Gathered all = ranks_.all_gather_v(std::as_bytes(std::span(text)));
    std::string_view rest(reinterpret_cast<const char*>(all.bytes.data()), all.bytes.size());
    for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1))
      if (result_.differences.size() < kMostDifferences)
        result_.differences.emplace_back(rest.substr(0, end));
    result_.difference_count = std::ssize(differences_);
    ranks_.all_reduce({&result_.difference_count, 1}, Reduce::kSum);
  }

  LiveModel& model_;
  Comm& ranks_;
  const HfModel& source_;
  const RoundTripOptions& options_;
  Observer& observer_;
  WithinPhase within_;
  KeyTable keys_;
  std::vector<std::string> differences_;  // that this rank found
  i64 cp_slices_ = 0;                     // that this rank compared
  RoundTripResult result_;
};

}  // namespace

RoundTripResult round_trip(LiveModel& model, const KeptMemory& gathered, const HfModel& source,
                           const RoundTripOptions& options, Observer& observer) {
  if (options.checkpoint)  // refuses what cannot be saved
    FsdpLayout(model.parameters(), source.map->model(), model.setup().grid, model.setup().fsdp);
  RoundTrip trip(model, source, options, observer);
  trip.go();
  return trip.result(gathered);
}

}  // namespace mckpt::impl
