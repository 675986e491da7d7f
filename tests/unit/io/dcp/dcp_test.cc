#include "io/dcp/dcp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "io/dcp/keys/dialect.h"
#include "io/pickle/render.h"
#include "io/store/store.h"
#include "io/values/digest.h"
#include "io/verify/verify.h"
#include "tests/support/golden_json.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

const std::string kData = cat(MCKPT_TEST_DATA, "/dcp/");

std::string codes_of(const std::vector<Finding>& findings, bool warnings) {
  std::string out;
  for (const Finding& f : findings)
    if (f.warning == warnings && out.find(code_name(f.code)) == out.npos) out += code_name(f.code) + " ";
  return out;
}

std::string expected_codes(const GoldenJson& codes) {
  std::string out;
  for (const std::string& code : codes.strings()) out += code + " ";
  return out;
}

std::vector<Finding> verified(const std::string& path) {
  std::unique_ptr<Store> store = open_store(path);
  return verify_store(*store, 2, [](i64) {}).findings;
}

std::string digest_of(const Store& store, std::string_view name) {
  i64 tensor = find_tensor(store, name);
  return tensor_digests(store, {&tensor, 1}, 1)[0];
}

struct Folder {
  const char *path, *expected;
  DcpDialect dialect;
  i64 ranks;
};
constexpr Folder kSound[] = {
    {"plain", "plain.manifest", DcpDialect::kPlain, 1},
    {"uneven_4", "uneven_4/iter_0000010.manifest", DcpDialect::kFsdpDtensor, 4},
    {"uneven_tp2dp2", "uneven_tp2dp2.manifest", DcpDialect::kMegatronFsdp, 4},
    {"torch_dist_mini", "torch_dist_mini.manifest", DcpDialect::kTorchDist, 1},
    {"torch_dist_pp2", "torch_dist_pp2.expected", DcpDialect::kTorchDist, 2},
    {"fsdp_dtensor_optim", "fsdp_dtensor_optim.expected", DcpDialect::kFsdpDtensor, 3},
    {"hfsdp", "hfsdp.expected", DcpDialect::kFsdpDtensor, 4},
    {"megatron_fsdp_v2", "megatron_fsdp_v2.expected", DcpDialect::kStateDict, 3},
    {"fsdp2", "fsdp2.expected", DcpDialect::kStateDict, 3},
};

TEST(Dcp, ReadsEveryTensorOfRealFoldersAsTorchDoes) {
  for (const Folder& f : kSound) {
    std::unique_ptr<Store> store = open_store(kData + f.path);
    GoldenJson want = read_golden(cat("dcp/", f.expected, ".json"));
    EXPECT_EQ(store->tensor_count(), static_cast<i64>(want["tensors"].size())) << f.path;
    for (const auto& [name, tensor] : want["tensors"].members())
      EXPECT_EQ(digest_of(*store, name), tensor["sha256"].string()) << f.path << " " << name;
  }
}

TEST(Dcp, TellsDialectAndRanksOfRealFolders) {
  for (const Folder& f : kSound) {
    std::unique_ptr<Store> store = open_store(kData + f.path);
    EXPECT_EQ(format_text(store->format()), format_text(dcp_format(f.dialect))) << f.path;
    EXPECT_EQ(store->ranks(), f.ranks) << f.path;
  }
}

TEST(Dcp, FindsNothingWrongWithRealFolders) {
  for (const Folder& f : kSound) {
    std::vector<Finding> findings = verified(kData + f.path);
    EXPECT_EQ(codes_of(findings, false) + codes_of(findings, true), "")
        << f.path << ": " << (findings.empty() ? "" : findings[0].message);
  }
  EXPECT_TRUE(verified(kData + "per_rank").empty());
}

TEST(Dcp, TellsTheSameDamageForAnyNumberOfThreads) {
  TempFolder folder;
  std::string path = folder.at("damaged");
  std::filesystem::copy(kData + "uneven_4/iter_0000010", path);
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.path().extension() == ".distcp") {  // objects of which some are named and the others counted
      std::string zeros(std::filesystem::file_size(entry.path()), '\0');
      std::filesystem::permissions(entry.path(), std::filesystem::perms::owner_all);
      folder.put("damaged/" + entry.path().filename().string(), zeros);
    }
  auto told = [&](int threads) {
    std::vector<std::string> out;
    for (const Finding& f : verify_store(*open_store(path), threads, [](i64) {}).findings)
      out.push_back(cat(code_name(f.code), " ", f.tensor, " ", f.file, " ", f.message));
    return out;
  };
  std::vector<std::string> alone = told(1);
  EXPECT_GT(alone.size(), 50u);
  for (int time = 0; time < 20; time++) EXPECT_EQ(told(8), alone);
}

