// ChunkJob against a naive loop: every item of every tensor of a model has a number of its own, a chunk is
// filled with the numbers of its items one by one, and what a job makes of one side has to be the other side
// so filled. Shapes are from small models, none of them square: experts, fused and transposed tensors,
// padding of the vocabulary, norms that are stored less one.
#include "convert/jobs/chunk_jobs.h"

#include <gtest/gtest.h>

#include <cstring>

#include "convert/dialects/fsdp/plan.h"
#include "convert/dialects/fsdp/run.h"
#include "convert/jobs/proof.h"
#include "core/base/text.h"
#include "core/fsdp/strategy.h"
#include "io/copy/engine.h"
#include "io/output/copy_sink.h"
#include "mappings/model/parameter.h"
#include "mappings/rule.h"
#include "tests/support/golden_config.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace chunk_job_test {

// Numbers that all types of the tests hold exactly, also with one added; no two of them alike in a stretch of
// 120 items.
double number_of(i32 tensor, i64 item) { return static_cast<double>((item * 7 + tensor) % 120 + 2); }

void put_number(double value, DType type, u8* to) {
  if (type == DType::kF64) return static_cast<void>(std::memcpy(to, &value, 8));
  float single = static_cast<float>(value);
  if (type == DType::kF32) return static_cast<void>(std::memcpy(to, &single, 4));
  cast_items({DType::kF32, DType::kF32, type, 0, 0}, reinterpret_cast<const u8*>(&single), to, 1);
}

// Chunks one behind the other in file 0.
class MadeChunks final : public ChunkList {
 public:
  struct Entry {
    i32 key;
    std::vector<i64> dims, offsets, sizes;
    DType type;
    i64 at = 0;
  };
  std::vector<Entry> entries;
  i64 bytes = 0;

  void add(i32 key, std::span<const i64> dims, std::span<const i64> offsets, std::span<const i64> sizes,
           DType type) {
    entries.push_back({key,
                       {dims.begin(), dims.end()},
                       {offsets.begin(), offsets.end()},
                       {sizes.begin(), sizes.end()},
                       type,
                       bytes});
    bytes += dtype_bytes(type, Shape(sizes).items());
  }
  i64 size() const override { return std::ssize(entries); }
  i32 key(i64 c) const override { return entries[c].key; }
  Box box(i64 c) const override { return {entries[c].offsets, entries[c].sizes}; }
  std::span<const i64> dims(i64 c) const override { return entries[c].dims; }
  DType dtype(i64 c) const override { return entries[c].type; }
  Place place(i64 c) const override { return {0, entries[c].at, entries[c].type}; }
  std::string name(i64 c) const override { return cat("key ", key(c)); }
};

// Calls visit(chunk's item, coordinate in the tensor) for all items of a box.
template <typename Visit>
void each_item(const MadeChunks::Entry& e, Visit visit) {
  i64 items = Shape(e.sizes).items();
  for (i64 i = 0; i < items; i++) {
    i64 rest = i, stride = 1, item = 0;
    for (std::size_t d = e.sizes.size(); d-- > 0; rest /= e.sizes[d], stride *= e.dims[d])
      item += (e.offsets[d] + rest % e.sizes[d]) * stride;
    visit(i, item);
  }
}

// The chunks filled: boxes of tensors of the model, or what a table says of each item.
std::string filled(const MadeChunks& chunks, const KeyTable* keys) {
  std::string out(static_cast<std::size_t>(chunks.bytes), '\0');
  for (const MadeChunks::Entry& e : chunks.entries) {
    u8* to = reinterpret_cast<u8*>(out.data()) + e.at;
    i64 size = dtype_bytes(e.type, 1);
    if (!keys) {
      each_item(e, [&](i64 i, i64 item) { put_number(number_of(e.key, item), e.type, to + i * size); });
      continue;
    }
    const CheckpointKey& key = (*keys)[e.key];
    for (const ItemRun& run : keys->runs(key, e.offsets, e.sizes))
      for (i64 i = 0; i < run.items(); i++, to += size)
        if (run.slot != kPaddingSlot)
          put_number(number_of(run.slot, run.at(i)) + keys->parameter(key).holding->addend, e.type, to);
  }
  return out;
}

