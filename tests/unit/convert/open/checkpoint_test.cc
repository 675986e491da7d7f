// Opening a checkpoint with its model: the keys and their chunks, and what is refused or accepted.
#include "convert/open/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "convert/open/damage.h"
#include "convert/open/open.h"
#include "convert/open/openers.h"
#include "convert/open/source_model.h"
#include "convert/plan/reshard/reshard_source.h"
#include "convert/plan/source_identity.h"
#include "core/base/error_code.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "hf/model.h"
#include "io/store/findings.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "mappings/family.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

const std::string kData = MCKPT_TEST_DATA;
const std::string kLlama = kData + "/golden/models/tiny_llama1";
const std::string kSaved = kData + "/dcp/fsdp_dtensor_optim";  // of tiny_llama1, by three ranks
const std::string kDamaged = kData + "/dcp/damaged_pp2";       // of tiny_dense2: a pipeline stage is lost
const std::string kDense2 = kData + "/golden/models/tiny_dense2";

CheckpointModel opened(const std::string& path, const CheckpointOptions& options) {
  return open_checkpoint(open_store(path), options);
}

TEST(OpenCheckpoint, HasAChunkForEveryKeyOfTheModel) {
  CheckpointModel c = opened(kSaved, {.assets = kLlama});
  EXPECT_FALSE(c.translated());
  EXPECT_EQ(&c.on_disk(), &c.store());
  EXPECT_EQ(c.setup().vocab_rows, 37);
  EXPECT_TRUE(c.oddities().empty());
  ASSERT_GT(c.keys().size(), 0);
  for (i32 k = 0; k < c.keys().size(); k++)
    EXPECT_GE(c.tensor_of_key(c.keys()[k].name), 0) << c.keys()[k].name;
  EXPECT_EQ(c.tensor_of_key("decoder.layers.7.mlp.linear_fc2.weight"), -1);
  std::vector<DType> types = c.original_types();
  ASSERT_EQ(std::ssize(types), c.map().sources().size());
  for (DType t : types) EXPECT_EQ(t, DType::kBF16);  // as the config says; stored are fp32 main weights
}

TEST(OpenCheckpoint, ReturnsAValueThatCanBeMoved) {
  CheckpointModel first = opened(kSaved, {.assets = kLlama});
  std::vector<std::optional<DType>> stored = first.stored_types();
  CheckpointModel second = std::move(first);
  EXPECT_EQ(second.stored_types(), stored);
  EXPECT_EQ(second.keys().parameters().size(),
            second.map().parameters(Grid{}, Cell{}, second.setup()).size());
}

TEST(OpenCheckpoint, NeedsToKnowTheModel) {
  EXPECT_EQ(thrown_by([] { opened(kSaved, {}); }),
            cat("MC2014 ", kSaved, ": the checkpoint does not say to which Hugging Face model it belongs"));
  EXPECT_EQ(thrown_by([] { opened(kSaved, {.assets = kDense2}); }).substr(0, 6), "MC2005");
  CheckpointModel c = opened(kSaved, {.any_model = true});
  EXPECT_NE(c.model().plain, nullptr);
  EXPECT_GT(c.keys().size(), 0);
}

TEST(OpenCheckpoint, TakesTheAssetsBesideTheCheckpoint) {
  TempFolder folder;
  std::filesystem::copy(kSaved, folder.at("release"), std::filesystem::copy_options::recursive);
  EXPECT_EQ(own_assets(*open_store(folder.at("release"))), "");
  std::filesystem::copy(kLlama, folder.at("release/hf_assets"));
  CheckpointModel c = opened(folder.at("release"), {});
  EXPECT_EQ(c.assets_path(), own_assets(c.store()));
  EXPECT_EQ(c.map().family().name, open_hf_model(kLlama).map->family().name);
  EXPECT_EQ(kept_map(c.store()), "");
}

TEST(OpenCheckpoint, RefusesNumbersOfRanksThatTheCheckpointContradicts) {
  // This checkpoint has no args, so the option counts.
  CheckpointModel c = opened(kSaved, {.assets = kLlama, .source_tp = 1});
  EXPECT_EQ(c.run().tensor_ranks, 1);
  EXPECT_EQ(agreed_ranks(c.store(), 2, "source_tp", 2), 2);
  EXPECT_EQ(agreed_ranks(c.store(), 2, "source_tp", {}), 2);
  EXPECT_EQ(agreed_ranks(c.store(), {}, "source_tp", {}), std::nullopt);
  EXPECT_EQ(thrown_by([&] { agreed_ranks(c.store(), 2, "source_tp", 1); }).substr(0, 6), "MC2015");
}

TEST(OpenCheckpoint, RefusesAHuggingFaceModel) {
  TempFolder folder;
  std::string header = R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  folder.put("model.safetensors", file + header + "x");
  EXPECT_EQ(thrown_by([&] { opened(folder.path(), {}); }).substr(0, 6), "MC1112");
}

