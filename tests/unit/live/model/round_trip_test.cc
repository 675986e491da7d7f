// Loading, saving and exporting every family: each rank's weights against the files, read along the rules;
// what is exported against the files, bit by bit.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "convert/compare/differences/compare_sink.h"
#include "convert/dialects/fsdp/plan.h"
#include "convert/dialects/fsdp/run.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/keys/key_table.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/pattern_fault.h"
#include "io/copy/engine.h"
#include "io/dcp/keys/key.h"
#include "io/output/output_files.h"
#include "live/device/device.h"
#include "live/load/block_loader.h"
#include "live/load/load.h"
#include "live/model/all_chunks.h"
#include "live/model/check.h"
#include "live/model/group.h"
#include "live/save/export.h"
#include "live/save/save.h"
#include "mappings/model/parameter.h"
#include "tests/support/throws.h"
#include "tests/unit/live/counting_comm.h"
#include "tests/unit/live/golden_source.h"
#include "tests/unit/live/live_rank.h"

namespace mckpt::impl {
namespace {

struct Case {
  Grid grid;
  Strategy strategy;
};

constexpr Grid kGrids[] = {
    {.tp = 2, .ep = 4}, {.ep = 8}, {.tp = 2}, {.tp = 4, .ep = 2}, {.tp = 2, .cp = 2, .ep = 2}};

std::string first_of(const std::vector<LiveCheck::Difference>& differences) {
  if (differences.empty()) return "";
  const LiveCheck::Difference& d = differences[0];
  return cat(d.what, " of ", d.parameter, " from item ", d.item, " on, and ", differences.size() - 1,
             " more");
}

// All that the rank has: stored weights, and the values of every module.
void expect_held_right(const GoldenSource& source, LiveModel& model) {
  LiveCheck check(model, *source.store);
  check.check_stored();
  for (i32 module : model.sharded_modules()) {
    model.unshard(module);
    check.check_live(module);
    model.reshard(module);
  }
  EXPECT_EQ(first_of(check.differences()), "");
  EXPECT_GE(check.parameters(), std::ssize(model.parameters()));
}

// The export equals the source, bit by bit, and all of it.
void expect_exported_right(const GoldenSource& source, const LiveModel& model, const KeyTable& keys,
                           i64 memory_bytes) {
  TensorPlaces places = places_in(*source.store, *source.map);
  NamedChunks exported(*source.store, *source.store);
  CompareSink sink(*source.store, exported, CompareSink::Places::kFirst);
  AllChunks holders(model, keys);
  PlacedTensors tensors(keys.map(), places);
  ChunkJob plan = live_export_job(keys, holders, tensors);
  LiveExportCounts counts =
      export_model(model, keys, holders, plan, sink, {.memory_bytes = memory_bytes, .writers = 2});
  EXPECT_EQ(sink.differences().size(), 0u);
  i64 bytes[] = {counts.bytes_written, counts.bytes_received};
  world().all_reduce(bytes, Reduce::kSum);
  i64 written = 0, stored = 0;
  for (i64 t = 0; t < plan.task_count(); t++) {
    const TensorPlaces::Place& p =
        places.tensors[static_cast<std::size_t>(tensors.key(plan.targets_of(t)[0]))];
    written += dtype_bytes(p.dtype, p.shape.items());
    stored += dtype_bytes(plan.cast_of(t).from, p.shape.items());
    const CopyTask task = plan.task(t);
    for (const PlannedMove& m : task.plan.moves())  // what is not written is sent as well, to be compared
      if (m.move.kind == MoveKind::kEqual) stored += dtype_bytes(task.cast.from, m.move.items());
  }
  EXPECT_EQ(bytes[0], written);
  EXPECT_EQ(bytes[1], stored);  // every byte crosses once
}

// Loads, looks, exports; what that throws.
std::string round_trip(const GoldenSource& source, const LiveSetup& setup, i64 memory_bytes = 64 << 20) {
  SCOPED_TRACE(cat(source.name, " ", to_string(setup.grid), " ", strategy_name(setup.fsdp.strategy)));
  return thrown_by([&] {
    LiveRank rank(*source.map, setup);
    rank.model.wrap();
    KeyTable keys = live_keys(rank.model);
    load_from_model(rank.model, keys, *source.store, {});
    expect_held_right(source, rank.model);
    expect_exported_right(source, rank.model, keys, memory_bytes);
  });
}

TEST(LiveRoundTrip, EveryFamilyOnEveryGrid) {
  std::map<std::string, int> outcomes;
  int number = 0;
  for (const std::string& name : golden_models()) {
    GoldenSource source(name);
    for (const Grid& grid : kGrids) {
      Strategy strategy = kStrategies[number++ % 4];
      LiveSetup setup = bf16_setup(*source.map, over_world(grid), strategy);
      outcomes[round_trip(source, setup, number % 3 == 0 ? 1 << 20 : 64 << 20).substr(0, 6)]++;
    }
  }
  // A rank's part that ends inside a row cannot be held by the real tool either, nor can what does not
  // divide.
  std::map<std::string, int> want = {{"nothin", 125}, {"MC0204", 10}, {"MC2007", 5}};
  EXPECT_EQ(outcomes, want);
}

// Each on one grid, in turn the next that can hold it: what differs between grids is in the rules, which
// families share. With MCKPT_AT_LENGTH each on all of them.
TEST(LiveRoundTrip, TheOtherFamilies) {
  std::size_t number = 0;
  if (std::getenv("MCKPT_AT_LENGTH")) {
    std::map<std::string, int> outcomes;
    for (const std::string& name : family_models()) {
      GoldenSource source(name);
      for (const Grid& grid : kGrids) {
        LiveSetup setup = bf16_setup(*source.map, over_world(grid), kStrategies[number++ % 4]);
        outcomes[round_trip(source, setup).substr(0, 6)]++;
      }
    }
    std::map<std::string, int> want = {{"nothin", 117}, {"MC0203", 4}, {"MC0204", 43}, {"MC2007", 1}};
    EXPECT_EQ(outcomes, want);
    return;
  }
  for (const std::string& name : family_models()) {
    GoldenSource source(name);
    std::string outcome;
    for (std::size_t tries = 0; tries < std::size(kGrids) && outcome != "nothing"; tries++) {
      const Grid& grid = kGrids[number++ % std::size(kGrids)];
      outcome = round_trip(source, bf16_setup(*source.map, over_world(grid), kStrategies[number % 4]));
    }
    // Its rows have 40 items, which the parts of none of these grids hold whole.
    const bool narrow = name == "gemma4_audio_a";
    EXPECT_EQ(outcome.substr(0, 6), narrow ? "MC0204" : "nothin") << name << ": " << outcome;
  }
}

TEST(LiveRoundTrip, EveryStrategyWithInstances) {
  const Case cases[] = {
      {{.hsdp = 2}, Strategy::kOptim},
      {{.hsdp = 2}, Strategy::kOptimGrads},
      {{.hsdp = 2}, Strategy::kOptimGradsParams},
      {{.hsdp = 2, .outer = HsdpOuter::kShard}, Strategy::kOptimGradsParams},
      {{.tp = 2, .hsdp = 2}, Strategy::kOptimGradsParams},  // 2 x 2
      {{.tp = 2, .ep = 2, .hsdp = 2}, Strategy::kOptimGradsParams},
      {{.tp = 2, .hsdp = 2, .outer = HsdpOuter::kShard}, Strategy::kOptimGradsParams},
      {{.tp = 2, .ep = 2, .etp = 2}, Strategy::kOptimGradsParams},
      {{.hsdp = 2}, Strategy::kNoShard},
  };
  for (const char* name : {"qwen3_moe", "deepseek_v3_even", "nemotron_h_moe", "gpt_oss"}) {
    GoldenSource source(name);
    for (const Case& c : cases)
      EXPECT_EQ(round_trip(source, bf16_setup(*source.map, over_world(c.grid), c.strategy)), "nothing")
          << name << " " << to_string(over_world(c.grid));
  }
}

TEST(LiveRoundTrip, PredictionLayersOverContextParallelRanks) {
  for (const char* name : {"qwen3_next_mtp", "qwen3_5_moe_mtp"}) {
    GoldenSource source(name);
    EXPECT_EQ(round_trip(source, bf16_setup(*source.map, over_world({.tp = 2, .cp = 2}), kStrategies[3])),
              "nothing");
  }
}

TEST(LiveRoundTrip, WithoutMainWeights) {
  for (const char* name : {"qwen3_moe", "nemotron_h"}) {
    GoldenSource source(name);
    LiveSetup setup = bf16_setup(*source.map, over_world({.tp = 2}), Strategy::kOptimGradsParams);
    setup.main_dtype.reset();
    setup.run.params_dtype.reset();  // each parameter has its source's type
    EXPECT_EQ(round_trip(source, setup), "nothing");
  }
}

TEST(LiveRoundTrip, ShapesAreExchangedInOneCollective) {
  GoldenSource source("qwen3_moe");
  HostDevice device;
  CountingComm counted(world());
  LiveModel model(*source.map, bf16_setup(*source.map, over_world({.tp = 2, .ep = 4}), kStrategies[3]),
                  counted, device, device.weights());
  model.wrap();
  int before = counted.gathers;
  load_from_model(model, live_keys(model), *source.store, {});
  EXPECT_EQ(counted.gathers, before + 1);
}

TEST(LiveRoundTrip, UnshardedWeightsAreNotLoadedOver) {
  GoldenSource source("qwen3_dense");
  LiveRank rank(*source.map, bf16_setup(*source.map, over_world({.tp = 2}), Strategy::kOptim));
  LiveModel& m = rank.model;
  m.wrap();
  KeyTable keys = live_keys(m);
  load_from_model(m, keys, *source.store, {});
  i32 layer = m.modules().find("decoder.layers.0");
  m.unshard(layer);
  std::string refused = thrown_by([&] { load_from_model(m, keys, *source.store, {}); });
  EXPECT_NE(refused.find("cannot be loaded while"), refused.npos) << refused;
  m.reshard(layer);
  load_from_model(m, keys, *source.store, {});
}

TEST(LiveRoundTrip, RanksThatDoNotAgreeAreTold) {
  GoldenSource source("qwen3_dense");
  LiveSetup setup = bf16_setup(*source.map, over_world({}), kStrategies[3]);
  setup.fsdp.transformer_units = world().rank() != 3;
  LiveRank rank(*source.map, setup);
  rank.model.wrap();
  std::string refused =
      thrown_by([&] { load_from_model(rank.model, live_keys(rank.model), *source.store, {}); });
  EXPECT_NE(refused.find(world().rank() == 3 ? "rank 0 and this rank" : "rank 3 and this rank"), refused.npos)
      << refused;
}

TEST(LiveRoundTrip, ExportsWhatMainWeightsAreNow) {
  GoldenSource source("qwen3_dense");
  LiveRank rank(*source.map, bf16_setup(*source.map, over_world({.tp = 2}), kStrategies[3]));
  LiveModel& m = rank.model;
  m.wrap();
  KeyTable keys = live_keys(m);
  load_from_model(m, keys, *source.store, {});
  i32 norm = parameter_named(m, "decoder.final_layernorm.weight");
  constexpr float kNew = 0.7421875f;  // a bf16 value
  if (std::optional<Tensor> shard = m.stored_shard(norm)) {
    std::span<u8> bytes = shard->facts().bytes;
    for (std::size_t i = 0; i < bytes.size(); i += 4) std::memcpy(bytes.data() + i, &kNew, 4);
  }
  m.refresh();
  m.unshard(0);
  for (u8 byte = 0; u8 got : m.tensor(norm).facts().bytes) EXPECT_EQ(got, byte++ % 2 == 0 ? 0x3e : 0x3f);
  m.reshard(0);
  NamedChunks exported(*source.store, *source.store);
  CompareSink sink(*source.store, exported, CompareSink::Places::kFirst);
  TensorPlaces places = places_in(*source.store, *source.map);
  AllChunks holders(m, keys);
  PlacedTensors tensors(keys.map(), places);
  export_model(m, keys, holders, live_export_job(keys, holders, tensors), sink);
  i64 differences = std::ssize(sink.differences());
  world().all_reduce({&differences, 1}, Reduce::kSum);
  EXPECT_EQ(differences, 1);
}

TEST(LiveCheck, NamesWhatIsNotAsTheSourceSays) {
  GoldenSource source("qwen3_dense");
  LiveRank rank(*source.map, bf16_setup(*source.map, over_world({.tp = 2}), kStrategies[3]));
  LiveModel& m = rank.model;
  m.wrap();
  load_from_model(m, live_keys(m), *source.store, {});
  i32 changed = parameter_named(m, "decoder.layers.1.mlp.linear_fc2.weight");
  std::optional<Tensor> shard = m.stored_shard(changed);
  if (shard) shard->facts().bytes[4 * 3 + 3] ^= 1;  // its fourth item
  LiveCheck check(m, *source.store);
  check.check_stored();
  ASSERT_EQ(check.differences().size(), shard ? 1u : 0u);
  i64 first = m.seat(changed).group->stored_items_of(m.seat(changed).member).begin;
  if (shard) {
    EXPECT_EQ(check.differences()[0].parameter, "decoder.layers.1.mlp.linear_fc2.weight");
    EXPECT_EQ(check.differences()[0].item, first + 3);
  }
  m.refresh();
  i32 layer = m.modules().find("decoder.layers.1");
  m.unshard(layer);
  check.check_live(layer);
  EXPECT_EQ(check.differences().back().what, "live values");
  m.reshard(layer);
}

// libtorch's CPU side alone: what is loaded needs no driver. (The CPU side of a wheel with CUDA names the run
// time.)
TEST(TorchModule, LoadsNeitherTheDriverNorTheCudaSide) {
  Tensor::meta(DType::kBF16, Shape{2});
  std::ifstream maps("/proc/self/maps");
  bool torch = false;
  for (std::string line; std::getline(maps, line);) {
    torch |= line.find("libtorch_cpu.so") != line.npos;
    for (const char* library : {"libcuda.so", "libtorch_cuda", "libc10_cuda", "libcublas", "libnccl"})
      EXPECT_EQ(line.find(library), line.npos) << line;
  }
  EXPECT_TRUE(torch);
}

// The chunks of a checkpoint that all ranks write together.
void save(const LiveModel& model, const KeyTable& keys, const std::string& folder) {
  FsdpRun run = run_of(model);
  run.fsdp.saved = true;
  FsdpPlan plan(keys, run, model.setup().adjust);
  ChunkJob job = save_job(model, keys, plan.layout, plan.table_key);
  std::optional<OutputFiles> out;
  if (world().rank() == 0) out.emplace(folder, plan.layout.files());
  world().barrier();
  if (world().rank() != 0) out.emplace(folder, plan.layout.files(), OutputFiles::Begin::kGoOn);
  run_copy(job, *out, {});
  if (world().rank() == 0) {
    std::ofstream metadata(folder + "/.metadata", std::ios::binary);
    plan.layout.write_metadata([&](std::string_view piece) { metadata << piece; });
  }
  world().barrier();
}

void load_saved(LiveModel& model, const std::string& folder, const LiveSetup& saved) {
  std::unique_ptr<Store> store = open_store(folder);
  NameSet<std::string> names;
  for (i64 t = 0; t < store->tensor_count(); t++) names.insert(*model_key(store->name(t)));
  KeyTable stored(model.map(), {saved.run.vocab_rows, std::nullopt, saved.run.groups},
                  {saved.grid.tp, saved.grid.etp},
                  [&](const std::string& name) { return names.contains(name); });
  load_from_checkpoint(model, live_keys(model), *store, stored, StoredChunks(*store, stored), {});
}

TEST(LiveRoundTrip, SavedCheckpointsAreLoadedOnAnotherGrid) {
  const Case cases[] = {{{.tp = 2, .ep = 4}, Strategy::kOptimGradsParams},
                        {{.ep = 2}, Strategy::kOptim},
                        {{.cp = 2, .hsdp = 2}, Strategy::kOptimGradsParams},
                        {{.tp = 2}, Strategy::kNoShard}};
  int loaded = 0;
  for (const char* name : {"qwen3_moe", "nemotron_h", "qwen3_next", "gpt_oss", "tiny_moe1"}) {
    GoldenSource source(name);
    SharedFolder folder;
    LiveRank from(*source.map, bf16_setup(*source.map, over_world(cases[0].grid), cases[0].strategy));
    from.model.wrap();
    KeyTable keys = live_keys(from.model);
    load_from_model(from.model, keys, *source.store, {});
    save(from.model, keys, folder.path());
    for (const Case& to : cases) {
      SCOPED_TRACE(cat(name, " ", to_string(over_world(to.grid))));
      LiveRank rank(*source.map, bf16_setup(*source.map, over_world(to.grid), to.strategy));
      if (thrown_by([&] { rank.model.wrap(); }).starts_with("MC0204")) continue;
      load_saved(rank.model, folder.path(), from.model.setup());
      expect_held_right(source, rank.model);
      loaded++;
    }
    world().barrier();
  }
  EXPECT_GE(loaded, 17);
}

// nemotron_h of the golden data with other layers.
std::string hybrid_config(std::string_view layers) {
  std::string text = golden_config_text("nemotron_h");
  std::size_t begin = text.find("\"layers_block_type\""), end = text.find(']', begin);
  return text.replace(begin, end + 1 - begin, cat("\"hybrid_override_pattern\": \"", layers, "\""));
}

TEST(LiveRoundTrip, AHybridModelInGroups) {
  GoldenSource source("[*-]M[M*-]", hybrid_config("*-MM*-"));
  LayerPattern pattern = parse_pattern("[*-]M[M*-]", Dialect::kGrouped);
  SharedFolder folder;
  LiveSetup setup = bf16_setup(*source.map, over_world({.tp = 2, .cp = 2}), kStrategies[3]);
  setup.run.groups = &pattern;
  LiveRank rank(*source.map, setup);
  LiveModel& m = rank.model;
  m.wrap();
  std::vector<std::string> units;
  for (i32 module : m.sharded_modules()) units.push_back(m.modules()[module].name);
  // Layers are units wherever they stand.
  std::vector<std::string> want = {"",
                                   "decoder.layers.0.layers.0",
                                   "decoder.layers.0.layers.1",
                                   "decoder.layers.1",
                                   "decoder.layers.2.layers.0",
                                   "decoder.layers.2.layers.1",
                                   "decoder.layers.2.layers.2"};
  EXPECT_EQ(units, want);
  KeyTable keys = live_keys(m);
  EXPECT_GE(keys.find("decoder.layers.2.layers.2.mlp.linear_fc2.weight"), 0);
  EXPECT_EQ(keys.find("decoder.layers.5.mlp.linear_fc2.weight"), -1);
  load_from_model(m, keys, *source.store, {});
  expect_held_right(source, m);
  expect_exported_right(source, m, keys, 64 << 20);
  save(m, keys, folder.path());
  std::unique_ptr<Store> store = open_store(folder.path());
  std::set<i64> numbers;
  for (i64 t = 0; t < store->tensor_count(); t++)
    if (std::string name(store->name(t)); name.starts_with("model.module.decoder.layers."))
      numbers.insert(std::stoll(name.substr(28)));
  EXPECT_EQ(numbers, (std::set<i64>{0, 1, 2}));  // logical layers
  m.drop();
  load_saved(m, folder.path(), setup);
  expect_held_right(source, m);
  world().barrier();
  LayerPattern other = parse_pattern("[*-]MM[-*]", Dialect::kGrouped);
  setup.run.groups = &other;
  std::string refused = thrown_by([&] { LiveRank unlike(*source.map, setup); });
  EXPECT_NE(refused.find("not those of the model"), refused.npos) << refused;
}

}  // namespace
}  // namespace mckpt::impl
