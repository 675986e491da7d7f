#include "options/fields.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/base/error.h"
#include "options/field_list.h"
#include "options/kinds.h"
#include "options/results.h"

namespace mckpt::impl {
namespace {

// Keeps what it is shown, by name.
class Seen final : public FieldVisitor {
 public:
  using FieldVisitor::FieldVisitor;
  void field(const Field& field, FieldValue value) override {
    names.emplace_back(field.name);
    fields[std::string(field.name)] = {field.doors, std::string(field.help), words_of(field.words)};
    values.emplace(field.name, std::move(value));
  }
  void casts() override { cast = true; }

  struct What {
    FieldDoors doors;
    std::string help;
    std::vector<std::string> words;
  };
  std::vector<std::string> names;
  std::map<std::string, What> fields;
  std::map<std::string, FieldValue> values;
  bool cast = false;
};

Seen seen_of(const ConversionKind& kind) {
  AnyConversion what = kind.empty();
  Seen seen(kind.name);
  fields(what, seen);
  return seen;
}

TEST(Fields, EveryKindHasSourceAndTargetFirstAndNoNameTwice) {
  EXPECT_EQ(conversion_kinds().size(), 18u);
  for (const ConversionKind& kind : conversion_kinds()) {
    SCOPED_TRACE(kind.name);
    const Seen seen = seen_of(kind);
    ASSERT_GE(seen.names.size(), 2u);
    EXPECT_EQ(seen.names[0], "source");
    EXPECT_EQ(seen.names[1], "target");
    EXPECT_EQ(std::set<std::string>(seen.names.begin(), seen.names.end()).size(), seen.names.size());
    for (const auto& [name, field] : seen.fields) EXPECT_FALSE(field.help.empty()) << name;
  }
}

TEST(Fields, AreShownByReference) {
  ToHf what;
  Seen seen("fsdp-to-hf");
  fields(what, seen);
  *std::get<std::string*>(seen.values.at("dtype")) = "bf16";
  *std::get<std::optional<std::int64_t>*>(seen.values.at("max_shard_size")) = 7;
  *std::get<std::string*>(seen.values.at("expert_layout")) = "hub";
  EXPECT_EQ(what.dtype, "bf16");
  EXPECT_EQ(what.max_shard_size, 7);
  EXPECT_EQ(what.opening.model.expert_layout, "hub");
  EXPECT_TRUE(seen.cast);
}

TEST(Fields, NothingIsGivenUnlessItIsSet) {
  EXPECT_FALSE(ToHf{}.max_shard_size);
  EXPECT_FALSE(ToHf{}.quantize);
  EXPECT_FALSE(ToHf{}.model_dict);
  EXPECT_FALSE(Quantize{}.max_shard_size);
  EXPECT_FALSE(Dequantize{}.max_shard_size);
}

// hf-to-fsdp reads models alone: what describes a checkpoint of Megatron is not an option of it, but a
// setting of ToFsdp.
TEST(Fields, AModeHasTheFlagsOfWhatItReads) {
  const Seen models = seen_of(*conversion_mode("hf-to-fsdp")), all = seen_of(*conversion_mode("to-fsdp"));
  EXPECT_EQ(models.names, all.names);
  for (const char* name : {"source_tp", "weights_only", "rank_states", "any_model", "fsdp_module"}) {
    EXPECT_EQ(models.fields.at(name).doors, FieldDoors::kSettings) << name;
    EXPECT_EQ(all.fields.at(name).doors, FieldDoors::kBoth) << name;
  }
}

// A kind has no setting for a field that it does not read.
TEST(Fields, AKindShowsWhatItReads) {
  auto shows = [](const char* kind, const char* name) {
    return seen_of(*conversion_mode(kind)).fields.contains(name);
  };
  EXPECT_TRUE(shows("group", "keys") && shows("gpt-to-hybrid", "keys"));
  EXPECT_FALSE(shows("ungroup", "keys") || shows("hybrid-to-gpt", "keys"));
  EXPECT_TRUE(shows("hybrid-to-gpt", "layers"));
  EXPECT_FALSE(shows("gpt-to-hybrid", "layers"));
  EXPECT_TRUE(shows("to-pt", "hsdp") && shows("reshard", "hsdp_outer"));
  EXPECT_FALSE(shows("to-mcore", "hsdp") || shows("to-mcore", "hsdp_outer"));
  for (const char* kind : {"to-dcp", "to-safetensors", "to-mcore"}) EXPECT_TRUE(shows(kind, "base")) << kind;
  EXPECT_TRUE(shows("to-hdf5", "base"));  // refused by the plan, with advice
  for (const char* kind : {"quantize", "dequantize", "reshard", "group", "from-hdf5"}) {
    EXPECT_FALSE(shows(kind, "base")) << kind;
    EXPECT_EQ(seen_of(*conversion_mode(kind)).fields.at("follow_links").doors, FieldDoors::kEveryCommand);
  }
}

TEST(Fields, OfEveryCommandStaySoInSettingsAlone) {
  mckpt::CompareOptions what;
  Seen seen;
  fields(what, seen);
  EXPECT_EQ(seen.fields.at("model_files").doors, FieldDoors::kEveryCommand);
  EXPECT_EQ(seen.fields.at("threads").doors, FieldDoors::kSettings);
}

TEST(Fields, ClassesOfUnitsAreThreeMembers) {
  mckpt::Fsdp what;
  Seen seen;
  fields(what, seen);
  const auto& take = std::get<TakeTexts>(seen.values.at("fsdp_unit"));
  take({"MambaLayer,HybridStack"});
  EXPECT_FALSE(what.transformer_units);
  EXPECT_TRUE(what.mamba_units && what.hybrid_stack_units);
  take({"none"});
  EXPECT_FALSE(what.transformer_units || what.mamba_units || what.hybrid_stack_units);
  EXPECT_THROW(take({"Layer"}), Error);
}

TEST(Fields, ADivisorIsAWordOfTheRows) {
  mckpt::Values what;
  Seen seen;
  fields(what, seen);
  const auto& take = std::get<TakeTexts>(seen.values.at("make_vocab_size_divisible_by"));
  for (const char* wrong : {"0", "-1", "x", ""}) EXPECT_THROW(take({wrong}), Error) << wrong;
  take({"128"});
  EXPECT_EQ(what.vocab_size, "divisible-by-128");
  EXPECT_THROW(take({"64"}), Error);  // the rows are given
}

TEST(Fields, NoSyncClearsSync) {
  mckpt::RunOptions what;
  Seen seen;
  fields(what, seen);
  *std::get<ClearedBy>(seen.values.at("no_sync")).member = false;
  EXPECT_FALSE(what.sync);
}

TEST(Fields, RulesAndListsAreTakenApart) {
  EXPECT_EQ(dtype_rule_of("a=b=fp32", "dtype_rule"), (std::pair<std::string, std::string>("a=b", "fp32")));
  EXPECT_THROW(dtype_rule_of("fp32", "dtype_rule"), Error);
  EXPECT_EQ(parts_of({"a,b", "c"}), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(words_of("auto keep"), (std::vector<std::string>{"auto", "keep"}));
  EXPECT_TRUE(words_of("").empty());
}

TEST(FieldList, NamesHaveTheirFlags) {
  EXPECT_EQ(flag_of_field("source_tp"), "source-tp");
  EXPECT_EQ(flag_of_field("quantize"), "scheme");
  EXPECT_EQ(flag_of_field("units_for"), "fsdp-units-for");
  EXPECT_EQ(flag_of_field("no_sync"), "no-sync");
  EXPECT_EQ(flag_of_field("transformer_units"), "");  // a setting alone
  EXPECT_EQ(flag_of_field("source"), "");             // an argument
  EXPECT_EQ(flag_of_field("there_is_none"), "");
}

TEST(FieldList, HasEveryKind) {
  const std::string json = field_list_json();
  for (const ConversionKind& kind : conversion_kinds())
    EXPECT_NE(json.find(cat("{\"name\": \"", kind.name, "\", \"conversion\": true")), json.npos) << kind.name;
  EXPECT_NE(json.find("\"name\": \"max_shard_size\", \"type\": \"number\""), json.npos);
  EXPECT_NE(json.find("\"name\": \"RunReport\""), json.npos);
}

TEST(Kinds, WordsOfBothDoorsMeanTheSame) {
  for (const ConversionKind& kind : conversion_kinds())
    if (!kind.word.empty()) {
      EXPECT_EQ(&conversion_of_word(kind.name), &kind);
      EXPECT_EQ(&conversion_of_word(kind.word), &kind);
    }
  EXPECT_EQ(conversion_of_word("pt").name, "to-pt");
  EXPECT_EQ(conversion_of_word("to-ranks").name, "to-pt");
  EXPECT_EQ(conversion_of_word("torch-file").name, "safetensors-to-pt");
  EXPECT_EQ(conversion_of_word("hf-to-fsdp").name, "to-fsdp");
  EXPECT_EQ(conversion_of_word("to-hf").name, "fsdp-to-hf");
  EXPECT_THROW(conversion_of_word("gguf"), Error);
  EXPECT_EQ(conversion_mode("pt"), nullptr);
}

TEST(Kinds, ALayerWayIsTheNameOfItsKind) {
  for (const char* way : {"ungroup", "group", "hybrid-to-gpt", "gpt-to-hybrid"})
    EXPECT_EQ(std::get<Relayer>(conversion_mode(way)->empty()).way, way);
}

TEST(Results, EveryNumberOfAnAccountHasAName) {
  std::int64_t sum = 0, fields_seen = 0;
  mckpt::Account a;
  std::int64_t* members = &a.tensors_in;
  static_assert(sizeof(mckpt::Account) % sizeof(std::int64_t) == 0);
  for (std::size_t i = 0; i < sizeof a / sizeof *members; i++) members[i] = std::int64_t{1} << i;
  fields(a, [&](const char*, std::int64_t value, const char*) { sum += value, fields_seen++; });
  EXPECT_EQ(fields_seen, std::int64_t{sizeof a / sizeof *members});
  EXPECT_EQ(sum, (std::int64_t{1} << fields_seen) - 1);  // each member once
}

}  // namespace
}  // namespace mckpt::impl
