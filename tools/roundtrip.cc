// mckpt roundtrip: a Hugging Face model into a live sharded model over ranks and back, every bit compared.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "convert/compare_sink.h"
#include "convert/reshard_job.h"
#include "io/copy_engine.h"
#include "io/parallel.h"
#include "io/staged_folder.h"
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
#include "tools/roundtrip_report.h"

namespace mckpt {
namespace {

// A folder that every rank knows and rank 0 removes.
class ScratchFolder {
 public:
  explicit ScratchFolder(Comm& world) : mine_(world.rank() == 0) {
    if (mine_) {
      path_ = (std::filesystem::temp_directory_path() / "mckpt_roundtrip_XXXXXX").string();
      if (!::mkdtemp(path_.data()))
        throw Error(Code::kWriteFailed, "cannot make a temporary folder").file(path_).help("--output DIR");
    }
    Gathered all = world.all_gather_v(std::as_bytes(std::span(path_)));
    path_.assign(reinterpret_cast<const char*>(all.of(0).data()), all.of(0).size());
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (mine_) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  bool mine_;
  std::string path_;
};

class Roundtrip {
 public:
  explicit Roundtrip(CommandLine& line) : flags_(line.flags()) { parse(line); }
  Exit run();

 private:
  void parse(CommandLine& line);
  void refuse_early() const;
  LiveSetup setup() const;
  CopyOptions copying(Progress& progress) const;
  // Runs fn, which returns the bytes that this rank moved, and notes the phase.
  void phase(const char* name, const std::function<i64()>& fn);
  void load();
  void note_differences(const LiveCheck& check);
  void check_stored();
  void unshard_all();
  void through_checkpoint();
  i64 compare(const std::string& folder);
  void conclude(const HostMemory& storage, const HostMemory& gathered);

  const GlobalFlags& flags_;
  std::string source_, device_ = "cpu", main_dtype_ = "fp32";
  std::optional<std::string> output_, checkpoint_, pattern_text_;
  std::optional<LayerPattern> pattern_;
  bool no_sync_ = false;
  i64 threads_ = 0;
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
  line.option("-j,--threads", threads_, "threads a rank; by default the processors, shared among the ranks");
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
  if (pattern_text_) pattern_ = parse_pattern(*pattern_text_, Dialect::kGrouped);
}

void Roundtrip::refuse_early() const {
  if (device_ == "cuda")
    throw Error(Code::kModuleMissing,
                "the live model runs on CPU ranks only: device memory, NCCL and the loading "
                "of GPUs are not there yet")
        .found("--device cuda")
        .help("--device cpu");
  for (const auto& folder : {output_, checkpoint_})
    if (folder && launch().rank == 0) StagedFolder::check(*folder, {.durable = !no_sync_}, 0, 1);
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

CopyOptions Roundtrip::copying(Progress& progress) const {
  return {.threads = static_cast<int>(threads_),
          .memory_bytes = i64{64} << 20,
          .stop = stop_flag(),
          .written_bytes = progress.counter()};
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
  Progress progress(flags_, "load", 0);
  phase("load",
        [&] { return load_from_model(*model_, *keys_, *hf_.store, copying(progress)).bytes_written; });
}

void Roundtrip::note_differences(const LiveCheck& check) {
  for (const LiveCheck::Difference& d : check.differences())
    differences_.push_back(
        cat(d.what, " of ", d.parameter, " on rank ", world().rank(), " from item ", d.item, " on"));
}

void Roundtrip::check_stored() {
  LiveCheck check(*model_, *hf_.store);
  check.check_stored();
  note_differences(check);
}

// Every module once, in a pass of the pool: first for its time alone, then what is live against the files.
void Roundtrip::unshard_all() {
  auto each_module = [&](const std::function<void(i32)>& visit) {
    pool_->pool().begin_pass();
    for (i32 module : model_->sharded_modules()) {
      model_->unshard(module);
      visit(module);
      model_->reshard(module);
      made_progress();
    }
    pool_->pool().end_pass();
  };
  phase("unshard", [&] {
    i64 bytes = 0;
    each_module([&](i32 module) {
      for (const std::unique_ptr<LiveGroup>& group : model_->groups_of(module))
        bytes += group->gather_bytes();
    });
    return bytes;
  });
  LiveCheck check(*model_, *hf_.store);
  phase("check", [&] {
    check_stored();
    each_module([&](i32 module) { check.check_live(module); });
    return check.bytes();
  });
  note_differences(check);
}

void Roundtrip::through_checkpoint() {
  LiveFolderOptions how{static_cast<int>(threads_), !no_sync_};
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
                                copying(progress))
        .bytes_written;
  });
  check_stored();
}

// The exported folder against the source, each rank its share of the tensors.
i64 Roundtrip::compare(const std::string& folder) {
  std::unique_ptr<Store> there = open_store(folder);
  NamedChunks chunks(*there, *hf_.store);
  std::vector<bool> seen(static_cast<std::size_t>(hf_.store->tensor_count()));
  for (i64 c = 0; c < chunks.size(); c++) {
    std::size_t t = static_cast<std::size_t>(chunks.key(c));
    seen[t] = std::ranges::equal(chunks.box(c).sizes, hf_.store->dims(chunks.key(c))) &&
              chunks.dtype(c) == hf_.store->dtype(chunks.key(c));
  }
  for (const UnreadTensor& u : hf_.map->unread())
    if (u.of < 0) seen[static_cast<std::size_t>(u.tensor)] = true;
  for (std::size_t t = 0; t < seen.size() && world().rank() == 0; t++)
    if (!seen[t])
      differences_.push_back(cat(hf_.store->name(static_cast<i64>(t)), " did not come back as it was"));
  ReshardJob job(*hf_.store, chunks, nullptr);
  CompareSink sink(*there);
  i64 tasks = job.task_count(), rank = world().rank(), ranks = world().size();
  Progress progress(flags_, "compare", 0);
  CopyOptions how = copying(progress);
  how.first_task = tasks * rank / ranks, how.end_task = tasks * (rank + 1) / ranks;
  CopyCounts counts = run_copy(job, sink, how);
  for (const CompareSink::Difference& d : sink.differences())
    differences_.push_back(cat("exported file ", file_label(*there, d.file), " from byte ", d.offset, " on"));
  return counts.bytes_written;
}

void Roundtrip::conclude(const HostMemory& storage, const HostMemory& gathered) {
  constexpr std::size_t kMost = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(differences_.size(), kMost); i++) text += differences_[i] + '\n';
  Gathered all = world().all_gather_v(std::as_bytes(std::span(text)));
  std::string_view rest(reinterpret_cast<const char*>(all.bytes.data()), all.bytes.size());
  for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1))
    if (report_.differences.size() < kMost) report_.differences.emplace_back(rest.substr(0, end));
  report_.equal = report_.differences.empty();
  i64 most[] = {storage.peak_bytes(), gathered.peak_bytes(), status_bytes("VmHWM")};
  world().all_reduce(most, Reduce::kMax);
  report_.weights_bytes = most[0], report_.gathered_bytes = most[1], report_.peak_rss = most[2];
}

