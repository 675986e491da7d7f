// The models of test_data/golden/families with their weights, and what the ranks of real runs held and saved
// of them, read from the packed files (golden/README.md).
//
//   FamilyModel model("glm4_moe");             config, weights, the map with the file's tensors
//   model.held_lines(parameters, grid)         "decoder.layers.0....weight bfloat16 48x80 1 b93e8b2441f1eafe"
//   packed_runs(model.folder + "/ranks.txt")   the same lines of every rank of every run
#pragma once

#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>

#include "core/items/item_run.h"
#include "core/items/shape.h"
#include "io/sums/sha256.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/parameter_marks.h"
#include "tests/support/golden_config.h"
#include "tests/support/golden_weights.h"

namespace mckpt::impl {

inline std::string times_text(std::span<const i64> dims) {
  std::string out;
  for (i64 d : dims) out += cat(out.empty() ? "" : "x", d);
  return out.empty() ? "-" : out;
}

inline std::vector<i64> times_numbers(const std::string& text) {
  std::vector<i64> out;
  std::istringstream in(text == "-" ? "" : text);
  for (std::string n; std::getline(in, n, 'x');) out.push_back(std::stoll(n));
  return out;
}

// As the packed files have digests: shortened.
inline std::string short_digest(const std::string& bytes) {
  Sha256 sha;
  sha.update({reinterpret_cast<const u8*>(bytes.data()), bytes.size()});
  return sha.hex_digest().substr(0, 16);
}

// One run of a packed file: what its line says, and the lines of every rank in order.
struct PackedRun {
  Grid grid;
  std::vector<std::vector<std::string>> ranks;
};

struct PackedFile {
  std::vector<PackedRun> runs;
  std::vector<std::string> saved;  // "key dtype shape digest" of the whole checkpoint
};

inline Grid packed_grid(const std::string& line) {
  Grid grid;
  std::istringstream fields(line);
  for (std::string field; fields >> field;) {
    std::size_t at = field.find('=');
    std::string name = field.substr(0, at);
    for (auto& [key, size] : std::map<std::string, i64*>{{"tp", &grid.tp},
                                                         {"cp", &grid.cp},
                                                         {"ep", &grid.ep},
                                                         {"etp", &grid.etp},
                                                         {"pp", &grid.pp},
                                                         {"dp", &grid.dp}})
      if (name == key) *size = std::stoll(field.substr(at + 1));
  }
  return grid;
}

inline PackedFile packed_runs(const std::string& path) {
  PackedFile file;
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string word;
    fields >> word;
    if (word == "run") {
      file.runs.push_back({packed_grid(line), {}});
    } else if (word == "rank") {
      std::vector<std::string>& rank = file.runs.back().ranks.emplace_back();
      while (fields >> word) {
        std::size_t dash = word.find('-');
        std::size_t first = std::stoul(word),
                    last = dash == word.npos ? first : std::stoul(word.substr(dash + 1));
        rank.insert(rank.end(), lines.begin() + static_cast<i64>(first),
                    lines.begin() + static_cast<i64>(last) + 1);
      }
    } else if (word == "saved") {
      file.saved.push_back(line.substr(6));
    } else {
      lines.push_back(line);
    }
  }
  return file;
}

// A model with its weights. Values are gathered item by item, so that nothing is shared with the code that
// copies.
class FamilyModel {
 public:
  explicit FamilyModel(const std::string& model)
      : name(model), folder(golden_folder(model)), config(golden_config(model)) {
    std::ifstream in(folder + "/tensors.txt");
    for (GoldenTensor& t : draw_golden(in)) {
      dims_.emplace_back(t.dims.begin(), t.dims.end());
      weights_.push_back(std::move(t));
    }
    map = std::make_unique<ModelMap>(map_with(*config.family));
  }

  // The map with the tensors of the file, by the tables of this family.
  ModelMap map_with(const Family& family) const {
    SourceTable table;
    for (std::size_t t = 0; t < weights_.size(); t++)
      table.add({weights_[t].name, dims_[t], dtype_of(weights_[t].dtype), true});
    return ModelMap(config.model, family, std::move(table));
  }

  // The rank's stretch of the parameter, as the run stores it: rounded to the parameter's type, then cast to
  // `stored`.
  std::string bytes(const ModelParameter& p, ItemRange range, DType stored) const {
    std::string out;
    if (p.row->counter) return weights_[static_cast<std::size_t>(p.sources[0])].bytes;
    for (const ItemRun& run : cut(p.holding->runs, range))
      for (i64 i = 0; i < run.items(); i++) {
        float value = (run.slot == kPaddingSlot ? 0 : item(p, run, i)) + p.holding->addend;
        put(p.dtype == DType::kBF16 ? rounded(value) : value, stored, out);
      }
    return out;
  }

