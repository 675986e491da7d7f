// The facts of a run, made in memory, written by each dialect and read back: read(write(x)) = x. A fact
// without a place in a dialect is reported, and the args get the fields that follow from the result and keep
// the rest.
#include "convert/facts/run_facts.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "convert/dialects/fsdp/write_facts.h"
#include "convert/dialects/ranks/write_facts.h"
#include "convert/dialects/state_dict/pieces.h"
#include "convert/dialects/state_dict/write_groups.h"
#include "convert/dialects/torch_dist/read_facts.h"
#include "convert/dialects/torch_dist/table.h"
#include "convert/dialects/torch_dist/write_facts.h"
#include "convert/facts/param_groups.h"
#include "convert/keys/key_table.h"
#include "core/base/error.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/run/args.h"
#include "io/dcp/write/paths.h"
#include "io/dcp/write/record.h"
#include "io/file/crc32.h"
#include "io/file/file.h"
#include "io/output/output_files.h"
#include "io/pickle/differences.h"
#include "io/pickle/pickle.h"
#include "io/pickle/write/compose.h"
#include "io/pickle/write/writer.h"
#include "io/store/store.h"
#include "io/torch/zip.h"
#include "tests/support/golden_config.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace facts_test {

using Entries = std::vector<std::pair<std::string, std::string>>;

std::shared_ptr<const PickleValue> value_of(const std::string& pickle) {
  const RunFacts facts{.all = {{.pickle = pickle}}};
  return facts.value(facts.all[0]);
}

std::string pickle_of_text(std::string_view value) {
  PickleWriter w;
  w.text(value);
  return w.finish();
}

std::string flag(bool value) {
  PickleWriter w;
  w.boolean(value);
  return w.finish();
}

// A model of experts on two expert ranks, and all that a run of it saved.
class RunFactsOf : public testing::Test {
 protected:
  RunFactsOf() {
    grid_.ep = 2, grid_.dp = 2;
    run_.vocab_rows = map_.model().vocab;
    facts_.add(FactKind::kArgs, pickle_dict(Entries{{"seed", pickle_integer(7)},
                                                    {"num_layers", pickle_integer(99)},
                                                    {"expert_model_parallel_size", pickle_integer(8)}}));
    facts_.add(FactKind::kVersion, pickle_real(2.0));
    facts_.add(FactKind::kIteration, pickle_integer(12));
    facts_.add(FactKind::kCounter, pickle_integer(i64{1} << 40));
    facts_.add(FactKind::kSchedule, pickle_real(0.25), "max_lr");
    facts_.add(FactKind::kSchedule, pickle_of_text("cosine"), "lr_decay_style");
    // Matrices have another group than norms, and experts the same group as other matrices.
    for (const ModelParameter& p : keys_.parameters()) {
      if (p.buffer()) continue;
      const bool decays = group_marks(p, nullptr).decays;
      const std::string group = pickle_dict(Entries{{"params", pickle_list(std::vector<std::string>())},
                                                    {"lr", pickle_real(0.5)},
                                                    {"wd_mult", pickle_real(decays ? 1 : 0)},
                                                    {"is_expert_parallel", flag(p.expert())}});
      facts_.add_options(p.global_name, *value_of(group), pickle_integer(12));
      with_states_.push_back(&p);
    }
  }

  MegatronArgs made(ArgsFormat format = ArgsFormat::kFsdpDtensor) const {
    return {
        .map = map_, .entries = config_.run, .grid = grid_, .run = run_, .iteration = 12, .format = format};
  }
  FsdpResult fsdp_result() const {
    return {.map = map_, .grid = grid_, .vocab_rows = run_.vocab_rows, .source_rows = run_.vocab_rows};
  }
  TorchDistResult torch_dist_result() const {
    return {.run = dist_run_,
            .keys = dist_keys_,
            .made = made(ArgsFormat::kTorchDist),
            .source_rows = run_.vocab_rows,
            .state_form = "fully_sharded_model_space"};
  }

