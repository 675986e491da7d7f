// The tensors that real ranks hand to a torch_dist save: fused parameters apart, each part with its place in
// a global tensor that does not depend on the tensor-parallel size. Names, types, shapes, places and
// digests follow from the rules and their pieces.
// std::regex alarms g++ 12 under sanitizers.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include "core/base/text.h"
#include "core/items/item_run.h"
#include "io/sums/sha256.h"
#include "mappings/key_split.h"
#include "mappings/model/parameter.h"
#include "mappings/rule.h"
#include "tests/support/golden_config.h"
#include "tests/support/golden_weights.h"

namespace mckpt::impl {
namespace golden_torch_dist_test {

constexpr std::string_view kFolder = MCKPT_TEST_DATA "/golden/";

std::string text_of(std::span<const i64> dims) {
  std::string out;
  for (i64 d : dims) out += cat(out.empty() ? "" : "x", d);
  return out;
}

// "1x2x3" without its first `skip` numbers.
std::string tail(std::string text, i64 skip) {
  for (; skip > 0; skip--) text.erase(0, text.find('x') == text.npos ? text.size() : text.find('x') + 1);
  return text;
}

// Layers and experts are dimensions of some of the stored tensors and numbers in the names of others, so
// names are compared without them.
std::string bare(std::string name) {
  name = std::regex_replace(name, std::regex("layers\\.[0-9]+\\."), "layers.");
  name = std::regex_replace(name, std::regex("experts\\.experts\\."), "experts.");
  name = std::regex_replace(name, std::regex("(experts.*(weight|bias))[0-9]+$"), "$1");
  name = std::regex_replace(name, std::regex("conv1d_"), "conv1d.");
  return std::regex_replace(name, std::regex("final_norm"), "final_layernorm");
}

class Weights {
 public:
  explicit Weights(const std::string& model) {
    std::ifstream in(cat(kFolder, "models/", model, "/tensors.txt"));
    for (GoldenTensor& t : draw_golden(in)) tensors_[t.name] = std::move(t);
  }

  // Item by item, so that nothing is shared with the code that copies runs.
  std::string gathered(const ModelMap& map, const ModelParameter& p, ItemRange range) const {
    std::string out;
    for (const ItemRun& run : cut(p.holding->runs, range))
      for (i64 i = 0; i < run.items(); i++) out += run.slot == kPaddingSlot ? zero(p) : item(map, p, run, i);
    return out;
  }

 private:
  static std::string zero(const ModelParameter& p) {
    return std::string(static_cast<std::size_t>(dtype_bytes(p.dtype, 1)), '\0');
  }
  std::string item(const ModelMap& map, const ModelParameter& p, const ItemRun& run, i64 i) const {
    std::string name(map.sources()[p.sources[static_cast<std::size_t>(run.slot)]].name);
    std::size_t bytes = static_cast<std::size_t>(dtype_bytes(p.dtype, 1));
    return tensors_.at(name).bytes.substr(static_cast<std::size_t>(run.at(i)) * bytes, bytes);
  }

  std::map<std::string, GoldenTensor> tensors_;
};

class RankLines {
 public:
  RankLines(const ModelMap& map, const Weights& weights) : map_(map), weights_(weights) {}

  std::vector<std::string> lines(const std::vector<ModelParameter>& parameters) {
    for (const ModelParameter& p : parameters) add(p);
    std::sort(lines_.begin(), lines_.end());
    return lines_;
  }

 private:
  void add(const ModelParameter& p) {
    KeySplit split = rule_named(p.row->rule).parts;
    Shape whole = global_shape(*p.holding, p.part.count).shape;
    if (split == KeySplit::kNone) return add(p, p.name, {"", 0, p.shape()[0]}, whole, 0);
    // The halves of a gated parameter keep its name: the second follows the first in the global tensor.
    i64 base = 0;
    for (const Piece& piece : pieces_of(split, map_.model(), {whole}, p.part)) {
      bool half = split == KeySplit::kSwiglu;
      std::string key = bare(p.name);
      Shape global = half ? whole : whole.with_dim(0, piece.rows * p.part.count);
      add(p, half ? key : cat(key, piece.name), piece, global, half ? base : 0);
      base += piece.rows * p.part.count;
    }
  }

  void add(const ModelParameter& p, std::string_view key, const Piece& piece, const Shape& global, i64 base) {
    Shape local = p.shape().with_dim(0, piece.rows);
    std::vector<i64> at(static_cast<std::size_t>(local.rank()), 0);
    at[0] = base;
    if (int dim = p.holding->partition_dim; dim >= 0)
      at[static_cast<std::size_t>(dim)] += p.part.index * local[dim];
    std::string bytes = weights_.gathered(map_, p, items_of(piece, p.shape().row_items()));
    Sha256 sha;
    sha.update({reinterpret_cast<const u8*>(bytes.data()), bytes.size()});
    lines_.push_back(cat(bare(std::string(key)), " ", dtype_name(p.dtype), " ", text_of(local.dims()), " ",
                         text_of(global.dims()), " ", text_of(at), " ", sha.hex_digest()));
  }

  const ModelMap& map_;
  const Weights& weights_;
  std::vector<std::string> lines_;
};

struct SavedRun {
  Grid grid;
  PipelineOptions pipeline;
  std::vector<std::vector<std::string>> ranks;
};

SavedRun read_run(const std::string& path) {
  std::ifstream in(path);
  SavedRun run;
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string key, dtype, local, global, at, digest;
    i64 prepended = 0;
    if (line.starts_with("grid")) {
      EXPECT_EQ(std::sscanf(line.c_str(), "grid tp=%ld cp=%ld ep=%ld dp=%ld pp=%ld", &run.grid.tp,
                            &run.grid.cp, &run.grid.ep, &run.grid.dp, &run.grid.pp),
                5);
      if (std::size_t first = line.find("first="); first != line.npos)
        run.pipeline.first_layers = std::stol(line.substr(first + 6));
    } else if (line.starts_with("rank")) {
      run.ranks.emplace_back();
    } else if (!line.starts_with("object")) {
      fields >> key >> dtype >> local >> global >> at >> prepended >> digest;
      run.ranks.back().push_back(cat(bare(key), " ", dtype, " ", local, " ", tail(global, prepended), " ",
                                     tail(at, prepended), " ", digest));
    }
  }
  for (auto& lines : run.ranks) std::sort(lines.begin(), lines.end());
  return run;
}

TEST(GoldenTorchDist, EveryRankHandsOverWhatTheRulesSay) {
  std::size_t compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(cat(kFolder, "torch_dist"))) {
    std::string tag = entry.path().filename();
    std::string model = tag.substr(0, tag.find('.'));
    SavedRun run = read_run(entry.path());
    ASSERT_EQ(std::ssize(run.ranks), run.grid.world()) << tag;
    ModelMap map = golden_map(model);
    Weights weights(model);
    for (i64 rank = 0; rank < run.grid.world(); rank++) {
      std::vector<std::string> lines =
          RankLines(map, weights).lines(golden_parameters(map, run.grid, rank, run.pipeline));
      const std::vector<std::string>& golden = run.ranks[static_cast<std::size_t>(rank)];
      ASSERT_EQ(lines.size(), golden.size()) << tag << " rank " << rank;
      for (std::size_t i = 0; i < lines.size(); i++)
        EXPECT_EQ(lines[i], golden[i]) << tag << " rank " << rank;
      compared += lines.size();
    }
  }
  EXPECT_EQ(compared, 889u);
}

}  // namespace golden_torch_dist_test
}  // namespace mckpt::impl
