// The variables of each launcher; the first launcher whose rank is set counts.
#include "runtime/job/launch.h"

#include <charconv>
#include <cstring>
#include <optional>

namespace mckpt::impl {
namespace {

// A whole text that is a number of 0 or more; nothing for any other text.
std::optional<int> number(const char* text) {
  int v = 0;
  if (!text) return {};
  auto [end, ec] = std::from_chars(text, text + std::strlen(text), v);
  if (ec != std::errc{} || *end != 0 || v < 0) return {};
  return v;
}

}  // namespace

Launch read_launch(const std::function<const char*(const char*)>& variable) {
  struct Names {
    const char *rank, *size;
  };
  // By row: Open MPI; MPICH, Intel MPI and srun --mpi=pmi2; srun --mpi=pmix, where only Slurm knows the size.
  static constexpr Names kNames[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                     {"PMI_RANK", "PMI_SIZE"},
                                     {"PMIX_RANK", "SLURM_NTASKS"}};
  for (const Names& names : kNames)
    if (auto rank = number(variable(names.rank))) return {*rank, number(variable(names.size)).value_or(0)};
  return {};
}

}  // namespace mckpt::impl
