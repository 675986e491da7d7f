// Tables with one wrong row: for each row of every family that has golden data, what a hand could have
// written instead (gate and up in turn, a column for a row, a norm with its -1 or without, the source of
// another row), and the demand that the comparison with the real ranks finds it.
#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "core/base/error.h"
#include "mappings/config.h"
#include "mappings/family.h"
#include "mappings/fsdp/setup.h"
#include "mappings/registry.h"
#include "tests/support/family_runs.h"

namespace mckpt::impl {
namespace family_mutations_test {

constexpr std::span<const Row> LayerRows::*kLists[] = {&LayerRows::attention,
                                                       &LayerRows::sparse_attention,
                                                       &LayerRows::latent_attention,
                                                       &LayerRows::indexed_attention,
                                                       &LayerRows::gdn,
                                                       &LayerRows::mamba,
                                                       &LayerRows::attention_and_mamba,
                                                       &LayerRows::dense,
                                                       &LayerRows::moe};
static_assert(sizeof(LayerRows) == std::size(kLists) * sizeof(std::span<const Row>), "a list is missing");

// A family whose rows can be changed.
class Mutant {
 public:
  explicit Mutant(const Family& base) : family_(base), sections_(base.sections.begin(), base.sections.end()) {
    for (Section& section : sections_) {
      copy(section.rows);
      if (!section.layer) continue;
      LayerRows& layer = layers_.emplace_back(*section.layer);
      for (auto list : kLists) copy(layer.*list);
      section.layer = &layer;
    }
    family_.sections = sections_;
  }
  Mutant(const Mutant&) = delete;

  const Family& family() const { return family_; }
  std::deque<std::vector<Row>>& lists() { return lists_; }

 private:
  void copy(std::span<const Row>& rows) {
    if (rows.empty()) return;
    rows = lists_.emplace_back(rows.begin(), rows.end());
  }

  Family family_;
  std::vector<Section> sections_;
  std::deque<LayerRows> layers_;
  std::deque<std::vector<Row>> lists_;
};

// Some ranks of the runs that split most, and a Megatron-FSDP run.
class Judge {
 public:
  explicit Judge(const FamilyModel& model) : model_(model) {
    std::vector<PackedRun> runs = packed_runs(model.folder + "/ranks.txt").runs;
    auto most = std::max_element(runs.begin(), runs.end(), [](const PackedRun& a, const PackedRun& b) {
      return std::pair(a.grid.etp, a.grid.tp) < std::pair(b.grid.etp, b.grid.tp);
    });
    add(*most, most->grid.world() - 1);
    most = std::max_element(runs.begin(), runs.end(),
                            [](const PackedRun& a, const PackedRun& b) { return a.grid.tp < b.grid.tp; });
    add(*most, 0);
    for (const auto& entry : std::filesystem::directory_iterator(model.folder))
      if (entry.path().filename().string().starts_with("fsdp.")) fsdp_ = packed_runs(entry.path());
  }

  bool has_fsdp() const { return !fsdp_.runs.empty(); }

  // How many parameters of these rows the ranks hold, and whether all of them are as in the real run.
  struct Answer {
    std::size_t parameters = 0;
    bool equal = true;
  };
  Answer answer(const Family& family, const std::vector<const Row*>& rows) const {
    Answer out;
    try {
      ModelMap map = model_.map_with(family);
      for (const Seen& s : seen_)
        for (const ModelParameter& p : golden_parameters(map, s.grid, s.rank)) {
          if (std::find(rows.begin(), rows.end(), p.row) == rows.end()) continue;
          out.parameters++;
          auto golden = s.lines.find(p.name);
          out.equal = out.equal && golden != s.lines.end() && golden->second == model_.held_line(p, s.grid);
        }
    } catch (const Error&) {
      out.equal = false;
    }
    return out;
  }

  // Whether rank 0 of the Megatron-FSDP run has the keys of the real one.
  bool same_keys(const Family& family) const {
    ModelMap map = model_.map_with(family);
    std::map<std::string, FamilyModel::Whole> wholes;
    return model_.saved_lines(map, fsdp_.runs[0].grid, 0, {}, wholes) == fsdp_.runs[0].ranks[0];
  }

 private:
  struct Seen {
    Grid grid;
    i64 rank = 0;
    std::map<std::string, std::string> lines;  // by name
  };

