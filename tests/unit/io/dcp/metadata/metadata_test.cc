#include "io/dcp/metadata/metadata.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/file/file.h"
#include "io/pickle/write/writer.h"
#include "tests/support/golden_json.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

const std::string kData = cat(MCKPT_TEST_DATA, "/dcp/");

std::vector<u8> bytes_of(const std::string& path) {
  InputFile file(path);
  return file.read(0, file.size());
}

DcpMetadata metadata_of(const std::string& folder) {
  return parse_dcp_metadata(bytes_of(kData + folder + "/.metadata"));
}

std::string dump(const DcpMetadata& m, const DcpRecord& r) {
  return r.file < 0 ? "nowhere"
                    : cat(m.files[static_cast<std::size_t>(r.file)], " @ ", r.offset, " + ", r.bytes);
}

// "name offset" -> "file @ offset + length" of everything that has bytes.
std::map<std::string, std::string> places(const DcpMetadata& m) {
  std::map<std::string, std::string> out;
  for (i64 t = 0; t < m.tensor_count(); t++) {
    std::size_t rank = m.dims[t].size();
    for (std::size_t c = 0; c < m.records[t].size(); c++)
      out[cat(m.name(t), " ", dims_to_string(m.offsets[t].subspan(c * rank, rank)))] =
          dump(m, m.records[t][c]);
  }
  for (i64 o = 0; o < m.object_names.size(); o++)
    out[cat(m.object_name(o), " null")] = dump(m, m.object_records[static_cast<std::size_t>(o)]);
  return out;
}

struct Fixture {
  const char *folder, *manifest;
};
constexpr Fixture kFixtures[] = {{"plain", "plain"},
                                 {"uneven_4/iter_0000010", "uneven_4/iter_0000010"},
                                 {"uneven_tp2dp2", "uneven_tp2dp2"},
                                 {"torch_dist_mini/iter_0000010", "torch_dist_mini"}};

TEST(DcpMetadata, HasTheTensorsAndChunksThatTorchSees) {
  for (const Fixture& f : kFixtures) {
    DcpMetadata m = metadata_of(f.folder);
    GoldenJson manifest = read_golden(cat("dcp/", f.manifest, ".manifest.json"));
    EXPECT_EQ(static_cast<std::size_t>(m.tensor_count()), manifest["tensors"].size());
    EXPECT_TRUE(m.findings.empty());
    for (i64 t = 0; t < m.tensor_count(); t++) {
      const GoldenJson& want = manifest["tensors"][m.name(t)];
      EXPECT_EQ(dtype_name(m.dtypes[static_cast<std::size_t>(t)]), want["dtype"].string());
      EXPECT_TRUE(std::ranges::equal(m.dims[t], want["shape"].integers())) << m.name(t);
      std::vector<i64> offsets, sizes;
      for (const GoldenJson& chunk : want["chunks"].items()) {
        for (i64 n : chunk["offsets"].integers()) offsets.push_back(n);
        for (i64 n : chunk["sizes"].integers()) sizes.push_back(n);
      }
      EXPECT_TRUE(std::ranges::equal(m.offsets[t], offsets)) << m.name(t);
      EXPECT_TRUE(std::ranges::equal(m.sizes[t], sizes)) << m.name(t);
      EXPECT_EQ(m.records[t].size(), want["chunks"].size()) << m.name(t);
    }
  }
}

TEST(DcpMetadata, FindsEveryRecordWhereTorchFindsIt) {
  for (const Fixture& f : kFixtures) {
    GoldenJson manifest = read_golden(cat("dcp/", f.manifest, ".manifest.json"));
    std::map<std::string, std::string> want;
    for (const GoldenJson& s : manifest["storage"].items()) {
      std::string offset = s["offset_nd"].is_null() ? "null" : dims_to_string(s["offset_nd"].integers());
      want[cat(s["fqn"].string(), " ", offset)] =
          cat(s["file"].string(), " @ ", s["offset"].integer(), " + ", s["length"].integer());
    }
    EXPECT_EQ(places(metadata_of(f.folder)), want) << f.folder;
  }
}

