// The plan of torch_dist against what real ranks handed to a save (test_data/golden/torch_dist and
// families/MODEL/torch_dist.RUN.txt): for the same grid, the same tensors, each in the same boxes, with the same
// items, written by the first of the ranks that hold them; the same objects beside them, or as many. Layers are
// stacked or not as in those runs.
#include "convert/dialects/torch_dist/plan.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "convert/dialects/torch_dist/table.h"
#include "convert/jobs/chunk_side.h"
#include "convert/keys/key_table.h"
#include "core/items/item_cast.h"
#include "core/items/item_run.h"
#include "io/output/output_files.h"
#include "io/sums/sha256.h"
#include "mappings/rule.h"
#include "tests/support/golden_config.h"
#include "tests/support/golden_weights.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace torch_dist_plan_test {

constexpr std::string_view kFolder = MCKPT_TEST_DATA "/golden/";

std::string text_of(std::span<const i64> dims) {
  std::string out;
  for (i64 d : dims) out += cat(out.empty() ? "" : "x", d);
  return out.empty() ? "-" : out;
}

std::map<std::string, GoldenTensor> weights_of(const std::string& model) {
  std::ifstream in(golden_folder(model) + "/tensors.txt");
  std::map<std::string, GoldenTensor> out;
  for (GoldenTensor& t : draw_golden(in)) out[t.name] = std::move(t);
  return out;
}

// The items of a tensor, rounded where the file has float32 and the run bf16.
std::string in_type(DType dtype, const GoldenTensor& t) {
  if (t.dtype != "F32" || dtype != DType::kBF16) return t.bytes;
  std::string out(t.bytes.size() / 2, '\0');
  cast_items({.from = DType::kF32, .via = DType::kF32, .to = dtype},
             reinterpret_cast<const u8*>(t.bytes.data()), reinterpret_cast<u8*>(out.data()),
             std::ssize(out) / 2);
  return out;
}

// The contents of a save: a line for each box, with the rank that writes it, and the modules with extra
// states.
struct Saved {
  Grid grid;
  PipelineOptions pipeline;
  std::map<std::string, std::pair<i64, std::string>>
      boxes;  // "key offsets": rank; type, shapes, digest, cuts
  std::set<std::string> modules;
  std::size_t objects = 0;  // of the modules; 0: the save does not tell
};

Saved read_golden(const std::string& path) {
  std::ifstream in(path);
  Saved out;
  i64 rank = -1;
  for (std::string line; std::getline(in, line);) {
    if (std::sscanf(line.c_str(), "grid tp=%ld cp=%ld ep=%ld dp=%ld pp=%ld", &out.grid.tp, &out.grid.cp,
                    &out.grid.ep, &out.grid.dp, &out.grid.pp) == 5) {
      if (std::size_t at = line.find("first="); at != line.npos)
        out.pipeline.first_layers = std::stol(line.substr(at + 6));
      continue;
    }
    if (line.starts_with("rank ")) {
      rank++;
    } else if (line.starts_with("objects ")) {
      out.objects = std::stoul(line.substr(8));
    } else if (line.starts_with("object ")) {
      out.modules.insert(line.substr(7));
    } else {
      std::istringstream fields(line);
      std::string key, dtype, local, global, at, digest, cuts;
      i64 prepended = 0;
      fields >> key >> dtype >> local >> global >> at >> prepended >> digest >> cuts;
      for (; prepended > 0; prepended--) local = cat("1x", local);
      out.boxes.try_emplace(cat(key, " ", at), rank,
                            cat(dtype, " ", local, " ", global, " ", digest, " ", cuts));
    }
  }
  return out;
}

// The digest of a chunk's items, gathered along the runs of its key, one by one where a run has loops. Items
// without a source are zeros or, in a norm that the model does not have, ones of bf16.
std::string digest_of(const ChunkSide& side, const KeyTable& keys, i64 chunk, const SourceTable& sources,
                      const std::map<std::string, GoldenTensor>& weights) {
  std::size_t bytes = static_cast<std::size_t>(dtype_bytes(side.chunks.dtype(chunk), 1));
  const bool ones = keys.parameter(keys[side.chunks.key(chunk)]).holding->addend == 1;
  std::string items;
  for (const ItemRun& run : side.runs(chunk)) {
    if (run.slot == kPaddingSlot) {
      for (i64 i = 0; i < run.items(); i++) items.append(ones ? "\x80\x3f" : std::string(bytes, '\0'));
      continue;
    }
    const i32 slot = is_copy(run.slot) ? copied_slot(run.slot) : run.slot;
    const std::string from = in_type(side.chunks.dtype(chunk), weights.at(std::string(sources[slot].name)));
    for (i64 i = 0, step = std::max<i64>(1, run.length); i < run.items(); i += step)
      items.append(from, static_cast<std::size_t>(run.at(i)) * bytes, static_cast<std::size_t>(step) * bytes);
  }
  Sha256 sha;
  sha.update({reinterpret_cast<const u8*>(items.data()), items.size()});
  return sha.hex_digest();
}