TEST(Dcp, SeesThatPipelineStagesOverwroteEachOther) {
  EXPECT_EQ(codes_of(open_store(kData + "damaged_pp2")->findings(), false), "MC1313 ");
}

TEST(Dcp, ReadsAndJudgesEveryVariation) {
  GoldenJson expected = read_golden("dcp/variations/expected.json");
  for (const auto& [name, want] : expected["folders"].members()) {
    std::string path = kData + "variations/" + name;
    std::unique_ptr<Store> store;
    std::string opened = thrown_by([&] { store = open_store(path); });
    EXPECT_EQ(opened.substr(0, 6), want["opens"].string().empty() ? "nothin" : want["opens"].string())
        << name;
    if (!store) continue;
    EXPECT_EQ(codes_of(store->findings(), false), expected_codes(want["findings"])) << name;
    EXPECT_EQ(codes_of(store->findings(), true), expected_codes(want["warnings"])) << name;
    std::string item = want["item"].string(), checksum = want["checksum"].string();
    if (want["findings"].size() > 0) continue;
    EXPECT_EQ(thrown_by([&] { store->resolve(0, 0); }).substr(0, 6), item.empty() ? "nothin" : item) << name;
    if (item.empty()) {
      EXPECT_EQ(digest_of(*store, "w") == expected["sha256"].string(), checksum.empty()) << name;
    }
    std::string broken = item + checksum;
    EXPECT_EQ(codes_of(verified(path), false), broken.empty() ? "" : broken + " ") << name;
  }
}

TEST(Dcp, SaysWhereAnItemIsWrong) {
  std::unique_ptr<Store> store = open_store(kData + "variations/item_other_shape");
  try {
    store->resolve(0, 0);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.tensor(), "w");
    EXPECT_EQ(e.file(), kData + "variations/item_other_shape/__0_0.distcp");
    EXPECT_EQ(e.expected(), "[5, 4]");
    EXPECT_EQ(e.found(), "[4, 4]");
  }
}

TEST(Dcp, ReadsObjectsWhenAsked) {
  std::unique_ptr<Store> store = open_store(kData + "uneven_4");
  auto value = [&](std::string_view name) {
    for (std::size_t i = 0; i < store->objects().size(); i++)
      if (store->objects()[i].name == name) return pickle_summary(*store->object(static_cast<i64>(i)));
    return std::string("none");
  };
  EXPECT_EQ(value("iteration"), "int 10");
  EXPECT_EQ(value("checkpoint_version"), "float 3.0");
  EXPECT_EQ(value("args"), "Namespace, 11 fields");
  EXPECT_EQ(value("opt_param_scheduler.lr_decay_style"), "str 'cosine'");
  EXPECT_EQ(value("lists no tensor or object of it"), "none");
}

TEST(Dcp, KnowsTheRankOfAChunkByItsFile) {
  std::unique_ptr<Store> store = open_store(kData + "fsdp2");
  i64 tensor = find_tensor(*store, "model.emb.weight");
  ASSERT_EQ(store->chunk_count(tensor), 3);
  for (i64 c = 0; c < 3; c++) EXPECT_EQ(store->chunk(tensor, c).rank, c);
}

class DcpCopy : public ::testing::Test {
 protected:
  void copy(const std::string& name) {
    std::filesystem::copy(kData + name, folder.path() + "/c", std::filesystem::copy_options::recursive);
  }
  std::string path() const { return folder.path() + "/c"; }
  std::string opened() const {
    return thrown_by([&] { open_store(path()); });
  }

  TempFolder folder;
};

TEST_F(DcpCopy, WithoutMetadataIsAnInterruptedSave) {
  copy("fsdp2");
  std::filesystem::remove(path() + "/.metadata");
  EXPECT_EQ(opened(), cat("MC1302 ", path(),
                          ": the folder has no .metadata: found only data files: the save was interrupted "
                          "before it was complete"));
}

TEST_F(DcpCopy, WithoutAFileSaysWhichAndKeepsTheRest) {
  copy("fsdp2");
  std::filesystem::remove(path() + "/__1_0.distcp");
  std::unique_ptr<Store> store = open_store(path());
  ASSERT_EQ(store->findings().size(), 1u);
  EXPECT_EQ(store->findings()[0].code, Code::kIncomplete);
  EXPECT_EQ(store->findings()[0].file, "__1_0.distcp");
  EXPECT_EQ(thrown_by([&] { store->resolve(0, 1); }).substr(0, 6), "MC1001");
  EXPECT_EQ(thrown_by([&] { store->resolve(0, 0); }), "nothing");
}