Exit Roundtrip::run() {
  refuse_early();
  ranks_.join();
  i64 processors = default_threads();
  if (threads_ <= 0) threads_ = std::max<i64>(1, processors / world().size());
  Tensor::set_threads(static_cast<int>(threads_));
  hf_ = open_hf_model(source_, model_flags_);
  if (!hf_.has_data()) throw Error(Code::kNotFound, "the folder has no weights to load").file(source_);
  if (std::string text = grid_flags_.note(); !text.empty()) note(flags_, text);
  tell_notes(flags_, hf_);
  if (world().rank() == 0) refuse_unlike_copies(hf_, static_cast<int>(threads_));

  HostMemory storage, gathered;
  PooledMemory pool(gathered);
  LiveModel model(*hf_.map, setup(), world(), storage, pool);
  model.wrap();
  if (checkpoint_)  // refuses what cannot be saved
    FsdpLayout(model.parameters(), hf_.map->model(), model.setup().grid, model.setup().fsdp);
  KeyTable keys = live_keys(model);
  fsdp_flags_.refuse_unmatched(keys.parameters());
  model_ = &model, keys_ = &keys, pool_ = &pool;
  load();
  unshard_all();
  if (checkpoint_) through_checkpoint();
  {
    std::optional<ScratchFolder> scratch;
    if (!output_) scratch.emplace(world());
    std::string folder = output_ ? *output_ : cat(scratch->path(), "/model");
    phase("export", [&] {
      i64 bytes = export_to_folder(model, keys, hf_, folder,
                                   {static_cast<int>(threads_), output_.has_value() && !no_sync_});
      return world().rank() == 0 ? bytes : 0;
    });
    phase("compare", [&] { return compare(folder); });
  }
  report_.device = device_;
  report_.output = output_.value_or(""), report_.checkpoint = checkpoint_.value_or("");
  report_.tensors = hf_.map->sources().size(), report_.parameters = hf_.map->parameter_count();
  conclude(storage, gathered);
  write_roundtrip(flags_, report_, model);
  return report_.equal ? Exit::kOk : Exit::kNo;
}

}  // namespace

Exit roundtrip_command(CommandLine& line) { return Roundtrip(line).run(); }

}  // namespace mckpt