TEST(DcpMetadata, KeepsTheOrderOfTheFile) {
  for (const char* name : {"fsdp2", "megatron_fsdp_v2"}) {
    GoldenJson want = read_golden(cat("dcp/", name, ".expected.json"));
    DcpMetadata m = metadata_of(name);
    std::vector<std::string> tensors, objects, all;
    for (const std::string& key : want["metadata_order"].strings())
      (want["tensors"].find(key) != nullptr ? tensors : objects).push_back(key);
    for (i64 t = 0; t < m.tensor_count(); t++) all.emplace_back(m.name(t));
    EXPECT_EQ(all, tensors) << name;
    all.clear();
    for (i64 o = 0; o < m.object_names.size(); o++) all.emplace_back(m.object_name(o));
    EXPECT_EQ(all, objects) << name;
  }
}

TEST(DcpMetadata, SeesStageLocalLayersWhereThereAreSome) {
  for (const char* name : {"fsdp2", "fsdp_dtensor_optim", "hfsdp", "megatron_fsdp_v2", "plain",
                           "torch_dist_pp2", "uneven_tp2dp2"})
    EXPECT_FALSE(metadata_of(name).stage_local_layers) << name;
  EXPECT_TRUE(metadata_of("damaged_pp2").stage_local_layers);
}

TEST(DcpMetadata, KeepsSaveIdAndVersion) {
  DcpMetadata m = metadata_of("damaged_pp2");
  EXPECT_EQ(m.version, "1.0.0");
  EXPECT_EQ(m.save_id, "32df958c-0daf-4401-a54a-da38e1dd4d6c");
}

std::string thrown_by_parsing(std::span<const u8> bytes) {
  return thrown_by([&] { parse_dcp_metadata(bytes); });
}

TEST(DcpMetadata, RefusesOtherPickles) {
  const std::pair<std::string, const char*> cases[] = {
      {"\x80\x02}.", "MC1301 .metadata holds a dict, not an object of torch's class Metadata"},
      {"\x80\x02N.", "MC1301 .metadata holds None, not an object of torch's class Metadata"},
      {"ctorch.distributed.checkpoint.metadata\nMetadata\n)\x81.",
       "MC1301 the object in .metadata, of class Metadata, has no state_dict_metadata"},
      {"ctorch.distributed.checkpoint.metadata\nMetadata\n)\x81}\x8c\x13state_dict_metadataNsb.",
       "MC1301 state_dict_metadata in .metadata is None, not a dict: an unexpected type"},
      {"ctorch.distributed.checkpoint.metadata\nChunkStorageMetadata\n)\x81}\x8c\x07offsetsNsb.",
       "MC1301 a ChunkStorageMetadata in .metadata has no field 'sizes'"},
  };
  for (const auto& [pickle, want] : cases)
    EXPECT_EQ(thrown_by_parsing({reinterpret_cast<const u8*>(pickle.data()), pickle.size()}), want);
}

// An object of torch's class with the fields that `fill` writes, each a text, a value and SETITEM.
template <typename Fill>
void write_object(PickleWriter& w, std::string_view module, std::string_view name, const Fill& fill) {
  w.class_name(module, name);
  w.op(Op::kEmptyTuple), w.op(Op::kNewobj), w.op(Op::kEmptyDict);
  fill();
  w.op(Op::kBuild);
}