// The names of all objects of modules, "decoder.layers.mlp.linear_fc1._extra_state/shard_0_3".
std::set<std::string> objects_of(const DcpLayout& layout) {
  std::string metadata;
  layout.write_metadata([&](std::string_view piece) { metadata += piece; });
  std::set<std::string> out;
  constexpr std::string_view kState = "._extra_state/shard_";
  for (std::size_t at = metadata.find(kState); at != metadata.npos; at = metadata.find(kState, at + 1)) {
    std::size_t begin = at, end = at + kState.size();
    while (std::isalnum(metadata[begin - 1]) || metadata[begin - 1] == '.' || metadata[begin - 1] == '_')
      begin--;
    while (std::isdigit(metadata[end]) || metadata[end] == '.' || metadata[end] == '_') end++;
    out.insert(metadata.substr(begin, end - begin));
  }
  return out;
}

Saved planned(const std::string& model, const Grid& grid, const PipelineOptions& pipeline = {}) {
  ModelMap map = golden_map(model);
  std::map<std::string, GoldenTensor> weights = weights_of(model);
  TorchDistRun run;
  run.grid = grid, run.pipeline = pipeline;
  run.run = {vocab_rows(map.model(), map.family(), grid.tp, {VocabChoice::kAuto, 0}), DType::kBF16};
  run.stacked = stacks_layers(map.model(), LayerStacks::kAuto);
  KeyTable keys(map, run.run, torch_dist_split);
  TorchDistPlan plan(keys, run);
  TorchDistChunks chunks(plan);
  ChunkSide side{chunks, &keys};
  std::map<i32, std::vector<std::set<i64>>> begins;  // by key of the layout and axis
  for (i64 c = 0; c < chunks.size(); c++) {
    DcpLayout::Chunk chunk = plan.layout.chunk(c);
    begins[chunk.key].resize(chunk.offsets.size());
    for (std::size_t d = 0; d < chunk.offsets.size(); d++) begins[chunk.key][d].insert(chunk.offsets[d]);
  }
  Saved out{grid, pipeline, {}, {}, 0};
  for (const std::string& object : objects_of(plan.layout)) {
    out.modules.insert(object.substr(0, object.find('/')));
    out.objects++;
  }
  for (i64 c = 0; c < chunks.size(); c++) {
    DcpLayout::Chunk chunk = plan.layout.chunk(c);
    const DcpLayoutKey& key = plan.layout.key(chunk.key);
    std::vector<i64> cuts;
    for (const std::set<i64>& axis : begins[chunk.key]) cuts.push_back(std::ssize(axis));
    bool fresh =
        out.boxes
            .try_emplace(cat(key.name.text, " ", text_of(chunk.offsets)), chunk.rank,
                         cat(dtype_name(key.dtype), " ", text_of(chunk.sizes), " ", text_of(key.shape.dims()),
                             " ", digest_of(side, keys, c, map.sources(), weights), " ", text_of(cuts)))
            .second;
    EXPECT_TRUE(fresh) << key.name.text << " is written twice";
  }
  return out;
}

// The saves, and the models that they are of.
std::map<std::filesystem::path, std::string> golden_saves() {
  std::map<std::filesystem::path, std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(cat(kFolder, "torch_dist"))) {
    const std::string name = entry.path().filename();
    out[entry.path()] = name.substr(0, name.find('.'));
  }
  for (const std::string& model : family_models())
    for (const auto& entry : std::filesystem::directory_iterator(golden_folder(model)))
      if (entry.path().filename().string().starts_with("torch_dist.")) out[entry.path()] = model;
  return out;
}

TEST(TorchDistPlan, WritesWhatRealRanksHandedOver) {
  std::size_t compared = 0;
  for (const auto& [path, model] : golden_saves()) {
    SCOPED_TRACE(path.string());
    Saved golden = read_golden(path);
    Saved mine = planned(model, golden.grid, golden.pipeline);
    EXPECT_EQ(golden.boxes.size(), mine.boxes.size());
    for (const auto& [box, written] : golden.boxes) {
      auto own = mine.boxes.find(box);
      ASSERT_NE(own, mine.boxes.end()) << box;
      EXPECT_EQ(own->second, written) << box;
    }
    if (golden.objects > 0)
      EXPECT_EQ(mine.objects, golden.objects) << listed(mine.modules, 99);
    else
      EXPECT_EQ(mine.modules, golden.modules);
    compared += golden.boxes.size();
  }
  EXPECT_GE(compared, 5109u);
}

TEST(TorchDistPlan, CopiesOfDataAndContextRanksChangeNothing) {
  Grid grid;
  grid.tp = 2, grid.ep = 4;
  grid.dp = smallest_dp(grid);
  Saved small = planned("gpt_oss", grid);
  grid.cp = 2, grid.dp *= 3;
  Saved large = planned("gpt_oss", grid);
  for (auto& [box, written] : small.boxes) written.first = large.boxes.at(box).first;
  EXPECT_EQ(small.boxes, large.boxes);
}

TEST(TorchDistPlan, LayersThatDifferAreNotOneTensor) {
  EXPECT_FALSE(stacks_layers(golden_map("nemotron_h").model(), LayerStacks::kAuto));
  EXPECT_TRUE(stacks_layers(golden_map("llama3").model(), LayerStacks::kAuto));
  EXPECT_FALSE(stacks_layers(golden_map("llama3").model(), LayerStacks::kIndexed));
  std::string told =
      thrown_by([] { stacks_layers(golden_map("deepseek_v3").model(), LayerStacks::kStacked); });
  EXPECT_NE(told.find("layers that differ"), told.npos) << told;
}

}  // namespace torch_dist_plan_test
}  // namespace mckpt::impl
