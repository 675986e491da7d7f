// metadata.pkl of torch_checkpointing, in both versions: files, tensors and who has them; and what is refused.
#include "io/ranks/item_metadata.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/pickle/opcodes.h"
#include "io/pickle/write/writer.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace item_metadata_test {

// A pickle of the values of a JSON text, of dicts, lists, texts and whole numbers alone.
void write_value(const JsonValue& v, PickleWriter& out) {
  if (v.is(JsonType::kNull)) return out.op(Op::kNone);
  if (v.is(JsonType::kNumber)) return out.integer(v.integer("a number"));
  if (v.is(JsonType::kString)) return out.text(v.string("a text"));
  if (v.is(JsonType::kArray)) {
    out.op(Op::kEmptyList);
    for (const JsonValue& item : v.array("a list")) write_value(item, out), out.op(Op::kAppend);
    return;
  }
  out.op(Op::kEmptyDict);
  for (const JsonMember& m : v.object("an object"))
    out.text(m.name), write_value(m.value, out), out.op(Op::kSetitem);
}

std::optional<ItemMetadata> read(std::string_view json) {
  PickleWriter writer;
  write_value(parse_json(json), writer);
  TempFolder t;
  t.put("metadata.pkl", writer.finish());
  return read_item_metadata(Folder(t.path(), {}));
}

// A group of ranks that have the tensor by placements on a mesh of two.
std::string group(std::string_view ranks, std::string_view placement, std::string_view mesh = "[0, 1]") {
  return cat(
      R"({"ranks": )", ranks,
      R"(, "sharding_metadata": {"type": "DTensorShardingMetadata", "data": {"global_shape": [5, 3], "mesh_spec": {"mesh_shape": [2], "mesh_data": )",
      mesh, R"(}, "placements": [)", placement, "]}}}");
}

constexpr std::string_view kRows = R"({"type": "Shard", "dim": 0})", kWhole = R"({"type": "Replicate"})";

std::string second(const std::string& groups, std::string_view files = R"({"0": null})") {
  return cat(
      R"({"world_size": 2, "version": "2.0", "metadata": {"model": {"nested_path_to_metadata": {"[\"layers\",7,\"w\"]": [)",
      groups, R"(]}, "rank_to_layout_info": )", files, "}}}");
}

std::string files_of(const ItemMetadata& m) {
  std::string out;
  for (const ItemFile& f : m.files) out += cat(f.item, " ", f.rank, " ", f.path, " ", f.format, "; ");
  return out;
}

TEST(ItemMetadata, NamesFilesByTheLayoutOrAsUsual) {
  const auto m = read(second(
      group("[0, 1]", kRows),
      R"({"1": {"file_path": "rank_1/w.safetensors", "serialization_format": {"type": "SafetensorsSerialization"}}, "0": null})"));
  ASSERT_TRUE(m);
  EXPECT_EQ(m->ranks, 2);
  EXPECT_EQ(m->version, "2.0");
  EXPECT_EQ(files_of(*m),
            "model 1 rank_1/w.safetensors SafetensorsSerialization; model 0 model_0.pt TorchSerialization; ");
}

TEST(ItemMetadata, GivesARankTheGroupThatItIsIn) {
  const auto m = read(second(cat(group("[0]", kRows), ", ", group("[3, 1]", kWhole))));
  ASSERT_TRUE(m);
  const ItemSharding *first = m->of("model", "layers.7.w", 0), *other = m->of("model", "layers.7.w", 3);
  ASSERT_TRUE(first && other);
  EXPECT_EQ(first->layout.placements[0].kind, TorchPlacement::Kind::kShard);
  EXPECT_EQ(other->layout.placements[0].kind, TorchPlacement::Kind::kReplicate);
  EXPECT_EQ(first->layout.global, (std::vector<i64>{5, 3}));
  EXPECT_EQ(m->of("model", "layers.7.w", 1), other);
  EXPECT_EQ(m->of("model", "layers.7.w", 2), nullptr);
  EXPECT_EQ(m->of("optimizer", "layers.7.w", 0), nullptr);
  EXPECT_EQ(m->of("model", "layers.7.b", 0), nullptr);
}

TEST(ItemMetadata, OfTheFirstVersionHasTheItemInFrontOfTheName) {
  const auto m =
      read(cat(R"({"world_size": 3, "metadata": {"[\"model\",\"a\",\"b\"]": [)", group("[2]", kRows),
               R"(]}, "rank_to_layout_info_mappings": {"2": {"model": null, "step": null}}})"));
  ASSERT_TRUE(m);
  EXPECT_EQ(m->version, "1.0");
  EXPECT_EQ(files_of(*m), "model 2 model_2.pt TorchSerialization; step 2 step_2.pt TorchSerialization; ");
  EXPECT_TRUE(m->of("model", "a.b", 2));
  EXPECT_FALSE(m->of("model", "model.a.b", 2));
}

TEST(ItemMetadata, HasTheBoxesOfARank) {
  const auto m = read(second(
      R"({"ranks": [1], "sharding_metadata": {"type": "BoxesMetadata", "data": {"global_shape": [5, 3], "global_offsets": [[2, 0]], "local_offsets": [[0, 0]], "local_sizes": [[3, 3]]}}})"));
  ASSERT_TRUE(m);
  const ItemSharding* s = m->of("model", "layers.7.w", 1);
  ASSERT_TRUE(s);
  ASSERT_EQ(s->boxes.size(), 1u);
  EXPECT_EQ(s->boxes[0].global, (std::vector<i64>{2, 0}));
  EXPECT_EQ(s->boxes[0].sizes, (std::vector<i64>{3, 3}));
}

TEST(ItemMetadata, IsNothingForAnotherProgramsFile) {
  TempFolder t;
  EXPECT_FALSE(read_item_metadata(Folder(t.path(), {})));
  t.put("metadata.pkl", "no pickle");
  EXPECT_FALSE(read_item_metadata(Folder(t.path(), {})));
  EXPECT_FALSE(read(R"({"metadata": [], "world_size": 2})"));
  EXPECT_FALSE(read(R"({"metadata": {}, "world_size": "2"})"));
  EXPECT_FALSE(read(R"({"metadata": {}})"));
}

TEST(ItemMetadata, RefusesWhatContradictsItself) {
  auto told = [](const std::string& json) { return thrown_by([&] { read(json); }); };
  auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != text.npos ? std::string(part) : text;
  };
  for (const auto& [json, words] : std::vector<std::pair<std::string, std::string>>{
           {R"({"metadata": {}, "world_size": 0})", "the number of ranks is not possible"},
           {second(group("[-1]", kRows)), "there is no such rank"},
           {second(group("[0]", kRows, "[0, 1, 2]")),
            "the shape and the ranks of a mesh do not fit together"},
           {second(group("[0]", R"({"type": "Ragged"})")),
            "a placement is of a type that mckpt does not know"},
           {second(group("[0]", R"({"dim": 0})")), "an entry is missing: type"},
           {second(group("[0]", kRows), R"({"first": null})"), "a rank is not a number"},
           {second(
                R"({"ranks": [0], "sharding_metadata": {"type": "Other", "data": {"global_shape": [1]}}})"),
            "a tensor is distributed in a way that mckpt does not know"}}) {
    EXPECT_EQ(has(told(json), words), words);
    EXPECT_EQ(told(json).substr(0, 6), code_name(Code::kBadPickle)) << words;
  }
}

}  // namespace item_metadata_test
}  // namespace mckpt::impl