// A pickler that knows nothing of torch: every text is spelled out at each place, no field is where torch
// writes it, and of a field that occurs twice the last one counts, as in Python.
TEST(DcpMetadata, TakesFieldsInAnyOrderAndNamesThatAreSpelledOutAgain) {
  constexpr std::string_view kModule = "torch.distributed.checkpoint.metadata";
  PickleWriter w;
  auto item = [&](std::string_view key, auto&& value) { w.text(key), value(), w.op(Op::kSetitem); };
  auto numbers = [&](std::string_view key, std::vector<i64> v) { item(key, [&] { w.tuple(v); }); };
  auto number = [&](std::string_view key, i64 v) { item(key, [&] { w.integer(v); }); };
  auto text = [&](std::string_view key, std::string_view v) { item(key, [&] { w.text(v); }); };
  auto chunk = [&](i64 begin, i64 size) {
    write_object(w, kModule, "ChunkStorageMetadata",
                 [&] { numbers("sizes", {9}), numbers("offsets", {begin}), numbers("sizes", {size}); });
    w.op(Op::kAppend);
  };
  auto tensor = [&] {
    item("chunks", [&] { w.op(Op::kEmptyList), chunk(0, 4), chunk(4, 2); });
    numbers("size", {6});
    item("properties", [&] {
      write_object(w, kModule, "TensorProperties",
                   [&] { item("dtype", [&] { w.class_name("torch", "float32"); }); });
    });
  };
  auto record = [&](std::string_view name, i64 begin, i64 at) {
    write_object(w, kModule, "MetadataIndex", [&] { numbers("offset", {begin}), text("fqn", name); });
    write_object(w, "torch.distributed.checkpoint.filesystem", "_StorageInfo", [&] {
      number("length", 8), number("offset", 1), number("offset", at), text("relative_path", "__0_0.distcp");
    });
    w.op(Op::kSetitem);
  };
  write_object(w, kModule, "Metadata", [&] {
    item("storage_data",
         [&] { w.op(Op::kEmptyDict), record("w", 4, 300), record("w", 0, 200), record("v", 0, 100); });
    item("state_dict_metadata", [&] {
      w.op(Op::kEmptyDict);
      for (std::string_view name : {"w", "v"})
        item(name, [&] { write_object(w, kModule, "TensorStorageMetadata", tensor); });
    });
  });
  std::string pickle = w.finish();
  DcpMetadata m = parse_dcp_metadata({reinterpret_cast<const u8*>(pickle.data()), pickle.size()});
  std::map<std::string, std::string> want = {{"w [0]", "__0_0.distcp @ 200 + 8"},
                                             {"w [4]", "__0_0.distcp @ 300 + 8"},
                                             {"v [0]", "__0_0.distcp @ 100 + 8"},
                                             {"v [4]", "nowhere"}};
  EXPECT_EQ(places(m), want);
  EXPECT_TRUE(std::ranges::equal(m.sizes[0], std::vector<i64>{4, 2}));
}

// A tensor of four chunks, two of each rank, whose indexes say these positions.
std::vector<Finding> found_with_positions(const std::vector<i64>& positions) {
  constexpr std::string_view kModule = "torch.distributed.checkpoint.metadata";
  PickleWriter w;
  auto item = [&](std::string_view key, auto&& value) { w.text(key), value(), w.op(Op::kSetitem); };
  auto numbers = [&](std::string_view key, std::vector<i64> v) { item(key, [&] { w.tuple(v); }); };
  auto number = [&](std::string_view key, i64 v) { item(key, [&] { w.integer(v); }); };
  auto text = [&](std::string_view key, std::string_view v) { item(key, [&] { w.text(v); }); };
  auto chunk = [&](i64 begin) {
    write_object(w, kModule, "ChunkStorageMetadata",
                 [&] { numbers("offsets", {begin}), numbers("sizes", {3}); });
    w.op(Op::kAppend);
  };
  auto tensor = [&] {
    item("chunks", [&] { w.op(Op::kEmptyList), chunk(0), chunk(3), chunk(6), chunk(9); });
    numbers("size", {12});
    item("properties", [&] {
      write_object(w, kModule, "TensorProperties",
                   [&] { item("dtype", [&] { w.class_name("torch", "float32"); }); });
    });
  };
  auto record = [&](i64 n, std::string_view file) {
    write_object(w, kModule, "MetadataIndex", [&] {
      numbers("offset", {3 * n}), text("fqn", "w"), number("index", positions[static_cast<std::size_t>(n)]);
    });
    write_object(w, "torch.distributed.checkpoint.filesystem", "_StorageInfo",
                 [&] { number("length", 12), number("offset", 20 * n), text("relative_path", file); });
    w.op(Op::kSetitem);
  };
  write_object(w, kModule, "Metadata", [&] {
    item("state_dict_metadata", [&] {
      w.op(Op::kEmptyDict);
      item("w", [&] { write_object(w, kModule, "TensorStorageMetadata", tensor); });
    });
    item("storage_data", [&] {
      w.op(Op::kEmptyDict);
      record(3, "__2_1.distcp"), record(0, "__0_0.distcp"), record(2, "__2_0.distcp"),
          record(1, "__0_1.distcp");
    });
  });
  std::string pickle = w.finish();
  return parse_dcp_metadata({reinterpret_cast<const u8*>(pickle.data()), pickle.size()}).findings;
}

