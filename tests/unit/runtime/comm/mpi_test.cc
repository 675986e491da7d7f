// Facts that only several ranks can show: MPI's own words in errors, and how a job ends when one rank fails.
// The disabled tests fail on purpose; ranks_end_together.sh runs them.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "runtime/comm/comm.h"
#include "runtime/modules/module.h"
#include "tests/support/job.h"

namespace mckpt::impl {
namespace {

TEST(Mpi, ErrorsCarryTheLibrarysOwnWords) {
  char byte = 0;
  try {
    world().broadcast(std::as_writable_bytes(std::span(&byte, 1)), world().size());
    FAIL() << "a root that is no rank was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kRanksFailed);
    EXPECT_NE(e.message().find("invalid root"), std::string::npos) << e.message();
  }
  world().barrier();  // and the job goes on
}

TEST(Mpi, DescribesItself) {
  auto facts = describe_module(load_module("mpi"));
  ASSERT_FALSE(facts.empty());
  EXPECT_EQ(facts[0].first, "version");
  EXPECT_NE(facts[0].second.find("MPI"), std::string::npos) << facts[0].second;
}

TEST(Mpi, DISABLED_FailsInRank1) { EXPECT_NE(world().rank(), 1) << "on purpose"; }

TEST(Mpi, DISABLED_AbortsInRank1) {
  if (world().rank() == 1)
    test_job().end(
        3, [] {}, false);
  world().barrier();
}

}  // namespace
}  // namespace mckpt::impl
