// Which numbers all ranks of a run have alike.
#include "io/torch/rank_saves.h"

#include <gtest/gtest.h>

namespace mckpt::impl {
namespace {

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

}  // namespace
}  // namespace mckpt::impl