  const HfConfig config_ = golden_config("qwen3_moe");
  const ModelMap map_ = ModelMap::promised(config_.model, *config_.family);
  Grid grid_;
  RunSetup run_;
  const RunSetup whole_ = [] {
    RunSetup run;
    run.whole = true;
    return run;
  }();
  const KeyTable keys_{map_, whole_, KeyTable::Cells{1, 1}};
  const KeyTable dist_keys_{map_, {}, torch_dist_split};
  TorchDistRun dist_run_ = [] {
    TorchDistRun run;
    run.grid.ep = 2, run.grid.dp = 2;
    return run;
  }();
  RunFacts facts_;
  std::vector<const ModelParameter*> with_states_;
};

PickleDifferences differences(PickleValue a, PickleValue b) {
  return pickle_differences(a, b, 1, [](PickleValue, PickleValue) { return false; });
}

// The root of a file that torch writes.
std::shared_ptr<const PickleValue> root_of(const std::string& file) {
  const MemorySource bytes({reinterpret_cast<const u8*>(file.data()), file.size()});
  const std::vector<u8> pickle = TorchZip(bytes).read_pickle();
  return value_of({pickle.begin(), pickle.end()});
}

// By name. The args change with the result, so only the field is kept that no result changes.
std::map<std::string, std::shared_ptr<const PickleValue>> by_name(const RunFacts& facts) {
  std::map<std::string, std::shared_ptr<const PickleValue>> out;
  for (const RunFact& f : facts.all) {
    std::shared_ptr<const PickleValue> value = facts.value(f);
    if (f.kind == FactKind::kArgs) value = {value, arg_of(*value, "seed")};
    EXPECT_TRUE(out.emplace(name_of(f), value).second) << name_of(f) << " is there twice";
  }
  return out;
}

// `only`: the facts for which the dialect has a place.
void expect_same(
    const RunFacts& found, const RunFacts& written,
    const std::function<bool(const RunFact&)>& only = [](const RunFact&) { return true; }) {
  RunFacts expected = written;
  std::erase_if(expected.all, [&](const RunFact& f) { return !only(f); });
  const auto a = by_name(expected), b = by_name(found);
  EXPECT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a) {
    auto at = b.find(name);
    ASSERT_NE(at, b.end()) << name << " is lost";
    ASSERT_TRUE(value && at->second) << name;
    const PickleDifferences d = differences(*value, *at->second);
    EXPECT_EQ(d.count, 0) << name
                          << (d.first.empty() ? "" : cat(": ", d.first[0].expected, ", ", d.first[0].found));
  }
}

i64 arg(const RunFacts& facts, std::string_view name) {
  const std::shared_ptr<const PickleValue> args = facts.value(*facts.find(FactKind::kArgs));
  const PickleValue* value = arg_of(*args, name);
  return value ? value->as_int() : -1;
}

void write(const DcpLayout& layout, const std::string& folder) {
  OutputFiles out(folder, layout.files());
  for (i64 c = 0; c < layout.chunk_count(); c++) {
    DcpLayout::Chunk chunk = layout.chunk(c);
    std::vector<u8> data(static_cast<std::size_t>(chunk.frame->data_bytes()));
    std::vector<u8> tail(static_cast<std::size_t>(chunk.frame->tail_bytes()));
    chunk.frame->write_tail(crc32(0, data), tail);
    out.write(0, chunk.record_offset, chunk.frame->head());
    out.write(0, chunk.data_offset(), data);
    out.write(0, chunk.data_offset() + std::ssize(data), tail);
  }
  layout.write_objects(out);
  std::ofstream metadata(folder + "/.metadata", std::ios::binary);
  layout.write_metadata([&](std::string_view piece) { metadata << piece; });
}

void add_tensor(DcpLayout& layout, std::string name) {
  const std::vector<i64> dims = {2}, zeros = {0};
  layout.add_chunk(layout.add_key({{std::move(name), {}}, DType::kF32, Shape(dims)}), 0, zeros, dims);
}