class MemorySink final : public CopySink {
 public:
  explicit MemorySink(i64 bytes) : bytes_(static_cast<std::size_t>(bytes), '?') {}
  void write(i32, i64 offset, std::span<const u8> bytes) override {
    std::memcpy(bytes_.data() + offset, bytes.data(), bytes.size());
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// A store whose file has the bytes of a side; its tensors are plain chunks.
struct SideOnDisk {
  TempFolder folder;
  TableStore store{folder.path()};

  SideOnDisk(const MadeChunks& chunks, const KeyTable* keys) {
    folder.put("f", filled(chunks, keys));
    store.add_file("f", chunks.bytes);
    for (const MadeChunks::Entry& e : chunks.entries) {
      while (std::ssize(store.tensors) <= e.key)
        store.tensors.push_back({cat("tensor ", store.tensors.size()), e.type, {}, {}});
      TableStore::Tensor& t = store.tensors[e.key];
      t.dtype = e.type, t.dims = e.dims;
      t.pieces.push_back({e.offsets, e.sizes, {.file = 0, .offset = e.at, .dtype = e.type}});
    }
  }
};

void expect_filled(const ChunkJob& job, const MadeChunks& to, const KeyTable* keys, const char* what) {
  std::string expected = filled(to, keys);
  for (int threads : {1, 3}) {
    MemorySink sink(to.bytes);
    run_copy(job, sink, {.threads = threads});
    auto at = std::ranges::mismatch(expected, sink.bytes()).in1;
    EXPECT_EQ(at - expected.begin(), std::ssize(expected)) << what;
  }
  i64 bytes = 0;
  for (i64 t = 0; t < job.task_count(); t++) bytes += job.task_bytes(t);
  EXPECT_EQ(bytes, to.bytes) << what;
}

// One model with three ways in which it may be stored.
struct Model {
  HfConfig config;
  ModelMap promised;          // whose names and shapes the map's tensors have
  std::vector<Shape> shapes;  // of the tensors
  ModelMap map;
  RunSetup setup;
  KeyTable parts, whole;  // fused parameters in parts, as ranks of a grid write them; whole, cell after cell
  MadeChunks tensors, shards, cuts;

  Model(const std::string& name, DType tensor_type, DType stored_type)
      : config(golden_config(name)),
        promised(ModelMap::promised(config.model, *config.family)),
        shapes(promised.source_shapes()),
        map(config.model, *config.family, table(tensor_type)),
        setup{vocab_rows(map.model(), map.family(), 2,
                         {VocabChoice::kRows, ceil_div(map.model().vocab, 2) * 2 + 6}),
              {}},
        parts(map, setup, {2, 1}),
        whole(map, setup, {2, 1}, [&](const std::string& key) { return is_parameter(key); }) {
    std::vector<bool> unread(shapes.size());
    for (const UnreadTensor& u : map.unread()) unread[u.tensor] = true;
    for (i32 t = 0; t < map.sources().size(); t++)
      if (!unread[t]) add_cut(tensors, t, shapes[t].dims(), tensor_type, t % 3);
    FsdpRun run;
    run.grid.tp = 2, run.grid.dp = 3;
    run.fsdp.engine = Engine::kV2;  // never cuts a row
    FsdpPlan plan(parts, run_with(run, setup), [](std::vector<ModelParameter>&) {});
    for (i64 c = 0; c < plan.layout.chunk_count(); c++) {
      DcpLayout::Chunk chunk = plan.layout.chunk(c);
      shards.add(plan.table_key[chunk.key], plan.layout.key(chunk.key).shape.dims(), chunk.offsets,
                 chunk.sizes, stored_type);
    }
    for (i32 k = 0; k < whole.size(); k++) add_cut(cuts, k, whole[k].shape.dims(), stored_type, 1);
  }

  SourceTable table(DType type) const {
    SourceTable out;
    for (i32 t = 0; t < promised.sources().size(); t++)
      out.add({promised.sources()[t].name, shapes[t].dims(), type, true});
    return out;
  }
  bool is_parameter(const std::string& key) const {
    return std::ranges::any_of(parts.parameters(), [&](const auto& p) { return p.global_name == key; });
  }
  static FsdpRun run_with(FsdpRun run, const RunSetup& setup) {
    run.run = setup;
    return run;
  }
  // Whole; in rows, of which one chunk has none; or in columns.
  static void add_cut(MadeChunks& to, i32 key, std::span<const i64> dims, DType type, int how) {
    std::size_t d = how == 2 && dims.size() > 1 ? dims.size() - 1 : 0;
    std::vector<i64> offsets(dims.size()), sizes(dims.begin(), dims.end());
    if (how == 0 || dims.empty()) return to.add(key, dims, offsets, sizes, type);
    i64 all = dims[d], first = (all + 2) / 3;
    for (auto [begin, end] : {std::pair(i64{0}, first), {first, first}, {first, all}}) {
      offsets[d] = begin, sizes[d] = end - begin;
      to.add(key, dims, offsets, sizes, type);
    }
  }
};

constexpr const char* kModels[] = {"qwen3_moe", "qwen3_next_mtp", "gpt_oss", "deepseek_v3", "nemotron_h_moe"};

struct Types {
  DType tensors, stored;
};
constexpr Types kTypes[] = {{DType::kF32, DType::kF32},
                            {DType::kBF16, DType::kF32},
                            {DType::kF32, DType::kBF16},
                            {DType::kF16, DType::kF64}};

TEST(ChunkJob, MakesOfEverySideTheOther) {
  i64 padded = 0, less_one = 0;
  for (const char* name : kModels) {
    for (const Types& types : kTypes) {
      // The change of types does not depend on the model: one model goes through all of them.
      if (name != kModels[0] && &types != &kTypes[1]) continue;
      SCOPED_TRACE(cat(name, " ", dtype_name(types.tensors), " ", dtype_name(types.stored)));
      Model m(name, types.tensors, types.stored);
      for (const ModelParameter& p : m.parts.parameters()) {
        less_one += p.holding->addend != 0;
        for (const ItemRun& run : p.holding->runs) padded += run.slot == kPaddingSlot;
      }
      SideOnDisk tensors(m.tensors, nullptr), shards(m.shards, &m.parts), cuts(m.cuts, &m.whole);
      expect_filled(import_job(tensors.store, m.parts, m.shards), m.shards, &m.parts, "tensors -> shards");
      expect_filled(import_job(tensors.store, m.whole, m.cuts), m.cuts, &m.whole, "tensors -> cuts");
      expect_filled(export_job(&shards.store, m.parts, m.shards, m.tensors), m.tensors, nullptr,
                    "shards -> tensors");
      expect_filled(export_job(&cuts.store, m.whole, m.cuts, m.tensors), m.tensors, nullptr,
                    "cuts -> tensors");
      KeyedChunks parts{m.parts, m.shards}, whole{m.whole, m.cuts};
      expect_filled(gather_job(shards.store, parts, whole), m.cuts, &m.whole, "shards -> cuts");
      expect_filled(gather_job(cuts.store, whole, parts), m.shards, &m.parts, "cuts -> shards");
    }
  }
  EXPECT_GT(padded, 0);
  EXPECT_GT(less_one, 0);
}

// Boxes of tensors that no table knows, in every number of dimensions.
TEST(ChunkJob, MovesBoxesOfUnknownTensors) {
  const std::vector<std::vector<i64>> shapes = {{}, {7}, {5, 9}, {3, 5, 4}, {2, 3, 5, 4}, {2, 3, 2, 3, 5}};
  MadeChunks rows, columns;
  for (i32 t = 0; t < static_cast<i32>(shapes.size()); t++) {
    Model::add_cut(rows, t, shapes[t], DType::kF32, 1);
    Model::add_cut(columns, t, shapes[t], DType::kBF16, 2);
  }
  SideOnDisk from_rows(rows, nullptr), from_columns(columns, nullptr);
  expect_filled(reshard_job(from_rows.store, columns), columns, nullptr, "rows -> columns");
  expect_filled(reshard_job(from_columns.store, rows), rows, nullptr, "columns -> rows");
  expect_filled(reshard_job(from_rows.store, rows), rows, nullptr, "rows -> rows");
}

ProofSide side_of_keys(const KeyTable& keys) { return side_of(keys); }

// Between checkpoints every item counts, also of parameters that the model has no tensor for and of padding:
// each has a number of its own here. Keys whose rows depend on the grid are not in question.
TEST(ChunkJob, GathersAllItemsOfKeysThatBothSidesStoreAlike) {
  i64 constant = 0, padded = 0;
  for (const char* name : {"gemma4_ple", "qwen3_moe"}) {
    SCOPED_TRACE(name);
    Model m(name, DType::kBF16, DType::kF32);
    KeyTable one_cell(m.map, m.setup, {1, 1}, [&](const std::string& key) { return m.is_parameter(key); });
    MadeChunks stored, wanted;
    for (i32 k = 0; k < m.whole.size(); k++) {
      if (one_cell.find_alike(m.whole[k]) < 0) continue;
      ASSERT_EQ(one_cell[k].name, m.whole[k].name);
      Model::add_cut(stored, k, m.whole[k].shape.dims(), DType::kF32, k % 3);
      Model::add_cut(wanted, k, m.whole[k].shape.dims(), DType::kBF16, (k + 1) % 2);
      const ModelParameter& p = m.whole.parameter(m.whole[k]);
      constant += p.sources[0] < 0;
      for (const ItemRun& run : p.holding->runs) padded += p.sources[0] >= 0 && run.slot == kPaddingSlot;
    }
    SideOnDisk side(stored, nullptr);
    expect_filled(gather_job(side.store, {m.whole, stored}, {one_cell, wanted}), wanted, nullptr, "gathered");
  }
  EXPECT_GT(constant, 1);
  EXPECT_GT(padded, 1);
}

// More and fewer rows of the vocabulary: a task writes one piece, and one of them answers for the rows that
// are left.
TEST(ChunkJob, GathersAVocabularyOfOtherRows) {
  Model m("qwen3_moe", DType::kF32, DType::kF32);
  RunSetup wider = m.setup;
  wider.vocab_rows += 8;
  KeyTable more(m.map, wider, {2, 1}, [&](const std::string& key) { return m.is_parameter(key); });
  MadeChunks wide;
  for (i32 k = 0; k < more.size(); k++) Model::add_cut(wide, k, more[k].shape.dims(), DType::kF32, 1);
  SideOnDisk cuts(m.cuts, &m.whole), wider_cuts(wide, &more);
  Account up = prove(gather_job(cuts.store, {m.whole, m.cuts}, {more, wide}),
                     {side_of_keys(m.whole), side_of_keys(more)});
  EXPECT_EQ(std::tuple(up.padded, up.unpadded, up.invented), std::tuple(2, 0, 0));
  Account down = prove(gather_job(wider_cuts.store, {more, wide}, {m.whole, m.cuts}),
                       {side_of_keys(more), side_of_keys(m.whole)});
  EXPECT_EQ(std::tuple(down.padded, down.unpadded, down.invented), std::tuple(0, 2, 0));
}

ProofSide side_of_tensors(const Model& m) {
  std::vector<i64> items(static_cast<std::size_t>(m.map.sources().size()), -1);
  for (const MadeChunks::Entry& e : m.tensors.entries) items[e.key] = Shape(e.dims).items();
  return {std::ssize(items), [](i64 t) { return cat("tensor ", t); }, [items](i64 t) { return items[t]; }};
}

// Wrong in one chunk of some items: it is not there, it begins a row late, or it is there twice.
std::vector<MadeChunks> broken(const MadeChunks& sound) {
  std::size_t at = sound.entries.size() / 2;
  while (sound.items(static_cast<i64>(at)) == 0 || sound.entries[at].sizes.empty() ||
         sound.entries[at].sizes[0] < 2)
    at++;
  std::vector<MadeChunks> out(3, sound);
  out[0].entries.erase(out[0].entries.begin() + static_cast<i64>(at));
  out[1].entries[at].offsets[0]++, out[1].entries[at].sizes[0]--;
  out[2].entries.push_back(sound.entries[at]);
  return out;
}

// A vocabulary of 7 rows and one of 9, each in three pieces, of which one is empty.
TEST(ChunkJob, AddsAndLeavesRowsOfResizedTensorsAlone) {
  const i64 dims[2][2] = {{7, 3}, {9, 3}};
  MadeChunks seven, nine;
  Model::add_cut(seven, 0, dims[0], DType::kF32, 1);
  Model::add_cut(nine, 0, dims[1], DType::kF32, 1);
  SideOnDisk from_seven(seven, nullptr), from_nine(nine, nullptr);
  Model m(kModels[0], DType::kF32, DType::kF32);
  FusedTables resized{m.whole, m.whole, {-1}, {true}}, alike{m.whole, m.whole, {-1}, {false}};
  auto side = [](i64 rows) {
    return ProofSide{1, [](i64) { return std::string("vocabulary"); }, [rows](i64) { return 3 * rows; }};
  };
  Account wider = prove(reshard_job(from_seven.store, nine, &resized), {side(7), side(9)});
  EXPECT_EQ(std::tuple(wider.copied, wider.padded, wider.unpadded), std::tuple(1, 1, 0));
  Account narrower = prove(reshard_job(from_nine.store, seven, &resized), {side(9), side(7)});
  EXPECT_EQ(std::tuple(narrower.copied, narrower.padded, narrower.unpadded), std::tuple(1, 0, 1));
  Account same = prove(reshard_job(from_nine.store, nine, &resized), {side(9), side(9)});
  EXPECT_EQ(std::tuple(same.copied, same.padded, same.unpadded), std::tuple(1, 0, 0));
  for (const FusedTables* tables : {&alike, static_cast<FusedTables*>(nullptr)}) {
    EXPECT_NE(thrown_by([&] {
                prove(reshard_job(from_seven.store, nine, tables), {side(7), side(9)});
              }),
              "nothing");
    EXPECT_NE(thrown_by([&] {
                prove(reshard_job(from_nine.store, seven, tables), {side(9), side(7)});
              }),
              "nothing");
  }
  for (const MadeChunks& cut : broken(nine))
    EXPECT_NE(thrown_by([&] {
                prove(reshard_job(from_seven.store, cut, &resized), {side(7), side(9)});
              }),
              "nothing");
}

TEST(ChunkJob, IsProvedUnlessASideIsBroken) {
  for (const char* name : kModels) {
    SCOPED_TRACE(name);
    Model m(name, DType::kF32, DType::kF32);
    SideOnDisk tensors(m.tensors, nullptr), cuts(m.cuts, &m.whole);
    ProofInput in{side_of_tensors(m), side_of_keys(m.whole)}, back{side_of_keys(m.whole), side_of_tensors(m)};
    Account a = prove(import_job(tensors.store, m.whole, m.cuts), in);
    EXPECT_EQ(a.tensors_out, m.whole.size());
    EXPECT_EQ(a.padded > 0, true);
    EXPECT_EQ(a.dropped + a.invented, 0);
    prove(export_job(&cuts.store, m.whole, m.cuts, m.tensors), back);
    for (const MadeChunks& cut : broken(m.cuts)) {
      EXPECT_NE(thrown_by([&] { prove(import_job(tensors.store, m.whole, cut), in); }), "nothing");
      EXPECT_NE(thrown_by([&] { prove(export_job(&cuts.store, m.whole, cut, m.tensors), back); }), "nothing");
    }
    for (const MadeChunks& cut : broken(m.tensors)) {
      SideOnDisk less(cut, nullptr);
      EXPECT_NE(thrown_by([&] { prove(import_job(less.store, m.whole, m.cuts), in); }), "nothing");
      EXPECT_NE(thrown_by([&] { prove(export_job(&cuts.store, m.whole, m.cuts, cut), back); }), "nothing");
    }
  }
}

TEST(ChunkJob, RefusesPartsOfSeveralTypes) {
  Model m("qwen3_dense", DType::kF32, DType::kF32);
  MadeChunks mixed = m.cuts;
  for (MadeChunks::Entry& e : mixed.entries)
    if (m.whole[e.key].name == "decoder.layers.0.self_attention.linear_qkv.weight") {
      e.type = DType::kBF16;
      break;
    }
  EXPECT_EQ(thrown_by([&] { export_job(nullptr, m.whole, mixed, m.tensors); }).substr(0, 6), "MC0105");
}

// A store of tensors whose bytes nobody reads.
TableStore store_of(const MadeChunks& chunks, const TempFolder& folder) {
  TableStore store(folder.path());
  store.add_file("f", chunks.bytes);
  for (const MadeChunks::Entry& e : chunks.entries) {
    while (std::ssize(store.tensors) <= e.key)
      store.tensors.push_back({cat("tensor ", store.tensors.size()), e.type, {}, {}});
    TableStore::Tensor& t = store.tensors[e.key];
    t.dims = e.dims;
    t.pieces.push_back({e.offsets, e.sizes, {.file = 0, .offset = e.at, .dtype = e.type}});
  }
  return store;
}

// Items that do not begin with a byte are copied as the bytes of the same box, or not at all: neither runs of
// keys nor rows that one side alone has are counted in bytes.
TEST(ChunkJob, MovesNoItemsThatAreSmallerThanAByte) {
  const TempFolder folder;
  const std::string refusal = "elements smaller than a byte are in other pieces on the two sides";
  // The map of a model takes no tensors of these types, and no job of keys casts to them: so the chunks alone
  // are of them, and the jobs are made here.
  Model m("qwen3_dense", DType::kF32, DType::kF32);
  int types = 0;
  for (i32 type = 0; type < static_cast<i32>(DType::kCount); type++) {
    const DType small = static_cast<DType>(type);
    if (dtype_info(small).bits % 8 == 0) continue;
    SCOPED_TRACE(dtype_name(small));
    types++;
    auto refused = [&](const ChunkJob& job) {
      i64 count = 0;
      for (i64 t = 0; t < job.task_count(); t++)
        count += thrown_by([&] { job.outline(t); }).find(refusal) != std::string::npos;
      return count;
    };
    // Keys on one of the sides; a task for each chunk, of all chunks of the other.
    MadeChunks tensors = m.tensors, cuts = m.cuts;
    for (MadeChunks* chunks : {&tensors, &cuts})
      for (MadeChunks::Entry& e : chunks->entries) e.type = small;
    auto refused_chunks = [&](const ChunkSide& from, const ChunkSide& to) {
      const i64 tasks = to.chunks.size();
      std::vector<i32> own, all(static_cast<std::size_t>(from.chunks.size()));
      for (i32 c = 0; c < tasks; c++) own.push_back(c);
      return refused(ChunkJob({from,
                               to,
                               {Grouped(own, tasks), std::vector<i32>(own.size()), Grouped(all, 1),
                                std::vector<ItemCast>(own.size(), no_cast(small))}}));
    };
    auto with_items = [](const MadeChunks& chunks) {
      return std::ranges::count_if(chunks.entries, [](const auto& e) { return Shape(e.sizes).items() > 0; });
    };
    EXPECT_EQ(refused_chunks({cuts, &m.whole}, {tensors}), with_items(tensors));
    EXPECT_EQ(refused_chunks({tensors}, {cuts, &m.whole}), with_items(cuts));
    EXPECT_EQ(refused_chunks({cuts, &m.whole}, {cuts, &m.whole}), with_items(cuts));

    // The same box has one move, of its bytes.
    MadeChunks seven, nine, behind;
    seven.add(0, std::vector<i64>{7, 8}, std::vector<i64>{0, 0}, std::vector<i64>{7, 8}, small);
    nine.add(0, std::vector<i64>{9, 8}, std::vector<i64>{0, 0}, std::vector<i64>{7, 8}, small);
    behind.add(0, std::vector<i64>{9, 8}, std::vector<i64>{7, 0}, std::vector<i64>{2, 8}, small);
    const TableStore of_seven = store_of(seven, folder), of_nine = store_of(nine, folder),
                     of_behind = store_of(behind, folder);
    FusedTables resized{m.whole, m.whole, {-1}, {true}};
    const ChunkJob same = reshard_job(of_seven, seven), wider = reshard_job(of_seven, nine, &resized);
    for (const ChunkJob* job : {&same, &wider}) {
      const CopyTask task = job->outline(0);
      EXPECT_EQ(task.cast.from, DType::kU8);
      ASSERT_EQ(task.plan.destination_count(), 1);
      EXPECT_EQ(task.plan.destination(0).items, dtype_bytes(small, 56));
    }
    // Rows that are new, and rows that are left.
    EXPECT_EQ(refused(reshard_job(of_seven, behind, &resized)), 1);
    MadeChunks both = nine;
    both.add(0, behind.entries[0].dims, behind.entries[0].offsets, behind.entries[0].sizes, small);
    const TableStore of_both = store_of(both, folder);
    EXPECT_EQ(refused(reshard_job(of_both, seven, &resized)), 1);
  }
  EXPECT_GT(types, 0);
}

TEST(ChunkJob, WritesNextToEachOtherWhatIsNextToEachOther) {
  Model m("qwen3_moe", DType::kF32, DType::kF32);
  MadeChunks backwards = m.tensors;
  std::ranges::reverse(backwards.entries);
  ChunkJob job = export_job(nullptr, m.whole, m.cuts, backwards);
  i64 last = -1;
  for (i64 t = 0; t < job.task_count(); t++)
    for (i32 c : job.targets_of(t)) {
      EXPECT_GE(backwards.entries[c].at, last);
      last = backwards.entries[c].at;
    }
}

}  // namespace chunk_job_test
}  // namespace mckpt::impl