TEST_F(DcpCopy, CutShortSaysWhatIsLost) {
  copy("fsdp2");
  std::filesystem::resize_file(path() + "/__0_0.distcp", 2000);
  EXPECT_EQ(codes_of(open_store(path())->findings(), false), "MC1308 ");
}

TEST_F(DcpCopy, ShowsFilesOfAnotherSave) {
  copy("fsdp2");
  folder.put("c/__3_0.distcp", "");  // a rank that held nothing
  EXPECT_TRUE(open_store(path())->findings().empty());
  folder.put("c/__3_0.distcp", "PK");
  EXPECT_EQ(codes_of(open_store(path())->findings(), true), "MC1315 ");
  std::filesystem::remove(path() + "/__3_0.distcp");
  std::filesystem::resize_file(path() + "/__0_0.distcp",
                               std::filesystem::file_size(path() + "/__0_0.distcp") + 100);
  std::vector<Finding> found = open_store(path())->findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].file, "__0_0.distcp");
  EXPECT_EQ(found[0].message,
            "100 bytes after the last record belong to no chunk or object: the file may be of another save");
}

TEST_F(DcpCopy, IsComparedWithItsListOfHashes) {
  copy("torch_dist_pp2");
  std::string list =
      "{\"algorithm\": \"sha256\", \"files\": {\"metadata.json\": "
      "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\", "
      "\"gone\": \"00\"}}";
  folder.put("c/integrity.json", list);
  EXPECT_EQ(codes_of(verified(path()), false), "MC1314 MC1302 ");
  folder.put("c/integrity.json", "{}");
  EXPECT_EQ(codes_of(verified(path()), false), "MC1314 ");
}

TEST_F(DcpCopy, OfMegatronWithoutItsLastFileIsOdd) {
  copy("torch_dist_pp2");
  EXPECT_EQ(codes_of(open_store(path())->findings(), true), "");
  std::filesystem::remove(path() + "/metadata.json");
  std::unique_ptr<Store> store = open_store(path());
  EXPECT_EQ(codes_of(store->findings(), false), "");
  ASSERT_EQ(codes_of(store->findings(), true), "MC1302 ");
  EXPECT_EQ(store->findings()[0].file, "metadata.json");
}

// The answer of Megatron-Core 0.16.1 to each of these marks.
TEST_F(DcpCopy, IsSoundOnlyWithAMarkThatMegatronTakes) {
  struct Mark {
    const char *text, *found;  // found: "" for a mark that is taken
  };
  constexpr Mark kMarks[] = {
      {R"({"sharded_backend": "torch_dist"})", ""},
      {R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1, "common_backend": "torch"})", ""},
      {R"({"sharded_backend": "zarr", "sharded_backend_version": 1})", "found sharded_backend zarr"},
      {R"({"sharded_backend": "torch_dist", "sharded_backend_version": 99})",
       "found sharded_backend_version 99"},
      {R"({"sharded_backend": "torch_dist", "common_backend": "msc"})", "found common_backend msc"},
      {R"({"sharded_backend": "torch_dist", "step": 3})", "found the member step"},
      {"{}", "found no sharded_backend"},
      {"[]", "found an array"},
      {"[", "found the JSON text ends inside an array"}};
  copy("torch_dist_pp2");
  for (const Mark& mark : kMarks) {
    folder.put("c/metadata.json", mark.text);
    std::vector<Finding> opened = open_store(path())->findings();
    const std::string expected = *mark.found == 0 ? "" : "MC1302 ";
    EXPECT_EQ(codes_of(opened, true), expected) << mark.text;
    EXPECT_EQ(codes_of(verified(path()), false), expected) << mark.text;
    const std::string said = opened.empty() ? "" : opened[0].message;
    EXPECT_TRUE(said.ends_with(mark.found)) << said;
  }
}

TEST_F(DcpCopy, TakesTheObjectsOfOlderMegatronFiles) {
  copy("torch_dist_pp2");
  std::filesystem::copy(kData + "../dcp/variations/as_torch/__1_0.distcp", path() + "/common.pt");
  std::unique_ptr<Store> store = open_store(path());
  EXPECT_EQ(store->objects().back().name, "common.pt");
  EXPECT_EQ(codes_of(store->findings(), true), cat(code_name(Code::kRecordUnused), " "));
  EXPECT_NE(store->object(static_cast<i64>(store->objects().size()) - 1), nullptr);
}

}  // namespace
}  // namespace mckpt::impl