TEST(RunFact, HasANameThatSaysWhatItIs) {
  for (const char* name :
       {"args", "checkpoint_version", "iteration", "num_floating_point_operations_so_far", "rng_state.0.0",
        "opt_param_scheduler.max_lr", "optimizer.param_groups.0.lr", "optimizer.state", "opt_param_scheduler",
        "optimizer.param_to_group_meta.module.module.module.decoder.final_layernorm.weight.lr",
        "optimizer.param_to_group_meta.decoder.final_layernorm.weight.lr",
        "optimizer.param_to_group_meta.lr"})
    EXPECT_EQ(name_of(fact_named(name)), name);
  const RunFact option = fact_named("optimizer.param_to_group_meta.module.a.b.lr");
  EXPECT_EQ(option.kind, FactKind::kOption);
  EXPECT_EQ(cat(option.parameter, " ", option.name, " ", option.wrappers), "a.b lr 1");
  EXPECT_EQ(fact_named("opt_param_scheduler").kind, FactKind::kOther);
  EXPECT_TRUE(is_of_optimizer(option) && is_of_optimizer(fact_named("optimizer.x")));
  EXPECT_FALSE(is_of_optimizer(fact_named("opt_param_scheduler.max_lr")));
}

TEST(RunFacts, AreJoinedByName) {
  RunFacts first, other;
  first.add(FactKind::kIteration, pickle_integer(3));
  other.add(FactKind::kIteration, pickle_integer(5)), other.add(FactKind::kOther, pickle_integer(1), "rng");
  const RunFacts both = joined(first, other);
  ASSERT_EQ(both.all.size(), 2u);
  EXPECT_EQ(both.iteration(), 3);
  EXPECT_EQ(RunFacts{}.iteration(), std::nullopt);
}

TEST_F(RunFactsOf, FsdpDtensorAreReadBack) {
  facts_.add(FactKind::kOther, pickle_integer(5), "rng_state.0.0");
  TempFolder folder;
  DcpLayout layout(1);
  add_tensor(layout, "model.module.a");
  WrittenFacts written;
  written.records = write_fsdp_facts(facts_for_fsdp(facts_, fsdp_result(), written), layout);
  write(layout, folder.path());
  std::unique_ptr<Store> store = open_store(folder.path());
  const RunFacts found = facts_of_objects(*store);
  expect_same(found, facts_);
  EXPECT_EQ(arg(found, "expert_model_parallel_size"), 2);
  EXPECT_TRUE(written.notes.empty() && written.records.empty() && written.left_out == 0);
}

TEST_F(RunFactsOf, AnotherFormatGetWhatFsdpDtensorNeeds) {
  const MegatronArgs args = made();
  FsdpResult result = fsdp_result();
  result.other_format = true, result.made = &args, result.made_iteration = 12;
  RunFacts none;
  none.hidden = {"rng_state"}, none.hidden_objects = 2;
  WrittenFacts written;
  const RunFacts settled = facts_for_fsdp(none, result, written);
  EXPECT_EQ(settled.all.size(), 3u);
  EXPECT_EQ(settled.pickle(*settled.find(FactKind::kArgs)), pickle_args(args));
  EXPECT_EQ(settled.find(FactKind::kVersion)->pickle, pickle_real(3.0));
  EXPECT_EQ(settled.iteration(), 12);
  EXPECT_EQ(written.left_out, 2);
  EXPECT_EQ(std::distance(written.notes.begin(), written.notes.end()), 1);
  // Without the states of the optimizer its options go.
  result.weights_only = true, result.iteration = 40;
  const RunFacts weights = facts_for_fsdp(facts_, result, written);
  EXPECT_FALSE(weights.has(FactKind::kOption));
  EXPECT_TRUE(weights.has(FactKind::kSchedule));
  EXPECT_EQ(weights.iteration(), 40);
}