// torch's dp_reshardable states: every rank counts its own chunks.
TEST(DcpMetadata, TakesPositionsAmongTheChunksOfOneRank) {
  EXPECT_TRUE(found_with_positions({0, 1, 2, 3}).empty());
  EXPECT_TRUE(found_with_positions({0, 1, 0, 1}).empty());
  for (const std::vector<i64>& wrong : {std::vector<i64>{1, 0, 2, 3}, {0, 1, 1, 0}, {0, 1, 3, 2}}) {
    std::vector<Finding> found = found_with_positions(wrong);
    ASSERT_EQ(found.empty(), false);
    EXPECT_EQ(found[0].code, Code::kBadMetadata);
    EXPECT_TRUE(found[0].warning);
  }
}

TEST(DcpMetadata, SurvivesEveryCutAndEveryChangedByte) {
  for (const char* name : {"variations/as_torch", "variations/protocol_2"}) {
    std::vector<u8> bytes = bytes_of(kData + name + "/.metadata");
    for (std::size_t n = 0; n < bytes.size(); n++)
      EXPECT_NE(thrown_by_parsing(std::span(bytes).first(n)), "nothing") << n;
    std::set<std::string> outcomes;
    for (std::size_t i = 0; i < bytes.size(); i++)
      for (int flip : {0x01, 0x10, 0x80, 0xff}) {
        bytes[i] = static_cast<u8>(bytes[i] ^ flip);
        outcomes.insert(thrown_by_parsing(bytes).substr(0, 6));
        bytes[i] = static_cast<u8>(bytes[i] ^ flip);
      }
    EXPECT_TRUE(outcomes.contains("nothin"));  // a letter of a name, a digit of a size
    EXPECT_TRUE(outcomes.contains("MC1301"));
  }
}

TEST(DcpMetadata, JoinsWhatRanksWroteEachForThemselves) {
  std::vector<DcpMetadata> parts;
  for (const char* name : {"0", "1", "2"})
    parts.push_back(parse_dcp_metadata(bytes_of(cat(kData, "per_rank/__", name, ".metadata"))));
  DcpMetadata m = merge_dcp_metadata(parts);
  std::map<std::string, std::string> want = {{"w [0, 0]", "__0_0.distcp @ 1261 + 1641"},
                                             {"w [4, 0]", "__1_0.distcp @ 1261 + 1641"},
                                             {"w [8, 0]", "__2_0.distcp @ 1261 + 1577"},
                                             {"rep [0]", "__0_0.distcp @ 2902 + 1577"},
                                             {"it null", "__0_0.distcp @ 0 + 1261"}};
  EXPECT_EQ(places(m), want);
  EXPECT_EQ(m.tensor_count(), 2);
  EXPECT_TRUE(std::ranges::equal(m.sizes[0], std::vector<i64>{4, 4, 4, 4, 3, 4}));
  // Each part numbers its packings by itself.
  parts[0].packings = {"stream.zstd/1"};
  parts[0].records.items[0].packing = 0;
  parts[1].packings = {"other/2", "stream.zstd/1"};
  parts[1].records.items[0].packing = 1;
  parts[2].packings = {"other/2"};
  parts[2].records.items[0].packing = 0;
  m = merge_dcp_metadata(parts);
  EXPECT_EQ(m.packings, (std::vector<std::string>{"stream.zstd/1", "other/2"}));
  std::vector<std::string> packed;
  for (const DcpRecord& r : m.records[0]) packed.push_back(r.packing < 0 ? "-" : m.packings[r.packing]);
  EXPECT_EQ(packed, (std::vector<std::string>{"stream.zstd/1", "stream.zstd/1", "other/2"}));
  parts[1].dims.items[0] = 12;
  EXPECT_THROW(merge_dcp_metadata(parts), Error);
}

}  // namespace
}  // namespace mckpt::impl
