// mckpt roundtrip: a Hugging Face model into a live sharded model over ranks and back, every bit compared.
#include <algorithm>
#include <chrono>
#include <iterator>

#include "io/copy_engine.h"
#include "io/parallel.h"
#include "io/staged_folder.h"
#include "live/cuda_device.h"
#include "live/live_check.h"
#include "live/live_load.h"
#include "live/pooled_memory.h"
#include "runtime/activity.h"
#include "runtime/world.h"
#include "tools/checkpoint_model.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/layout_flags.h"
#include "tools/live_folder.h"
#include "tools/progress.h"
#include "tools/rank_limits.h"
#include "tools/roundtrip_folder.h"
#include "tools/roundtrip_report.h"

namespace mckpt {
namespace {

constexpr int kMostThreadsOfGpu = 8;

class Roundtrip {
 public:
  explicit Roundtrip(CommandLine& line) : flags_(line.flags()) { parse(line); }
  Exit run();

 private:
  void parse(CommandLine& line);
  void refuse_early() const;
  LiveSetup setup() const;
  std::unique_ptr<Device> make_device() const;
  BlockLoadOptions loading(Progress& progress) const;
  // Runs fn, which returns the bytes that this rank moved, and notes the phase.
  void phase(const char* name, const std::function<i64()>& fn);
  void load();
  void note_differences(const LiveCheck& check);
  void check_stored();
  void each_module(bool ahead, const std::function<void(i32)>& visit);
  void unshard_all();
  void check_all();
  void go_through();
  void export_and_compare();
  void through_checkpoint();
  i64 compare(const std::string& folder);
  void conclude();

  const GlobalFlags& flags_;
  std::string source_, device_ = "cpu", main_dtype_ = "fp32";
  std::optional<std::string> output_, checkpoint_, pattern_text_;
  std::optional<LayerPattern> pattern_;
  bool no_sync_ = false;
  int threads_ = 0;
  i64 repeat_ = 1;
  std::optional<std::string> until_;
  HfModelFlags model_flags_;
  GridFlags grid_flags_;
  FsdpFlags fsdp_flags_;
  ValueFlags values_{"auto"};
  RankLimits ranks_;

