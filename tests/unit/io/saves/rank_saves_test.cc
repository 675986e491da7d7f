// Which numbers all ranks of a run have alike.
#include "io/saves/rank_saves.h"
#include "io/store/open/format_ids.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "core/base/text.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/torch/store.h"
#include "tests/support/temp_folder.h"
#include "tests/support/torch_builder.h"

namespace mckpt::impl {
namespace rank_saves_test {

std::string pickled_float(double v) {
  const u64 bits = std::bit_cast<u64>(v);
  std::string out = "G";
  for (int i = 7; i >= 0; i--) out += static_cast<char>(bits >> 8 * i);
  return out;
}

std::vector<u8> saved(const std::string& value) { return torch_zip({{"data.pkl", whole_pickle(value)}}); }

std::string messages(const Store& store) {
  std::vector<std::string> out;
  for (const Finding& f : store.findings()) out.push_back(cat(f.file, ": ", f.message));
  return listed(out);
}

// The findings about two ranks whose files have these steps.
std::string steps_of_two(const std::string& one, const std::string& other) {
  TorchStore store("", Format::kTorchFiles, {});
  RankSaves saves(store);
  i32 rank = 0;
  for (const std::string& value : {one, other}) {
    const std::vector<u8> bytes = saved(pickled_dict({{"step", value}, {"note", pickled("x")}}));
    store.add_file(cat("rank_", rank, ".pt"), std::ssize(bytes), read_torch_file(MemorySource(bytes)),
                   cat("rank_", rank, ":"), rank);
    rank++;
  }
  saves.compare_objects({0, 1});
  saves.report();
  return messages(store);
}

TEST(RanksAgreeOn, SchedulesStepsAndOptions) {
  for (const char* name :
       {"lr_scheduler.last_epoch", "lr_scheduler._last_lr[0]", "scheduler.state.lr", "param_groups[0].lr",
        "param_groups[1].betas[1]", "state.7.step", "state.model.data_embed.weight.step",
        "optim.state.random.step", "step", "trainer.global_step", "epoch", "grad_scaler.scale", "iteration",
        "counts.steps[0]"})
    EXPECT_TRUE(ranks_agree_on(name)) << name;
}

TEST(RanksAgreeOn, NothingThatARankHasForItself) {
  for (const char* name :
       {"rng.cpu", "rng.numpy[2]", "random_state.step", "dataloader.step", "sampler.epoch",
        "param_groups[0].params[3]", "lr_scheduler.best", "rank", "dp_rank", "local_step", "loss",
        "model.embed.weight", "elapsed_time.step", "state.7.exp_avg", "torch_manual_seed", ""})
    EXPECT_FALSE(ranks_agree_on(name)) << name;
}

TEST(RankSaves, CompareNumbersAsPythonDoes) {
  const std::string nan = pickled_float(std::nan("")), negative_nan = pickled_float(-std::nan(""));
  const std::pair<std::string, std::string> alike[] = {{pickled(5), pickled(5)},
                                                       {pickled(5), pickled_float(5)},
                                                       {"\x88", pickled(1)},
                                                       {"\x89", pickled_float(0)},
                                                       {nan, nan},
                                                       {nan, negative_nan},
                                                       {"N", "N"}};
  for (const auto& [one, other] : alike) {
    EXPECT_EQ(steps_of_two(one, other), "");
    EXPECT_EQ(steps_of_two(other, one), "");
  }
  const std::pair<std::string, std::string> unlike[] = {{pickled(5), pickled(6)},
                                                        {pickled(5), pickled_float(5.5)},
                                                        {"\x88", pickled(2)},
                                                        {"\x88", "\x89"},
                                                        {nan, pickled(1)},
                                                        {"N", pickled(1)},
                                                        {pickled(1LL << 53), pickled((1LL << 53) + 1)}};
  for (const auto& [one, other] : unlike) {
    EXPECT_NE(steps_of_two(one, other), "");
    EXPECT_NE(steps_of_two(other, one), "");
  }
  EXPECT_EQ(steps_of_two(pickled(7), pickled(5)),
            "rank_1.pt: the file is of another save than rank_0.pt: step is 5 here and 7 there");
}

std::string text_of(std::span<const u8> bytes) { return {bytes.begin(), bytes.end()}; }

// The findings about the files of random states in a folder.
std::string states_in(const std::vector<std::pair<std::string, std::string>>& files) {
  TempFolder folder;
  for (const auto& [name, bytes] : files) folder.put(name, bytes);
  TorchStore store("", Format::kTorchFiles, {});
  RankSaves(store).compare_random_states(Folder(folder.path()));
  return messages(store);
}

// accelerate writes them by torch.save, older programs by pickle.
TEST(RankSaves, CompareRandomStatesOfAnyRanks) {
  auto step = [](i64 v) { return pickled_dict({{"step", pickled(v)}, {"seed", pickled(v)}}); };
  auto zip = [&](i64 v) { return text_of(saved(step(v))); };
  auto alone = [&](i64 v) { return whole_pickle(step(v)); };
  const std::string found =
      "random_states_2.pkl: the file is of another save than random_states_1.pkl: step is 5 here and 7 there";
  EXPECT_EQ(states_in({{"random_states_0.pkl", zip(7)}, {"random_states_1.pkl", alone(7)}}), "");
  EXPECT_EQ(states_in({{"random_states_1.pkl", zip(7)}, {"random_states_2.pkl", zip(5)}}), found);
  EXPECT_EQ(states_in({{"random_states_1.pkl", alone(7)}, {"random_states_2.pkl", zip(5)}}), found);
  EXPECT_EQ(states_in({{"random_states_1.pkl", alone(7)}, {"random_states_2.pkl", alone(5)}}), found);
  EXPECT_NE(states_in({{"rng_state_1.pth", zip(7)}, {"rng_state_12.pth", zip(5)}}), "");
  // Other files: of no rank, of a copy, of another kind.
  EXPECT_EQ(states_in({{"random_states_1.pkl", zip(7)},
                       {"random_states_x.pkl", zip(5)},
                       {"random_states_.pkl", zip(5)},
                       {"random_states_02.pkl", zip(5)},
                       {"rng_state_2.pth", zip(5)},
                       {"random_states_3.pkl", "no pickle"}}),
            "");
}

TEST(RankSaves, NameAFileThatIsTooLarge) {
  const std::string large = "\x80\x02" + std::string(17 << 20, '\0');
  EXPECT_EQ(states_in({{"random_states_1.pkl", large}}),
            "random_states_1.pkl: the file is not compared with those of the other ranks: it is too large: "
            "expected at most 16.0 MiB, found 17.0 MiB");
}

}  // namespace rank_saves_test
}  // namespace mckpt::impl
