// mckpt roundtrip: a Hugging Face model into a live sharded model over ranks and back, every bit compared.
#include <algorithm>
#include <chrono>
#include <iterator>

#include "convert/keys/name_rules.h"
#include "convert/keys/stored_chunks.h"
#include "convert/source/checkpoint.h"
#include "convert/source/options.h"
#include "core/base/error.h"
#include "core/base/notes.h"
#include "hf/model.h"
#include "io/copy/engine.h"
#include "io/file/source_stamps.h"
#include "io/store/store.h"
#include "io/verify/manifest_check.h"
#include "live/cuda/device.h"
#include "live/device/device.h"
#include "live/device/kept_memory.h"
#include "live/device/tensor.h"
#include "live/load/block_loader.h"
#include "live/load/load.h"
#include "live/model/check.h"
#include "live/model/model.h"
#include "live/save/exported_folder.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/expand.h"
#include "runtime/comm/claim.h"
#include "runtime/job/job.h"
#include "tools/commands/commands.h"
#include "tools/live_folder.h"
#include "tools/options/command_line.h"
#include "tools/options/roundtrip_options.h"
#include "tools/process/interrupt.h"
#include "tools/process/job.h"
#include "tools/render/findings.h"
#include "tools/render/notes.h"
#include "tools/render/output.h"
#include "tools/render/progress.h"
#include "tools/render/roundtrip_report.h"

namespace mckpt::impl {
namespace {

class Roundtrip {
 public:
  explicit Roundtrip(CommandLine& line) : flags_(line.flags()) { options_.parse(line); }
  Exit run();

 private:
  std::unique_ptr<Device> make_device() const;
  BlockLoadOptions loading(std::atomic<i64>* done) const;
  LiveCheckOptions checking(std::atomic<i64>* done) const;
  // Runs fn, which returns the bytes that this rank moved, and counts them while it does; notes the phase.
  void phase(const char* name, const std::function<i64(std::atomic<i64>* done)>& fn);
  void load();
  void note_differences(const LiveCheck& check);
  void check_stored(std::atomic<i64>* done);
  void each_module(bool ahead, const std::function<void(i32)>& visit);
  void unshard_all();
  void check_all();
  void go_through(LiveModel& model, KeptMemory& gathered);
  void phases();
  void export_and_compare();
  void through_checkpoint();
  i64 compare(const std::string& folder, std::atomic<i64>* done);
  void conclude();

  const GlobalFlags& flags_;
  RoundtripOptions options_;

