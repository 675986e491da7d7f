#include "io/dcp/check/loading.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "io/dcp/metadata/metadata.h"
#include "io/dcp/write/layout.h"
#include "io/pickle/write/writer.h"

namespace mckpt::impl {
namespace {

std::string metadata_of(bool has_paths = true) {
  DcpLayout layout(1);
  if (!has_paths) layout.leave_out_paths();
  for (const char* name : {"model.part.a", "model.part.b"})
    layout.add_chunk(layout.add_key({{name, {5}}, DType::kF32, Shape{2}}), 0, std::vector<i64>{0},
                     std::vector<i64>{2});
  layout.add_object({"extra.step", {5}}, 0, "N.");
  std::string out;
  layout.write_metadata([&](std::string_view part) { out += part; });
  return out;
}

// Puts `to`, which is as long, in place of the nth `from`.
std::string changed(std::string text, std::string_view from, std::string_view to, int nth) {
  EXPECT_EQ(from.size(), to.size());
  std::size_t at = text.find(from);
  for (int i = 1; i < nth && at != text.npos; i++) at = text.find(from, at + 1);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, to.size(), to);
}

std::string faults_of(const std::string& pickle) {
  std::span<const u8> bytes{reinterpret_cast<const u8*>(pickle.data()), pickle.size()};
  std::string out;
  EXPECT_TRUE(parse_dcp_metadata(bytes).findings.empty());
  for (const Finding& f : loading_faults(bytes))
    out += cat(f.warning ? "warning " : "", code_name(f.code), " ", f.tensor, ": ", f.message, "\n");
  return out;
}

TEST(DcpLoading, FindsNothingInWhatIsWhole) {
  EXPECT_EQ(faults_of(metadata_of()), "");
  EXPECT_EQ(faults_of(metadata_of(false)), "");
}

// A tensor a.w and an object s, spelled out: how storage_data names them, and the names and paths of
// planner_data. A part of a path that is digits is an integer.
struct Spelled {
  bool tensor_offset = true, object_offset = false;
  std::vector<std::pair<std::string, std::vector<std::string>>> planner = {{"a.w", {"a", "w"}}, {"s", {"s"}}};
};

class Speller {
 public:
  std::string run(const Spelled& s) {
    object(kModule, "Metadata", [&] {
      item("state_dict_metadata", [&] {
        w_.op(Op::kEmptyDict);
        item("a.w", [&] { object(kModule, "TensorStorageMetadata", [&] { tensor(); }); });
        item("s", [&] { object(kModule, "BytesStorageMetadata", [] {}); });
      });
      item("storage_data", [&] {
        w_.op(Op::kEmptyDict);
        record("a.w", s.tensor_offset, 0);
        record("s", s.object_offset, 8);
      });
      item("planner_data", [&] {
        w_.op(Op::kEmptyDict);
        for (const auto& [name, parts] : s.planner)
          item(name, [&, &parts = parts] {
            w_.op(Op::kMark);
            for (const std::string& p : parts)
              !p.empty() && p.find_first_not_of("0123456789") == p.npos ? w_.integer(std::stol(p))
                                                                        : w_.text(p);
            w_.op(Op::kTuple);
          });
      });
    });
    return w_.finish();
  }

 private:
  static constexpr std::string_view kModule = "torch.distributed.checkpoint.metadata";

  template <typename Fill>
  void object(std::string_view module, std::string_view name, Fill&& fill) {
    w_.class_name(module, name);
    w_.op(Op::kEmptyTuple), w_.op(Op::kNewobj), w_.op(Op::kEmptyDict);
    fill();
    w_.op(Op::kBuild);
  }
  template <typename Value>
  void item(std::string_view key, Value&& value) {
    w_.text(key), value(), w_.op(Op::kSetitem);
  }
  void numbers(std::string_view key, i64 v) {
    item(key, [&] { w_.tuple(std::vector<i64>{v}); });
  }
  void tensor() {
    item("properties", [&] {
      object(kModule, "TensorProperties", [&] { item("dtype", [&] { w_.class_name("torch", "float32"); }); });
    });
    numbers("size", 2);
    item("chunks", [&] {
      w_.op(Op::kEmptyList);
      object(kModule, "ChunkStorageMetadata", [&] { numbers("offsets", 0), numbers("sizes", 2); });
      w_.op(Op::kAppend);
    });
  }
  void record(std::string_view name, bool has_offset, i64 at) {
    object(kModule, "MetadataIndex", [&] {
      item("fqn", [&] { w_.text(name); });
      if (has_offset) numbers("offset", 0);
    });
    object("torch.distributed.checkpoint.filesystem", "_StorageInfo", [&] {
      item("relative_path", [&] { w_.text("__0_0.distcp"); });
      item("offset", [&] { w_.integer(at); });
      item("length", [&] { w_.integer(8); });
    });
    w_.op(Op::kSetitem);
  }

