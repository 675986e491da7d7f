// Which tensors of a DCP folder get a type that is chosen, and what a comparison says of one that got it and
// must not have it.
#include "convert/plan/targets/dcp.h"

#include <gtest/gtest.h>

#include <map>

#include "convert/compare/verify.h"
#include "convert/plan/conversion.h"
#include "convert/run/run.h"
#include "core/base/observer.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "io/store/store.h"
#include "runtime/comm/comm.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace to_dcp_test {

// Two models with the states of their optimizers, in a save without dicts: no name begins as the name of a
// state.
constexpr std::string_view kModels[] = {"actor.model.h.0.w", "critic.h.0.w", "critic.h.0.step_size"};
constexpr std::string_view kStates[] = {"actor.optimizer.state.h.0.w.exp_avg",
                                        "critic_optimizer.state.h.0.w.mine",
                                        "critic_optim.state.h.0.w.exp_avg_sq"};

struct Dcp {
  TempFolder folder;
  Observer observer;

  std::string write(const ToDcpOptions& options) {
    Conversion c = plan_to_dcp(options);
    std::unique_ptr<Comm> alone = local_comm();
    run(c, {.durable = false}, *alone, observer);
    return options.target;
  }

  // All tensors of one type, two items of zero each.
  std::string of_type(const char* name, std::string_view type, i64 bytes) {
    std::string header;
    i64 at = 0;
    for (std::span<const std::string_view> names : {std::span(kModels), std::span(kStates)})
      for (std::string_view tensor : names) {
        header += cat(header.empty() ? "{" : ",", safetensors_entry(tensor, type, "2", at, at + 2 * bytes));
        at += 2 * bytes;
      }
    folder.put(cat(name, ".safetensors"), safetensors_file(header + "}", std::string(at, '\0')));
    return write(
        {.source = cat(folder.path(), "/", name, ".safetensors"), .target = cat(folder.path(), "/", name)});
  }

  bool equal(const std::string& tested, const std::string& source) {
    return verify(tested, {.against = source}, observer).equal.value();
  }
};

TEST(ToDcp, KeepsTheTypesOfStatesBesideSeveralModels) {
  Dcp at;
  const std::string source = at.of_type("source", "F32", 4);
  const ToDcpOptions options{.source = source, .target = at.folder.path() + "/cast", .dtype = DType::kBF16};
  std::string notes;
  for (const Note& n : plan_to_dcp(options).details) notes += cat(n.text, "\n");
  EXPECT_NE(notes.find("3 tensors beside the model keep their types"), notes.npos) << notes;
  const std::string cast = at.write(options);
  std::map<std::string_view, DType> types;
  std::unique_ptr<Store> store = open_store(cast);
  for (i64 t = 0; t < store->tensor_count(); t++) types[store->name(t)] = store->dtype(t);
  for (std::string_view name : kModels) EXPECT_EQ(types[name], DType::kBF16) << name;
  for (std::string_view name : kStates) EXPECT_EQ(types[name], DType::kF32) << name;
  EXPECT_TRUE(at.equal(cast, source));
  EXPECT_FALSE(at.equal(at.of_type("all_cast", "BF16", 2), source)) << "its states were cast too";
}

}  // namespace to_dcp_test
}  // namespace mckpt::impl