  HfModel hf_;
  LiveModel* model_ = nullptr;
  const KeyTable* keys_ = nullptr;
  KeptMemory* gathered_ = nullptr;
  std::vector<std::string> differences_;  // that this rank found
  RoundtripReport report_;
};

std::unique_ptr<Device> Roundtrip::make_device() const {
  if (options_.device == "cuda") try {
      return cuda_device(this_job().comm());
    } catch (Error& e) {
      constexpr const char* kInstead = "--device cpu keeps the model in the host's memory";
      if (e.code() == Code::kModuleMissing) e.help().empty() ? e.help(kInstead) : e.note(kInstead);
      throw;
    }
  return std::make_unique<HostDevice>();
}

BlockLoadOptions Roundtrip::loading(std::atomic<i64>* done) const {
  return {.threads = options_.threads, .stop = stop_flag(), .written_bytes = done};
}

LiveCheckOptions Roundtrip::checking(std::atomic<i64>* done) const {
  return {.threads = options_.threads, .stop = stop_flag(), .checked_bytes = done};
}

void Roundtrip::phase(const char* name, const std::function<i64(std::atomic<i64>* done)>& fn) {
  Progress progress(flags_, name, 0);
  Phase at(this_job().comm().activity(), name, progress.counter());
  auto begin = std::chrono::steady_clock::now();
  i64 bytes = fn(progress.counter());
  i64 micros =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count();
  this_job().comm().all_reduce({&bytes, 1}, Reduce::kSum);
  this_job().comm().all_reduce({&micros, 1}, Reduce::kMax);
  report_.phases.push_back({name, static_cast<double>(micros) / 1e6, bytes});
  check_stop();
}

void Roundtrip::load() {
  for (i64 time = 0; time < options_.repeat; time++)
    phase("load", [&](std::atomic<i64>* done) {
      return load_from_model(*model_, *keys_, *hf_.store, loading(done)).bytes_read;
    });
}

void Roundtrip::note_differences(const LiveCheck& check) {
  for (const LiveCheck::Difference& d : check.differences())
    differences_.push_back(cat(d.what, " of ", escaped(d.parameter), " on rank ", this_job().comm().rank(),
                               " from item ", d.item, " on"));
}

void Roundtrip::check_stored(std::atomic<i64>* done) {
  LiveCheck check(*model_, *hf_.store, checking(done));
  check.check_stored();
  note_differences(check);
}

// Every module once. What the next one needs of other ranks is on its way meanwhile,
// where `ahead`.
void Roundtrip::each_module(bool ahead, const std::function<void(i32)>& visit) {
  const std::vector<i32>& modules = model_->sharded_modules();
  for (std::size_t i = 0; i < modules.size(); i++) {
    model_->unshard(modules[i]);
    if (ahead && i + 1 < modules.size()) model_->prefetch(modules[i + 1]);
    visit(modules[i]);
    model_->reshard(modules[i]);
    this_job().comm().activity().made_progress();
    check_stop();
  }
}

// First for its time alone, then what is live against the files.
void Roundtrip::unshard_all() {
  for (i64 time = 0; time < options_.repeat; time++)
    phase("unshard", [&](std::atomic<i64>* done) {
      i64 before = model_->received_bytes();
      each_module(!model_->device().is_host(), [&](i32) { *done = model_->received_bytes() - before; });
      return done->load();
    });
}

void Roundtrip::check_all() {
  phase("check", [&](std::atomic<i64>* done) {
    check_stored(done);
    LiveCheck check(*model_, *hf_.store, checking(done));
    each_module(false, [&](i32 module) { check.check_live(module); });
    note_differences(check);
    return check.bytes();
  });
}

void Roundtrip::through_checkpoint() {
  phase("save", [&](std::atomic<i64>* done) {
    LiveFolderOptions how{options_.threads, !options_.no_sync, done};
    i64 bytes = save_to_folder(*model_, *keys_, hf_, *options_.checkpoint, how);
    return this_job().comm().rank() == 0 ? bytes : 0;
  });
  model_->drop();
  phase("reload", [&](std::atomic<i64>* done) {
    HfModelOptions how = options_.model_flags.options();
    CheckpointModel saved(open_store(*options_.checkpoint), open_hf_model(options_.source, how),
                          {.model = how}, {0, std::nullopt, model_->setup().run.groups});
    tell_findings(flags_, saved.oddities(), saved.store().root());
    return load_from_checkpoint(*model_, *keys_, saved.store(), saved.keys(), saved.chunks(), loading(done))
        .bytes_read;
  });
  Progress progress(flags_, "check", 0);
  Phase at(this_job().comm().activity(), "check", progress.counter());
  check_stored(progress.counter());
}

// The exported folder against the source.
i64 Roundtrip::compare(const std::string& folder, std::atomic<i64>* done) {
  FolderComparison found = compare_share(hf_, folder, this_job().comm(),
                                         {.threads = options_.threads,
                                          .memory_bytes = i64{64} << 20,
                                          .stop = [] { return stop_flag()->load(); },
                                          .written_bytes = done});
  std::ranges::move(found.differences, std::back_inserter(differences_));
  return found.bytes;
}

void Roundtrip::conclude() {
  constexpr std::size_t kMost = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(differences_.size(), kMost); i++) text += differences_[i] + '\n';
  Gathered all = this_job().comm().all_gather_v(std::as_bytes(std::span(text)));
  std::string_view rest(reinterpret_cast<const char*>(all.bytes.data()), all.bytes.size());
  for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1))
    if (report_.differences.size() < kMost) report_.differences.emplace_back(rest.substr(0, end));
  report_.difference_count = std::ssize(differences_);
  this_job().comm().all_reduce({&report_.difference_count, 1}, Reduce::kSum);
  report_.differs = report_.difference_count > 0;
  report_.compared = !options_.until;
  i64 most[] = {model_->weight_bytes(), gathered_->most_held_bytes(), status_bytes("VmHWM")};
  this_job().comm().all_reduce(most, Reduce::kMax);
  report_.weights_bytes = most[0], report_.gathered_bytes = most[1], report_.peak_rss = most[2];
}

