// The args of a source in a result: which fields follow from the result, and that all others stay.
#include "convert/facts/kept_args.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "convert/facts/megatron_args.h"
#include "core/base/notes.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "io/dcp/run/args.h"
#include "io/pickle/pickle.h"
#include "io/pickle/write/writer.h"
#include "mappings/model/expand.h"
#include "mappings/model/stages.h"
#include "tests/support/golden_config.h"

namespace mckpt::impl {
namespace kept_args_test {

// The args of a run on two context ranks and two stages, with a value in every field that a result may reset.
std::string args_of_run() {
  PickleWriter p;
  p.op(Op::kEmptyDict), p.op(Op::kMark);
  auto number = [&](const char* name, i64 value) { p.text(name), p.integer(value); };
  auto flag = [&](const char* name, bool value) { p.text(name), p.boolean(value); };
  number("seed", 7), number("num_layers", 3), number("context_parallel_size", 2), number("iteration", 3);
  p.text("hierarchical_context_parallel_sizes"), p.op(Op::kEmptyList), p.op(Op::kMark);
  p.integer(2), p.integer(1), p.op(Op::kAppends);
  number("num_virtual_stages_per_pipeline_rank", 2), number("pipeline_model_parallel_split_rank", 1);
  number("transformer_pipeline_model_parallel_size", 2);
  number("consumed_train_samples", 96), number("skipped_train_samples", 5);
  number("consumed_valid_samples", 11);
  flag("account_for_embedding_in_pipeline_split", true), flag("account_for_loss_in_pipeline_split", true);
  flag("use_torch_fsdp2", true), flag("use_custom_fsdp", true), flag("use_dist_ckpt", true);
  flag("no_save_rng", false);
  p.text("transformer_impl"), p.text("local");
  p.op(Op::kSetitems);
  return p.finish();
}

// A field as "None", "True", "12", "local" or "[2, 1]"; "-" where it is missing.
std::string field_of(const std::string& args, std::string_view name) {
  const Pickle pickle({reinterpret_cast<const u8*>(args.data()), args.size()}, {});
  const PickleValue* value = arg_of(pickle.root(), name);
  if (!value) return "-";
  if (value->is_none()) return "None";
  if (value->is(PickleValue::Kind::kBool)) return value->as_bool() ? "True" : "False";
  if (value->is(PickleValue::Kind::kText)) return std::string(value->text());
  if (value->is_int()) return cat(value->as_int());
  std::string out;
  for (PickleValue item : value->items()) out += cat(out.empty() ? "" : ", ", item.as_int());
  return cat("[", out, "]");
}

TEST(KeptArgs, FollowTheResult) {
  const HfConfig config = read_hf_config(golden_config_text("llama3"));
  const ModelMap map = ModelMap::promised(config.model, *config.family);
  Grid one, same;
  one.pp = 3, same.pp = 3, same.cp = 2;
  const PipelineOptions pipeline;
  Notes notes;
  const std::string torch = kept_args(args_of_run(),
                                      {.map = map,
                                       .grid = one,
                                       .pipeline = pipeline,
                                       .format = ArgsFormat::kTorch,
                                       .iteration = 0,
                                       .from_the_start = true,
                                       .norms = NormNames::kOfTransformerEngine},
                                      notes);
  const std::string dist =
      kept_args(args_of_run(),
                {.map = map, .grid = same, .pipeline = pipeline, .format = ArgsFormat::kTorchDist}, notes);
  struct Case {
    const char *name, *torch, *dist;
  };
  const Case cases[] = {
      {"seed", "7", "7"},
      {"iteration", "0", "3"},
      {"consumed_train_samples", "0", "96"},
      {"skipped_train_samples", "0", "5"},
      {"consumed_valid_samples", "0", "11"},
      {"no_save_rng", "True", "True"},
      {"hierarchical_context_parallel_sizes", "None", "[2, 1]"},
      {"num_virtual_stages_per_pipeline_rank", "None", "None"},
      {"pipeline_model_parallel_split_rank", "None", "None"},
      {"transformer_pipeline_model_parallel_size", "3", "3"},
      {"account_for_embedding_in_pipeline_split", "False", "False"},
      {"account_for_loss_in_pipeline_split", "False", "False"},
      {"use_torch_fsdp2", "False", "False"},
      {"use_custom_fsdp", "False", "False"},
      {"use_dist_ckpt", "False", "True"},
      {"transformer_impl", "transformer_engine", "local"},
      {"rank", "-", "-"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(field_of(torch, c.name), c.torch) << c.name;
    EXPECT_EQ(field_of(dist, c.name), c.dist) << c.name;
  }
  EXPECT_TRUE(notes.empty());
}

}  // namespace kept_args_test
}  // namespace mckpt::impl
