// Every golden save of Megatron-FSDP is recognised with the parameters of its run, from names, boxes and
// writers alone; and one boundary that is a row off is found, with its name.
#include "convert/dialects/fsdp/packed_by.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "io/store/open/format_ids.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace packed_by_test {

namespace fs = std::filesystem;

// "96x192" as numbers; "-" and "" are none.
std::vector<i64> sizes_of(const std::string& text) {
  std::vector<i64> out;
  std::istringstream in(text);
  for (std::string n; std::getline(in, n, 'x');) out.push_back(std::stoll(n));
  return out;
}

// A line of the file: "key type shape digest offsets sizes", or "nothing" instead of the box.
struct Line {
  std::string key, dtype;
  std::vector<i64> dims, offsets, sizes;
  bool nothing = false;
};

struct Save {
  std::map<std::string, std::string> run;
  std::vector<std::vector<Line>> ranks;
};

Line read_line(std::istringstream& words, std::string key) {
  Line line;
  std::string shape, digest, offsets, sizes;
  words >> line.dtype >> shape >> digest >> offsets >> sizes;
  line.key = std::move(key);
  line.dims = sizes_of(shape == "-" || shape == "scalar" ? "" : shape);
  line.nothing = offsets == "nothing";
  if (!line.nothing) line.offsets = sizes_of(offsets), line.sizes = sizes_of(sizes);
  return line;
}