  // name, type, local shape, mark, digest; buffers have the mark "buffer".
  std::string held_line(const ModelParameter& p, const Grid& grid) const {
    ParameterMarks marks = marks_of(p, grid);
    std::string mark = p.buffer() ? "buffer" : marks.tensor_model_parallel ? cat(marks.partition_dim) : "-";
    return cat(p.name, " ", dtype_name(p.dtype), " ", times_text(p.shape().dims()), " ", mark, " ",
               short_digest(bytes(p, {0, p.shape().items()}, p.dtype)));
  }

  // The tensor that a rank of a Megatron-FSDP run hands over: key, type, global shape, digest of its box,
  // offsets and sizes. `wholes`: every key with all its items, filled in here.
  struct Whole {
    Shape shape;
    DType dtype = DType::kF32;
    std::string bytes;
    i64 items = 0;  // that a rank has written
  };
  std::vector<std::string> saved_lines(const ModelMap& mine, const Grid& grid, i64 rank,
                                       const FsdpSetup& setup, std::map<std::string, Whole>& wholes) const {
    std::vector<ModelParameter> parameters = golden_parameters(mine, grid, rank);
    FsdpLayout layout(parameters, mine.model(), grid, setup);
    std::vector<std::string> lines;
    for (const FsdpTensor& t : layout.tensors(cell_of(grid, rank))) {
      const ModelParameter& p = parameters[static_cast<std::size_t>(t.parameter)];
      DType stored = p.buffer() ? p.dtype : DType::kF32;
      std::string key = t.key.substr(std::strlen("model.module.")),
                  data = t.empty() ? "" : bytes(p, t.items, stored);
      std::string box = t.empty() ? "nothing" : cat(times_text(t.offsets), " ", times_text(t.sizes));
      lines.push_back(cat(key, " ", dtype_name(stored), " ", times_text(t.global.dims()), " ",
                          short_digest(data), " ", box));
      Whole& whole = wholes[key];
      if (whole.bytes.empty())
        whole = {t.global, stored,
                 std::string(static_cast<std::size_t>(dtype_bytes(stored, t.global.items())), '\xff'), 0};
      if (!t.empty()) paste(t, data, dtype_bytes(stored, 1), whole.bytes);
    }
    return lines;
  }

  std::string name, folder;
  HfConfig config;
  std::unique_ptr<ModelMap> map;

 private:
  static DType dtype_of(std::string_view name) {
    return name == "I64" ? DType::kI64 : name == "F32" ? DType::kF32 : DType::kBF16;
  }

  float item(const ModelParameter& p, const ItemRun& run, i64 i) const {
    i32 slot = is_copy(run.slot) ? copied_slot(run.slot) : run.slot;
    const GoldenTensor& t = weights_[static_cast<std::size_t>(p.sources[static_cast<std::size_t>(slot)])];
    std::size_t at = static_cast<std::size_t>(run.at(i));
    u32 bits = 0;
    if (t.dtype == "F32")
      std::memcpy(&bits, t.bytes.data() + 4 * at, 4);
    else
      std::memcpy(reinterpret_cast<char*>(&bits) + 2, t.bytes.data() + 2 * at, 2);
    return std::bit_cast<float>(bits);
  }

  // To the nearest bf16, ties to even.
  static float rounded(float value) {
    u32 bits = std::bit_cast<u32>(value);
    bits += 0x7fff + (bits >> 16 & 1);
    return std::bit_cast<float>(bits & 0xffff0000u);
  }

  static void put(float value, DType type, std::string& out) {
    u32 bits = std::bit_cast<u32>(value);
    if (type == DType::kF32) out += {static_cast<char>(bits & 255), static_cast<char>(bits >> 8 & 255)};
    out += {static_cast<char>(bits >> 16 & 255), static_cast<char>(bits >> 24)};
  }

  // Writes a box into the whole tensor.
  static void paste(const FsdpTensor& t, const std::string& data, i64 item, std::string& whole) {
    i64 rank = std::ssize(t.sizes), rows = 1, row = rank > 0 ? t.sizes.back() : 1;
    for (i64 d = 0; d + 1 < rank; d++) rows *= t.sizes[static_cast<std::size_t>(d)];
    for (i64 r = 0; r < rows; r++) {
      i64 at = 0, rest = r, step = rows;
      for (i64 d = 0; d < rank; d++) {
        i64 size = t.sizes[static_cast<std::size_t>(d)], index = 0;
        if (d + 1 < rank) step /= size, index = rest / step, rest %= step;
        at = at * t.global[static_cast<int>(d)] + t.offsets[static_cast<std::size_t>(d)] + index;
      }
      std::memcpy(whole.data() + item * at, data.data() + item * r * row,
                  static_cast<std::size_t>(item * row));
    }
  }

  std::vector<std::vector<i64>> dims_;
  std::vector<GoldenTensor> weights_;
};

}  // namespace mckpt::impl
