#include "runtime/job/launch.h"

#include <gtest/gtest.h>

#include <map>

namespace mckpt::impl::launch_test {
namespace {

Launch launch_of(std::map<std::string, std::string> environment) {
  return read_launch([&](const char* name) -> const char* {
    auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launch, ReadsWhatEachLauncherSays) {
  struct Case {
    std::map<std::string, std::string> environment;
    int rank, size;
  };
  const Case cases[] = {
      {{}, 0, 1},
      {{{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "8"}}, 3, 8},
      {{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}, 0, 1},
      {{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, 1, 2},
      {{{"PMIX_RANK", "5"}, {"SLURM_NTASKS", "6"}}, 5, 6},
      {{{"PMIX_RANK", "5"}}, 5, 0},
      // Inside a batch job, but not started by a launcher.
      {{{"SLURM_NTASKS", "6"}, {"SLURM_PROCID", "0"}}, 0, 1},
      // Open MPI sets both of its own variables and the variables of PMIx.
      {{{"PMIX_RANK", "1"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, 1, 4},
      {{{"OMPI_COMM_WORLD_RANK", "x"}}, 0, 1},
      {{{"OMPI_COMM_WORLD_RANK", "-1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}, 0, 1},
  };
  for (const Case& c : cases) {
    Launch launch = launch_of(c.environment);
    EXPECT_EQ(launch.rank, c.rank) << &c - cases;
    EXPECT_EQ(launch.size, c.size) << &c - cases;
  }
}

}  // namespace
}  // namespace mckpt::impl::launch_test