// A file of golden/fsdp has the lines of each rank behind "rank 0"; one of golden/families all lines first,
// and "rank 0-28 30": the numbers of the rank's lines.
Save read_save(const fs::path& path) {
  std::ifstream file(path);
  Save out;
  std::vector<Line> lines;
  for (std::string text; std::getline(file, text);) {
    std::istringstream words(text);
    std::string key;
    words >> key;
    if (key == "model" || key == "saved") continue;
    if (key == "run") {
      for (std::string word; words >> word;)
        out.run[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    } else if (key == "rank") {
      out.ranks.emplace_back();
      for (std::string range; !lines.empty() && words >> range;) {
        const std::size_t dash = range.find('-');
        const std::size_t first = std::stoul(range);
        const std::size_t last = dash == range.npos ? first : std::stoul(range.substr(dash + 1));
        for (std::size_t i = first; i <= last; i++) out.ranks.back().push_back(lines.at(i));
      }
    } else {
      Line line = read_line(words, std::move(key));
      out.ranks.empty() ? lines.push_back(std::move(line)) : out.ranks.back().push_back(std::move(line));
    }
  }
  return out;
}

// The checkpoint that the ranks write: a box that several hold is written by the one with the least load so
// far, as in torch's planner. Names in the order of planner_data.
std::unique_ptr<TableStore> saved(const Save& save, const TempFolder& folder) {
  auto out = std::make_unique<TableStore>(folder.path());
  out->set_format(Format::kDcpFsdpDtensor);
  std::map<std::string, std::size_t> number;
  for (std::size_t r = save.ranks.size(); r-- > 0;)
    for (const Line& l : save.ranks[r]) {
      auto [at, fresh] = number.try_emplace(l.key, out->tensors.size());
      DType dtype = l.dtype == "float32" ? DType::kF32 : DType::kBF16;
      if (!fresh) continue;
      TableStore::Tensor& made = out->tensors.emplace_back();
      made.name = "model.module." + l.key;
      made.dtype = dtype;
      made.dims = l.dims;
    }
  std::map<std::pair<std::string, std::vector<i64>>, std::vector<i32>> holders;
  std::vector<std::pair<std::string, std::vector<i64>>> order;
  for (std::size_t r = 0; r < save.ranks.size(); r++)
    for (const Line& l : save.ranks[r]) {
      if (l.nothing) continue;
      std::vector<i32>& of = holders[{l.key, l.offsets}];
      if (of.empty()) order.emplace_back(l.key, l.offsets);
      of.push_back(static_cast<i32>(r));
    }
  std::vector<i64> load(save.ranks.size());
  for (const auto& box : order) {
    const std::vector<i32>& of = holders[box];
    i32 writer = *std::ranges::min_element(of, [&](i32 a, i32 b) { return load[a] < load[b]; });
    TableStore::Tensor& t = out->tensors[number[box.first]];
    load[writer] += Shape(t.dims).items();
    for (const Line& l : save.ranks[writer])
      if (l.key == box.first && l.offsets == box.second) {
        TableStore::Piece& piece = t.pieces.emplace_back();
        piece.offsets = l.offsets, piece.sizes = l.sizes, piece.rank = writer;
      }
  }
  return out;
}

std::vector<fs::path> golden_saves() {
  std::vector<fs::path> out;
  for (const fs::path& folder :
       {fs::path(MCKPT_TEST_DATA "/golden/fsdp"), fs::path(MCKPT_TEST_DATA "/golden/families")})
    for (const fs::directory_entry& e : fs::recursive_directory_iterator(folder))
      if (e.path().parent_path() == folder ? folder.filename() == "fsdp"
                                           : e.path().filename().string().starts_with("fsdp."))
        out.push_back(e.path());
  std::ranges::sort(out);
  return out;
}

i64 number(const Save& save, const std::string& name, i64 otherwise) {
  auto at = save.run.find(name);
  return at == save.run.end() ? otherwise : std::stoll(at->second);
}

bool has_layers(const TableStore& store, bool mamba) {
  return std::ranges::any_of(store.tensors, [&](const TableStore::Tensor& t) {
    return t.name.find("decoder.layers.") != t.name.npos &&
           (t.name.find(mamba ? ".mixer." : ".mlp.") != t.name.npos);
  });
}

TEST(PackedBy, RecognisesEveryGoldenSave) {
  i64 seen = 0;
  for (const fs::path& path : golden_saves()) {
    SCOPED_TRACE(path.string());
    const TempFolder folder;
    const Save save = read_save(path);
    const std::unique_ptr<TableStore> store = saved(save, folder);
    const std::optional<PackedBy> by = packed_by(*store);
    ASSERT_TRUE(by);
    EXPECT_TRUE(by->fits()) << to_string(*by) << "\n" << disagreement_text(*store, *by);
    const PackingGuess& g = by->guess;
    EXPECT_EQ(g.engine, Engine::kV1);
    EXPECT_EQ(g.grid.tp, number(save, "tp", 1));
    EXPECT_EQ(g.grid.ep, number(save, "ep", 1));
    EXPECT_EQ(g.grid.dp, number(save, "dp", 1));
    const Strategy strategy = strategy_from_name(save.run.at("strategy"));
    if (save.ranks.size() == 1) {
      EXPECT_TRUE(by->no_trace);
      seen++;
      continue;
    }
    EXPECT_TRUE(std::ranges::count(by->strategies(), strategy)) << to_string(*by);
    if (strategy != Strategy::kNoShard) {
      EXPECT_EQ(g.grid.hsdp, number(save, "hsdp", 1));
      const bool shard = g.grid.hsdp > 1 && g.grid.outer == HsdpOuter::kShard;
      EXPECT_EQ(shard, number(save, "hsdp", 1) > 1 && save.run.at("outer") == "shard");
    }
    const bool units = strategy == Strategy::kOptimGradsParams;
    EXPECT_EQ(units && has_layers(*store, true), std::ranges::count(by->units, "MambaLayer") > 0);
    EXPECT_EQ(units && has_layers(*store, false), std::ranges::count(by->units, "TransformerLayer") > 0)
        << to_string(*by);
    seen++;
  }
  EXPECT_EQ(seen, 65);
}

// Gives one row of a box to its neighbour.
std::string move_a_boundary(TableStore& store) {
  for (TableStore::Tensor& t : store.tensors)
    for (TableStore::Piece& a : t.pieces)
      for (TableStore::Piece& b : t.pieces) {
        if (a.sizes.empty() || a.sizes[0] < 2 || a.offsets[0] + a.sizes[0] != b.offsets[0]) continue;
        if (!std::equal(a.offsets.begin() + 1, a.offsets.end(), b.offsets.begin() + 1)) continue;
        a.sizes[0]--, b.sizes[0]++, b.offsets[0]--;
        return t.name;
      }
  return "";
}

TEST(PackedBy, NamesTheParameterWithABoundaryThatIsARowOff) {
  i64 found = 0;
  for (const fs::path& path : golden_saves()) {
    SCOPED_TRACE(path.string());
    const TempFolder folder;
    const std::unique_ptr<TableStore> store = saved(read_save(path), folder);
    const std::string moved = move_a_boundary(*store);
    if (moved.empty() || path.string().find("tp2") != std::string::npos) continue;
    const std::optional<PackedBy> by = packed_by(*store);
    ASSERT_TRUE(by);
    EXPECT_EQ(by->result.agreeing, by->result.parameters - 1) << to_string(*by);
    ASSERT_TRUE(by->result.first);
    EXPECT_EQ(store->name(by->result.first->tensor), moved);
    found++;
  }
  EXPECT_GE(found, 20);
}

}  // namespace packed_by_test
}  // namespace mckpt::impl