void Roundtrip::export_and_compare() {
  std::optional<ScratchFolder> scratch;
  if (!options_.output) scratch.emplace(this_job().comm());
  std::string folder = options_.output ? *options_.output : cat(scratch->path(), "/model");
  claiming_errors(this_job().comm(), [&] {  // the folder goes when it is left with an error
    phase("export", [&](std::atomic<i64>* done) {
      LiveFolderOptions how{options_.threads, options_.output && !options_.no_sync, done};
      i64 bytes = export_to_folder(*model_, *keys_, hf_, folder, how);
      return this_job().comm().rank() == 0 ? bytes : 0;
    });
    phase("compare", [&](std::atomic<i64>* done) { return compare(folder, done); });
    check_sources_unchanged();
    this_job().comm().barrier();  // no rank looks at the folder any more
  });
}

void Roundtrip::phases() {
  load();
  check_sources_unchanged();
  if (options_.until == "load") return;
  unshard_all();
  if (options_.until == "unshard") return;
  check_all();
  check_sources_unchanged();
  if (options_.until == "check") return;
  if (options_.checkpoint) through_checkpoint();
  export_and_compare();
}

void Roundtrip::go_through(LiveModel& model, KeptMemory& gathered) {
  model.wrap();
  if (options_.checkpoint)  // refuses what cannot be saved
    FsdpLayout(model.parameters(), hf_.map->model(), model.setup().grid, model.setup().fsdp);
  KeyTable keys = live_keys(model);
  options_.fsdp_flags.frozen().refuse_unmatched(keys.parameters());
  model_ = &model, keys_ = &keys, gathered_ = &gathered;
  phases();
  conclude();
}

Exit Roundtrip::run() {
  options_.refuse_early();
  options_.ranks.join();
  options_.settle(this_job().comm());
  Tensor::set_threads(options_.threads);
  hf_ = open_hf_model(options_.source, options_.model_flags.options());
  if (!hf_.has_data())
    throw Error(Code::kNotFound, "the folder has no weights to load").file(options_.source);
  if (std::string text = options_.grid_flags.note(); !text.empty()) note(flags_, text);
  print_notes(flags_, notes_of(hf_));
  if (this_job().comm().rank() == 0) {
    require_listed_files(options_.source);
    refuse_unlike_copies(hf_, options_.threads);
  }

  std::unique_ptr<Device> device = make_device();
  KeptMemory gathered(device->weights());
  LiveModel model(*hf_.map, options_.setup(*hf_.map), this_job().comm(), *device, gathered);
  // Leaving the model ends its communicators, which ranks that use them take for an error.
  claiming_errors(this_job().comm(), [&] { go_through(model, gathered); });
  report_.device = options_.device, report_.threads = options_.threads;
  report_.output = options_.output.value_or(""), report_.checkpoint = options_.checkpoint.value_or("");
  report_.tensors = hf_.map->sources().size(), report_.parameters = hf_.map->parameter_count();
  write_roundtrip(flags_, report_, model);
  return report_.differs ? Exit::kNo : Exit::kOk;
}

}  // namespace

Exit roundtrip_command(CommandLine& line) { return Roundtrip(line).run(); }

}  // namespace mckpt::impl