TEST_F(RunFactsOf, TorchDistAreReadBack) {
  WrittenFacts written;
  const std::shared_ptr<const PickleValue> common =
      root_of(common_file(facts_, torch_dist_result(), written));
  // Two optimizers, one of experts.
  ASSERT_EQ(common->find("optimizer")->size(), 2);
  const RunFacts found = facts_of_common_state(common, nullptr, with_states_, [] { return std::string(); });
  expect_same(found, facts_);
  EXPECT_EQ(arg(found, "expert_model_parallel_size"), 2);
  EXPECT_EQ(arg(found, "num_layers"), std::ssize(map_.model().text.layers));
  EXPECT_FALSE(found.groups);
  EXPECT_EQ(found.hidden, std::vector<std::string>{"common_state.content_metadata"});
  EXPECT_TRUE(written.notes.empty() && written.left_out == 0);
  // Where the parameters of the groups are not known, the groups are kept as they are, and written so.
  RunFacts unknown = facts_of_common_state(common, nullptr, {}, [] { return std::string(); });
  ASSERT_TRUE(unknown.groups);
  EXPECT_NE(lost_options(unknown).find("its 3 groups"), std::string::npos) << lost_options(unknown);
  const auto again = root_of(common_file(unknown, torch_dist_result(), written));
  EXPECT_EQ(differences(*common->find("optimizer"), *again->find("optimizer")).count, 0);
}

TEST_F(RunFactsOf, TorchDistNeedTheOptionsOfStates) {
  WrittenFacts written;
  std::erase_if(facts_.all, [](const RunFact& f) { return f.kind == FactKind::kOption; });
  const std::string told = thrown_by([&] { common_file(facts_, torch_dist_result(), written); });
  EXPECT_NE(told.find("not the options of its parameters"), told.npos) << told;
}

TEST_F(RunFactsOf, RanksAreReadBack) {
  RankRun run;
  run.grid = grid_, run.run = run_;
  Notes notes;
  PickleWriter p;
  p.op(Op::kEmptyDict), p.op(Op::kMark);
  rank_front(facts_, {map_, config_.run, run, run_.vocab_rows, 12}, notes)(p, 3);
  p.op(Op::kSetitems);
  RunFacts found;
  const std::shared_ptr<const PickleValue> file = value_of(p.finish());
  for (PickleEntry e : file->entries())
    EXPECT_TRUE(found.add_entry(e.key.text(), e.value, true)) << e.key.text();
  const RunFact version = *found.find(FactKind::kVersion);
  EXPECT_EQ(found.value(version)->as_float(), 3.0);
  std::erase_if(found.all, [](const RunFact& f) { return f.kind == FactKind::kVersion; });
  expect_same(found, facts_,
              [](const RunFact& f) { return f.kind == FactKind::kArgs || f.kind == FactKind::kIteration; });
  EXPECT_EQ(arg(found, "rank"), 3);
  EXPECT_EQ(arg(found, "expert_model_parallel_size"), 2);
  EXPECT_TRUE(notes.empty());
}

TEST_F(RunFactsOf, StateDictsAreReadBack) {
  auto is_option = [](const RunFact& f) { return f.kind == FactKind::kOption; };
  Companions states;
  DcpLayout layout(1);
  for (i32 k = 0; k < keys_.size(); k++) {
    states.push_back({{state_dict_state(keys_[k].name, "exp_avg")}});
    add_tensor(layout, cat("model.", keys_[k].name));
    add_tensor(layout, state_dict_state(keys_[k].name, "exp_avg").text);
  }
  const SavedPlaces places{[](const std::string& name) {
                             return DcpName{name, {}};
                           },
                           [](std::string_view) { return i64{0}; }};
  WrittenFacts written;
  const SharedObjects objects = group_list(facts_, keys_, states, places, false, written);
  for (i64 o = 0; o < objects.count; o++) objects.put(o, 0, layout);
  TempFolder folder;
  write(layout, folder.path());
  const TranslatedRun read = state_dict_pieces(open_store(folder.path()), DcpDialect::kStateDict, nullptr, {},
                                               KeyTable::Cells{1, 1}, false);
  expect_same(read.facts, facts_, is_option);
  EXPECT_EQ(written.left_out, 0);
  EXPECT_FALSE(written.notes.empty());
  // Without states nothing is listed.
  EXPECT_EQ(group_list(facts_, keys_, states, places, true, written).count, 0);
}

}  // namespace facts_test
}  // namespace mckpt::impl