TEST(Damage, IsRefusedWithItsOtherFindingsUnlessItIsAccepted) {
  std::unique_ptr<Store> store = open_store(kDamaged);
  try {
    refuse_damage(*store, CheckedPart::kModel, {});
    FAIL() << "nothing is refused";
  } catch (const DamagedCheckpoint& e) {
    EXPECT_EQ(e.code(), Code::kPipelineLoss);
    EXPECT_NE(e.help().find("`accept` MC1313"), std::string::npos) << e.help();
    EXPECT_EQ(e.root(), store->root());
  }
  const std::vector<Code> accepted = {Code::kPipelineLoss};
  std::vector<Finding> oddities = refuse_damage(*store, CheckedPart::kModel, accepted);
  ASSERT_FALSE(oddities.empty());
  for (const Finding& f : oddities) EXPECT_TRUE(f.warning) << f.message;
}

TEST(Damage, OfSingleRecordsCanBeLeftToTheCaller) {
  std::vector<Finding> findings = {{.code = Code::kChunkHole, .tensor = "w", .message = "a hole"},
                                   {.code = Code::kMixedSaves, .message = "odd", .warning = true},
                                   {.code = Code::kRecordMissing, .message = "gone"}};
  EXPECT_TRUE(is_of_records(findings[0]));
  EXPECT_FALSE(is_of_records(findings[1]));
  EXPECT_EQ(finding_line(findings[0]), cat("problem[", code_name(Code::kChunkHole), "]: tensor 'w': a hole"));
  try {
    require_sound(findings, "ckpt");
    FAIL() << "nothing is refused";
  } catch (const DamagedCheckpoint& e) {
    EXPECT_EQ(e.code(), Code::kRecordMissing);  // of no tensor: what is wrong with a file leads
    ASSERT_EQ(e.others().size(), 2u);
    EXPECT_EQ(e.others()[0].code, Code::kChunkHole);
    EXPECT_EQ(e.others()[1].code, Code::kMixedSaves);
    EXPECT_EQ(e.notes()[0], "and 1 more");
  }
  findings[0].warning = findings[2].warning = true;
  require_sound(findings, "ckpt");
}

// A finding that only counts the rest of a kind has no file and no tensor, and explains nothing.
TEST(Damage, LeadsWithAProblemAndNotWithTheNumberOfTheOthers) {
  Findings many;
  for (i64 t = 0; t < Findings::kMostOfOneCode + 43; t++)
    many.add({.code = Code::kRecordOutside,
              .tensor = cat("t", t),
              .file = "__0_0.distcp",
              .message = cat("beyond ", t)});
  std::vector<Finding> findings = many.take();
  ASSERT_EQ(findings.back().message, "and 43 more of this kind");
  for (const Code whole : {Code::kRecordOutside, Code::kIncomplete}) {
    try {
      require_sound(findings, "ckpt");
      FAIL() << "nothing is refused";
    } catch (const Error& e) {
      EXPECT_EQ(e.message(), whole == Code::kIncomplete ? "lost" : "beyond 0");
      EXPECT_EQ(e.code(), whole);
    }
    findings.push_back({.code = Code::kIncomplete, .message = "lost"});  // of the checkpoint as a whole
  }
}

TEST(ReshardSource, DropsOptimizerStatesThatAreNotWanted) {
  ReshardSourceOptions options{.checkpoint = {.assets = kLlama}};
  auto sharded = [&] {
    return open_sharded(open_store(kSaved), {.source = kSaved, .how = opening_of(options)});
  };
  const Opened with = sharded();
  ReshardSource all(*with.sharded, options);
  options.weights_only = true;
  const Opened without = sharded();
  ReshardSource weights(*without.sharded, options);
  i64 states = 0;
  for (i32 t = 0; t < all.store().tensor_count(); t++) {
    EXPECT_FALSE(all.drops_tensor(t));
    bool state = all.store().name(t).starts_with("optimizer.");
    EXPECT_EQ(weights.drops_tensor(t), state) << all.store().name(t);
    states += state;
  }
  EXPECT_EQ(states, 18);
  EXPECT_TRUE(all.has_states());
  EXPECT_FALSE(weights.has_states());
  EXPECT_EQ(with.folders, (std::vector<std::string>{kSaved, kLlama}));
  EXPECT_EQ(all.rank_states(), nullptr);
}

TEST(ReshardSource, IsPlainForNamesOfNoConvention) {
  ReshardSourceOptions options;
  auto is_plain = [&](const std::string& path) { return is_plain_source(*open_store(path), options); };
  EXPECT_FALSE(is_plain(kData + "/dcp/plain"));
  options.checkpoint.any_model = true;
  EXPECT_TRUE(is_plain(kData + "/dcp/plain"));
  EXPECT_FALSE(is_plain(kSaved));
  options.keep_names = true;
  EXPECT_TRUE(is_plain(kSaved));
}

TEST(SourceIdentity, ChangesWithAFile) {
  TempFolder folder;
  std::filesystem::copy(kSaved, folder.at("ckpt"), std::filesystem::copy_options::recursive);
  const std::string file = folder.at("ckpt/__0_0.distcp");
  auto now = [&] { return source_identity(*open_store(folder.at("ckpt"))); };
  const SourceIdentity before = now();
  EXPECT_EQ(now().text(), before.text());
  // chmod changes the time of the last change alone.
  std::filesystem::permissions(file,
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(now().files, before.files);
  EXPECT_NE(now().times, before.times);
  std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now());
  EXPECT_NE(now().files, before.files);
}

}  // namespace
}  // namespace mckpt::impl