  HfModel hf_;
  LiveModel* model_ = nullptr;
  const KeyTable* keys_ = nullptr;
  PooledMemory* pool_ = nullptr;
  std::vector<std::string> differences_;  // that this rank found
  RoundtripReport report_;
};

void Roundtrip::parse(CommandLine& line) {
  line.positional("HF_DIR", source_, "the folder of a Hugging Face model, with safetensors files").required();
  line.option("--device", device_, "where the model lives: cpu or cuda").choices({"cpu", "cuda"});
  line.option("--main-dtype", main_dtype_, "type of the main weights: fp32, or none to have none")
      .choices({"fp32", "none"});
  line.option("--output DIR", output_,
              "keep the exported folder; by default a temporary one that is removed");
  line.option("--checkpoint DIR", checkpoint_,
              "save the sharded model in DIR/release too, and load it from there before it is exported");
  line.option("--hybrid-pattern PATTERN", pattern_text_,
              "the layers of a hybrid model in groups, as in '[*-]M'; the model is built and saved so");
  line.flag("--no-sync", no_sync_, "do not wait until the disk has what --output and --checkpoint keep");
  line.threads(threads_, "threads a rank; by default the processors, shared among the ranks");
  line.option("--until PHASE", until_, "stop after load, unshard or check, and export nothing")
      .choices({"load", "unshard", "check"});
  line.option("--repeat N", repeat_, "load, and unshard every module, so many times: what is told of each");
  ranks_.declare(line);
  model_flags_.declare(line);
  grid_flags_.declare(line);
  fsdp_flags_.declare(line);
  line.heading("Values");
  values_.declare_vocab(line);
  values_.declare_params(line);
  line.description(
      "Loads the model into a live sharded one, as Megatron-FSDP holds it on this grid; compares every");
  line.description(
      "rank's weights with the files, unshards every module once and compares its values, exports the");
  line.description("main weights, and compares every bit with the source. Exit status 1: something differs.");
  line.example("mckpt roundtrip Qwen3-0.6B");
  line.example("mpirun -n 8 mckpt roundtrip Qwen3-30B-A3B --tp 2 --ep 4 --dp 4");
  line.example("mpirun -n 4 mckpt roundtrip Qwen3-30B-A3B --dp 4 --hsdp 2 --checkpoint ckpt --json");
  line.parse();
  ranks_.check();
  if (repeat_ < 1) throw Error(Code::kUsage, "--repeat wants at least 1").found(repeat_);
  if (pattern_text_) pattern_ = parse_pattern(*pattern_text_, Dialect::kGrouped);
}

void Roundtrip::refuse_early() const {
  for (const auto& folder : {output_, checkpoint_})
    if (folder && until_)
      throw Error(Code::kUsage, "nothing is written where the round trip stops before it")
          .found(cat("--until ", *until_))
          .help("leave out --output and --checkpoint, or --until");
    else if (folder && launch().rank == 0)
      StagedFolder::check(*folder, live_staging(!no_sync_), 0, 1);
}

std::unique_ptr<Device> Roundtrip::make_device() const {
  if (device_ == "cuda") try {
      return cuda_device(world());
    } catch (Error& e) {
      if (e.code() == Code::kModuleMissing) e.note("--device cpu keeps the model in the host's memory");
      throw;
    }
  return std::make_unique<HostDevice>();
}

LiveSetup Roundtrip::setup() const {
  LiveSetup s;
  s.grid = grid_flags_.grid();
  const ModelMap& map = *hf_.map;
  s.run = {vocab_rows(map.model(), map.family(), s.grid.tp, values_.vocab()),
           values_.params_dtype(map.model()), pattern_ ? &*pattern_ : nullptr};
  s.fsdp = fsdp_flags_.setup(s.grid);
  if (main_dtype_ == "none") s.main_dtype.reset();
  s.adjust = [this](std::vector<ModelParameter>& p) { fsdp_flags_.freeze(p); };
  return s;
}

BlockLoadOptions Roundtrip::loading(Progress& progress) const {
  return {.threads = threads_, .stop = stop_flag(), .written_bytes = progress.counter()};
}

void Roundtrip::phase(const char* name, const std::function<i64()>& fn) {
  Phase at(name);
  auto begin = std::chrono::steady_clock::now();
  i64 bytes = fn();
  i64 micros =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count();
  world().all_reduce({&bytes, 1}, Reduce::kSum);
  world().all_reduce({&micros, 1}, Reduce::kMax);
  report_.phases.push_back({name, static_cast<double>(micros) / 1e6, bytes});
  check_stop();
}

void Roundtrip::load() {
  for (i64 time = 0; time < repeat_; time++) {
    Progress progress(flags_, "load", 0);
    phase("load", [&] { return load_from_model(*model_, *keys_, *hf_.store, loading(progress)).bytes_read; });
  }
}

void Roundtrip::note_differences(const LiveCheck& check) {
  for (const LiveCheck::Difference& d : check.differences())
    differences_.push_back(
        cat(d.what, " of ", escaped(d.parameter), " on rank ", world().rank(), " from item ", d.item, " on"));
}

void Roundtrip::check_stored() {
  LiveCheck check(*model_, *hf_.store, threads_);
  check.check_stored();
  note_differences(check);
}

// Every module once, in a pass of the pool. What the next one needs of other ranks is on its way meanwhile,
// where `ahead`.
void Roundtrip::each_module(bool ahead, const std::function<void(i32)>& visit) {
  const std::vector<i32>& modules = model_->sharded_modules();
  pool_->pool().begin_pass();
  for (std::size_t i = 0; i < modules.size(); i++) {
    model_->unshard(modules[i]);
    if (ahead && i + 1 < modules.size()) model_->prefetch(modules[i + 1]);
    visit(modules[i]);
    model_->reshard(modules[i]);
    made_progress();
  }
  pool_->pool().end_pass();
}

// First for its time alone, then what is live against the files.
void Roundtrip::unshard_all() {
  for (i64 time = 0; time < repeat_; time++)
    phase("unshard", [&] {
      i64 before = model_->received_bytes();
      each_module(!model_->device().is_host(), [](i32) {});
      return model_->received_bytes() - before;
    });
}

void Roundtrip::check_all() {
  LiveCheck check(*model_, *hf_.store, threads_);
  phase("check", [&] {
    check_stored();
    each_module(false, [&](i32 module) { check.check_live(module); });
    return check.bytes();
  });
  note_differences(check);
}

void Roundtrip::through_checkpoint() {
  LiveFolderOptions how{threads_, !no_sync_};
  phase("save", [&] {
    i64 bytes = save_to_folder(*model_, *keys_, hf_, *checkpoint_, how);
    return world().rank() == 0 ? bytes : 0;
  });
  model_->drop();
  Progress progress(flags_, "load", 0);
  phase("reload", [&] {
    CheckpointModel saved;
    CheckpointModelFlags how_to_open;
    how_to_open.model = model_flags_;
    saved.open(open_store(*checkpoint_), open_hf_model(source_, model_flags_), how_to_open, flags_,
               {0, std::nullopt, model_->setup().run.groups});
    return load_from_checkpoint(*model_, *keys_, saved.store(), saved.keys(), saved.chunks(),
                                loading(progress))
        .bytes_read;
  });
  check_stored();
}

// The exported folder against the source.
i64 Roundtrip::compare(const std::string& folder) {
  Progress progress(flags_, "compare", 0);
  FolderComparison found = compare_share(hf_, folder, world(),
                                         {.threads = threads_,
                                          .memory_bytes = i64{64} << 20,
                                          .stop = stop_flag(),
                                          .written_bytes = progress.counter()});
  std::ranges::move(found.differences, std::back_inserter(differences_));
  return found.bytes;
}

void Roundtrip::conclude() {
  constexpr std::size_t kMost = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(differences_.size(), kMost); i++) text += differences_[i] + '\n';
  Gathered all = world().all_gather_v(std::as_bytes(std::span(text)));
  std::string_view rest(reinterpret_cast<const char*>(all.bytes.data()), all.bytes.size());
  for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1))
    if (report_.differences.size() < kMost) report_.differences.emplace_back(rest.substr(0, end));
  report_.difference_count = std::ssize(differences_);
  world().all_reduce({&report_.difference_count, 1}, Reduce::kSum);
  report_.differs = report_.difference_count > 0;
  report_.compared = !until_;
  i64 most[] = {model_->weight_bytes(), pool_->pool().facts().most_held_bytes, status_bytes("VmHWM")};
  world().all_reduce(most, Reduce::kMax);
  report_.weights_bytes = most[0], report_.gathered_bytes = most[1], report_.peak_rss = most[2];
}

