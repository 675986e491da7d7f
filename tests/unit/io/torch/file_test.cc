// Files that torch wrote: names, types, shapes and bytes are those that torch reads back.
#include "io/torch/file.h"

#include <gtest/gtest.h>

#include "core/base/error_code.h"
#include "core/base/text.h"
#include "io/pickle/render.h"
#include "io/store/store.h"
#include "io/values/digest.h"
#include "tests/support/golden_json.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

std::string data_path(const std::string& name) { return cat(MCKPT_TEST_DATA, "/pt/", name); }

// "name dtype shape sha256" for each tensor, sorted by name.
std::map<std::string, std::string> tensors_of(const Store& store) {
  std::vector<i64> all(static_cast<std::size_t>(store.tensor_count()));
  for (std::size_t i = 0; i < all.size(); i++) all[i] = static_cast<i64>(i);
  std::vector<std::string> digests = tensor_digests(store, all, 1);
  std::map<std::string, std::string> out;
  for (i64 t : all)
    out[std::string(store.name(t))] = cat(dtype_name(store.dtype(t)), " ", dims_to_string(store.dims(t)), " ",
                                          digests[static_cast<std::size_t>(t)]);
  return out;
}

std::map<std::string, std::string> expected_tensors(const GoldenJson& file) {
  std::map<std::string, std::string> out;
  for (const auto& [name, t] : file.members())
    out[name] =
        cat(t["dtype"].string(), " ", dims_to_string(t["shape"].integers()), " ", t["sha256"].string());
  return out;
}

TEST(TorchFile, HoldsWhatTorchReadsBack) {
  GoldenJson manifest = read_golden("pt/manifest.json");
  ASSERT_GE(manifest["files"].size(), 20u);
  for (const auto& [name, file] : manifest["files"].members()) {
    std::unique_ptr<Store> store = open_store(data_path(name));
    EXPECT_EQ(tensors_of(*store), expected_tensors(file)) << name;
    for (const Finding& f : store->findings()) EXPECT_TRUE(f.warning) << name << ": " << f.message;
  }
}

std::string fact(const Store& store, std::string_view name) {
  for (const auto& [key, value] : store.facts())
    if (key == name) return value;
  return "";
}

TEST(TorchFile, SaysWhichFormItHas) {
  struct {
    const char *file, *format, *protocol;
  } cases[] = {{"zip.pt", "torch.save zip", "protocol 2"},
               {"zip_protocol4.pt", "torch.save zip", "protocol 4"},
               {"zip_protocol5.pt", "torch.save zip", "protocol 5"},
               {"legacy.pt", "torch.save legacy", "protocol 2"},
               {"legacy_protocol1.pt", "torch.save legacy", "protocol 0"},
               {"legacy_protocol4.pt", "torch.save legacy", "protocol 4"}};
  for (const auto& c : cases) {
    std::unique_ptr<Store> store = open_store(data_path(c.file));
    EXPECT_EQ(format_text(store->format()), c.format) << c.file;
    EXPECT_EQ(fact(*store, "pickle").substr(0, 10), c.protocol) << c.file;
  }
}

TEST(TorchFile, ListsEverythingThatIsNoTensor) {
  std::unique_ptr<Store> store = open_store(data_path("training.pt"));
  std::string all;
  for (const Object& o : store->objects()) all += cat(o.name, " = ", o.summary, "\n");
  EXPECT_EQ(
      all,
      "args = Namespace, 11 fields\n"
      "checkpoint_version = float 3.0\n"
      "iteration = int 10\n"
      "color = __main__.Color(1)\n"
      "blob = 3 bytes\n"
      "optimizer.param_groups = list of 1\n"
      "rng_state.0.random_rng_state = tuple (3, (2147483648, 507801126, 683453281, 310439348, 2597246090, "
      "2209084787, 2267831527...\n"
      "rng_state.0.np_rng_state = tuple ('MT19937', ndarray uint32 (624,), 624, 0, 0.0)\n");
}

TEST(TorchFile, ShowsTheArgumentsOfARun) {
  std::unique_ptr<Store> store = open_store(data_path("training.pt"));
  std::shared_ptr<const PickleValue> args = store->object(0);
  store.reset();  // the value lives on
  std::string tree;
  render_pickle(*args, {}, [&](std::string_view line) { tree += cat(line, "\n"); });
  EXPECT_EQ(tree,
            "Namespace, 11 fields\n"
            "  hidden_size: 8\n"
            "  num_layers: 2\n"
            "  bf16: True\n"
            "  params_dtype: torch.bfloat16\n"
            "  lr: 0.0003\n"
            "  data_path: ['a', 'b']\n"
            "  tokenizer_model: None\n"
            "  betas: (0.9, 0.95)\n"
            "  save: PosixPath('/x/y')\n"
            "  tensor_model_parallel_size: 2\n"
            "  pipeline_model_parallel_size: 1\n");
}