  PickleWriter w_;
};

std::string faults(const Spelled& s) { return faults_of(Speller().run(s)); }

TEST(DcpLoading, ComparesEveryPathWithItsName) {
  EXPECT_EQ(faults(Spelled{}), "");
  EXPECT_EQ(faults({.planner = {{"a.w", {"a.w"}}, {"s", {"s"}}}}), "");
  EXPECT_EQ(faults({.planner = {}}), "");
  for (const std::vector<std::string>& path : std::vector<std::vector<std::string>>{{"a", "v"},
                                                                                    {"a"},
                                                                                    {"a", "w", "w"},
                                                                                    {"a", "w", ""},
                                                                                    {"", "a", "w"},
                                                                                    {"aw"},
                                                                                    {"a", "7"},
                                                                                    {},
                                                                                    {"a.", "w"}})
    EXPECT_EQ(faults({.planner = {{"a.w", path}, {"s", {"s"}}}}).substr(0, 51),
              "MC1301 a.w: the path in planner_data leads elsewher")
        << (path.empty() ? "" : path[0]);
  EXPECT_EQ(faults({.planner = {{"a.w", {"a", "w"}}, {"s", {"7"}}}}),
            "MC1301 s: the path in planner_data leads elsewhere, so torch does not find the tensor or "
            "object: (7,)\n");
}

TEST(DcpLoading, TellsNamesThatChangedFromThoseThatAreLeftOut) {
  std::string left_out =
      "MC1301 s: planner_data does not name this tensor or object, so torch does not put it back in its "
      "place\n";
  std::string stranger =
      "MC1301 t: planner_data has this name, but .metadata lists no tensor or object of it\n";
  EXPECT_EQ(faults({.planner = {{"a.w", {"a", "w"}}}}), "warning " + left_out);
  EXPECT_EQ(faults({.planner = {{"a.w", {"a", "w"}}, {"s", {"s"}}, {"t", {"x"}}}}), "warning " + stranger);
  EXPECT_EQ(faults({.planner = {{"a.w", {"a", "w"}}, {"t", {"t"}}}}), left_out + stranger);
  EXPECT_EQ(faults_of(changed(metadata_of(), "planner_data", "plAnner_data", 1)),
            "warning MC1301 : there is no planner_data, so torch does not rebuild the dict that was saved\n"
            "warning MC1301 : fields that mckpt does not know are left out: Metadata.plAnner_data\n");
}

TEST(DcpLoading, LooksWhereTorchLooksForBytes) {
  EXPECT_EQ(faults({.tensor_offset = false}),
            "MC1301 a.w: storage_data has no offset for a chunk, so torch does not find the chunk\n");
  EXPECT_EQ(faults({.object_offset = true}),
            "MC1301 s: storage_data has an offset for an object, so torch does not find the object\n");
}

TEST(DcpLoading, LooksAtPropertiesThatNothingElseNeeds) {
  std::string sound = metadata_of();
  EXPECT_EQ(faults_of(changed(sound, "torch.strided", "torch.stryded", 1)),
            "MC1301 : torch cannot load the properties of a tensor: torch has no layout 'torch.stryded'\n");
  // TORCH_CONTIGUOUS_FORMAT is number 0 of three.
  std::size_t format = sound.find("_MEM_FORMAT_ENCODING"), number = sound.find('K', format) + 1;
  ASSERT_EQ(sound[number], 0);
  sound[number] = 3;
  EXPECT_EQ(faults_of(sound).substr(0, 78),
            "MC1301 : torch cannot load the properties of a tensor: the memory format is to");
}

// A pickle of Metadata of one tensor, whose parts can have more values or fields than torch has ever written.
struct Extra {
  std::vector<std::string> strides = {};  // of the properties: "1" an integer, "" None, other words are texts
  std::string field = {}, of = {};        // one more field of that class
  std::string plan_class = {};            // an object of this class of torch's in the field
};

class ExtraSpeller {
 public:
  explicit ExtraSpeller(const Extra& e) : e_(e) {}

  std::string run() {
    object(kModule, "Metadata", [&] {
      item("state_dict_metadata", [&] {
        w_.op(Op::kEmptyDict);
        item("a.w", [&] { object(kModule, "TensorStorageMetadata", [&] { tensor(); }); });
      });
      item("storage_data", [&] {
        w_.op(Op::kEmptyDict);
        object(kModule, "MetadataIndex", [&] { item("fqn", [&] { w_.text("a.w"); }), numbers("offset", 0); });
        object("torch.distributed.checkpoint.filesystem", "_StorageInfo", [&] {
          item("relative_path", [&] { w_.text("__0_0.distcp"); });
          item("offset", [&] { w_.integer(0); });
          item("length", [&] { w_.integer(8); });
        });
        w_.op(Op::kSetitem);
      });
      item("planner_data", [&] { w_.op(Op::kEmptyDict); });
    });
    return w_.finish();
  }

 private:
  static constexpr std::string_view kModule = "torch.distributed.checkpoint.metadata";