  void add(const PackedRun& run, i64 rank) {
    Seen& s = seen_.emplace_back(Seen{run.grid, rank, {}});
    for (const std::string& line : run.ranks[static_cast<std::size_t>(rank)])
      s.lines.emplace(line.substr(0, line.find(' ')), line);
  }

  const FamilyModel& model_;
  std::vector<Seen> seen_;
  PackedFile fsdp_;
};

struct Change {
  const char* what;
  std::function<bool(Row&)> apply;  // false: the row has nothing to be changed
};

Change other_rule(const char* from, const char* to) {
  return {to, [=](Row& row) { return row.rule == from && (row.rule = to, true); }};
}

const Change kChanges[] = {
    {"two sources in turn",
     [](Row& row) {
       for (std::size_t a = 0; a + 1 < row.sources.size(); a++)
         if (!row.sources[a + 1].name.empty() && row.sources[a].shape == row.sources[a + 1].shape)
           return std::swap(row.sources[a], row.sources[a + 1]), true;
       return false;
     }},
    other_rule("column", "row"),
    other_rule("row", "column"),
    other_rule("column", "replicate"),
    other_rule("replicate", "column"),
    other_rule("vocab", "replicate"),
    {"zero_centered_norm",
     [](Row& row) {
       bool vector = row.sources[0].shape.find(' ') == std::string_view::npos;
       return row.rule == "replicate" && vector && !row.counter && (row.rule = "zero_centered_norm", true);
     }},
    other_rule("zero_centered_norm", "replicate"),
    {"a buffer in fp32", [](Row& row) { return row.typed_as_model && (row.typed_as_model = false, true); }},
    {"no buffer", [](Row& row) { return row.buffer && (row.buffer = false, true); }},
};

class Mutations {
 public:
  explicit Mutations(const FamilyModel& model) : model_(model), judge_(model) {}

  // Changes each row in each way. Returns how many changes there were.
  i64 each() {
    Mutant mutant(*model_.config.family);
    for (std::vector<Row>& rows : mutant.lists())
      for (Row& row : rows) {
        if (!is_right(mutant, {&row})) continue;
        for (const Change& change : kChanges) {
          Row before = row;
          if (change.apply(row)) expect_found(mutant, {&row}, change.what);
          row = before;
        }
        split(mutant, row);
        for (Row& other : rows)
          if (&other > &row && one_source_alike(row, other) && is_right(mutant, {&other})) {
            std::swap(row.sources, other.sources);
            expect_found(mutant, {&row, &other}, "the source of another row");
            std::swap(row.sources, other.sources);
          }
      }
    return changes_;
  }

 private:
  // False for rows that the model does not have.
  bool is_right(const Mutant& mutant, const std::vector<const Row*>& rows) {
    Judge::Answer answer = judge_.answer(mutant.family(), rows);
    EXPECT_TRUE(answer.equal) << model_.name << " " << rows[0]->megatron;
    return answer.parameters > 0;
  }

  void expect_found(const Mutant& mutant, const std::vector<const Row*>& rows, const char* what) {
    changes_++;
    EXPECT_FALSE(judge_.answer(mutant.family(), rows).equal)
        << model_.name << " " << rows[0]->megatron << ": " << what;
  }

  void split(const Mutant& mutant, Row& row) {
    if (row.split == KeySplit::kNone || !judge_.has_fsdp() || !model_.config.model.text.swiglu) return;
    changes_++;
    KeySplit before = std::exchange(row.split, KeySplit::kNone);
    EXPECT_FALSE(judge_.same_keys(mutant.family())) << model_.name << " " << row.megatron << ": one key";
    row.split = before;
  }

  static bool one_source_alike(const Row& a, const Row& b) {
    return a.rule == b.rule && a.sources[1].name.empty() && a.sources[0].shape == b.sources[0].shape &&
           a.sources[0].name != b.sources[0].name && a.expert() == b.expert();
  }

  const FamilyModel& model_;
  Judge judge_;
  i64 changes_ = 0;
};

TEST(FamilyMutations, OneWrongRowIsFoundInEveryFamily) {
  i64 models = 0, changes = 0;
  for (const std::string& name : family_models()) {
    FamilyModel model(name);
    i64 of_model = Mutations(model).each();
    EXPECT_GE(of_model, 11) << name;
    changes += of_model, models++;
  }
  EXPECT_EQ(models + std::ssize(pending_models()), 62) << "folders of golden/families: count a new one here";
  std::cout << changes << " changes of " << models << " models\n";
}

}  // namespace family_mutations_test
}  // namespace mckpt::impl