TEST(TorchFile, KnowsTheViewsOfOneStorage) {
  std::unique_ptr<Store> store = open_store(data_path("views.pt"));
  std::map<std::string, std::string> found;
  i64 whole = store->chunk(find_tensor(*store, "whole"), 0).record_offset;
  for (i64 t = 0; t < store->tensor_count(); t++) {
    ChunkData data = store->resolve(t, 0);
    found[std::string(store->name(t))] = cat(data.offset - whole, " ", dims_to_string(data.strides));
  }
  found.erase("expanded");  // of another storage
  EXPECT_EQ(found, (std::map<std::string, std::string>{{"whole", "0 []"},
                                                       {"same", "0 []"},
                                                       {"row", "64 []"},
                                                       {"transposed", "0 [1, 8]"},
                                                       {"slice", "40 [8, 1]"},
                                                       {"steps", "4 [16, 3]"}}));
}

TEST(TorchFile, ShowsAPieceOfADTensorInItsPlace) {
  std::unique_ptr<Store> store = open_store(data_path("ranks/model_world_size_4_rank_1.pt"));
  i64 even = find_tensor(*store, "even"), grid = find_tensor(*store, "grid");
  EXPECT_EQ(dims_to_string(store->dims(even)), "[8, 8]");
  EXPECT_EQ(dims_to_string(store->chunk(even, 0).offsets), "[2, 0]");
  EXPECT_EQ(dims_to_string(store->chunk(even, 0).sizes), "[2, 8]");
  EXPECT_EQ(dims_to_string(store->chunk(grid, 0).offsets), "[0, 5]");
  ASSERT_EQ(store->findings().size(), 1u);
  EXPECT_EQ(store->findings()[0].code, Code::kShardAlone);
  EXPECT_NE(store->findings()[0].message.find("shown at its beginning: uneven"), std::string::npos);
}

TEST(TorchFile, JoinsThePiecesOfAllRanks) {
  std::unique_ptr<Store> store = open_store(data_path("ranks"));
  EXPECT_EQ(store->ranks(), 4);
  std::string uneven;
  i64 t = find_tensor(*store, "uneven");
  for (i64 i = 0; i < store->chunk_count(t); i++) {
    Chunk c = store->chunk(t, i);
    uneven += cat(c.rank, dims_to_string(c.offsets), "+", dims_to_string(c.sizes), " ");
  }
  EXPECT_EQ(uneven, "0[0, 0]+[0, 8] 1[0, 0]+[20, 8] 2[20, 0]+[4, 8] 3[24, 0]+[0, 8] ");
  i64 copies = find_tensor(*store, "copies");
  EXPECT_FALSE(store->chunk(copies, 0).replica);
  EXPECT_TRUE(store->chunk(copies, 3).replica);
}

TEST(TorchFile, NamesTheTensorsOfEachMegatronRank) {
  std::unique_ptr<Store> store = open_store(data_path("megatron"));
  std::string names;
  for (i64 t = 0; t < store->tensor_count(); t++) names += cat(store->name(t), "\n");
  EXPECT_EQ(names,
            "mp_rank_00/distrib_optim.pt:0.param\nmp_rank_00/model.embedding.weight\n"
            "mp_rank_01/distrib_optim.pt:0.param\nmp_rank_01/model.embedding.weight\n");
  EXPECT_EQ(store->ranks(), 2);
  EXPECT_EQ(fact(*store, "layout"), "tp=2 pp=1");
}

TEST(TorchFile, KeepsAChecksumOfEveryRecord) {
  std::unique_ptr<Store> store = open_store(data_path("zip.pt"));
  std::string seen;
  store->each_checksum([&](const Checksum& c) { seen += cat(c.name, " ", c.tensor, "\n"); });
  EXPECT_EQ(
      seen,
      "zip/data.pkl -1\nzip/.format_version -1\nzip/.storage_alignment -1\nzip/byteorder -1\nzip/data/0 0\n"
      "zip/data/1 1\nzip/data/2 2\nzip/data/3 3\nzip/data/4 4\nzip/version -1\nzip/.data/serialization_id "
      "-1\n");
  std::unique_ptr<Store> without = open_store(data_path("no_checksums.pt"));
  without->each_checksum([](const Checksum&) { FAIL(); });
  ASSERT_EQ(without->findings().size(), 1u);
  EXPECT_EQ(without->findings()[0].code, Code::kNoChecksums);
}

}  // namespace
}  // namespace mckpt::impl