void Roundtrip::export_and_compare() {
  std::optional<ScratchFolder> scratch;
  if (!output_) scratch.emplace(world());
  std::string folder = output_ ? *output_ : cat(scratch->path(), "/model");
  phase("export", [&] {
    i64 bytes = export_to_folder(*model_, *keys_, hf_, folder, {threads_, output_.has_value() && !no_sync_});
    return world().rank() == 0 ? bytes : 0;
  });
  phase("compare", [&] { return compare(folder); });
}

void Roundtrip::go_through() {
  load();
  if (until_ == "load") return;
  unshard_all();
  if (until_ == "unshard") return;
  check_all();
  if (until_ == "check") return;
  if (checkpoint_) through_checkpoint();
  export_and_compare();
}

Exit Roundtrip::run() {
  refuse_early();
  ranks_.join();
  if (threads_ == 0) {
    threads_ = std::max(1, default_threads() / world().size());
    // With more they take the memory's bandwidth from each other.
    if (device_ == "cuda") threads_ = std::min(threads_, kMostThreadsOfGpu);
  }
  Tensor::set_threads(threads_);
  hf_ = open_hf_model(source_, model_flags_);
  if (!hf_.has_data()) throw Error(Code::kNotFound, "the folder has no weights to load").file(source_);
  if (std::string text = grid_flags_.note(); !text.empty()) note(flags_, text);
  tell_notes(flags_, hf_);
  if (world().rank() == 0) refuse_unlike_copies(hf_, threads_);

  std::unique_ptr<Device> device = make_device();
  PooledMemory pool(device->weights());
  LiveModel model(*hf_.map, setup(), world(), *device, pool);
  model.wrap();
  if (checkpoint_)  // refuses what cannot be saved
    FsdpLayout(model.parameters(), hf_.map->model(), model.setup().grid, model.setup().fsdp);
  KeyTable keys = live_keys(model);
  fsdp_flags_.refuse_unmatched(keys.parameters());
  model_ = &model, keys_ = &keys, pool_ = &pool;
  go_through();
  report_.device = device_;
  report_.output = output_.value_or(""), report_.checkpoint = checkpoint_.value_or("");
  report_.tensors = hf_.map->sources().size(), report_.parameters = hf_.map->parameter_count();
  conclude();
  write_roundtrip(flags_, report_, model);
  return report_.differs ? Exit::kNo : Exit::kOk;
}

}  // namespace

Exit roundtrip_command(CommandLine& line) { return Roundtrip(line).run(); }

}  // namespace mckpt
