// The answer of `mckpt env`: this mckpt, the machine, and its modules; as text and as JSON.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mckpt::impl {

class Output;

// The facts of one module: its file, what it says about itself, or why it does not load and how to get it.
//
//   {"name": "mpi", "purpose": "runs over several ranks (Open MPI)", "built": true, "path": "...", "loads": true,
//    "facts": {"version": "Open MPI v4.1.4"}, "problem": null, "help": null}
struct ModuleReport {
  std::string_view name{}, purpose{};
  bool built = false;                                        // by this build
  std::string path{};                                        // "": no file was found
  std::vector<std::pair<std::string, std::string>> facts{};  // when it loads
  std::string problem{}, help{};                             // when it does not
  bool loads() const { return problem.empty(); }
  // A module that was never built is not a fault; a module that is here and does not load is one.
  bool faulty() const { return !path.empty() && !loads(); }
};

struct EnvAnswer {
  std::string compiler{}, build_type{}, processor{};
  int cores = 0;  // that this process may use
  int ranks = 1;
  std::vector<ModuleReport> modules{};

  bool ok() const { return std::ranges::none_of(modules, &ModuleReport::faulty); }
};

void write_env_json(Output& out, const EnvAnswer& answer);
void write_env_text(Output& out, const EnvAnswer& answer);

}  // namespace mckpt::impl