  template <typename Fill>
  void object(std::string_view module, std::string_view name, Fill&& fill) {
    w_.class_name(module, name);
    w_.op(Op::kEmptyTuple), w_.op(Op::kNewobj), w_.op(Op::kEmptyDict);
    fill();
    if (name == e_.of) item(e_.field, [&] { value(); });
    w_.op(Op::kBuild);
  }
  void value() {
    if (e_.plan_class.empty()) return w_.integer(7);
    w_.op(Op::kEmptyList);
    object("torch.distributed.checkpoint.planner", e_.plan_class, [&] {});
    w_.op(Op::kAppend);
  }
  template <typename Value>
  void item(std::string_view key, Value&& make) {
    w_.text(key), make(), w_.op(Op::kSetitem);
  }
  void numbers(std::string_view key, i64 v) {
    item(key, [&] { w_.tuple(std::vector<i64>{v}); });
  }
  void tensor() {
    item("properties", [&] { properties(); });
    numbers("size", 2);
    item("chunks", [&] {
      w_.op(Op::kEmptyList);
      object(kModule, "ChunkStorageMetadata", [&] { numbers("offsets", 0), numbers("sizes", 2); });
      w_.op(Op::kAppend);
    });
  }
  void properties() {
    w_.class_name(kModule, "TensorProperties");
    w_.op(Op::kEmptyTuple), w_.op(Op::kNewobj);
    w_.op(Op::kMark);
    w_.class_name("torch", "float32");
    w_.class_name("torch", "strided");
    w_.op(Op::kNewfalse);
    w_.class_name(kModule, "_MEM_FORMAT_ENCODING"), w_.tuple(std::vector<i64>{0}), w_.op(Op::kReduce);
    w_.op(Op::kNewfalse);
    for (const std::string& s : e_.strides) {
      if (s.empty())
        w_.op(Op::kNone);
      else if (s == "1")
        w_.tuple(std::vector<i64>{1});
      else
        w_.text(s);
    }
    w_.op(Op::kTuple), w_.op(Op::kBuild);
  }

  PickleWriter w_;
  const Extra& e_;
};

std::string faults(const Extra& e) { return faults_of(ExtraSpeller(e).run()); }

TEST(DcpLoading, TakesStridesBehindTheFiveProperties) {
  EXPECT_EQ(faults(Extra{}), "");
  EXPECT_EQ(faults(Extra{.strides = {"1"}}), "");
  EXPECT_EQ(faults(Extra{.strides = {""}}), "");
  const std::string front = "MC1301 : torch cannot load the properties of a tensor: ";
  EXPECT_EQ(faults(Extra{.strides = {"", ""}}),
            front + "their state has 7 values; torch reads 5, and from 2.15 on 6\n");
  EXPECT_EQ(faults(Extra{.strides = {"x"}}), front + "the strides are 'x'\n");
}

// Megatron-Core 0.19 stores the plans of all ranks; nothing in them is needed.
TEST(DcpLoading, NamesFieldsThatNobodyKnows) {
  for (const char* of :
       {"MetadataIndex", "_StorageInfo", "TensorStorageMetadata", "ChunkStorageMetadata", "Metadata"})
    EXPECT_EQ(faults(Extra{.field = "new", .of = of}),
              cat("warning MC1301 : fields that mckpt does not know are left out: ", of, ".new\n"));
  for (const char* known : {"SavePlan", "WriteItem", "TensorWriteData"})
    EXPECT_EQ(faults(Extra{.field = "all_local_plans", .of = "Metadata", .plan_class = known}), "") << known;
}

std::string parsed(const Extra& e) {
  const std::string pickle = ExtraSpeller(e).run();
  std::string out;
  for (const Finding& f :
       parse_dcp_metadata({reinterpret_cast<const u8*>(pickle.data()), pickle.size()}).findings)
    out += cat(f.warning ? "warning " : "", code_name(f.code), " ");
  return out;
}

// A class that torch 2.15 lacks may be one of the torch that has the field, but not of a field that torch has.
TEST(DcpLoading, JudgesNoClassesOfFieldsThatNobodyKnows) {
  EXPECT_EQ(parsed(Extra{.field = "all_plans", .of = "Metadata", .plan_class = "NewPlan"}),
            "warning MC1214 ");
  EXPECT_EQ(parsed(Extra{.field = "mcore_data", .of = "Metadata", .plan_class = "NewPlan"}),
            "MC1301 warning MC1214 ");
}

TEST(DcpLoading, SurvivesEveryChangedByteThatReadersTake) {
  i64 taken = 0;
  for (const std::string& sound : {metadata_of(), Speller().run({})})
    for (std::size_t at = 0; at < sound.size(); at++)
      for (int value = 0; value < 256; value += 51) {
        std::string bad = sound;
        bad[at] = static_cast<char>(value);
        std::span<const u8> bytes{reinterpret_cast<const u8*>(bad.data()), bad.size()};
        try {
          parse_dcp_metadata(bytes);
        } catch (const Error&) {
          continue;
        }
        taken++;
        EXPECT_NO_THROW(loading_faults(bytes)) << at << " " << value;
      }
  EXPECT_GT(taken, 1000);
}

}  // namespace
}  // namespace mckpt::impl
